// RUN: tilewright-opt %s --passes=tile-scalarize-pointers,tile-pointer-boxes{target=cuda:90},cse | filecheck %s
// RUN: tilewright-opt %s --passes=tile-scalarize-pointers,tile-pointer-boxes{target=cuda:80},cse | filecheck %s --check-prefix=PLAIN
// RUN: tilewright-opt %s --passes=tile-scalarize-pointers,tile-pointer-boxes{target=cuda:120},cse | filecheck %s --check-prefix=PLAIN

// PLAIN-NOT: tile.desc

// Rows that wrap around, a batch with a stride of its own, a mask along K: rows of A. The key block comes transposed.
// CHECK-LABEL: func.func public @loop
// CHECK-SAME: %arg7: !tile.desc<1x64x32xf16> {tile.descriptor = {argument = 0 : i32, base = "a0", conditions = ["1 <= a5", "a3 > 0", "a3 % 64 == 0", "64 <= a6", "1 <= a4 <= 2147483648"], element = "f16", padding = "zero", shape = ["2147483648", "2147483648", "a4"], strides = ["a5", "a6"]}}
// CHECK-SAME: %arg8: !tile.desc<64x32xf16> {tile.descriptor = {argument = 1 : i32, base = "(a1 + 2 * 4096)", conditions = [], element = "f16", padding = "zero", shape = ["2147483648", "2147483648"], strides = ["128"]}}
// CHECK: %[[BATCH:.*]] = tile.program_id 1
// CHECK: scf.for %[[I:.*]] = %c0_i32 to %arg3 step %c1_i32 iter_args({{.*}}) -> (tensor<64x64xf32>)
// CHECK: %[[ROW:.*]] = arith.remsi
// CHECK: %[[K:.*]] = arith.muli %[[I]], %c32_i32
// CHECK: %[[A:.*]] = tile.descriptor_load %arg7[%[[BATCH]], %[[ROW]], %[[K]]]
// CHECK: %[[X:.*]] = tile.reshape %[[A]] : tensor<1x64x32xf16> -> tensor<64x32xf16>
// CHECK: %[[B:.*]] = tile.descriptor_load %arg8[%{{.*}}, %c0_i32]
// CHECK: %[[Y:.*]] = tile.trans %[[B]]
// CHECK: tile.dot %[[X]], %[[Y]]
func.func public @loop(
    %a: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %b: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %c: !tile.ptr<f32>,
    %m: i32 {tile.divisibility = 16 : i32}, %k: i32, %batch: i32 {tile.divisibility = 16 : i32}, %stride: i32 {tile.divisibility = 16 : i32}) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c32 = arith.constant 32 : i32
  %c64 = arith.constant 64 : i32
  %zeros = arith.constant dense<0.0> : tensor<64x64xf32>
  %padding = arith.constant dense<0.0> : tensor<64x32xf16>
  %rowpitch = arith.constant dense<128> : tensor<1x64xi32>
  %advance = arith.constant dense<8192> : tensor<32x64xi32>
  %first = arith.constant 4096 : i32
  %pid = tile.program_id 0
  %z = tile.program_id 1
  %start = arith.muli %pid, %c64 : i32
  %r64 = tile.range 0 to 64 : tensor<64xi32>
  %r32 = tile.range 0 to 32 : tensor<32xi32>
  %starts = tile.splat %start : i32 -> tensor<64xi32>
  %rows = arith.addi %starts, %r64 : tensor<64xi32>
  %ms = tile.splat %m : i32 -> tensor<64xi32>
  %wrapped = arith.remsi %rows, %ms : tensor<64xi32>
  %column = tile.expand_dims %wrapped axis = 1 : tensor<64xi32> -> tensor<64x1xi32>
  %strides = tile.splat %stride : i32 -> tensor<64x1xi32>
  %down = arith.muli %column, %strides : tensor<64x1xi32>
  %zoff = arith.muli %z, %batch : i32
  %abase = tile.addptr %a, %zoff : !tile.ptr<f16>, i32
  %as = tile.splat %abase : !tile.ptr<f16> -> tensor<64x1x!tile.ptr<f16>>
  %arows = tile.addptr %as, %down : tensor<64x1x!tile.ptr<f16>>, tensor<64x1xi32>
  %ab = tile.broadcast %arows : tensor<64x1x!tile.ptr<f16>> -> tensor<64x32x!tile.ptr<f16>>
  %rk = tile.expand_dims %r32 axis = 0 : tensor<32xi32> -> tensor<1x32xi32>
  %rkb = tile.broadcast %rk : tensor<1x32xi32> -> tensor<64x32xi32>
  %ap = tile.addptr %ab, %rkb : tensor<64x32x!tile.ptr<f16>>, tensor<64x32xi32>
  %bbase = tile.addptr %b, %first : !tile.ptr<f16>, i32
  %bs = tile.splat %bbase : !tile.ptr<f16> -> tensor<1x64x!tile.ptr<f16>>
  %keys = tile.expand_dims %r64 axis = 0 : tensor<64xi32> -> tensor<1x64xi32>
  %across = arith.muli %keys, %rowpitch : tensor<1x64xi32>
  %bcols = tile.addptr %bs, %across : tensor<1x64x!tile.ptr<f16>>, tensor<1x64xi32>
  %bb = tile.broadcast %bcols : tensor<1x64x!tile.ptr<f16>> -> tensor<32x64x!tile.ptr<f16>>
  %rd = tile.expand_dims %r32 axis = 1 : tensor<32xi32> -> tensor<32x1xi32>
  %rdb = tile.broadcast %rd : tensor<32x1xi32> -> tensor<32x64xi32>
  %bp = tile.addptr %bb, %rdb : tensor<32x64x!tile.ptr<f16>>, tensor<32x64xi32>
  %out:3 = scf.for %i = %c0 to %m step %c1 iter_args(%acc = %zeros, %pa = %ap, %pb = %bp) -> (tensor<64x64xf32>, tensor<64x32x!tile.ptr<f16>>, tensor<32x64x!tile.ptr<f16>>) : i32 {
    %done = arith.muli %i, %c32 : i32
    %left = arith.subi %k, %done : i32
    %lefts = tile.splat %left : i32 -> tensor<1x32xi32>
    %in = arith.cmpi slt, %rk, %lefts : tensor<1x32xi32>
    %mask = tile.broadcast %in : tensor<1x32xi1> -> tensor<64x32xi1>
    %x = tile.load %pa mask = %mask other = %padding : tensor<64x32x!tile.ptr<f16>>
    %y = tile.load %pb : tensor<32x64x!tile.ptr<f16>>
    %d = tile.dot %x, %y, %acc precision = tf32 : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>
    %by = tile.splat %c32 : i32 -> tensor<64x32xi32>
    %na = tile.addptr %pa, %by : tensor<64x32x!tile.ptr<f16>>, tensor<64x32xi32>
    %nb = tile.addptr %pb, %advance : tensor<32x64x!tile.ptr<f16>>, tensor<32x64xi32>
    scf.yield %d, %na, %nb : tensor<64x64xf32>, tensor<64x32x!tile.ptr<f16>>, tensor<32x64x!tile.ptr<f16>>
  }
  tile.print "out" signed = [true] (%out#0 : tensor<64x64xf32>)
  return
}

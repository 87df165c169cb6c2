// RUN: tilewright-opt %s --passes=tile-host-descriptors{target=cuda:90},tile-lower-descriptors,canonicalize | filecheck %s
// RUN: tilewright-opt %s --passes=tile-host-descriptors{target=cuda:80},tile-lower-descriptors,canonicalize | filecheck %s --check-prefix=SM80

// SM80-NOT: !tile.desc

// What the host can compute becomes a recipe, in the arithmetic of the kernel.
// CHECK-LABEL: func.func public @passed
// CHECK-SAME: %arg4: !tile.desc<64x32xf16> {tile.descriptor = {argument = 0 : i32, base = "(a0 + 2 * wrap(a2 * 64, 32))", element = "f16", padding = "nan", shape = ["a1", "max(divide(a2, 4), 8)"], strides = ["a3"]}}
func.func public @passed(%p: !tile.ptr<f16>, %m: i32, %n: i32, %s: i64) {
  %c1 = arith.constant 1 : i64
  %c4 = arith.constant 4 : i32
  %c8 = arith.constant 8 : i32
  %c64 = arith.constant 64 : i32
  %offset = arith.muli %n, %c64 : i32
  %base = tile.addptr %p, %offset : !tile.ptr<f16>, i32
  %quarter = arith.divsi %n, %c4 : i32
  %k = arith.maxsi %quarter, %c8 : i32
  %d = tile.make_descriptor %base, shape = [%m, %k], strides = [%s, %c1], padding = nan : !tile.ptr<f16> -> !tile.desc<64x32xf16>
  %i = tile.program_id 0
  %eight = arith.constant 8 : i32
  %j = arith.muli %i, %eight : i32
  // CHECK: tile.descriptor_load %arg4[%{{.*}}, %{{.*}}]
  %v = tile.descriptor_load %d[%i, %j] : !tile.desc<64x32xf16> -> tensor<64x32xf16>
  tile.print "v" signed = [true] (%v : tensor<64x32xf16>)
  return
}

// A descriptor that depends on the program stays on the device.
// CHECK-LABEL: func.func public @depends_on_the_program(
// CHECK-NOT: tile.desc
// CHECK: return
func.func public @depends_on_the_program(%p: !tile.ptr<f16>, %m: i32) {
  %c1 = arith.constant 1 : i64
  %c64 = arith.constant 64 : i64
  %i = tile.program_id 0
  %eight = arith.constant 8 : i32
  %j = arith.muli %i, %eight : i32
  %base = tile.addptr %p, %i : !tile.ptr<f16>, i32
  %d = tile.make_descriptor %base, shape = [%m, %m], strides = [%c64, %c1], padding = zero : !tile.ptr<f16> -> !tile.desc<64x64xf16>
  %v = tile.descriptor_load %d[%i, %j] : !tile.desc<64x64xf16> -> tensor<64x64xf16>
  tile.print "v" signed = [true] (%v : tensor<64x64xf16>)
  return
}

// Plain stores and TMA loads of one array are not ordered; gathers are plain accesses beside a TMA load.
// CHECK-LABEL: func.func public @mixed(
// CHECK-SAME: %arg3: !tile.desc<64x64xf16> {tile.descriptor = {argument = 1 : i32
// CHECK-NOT: !tile.desc<64x64xf16>
// CHECK: tile.load
// CHECK: tile.descriptor_load %arg3
func.func public @mixed(%p: !tile.ptr<f16>, %q: !tile.ptr<f16>, %m: i32) {
  %c1 = arith.constant 1 : i64
  %c64 = arith.constant 64 : i64
  %one = arith.constant 1.0 : f16
  %i = tile.program_id 0
  %eight = arith.constant 8 : i32
  %j = arith.muli %i, %eight : i32
  tile.store %p, %one : !tile.ptr<f16>
  %d = tile.make_descriptor %p, shape = [%m, %m], strides = [%c64, %c1], padding = zero : !tile.ptr<f16> -> !tile.desc<64x64xf16>
  %e = tile.make_descriptor %q, shape = [%m, %m], strides = [%c64, %c1], padding = zero : !tile.ptr<f16> -> !tile.desc<64x64xf16>
  %v = tile.descriptor_load %d[%i, %j] : !tile.desc<64x64xf16> -> tensor<64x64xf16>
  %w = tile.descriptor_load %e[%i, %j] : !tile.desc<64x64xf16> -> tensor<64x64xf16>
  tile.print "v" signed = [true, true] (%v, %w : tensor<64x64xf16>, tensor<64x64xf16>)
  return
}

// What is stored and loaded again by TMA is marked, so that stores are waited for until they are written.
// CHECK-LABEL: func.func public @reads_back(
// CHECK-SAME: reads_back
func.func public @reads_back(%p: !tile.ptr<f32>, %m: i32) {
  %c1 = arith.constant 1 : i64
  %c64 = arith.constant 64 : i64
  %i = tile.program_id 0
  %eight = arith.constant 8 : i32
  %j = arith.muli %i, %eight : i32
  %d = tile.make_descriptor %p, shape = [%m, %m], strides = [%c64, %c1], padding = zero : !tile.ptr<f32> -> !tile.desc<64x64xf32>
  %v = tile.descriptor_load %d[%i, %j] : !tile.desc<64x64xf32> -> tensor<64x64xf32>
  // CHECK: tile.descriptor_reduce fadd %arg2
  tile.descriptor_reduce fadd %d[%i, %j], %v : !tile.desc<64x64xf32>, tensor<64x64xf32>
  return
}

// TMA has no reduction for this; with atomics, other programs may wait for what is stored.
// CHECK-LABEL: func.func public @plain(
// CHECK-NOT: !tile.desc
// CHECK: return
func.func public @plain(%p: !tile.ptr<f32>, %lock: !tile.ptr<i32>, %m: i32) {
  %c1 = arith.constant 1 : i64
  %c64 = arith.constant 64 : i64
  %i = tile.program_id 0
  %eight = arith.constant 8 : i32
  %j = arith.muli %i, %eight : i32
  %x = arith.constant dense<1.0> : tensor<64x64xf32>
  %d = tile.make_descriptor %p, shape = [%m, %m], strides = [%c64, %c1], padding = zero : !tile.ptr<f32> -> !tile.desc<64x64xf32>
  tile.descriptor_store %d[%i, %j], %x : !tile.desc<64x64xf32>, tensor<64x64xf32>
  %old = tile.atomic_rmw add acq_rel gpu %lock, %m : !tile.ptr<i32>
  return
}

// Assembly may tell other programs as well.
// CHECK-LABEL: func.func public @announced_by_assembly(
// CHECK-NOT: !tile.desc
// CHECK: return
func.func public @announced_by_assembly(%p: !tile.ptr<f32>, %lock: i64, %m: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i64
  %c64 = arith.constant 64 : i64
  %x = arith.constant dense<1.0> : tensor<64x64xf32>
  %d = tile.make_descriptor %p, shape = [%m, %m], strides = [%c64, %c1], padding = zero : !tile.ptr<f32> -> !tile.desc<64x64xf32>
  tile.descriptor_store %d[%c0, %c0], %x : !tile.desc<64x64xf32>, tensor<64x64xf32>
  %old = tile.inline_asm "atom.add.release.gpu.u32 $0, [$1], 1;", "=r,l"(%lock) : (i64) -> i32
  return
}

// An innermost coordinate that may be no multiple of 16 bytes is not for TMA; the other descriptor's is one.
// CHECK-LABEL: func.func public @innermost_coordinates(
// CHECK-SAME: %arg2: !tile.desc<64x64xf16>
// CHECK-COUNT-1: tile.descriptor_load
// CHECK-NOT: tile.descriptor_load
// CHECK: return
func.func public @innermost_coordinates(%p: !tile.ptr<f16>, %m: i32) {
  %c1 = arith.constant 1 : i64
  %c64 = arith.constant 64 : i64
  %c4 = arith.constant 4 : i32
  %c8 = arith.constant 8 : i32
  %i = tile.program_id 0
  %j = arith.muli %i, %c4 : i32
  %k = arith.muli %i, %c8 : i32
  %d = tile.make_descriptor %p, shape = [%m, %m], strides = [%c64, %c1], padding = zero : !tile.ptr<f16> -> !tile.desc<64x64xf16>
  %e = tile.make_descriptor %p, shape = [%m, %m], strides = [%c64, %c1], padding = zero : !tile.ptr<f16> -> !tile.desc<64x64xf16>
  %v = tile.descriptor_load %d[%i, %j] : !tile.desc<64x64xf16> -> tensor<64x64xf16>
  %w = tile.descriptor_load %e[%i, %k] : !tile.desc<64x64xf16> -> tensor<64x64xf16>
  tile.print "v" signed = [true, true] (%v, %w : tensor<64x64xf16>, tensor<64x64xf16>)
  return
}

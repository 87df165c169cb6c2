// RUN: tilewright-opt %s --passes=tile-device-descriptors{target=cuda:90},tile-host-descriptors{target=cuda:90},tile-lower-descriptors,canonicalize | filecheck %s
// RUN: tilewright-opt %s --passes=tile-device-descriptors{target=cuda:80},tile-lower-descriptors,canonicalize | filecheck %s --check-prefix=SM80

// SM80-NOT: !tile.desc

// A product of operands whose addresses the kernel loads: one tensor map for each, and a fence before the loop that reads through them.
// CHECK-LABEL: func.func public @product
// CHECK-SAME: %arg4: !tile.ptr<i8> {tile.scratch = 256 : i32}
// CHECK: tile.make_descriptor {{.*}} {tile.element = "f16", tile.slot = 0 : i32}
// CHECK: tile.make_descriptor {{.*}} {tile.element = "f16", tile.slot = 1 : i32}
// CHECK: tile.barrier {tile.fence_proxy}
// CHECK-NEXT: scf.for
// CHECK: tile.descriptor_load
// CHECK: tile.descriptor_load
func.func public @product(%p: !tile.ptr<!tile.ptr<f16>>, %out: !tile.ptr<f32>, %m: i32, %k: i32) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %one = arith.constant 1 : i64
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %a = tile.load %p : !tile.ptr<!tile.ptr<f16>>
  %stride = arith.extsi %k : i32 to i64
  %x = tile.make_descriptor %a, shape = [%m, %k], strides = [%stride, %one], padding = zero : !tile.ptr<f16> -> !tile.desc<64x64xf16>
  %y = tile.make_descriptor %a, shape = [%k, %m], strides = [%stride, %one], padding = zero : !tile.ptr<f16> -> !tile.desc<64x64xf16>
  %d = scf.for %i = %c0 to %k step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %l = tile.descriptor_load %x[%c0, %i] : !tile.desc<64x64xf16> -> tensor<64x64xf16>
    %r = tile.descriptor_load %y[%i, %c0] : !tile.desc<64x64xf16> -> tensor<64x64xf16>
    %n = tile.dot %l, %r, %acc precision = tf32 : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %n : tensor<64x64xf32>
  }
  %s = tile.splat %out : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
  tile.store %s, %d : tensor<64x64x!tile.ptr<f32>>
  return
}

// A loop that writes memory, and a load outside of loops, stay as they are.
// CHECK-LABEL: func.func public @plain
// CHECK-NOT: tile.slot
// CHECK: return
func.func public @plain(%p: !tile.ptr<!tile.ptr<f16>>, %out: !tile.ptr<f32>, %m: i32, %k: i32) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %one = arith.constant 1 : i64
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %a = tile.load %p : !tile.ptr<!tile.ptr<f16>>
  %stride = arith.extsi %k : i32 to i64
  %s = tile.splat %out : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
  %x = tile.make_descriptor %a, shape = [%m, %k], strides = [%stride, %one], padding = zero : !tile.ptr<f16> -> !tile.desc<64x64xf16>
  %r = tile.descriptor_load %x[%c0, %c0] : !tile.desc<64x64xf16> -> tensor<64x64xf16>
  scf.for %i = %c0 to %k step %c64 : i32 {
    %l = tile.descriptor_load %x[%c0, %i] : !tile.desc<64x64xf16> -> tensor<64x64xf16>
    %n = tile.dot %l, %r, %zero precision = tf32 : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    tile.store %s, %n : tensor<64x64x!tile.ptr<f32>>
  }
  return
}

// RUN: tilewright-opt %s --passes=tile-lower-descriptors | filecheck %s

// The block's corner moves the scalar base; offsets inside the block and bounds are tensors.
// CHECK-LABEL: func.func public @load_store
func.func public @load_store(%p: !tile.ptr<f16>, %m: i32, %n: i32, %s: i64, %i: i32, %j: i32) {
  %c1 = arith.constant 1 : i64
  %d = tile.make_descriptor %p, shape = [%m, %n], strides = [%s, %c1], padding = nan : !tile.ptr<f16> -> !tile.desc<16x32xf16>
  // CHECK: %[[ROW:.*]] = tile.addptr %arg0, %{{.*}} : !tile.ptr<f16>, i64
  // CHECK: %[[CORNER:.*]] = tile.addptr %[[ROW]], %{{.*}} : !tile.ptr<f16>, i64
  // CHECK: tile.splat %[[CORNER]] : !tile.ptr<f16> -> tensor<16x32x!tile.ptr<f16>>
  // CHECK: arith.constant dense<0x7E00> : tensor<16x32xf16>
  // CHECK: tile.load %{{.*}} mask = %{{.*}} other = %{{.*}} : tensor<16x32x!tile.ptr<f16>>
  %v = tile.descriptor_load %d[%i, %j] : !tile.desc<16x32xf16> -> tensor<16x32xf16>
  // CHECK: tile.store %{{.*}}, %{{.*}} mask = %{{.*}} : tensor<16x32x!tile.ptr<f16>>
  tile.descriptor_store %d[%j, %i], %v : !tile.desc<16x32xf16>, tensor<16x32xf16>
  // CHECK: tile.atomic_rmw fadd relaxed gpu
  tile.descriptor_reduce fadd %d[%i, %j], %v : !tile.desc<16x32xf16>, tensor<16x32xf16>
  // CHECK-NOT: !tile.desc
  return
}

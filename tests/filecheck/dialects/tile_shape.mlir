// RUN: tilewright-opt %s | tilewright-opt | filecheck %s

// CHECK-LABEL: func.func @create
func.func @create(%x: f32, %p: !tile.ptr<f16>, %q: !tile.ptr<i8, 3>) -> tensor<8x16xf32> {
  // CHECK: tile.range 4 to 68 : tensor<64xi32>
  %0 = tile.range 4 to 68 : tensor<64xi32>
  // CHECK: tile.splat %{{.*}} : f32 -> tensor<8x16xf32>
  %1 = tile.splat %x : f32 -> tensor<8x16xf32>
  // CHECK: tile.splat %{{.*}} : !tile.ptr<f16> -> tensor<4x!tile.ptr<f16>>
  %2 = tile.splat %p : !tile.ptr<f16> -> tensor<4x!tile.ptr<f16>>
  // CHECK: tile.splat %{{.*}} : !tile.ptr<i8, 3> -> tensor<4x!tile.ptr<i8, 3>>
  %3 = tile.splat %q : !tile.ptr<i8, 3> -> tensor<4x!tile.ptr<i8, 3>>
  return %1 : tensor<8x16xf32>
}

// CHECK-LABEL: func.func @rearrange
func.func @rearrange(%a: tensor<4x1x8xf32>, %one: tensor<1x1xi64>) {
  // CHECK: tile.unsplat %{{.*}} : tensor<1x1xi64>
  %0 = tile.unsplat %one : tensor<1x1xi64>
  // CHECK: tile.expand_dims %{{.*}} axis = 3 : tensor<4x1x8xf32> -> tensor<4x1x8x1xf32>
  %1 = tile.expand_dims %a axis = 3 : tensor<4x1x8xf32> -> tensor<4x1x8x1xf32>
  // CHECK: tile.broadcast %{{.*}} : tensor<4x1x8xf32> -> tensor<4x16x8xf32>
  %2 = tile.broadcast %a : tensor<4x1x8xf32> -> tensor<4x16x8xf32>
  // CHECK: tile.reshape %{{.*}} : tensor<4x1x8xf32> -> tensor<32xf32>
  %3 = tile.reshape %a : tensor<4x1x8xf32> -> tensor<32xf32>
  // CHECK: tile.reshape %{{.*}} reorder : tensor<4x1x8xf32> -> tensor<2x16xf32>
  %4 = tile.reshape %a reorder : tensor<4x1x8xf32> -> tensor<2x16xf32>
  // CHECK: tile.trans %{{.*}} order = [2, 0, 1] : tensor<4x1x8xf32> -> tensor<8x4x1xf32>
  %5 = tile.trans %a order = [2, 0, 1] : tensor<4x1x8xf32> -> tensor<8x4x1xf32>
  return
}

// CHECK-LABEL: func.func @combine
func.func @combine(%a: tensor<4x8xf32>, %b: tensor<4x8xf32>, %i: tensor<4x2xi32>) {
  // CHECK: %[[J:.*]] = tile.join %{{.*}}, %{{.*}} : tensor<4x8xf32> -> tensor<4x8x2xf32>
  %0 = tile.join %a, %b : tensor<4x8xf32> -> tensor<4x8x2xf32>
  // CHECK: tile.split %[[J]] : tensor<4x8x2xf32> -> tensor<4x8xf32>
  %1:2 = tile.split %0 : tensor<4x8x2xf32> -> tensor<4x8xf32>
  // CHECK: tile.cat %{{.*}}, %{{.*}} dim = 1 : tensor<4x8xf32> -> tensor<4x16xf32>
  %2 = tile.cat %a, %b dim = 1 : tensor<4x8xf32> -> tensor<4x16xf32>
  // CHECK: tile.gather %{{.*}}[%{{.*}}] axis = 1 : tensor<4x8xf32>, tensor<4x2xi32> -> tensor<4x2xf32>
  %3 = tile.gather %a[%i] axis = 1 : tensor<4x8xf32>, tensor<4x2xi32> -> tensor<4x2xf32>
  return
}

// A split of rank 1 gives scalars.
// CHECK-LABEL: func.func @split_scalars
func.func @split_scalars(%a: tensor<2xf32>) -> (f32, f32) {
  // CHECK: tile.split %{{.*}} : tensor<2xf32> -> f32
  %0:2 = tile.split %a : tensor<2xf32> -> f32
  return %0#0, %0#1 : f32, f32
}

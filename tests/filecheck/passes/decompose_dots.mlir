// RUN: tilewright-opt %s --pass-pipeline='builtin.module(tile-decompose-dots{target=cuda:80})' | filecheck %s

// CHECK-LABEL: func.func @tf32x3
func.func @tf32x3(%a: tensor<32x32xf32>, %b: tensor<32x32xf32>, %c: tensor<32x32xf32>) -> tensor<32x32xf32> {
  // The two small products first, NaN of them dropped, then the accumulator, then the large one.
  // CHECK-COUNT-2: tile.dot {{.*}} precision = tf32
  // CHECK: arith.cmpf uno
  // CHECK: %[[SUM:.*]] = arith.addf %{{.*}}, %arg2
  // CHECK: tile.dot %{{.*}}, %{{.*}}, %[[SUM]] precision = tf32
  %d = tile.dot %a, %b, %c precision = tf32x3 : tensor<32x32xf32>, tensor<32x32xf32> -> tensor<32x32xf32>
  return %d : tensor<32x32xf32>
}

// CHECK-LABEL: func.func @bf16x6
// CHECK-COUNT-6: tile.dot {{.*}} : tensor<32x32xbf16>, tensor<32x32xbf16> -> tensor<32x32xf32>
// CHECK-NOT: tile.dot
func.func @bf16x6(%a: tensor<32x32xf32>, %b: tensor<32x32xf32>, %c: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %d = tile.dot %a, %b, %c precision = bf16x6 : tensor<32x32xf32>, tensor<32x32xf32> -> tensor<32x32xf32>
  return %d : tensor<32x32xf32>
}

// sm_80 multiplies no 8-bit floats.
// CHECK-LABEL: func.func @fp8
// CHECK: tile.dot {{.*}} : tensor<32x32xf16>, tensor<32x32xf16> -> tensor<32x32xf32>
func.func @fp8(%a: tensor<32x32xf8E5M2>, %b: tensor<32x32xf8E5M2>, %c: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %d = tile.dot %a, %b, %c precision = ieee : tensor<32x32xf8E5M2>, tensor<32x32xf8E5M2> -> tensor<32x32xf32>
  return %d : tensor<32x32xf32>
}

// CHECK-LABEL: func.func @into_accumulator
func.func @into_accumulator(%a: tensor<32x32xf16>, %b: tensor<32x32xf16>, %c: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %z = arith.constant dense<0.0> : tensor<32x32xf32>
  // CHECK: %[[D:.*]] = tile.dot %arg0, %arg1, %arg2
  // CHECK-NOT: arith.addf
  %d = tile.dot %a, %b, %z precision = ieee : tensor<32x32xf16>, tensor<32x32xf16> -> tensor<32x32xf32>
  %e = arith.addf %d, %c : tensor<32x32xf32>
  // CHECK: return %[[D]]
  return %e : tensor<32x32xf32>
}

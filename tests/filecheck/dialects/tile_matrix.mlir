// RUN: tilewright-opt %s | tilewright-opt | filecheck %s

// CHECK-LABEL: func.func @dots
func.func @dots(%a: tensor<16x32xf16>, %b: tensor<32x8xf16>, %c: tensor<16x8xf32>, %i: tensor<2x16x32xi8>, %j: tensor<2x32x8xi8>,
                %k: tensor<2x16x8xi32>, %x: tensor<16x32xf8E5M2>, %y: tensor<32x8xf8E4M3FN>) {
  // CHECK: tile.dot %{{.*}}, %{{.*}}, %{{.*}} precision = ieee : tensor<16x32xf16>, tensor<32x8xf16> -> tensor<16x8xf32>
  %0 = tile.dot %a, %b, %c precision = ieee : tensor<16x32xf16>, tensor<32x8xf16> -> tensor<16x8xf32>
  // CHECK: tile.dot %{{.*}} precision = ieee {a_unsigned} : tensor<2x16x32xi8>, tensor<2x32x8xi8> -> tensor<2x16x8xi32>
  %1 = tile.dot %i, %j, %k precision = ieee {a_unsigned} : tensor<2x16x32xi8>, tensor<2x32x8xi8> -> tensor<2x16x8xi32>
  // CHECK: tile.dot %{{.*}} precision = tf32x3 {max_imprecise = 32 : i32} : tensor<16x32xf8E5M2>, tensor<32x8xf8E4M3FN> -> tensor<16x8xf32>
  %2 = tile.dot %x, %y, %c precision = tf32x3 {max_imprecise = 32 : i32} : tensor<16x32xf8E5M2>, tensor<32x8xf8E4M3FN> -> tensor<16x8xf32>
  return
}

// CHECK-LABEL: func.func @scaled
func.func @scaled(%a: tensor<16x32xi8>, %sa: tensor<16x2xi8>, %b: tensor<64x8xf8E4M3FN>, %sb: tensor<8x2xi8>, %c: tensor<16x8xf32>,
                  %h: tensor<64x8xbf16>) {
  // CHECK: tile.dot_scaled %{{.*}} scale %{{.*}} : tensor<16x2xi8> format = "e2m1", %{{.*}} scale %{{.*}} : tensor<8x2xi8> format = "e4m3", %{{.*}} fast_math : tensor<16x32xi8>, tensor<64x8xf8E4M3FN> -> tensor<16x8xf32>
  %0 = tile.dot_scaled %a scale %sa : tensor<16x2xi8> format = "e2m1", %b scale %sb : tensor<8x2xi8> format = "e4m3", %c fast_math
    : tensor<16x32xi8>, tensor<64x8xf8E4M3FN> -> tensor<16x8xf32>
  // CHECK: tile.dot_scaled %{{.*}} scale %{{.*}} format = "e2m1", %{{.*}} format = "bf16", %{{.*}} : tensor<16x32xi8>, tensor<64x8xbf16> -> tensor<16x8xf32>
  %1 = tile.dot_scaled %a scale %sa : tensor<16x2xi8> format = "e2m1", %h format = "bf16", %c
    : tensor<16x32xi8>, tensor<64x8xbf16> -> tensor<16x8xf32>
  return
}

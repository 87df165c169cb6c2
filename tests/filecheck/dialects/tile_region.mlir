// RUN: tilewright-opt %s | tilewright-opt | filecheck %s

// CHECK-LABEL: func.func @reductions
func.func @reductions(%a: tensor<4x8xf32>, %i: tensor<4x8xi32>, %v: tensor<8xf32>) {
  // CHECK: tile.reduce(%{{.*}}, %{{.*}}) axis = 1 {
  // CHECK-NEXT: ^bb0(%[[X:.*]]: f32, %[[I:.*]]: i32, %[[Y:.*]]: f32, %[[J:.*]]: i32):
  %0:2 = tile.reduce(%a, %i) axis = 1 {
  ^bb0(%x: f32, %xi: i32, %y: f32, %yi: i32):
    %gt = arith.cmpf ogt, %x, %y : f32
    %m = arith.select %gt, %x, %y : f32
    %mi = arith.select %gt, %xi, %yi : i32
    // CHECK: tile.yield %{{.*}}, %{{.*}} : f32, i32
    tile.yield %m, %mi : f32, i32
  // CHECK: } : (tensor<4x8xf32>, tensor<4x8xi32>) -> (tensor<4xf32>, tensor<4xi32>)
  } : (tensor<4x8xf32>, tensor<4x8xi32>) -> (tensor<4xf32>, tensor<4xi32>)
  // CHECK: } : (tensor<8xf32>) -> f32
  %1 = tile.reduce(%v) axis = 0 {
  ^bb0(%x: f32, %y: f32):
    %s = arith.addf %x, %y : f32
    tile.yield %s : f32
  } : (tensor<8xf32>) -> f32
  // CHECK: tile.scan(%{{.*}}) axis = 0 reverse {
  %2 = tile.scan(%a) axis = 0 reverse {
  ^bb0(%x: f32, %y: f32):
    %s = arith.addf %x, %y : f32
    tile.yield %s : f32
  // CHECK: } : (tensor<4x8xf32>) -> tensor<4x8xf32>
  } : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// CHECK-LABEL: func.func @map
func.func @map(%a: tensor<8xf32>, %b: tensor<8xi32>) {
  // CHECK: tile.map_elementwise(%{{.*}}, %{{.*}}) pack = 2 {
  %0 = tile.map_elementwise(%a, %b) pack = 2 {
  ^bb0(%x0: f32, %x1: f32, %y0: i32, %y1: i32):
    // CHECK: tile.yield %{{.*}}, %{{.*}} : i32, i32
    tile.yield %y1, %y0 : i32, i32
  // CHECK: } : (tensor<8xf32>, tensor<8xi32>) -> tensor<8xi32>
  } : (tensor<8xf32>, tensor<8xi32>) -> tensor<8xi32>
  return
}

// CHECK-LABEL: func.func @histogram
func.func @histogram(%a: tensor<64xi32>, %m: tensor<64xi1>) {
  // CHECK: tile.histogram %{{.*}} mask = %{{.*}} : tensor<64xi1> : tensor<64xi32> -> tensor<16xi32>
  %0 = tile.histogram %a mask = %m : tensor<64xi1> : tensor<64xi32> -> tensor<16xi32>
  // CHECK: tile.histogram %{{.*}} : tensor<64xi32> -> tensor<8xi32>
  %1 = tile.histogram %a : tensor<64xi32> -> tensor<8xi32>
  return
}

// RUN: tilewright-opt %s --passes=canonicalize | filecheck %s

// CHECK-LABEL: func.func @splat_chain
// CHECK-NEXT: %[[S:.*]] = tile.splat %{{.*}} : f32 -> tensor<16x8xf32>
// CHECK-NEXT: return %[[S]]
func.func @splat_chain(%x: f32) -> tensor<16x8xf32> {
  %0 = tile.splat %x : f32 -> tensor<8xf32>
  %1 = tile.expand_dims %0 axis = 1 : tensor<8xf32> -> tensor<8x1xf32>
  %2 = tile.broadcast %1 : tensor<8x1xf32> -> tensor<8x16xf32>
  %3 = tile.trans %2 order = [1, 0] : tensor<8x16xf32> -> tensor<16x8xf32>
  %4 = tile.reshape %3 : tensor<16x8xf32> -> tensor<128xf32>
  %5 = tile.reshape %4 : tensor<128xf32> -> tensor<16x8xf32>
  return %5 : tensor<16x8xf32>
}

// CHECK-LABEL: func.func @constant_chain
// CHECK-NEXT: %[[C:.*]] = arith.constant dense<2.000000e+00> : tensor<8x2xf32>
// CHECK-NEXT: return %[[C]]
func.func @constant_chain() -> tensor<8x2xf32> {
  %c = arith.constant 2.0 : f32
  %0 = tile.splat %c : f32 -> tensor<8xf32>
  %1 = tile.join %0, %0 : tensor<8xf32> -> tensor<8x2xf32>
  return %1 : tensor<8x2xf32>
}

// CHECK-LABEL: func.func @unsplat
// CHECK-SAME: %[[X:.*]]: f32
// CHECK: %[[C:.*]] = arith.constant 7 : i32
// CHECK: return %[[X]], %[[C]]
func.func @unsplat(%x: f32) -> (f32, i32) {
  %0 = tile.splat %x : f32 -> tensor<1x1xf32>
  %1 = tile.unsplat %0 : tensor<1x1xf32>
  %c = arith.constant dense<7> : tensor<1xi32>
  %2 = tile.unsplat %c : tensor<1xi32>
  return %1, %2 : f32, i32
}

// CHECK-LABEL: func.func @identities
// CHECK-SAME: %[[A:.*]]: tensor<4x8xf32>
// CHECK-NEXT: return %[[A]], %[[A]], %[[A]], %[[A]], %[[A]]
func.func @identities(%a: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
  %0 = tile.broadcast %a : tensor<4x8xf32> -> tensor<4x8xf32>
  %1 = tile.reshape %a : tensor<4x8xf32> -> tensor<4x8xf32>
  %2 = tile.trans %a order = [0, 1] : tensor<4x8xf32> -> tensor<4x8xf32>
  %3 = tile.bitcast %a : tensor<4x8xf32> -> tensor<4x8xf32>
  %4 = tile.fp_to_fp %a : tensor<4x8xf32> -> tensor<4x8xf32>
  return %0, %1, %2, %3, %4 : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
}

// CHECK-LABEL: func.func @there_and_back
// CHECK-SAME: %[[A:.*]]: tensor<4x8xf16>
// CHECK-NEXT: return %[[A]], %[[A]], %[[A]], %[[A]]
func.func @there_and_back(%a: tensor<4x8xf16>) -> (tensor<4x8xf16>, tensor<4x8xf16>, tensor<4x8xf16>, tensor<4x8xf16>) {
  %0 = tile.trans %a order = [1, 0] : tensor<4x8xf16> -> tensor<8x4xf16>
  %1 = tile.trans %0 order = [1, 0] : tensor<8x4xf16> -> tensor<4x8xf16>
  %2 = tile.bitcast %a : tensor<4x8xf16> -> tensor<4x8xi16>
  %3 = tile.bitcast %2 : tensor<4x8xi16> -> tensor<4x8xf16>
  %4 = tile.fp_to_fp %a : tensor<4x8xf16> -> tensor<4x8xf32>
  %5 = tile.fp_to_fp %4 : tensor<4x8xf32> -> tensor<4x8xf16>
  %6 = tile.expand_dims %a axis = 0 : tensor<4x8xf16> -> tensor<1x4x8xf16>
  %7 = tile.reshape %6 : tensor<1x4x8xf16> -> tensor<4x8xf16>
  return %1, %3, %5, %7 : tensor<4x8xf16>, tensor<4x8xf16>, tensor<4x8xf16>, tensor<4x8xf16>
}

// Rounding to fewer bits and back is not the identity.
// CHECK-LABEL: func.func @rounding_stays
// CHECK-COUNT-2: tile.fp_to_fp
func.func @rounding_stays(%a: f32) -> f32 {
  %0 = tile.fp_to_fp %a : f32 -> f16
  %1 = tile.fp_to_fp %0 : f16 -> f32
  return %1 : f32
}

// Order that is free inside stays free.
// CHECK-LABEL: func.func @reorder_stays
// CHECK-COUNT-2: tile.reshape
func.func @reorder_stays(%a: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = tile.reshape %a reorder : tensor<4x8xf32> -> tensor<32xf32>
  %1 = tile.reshape %0 : tensor<32xf32> -> tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}

// CHECK-LABEL: func.func @transposes
// CHECK: tile.trans %{{.*}} order = [2, 1, 0] : tensor<2x4x8xf32> -> tensor<8x4x2xf32>
func.func @transposes(%a: tensor<2x4x8xf32>) -> tensor<8x4x2xf32> {
  %0 = tile.trans %a order = [2, 0, 1] : tensor<2x4x8xf32> -> tensor<8x2x4xf32>
  %1 = tile.trans %0 order = [0, 2, 1] : tensor<8x2x4xf32> -> tensor<8x4x2xf32>
  return %1 : tensor<8x4x2xf32>
}

// CHECK-LABEL: func.func @convert_constants
// CHECK-DAG: arith.constant dense<1.500000e+00> : tensor<4xf16>
// CHECK-DAG: arith.constant 1.000980e+00 : f16
// CHECK-DAG: arith.constant 1.001950e+00 : f16
// CHECK: tile.fp_to_fp %{{.*}} : f32 -> f8E5M2
func.func @convert_constants() -> (tensor<4xf16>, f16, f16, f8E5M2) {
  %t = arith.constant dense<1.5> : tensor<4xf32>
  %0 = tile.fp_to_fp %t : tensor<4xf32> -> tensor<4xf16>
  %c = arith.constant 1.0019 : f32
  %1 = tile.fp_to_fp %c rounding = rtz : f32 -> f16
  %2 = tile.fp_to_fp %c rounding = rtne : f32 -> f16
  %3 = tile.fp_to_fp %c : f32 -> f8E5M2
  return %0, %1, %2, %3 : tensor<4xf16>, f16, f16, f8E5M2
}

// CHECK-LABEL: func.func @pointers
// CHECK-SAME: %[[P:.*]]: tensor<4x!tile.ptr<f32>>, %[[I:.*]]: i64
// CHECK-NEXT: return %[[P]], %[[I]], %[[P]]
func.func @pointers(%p: tensor<4x!tile.ptr<f32>>, %i: i64) -> (tensor<4x!tile.ptr<f32>>, i64, tensor<4x!tile.ptr<f32>>) {
  %z = arith.constant dense<0> : tensor<4xi32>
  %0 = tile.addptr %p, %z : tensor<4x!tile.ptr<f32>>, tensor<4xi32>
  %1 = tile.int_to_ptr %i : i64 -> !tile.ptr<f32>
  %2 = tile.ptr_to_int %1 : !tile.ptr<f32>
  %3 = tile.ptr_to_int %p : tensor<4x!tile.ptr<f32>>
  %4 = tile.int_to_ptr %3 : tensor<4xi64> -> tensor<4x!tile.ptr<f32>>
  return %0, %2, %4 : tensor<4x!tile.ptr<f32>>, i64, tensor<4x!tile.ptr<f32>>
}

// CHECK-LABEL: func.func @join_split
// CHECK-SAME: %[[A:[a-z0-9]*]]: tensor<4xf32>, %[[B:[a-z0-9]*]]: tensor<4xf32>, %[[C:[a-z0-9]*]]: tensor<4x2xf32>
// CHECK-NEXT: return %[[B]], %[[C]]
func.func @join_split(%a: tensor<4xf32>, %b: tensor<4xf32>, %c: tensor<4x2xf32>) -> (tensor<4xf32>, tensor<4x2xf32>) {
  %0 = tile.join %a, %b : tensor<4xf32> -> tensor<4x2xf32>
  %1:2 = tile.split %0 : tensor<4x2xf32> -> tensor<4xf32>
  %2:2 = tile.split %c : tensor<4x2xf32> -> tensor<4xf32>
  %3 = tile.join %2#0, %2#1 : tensor<4xf32> -> tensor<4x2xf32>
  return %1#1, %3 : tensor<4xf32>, tensor<4x2xf32>
}

// CHECK-LABEL: func.func @masks_true
// CHECK: %[[V:.*]] = tile.load %[[P:.*]] : tensor<4x!tile.ptr<f32>>
// CHECK-NEXT: tile.store %[[P]], %[[V]] : tensor<4x!tile.ptr<f32>>
func.func @masks_true(%p: tensor<4x!tile.ptr<f32>>, %o: tensor<4xf32>) {
  %t = arith.constant dense<true> : tensor<4xi1>
  %0 = tile.load %p mask = %t other = %o : tensor<4x!tile.ptr<f32>>
  tile.store %p, %0 mask = %t : tensor<4x!tile.ptr<f32>>
  return
}

// CHECK-LABEL: func.func @masks_false
// CHECK-SAME: %[[O:[a-z0-9]*]]: tensor<4xf32>
// CHECK: %[[Z:.*]] = arith.constant dense<0.000000e+00> : tensor<4xf32>
// CHECK-NEXT: %[[V:.*]] = tile.load %{{.*}} volatile
// CHECK-NEXT: return %[[O]], %[[Z]], %[[V]]
func.func @masks_false(%o: tensor<4xf32>, %p: tensor<4x!tile.ptr<f32>>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %f = arith.constant dense<false> : tensor<4xi1>
  %0 = tile.load %p mask = %f other = %o : tensor<4x!tile.ptr<f32>>
  %1 = tile.load %p mask = %f : tensor<4x!tile.ptr<f32>>
  %2 = tile.load %p mask = %f volatile : tensor<4x!tile.ptr<f32>>
  tile.store %p, %0 mask = %f : tensor<4x!tile.ptr<f32>>
  return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @asserts
// CHECK-NEXT: return
func.func @asserts(%c: tensor<4xi1>) {
  %t = arith.constant true
  %f = arith.constant dense<false> : tensor<4xi1>
  tile.assert %t, "" : i1
  tile.assert %c mask = %f : tensor<4xi1>, "" : tensor<4xi1>
  tile.assume %t
  return
}

// CHECK-LABEL: func.func @reduce_one
// CHECK-DAG: tile.reshape %{{.*}} : tensor<4x1xf32> -> tensor<4xf32>
// CHECK-DAG: tile.unsplat %{{.*}} : tensor<1xf32>
// CHECK-NOT: tile.reduce
func.func @reduce_one(%a: tensor<4x1xf32>, %b: tensor<1xf32>) -> (tensor<4xf32>, f32) {
  %0 = tile.reduce(%a) axis = 1 {
  ^bb0(%x: f32, %y: f32):
    %s = arith.addf %x, %y : f32
    tile.yield %s : f32
  } : (tensor<4x1xf32>) -> tensor<4xf32>
  %1 = tile.reduce(%b) axis = 0 {
  ^bb0(%x: f32, %y: f32):
    %s = arith.addf %x, %y : f32
    tile.yield %s : f32
  } : (tensor<1xf32>) -> f32
  return %0, %1 : tensor<4xf32>, f32
}

// Dead reads and pure ops go, writes stay.
// CHECK-LABEL: func.func @dead
// CHECK-NEXT: tile.load %{{.*}} volatile
// CHECK-NEXT: tile.atomic_rmw
// CHECK-NEXT: tile.inline_asm "a"
// CHECK-NEXT: return
func.func @dead(%p: !tile.ptr<i32>, %i: i32) {
  %0 = tile.load %p : !tile.ptr<i32>
  %1 = tile.load %p volatile : !tile.ptr<i32>
  %2 = tile.atomic_rmw add relaxed gpu %p, %i : !tile.ptr<i32>
  %3 = tile.inline_asm "a", "=r"() : () -> i32
  %4 = tile.inline_asm "b", "=r"() pure : () -> i32
  %5 = tile.program_id 0
  return
}

// RUN: tilewright-opt %s --passes=tile-scalarize-pointers | filecheck %s

// The base advances; offsets are added to it, the contiguous ones first.
// CHECK-LABEL: func.func @rows
func.func @rows(%p: !tile.ptr<f32>, %stride: i32, %n: i32, %o: !tile.ptr<f32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %step = arith.constant dense<16> : tensor<8x16xi32>
  %zero = arith.constant dense<0.0> : tensor<8x16xf32>
  %r = tile.range 0 to 8 : tensor<8xi32>
  %r1 = tile.expand_dims %r axis = 1 : tensor<8xi32> -> tensor<8x1xi32>
  %s = tile.splat %stride : i32 -> tensor<8x1xi32>
  // CHECK: %[[ROWS:.*]] = arith.muli
  %rows = arith.muli %r1, %s : tensor<8x1xi32>
  %c = tile.range 0 to 16 : tensor<16xi32>
  %cols = tile.expand_dims %c axis = 0 : tensor<16xi32> -> tensor<1x16xi32>
  %ps = tile.splat %p : !tile.ptr<f32> -> tensor<8x1x!tile.ptr<f32>>
  %pr = tile.addptr %ps, %rows : tensor<8x1x!tile.ptr<f32>>, tensor<8x1xi32>
  %pb = tile.broadcast %pr : tensor<8x1x!tile.ptr<f32>> -> tensor<8x16x!tile.ptr<f32>>
  // CHECK: %[[COLS:.*]] = tile.broadcast %{{.*}} : tensor<1x16xi32> -> tensor<8x16xi32>
  %cb = tile.broadcast %cols : tensor<1x16xi32> -> tensor<8x16xi32>
  %start = tile.addptr %pb, %cb : tensor<8x16x!tile.ptr<f32>>, tensor<8x16xi32>
  // CHECK: %[[WIDE:.*]] = tile.broadcast %[[ROWS]] : tensor<8x1xi32> -> tensor<8x16xi32>
  // CHECK: scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[BASE:.*]] = %arg0) -> (tensor<8x16xf32>, !tile.ptr<f32>)
  %sum:2 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero, %q = %start) -> (tensor<8x16xf32>, tensor<8x16x!tile.ptr<f32>>) : i32 {
    // CHECK: %[[B:.*]] = tile.splat %[[BASE]]
    // CHECK: %[[BC:.*]] = tile.addptr %[[B]], %[[COLS]]
    // CHECK: %[[PTR:.*]] = tile.addptr %[[BC]], %[[WIDE]]
    // CHECK: tile.load %[[PTR]]
    %v = tile.load %q : tensor<8x16x!tile.ptr<f32>>
    %t = arith.addf %acc, %v : tensor<8x16xf32>
    %next = tile.addptr %q, %step : tensor<8x16x!tile.ptr<f32>>, tensor<8x16xi32>
    // CHECK: %[[NEXT:.*]] = tile.addptr %[[BASE]], %{{.*}} : !tile.ptr<f32>, i64
    // CHECK: scf.yield %{{.*}}, %[[NEXT]]
    scf.yield %t, %next : tensor<8x16xf32>, tensor<8x16x!tile.ptr<f32>>
  }
  tile.store %start, %sum#0 : tensor<8x16x!tile.ptr<f32>>
  return
}

// Pointers without a plain base: the distance from them is carried.
// CHECK-LABEL: func.func @distance
func.func @distance(%table: tensor<16x!tile.ptr<f32>>, %n: i32, %by: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %step = tile.splat %by : i32 -> tensor<16xi32>
  // CHECK: scf.for {{.*}} iter_args(%[[FAR:.*]] = %{{.*}}) -> (i64)
  %end = scf.for %i = %c0 to %n step %c1 iter_args(%q = %table) -> (tensor<16x!tile.ptr<f32>>) : i32 {
    // CHECK: %[[D:.*]] = tile.splat %[[FAR]] : i64 -> tensor<16xi64>
    // CHECK: tile.addptr %arg0, %[[D]]
    %v = tile.load %q : tensor<16x!tile.ptr<f32>>
    tile.store %q, %v : tensor<16x!tile.ptr<f32>>
    %next = tile.addptr %q, %step : tensor<16x!tile.ptr<f32>>, tensor<16xi32>
    scf.yield %next : tensor<16x!tile.ptr<f32>>
  }
  return
}

// Rows that advance by different amounts stay as they are.
// CHECK-LABEL: func.func @uneven
// CHECK: scf.for {{.*}} -> (tensor<16x!tile.ptr<f32>>)
func.func @uneven(%p: tensor<16x!tile.ptr<f32>>, %d: tensor<16xi32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %end = scf.for %i = %c0 to %n step %c1 iter_args(%q = %p) -> (tensor<16x!tile.ptr<f32>>) : i32 {
    %v = tile.load %q : tensor<16x!tile.ptr<f32>>
    tile.store %q, %v : tensor<16x!tile.ptr<f32>>
    %next = tile.addptr %q, %d : tensor<16x!tile.ptr<f32>>, tensor<16xi32>
    scf.yield %next : tensor<16x!tile.ptr<f32>>
  }
  return
}

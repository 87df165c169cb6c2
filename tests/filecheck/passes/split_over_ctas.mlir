// RUN: tilewright-opt %s --passes=tile-split-over-ctas{num_ctas=4} | filecheck %s

// A row is split; each CTA combines its part, then the four partial sums.
// CHECK-LABEL: func.func public @row
func.func public @row(%p: !tile.ptr<f32>, %out: !tile.ptr<f32>) {
  // CHECK: %[[RANK:.*]] = tile.cluster_rank
  // CHECK: %[[PART:.*]] = arith.andi %[[RANK]], %{{.*}}
  // CHECK: %[[START:.*]] = arith.muli %[[PART]], %c256
  // CHECK: tile.range 0 to 256 : tensor<256xi32>
  // CHECK: %[[AT:.*]] = tile.splat %[[START]] : i32 -> tensor<256xi32>
  // CHECK: arith.addi %{{.*}}, %[[AT]] : tensor<256xi32>
  %i = tile.range 0 to 1024 : tensor<1024xi32>
  %s = tile.splat %p : !tile.ptr<f32> -> tensor<1024x!tile.ptr<f32>>
  %a = tile.addptr %s, %i : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
  %x = tile.load %a : tensor<1024x!tile.ptr<f32>>
  // CHECK: %[[MINE:.*]] = tile.reduce(%{{.*}}) axis = 0
  // CHECK: %[[ONE:.*]] = tile.splat %[[MINE]] : f32 -> tensor<1xf32>
  // CHECK: %[[ALL:.*]] = tile.exchange %[[ONE]] of [4] from [1, 2] to [0, 0] : tensor<1xf32> -> tensor<4xf32>
  // CHECK: %[[SUM:.*]] = tile.reduce(%[[ALL]]) axis = 0
  %sum = tile.reduce(%x) axis = 0 {
  ^bb0(%l: f32, %r: f32):
    %t = arith.addf %l, %r : f32
    tile.yield %t : f32
  } : (tensor<1024xf32>) -> f32
  // CHECK: tile.store %{{.*}}, %[[SUM]] : !tile.ptr<f32>
  tile.store %out, %sum : !tile.ptr<f32>
  return
}

// Rows and columns of the result are split, operands as they are needed; nothing is exchanged.
// CHECK-LABEL: func.func public @dot
// CHECK-NOT: tile.exchange
// CHECK: tile.dot {{.*}} : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>
func.func public @dot(%a: !tile.ptr<f16>, %b: !tile.ptr<f16>, %c: !tile.ptr<f32>) {
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %ap = tile.splat %a : !tile.ptr<f16> -> tensor<128x32x!tile.ptr<f16>>
  %bp = tile.splat %b : !tile.ptr<f16> -> tensor<32x128x!tile.ptr<f16>>
  %cp = tile.splat %c : !tile.ptr<f32> -> tensor<128x128x!tile.ptr<f32>>
  %x = tile.load %ap : tensor<128x32x!tile.ptr<f16>>
  %y = tile.load %bp : tensor<32x128x!tile.ptr<f16>>
  %d = tile.dot %x, %y, %zero precision = tf32 : tensor<128x32xf16>, tensor<32x128xf16> -> tensor<128x128xf32>
  tile.store %cp, %d : tensor<128x128x!tile.ptr<f32>>
  return
}

// What is smaller than the cluster is held in copies, of which one is stored.
// CHECK-LABEL: func.func public @copies
// CHECK: %[[FIRST:.*]] = arith.cmpi eq
// CHECK: %[[MASK:.*]] = tile.splat %[[FIRST]] : i1 -> tensor<1xi1>
// CHECK: tile.store %{{.*}}, %{{.*}} mask = %[[MASK]] : tensor<1x!tile.ptr<i32>>
func.func public @copies(%p: !tile.ptr<i32>) {
  %i = tile.range 0 to 2 : tensor<2xi32>
  %s = tile.splat %p : !tile.ptr<i32> -> tensor<2x!tile.ptr<i32>>
  %a = tile.addptr %s, %i : tensor<2x!tile.ptr<i32>>, tensor<2xi32>
  tile.store %a, %i : tensor<2x!tile.ptr<i32>>
  return
}

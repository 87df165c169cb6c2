// RUN: tilewright-opt %s --pass-pipeline='builtin.module(tilegpu-assign-layouts{target=cuda:90 num_warps=4},tilegpu-lower-dots,tilegpu-late-sums)' | filecheck %s

// The denominator of attention: each lane sums its own columns, four lanes of a row meet behind the loop.
// CHECK-LABEL: func.func public @denominator
// CHECK: scf.for {{.*}} iter_args({{.*}}) -> (tensor<64x64xf32, {{.*}}>, tensor<64x4xf32, {{.*}}>)
// CHECK: %[[P:.*]] = math.exp2
// CHECK: tile.broadcast {{.*}} -> tensor<64x4xf32
// CHECK: %[[KEPT:.*]] = arith.mulf
// CHECK-NOT: tilegpu.convert_layout {{.*}}64x4
// CHECK: return
// The sum is of another kind: it starts at one, or is used in the loop.
// CHECK-LABEL: func.func public @from_one
// CHECK-NOT: tensor<64x4x
// CHECK-LABEL: func.func public @used
// CHECK-NOT: tensor<64x4x
func.func public @denominator(%a: tensor<64x64xf16>, %b: tensor<64x64xf16>, %p: !tile.ptr<f32>, %n: i32, %f: f32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zeros = arith.constant dense<0.0> : tensor<64x64xf32>
  %none = arith.constant dense<0.0> : tensor<64xf32>
  %factor = tile.splat %f : f32 -> tensor<64xf32>
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zeros, %l = %none) -> (tensor<64x64xf32>, tensor<64xf32>) : i32 {
    %s = tile.dot %a, %b, %acc precision = tf32 : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %e = math.exp2 %s : tensor<64x64xf32>
    %sum = tile.reduce(%e) axis = 1 {
    ^bb0(%x: f32, %y: f32):
      %z = arith.addf %x, %y : f32
      tile.yield %z : f32
    } : (tensor<64x64xf32>) -> tensor<64xf32>
    %kept = arith.mulf %l, %factor : tensor<64xf32>
    %next = arith.addf %kept, %sum : tensor<64xf32>
    scf.yield %s, %next : tensor<64x64xf32>, tensor<64xf32>
  }
  %range = tile.range 0 to 64 : tensor<64xi32>
  %ps = tile.splat %p : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
  %at = tile.addptr %ps, %range : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
  tile.store %at, %r#1 : tensor<64x!tile.ptr<f32>>
  return
}

func.func public @from_one(%a: tensor<64x64xf16>, %b: tensor<64x64xf16>, %p: !tile.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zeros = arith.constant dense<0.0> : tensor<64x64xf32>
  %ones = arith.constant dense<1.0> : tensor<64xf32>
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zeros, %l = %ones) -> (tensor<64x64xf32>, tensor<64xf32>) : i32 {
    %s = tile.dot %a, %b, %acc precision = tf32 : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %sum = tile.reduce(%s) axis = 1 {
    ^bb0(%x: f32, %y: f32):
      %z = arith.addf %x, %y : f32
      tile.yield %z : f32
    } : (tensor<64x64xf32>) -> tensor<64xf32>
    %next = arith.addf %l, %sum : tensor<64xf32>
    scf.yield %s, %next : tensor<64x64xf32>, tensor<64xf32>
  }
  %range = tile.range 0 to 64 : tensor<64xi32>
  %ps = tile.splat %p : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
  %at = tile.addptr %ps, %range : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
  tile.store %at, %r#1 : tensor<64x!tile.ptr<f32>>
  return
}

func.func public @used(%a: tensor<64x64xf16>, %b: tensor<64x64xf16>, %p: !tile.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zeros = arith.constant dense<0.0> : tensor<64x64xf32>
  %none = arith.constant dense<0.0> : tensor<64xf32>
  %range = tile.range 0 to 64 : tensor<64xi32>
  %ps = tile.splat %p : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
  %at = tile.addptr %ps, %range : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zeros, %l = %none) -> (tensor<64x64xf32>, tensor<64xf32>) : i32 {
    %s = tile.dot %a, %b, %acc precision = tf32 : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %sum = tile.reduce(%s) axis = 1 {
    ^bb0(%x: f32, %y: f32):
      %z = arith.addf %x, %y : f32
      tile.yield %z : f32
    } : (tensor<64x64xf32>) -> tensor<64xf32>
    %next = arith.addf %l, %sum : tensor<64xf32>
    tile.store %at, %next : tensor<64x!tile.ptr<f32>>
    scf.yield %s, %next : tensor<64x64xf32>, tensor<64xf32>
  }
  return
}

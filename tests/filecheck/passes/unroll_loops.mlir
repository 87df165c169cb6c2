// RUN: tilewright-opt %s --passes=tile-unroll-loops,canonicalize | filecheck %s

// Groups of two iterations, then what is left.
// CHECK-LABEL: func.func @sum
func.func @sum(%n: i32, %x: f32) -> f32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  // CHECK: %[[SUM:.*]] = scf.for {{.*}} step %c2_i32
  // CHECK-COUNT-2: arith.addf
  // CHECK-NOT: arith.addf
  // CHECK: scf.for {{.*}} step %c1_i32 iter_args(%{{.*}} = %[[SUM]])
  // CHECK: arith.addf
  // CHECK: tile.num_stages = 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %x) -> (f32) : i32 {
    %t = arith.addf %s, %x : f32
    scf.yield %t : f32
  } {tile.loop_unroll_factor = 2 : i32}
  return %r : f32
}

// RUN: tilewright-opt %s --passes=tile-hoist-loads | filecheck %s

// What all programs load is loaded once, in front of the loop over them; what depends on the program, or may have been written by it, is not.
// CHECK-LABEL: func.func @rows
// CHECK: %[[W:.*]] = tile.load
// CHECK: scf.for
// CHECK: %[[X:.*]] = tile.load
// CHECK: tile.store %{{.*}}, %[[X]]
// CHECK: %[[BACK:.*]] = tile.load
// CHECK: arith.addf %[[BACK]], %[[W]]
// CHECK: tile.store
// CHECK: } {tile.programs}
func.func @rows(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>, %w: !tile.ptr<f32>, %end: i32) {
  %first = tile.program_id 0
  %step = tile.num_programs 0
  %range = tile.range 0 to 128 : tensor<128xi32>
  %ps = tile.splat %w : !tile.ptr<f32> -> tensor<128x!tile.ptr<f32>>
  %pw = tile.addptr %ps, %range : tensor<128x!tile.ptr<f32>>, tensor<128xi32>
  %ys = tile.splat %y : !tile.ptr<f32> -> tensor<128x!tile.ptr<f32>>
  %py = tile.addptr %ys, %range : tensor<128x!tile.ptr<f32>>, tensor<128xi32>
  %xs = tile.splat %x : !tile.ptr<f32> -> tensor<128x!tile.ptr<f32>>
  scf.for %i = %first to %end step %step : i32 {
    %at = tile.splat %i : i32 -> tensor<128xi32>
    %px = tile.addptr %xs, %at : tensor<128x!tile.ptr<f32>>, tensor<128xi32>
    %v = tile.load %px : tensor<128x!tile.ptr<f32>>
    tile.store %py, %v : tensor<128x!tile.ptr<f32>>
    %b = tile.load %py : tensor<128x!tile.ptr<f32>>
    %weights = tile.load %pw : tensor<128x!tile.ptr<f32>>
    %sum = arith.addf %b, %weights : tensor<128xf32>
    tile.store %px, %sum : tensor<128x!tile.ptr<f32>>
  } {tile.programs}
  return
}

// What is written behind a load may be the same memory: programs run in any order.
// CHECK-LABEL: func.func @in_place
// CHECK: tile.load
// CHECK: scf.for
// CHECK-NOT: tile.load
func.func @in_place(%w: !tile.ptr<f32>, %end: i32) {
  %first = tile.program_id 0
  %step = tile.num_programs 0
  scf.for %i = %first to %end step %step : i32 {
    %v = tile.load %w : !tile.ptr<f32>
    %p = tile.addptr %w, %i : !tile.ptr<f32>, i32
    tile.store %p, %v : !tile.ptr<f32>
  } {tile.programs}
  return
}

// A volatile load, or a loop that is the user's, keeps all loads in their places.
// CHECK-LABEL: func.func @ordered
// CHECK-NOT: tile.load
// CHECK: scf.for
// CHECK: tile.load
// CHECK: scf.for
// CHECK: tile.load
func.func @ordered(%w: !tile.ptr<f32>, %f: !tile.ptr<i32>, %end: i32) {
  %first = tile.program_id 0
  %step = tile.num_programs 0
  scf.for %i = %first to %end step %step : i32 {
    %flag = tile.load %f {is_volatile} : !tile.ptr<i32>
    %v = tile.load %w : !tile.ptr<f32>
    %p = tile.addptr %w, %flag : !tile.ptr<f32>, i32
    tile.store %p, %v : !tile.ptr<f32>
  } {tile.programs}
  scf.for %i = %first to %end step %step : i32 {
    %v = tile.load %w : !tile.ptr<f32>
    %p = tile.addptr %w, %i : !tile.ptr<f32>, i32
    tile.store %p, %v : !tile.ptr<f32>
  }
  return
}

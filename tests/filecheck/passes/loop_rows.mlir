// RUN: tilewright-opt %s --passes='tile-loop-programs{target=cuda:90 num_warps=16},loop-invariant-code-motion,tile-hoist-loads' | filecheck %s
// RUN: tilewright-opt %s --passes='tile-loop-programs{target=cuda:90 num_warps=8}' | filecheck %s --check-prefix=EIGHT
// RUN: tilewright-opt %s --passes='tile-loop-programs{target=cuda:80 num_warps=16}' | filecheck %s --check-prefix=SM80

// Rows of which 16 warps hold 32 elements a thread: two programs would fit on a multiprocessor. So the weights are loaded once, and a loop
// over programs loads rows. The programs may come from a queue, whose counter is the last argument.
// CHECK-LABEL: func.func @norm
// CHECK-SAME: %arg5: i32 {tile.alike, tile.grid = 2 : i32}, %arg6: !tile.ptr<i32> {tile.queue}
// CHECK-DAG: %[[FIRST:.*]] = tile.program_id 0
// CHECK-DAG: %[[CTAS:.*]] = tile.num_programs 0
// CHECK: %[[W:.*]] = tile.load {{.*}} : tensor<16384x!tile.ptr<f32>>
// CHECK: scf.for %{{.*}} = %[[FIRST]] to %{{.*}} step %[[CTAS]]
// CHECK: tile.load {{.*}} : tensor<16384x!tile.ptr<bf16>>
// CHECK: tile.reduce
// CHECK: arith.mulf %{{.*}}, %[[W]]
// CHECK: tile.store
// CHECK: } {tile.programs, tile.queue}
// EIGHT-LABEL: func.func @norm
// EIGHT: tile.programs
// SM80-NOT: tile.programs
func.func @norm(%x: !tile.ptr<bf16>, %w: !tile.ptr<f32>, %n: i32) {
  %id = tile.program_id 0
  %range = tile.range 0 to 16384 : tensor<16384xi32>
  %row = arith.muli %id, %n : i32
  %px = tile.addptr %x, %row : !tile.ptr<bf16>, i32
  %xs = tile.splat %px : !tile.ptr<bf16> -> tensor<16384x!tile.ptr<bf16>>
  %xp = tile.addptr %xs, %range : tensor<16384x!tile.ptr<bf16>>, tensor<16384xi32>
  %h = tile.load %xp : tensor<16384x!tile.ptr<bf16>>
  %v = tile.fp_to_fp %h : tensor<16384xbf16> -> tensor<16384xf32>
  %sum = tile.reduce(%v) axis = 0 {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.yield %c : f32
  } : (tensor<16384xf32>) -> f32
  %all = tile.splat %sum : f32 -> tensor<16384xf32>
  %ws = tile.splat %w : !tile.ptr<f32> -> tensor<16384x!tile.ptr<f32>>
  %wp = tile.addptr %ws, %range : tensor<16384x!tile.ptr<f32>>, tensor<16384xi32>
  %weights = tile.load %wp : tensor<16384x!tile.ptr<f32>>
  %y = arith.mulf %v, %weights : tensor<16384xf32>
  %z = arith.divf %y, %all : tensor<16384xf32>
  %o = tile.fp_to_fp %z : tensor<16384xf32> -> tensor<16384xbf16>
  tile.store %xp, %o : tensor<16384x!tile.ptr<bf16>>
  return
}

// Half as long, with eight warps four programs fit: some load while others reduce.
// EIGHT-LABEL: func.func @shorter
// EIGHT-NOT: tile.programs
func.func @shorter(%x: !tile.ptr<bf16>, %w: !tile.ptr<f32>, %n: i32) {
  %id = tile.program_id 0
  %range = tile.range 0 to 8192 : tensor<8192xi32>
  %row = arith.muli %id, %n : i32
  %px = tile.addptr %x, %row : !tile.ptr<bf16>, i32
  %xs = tile.splat %px : !tile.ptr<bf16> -> tensor<8192x!tile.ptr<bf16>>
  %xp = tile.addptr %xs, %range : tensor<8192x!tile.ptr<bf16>>, tensor<8192xi32>
  %h = tile.load %xp : tensor<8192x!tile.ptr<bf16>>
  %v = tile.fp_to_fp %h : tensor<8192xbf16> -> tensor<8192xf32>
  %sum = tile.reduce(%v) axis = 0 {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.yield %c : f32
  } : (tensor<8192xf32>) -> f32
  %all = tile.splat %sum : f32 -> tensor<8192xf32>
  %ws = tile.splat %w : !tile.ptr<f32> -> tensor<8192x!tile.ptr<f32>>
  %wp = tile.addptr %ws, %range : tensor<8192x!tile.ptr<f32>>, tensor<8192xi32>
  %weights = tile.load %wp : tensor<8192x!tile.ptr<f32>>
  %y = arith.mulf %v, %weights : tensor<8192xf32>
  %z = arith.divf %y, %all : tensor<8192xf32>
  %o = tile.fp_to_fp %z : tensor<8192xf32> -> tensor<8192xbf16>
  tile.store %xp, %o : tensor<8192x!tile.ptr<bf16>>
  return
}

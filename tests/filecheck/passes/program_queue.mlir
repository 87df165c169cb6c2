// RUN: tilewright-opt %s --passes=tilegpu-pipeline | filecheck %s

#l = #tilegpu.linear<register = [[1], [2], [512], [1024]], lane = [[4], [8], [16], [32], [64]], warp = [[128], [256]], block = []>
module attributes {tilegpu.num_ctas = 1 : i32, tilegpu.num_warps = 4 : i32, tilegpu.target = "cuda:90", tilegpu.threads_per_warp = 32 : i32} {
  // Rows are copied one program ahead, so the numbers of two programs are known, and the third is asked for an iteration before it is: it
  // goes to all threads through a cell of shared memory between two reductions.
  // CHECK-LABEL: func.func @rows
  // CHECK-DAG: %[[CELL:.*]] = tilegpu.local_alloc : !tilegpu.buffer<128xi32
  // CHECK-DAG: %[[COUNTER:.*]] = tile.ptr_to_int %arg3
  // CHECK-DAG: %[[HAS:.*]] = arith.cmpi ne, %[[COUNTER]]
  // CHECK-DAG: %[[LAST:.*]] = arith.subi %arg2, %{{.*}} : i32
  // CHECK: scf.while (%[[A:[^ ]*]] = %{{[^ ]*}}, %[[B:[^ ]*]] = %{{[^ ]*}}, %[[TURN:[^ ]*]] = %{{[^ ]*}}, %[[ASKED:[^ ]*]] =
  // CHECK: %[[MORE:.*]] = arith.cmpi slt, %[[A]], %arg2
  // CHECK: scf.condition(%[[MORE]])
  // CHECK: ^bb0(%[[A:[^:]*]]: i32, %[[B:[^:]*]]: i32, %[[TURN:[^:]*]]: i32, %[[ASKED:[^:]*]]: tensor<128xi32, #{{[^)]*}}
  // CHECK: tilegpu.async_wait num = 0
  // CHECK: tilegpu.local_load
  // CHECK: %[[ASKING:.*]] = tile.inline_asm "{{.*}}atom.relaxed.gpu.global.inc.u32{{.*}}"
  // CHECK: arith.cmpi slt, %[[B]], %arg2
  // CHECK: arith.muli %[[B]], %arg4
  // CHECK: tilegpu.async_copy
  // CHECK: arith.muli %[[A]], %arg4
  // CHECK: tile.reduce
  // CHECK: %[[COUNTED:.*]] = arith.addi %{{.*}}, %[[ASKED]]
  // CHECK: %[[PLAIN:.*]] = tile.splat %[[TURN]]
  // CHECK: %[[NEXT:.*]] = arith.select %{{.*}}, %[[COUNTED]], %[[PLAIN]]
  // CHECK: tilegpu.local_store %[[NEXT]], %[[CELL]]
  // CHECK: tile.store
  // CHECK: %[[READ:.*]] = tilegpu.local_load
  // CHECK: %[[PROGRAM:.*]] = tile.unsplat %[[READ]]
  // CHECK: scf.yield %[[B]], %[[PROGRAM]], %{{.*}}, %[[ASKING]]
  func.func @rows(%x: !tile.ptr<f32>, %ctas: i32, %programs: i32, %counter: !tile.ptr<i32> {tile.queue}, %n: i32) {
    %id = tile.program_id 0
    %range = tile.range 0 to 2048 : tensor<2048xi32, #l>
    scf.for %i = %id to %programs step %ctas : i32 {
      %row = arith.muli %i, %n : i32
      %start = tile.addptr %x, %row : !tile.ptr<f32>, i32
      %starts = tile.splat %start : !tile.ptr<f32> -> tensor<2048x!tile.ptr<f32>, #l>
      %p = tile.addptr %starts, %range : tensor<2048x!tile.ptr<f32>, #l>, tensor<2048xi32, #l>
      %v = tile.load %p {tilegpu.vector = 4 : i32} : tensor<2048x!tile.ptr<f32>, #l>
      %sum = tile.reduce(%v) axis = 0 {
      ^bb0(%a: f32, %b: f32):
        %c = arith.addf %a, %b : f32
        tile.yield %c : f32
      } : (tensor<2048xf32, #l>) -> f32
      %all = tile.splat %sum : f32 -> tensor<2048xf32, #l>
      %y = arith.divf %v, %all : tensor<2048xf32, #l>
      tile.store %p, %y {tilegpu.vector = 4 : i32} : tensor<2048x!tile.ptr<f32>, #l>
    } {tile.num_stages = 2 : i32, tile.programs, tile.queue}
    return
  }

  // Without a reduction the threads do not meet, and the CTA takes its turns.
  // CHECK-LABEL: func.func @no_meeting
  // CHECK-NOT: scf.while
  // CHECK: scf.for
  func.func @no_meeting(%x: !tile.ptr<f32>, %ctas: i32, %programs: i32, %counter: !tile.ptr<i32> {tile.queue}, %n: i32) {
    %id = tile.program_id 0
    %range = tile.range 0 to 2048 : tensor<2048xi32, #l>
    scf.for %i = %id to %programs step %ctas : i32 {
      %row = arith.muli %i, %n : i32
      %start = tile.addptr %x, %row : !tile.ptr<f32>, i32
      %starts = tile.splat %start : !tile.ptr<f32> -> tensor<2048x!tile.ptr<f32>, #l>
      %p = tile.addptr %starts, %range : tensor<2048x!tile.ptr<f32>, #l>, tensor<2048xi32, #l>
      %v = tile.load %p {tilegpu.vector = 4 : i32} : tensor<2048x!tile.ptr<f32>, #l>
      tile.store %p, %v {tilegpu.vector = 4 : i32} : tensor<2048x!tile.ptr<f32>, #l>
    } {tile.num_stages = 2 : i32, tile.programs, tile.queue}
    return
  }
}

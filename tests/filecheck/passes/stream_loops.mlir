// RUN: tilewright-opt %s --passes=tilegpu-pipeline | filecheck %s
// RUN: tilewright-opt %s --passes=tilegpu-pipeline{num_stages=1} | filecheck %s --check-prefix=OFF

#l = #tilegpu.linear<register = [[1], [2], [512], [1024]], lane = [[4], [8], [16], [32], [64]], warp = [[128], [256]], block = []>
module attributes {tilegpu.num_ctas = 1 : i32, tilegpu.num_warps = 4 : i32, tilegpu.target = "cuda:90", tilegpu.threads_per_warp = 32 : i32} {
  // A loop that reads memory has 48 KB on their way: six iterations of 8 KB, since four CTAs should fit. Each warp copies for itself.
  // CHECK-LABEL: func.func @reads
  // CHECK: tilegpu.local_alloc : !tilegpu.buffer<2048xf32, #{{.*}}, slots = 7>
  // CHECK-COUNT-6: tilegpu.async_commit
  // CHECK: scf.for
  // CHECK: tilegpu.async_wait num = 5
  // CHECK: tilegpu.local_load {{.*}}tilegpu.each_warp
  // CHECK: tilegpu.async_copy {{.*}}tilegpu.each_warp
  // OFF-LABEL: func.func @reads
  // OFF-NOT: tilegpu.async_copy
  func.func @reads(%x: !tile.ptr<f32>, %end: i32) -> tensor<2048xf32, #l> {
    %c0 = arith.constant 0 : i32
    %c2048 = arith.constant 2048 : i32
    %zero = arith.constant dense<0.0> : tensor<2048xf32, #l>
    %range = tile.range 0 to 2048 : tensor<2048xi32, #l>
    %p = tile.splat %x : !tile.ptr<f32> -> tensor<2048x!tile.ptr<f32>, #l>
    %r = scf.for %i = %c0 to %end step %c2048 iter_args(%sum = %zero) -> (tensor<2048xf32, #l>) : i32 {
      %start = tile.splat %i : i32 -> tensor<2048xi32, #l>
      %at = arith.addi %start, %range : tensor<2048xi32, #l>
      %q = tile.addptr %p, %at : tensor<2048x!tile.ptr<f32>, #l>, tensor<2048xi32, #l>
      %v = tile.load %q {tilegpu.vector = 4 : i32} : tensor<2048x!tile.ptr<f32>, #l>
      %new = arith.addf %sum, %v : tensor<2048xf32, #l>
      scf.yield %new : tensor<2048xf32, #l>
    }
    return %r : tensor<2048xf32, #l>
  }

  // Two arguments may be the same memory, so a loop that writes stays; unless its iterations are programs, which run in any order.
  // CHECK-LABEL: func.func @writes
  // CHECK: scf.for
  // CHECK-NEXT: tile.splat
  // CHECK-NOT: tilegpu.async_copy
  // CHECK: tile.store
  // CHECK: slots = 7
  // CHECK: scf.for
  // CHECK: tilegpu.local_load
  func.func @writes(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>, %end: i32) {
    %c0 = arith.constant 0 : i32
    %c2048 = arith.constant 2048 : i32
    %range = tile.range 0 to 2048 : tensor<2048xi32, #l>
    %p = tile.splat %x : !tile.ptr<f32> -> tensor<2048x!tile.ptr<f32>, #l>
    %o = tile.splat %y : !tile.ptr<f32> -> tensor<2048x!tile.ptr<f32>, #l>
    scf.for %i = %c0 to %end step %c2048 : i32 {
      %start = tile.splat %i : i32 -> tensor<2048xi32, #l>
      %at = arith.addi %start, %range : tensor<2048xi32, #l>
      %q = tile.addptr %p, %at : tensor<2048x!tile.ptr<f32>, #l>, tensor<2048xi32, #l>
      %v = tile.load %q {tilegpu.vector = 4 : i32} : tensor<2048x!tile.ptr<f32>, #l>
      %to = tile.addptr %o, %at : tensor<2048x!tile.ptr<f32>, #l>, tensor<2048xi32, #l>
      tile.store %to, %v : tensor<2048x!tile.ptr<f32>, #l>
    }
    scf.for %i = %c0 to %end step %c2048 : i32 {
      %start = tile.splat %i : i32 -> tensor<2048xi32, #l>
      %at = arith.addi %start, %range : tensor<2048xi32, #l>
      %q = tile.addptr %p, %at : tensor<2048x!tile.ptr<f32>, #l>, tensor<2048xi32, #l>
      %v = tile.load %q {tilegpu.vector = 4 : i32} : tensor<2048x!tile.ptr<f32>, #l>
      %to = tile.addptr %o, %at : tensor<2048x!tile.ptr<f32>, #l>, tensor<2048xi32, #l>
      tile.store %to, %v : tensor<2048x!tile.ptr<f32>, #l>
    } {tile.programs}
    return
  }
}

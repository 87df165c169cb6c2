// RUN: tilewright-opt %s --passes=tilegpu-prefetch-loads,canonicalize,cse | filecheck %s

#l = #tilegpu.linear<register = [], lane = [[1], [2], [4], [8], [16]], warp = [[32], [64]], block = []>
module attributes {tilegpu.num_ctas = 1 : i32, tilegpu.num_warps = 4 : i32, tilegpu.target = "cuda:90", tilegpu.threads_per_warp = 32 : i32} {
  // The first block is loaded in front of the loop, the next one in front of the body, both masked off where there is none.
  // CHECK-LABEL: func.func @streams
  // CHECK: %[[ANY:.*]] = arith.cmpi sgt, %{{.*}}, %c0_i32
  // CHECK: %[[FIRST:.*]] = tile.load
  // CHECK: scf.for %[[I:.*]] = %{{.*}} iter_args(%[[SUM:.*]] = %{{.*}}, %[[NOW:.*]] = %[[FIRST]])
  // CHECK: %[[LEFT:.*]] = arith.subi %{{.*}}, %[[I]]
  // CHECK: arith.cmpi sgt, %[[LEFT]], %c128_i32
  // CHECK: %[[NEXT:.*]] = tile.load
  // CHECK: %[[NEW:.*]] = arith.addf %[[SUM]], %[[NOW]]
  // CHECK: scf.yield %[[NEW]], %[[NEXT]]
  func.func @streams(%x: !tile.ptr<f32>, %end: i32) -> tensor<128xf32, #l> {
    %c0 = arith.constant 0 : i32
    %c128 = arith.constant 128 : i32
    %zero = arith.constant dense<0.0> : tensor<128xf32, #l>
    %range = tile.range 0 to 128 : tensor<128xi32, #l>
    %p = tile.splat %x : !tile.ptr<f32> -> tensor<128x!tile.ptr<f32>, #l>
    %r = scf.for %i = %c0 to %end step %c128 iter_args(%sum = %zero) -> (tensor<128xf32, #l>) : i32 {
      %start = tile.splat %i : i32 -> tensor<128xi32, #l>
      %at = arith.addi %start, %range : tensor<128xi32, #l>
      %q = tile.addptr %p, %at : tensor<128x!tile.ptr<f32>, #l>, tensor<128xi32, #l>
      %v = tile.load %q : tensor<128x!tile.ptr<f32>, #l>
      %new = arith.addf %sum, %v : tensor<128xf32, #l>
      scf.yield %new : tensor<128xf32, #l>
    }
    return %r : tensor<128xf32, #l>
  }

  // What the loop writes is loaded in its turn.
  // CHECK-LABEL: func.func @writes
  // CHECK-NOT: tile.load
  // CHECK: scf.for
  // CHECK: tile.load
  // CHECK-NOT: tile.load
  func.func @writes(%x: !tile.ptr<f32>, %end: i32) {
    %c0 = arith.constant 0 : i32
    %c64 = arith.constant 64 : i32
    %range = tile.range 0 to 128 : tensor<128xi32, #l>
    %shift = arith.constant dense<64> : tensor<128xi32, #l>
    %p = tile.splat %x : !tile.ptr<f32> -> tensor<128x!tile.ptr<f32>, #l>
    scf.for %i = %c0 to %end step %c64 : i32 {
      %start = tile.splat %i : i32 -> tensor<128xi32, #l>
      %at = arith.addi %start, %range : tensor<128xi32, #l>
      %q = tile.addptr %p, %at : tensor<128x!tile.ptr<f32>, #l>, tensor<128xi32, #l>
      %v = tile.load %q : tensor<128x!tile.ptr<f32>, #l>
      %to = tile.addptr %q, %shift : tensor<128x!tile.ptr<f32>, #l>, tensor<128xi32, #l>
      tile.store %to, %v : tensor<128x!tile.ptr<f32>, #l>
    }
    return
  }

  // Two arguments may be the same memory: a loop that stores is left alone,
  // CHECK-LABEL: func.func @copies
  // CHECK-NOT: tile.load
  // CHECK: scf.for
  // CHECK: tile.load
  // unless it asks for stages.
  // CHECK: tile.load
  // CHECK: scf.for
  // CHECK: tile.load
  func.func @copies(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>, %end: i32) {
    %c0 = arith.constant 0 : i32
    %c128 = arith.constant 128 : i32
    %range = tile.range 0 to 128 : tensor<128xi32, #l>
    %p = tile.splat %x : !tile.ptr<f32> -> tensor<128x!tile.ptr<f32>, #l>
    %o = tile.splat %y : !tile.ptr<f32> -> tensor<128x!tile.ptr<f32>, #l>
    scf.for %i = %c0 to %end step %c128 : i32 {
      %start = tile.splat %i : i32 -> tensor<128xi32, #l>
      %at = arith.addi %start, %range : tensor<128xi32, #l>
      %q = tile.addptr %p, %at : tensor<128x!tile.ptr<f32>, #l>, tensor<128xi32, #l>
      %v = tile.load %q : tensor<128x!tile.ptr<f32>, #l>
      %to = tile.addptr %o, %at : tensor<128x!tile.ptr<f32>, #l>, tensor<128xi32, #l>
      tile.store %to, %v : tensor<128x!tile.ptr<f32>, #l>
    }
    scf.for %i = %c0 to %end step %c128 : i32 {
      %start = tile.splat %i : i32 -> tensor<128xi32, #l>
      %at = arith.addi %start, %range : tensor<128xi32, #l>
      %q = tile.addptr %p, %at : tensor<128x!tile.ptr<f32>, #l>, tensor<128xi32, #l>
      %v = tile.load %q : tensor<128x!tile.ptr<f32>, #l>
      %to = tile.addptr %o, %at : tensor<128x!tile.ptr<f32>, #l>, tensor<128xi32, #l>
      tile.store %to, %v : tensor<128x!tile.ptr<f32>, #l>
    } {tile.num_stages = 2 : i32}
    return
  }

  // Programs run in any order, so the next one's block is loaded before this one's is stored, in place too.
  // CHECK-LABEL: func.func @programs
  // CHECK: %[[FIRST:.*]] = tile.load
  // CHECK: scf.for {{.*}} iter_args(%[[NOW:.*]] = %[[FIRST]])
  // CHECK: %[[NEXT:.*]] = tile.load
  // CHECK: tile.store %{{.*}}, %[[NOW]]
  // CHECK: scf.yield %[[NEXT]]
  // What a program has stored before it loads stays in front of that.
  // CHECK: scf.for
  // CHECK: tile.store
  // CHECK: tile.load
  func.func @programs(%x: !tile.ptr<f32>, %end: i32) {
    %c0 = arith.constant 0 : i32
    %c128 = arith.constant 128 : i32
    %zero = arith.constant dense<0.0> : tensor<128xf32, #l>
    %range = tile.range 0 to 128 : tensor<128xi32, #l>
    %p = tile.splat %x : !tile.ptr<f32> -> tensor<128x!tile.ptr<f32>, #l>
    scf.for %i = %c0 to %end step %c128 : i32 {
      %start = tile.splat %i : i32 -> tensor<128xi32, #l>
      %at = arith.addi %start, %range : tensor<128xi32, #l>
      %q = tile.addptr %p, %at : tensor<128x!tile.ptr<f32>, #l>, tensor<128xi32, #l>
      %v = tile.load %q : tensor<128x!tile.ptr<f32>, #l>
      tile.store %q, %v : tensor<128x!tile.ptr<f32>, #l>
    } {tile.programs}
    scf.for %i = %c0 to %end step %c128 : i32 {
      %start = tile.splat %i : i32 -> tensor<128xi32, #l>
      %at = arith.addi %start, %range : tensor<128xi32, #l>
      %q = tile.addptr %p, %at : tensor<128x!tile.ptr<f32>, #l>, tensor<128xi32, #l>
      tile.store %q, %zero : tensor<128x!tile.ptr<f32>, #l>
      %v = tile.load %q : tensor<128x!tile.ptr<f32>, #l>
      %new = arith.addf %v, %v : tensor<128xf32, #l>
      tile.store %q, %new : tensor<128x!tile.ptr<f32>, #l>
    } {tile.programs}
    return
  }
}

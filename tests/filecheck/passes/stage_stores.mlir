// RUN: tilewright-opt %s --split-input-file --pass-pipeline='builtin.module(tilegpu-stage-stores{shared_limit=60000},tilegpu-allocate-shared,tilegpu-insert-barriers)' | filecheck %s

// 128x256 elements of eight warps, 16 rows each, take 64 KB: four pieces of 64 columns take turns in two slots, and each warp waits for itself
// only. The descriptor becomes that of a piece, and the host is told of boxes of 16 rows.
#acc = #tilegpu.linear<register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32], [0, 64], [0, 128]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0], [64, 0]], block = []>
#tile = #tilegpu.shared<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0], [64, 0], [0, 64], [0, 128]]>
module attributes {tilegpu.num_ctas = 1 : i32, tilegpu.num_warps = 8 : i32, tilegpu.target = "cuda:90", tilegpu.threads_per_warp = 32 : i32} {
  // CHECK-LABEL: func.func @pieces
  // CHECK-SAME: !tile.desc<128x64xbf16, #[[PIECE:.*]]> {tile.descriptor = {{.*}}rows = 16 : i32
  func.func @pieces(%d: !tile.desc<128x256xbf16, #tile> {tile.descriptor = {base = "a0", stores}}, %v: tensor<128x256xbf16, #acc>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    // CHECK: scf.for
    scf.for %i = %c0 to %n step %c1 : i32 {
      // CHECK-COUNT-3: tile.split
      // CHECK: %[[RING:.*]] = tilegpu.local_alloc : !tilegpu.buffer<128x64xbf16, #[[PIECE]], slots = 2>
      // CHECK: %[[FIRST:.*]] = tilegpu.slot %[[RING]]
      // CHECK-NEXT: tilegpu.tma_store_wait num = 1 read
      // CHECK-NEXT: tilegpu.barrier {tilegpu.each_warp}
      // CHECK-NEXT: tilegpu.local_store %{{.*}}, %[[FIRST]] {tilegpu.each_warp = 16 : i32}
      // CHECK-NEXT: tilegpu.fence_async
      // CHECK: tilegpu.barrier {tilegpu.each_warp}
      // CHECK-NEXT: tilegpu.tma_store %{{.*}}, %[[FIRST]] {tilegpu.each_warp = 16 : i32}
      // CHECK-COUNT-3: tilegpu.tma_store_wait num = 1 read
      // CHECK-NOT: tilegpu.tma_store_wait num = 1
      tile.descriptor_store %d[%i, %c0], %v : !tile.desc<128x256xbf16, #tile>, tensor<128x256xbf16, #acc>
    }
    // CHECK: tilegpu.tma_store_wait num = 0 read
    // CHECK-NEXT: return
    return
  }
}

// -----

// Each warp holds 16 rows. Outside of a loop the store is waited for at once.
#blocked = #tilegpu.linear<register = [[0, 1], [0, 2], [0, 4], [4, 0], [8, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[16, 0], [32, 0], [64, 0]], block = []>
#tile = #tilegpu.shared<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0], [64, 0]]>
module attributes {tilegpu.num_ctas = 1 : i32, tilegpu.num_warps = 8 : i32, tilegpu.target = "cuda:90", tilegpu.threads_per_warp = 32 : i32} {
  // CHECK-LABEL: func.func @whole
  // CHECK-SAME: rows = 16 : i32
  // CHECK: tilegpu.local_store %{{.*}} {tilegpu.each_warp = 16 : i32}
  // CHECK: tilegpu.barrier {tilegpu.each_warp}
  // CHECK-NEXT: tilegpu.tma_store
  // CHECK-NEXT: tilegpu.tma_store_wait num = 0 read
  func.func @whole(%d: !tile.desc<128x64xbf16, #tile> {tile.descriptor = {base = "a0", stores}}, %v: tensor<128x64xbf16, #blocked>) {
    %c0 = arith.constant 0 : i32
    tile.descriptor_store %d[%c0, %c0], %v : !tile.desc<128x64xbf16, #tile>, tensor<128x64xbf16, #blocked>
    return
  }
}

// -----

// Four warps hold the rows of the left half and four those of the right one: each stores its part. Lanes of odd rows write other columns
// than those of even rows, so that they do not meet in the banks.
#acc = #tilegpu.linear<register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0], [0, 64]], block = []>
#tile = #tilegpu.shared<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 4], [2, 8], [4, 16], [8, 0], [16, 0], [32, 0], [0, 32], [0, 64]]>
module attributes {tilegpu.num_ctas = 1 : i32, tilegpu.num_warps = 8 : i32, tilegpu.target = "cuda:90", tilegpu.threads_per_warp = 32 : i32} {
  // CHECK: #[[SPREAD:.*]] = #tilegpu.linear<register = {{\[\[}}0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = {{\[\[}}0, 2], [0, 20], [1, 0], [2, 0], [4, 0]],
  // CHECK-LABEL: func.func @halves
  // CHECK-SAME: rows = 16 : i32
  // CHECK: %[[V:.*]] = tilegpu.convert_layout %{{.*}} -> tensor<64x128xf32, #[[SPREAD]]>
  // CHECK-NEXT: tilegpu.local_store %[[V]], %{{.*}} {tilegpu.each_warp = 16 : i32}
  // CHECK: tilegpu.barrier {tilegpu.each_warp}
  // CHECK-NEXT: tilegpu.tma_reduce fadd
  func.func @halves(%d: !tile.desc<64x128xf32, #tile> {tile.descriptor = {base = "a0", stores}}, %v: tensor<64x128xf32, #acc>) {
    %c0 = arith.constant 0 : i32
    tile.descriptor_reduce fadd %d[%c0, %c0], %v : !tile.desc<64x128xf32, #tile>, tensor<64x128xf32, #acc>
    return
  }
}

// -----

// Rows of which two warps hold a half each: the store is one of all warps.
#cols = #tilegpu.linear<register = [[0, 1], [0, 2], [0, 4], [32, 0], [64, 0]], lane = [[0, 8], [0, 16], [1, 0], [2, 0], [4, 0]], warp = [[8, 0], [16, 0], [0, 32]], block = []>
#tile = #tilegpu.shared<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0], [64, 0]]>
module attributes {tilegpu.num_ctas = 1 : i32, tilegpu.num_warps = 8 : i32, tilegpu.target = "cuda:90", tilegpu.threads_per_warp = 32 : i32} {
  // CHECK-LABEL: func.func @together
  // CHECK-NOT: each_warp
  // CHECK: tilegpu.barrier
  // CHECK-NEXT: tilegpu.tma_store
  func.func @together(%d: !tile.desc<128x64xbf16, #tile> {tile.descriptor = {base = "a0", stores}}, %v: tensor<128x64xbf16, #cols>) {
    %c0 = arith.constant 0 : i32
    tile.descriptor_store %d[%c0, %c0], %v : !tile.desc<128x64xbf16, #tile>, tensor<128x64xbf16, #cols>
    return
  }
}

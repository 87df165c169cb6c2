// RUN: tilewright-opt %s --split-input-file --passes=tilegpu-insert-barriers | filecheck %s

#l = #tilegpu.linear<register = [[1], [2]], lane = [[4], [8], [16], [32], [64]], warp = [[128], [256]], block = []>
#m = #tilegpu.linear<register = [[128], [256]], lane = [[1], [2], [4], [8], [16]], warp = [[32], [64]], block = []>
#s = #tilegpu.shared<offset = [[1], [2], [4], [8], [16], [32], [64], [128], [256]]>

module attributes {tilegpu.num_ctas = 1 : i32, tilegpu.num_warps = 4 : i32, tilegpu.target = "cuda:90", tilegpu.threads_per_warp = 32 : i32} {
  // Read after write, write after read; none where nothing else came between a barrier and the access.
  // CHECK-LABEL: func.func @straight
  // CHECK: tilegpu.local_alloc
  // CHECK-NEXT: tilegpu.barrier
  // CHECK-NEXT: tilegpu.local_load
  // CHECK-NEXT: tilegpu.local_load
  // CHECK-NEXT: tilegpu.barrier
  // CHECK-NEXT: tilegpu.local_store
  // CHECK-NEXT: tile.barrier
  // CHECK-NEXT: tilegpu.local_load
  // CHECK-NEXT: return
  func.func @straight(%x: tensor<512xf32, #l>) {
    %0 = tilegpu.local_alloc %x : tensor<512xf32, #l> -> !tilegpu.buffer<512xf32, #s> {tilegpu.offset = 0 : i32}
    %1 = tilegpu.local_load %0 : !tilegpu.buffer<512xf32, #s> -> tensor<512xf32, #m>
    %2 = tilegpu.local_load %0 : !tilegpu.buffer<512xf32, #s> -> tensor<512xf32, #l>
    tilegpu.local_store %x, %0 : tensor<512xf32, #l>, !tilegpu.buffer<512xf32, #s>
    tile.barrier
    %3 = tilegpu.local_load %0 : !tilegpu.buffer<512xf32, #s> -> tensor<512xf32, #m>
    return
  }
}

// -----

#l = #tilegpu.linear<register = [[1], [2]], lane = [[4], [8], [16], [32], [64]], warp = [[128], [256]], block = []>
#m = #tilegpu.linear<register = [[128], [256]], lane = [[1], [2], [4], [8], [16]], warp = [[32], [64]], block = []>
#s = #tilegpu.shared<offset = [[1], [2], [4], [8], [16], [32], [64], [128], [256]]>

module attributes {tilegpu.num_ctas = 1 : i32, tilegpu.num_warps = 4 : i32, tilegpu.target = "cuda:90", tilegpu.threads_per_warp = 32 : i32} {
  // Bytes count, not buffers: the second buffer lies elsewhere, the third takes the place of the first.
  // CHECK-LABEL: func.func @overlap
  // CHECK: tilegpu.local_alloc {{.*}} {tilegpu.offset = 0 : i32}
  // CHECK-NEXT: tilegpu.local_alloc {{.*}} {tilegpu.offset = 2048 : i32}
  // CHECK-NEXT: tilegpu.barrier
  // CHECK-NEXT: tilegpu.local_load
  // CHECK-NEXT: tilegpu.local_load
  // CHECK-NEXT: tilegpu.barrier
  // CHECK-NEXT: tilegpu.local_alloc {{.*}} {tilegpu.offset = 1024 : i32}
  // CHECK-NEXT: return
  func.func @overlap(%x: tensor<512xf32, #l>) {
    %0 = tilegpu.local_alloc %x : tensor<512xf32, #l> -> !tilegpu.buffer<512xf32, #s> {tilegpu.offset = 0 : i32}
    %1 = tilegpu.local_alloc %x : tensor<512xf32, #l> -> !tilegpu.buffer<512xf32, #s> {tilegpu.offset = 2048 : i32}
    %2 = tilegpu.local_load %0 : !tilegpu.buffer<512xf32, #s> -> tensor<512xf32, #m>
    %3 = tilegpu.local_load %1 : !tilegpu.buffer<512xf32, #s> -> tensor<512xf32, #m>
    %4 = tilegpu.local_alloc %x : tensor<512xf32, #l> -> !tilegpu.buffer<512xf32, #s> {tilegpu.offset = 1024 : i32}
    return
  }
}

// -----

#l = #tilegpu.linear<register = [[1], [2]], lane = [[4], [8], [16], [32], [64]], warp = [[128], [256]], block = []>
#s = #tilegpu.shared<offset = [[1], [2], [4], [8], [16], [32], [64], [128], [256]]>

module attributes {tilegpu.num_ctas = 1 : i32, tilegpu.num_warps = 4 : i32, tilegpu.target = "cuda:90", tilegpu.threads_per_warp = 32 : i32} {
  // Slots with constant indices are apart, others may be the same.
  // CHECK-LABEL: func.func @slots
  // CHECK-COUNT-2: tilegpu.local_store
  // CHECK-NOT: tilegpu.barrier
  // CHECK: return
  // CHECK-LABEL: func.func @dynamic_slots
  // CHECK: tilegpu.local_store
  // CHECK-NEXT: tilegpu.barrier
  // CHECK-NEXT: tilegpu.local_store
  func.func @slots(%x: tensor<512xf32, #l>) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %0 = tilegpu.local_alloc : !tilegpu.buffer<512xf32, #s, slots = 2> {tilegpu.offset = 0 : i32}
    %1 = tilegpu.slot %0[%c0] : !tilegpu.buffer<512xf32, #s, slots = 2>
    %2 = tilegpu.slot %0[%c1] : !tilegpu.buffer<512xf32, #s, slots = 2>
    tilegpu.local_store %x, %1 : tensor<512xf32, #l>, !tilegpu.buffer<512xf32, #s>
    tilegpu.local_store %x, %2 : tensor<512xf32, #l>, !tilegpu.buffer<512xf32, #s>
    return
  }
  func.func @dynamic_slots(%x: tensor<512xf32, #l>, %i: i32, %j: i32) {
    %0 = tilegpu.local_alloc : !tilegpu.buffer<512xf32, #s, slots = 2> {tilegpu.offset = 0 : i32}
    %1 = tilegpu.slot %0[%i] : !tilegpu.buffer<512xf32, #s, slots = 2>
    %2 = tilegpu.slot %0[%j] : !tilegpu.buffer<512xf32, #s, slots = 2>
    tilegpu.local_store %x, %1 : tensor<512xf32, #l>, !tilegpu.buffer<512xf32, #s>
    tilegpu.local_store %x, %2 : tensor<512xf32, #l>, !tilegpu.buffer<512xf32, #s>
    return
  }
}

// -----

#l = #tilegpu.linear<register = [[1], [2]], lane = [[4], [8], [16], [32], [64]], warp = [[128], [256]], block = []>
#m = #tilegpu.linear<register = [[128], [256]], lane = [[1], [2], [4], [8], [16]], warp = [[32], [64]], block = []>
#s = #tilegpu.shared<offset = [[1], [2], [4], [8], [16], [32], [64], [128], [256]]>

module attributes {tilegpu.num_ctas = 1 : i32, tilegpu.num_warps = 4 : i32, tilegpu.target = "cuda:90", tilegpu.threads_per_warp = 32 : i32} {
  // A copy's data is there for everyone after a wait and a barrier.
  // CHECK-LABEL: func.func @copy
  // CHECK: tilegpu.async_copy
  // CHECK-NOT: tilegpu.barrier
  // CHECK: tilegpu.async_wait
  // CHECK-NEXT: tilegpu.barrier
  // CHECK-NEXT: tilegpu.local_load
  // CHECK-NEXT: tilegpu.barrier
  // CHECK-NEXT: tilegpu.async_copy
  func.func @copy(%p: tensor<512x!tile.ptr<f32>, #l>) {
    %0 = tilegpu.local_alloc : !tilegpu.buffer<512xf32, #s> {tilegpu.offset = 0 : i32}
    %t = tilegpu.async_copy %p, %0 : tensor<512x!tile.ptr<f32>, #l>, !tilegpu.buffer<512xf32, #s>
    %w = tilegpu.async_wait num = 0
    %1 = tilegpu.local_load %0 : !tilegpu.buffer<512xf32, #s> -> tensor<512xf32, #m>
    %u = tilegpu.async_copy %p, %0 : tensor<512x!tile.ptr<f32>, #l>, !tilegpu.buffer<512xf32, #s>
    return
  }
}

// -----

#l = #tilegpu.linear<register = [[1], [2]], lane = [[4], [8], [16], [32], [64]], warp = [[128], [256]], block = []>
#m = #tilegpu.linear<register = [[128], [256]], lane = [[1], [2], [4], [8], [16]], warp = [[32], [64]], block = []>
#s = #tilegpu.shared<offset = [[1], [2], [4], [8], [16], [32], [64], [128], [256]]>

module attributes {tilegpu.num_ctas = 1 : i32, tilegpu.num_warps = 4 : i32, tilegpu.target = "cuda:90", tilegpu.threads_per_warp = 32 : i32} {
  // Across iterations: the store at the end meets the load at the start, and the load the store.
  // CHECK-LABEL: func.func @back_edge
  // CHECK: tilegpu.local_alloc
  // CHECK: scf.for
  // CHECK-NEXT: tilegpu.barrier
  // CHECK-NEXT: tilegpu.local_load
  // CHECK-NEXT: tilegpu.barrier
  // CHECK-NEXT: tilegpu.local_store
  // CHECK-NEXT: }
  func.func @back_edge(%x: tensor<512xf32, #l>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %0 = tilegpu.local_alloc : !tilegpu.buffer<512xf32, #s> {tilegpu.offset = 0 : i32}
    scf.for %i = %c0 to %n step %c1 : i32 {
      %1 = tilegpu.local_load %0 : !tilegpu.buffer<512xf32, #s> -> tensor<512xf32, #m>
      tilegpu.local_store %x, %0 : tensor<512xf32, #l>, !tilegpu.buffer<512xf32, #s>
    }
    return
  }
}

// -----

#l = #tilegpu.linear<register = [[1], [2]], lane = [[4], [8], [16], [32], [64]], warp = [[128], [256]], block = []>
#m = #tilegpu.linear<register = [[128], [256]], lane = [[1], [2], [4], [8], [16]], warp = [[32], [64]], block = []>
#s = #tilegpu.shared<offset = [[1], [2], [4], [8], [16], [32], [64], [128], [256]]>

module attributes {tilegpu.num_ctas = 1 : i32, tilegpu.num_warps = 4 : i32, tilegpu.target = "cuda:90", tilegpu.threads_per_warp = 32 : i32} {
  // What only the code before a loop calls for goes in front of it; nesting changes nothing.
  // CHECK-LABEL: func.func @hoisted
  // CHECK: tilegpu.local_alloc
  // CHECK-NEXT: tilegpu.barrier
  // CHECK-NEXT: scf.for
  // CHECK-NEXT: scf.for
  // CHECK-NEXT: tilegpu.local_load
  // CHECK-NOT: tilegpu.barrier
  // CHECK: return
  func.func @hoisted(%x: tensor<512xf32, #l>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %0 = tilegpu.local_alloc %x : tensor<512xf32, #l> -> !tilegpu.buffer<512xf32, #s> {tilegpu.offset = 0 : i32}
    scf.for %i = %c0 to %n step %c1 : i32 {
      scf.for %j = %c0 to %n step %c1 : i32 {
        %1 = tilegpu.local_load %0 : !tilegpu.buffer<512xf32, #s> -> tensor<512xf32, #m>
      }
    }
    return
  }
}

// -----

#l = #tilegpu.linear<register = [[1], [2]], lane = [[4], [8], [16], [32], [64]], warp = [[128], [256]], block = []>
#m = #tilegpu.linear<register = [[128], [256]], lane = [[1], [2], [4], [8], [16]], warp = [[32], [64]], block = []>
#s = #tilegpu.shared<offset = [[1], [2], [4], [8], [16], [32], [64], [128], [256]]>

module attributes {tilegpu.num_ctas = 1 : i32, tilegpu.num_warps = 4 : i32, tilegpu.target = "cuda:90", tilegpu.threads_per_warp = 32 : i32} {
  // A copy that is in flight when an iteration ends is ended by the wait of the next.
  // CHECK-LABEL: func.func @ring
  // CHECK: scf.for
  // CHECK-NEXT: tilegpu.async_wait
  // CHECK-NEXT: tilegpu.barrier
  // CHECK-NEXT: tilegpu.local_load
  // CHECK-NEXT: tilegpu.barrier
  // CHECK-NEXT: tilegpu.async_copy
  // CHECK-NOT: tilegpu.barrier
  // CHECK: return
  func.func @ring(%p: tensor<512x!tile.ptr<f32>, #l>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %0 = tilegpu.local_alloc : !tilegpu.buffer<512xf32, #s> {tilegpu.offset = 0 : i32}
    %t = tilegpu.async_copy %p, %0 : tensor<512x!tile.ptr<f32>, #l>, !tilegpu.buffer<512xf32, #s>
    scf.for %i = %c0 to %n step %c1 : i32 {
      %w = tilegpu.async_wait num = 0
      %1 = tilegpu.local_load %0 : !tilegpu.buffer<512xf32, #s> -> tensor<512xf32, #m>
      %u = tilegpu.async_copy %p, %0 : tensor<512x!tile.ptr<f32>, #l>, !tilegpu.buffer<512xf32, #s>
    }
    return
  }
}

// -----

#l = #tilegpu.linear<register = [[1], [2]], lane = [[4], [8], [16], [32], [64]], warp = [[128], [256]], block = []>
#m = #tilegpu.linear<register = [[128], [256]], lane = [[1], [2], [4], [8], [16]], warp = [[32], [64]], block = []>
#s = #tilegpu.shared<offset = [[1], [2], [4], [8], [16], [32], [64], [128], [256]]>

module attributes {tilegpu.num_ctas = 1 : i32, tilegpu.num_warps = 4 : i32, tilegpu.target = "cuda:90", tilegpu.threads_per_warp = 32 : i32} {
  // After an if, what either branch did counts.
  // CHECK-LABEL: func.func @branches
  // CHECK: scf.if
  // CHECK-NEXT: tilegpu.local_store
  // CHECK-NEXT: }
  // CHECK-NEXT: tilegpu.barrier
  // CHECK-NEXT: tilegpu.local_load
  func.func @branches(%x: tensor<512xf32, #l>, %c: i1) {
    %0 = tilegpu.local_alloc : !tilegpu.buffer<512xf32, #s> {tilegpu.offset = 0 : i32}
    scf.if %c {
      tilegpu.local_store %x, %0 : tensor<512xf32, #l>, !tilegpu.buffer<512xf32, #s>
    }
    %1 = tilegpu.local_load %0 : !tilegpu.buffer<512xf32, #s> -> tensor<512xf32, #m>
    return
  }
}

// -----

#l = #tilegpu.linear<register = [[1], [2]], lane = [[4], [8], [16], [32], [64]], warp = [[128], [256]], block = []>
#m = #tilegpu.linear<register = [[128], [256]], lane = [[1], [2], [4], [8], [16]], warp = [[32], [64]], block = []>
#s = #tilegpu.shared<offset = [[1], [2], [4], [8], [16], [32], [64], [128], [256]]>

module attributes {tilegpu.num_ctas = 1 : i32, tilegpu.num_warps = 4 : i32, tilegpu.target = "cuda:90", tilegpu.threads_per_warp = 32 : i32} {
  // In a while the condition's region runs once more than the body's.
  // CHECK-LABEL: func.func @while
  // CHECK: scf.while
  // CHECK: tilegpu.barrier
  // CHECK-NEXT: tilegpu.local_load
  // CHECK: scf.condition
  // CHECK: do {
  // CHECK: tilegpu.barrier
  // CHECK-NEXT: tilegpu.local_store
  // CHECK: scf.yield
  // CHECK: }
  // CHECK: tilegpu.barrier
  // CHECK-NEXT: tilegpu.local_store
  func.func @while(%x: tensor<512xf32, #l>, %n: i32) {
    %0 = tilegpu.local_alloc : !tilegpu.buffer<512xf32, #s> {tilegpu.offset = 0 : i32}
    %r = scf.while (%i = %n) : (i32) -> i32 {
      %1 = tilegpu.local_load %0 : !tilegpu.buffer<512xf32, #s> -> tensor<512xf32, #m>
      %c = arith.cmpi sgt, %i, %n : i32
      scf.condition(%c) %i : i32
    } do {
    ^bb0(%i: i32):
      tilegpu.local_store %x, %0 : tensor<512xf32, #l>, !tilegpu.buffer<512xf32, #s>
      scf.yield %i : i32
    }
    tilegpu.local_store %x, %0 : tensor<512xf32, #l>, !tilegpu.buffer<512xf32, #s>
    return
  }
}

// -----

#a = #tilegpu.linear<register = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0]], lane = [], warp = [], block = []>
#c = #tilegpu.linear<register = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0]], lane = [], warp = [], block = []>
#b = #tilegpu.linear<register = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0]], lane = [], warp = [], block = []>
#sb = #tilegpu.shared<offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0]]>

module attributes {tilegpu.num_ctas = 1 : i32, tilegpu.num_warps = 4 : i32, tilegpu.target = "cuda:90", tilegpu.threads_per_warp = 32 : i32} {
  // The products' reads end at their wait.
  // CHECK-LABEL: func.func @products
  // CHECK: tilegpu.local_alloc
  // CHECK: tilegpu.barrier
  // CHECK-NEXT: tilegpu.wgmma
  // CHECK-NEXT: tile.barrier
  // CHECK-NEXT: tilegpu.wgmma_wait
  // CHECK-NEXT: tilegpu.barrier
  // CHECK-NEXT: tilegpu.local_store
  func.func @products(%a: tensor<64x16xf16, #a>, %b: tensor<16x8xf16, #b>, %c: tensor<64x8xf32, #c>) {
    %0 = tilegpu.local_alloc %b : tensor<16x8xf16, #b> -> !tilegpu.buffer<16x8xf16, #sb> {tilegpu.offset = 0 : i32}
    %1 = tilegpu.wgmma %a, %0, %c instr = [64, 8, 16] precision = tf32 : tensor<64x16xf16, #a>, !tilegpu.buffer<16x8xf16, #sb> -> tensor<64x8xf32, #c>
    tile.barrier
    %2 = tilegpu.wgmma_wait num = 0 (%1 : tensor<64x8xf32, #c>)
    tilegpu.local_store %b, %0 : tensor<16x8xf16, #b>, !tilegpu.buffer<16x8xf16, #sb>
    return
  }
}

// -----

#a = #tilegpu.linear<register = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0]], lane = [], warp = [], block = []>
#c = #tilegpu.linear<register = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0]], lane = [], warp = [], block = []>
#b = #tilegpu.linear<register = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0]], lane = [], warp = [], block = []>
#sb = #tilegpu.shared<offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0]]>

module attributes {tilegpu.num_ctas = 1 : i32, tilegpu.num_warps = 4 : i32, tilegpu.target = "cuda:90", tilegpu.threads_per_warp = 32 : i32} {
  // Products end in order: a wait that leaves one in flight ends the reads of those before it, but not its own.
  // CHECK-LABEL: func.func @one_product_in_flight
  // CHECK: tilegpu.wgmma_wait num = 1
  // CHECK-NEXT: tile.barrier
  // CHECK-NEXT: tilegpu.wgmma_wait num = 1
  // CHECK-NEXT: tilegpu.local_store
  // CHECK-NEXT: tilegpu.wgmma_wait num = 0
  // CHECK-NEXT: tilegpu.barrier
  // CHECK-NEXT: tilegpu.local_store
  func.func @one_product_in_flight(%a: tensor<64x16xf16, #a>, %b: tensor<16x8xf16, #b>, %c: tensor<64x8xf32, #c>) {
    %0 = tilegpu.local_alloc %b : tensor<16x8xf16, #b> -> !tilegpu.buffer<16x8xf16, #sb> {tilegpu.offset = 0 : i32}
    %1 = tilegpu.local_alloc %b : tensor<16x8xf16, #b> -> !tilegpu.buffer<16x8xf16, #sb> {tilegpu.offset = 256 : i32}
    %2 = tilegpu.wgmma %a, %0, %c instr = [64, 8, 16] precision = tf32 : tensor<64x16xf16, #a>, !tilegpu.buffer<16x8xf16, #sb> -> tensor<64x8xf32, #c>
    %3 = tilegpu.wgmma %a, %1, %c instr = [64, 8, 16] precision = tf32 : tensor<64x16xf16, #a>, !tilegpu.buffer<16x8xf16, #sb> -> tensor<64x8xf32, #c>
    %4 = tilegpu.wgmma_wait num = 1 (%2 : tensor<64x8xf32, #c>)
    tile.barrier
    tilegpu.wgmma_wait num = 1
    tilegpu.local_store %b, %0 : tensor<16x8xf16, #b>, !tilegpu.buffer<16x8xf16, #sb>
    %5 = tilegpu.wgmma_wait num = 0 (%3 : tensor<64x8xf32, #c>)
    tilegpu.local_store %b, %1 : tensor<16x8xf16, #b>, !tilegpu.buffer<16x8xf16, #sb>
    return
  }
}

// -----

#m = #tilegpu.linear<register = [[128], [256]], lane = [[1], [2], [4], [8], [16]], warp = [[32], [64]], block = []>
#s = #tilegpu.shared<offset = [[1], [2], [4], [8], [16], [32], [64], [128], [256]]>
#word = #tilegpu.shared<offset = [], rank = 1>

module attributes {tilegpu.num_ctas = 1 : i32, tilegpu.num_warps = 4 : i32, tilegpu.target = "cuda:90", tilegpu.threads_per_warp = 32 : i32} {
  // TMA: the data arrives through the mbarrier, which needs a barrier after its init; reads before the copy need one too.
  // CHECK-LABEL: func.func @tma
  // CHECK: tilegpu.mbarrier_init
  // CHECK-NEXT: tilegpu.barrier
  // CHECK-NEXT: tilegpu.mbarrier_expect
  // CHECK-NEXT: tilegpu.tma_load
  // CHECK-NEXT: tilegpu.mbarrier_wait
  // CHECK-NEXT: tilegpu.local_load
  // CHECK-NEXT: tilegpu.barrier
  // CHECK-NEXT: tilegpu.tma_load
  func.func @tma(%d: !tile.desc<512xf32>, %i: i32) {
    %0 = tilegpu.local_alloc : !tilegpu.buffer<512xf32, #s> {tilegpu.offset = 0 : i32}
    %m = tilegpu.local_alloc : !tilegpu.buffer<1xi64, #word> {tilegpu.offset = 2048 : i32}
    tilegpu.mbarrier_init %m count = 1 : !tilegpu.buffer<1xi64, #word>
    tilegpu.mbarrier_expect %m bytes = 2048 : !tilegpu.buffer<1xi64, #word>
    tilegpu.tma_load %d[%i], %0, %m : !tile.desc<512xf32>, !tilegpu.buffer<512xf32, #s>, !tilegpu.buffer<1xi64, #word>
    tilegpu.mbarrier_wait %m, %i : !tilegpu.buffer<1xi64, #word>
    %1 = tilegpu.local_load %0 : !tilegpu.buffer<512xf32, #s> -> tensor<512xf32, #m>
    tilegpu.tma_load %d[%i], %0, %m : !tile.desc<512xf32>, !tilegpu.buffer<512xf32, #s>, !tilegpu.buffer<1xi64, #word>
    return
  }
}

// -----

#l = #tilegpu.linear<register = [[1], [2]], lane = [[4], [8], [16], [32], [64]], warp = [[128], [256]], block = []>
#s = #tilegpu.shared<offset = [[1], [2], [4], [8], [16], [32], [64], [128], [256]]>

module attributes {tilegpu.num_ctas = 1 : i32, tilegpu.num_warps = 4 : i32, tilegpu.target = "cuda:90", tilegpu.threads_per_warp = 32 : i32} {
  // A TMA store reads what all threads wrote, and until its wait.
  // CHECK-LABEL: func.func @tma_store
  // CHECK: tilegpu.local_alloc
  // CHECK-NEXT: tilegpu.fence_async
  // CHECK-NEXT: tilegpu.barrier
  // CHECK-NEXT: tilegpu.tma_store
  // CHECK-NEXT: tilegpu.tma_store_wait
  // CHECK-NEXT: tilegpu.barrier
  // CHECK-NEXT: tilegpu.local_store
  func.func @tma_store(%d: !tile.desc<512xf32>, %i: i32, %x: tensor<512xf32, #l>) {
    %0 = tilegpu.local_alloc %x : tensor<512xf32, #l> -> !tilegpu.buffer<512xf32, #s> {tilegpu.offset = 0 : i32}
    tilegpu.fence_async
    tilegpu.tma_store %d[%i], %0 : !tile.desc<512xf32>, !tilegpu.buffer<512xf32, #s>
    tilegpu.tma_store_wait num = 0 read
    tilegpu.local_store %x, %0 : tensor<512xf32, #l>, !tilegpu.buffer<512xf32, #s>
    return
  }
}

// -----

#l = #tilegpu.linear<register = [[1], [2]], lane = [[4], [8], [16], [32], [64]], warp = [[128], [256]], block = []>
#m = #tilegpu.linear<register = [[128], [256]], lane = [[1], [2], [4], [8], [16]], warp = [[32], [64]], block = []>
#s = #tilegpu.shared<offset = [[1], [2], [4], [8], [16], [32], [64], [128], [256]]>

module attributes {tilegpu.num_ctas = 1 : i32, tilegpu.num_warps = 4 : i32, tilegpu.target = "cuda:90", tilegpu.threads_per_warp = 32 : i32} {
  // Only a named barrier of all 128 threads orders everything.
  // CHECK-LABEL: func.func @named
  // CHECK: tilegpu.named_barrier_sync id = 1 threads = 128
  // CHECK-NEXT: tilegpu.local_load
  // CHECK-NEXT: tilegpu.named_barrier_sync id = 1 threads = 64
  // CHECK-NEXT: tilegpu.barrier
  // CHECK-NEXT: tilegpu.local_store
  func.func @named(%x: tensor<512xf32, #l>) {
    %0 = tilegpu.local_alloc %x : tensor<512xf32, #l> -> !tilegpu.buffer<512xf32, #s> {tilegpu.offset = 0 : i32}
    tilegpu.named_barrier_sync id = 1 threads = 128
    %1 = tilegpu.local_load %0 : !tilegpu.buffer<512xf32, #s> -> tensor<512xf32, #m>
    tilegpu.named_barrier_sync id = 1 threads = 64
    tilegpu.local_store %x, %0 : tensor<512xf32, #l>, !tilegpu.buffer<512xf32, #s>
    return
  }
}

// -----

#l = #tilegpu.linear<register = [[1], [2]], lane = [[4], [8], [16], [32], [64]], warp = [[128], [256]], block = []>
#m = #tilegpu.linear<register = [[128], [256]], lane = [[1], [2], [4], [8], [16]], warp = [[32], [64]], block = []>
#s = #tilegpu.shared<offset = [[1], [2], [4], [8], [16], [32], [64], [128], [256]]>

module attributes {tilegpu.num_ctas = 1 : i32, tilegpu.num_warps = 4 : i32, tilegpu.target = "cuda:90", tilegpu.threads_per_warp = 32 : i32} {
  // An op with scratch is a barrier for what came before; what comes next must wait for its reads.
  // CHECK-LABEL: func.func @scratch
  // CHECK: tilegpu.local_alloc
  // CHECK-NEXT: tilegpu.convert_layout
  // CHECK-NEXT: tilegpu.local_load
  // CHECK-NEXT: tilegpu.barrier
  // CHECK-NEXT: tilegpu.convert_layout
  func.func @scratch(%x: tensor<512xf32, #l>) {
    %0 = tilegpu.local_alloc %x : tensor<512xf32, #l> -> !tilegpu.buffer<512xf32, #s> {tilegpu.offset = 2048 : i32}
    %1 = tilegpu.convert_layout %x {tilegpu.offset = 0 : i32} : tensor<512xf32, #l> -> tensor<512xf32, #m>
    %2 = tilegpu.local_load %0 : !tilegpu.buffer<512xf32, #s> -> tensor<512xf32, #m>
    %3 = tilegpu.convert_layout %1 {tilegpu.offset = 0 : i32} : tensor<512xf32, #m> -> tensor<512xf32, #l>
    return
  }
}

// -----

#l = #tilegpu.linear<register = [[1], [2]], lane = [[4], [8], [16], [32], [64]], warp = [[128], [256]], block = []>
#m = #tilegpu.linear<register = [[128], [256]], lane = [[1], [2], [4], [8], [16]], warp = [[32], [64]], block = []>
#s = #tilegpu.shared<offset = [[1], [2], [4], [8], [16], [32], [64], [128], [256]]>

module attributes {tilegpu.num_ctas = 1 : i32, tilegpu.num_warps = 4 : i32, tilegpu.target = "cuda:90", tilegpu.threads_per_warp = 32 : i32} {
  // Roles start in order; inside, each looks after its own accesses.
  // CHECK-LABEL: func.func @roles
  // CHECK: tilegpu.local_alloc
  // CHECK-NEXT: tilegpu.barrier
  // CHECK-NEXT: tilegpu.warp_specialize
  // CHECK: tilegpu.local_load
  // CHECK-NEXT: tilegpu.warp_yield
  // CHECK: tilegpu.local_store
  // CHECK-NEXT: tilegpu.warp_return
  func.func @roles(%x: tensor<512xf32, #l>) {
    %0 = tilegpu.local_alloc %x : tensor<512xf32, #l> -> !tilegpu.buffer<512xf32, #s> {tilegpu.offset = 0 : i32}
    tilegpu.warp_specialize(%0, %x) roles = ["a", "b"] warps = [4, 4] registers = [0, 0] {
    ^bb0(%b: !tilegpu.buffer<512xf32, #s>, %y: tensor<512xf32, #l>):
      %1 = tilegpu.local_load %b : !tilegpu.buffer<512xf32, #s> -> tensor<512xf32, #m>
      tilegpu.warp_yield
    }, {
    ^bb0(%b: !tilegpu.buffer<512xf32, #s>, %y: tensor<512xf32, #l>):
      tilegpu.local_store %y, %b : tensor<512xf32, #l>, !tilegpu.buffer<512xf32, #s>
      tilegpu.warp_return
    } : (!tilegpu.buffer<512xf32, #s>, tensor<512xf32, #l>) -> ()
    return
  }
}

// -----

#word = #tilegpu.shared<offset = [], rank = 1>

module attributes {tilegpu.num_ctas = 1 : i32, tilegpu.num_warps = 4 : i32, tilegpu.target = "cuda:90", tilegpu.threads_per_warp = 32 : i32} {
  // A producer, which is one thread, makes the mbarriers that it uses; the consumers wait for that at a named barrier.
  // CHECK-LABEL: func.func @producer
  // CHECK-NOT: tilegpu.barrier
  // CHECK: return
  func.func @producer() {
    %c0 = arith.constant 0 : i32
    %m = tilegpu.local_alloc : !tilegpu.buffer<1xi64, #word> {tilegpu.offset = 0 : i32}
    tilegpu.warp_specialize() roles = ["consumer", "producer"] warps = [4, 4] registers = [240, 24] {
      tilegpu.named_barrier_sync id = 0 threads = 256
      tilegpu.mbarrier_wait %m, %c0 : !tilegpu.buffer<1xi64, #word>
      tilegpu.warp_yield
    }, {
      tilegpu.mbarrier_init %m count = 1 : !tilegpu.buffer<1xi64, #word>
      tilegpu.named_barrier_arrive id = 0 threads = 256
      tilegpu.mbarrier_expect %m bytes = 16 : !tilegpu.buffer<1xi64, #word>
      tilegpu.warp_return
    } : () -> ()
    return
  }
}

// -----

#l = #tilegpu.linear<register = [[1], [2]], lane = [[4], [8], [16], [32], [64]], warp = [[128], [256]], block = []>
#m = #tilegpu.linear<register = [[128], [256]], lane = [[1], [2], [4], [8], [16]], warp = [[32], [64]], block = []>
#s = #tilegpu.shared<offset = [[1], [2], [4], [8], [16], [32], [64], [128], [256]]>

module attributes {tilegpu.num_ctas = 1 : i32, tilegpu.num_warps = 4 : i32, tilegpu.target = "cuda:90", tilegpu.threads_per_warp = 32 : i32} {
  // Warps that copy for themselves meet no others in the loop; behind it, all meet before other memory takes the place.
  // CHECK-LABEL: func.func @own_copies
  // CHECK: tilegpu.async_commit
  // CHECK: scf.for
  // CHECK-NOT: tilegpu.barrier{{$}}
  // CHECK: tilegpu.async_wait num = 0
  // CHECK: tilegpu.slot
  // CHECK-NEXT: tilegpu.barrier {tilegpu.each_warp}
  // CHECK-NEXT: tilegpu.local_load
  // CHECK-NOT: tilegpu.barrier{{$}}
  // CHECK: tilegpu.async_commit
  // CHECK-NOT: tilegpu.barrier{{$}}
  // CHECK: tilegpu.async_wait num = 0
  // CHECK-NEXT: tilegpu.barrier{{$}}
  // CHECK-NEXT: tilegpu.local_alloc
  func.func @own_copies(%p: tensor<512x!tile.ptr<f32>, #l>, %x: tensor<512xf32, #l>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %ring = tilegpu.local_alloc : !tilegpu.buffer<512xf32, #s, slots = 2> {tilegpu.offset = 0 : i32}
    %first = tilegpu.slot %ring[%c0] : !tilegpu.buffer<512xf32, #s, slots = 2>
    %t = tilegpu.async_copy %p, %first {tilegpu.each_warp} : tensor<512x!tile.ptr<f32>, #l>, !tilegpu.buffer<512xf32, #s>
    %u = tilegpu.async_commit(%t)
    scf.for %i = %c0 to %n step %c1 : i32 {
      %w = tilegpu.async_wait num = 0
      %now = arith.remsi %i, %c1 : i32
      %slot = tilegpu.slot %ring[%now] : !tilegpu.buffer<512xf32, #s, slots = 2>
      %v = tilegpu.local_load %slot {tilegpu.each_warp} : !tilegpu.buffer<512xf32, #s> -> tensor<512xf32, #l>
      %next = tilegpu.slot %ring[%i] : !tilegpu.buffer<512xf32, #s, slots = 2>
      %c = tilegpu.async_copy %p, %next {tilegpu.each_warp} : tensor<512x!tile.ptr<f32>, #l>, !tilegpu.buffer<512xf32, #s>
      %d = tilegpu.async_commit(%c)
      tile.store %p, %v : tensor<512x!tile.ptr<f32>, #l>
    }
    %e = tilegpu.async_wait num = 0
    %other = tilegpu.local_alloc %x : tensor<512xf32, #l> -> !tilegpu.buffer<512xf32, #s> {tilegpu.offset = 0 : i32}
    %y = tilegpu.local_load %other : !tilegpu.buffer<512xf32, #s> -> tensor<512xf32, #m>
    return
  }
}

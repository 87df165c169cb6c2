// RUN: tilewright-opt %s --split-input-file --passes=tilegpu-allocate-shared | filecheck %s

#l = #tilegpu.linear<register = [[1], [2]], lane = [[4], [8], [16], [32], [64]], warp = [[128], [256]], block = []>
#m = #tilegpu.linear<register = [[128], [256]], lane = [[1], [2], [4], [8], [16]], warp = [[32], [64]], block = []>
#s = #tilegpu.shared<offset = [[1], [2], [4], [8], [16], [32], [64], [128], [256]]>

module attributes {tilegpu.num_ctas = 1 : i32, tilegpu.num_warps = 4 : i32, tilegpu.target = "cuda:90", tilegpu.threads_per_warp = 32 : i32} {
  // The first two overlap, the third starts after both.
  // CHECK-LABEL: func.func @lifetimes
  // CHECK: tilegpu.local_alloc {{.*}} {tilegpu.offset = 0 : i32}
  // CHECK: tilegpu.local_alloc {{.*}} {tilegpu.offset = 2048 : i32}
  // CHECK: tilegpu.local_alloc {{.*}} {tilegpu.offset = 0 : i32}
  func.func @lifetimes(%x: tensor<512xf32, #l>) {
    %0 = tilegpu.local_alloc %x : tensor<512xf32, #l> -> !tilegpu.buffer<512xf32, #s>
    %1 = tilegpu.local_alloc %x : tensor<512xf32, #l> -> !tilegpu.buffer<512xf32, #s>
    %2 = tilegpu.local_load %0 : !tilegpu.buffer<512xf32, #s> -> tensor<512xf32, #m>
    %3 = tilegpu.local_load %1 : !tilegpu.buffer<512xf32, #s> -> tensor<512xf32, #m>
    %4 = tilegpu.local_alloc %x : tensor<512xf32, #l> -> !tilegpu.buffer<512xf32, #s>
    %5 = tilegpu.local_load %4 : !tilegpu.buffer<512xf32, #s> -> tensor<512xf32, #m>
    return
  }
}

// -----

#l = #tilegpu.linear<register = [[1], [2]], lane = [[4], [8], [16], [32], [64]], warp = [[128], [256]], block = []>
#padded = #tilegpu.shared<offset = [[1], [2], [4], [8], [16], [32], [64], [128], [256]], pad = [64, 4]>

module attributes {tilegpu.num_ctas = 1 : i32, tilegpu.num_warps = 4 : i32, tilegpu.target = "cuda:90", tilegpu.threads_per_warp = 32 : i32} {
  // Padding counts: 4 elements after every 64. Slots multiply.
  // CHECK: tilegpu.shared = 6528 : i32
  // CHECK-LABEL: func.func @sizes
  func.func @sizes(%x: tensor<512xf32, #l>, %i: i32) {
    %0 = tilegpu.local_alloc : !tilegpu.buffer<512xf32, #padded, slots = 3>
    %1 = tilegpu.slot %0[%i] : !tilegpu.buffer<512xf32, #padded, slots = 3>
    tilegpu.local_store %x, %1 : tensor<512xf32, #l>, !tilegpu.buffer<512xf32, #padded>
    return
  }
}

// -----

#l = #tilegpu.linear<register = [[1], [2]], lane = [[4], [8], [16], [32], [64]], warp = [[128], [256]], block = []>
#m = #tilegpu.linear<register = [[128], [256]], lane = [[1], [2], [4], [8], [16]], warp = [[32], [64]], block = []>
#s = #tilegpu.shared<offset = [[1], [2], [4], [8], [16], [32], [64], [128], [256]]>

module attributes {tilegpu.num_ctas = 1 : i32, tilegpu.num_warps = 4 : i32, tilegpu.target = "cuda:90", tilegpu.threads_per_warp = 32 : i32} {
  // A buffer used in a loop lives through all of it, even where its last use comes before another's first.
  // CHECK: tilegpu.shared = 4096 : i32
  // CHECK-LABEL: func.func @loop
  // CHECK: tilegpu.local_alloc {{.*}} {tilegpu.offset = 0 : i32}
  // CHECK: scf.for
  // CHECK: tilegpu.local_alloc {{.*}} {tilegpu.offset = 2048 : i32}
  func.func @loop(%x: tensor<512xf32, #l>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %0 = tilegpu.local_alloc %x : tensor<512xf32, #l> -> !tilegpu.buffer<512xf32, #s>
    scf.for %i = %c0 to %n step %c1 : i32 {
      %1 = tilegpu.local_load %0 : !tilegpu.buffer<512xf32, #s> -> tensor<512xf32, #m>
      %2 = tilegpu.local_alloc %x : tensor<512xf32, #l> -> !tilegpu.buffer<512xf32, #s>
      %3 = tilegpu.local_load %2 : !tilegpu.buffer<512xf32, #s> -> tensor<512xf32, #m>
    }
    return
  }
}

// -----

#l = #tilegpu.linear<register = [[1], [2]], lane = [[4], [8], [16], [32], [64]], warp = [[128], [256]], block = []>
#m = #tilegpu.linear<register = [[128], [256]], lane = [[1], [2], [4], [8], [16]], warp = [[32], [64]], block = []>
#s = #tilegpu.shared<offset = [[1], [2], [4], [8], [16], [32], [64], [128], [256]]>

module attributes {tilegpu.num_ctas = 1 : i32, tilegpu.num_warps = 4 : i32, tilegpu.target = "cuda:90", tilegpu.threads_per_warp = 32 : i32} {
  // A buffer that the loop carries is alive in the next iteration.
  // CHECK: tilegpu.shared = 6144 : i32
  // CHECK-LABEL: func.func @carried
  func.func @carried(%x: tensor<512xf32, #l>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %0 = tilegpu.local_alloc %x : tensor<512xf32, #l> -> !tilegpu.buffer<512xf32, #s>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%b = %0) -> (!tilegpu.buffer<512xf32, #s>) : i32 {
      %1 = tilegpu.local_load %b : !tilegpu.buffer<512xf32, #s> -> tensor<512xf32, #m>
      %2 = tilegpu.local_alloc %x : tensor<512xf32, #l> -> !tilegpu.buffer<512xf32, #s>
      %3 = tilegpu.local_alloc %x : tensor<512xf32, #l> -> !tilegpu.buffer<512xf32, #s>
      %4 = tilegpu.local_load %2 : !tilegpu.buffer<512xf32, #s> -> tensor<512xf32, #m>
      scf.yield %3 : !tilegpu.buffer<512xf32, #s>
    }
    return
  }
}

// -----

#l = #tilegpu.linear<register = [[1], [2]], lane = [[4], [8], [16], [32], [64]], warp = [[128], [256]], block = []>
#m = #tilegpu.linear<register = [[128], [256]], lane = [[1], [2], [4], [8], [16]], warp = [[32], [64]], block = []>
#s = #tilegpu.shared<offset = [[1], [2], [4], [8], [16], [32], [64], [128], [256]]>

module attributes {tilegpu.num_ctas = 1 : i32, tilegpu.num_warps = 4 : i32, tilegpu.target = "cuda:90", tilegpu.threads_per_warp = 32 : i32} {
  // The branches of an if are never alive at once.
  // CHECK: tilegpu.shared = 2048 : i32
  // CHECK-LABEL: func.func @branches
  func.func @branches(%x: tensor<512xf32, #l>, %c: i1) {
    scf.if %c {
      %0 = tilegpu.local_alloc %x : tensor<512xf32, #l> -> !tilegpu.buffer<512xf32, #s>
      %1 = tilegpu.local_load %0 : !tilegpu.buffer<512xf32, #s> -> tensor<512xf32, #m>
    } else {
      %0 = tilegpu.local_alloc %x : tensor<512xf32, #l> -> !tilegpu.buffer<512xf32, #s>
      %1 = tilegpu.local_load %0 : !tilegpu.buffer<512xf32, #s> -> tensor<512xf32, #m>
    }
    return
  }
}

// -----

#l = #tilegpu.linear<register = [[1], [2]], lane = [[4], [8], [16], [32], [64]], warp = [[128], [256]], block = []>
#m = #tilegpu.linear<register = [[128], [256]], lane = [[1], [2], [4], [8], [16]], warp = [[32], [64]], block = []>
#s = #tilegpu.shared<offset = [[1], [2], [4], [8], [16], [32], [64], [128], [256]]>

module attributes {tilegpu.num_ctas = 1 : i32, tilegpu.num_warps = 4 : i32, tilegpu.target = "cuda:90", tilegpu.threads_per_warp = 32 : i32} {
  // Copies in flight keep their buffer until a wait that leaves none.
  // CHECK-LABEL: func.func @copies
  // CHECK: tilegpu.local_alloc {{.*}} {tilegpu.offset = 0 : i32}
  // CHECK: tilegpu.local_alloc {{.*}} {tilegpu.offset = 2048 : i32}
  // CHECK: tilegpu.async_wait num = 0
  // CHECK: tilegpu.local_alloc {{.*}} {tilegpu.offset = 0 : i32}
  func.func @copies(%x: tensor<512xf32, #l>, %p: tensor<512x!tile.ptr<f32>, #l>) {
    %0 = tilegpu.local_alloc : !tilegpu.buffer<512xf32, #s>
    %t = tilegpu.async_copy %p, %0 : tensor<512x!tile.ptr<f32>, #l>, !tilegpu.buffer<512xf32, #s>
    %w = tilegpu.async_wait num = 1
    %1 = tilegpu.local_alloc %x : tensor<512xf32, #l> -> !tilegpu.buffer<512xf32, #s>
    %2 = tilegpu.local_load %1 : !tilegpu.buffer<512xf32, #s> -> tensor<512xf32, #m>
    %v = tilegpu.async_wait num = 0
    %3 = tilegpu.local_alloc %x : tensor<512xf32, #l> -> !tilegpu.buffer<512xf32, #s>
    %4 = tilegpu.local_load %3 : !tilegpu.buffer<512xf32, #s> -> tensor<512xf32, #m>
    return
  }
}

// -----

#l = #tilegpu.linear<register = [[1], [2]], lane = [[4], [8], [16], [32], [64]], warp = [[128], [256]], block = []>
#s = #tilegpu.shared<offset = [[1], [2], [4], [8], [16], [32], [64], [128], [256]]>
#m = #tilegpu.linear<register = [[128], [256]], lane = [[1], [2], [4], [8], [16]], warp = [[32], [64]], block = []>

module attributes {tilegpu.num_ctas = 1 : i32, tilegpu.num_warps = 4 : i32, tilegpu.target = "cuda:80", tilegpu.threads_per_warp = 32 : i32} {
  // A wait in a branch may not run: the copy is in flight behind it.
  // CHECK: tilegpu.shared = 4096 : i32
  // CHECK-LABEL: func.func @wait_in_a_branch
  func.func @wait_in_a_branch(%x: tensor<512xf32, #l>, %p: tensor<512x!tile.ptr<f32>, #l>, %c: i1) {
    %0 = tilegpu.local_alloc : !tilegpu.buffer<512xf32, #s>
    %1 = tilegpu.async_copy %p, %0 : tensor<512x!tile.ptr<f32>, #l>, !tilegpu.buffer<512xf32, #s>
    scf.if %c {
      %3 = tilegpu.async_wait num = 0
    }
    %4 = tilegpu.local_alloc %x : tensor<512xf32, #l> -> !tilegpu.buffer<512xf32, #s>
    %5 = tilegpu.local_load %4 : !tilegpu.buffer<512xf32, #s> -> tensor<512xf32, #m>
    return
  }
}

// -----

#l = #tilegpu.linear<register = [[1], [2]], lane = [[4], [8], [16], [32], [64]], warp = [[128], [256]], block = []>
#m = #tilegpu.linear<register = [[128], [256]], lane = [[1], [2], [4], [8], [16]], warp = [[32], [64]], block = []>
#s = #tilegpu.shared<offset = [[1], [2], [4], [8], [16], [32], [64], [128], [256]]>
#a = #tilegpu.linear<register = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0]], lane = [], warp = [], block = []>
#c = #tilegpu.linear<register = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0]], lane = [], warp = [], block = []>
#sb = #tilegpu.shared<offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0]]>
#q = #tilegpu.linear<register = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0]], lane = [], warp = [], block = []>

module attributes {tilegpu.num_ctas = 1 : i32, tilegpu.num_warps = 4 : i32, tilegpu.target = "cuda:90", tilegpu.threads_per_warp = 32 : i32} {
  // So do pending products, here over the end of the loop.
  // CHECK-LABEL: func.func @products
  // CHECK: scf.for
  // CHECK: tilegpu.local_alloc {{.*}} {tilegpu.offset = [[B:[0-9]+]] : i32}
  // CHECK: }
  // CHECK-NOT: tilegpu.offset = [[B]] : i32
  // CHECK: tilegpu.wgmma_wait
  // CHECK: tilegpu.local_alloc {{.*}} {tilegpu.offset = 0 : i32}
  func.func @products(%x: tensor<512xf32, #l>, %a: tensor<64x16xf16, #a>, %b: tensor<16x8xf16, #q>, %c: tensor<64x8xf32, #c>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %c) -> (tensor<64x8xf32, #c>) : i32 {
      %0 = tilegpu.local_alloc %b : tensor<16x8xf16, #q> -> !tilegpu.buffer<16x8xf16, #sb>
      %1 = tilegpu.wgmma %a, %0, %acc instr = [64, 8, 16] precision = tf32 : tensor<64x16xf16, #a>, !tilegpu.buffer<16x8xf16, #sb> -> tensor<64x8xf32, #c>
      scf.yield %1 : tensor<64x8xf32, #c>
    }
    %2 = tilegpu.local_alloc %x : tensor<512xf32, #l> -> !tilegpu.buffer<512xf32, #s>
    %3 = tilegpu.local_load %2 : !tilegpu.buffer<512xf32, #s> -> tensor<512xf32, #m>
    %4 = tilegpu.wgmma_wait num = 0 (%r : tensor<64x8xf32, #c>)
    %5 = tilegpu.local_alloc %x : tensor<512xf32, #l> -> !tilegpu.buffer<512xf32, #s>
    %6 = tilegpu.local_load %5 : !tilegpu.buffer<512xf32, #s> -> tensor<512xf32, #m>
    return
  }
}

// -----

#l = #tilegpu.linear<register = [[1], [2]], lane = [[4], [8], [16], [32], [64]], warp = [[128], [256]], block = []>
#m = #tilegpu.linear<register = [[128], [256]], lane = [[1], [2], [4], [8], [16]], warp = [[32], [64]], block = []>
#s = #tilegpu.shared<offset = [[1], [2], [4], [8], [16], [32], [64], [128], [256]]>

module attributes {tilegpu.num_ctas = 1 : i32, tilegpu.num_warps = 4 : i32, tilegpu.target = "cuda:90", tilegpu.threads_per_warp = 32 : i32} {
  // Roles run side by side.
  // CHECK: tilegpu.shared = 4096 : i32
  // CHECK-LABEL: func.func @roles
  func.func @roles(%x: tensor<512xf32, #l>) {
    tilegpu.warp_specialize(%x) roles = ["a", "b"] warps = [4, 4] registers = [0, 0] {
    ^bb0(%y: tensor<512xf32, #l>):
      %0 = tilegpu.local_alloc %y : tensor<512xf32, #l> -> !tilegpu.buffer<512xf32, #s>
      %1 = tilegpu.local_load %0 : !tilegpu.buffer<512xf32, #s> -> tensor<512xf32, #m>
      tilegpu.warp_yield
    }, {
    ^bb0(%y: tensor<512xf32, #l>):
      %0 = tilegpu.local_alloc %y : tensor<512xf32, #l> -> !tilegpu.buffer<512xf32, #s>
      %1 = tilegpu.local_load %0 : !tilegpu.buffer<512xf32, #s> -> tensor<512xf32, #m>
      tilegpu.warp_return
    } : (tensor<512xf32, #l>) -> ()
    return
  }
}

// -----

#l = #tilegpu.linear<register = [[1], [2]], lane = [[4], [8], [16], [32], [64]], warp = [[128], [256]], block = []>
#m = #tilegpu.linear<register = [[128], [256]], lane = [[1], [2], [4], [8], [16]], warp = [[32], [64]], block = []>
#padded = #tilegpu.shared<offset = [[1], [2], [4], [8], [16], [32], [64], [128], [256]], pad = [64, 4]>
#swizzled = #tilegpu.shared<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 8], [2, 0]]>
#q2 = #tilegpu.linear<register = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 0]], lane = [], warp = [], block = []>

module attributes {tilegpu.num_ctas = 1 : i32, tilegpu.num_warps = 4 : i32, tilegpu.target = "cuda:90", tilegpu.threads_per_warp = 32 : i32} {
  // Scratch of an op is alive while the op runs. Swizzled buffers take multiples of 1024 bytes.
  // CHECK: tilegpu.shared = 4096 : i32
  // CHECK-LABEL: func.func @scratch
  // CHECK: tilegpu.local_alloc : {{.*}} {tilegpu.offset = 0 : i32}
  // CHECK: tilegpu.local_alloc : {{.*}} {tilegpu.offset = 3072 : i32}
  // CHECK: tilegpu.convert_layout {{.*}} {tilegpu.offset = 0 : i32}
  func.func @scratch(%x: tensor<512xf32, #l>, %y: tensor<4x16xf32, #q2>) {
    %0 = tilegpu.local_alloc : !tilegpu.buffer<512xf32, #padded>
    %1 = tilegpu.local_alloc : !tilegpu.buffer<4x16xf32, #swizzled>
    tilegpu.local_store %x, %0 : tensor<512xf32, #l>, !tilegpu.buffer<512xf32, #padded>
    tilegpu.local_store %y, %1 : tensor<4x16xf32, #q2>, !tilegpu.buffer<4x16xf32, #swizzled>
    %2 = tilegpu.convert_layout %x : tensor<512xf32, #l> -> tensor<512xf32, #m>
    return
  }
}

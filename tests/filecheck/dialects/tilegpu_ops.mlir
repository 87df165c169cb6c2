// RUN: tilewright-opt %s | tilewright-opt | filecheck %s

#rows = #tilegpu.linear<register = [[0, 1], [0, 2]], lane = [[0, 4], [1, 0]], warp = [[2, 0]], block = []>
#cols = #tilegpu.linear<register = [[1, 0], [2, 0]], lane = [[0, 1], [0, 2]], warp = [[0, 4]], block = []>
#line = #tilegpu.linear<register = [[1], [2]], lane = [[4]], warp = [], block = []>
#shared = #tilegpu.shared<offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0]]>
#transposed = #tilegpu.shared<offset = [[1, 0], [2, 0], [4, 0], [0, 1], [0, 2]]>
#half = #tilegpu.shared<offset = [[0, 1], [0, 2], [0, 0], [1, 0], [2, 0]]>
#flat = #tilegpu.shared<offset = [[1], [2], [4], [8], [16]]>
#word = #tilegpu.shared<offset = [], rank = 1>

// CHECK-LABEL: func.func @buffers
func.func @buffers(%t: tensor<4x8xf16, #rows>, %i: i32) {
  // CHECK: tilegpu.convert_layout %{{.*}} : tensor<4x8xf16, #{{.*}}> -> tensor<4x8xf16, #{{.*}}>
  %0 = tilegpu.convert_layout %t : tensor<4x8xf16, #rows> -> tensor<4x8xf16, #cols>
  // CHECK: tilegpu.local_alloc %{{.*}} : tensor<4x8xf16, #{{.*}}> -> !tilegpu.buffer<4x8xf16, #{{.*}}> {tilegpu.offset = 64 : i32}
  %1 = tilegpu.local_alloc %t : tensor<4x8xf16, #rows> -> !tilegpu.buffer<4x8xf16, #shared> {tilegpu.offset = 64 : i32}
  // CHECK: tilegpu.local_alloc : !tilegpu.buffer<4x8xf16, #{{.*}}, slots = 3>
  %2 = tilegpu.local_alloc : !tilegpu.buffer<4x8xf16, #shared, slots = 3>
  // CHECK: tilegpu.slot %{{.*}}[%{{.*}}] : !tilegpu.buffer<4x8xf16, #{{.*}}, slots = 3>
  %3 = tilegpu.slot %2[%i] : !tilegpu.buffer<4x8xf16, #shared, slots = 3>
  // CHECK: tilegpu.view %{{.*}} order = [1, 0] : !tilegpu.buffer<4x8xf16, #{{.*}}> -> !tilegpu.buffer<8x4xf16, #{{.*}}>
  %4 = tilegpu.view %3 order = [1, 0] : !tilegpu.buffer<4x8xf16, #shared> -> !tilegpu.buffer<8x4xf16, #transposed>
  // CHECK: tilegpu.view %{{.*}} offsets = [0, 4] : !tilegpu.buffer<4x8xf16, #{{.*}}> -> !tilegpu.buffer<4x4xf16, #{{.*}}>
  %5 = tilegpu.view %3 offsets = [0, 4] : !tilegpu.buffer<4x8xf16, #shared> -> !tilegpu.buffer<4x4xf16, #half>
  // CHECK: tilegpu.view %{{.*}} : !tilegpu.buffer<4x8xf16, #{{.*}}> -> !tilegpu.buffer<32xf16, #{{.*}}>
  %6 = tilegpu.view %3 : !tilegpu.buffer<4x8xf16, #shared> -> !tilegpu.buffer<32xf16, #flat>
  // CHECK: tilegpu.local_store %{{.*}}, %{{.*}} : tensor<4x8xf16, #{{.*}}>, !tilegpu.buffer<4x8xf16, #{{.*}}>
  tilegpu.local_store %t, %3 : tensor<4x8xf16, #rows>, !tilegpu.buffer<4x8xf16, #shared>
  // CHECK: tilegpu.local_load %{{.*}} : !tilegpu.buffer<4x8xf16, #{{.*}}> -> tensor<4x8xf16, #{{.*}}>
  %7 = tilegpu.local_load %1 : !tilegpu.buffer<4x8xf16, #shared> -> tensor<4x8xf16, #cols>
  return
}

// CHECK-LABEL: func.func @cp_async
func.func @cp_async(%p: tensor<4x8x!tile.ptr<f16>, #rows>, %m: tensor<4x8xi1, #rows>, %o: tensor<4x8xf16, #rows>, %b: !tilegpu.buffer<4x8xf16, #shared>) {
  // CHECK: %[[T:.*]] = tilegpu.async_copy %{{.*}}, %{{.*}} mask = %{{.*}} : tensor<4x8xi1, #{{.*}}> other = %{{.*}} : tensor<4x8xf16, #{{.*}}> cache = cg evict = evict_last : tensor<4x8x!tile.ptr<f16>, #{{.*}}>, !tilegpu.buffer<4x8xf16, #{{.*}}>
  %0 = tilegpu.async_copy %p, %b mask = %m : tensor<4x8xi1, #rows> other = %o : tensor<4x8xf16, #rows> cache = cg evict = evict_last : tensor<4x8x!tile.ptr<f16>, #rows>, !tilegpu.buffer<4x8xf16, #shared>
  // CHECK: %[[C:.*]] = tilegpu.async_commit(%[[T]])
  %1 = tilegpu.async_commit(%0)
  // CHECK: %[[W:.*]] = tilegpu.async_wait %[[C]] num = 2
  %2 = tilegpu.async_wait %1 num = 2
  // CHECK: tilegpu.local_load %{{.*}} token %[[W]]
  %3 = tilegpu.local_load %b token %2 : !tilegpu.buffer<4x8xf16, #shared> -> tensor<4x8xf16, #cols>
  return
}

// CHECK-LABEL: func.func @tma
func.func @tma(%d: !tile.desc<4x8xf16, #shared>, %r: !tile.desc<1x8xf16>, %i: i32, %b: !tilegpu.buffer<4x8xf16, #shared>, %bar: !tilegpu.buffer<1xi64, #word>,
               %c: i1, %x: tensor<4xi32>) {
  // CHECK: tilegpu.tma_load %{{.*}}[%{{.*}}, %{{.*}}], %{{.*}}, %{{.*}} pred = %{{.*}} multicast evict = evict_first : !tile.desc<4x8xf16, #{{.*}}>, !tilegpu.buffer<4x8xf16, #{{.*}}>, !tilegpu.buffer<1xi64, #{{.*}}>
  tilegpu.tma_load %d[%i, %i], %b, %bar pred = %c multicast evict = evict_first : !tile.desc<4x8xf16, #shared>, !tilegpu.buffer<4x8xf16, #shared>, !tilegpu.buffer<1xi64, #word>
  // CHECK: tilegpu.tma_gather %{{.*}}[%{{.*}}, %{{.*}}], %{{.*}}, %{{.*}} : !tile.desc<1x8xf16>, tensor<4xi32>,
  tilegpu.tma_gather %r[%x, %i], %b, %bar : !tile.desc<1x8xf16>, tensor<4xi32>, !tilegpu.buffer<4x8xf16, #shared>, !tilegpu.buffer<1xi64, #word>
  // CHECK: tilegpu.tma_store %{{.*}}[%{{.*}}, %{{.*}}], %{{.*}} : !tile.desc<4x8xf16, #{{.*}}>, !tilegpu.buffer<4x8xf16, #{{.*}}>
  tilegpu.tma_store %d[%i, %i], %b : !tile.desc<4x8xf16, #shared>, !tilegpu.buffer<4x8xf16, #shared>
  // CHECK: tilegpu.tma_reduce fadd %{{.*}}[%{{.*}}, %{{.*}}], %{{.*}} :
  tilegpu.tma_reduce fadd %d[%i, %i], %b : !tile.desc<4x8xf16, #shared>, !tilegpu.buffer<4x8xf16, #shared>
  // CHECK: tilegpu.tma_scatter %{{.*}}[%{{.*}}, %{{.*}}], %{{.*}} :
  tilegpu.tma_scatter %r[%x, %i], %b : !tile.desc<1x8xf16>, tensor<4xi32>, !tilegpu.buffer<4x8xf16, #shared>
  // CHECK: tilegpu.tma_store_wait num = 1 read
  tilegpu.tma_store_wait num = 1 read
  // CHECK: tilegpu.tma_store_wait num = 0
  tilegpu.tma_store_wait num = 0
  return
}

// CHECK-LABEL: func.func @barriers
func.func @barriers(%b: !tilegpu.buffer<1xi64, #word>, %phase: i32, %c: i1) {
  // CHECK: tilegpu.mbarrier_init %{{.*}} count = 4 : !tilegpu.buffer<1xi64, #{{.*}}>
  tilegpu.mbarrier_init %b count = 4 : !tilegpu.buffer<1xi64, #word>
  // CHECK: tilegpu.mbarrier_expect %{{.*}} bytes = 8192 pred = %{{.*}} :
  tilegpu.mbarrier_expect %b bytes = 8192 pred = %c : !tilegpu.buffer<1xi64, #word>
  // CHECK: tilegpu.mbarrier_arrive %{{.*}} count = 1 :
  tilegpu.mbarrier_arrive %b count = 1 : !tilegpu.buffer<1xi64, #word>
  // CHECK: tilegpu.mbarrier_wait %{{.*}}, %{{.*}} pred = %{{.*}} :
  tilegpu.mbarrier_wait %b, %phase pred = %c : !tilegpu.buffer<1xi64, #word>
  // CHECK: tilegpu.barrier
  tilegpu.barrier
  // CHECK: tilegpu.fence_async
  tilegpu.fence_async
  // CHECK: tilegpu.named_barrier_sync id = 1 threads = 256
  tilegpu.named_barrier_sync id = 1 threads = 256
  // CHECK: tilegpu.named_barrier_arrive id = 2 threads = 128
  tilegpu.named_barrier_arrive id = 2 threads = 128
  // CHECK: tilegpu.cluster_arrive
  tilegpu.cluster_arrive
  // CHECK: tilegpu.cluster_wait
  tilegpu.cluster_wait
  return
}

// CHECK-LABEL: func.func @roles
func.func @roles(%b: !tilegpu.buffer<1xi64, #word>, %x: f32) -> f32 {
  // CHECK: tilegpu.warp_specialize(%{{.*}}, %{{.*}}) roles = ["consumer", "producer"] warps = [8, 4] registers = [240, 40] {
  %0 = tilegpu.warp_specialize(%b, %x) roles = ["consumer", "producer"] warps = [8, 4] registers = [240, 40] {
  ^bb0(%bar: !tilegpu.buffer<1xi64, #word>, %y: f32):
    // CHECK: tilegpu.warp_yield %{{.*}} : f32
    tilegpu.warp_yield %y : f32
  // CHECK: }, {
  }, {
  ^bb0(%bar: !tilegpu.buffer<1xi64, #word>, %y: f32):
    // CHECK: tilegpu.warp_return
    tilegpu.warp_return
  } : (!tilegpu.buffer<1xi64, #word>, f32) -> f32
  return %0 : f32
}

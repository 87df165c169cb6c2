// RUN: tilewright-opt %s --passes=tilegpu-warp-specialize{num_stages=3},canonicalize,cse | filecheck %s

// A loop over tiles around a loop over K. The producer repeats both; the blocks of one step arrive, and are released, together. The slot of
// a step is released in the next one, when the wgmma of the step is done: the accumulator stays in flight. The rings fill the memory.

#acc = #tilegpu.linear<register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0], [64, 0]], block = []>
#load = #tilegpu.linear<register = [[0, 1], [0, 2], [0, 4], [32, 0], [64, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0], [16, 0]], block = []>
#load_b = #tilegpu.linear<register = [[0, 1], [0, 2], [0, 4], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0], [16, 0]], block = []>
#a = #tilegpu.shared<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0], [64, 0]]>
#b = #tilegpu.shared<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
#bt = #tilegpu.shared<offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [8, 1], [16, 2], [32, 4], [0, 8], [0, 16], [0, 32]]>

module attributes {tilegpu.num_ctas = 1 : i32, tilegpu.num_warps = 8 : i32, tilegpu.target = "cuda:90", tilegpu.threads_per_warp = 32 : i32} {
  // CHECK: module attributes {{.*}}tilegpu.num_warps = 8 : i32{{.*}}tilegpu.total_warps = 12 : i32
  // CHECK-LABEL: func.func @gemm
  // CHECK: %[[PID:.*]] = tile.program_id 0
  // CHECK-DAG: %[[A:.*]] = tilegpu.local_alloc : !tilegpu.buffer<128x64xf16, #{{.*}}, slots = 8>
  // CHECK-DAG: %[[B:.*]] = tilegpu.local_alloc : !tilegpu.buffer<64x64xf16, #{{.*}}, slots = 8>
  // CHECK: %[[FULL:.*]] = tilegpu.local_alloc : !tilegpu.buffer<1xi64, #{{.*}}, slots = 8>
  // CHECK-NEXT: %[[EMPTY:.*]] = tilegpu.local_alloc : !tilegpu.buffer<1xi64, #{{.*}}, slots = 8>
  // CHECK: tilegpu.warp_specialize() roles = ["consumer", "producer"] warps = [8, 4] registers = [240, 24] {
  // CHECK-NEXT: tilegpu.named_barrier_sync id = 0 threads = 384
  // CHECK: scf.for %{{.*}} = %[[PID]] to %{{.*}} iter_args(%[[S0:.*]] = %c0_i32, %[[P0:.*]] = %c0_i32) -> (i32, i32)
  // CHECK: %[[R:.*]]:3 = scf.if
  // CHECK: %[[L:.*]]:4 = scf.for %[[K:.*]] = %c0_i32 {{.*}} iter_args(%[[ACC:.*]] = %{{.*}}, %[[S:.*]] = %[[S0]], %[[P:.*]] = %[[P0]], %[[LAST:.*]] = %[[S0]])
  // CHECK-NEXT: %[[AGAIN:.*]] = arith.cmpi sgt, %[[K]], %c0_i32
  // CHECK: %[[F:.*]] = tilegpu.slot %[[FULL]][%[[S]]]
  // CHECK-NEXT: tilegpu.mbarrier_wait %[[F]], %[[P]] :
  // CHECK-DAG: tilegpu.slot %[[A]][%[[S]]]
  // CHECK-DAG: tilegpu.slot %[[B]][%[[S]]]
  // CHECK: tilegpu.wgmma
  // CHECK-NEXT: tilegpu.wgmma_wait
  // CHECK-NEXT: %[[E:.*]] = tilegpu.slot %[[EMPTY]][%[[LAST]]]
  // CHECK-NEXT: tilegpu.mbarrier_arrive %[[E]] count = 1 pred = %[[AGAIN]] {tilegpu.each_warpgroup}
  // CHECK: scf.yield %{{.*}}, %{{.*}}, %{{.*}}, %[[S]] :
  // CHECK: %[[E:.*]] = tilegpu.slot %[[EMPTY]][%[[L]]#3]
  // CHECK-NEXT: tilegpu.mbarrier_arrive %[[E]] count = 1 {tilegpu.each_warpgroup}
  // CHECK-NEXT: scf.yield %[[L]]#0, %[[L]]#1, %[[L]]#2
  // CHECK-NEXT: } else {
  // CHECK-NEXT: scf.yield %{{.*}}, %[[S0]], %[[P0]]
  // CHECK: tile.descriptor_store
  // CHECK: scf.yield %[[R]]#1, %[[R]]#2 : i32, i32
  // CHECK: tilegpu.warp_yield
  // CHECK-NEXT: }, {
  // CHECK-NEXT: tilegpu.mbarrier_init %[[FULL]] count = 1
  // CHECK-NEXT: tilegpu.mbarrier_init %[[EMPTY]] count = 2
  // CHECK-NEXT: tilegpu.named_barrier_arrive id = 0 threads = 384
  // CHECK: scf.for %{{.*}} = %[[PID]] to %{{.*}} iter_args(%{{.*}} = %c0_i32, %{{.*}} = %c1_i32) -> (i32, i32)
  // CHECK: scf.for {{.*}} iter_args(%[[S:.*]] = %{{.*}}, %[[P:.*]] = %{{.*}}) -> (i32, i32)
  // CHECK: %[[E:.*]] = tilegpu.slot %[[EMPTY]][%[[S]]]
  // CHECK-NEXT: tilegpu.mbarrier_wait %[[E]], %[[P]] :
  // CHECK-NEXT: %[[F:.*]] = tilegpu.slot %[[FULL]][%[[S]]]
  // CHECK-NEXT: tilegpu.mbarrier_expect %[[F]] bytes = 24576
  // CHECK-NEXT: %[[SA:.*]] = tilegpu.slot %[[A]][%[[S]]]
  // CHECK-NEXT: tilegpu.tma_load %{{.*}}, %[[SA]], %[[F]] :
  // CHECK-NEXT: %[[SB:.*]] = tilegpu.slot %[[B]][%[[S]]]
  // CHECK-NEXT: tilegpu.tma_load %{{.*}}, %[[SB]], %[[F]] :
  // CHECK-NOT: wgmma
  // CHECK: tilegpu.warp_return
  // CHECK-NEXT: }
  // CHECK-NEXT: return
  func.func @gemm(%pa: !tile.ptr<f16>, %pb: !tile.ptr<f16>, %pc: !tile.ptr<f16>, %tiles: i32, %steps: i32,
                  %da: !tile.desc<128x64xf16, #a> {tile.descriptor = {argument = 0 : i32}},
                  %db: !tile.desc<64x64xf16, #b> {tile.descriptor = {argument = 1 : i32}},
                  %dc: !tile.desc<128x64xf16, #a> {tile.descriptor = {argument = 2 : i32}}) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %c128 = arith.constant 128 : i32
    %zero = arith.constant dense<0.0> : tensor<128x64xf32, #acc>
    %pid = tile.program_id 0
    scf.for %t = %pid to %tiles step %c128 : i32 {
      %row = arith.muli %t, %c128 : i32
      %acc = scf.for %k = %c0 to %steps step %c1 iter_args(%sum = %zero) -> (tensor<128x64xf32, #acc>) : i32 {
        %at = arith.muli %k, %c64 : i32
        %x = tile.descriptor_load %da[%row, %at] : !tile.desc<128x64xf16, #a> -> tensor<128x64xf16, #load>
        %xs = tilegpu.local_alloc %x : tensor<128x64xf16, #load> -> !tilegpu.buffer<128x64xf16, #a>
        tilegpu.fence_async
        %y = tile.descriptor_load %db[%c0, %at] : !tile.desc<64x64xf16, #b> -> tensor<64x64xf16, #load_b>
        %ys = tilegpu.local_alloc %y : tensor<64x64xf16, #load_b> -> !tilegpu.buffer<64x64xf16, #b>
        tilegpu.fence_async
        %yt = tilegpu.view %ys order = [1, 0] : !tilegpu.buffer<64x64xf16, #b> -> !tilegpu.buffer<64x64xf16, #bt>
        %p = tilegpu.wgmma %xs, %yt, %sum instr = [64, 64, 16] precision = tf32 : !tilegpu.buffer<128x64xf16, #a>, !tilegpu.buffer<64x64xf16, #bt> -> tensor<128x64xf32, #acc>
        %w = tilegpu.wgmma_wait num = 0(%p : tensor<128x64xf32, #acc>)
        scf.yield %w : tensor<128x64xf32, #acc>
      }
      %h = tile.fp_to_fp %acc : tensor<128x64xf32, #acc> -> tensor<128x64xf16, #acc>
      tile.descriptor_store %dc[%row, %c0], %h : !tile.desc<128x64xf16, #a>, tensor<128x64xf16, #acc>
    } {tile.warp_specialize = true}
    return
  }
}

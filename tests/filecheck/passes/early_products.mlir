// RUN: tilewright-opt %s --passes=tilegpu-early-products | filecheck %s

#acc = #tilegpu.linear<register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]], block = []>
#s = #tilegpu.shared<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0]]>
#w = #tilegpu.shared<offset = [], rank = 1>
module attributes {tilegpu.num_ctas = 1 : i32, tilegpu.num_warps = 4 : i32, tilegpu.target = "cuda:90", tilegpu.threads_per_warp = 32 : i32} {
  // The loop's first product (late = -1) is issued for the next iteration where the first one stood that works on its result, and the loop
  // carries the result; the first one stands in front of the loop. Where there is no iteration, nothing is waited for.
  // CHECK-LABEL: func.func @early
  // CHECK: %[[SOME:.*]] = arith.cmpi slt
  // CHECK: tilegpu.mbarrier_wait %{{.*}}, %{{.*}} pred = %[[SOME]]
  // CHECK: %[[P:.*]] = tilegpu.wgmma {{.*}}tilegpu.late = -1
  // CHECK: %[[FIRST:.*]] = tilegpu.wgmma_wait num = 0(%[[P]]
  // CHECK: scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[SUM:.*]] = %{{.*}}, %[[S:.*]] = %[[FIRST]])
  // CHECK-NOT: tilegpu.late
  // CHECK: %[[D:.*]] = tilegpu.wgmma %{{.*}}, %{{.*}}, %cst
  // CHECK: %[[NEXT:.*]] = arith.addi %[[I]]
  // CHECK: %[[MORE:.*]] = arith.cmpi sgt
  // CHECK: %[[BLOCK:.*]] = tilegpu.slot %{{.*}}[%[[NEXT]]] : !tilegpu.buffer<64x64
  // CHECK: tilegpu.mbarrier_wait %{{.*}}, %{{.*}} pred = %[[MORE]]
  // CHECK: tilegpu.wgmma_wait num = 0(%[[D]]
  // CHECK: arith.addf %[[S]],
  // CHECK: %[[N:.*]] = tilegpu.wgmma %{{.*}}, %{{.*}}, %[[SUM]]
  // CHECK: %[[LAST:.*]] = tilegpu.wgmma_wait num = 0(%[[N]]
  // CHECK: %[[E:.*]] = tilegpu.wgmma %{{.*}}, %[[BLOCK]], %cst {{.*}}tilegpu.late = -1
  // CHECK: %[[FOLLOWING:.*]] = tilegpu.wgmma_wait num = 0(%[[E]]
  // CHECK: scf.yield %[[LAST]], %[[FOLLOWING]]
  func.func @early(%q: !tilegpu.buffer<64x64xf16, #s>, %ring: !tilegpu.buffer<64x64xf16, #s, slots = 4>, %full: !tilegpu.buffer<1xi64, #w, slots = 4>, %c: tensor<64x64xf32, #acc>, %n: i32) -> tensor<64x64xf32, #acc> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zeros = arith.constant dense<0.0> : tensor<64x64xf32, #acc>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %c) -> (tensor<64x64xf32, #acc>) : i32 {
      %k = tilegpu.slot %ring[%i] : !tilegpu.buffer<64x64xf16, #s, slots = 4>
      %there = tilegpu.slot %full[%i] : !tilegpu.buffer<1xi64, #w, slots = 4>
      tilegpu.mbarrier_wait %there, %c0 : !tilegpu.buffer<1xi64, #w>
      %0 = tilegpu.wgmma %q, %k, %zeros instr = [64, 64, 16] precision = ieee {tilegpu.late = -1 : i32} : !tilegpu.buffer<64x64xf16, #s>, !tilegpu.buffer<64x64xf16, #s> -> tensor<64x64xf32, #acc>
      %s = tilegpu.wgmma_wait num = 0 (%0 : tensor<64x64xf32, #acc>)
      %1 = tilegpu.wgmma %k, %q, %zeros instr = [64, 64, 16] precision = ieee : !tilegpu.buffer<64x64xf16, #s>, !tilegpu.buffer<64x64xf16, #s> -> tensor<64x64xf32, #acc>
      %d = tilegpu.wgmma_wait num = 0 (%1 : tensor<64x64xf32, #acc>)
      %work = arith.addf %s, %d : tensor<64x64xf32, #acc>
      %half = arith.truncf %work : tensor<64x64xf32, #acc> to tensor<64x64xf16, #acc>
      %written = tilegpu.local_alloc %half : tensor<64x64xf16, #acc> -> !tilegpu.buffer<64x64xf16, #s>
      %2 = tilegpu.wgmma %written, %q, %sum instr = [64, 64, 16] precision = ieee : !tilegpu.buffer<64x64xf16, #s>, !tilegpu.buffer<64x64xf16, #s> -> tensor<64x64xf32, #acc>
      %next = tilegpu.wgmma_wait num = 0 (%2 : tensor<64x64xf32, #acc>)
      scf.yield %next : tensor<64x64xf32, #acc>
    }
    return %r : tensor<64x64xf32, #acc>
  }

  // The blocks are not there ahead: threads write one in the iteration.
  // CHECK-LABEL: func.func @of_what_is_computed
  // CHECK-NOT: tilegpu.wgmma
  // CHECK: scf.for
  // CHECK: tilegpu.mbarrier_wait
  // CHECK: tilegpu.wgmma {{.*}}tilegpu.late = -1
  // CHECK-NOT: tilegpu.late
  // CHECK: return
  func.func @of_what_is_computed(%q: !tilegpu.buffer<64x64xf16, #s>, %ring: !tilegpu.buffer<64x64xf16, #s, slots = 4>, %full: !tilegpu.buffer<1xi64, #w, slots = 4>, %c: tensor<64x64xf32, #acc>, %n: i32) -> tensor<64x64xf32, #acc> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zeros = arith.constant dense<0.0> : tensor<64x64xf32, #acc>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %c) -> (tensor<64x64xf32, #acc>) : i32 {
      %k = tilegpu.slot %ring[%i] : !tilegpu.buffer<64x64xf16, #s, slots = 4>
      %there = tilegpu.slot %full[%i] : !tilegpu.buffer<1xi64, #w, slots = 4>
      tilegpu.mbarrier_wait %there, %c0 : !tilegpu.buffer<1xi64, #w>
      %scaled = tilegpu.local_load %k : !tilegpu.buffer<64x64xf16, #s> -> tensor<64x64xf16, #acc>
      %mine = tilegpu.local_alloc %scaled : tensor<64x64xf16, #acc> -> !tilegpu.buffer<64x64xf16, #s>
      %0 = tilegpu.wgmma %q, %mine, %zeros instr = [64, 64, 16] precision = ieee {tilegpu.late = -1 : i32} : !tilegpu.buffer<64x64xf16, #s>, !tilegpu.buffer<64x64xf16, #s> -> tensor<64x64xf32, #acc>
      %s = tilegpu.wgmma_wait num = 0 (%0 : tensor<64x64xf32, #acc>)
      %1 = tilegpu.wgmma %k, %q, %zeros instr = [64, 64, 16] precision = ieee : !tilegpu.buffer<64x64xf16, #s>, !tilegpu.buffer<64x64xf16, #s> -> tensor<64x64xf32, #acc>
      %d = tilegpu.wgmma_wait num = 0 (%1 : tensor<64x64xf32, #acc>)
      %work = arith.addf %s, %d : tensor<64x64xf32, #acc>
      %half = arith.truncf %work : tensor<64x64xf32, #acc> to tensor<64x64xf16, #acc>
      %written = tilegpu.local_alloc %half : tensor<64x64xf16, #acc> -> !tilegpu.buffer<64x64xf16, #s>
      %2 = tilegpu.wgmma %written, %q, %sum instr = [64, 64, 16] precision = ieee : !tilegpu.buffer<64x64xf16, #s>, !tilegpu.buffer<64x64xf16, #s> -> tensor<64x64xf32, #acc>
      %next = tilegpu.wgmma_wait num = 0 (%2 : tensor<64x64xf32, #acc>)
      scf.yield %next : tensor<64x64xf32, #acc>
    }
    return %r : tensor<64x64xf32, #acc>
  }

  // No other product waits for work on the result, so nothing would run beside it.
  // CHECK-LABEL: func.func @nobody_waits
  // CHECK-NOT: tilegpu.wgmma
  // CHECK: scf.for
  // CHECK: tilegpu.mbarrier_wait
  // CHECK: tilegpu.wgmma {{.*}}tilegpu.late = -1
  // CHECK-NOT: tilegpu.late
  // CHECK: return
  func.func @nobody_waits(%q: !tilegpu.buffer<64x64xf16, #s>, %ring: !tilegpu.buffer<64x64xf16, #s, slots = 4>, %full: !tilegpu.buffer<1xi64, #w, slots = 4>, %c: tensor<64x64xf32, #acc>, %n: i32) -> tensor<64x64xf32, #acc> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zeros = arith.constant dense<0.0> : tensor<64x64xf32, #acc>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %c) -> (tensor<64x64xf32, #acc>) : i32 {
      %k = tilegpu.slot %ring[%i] : !tilegpu.buffer<64x64xf16, #s, slots = 4>
      %there = tilegpu.slot %full[%i] : !tilegpu.buffer<1xi64, #w, slots = 4>
      tilegpu.mbarrier_wait %there, %c0 : !tilegpu.buffer<1xi64, #w>
      %0 = tilegpu.wgmma %q, %k, %zeros instr = [64, 64, 16] precision = ieee {tilegpu.late = -1 : i32} : !tilegpu.buffer<64x64xf16, #s>, !tilegpu.buffer<64x64xf16, #s> -> tensor<64x64xf32, #acc>
      %s = tilegpu.wgmma_wait num = 0 (%0 : tensor<64x64xf32, #acc>)
      %1 = tilegpu.wgmma %k, %q, %zeros instr = [64, 64, 16] precision = ieee : !tilegpu.buffer<64x64xf16, #s>, !tilegpu.buffer<64x64xf16, #s> -> tensor<64x64xf32, #acc>
      %d = tilegpu.wgmma_wait num = 0 (%1 : tensor<64x64xf32, #acc>)
      %work = arith.addf %s, %d : tensor<64x64xf32, #acc>
      %half = arith.truncf %d : tensor<64x64xf32, #acc> to tensor<64x64xf16, #acc>
      %written = tilegpu.local_alloc %half : tensor<64x64xf16, #acc> -> !tilegpu.buffer<64x64xf16, #s>
      %2 = tilegpu.wgmma %written, %q, %sum instr = [64, 64, 16] precision = ieee : !tilegpu.buffer<64x64xf16, #s>, !tilegpu.buffer<64x64xf16, #s> -> tensor<64x64xf32, #acc>
      %next = tilegpu.wgmma_wait num = 0 (%2 : tensor<64x64xf32, #acc>)
      %kept = arith.addf %next, %s : tensor<64x64xf32, #acc>
      scf.yield %kept : tensor<64x64xf32, #acc>
    }
    return %r : tensor<64x64xf32, #acc>
  }
}

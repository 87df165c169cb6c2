// RUN: tilewright-opt %s --split-input-file --passes=tilegpu-overlap-wgmma | filecheck %s

#acc = #tilegpu.linear<register = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]], block = []>
#a = #tilegpu.linear<register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]], block = []>
#b = #tilegpu.linear<register = [], lane = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]], block = []>
#sb = #tilegpu.shared<offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0]]>
module attributes {tilegpu.num_ctas = 1 : i32, tilegpu.num_warps = 4 : i32, tilegpu.target = "cuda:90", tilegpu.threads_per_warp = 32 : i32} {
  // An accumulator that the loop merely adds to stays in flight: the wait leaves this iteration's product, the last one is behind the loop.
  // CHECK-LABEL: func.func @carried
  // CHECK: scf.for
  // CHECK: tilegpu.wgmma %
  // CHECK-NEXT: tilegpu.wgmma_wait num = 1
  // CHECK: scf.yield
  // CHECK: tilegpu.wgmma_wait num = 0
  func.func @carried(%x: tensor<64x16xf16, #a>, %buffer: !tilegpu.buffer<16x8xf16, #sb>, %c: tensor<64x8xf32, #acc>, %n: i32) -> tensor<64x8xf32, #acc> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %c) -> (tensor<64x8xf32, #acc>) : i32 {
      %0 = tilegpu.wgmma %x, %buffer, %s instr = [64, 8, 16] precision = ieee : tensor<64x16xf16, #a>, !tilegpu.buffer<16x8xf16, #sb> -> tensor<64x8xf32, #acc>
      %1 = tilegpu.wgmma_wait num = 0 (%0 : tensor<64x8xf32, #acc>)
      scf.yield %1 : tensor<64x8xf32, #acc>
    }
    return %r : tensor<64x8xf32, #acc>
  }

  // The next iteration writes the buffer anew, so each product is waited for in its own.
  // CHECK-LABEL: func.func @buffer_of_the_iteration
  // CHECK: scf.for
  // CHECK: tilegpu.wgmma %
  // CHECK-NEXT: %[[R:.*]] = tilegpu.wgmma_wait num = 0
  // CHECK-NEXT: scf.yield %[[R]]
  func.func @buffer_of_the_iteration(%x: tensor<64x16xf16, #a>, %y: tensor<16x8xf16, #b>, %c: tensor<64x8xf32, #acc>, %n: i32) -> tensor<64x8xf32, #acc> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %c) -> (tensor<64x8xf32, #acc>) : i32 {
      %buffer = tilegpu.local_alloc %y : tensor<16x8xf16, #b> -> !tilegpu.buffer<16x8xf16, #sb>
      %0 = tilegpu.wgmma %x, %buffer, %s instr = [64, 8, 16] precision = ieee : tensor<64x16xf16, #a>, !tilegpu.buffer<16x8xf16, #sb> -> tensor<64x8xf32, #acc>
      %1 = tilegpu.wgmma_wait num = 0 (%0 : tensor<64x8xf32, #acc>)
      scf.yield %1 : tensor<64x8xf32, #acc>
    }
    return %r : tensor<64x8xf32, #acc>
  }

  // Products that only add to each other's accumulator need no wait between them.
  // CHECK-LABEL: func.func @chain
  // CHECK: tilegpu.wgmma %
  // CHECK-NEXT: tilegpu.wgmma %
  // CHECK-NEXT: tilegpu.wgmma_wait num = 0
  func.func @chain(%x: tensor<64x16xf16, #a>, %buffer: !tilegpu.buffer<16x8xf16, #sb>, %c: tensor<64x8xf32, #acc>) -> tensor<64x8xf32, #acc> {
    %0 = tilegpu.wgmma %x, %buffer, %c instr = [64, 8, 16] precision = ieee : tensor<64x16xf16, #a>, !tilegpu.buffer<16x8xf16, #sb> -> tensor<64x8xf32, #acc>
    %1 = tilegpu.wgmma_wait num = 0 (%0 : tensor<64x8xf32, #acc>)
    %2 = tilegpu.wgmma %x, %buffer, %1 instr = [64, 8, 16] precision = ieee : tensor<64x16xf16, #a>, !tilegpu.buffer<16x8xf16, #sb> -> tensor<64x8xf32, #acc>
    %3 = tilegpu.wgmma_wait num = 0 (%2 : tensor<64x8xf32, #acc>)
    return %3 : tensor<64x8xf32, #acc>
  }

  // A wait sinks to the first use; what is issued on the way stays in flight.
  // CHECK-LABEL: func.func @sunk
  // CHECK: tilegpu.wgmma %
  // CHECK-NEXT: tilegpu.wgmma %
  // CHECK-NEXT: %[[FIRST:.*]] = tilegpu.wgmma_wait num = 1
  // CHECK-NEXT: arith.addf %[[FIRST]], %[[FIRST]]
  // CHECK-NEXT: tilegpu.wgmma_wait num = 0
  func.func @sunk(%x: tensor<64x16xf16, #a>, %buffer: !tilegpu.buffer<16x8xf16, #sb>, %c: tensor<64x8xf32, #acc>, %d: tensor<64x8xf32, #acc>) -> tensor<64x8xf32, #acc> {
    %0 = tilegpu.wgmma %x, %buffer, %c instr = [64, 8, 16] precision = ieee : tensor<64x16xf16, #a>, !tilegpu.buffer<16x8xf16, #sb> -> tensor<64x8xf32, #acc>
    %1 = tilegpu.wgmma_wait num = 0 (%0 : tensor<64x8xf32, #acc>)
    %2 = tilegpu.wgmma %x, %buffer, %d instr = [64, 8, 16] precision = ieee : tensor<64x16xf16, #a>, !tilegpu.buffer<16x8xf16, #sb> -> tensor<64x8xf32, #acc>
    %3 = tilegpu.wgmma_wait num = 0 (%2 : tensor<64x8xf32, #acc>)
    %4 = arith.addf %1, %1 : tensor<64x8xf32, #acc>
    %5 = arith.addf %4, %3 : tensor<64x8xf32, #acc>
    return %5 : tensor<64x8xf32, #acc>
  }

  // A wait that meets a later one on its way, which covers it, becomes one with it.
  // CHECK-LABEL: func.func @merged
  // CHECK: %[[A:.*]] = tilegpu.wgmma %
  // CHECK-NEXT: %[[B:.*]] = tilegpu.wgmma %
  // CHECK-NEXT: %[[BOTH:.*]]:2 = tilegpu.wgmma_wait num = 0(%[[B]], %[[A]] :
  // CHECK-NEXT: arith.addf %[[BOTH]]#0, %[[BOTH]]#0
  // CHECK-NEXT: arith.addf %{{.*}}, %[[BOTH]]#1
  // CHECK-NEXT: return
  func.func @merged(%x: tensor<64x16xf16, #a>, %buffer: !tilegpu.buffer<16x8xf16, #sb>, %c: tensor<64x8xf32, #acc>, %d: tensor<64x8xf32, #acc>) -> tensor<64x8xf32, #acc> {
    %0 = tilegpu.wgmma %x, %buffer, %c instr = [64, 8, 16] precision = ieee : tensor<64x16xf16, #a>, !tilegpu.buffer<16x8xf16, #sb> -> tensor<64x8xf32, #acc>
    %1 = tilegpu.wgmma_wait num = 0 (%0 : tensor<64x8xf32, #acc>)
    %2 = tilegpu.wgmma %x, %buffer, %d instr = [64, 8, 16] precision = ieee : tensor<64x16xf16, #a>, !tilegpu.buffer<16x8xf16, #sb> -> tensor<64x8xf32, #acc>
    %3 = tilegpu.wgmma_wait num = 0 (%2 : tensor<64x8xf32, #acc>)
    %4 = arith.addf %3, %3 : tensor<64x8xf32, #acc>
    %5 = arith.addf %4, %1 : tensor<64x8xf32, #acc>
    return %5 : tensor<64x8xf32, #acc>
  }
  // A wait for no value stays where it is.
  // CHECK-LABEL: func.func @nothing
  // CHECK-NEXT: tilegpu.wgmma_wait num = 5
  // CHECK-NEXT: return
  func.func @nothing() {
    tilegpu.wgmma_wait num = 5
    return
  }
}

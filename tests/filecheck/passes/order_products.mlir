// RUN: tilewright-opt %s --passes=tilegpu-order-products | filecheck %s

#acc = #tilegpu.linear<register = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]], block = []>
#a = #tilegpu.linear<register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]], block = []>
#sb = #tilegpu.shared<offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0]]>
module attributes {tilegpu.num_ctas = 1 : i32, tilegpu.num_warps = 4 : i32, tilegpu.target = "cuda:90", tilegpu.threads_per_warp = 32 : i32} {
  // The loop only adds to the first product, and works on the second one: that is issued first.
  // CHECK-LABEL: func.func @works_on_the_second
  // CHECK: scf.for {{.*}} iter_args(%[[S:.*]] = %{{.*}}, %[[T:[^ ]*]] =
  // CHECK: %[[B:.*]] = tilegpu.wgmma %{{.*}}, %{{.*}}, %cst
  // CHECK-NEXT: %[[WB:.*]] = tilegpu.wgmma_wait num = 0(%[[B]]
  // CHECK-NEXT: %[[A:.*]] = tilegpu.wgmma %{{.*}}, %{{.*}}, %[[S]]
  // CHECK-NEXT: tilegpu.wgmma_wait num = 0(%[[A]]
  // CHECK-NEXT: arith.addf %[[T]], %[[WB]]
  func.func @works_on_the_second(%x: tensor<64x16xf16, #a>, %buffer: !tilegpu.buffer<16x8xf16, #sb>, %n: i32) -> (tensor<64x8xf32, #acc>, tensor<64x8xf32, #acc>) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %cst = arith.constant dense<0.0> : tensor<64x8xf32, #acc>
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%s = %cst, %t = %cst) -> (tensor<64x8xf32, #acc>, tensor<64x8xf32, #acc>) : i32 {
      %0 = tilegpu.wgmma %x, %buffer, %s instr = [64, 8, 16] precision = ieee : tensor<64x16xf16, #a>, !tilegpu.buffer<16x8xf16, #sb> -> tensor<64x8xf32, #acc>
      %1 = tilegpu.wgmma_wait num = 0 (%0 : tensor<64x8xf32, #acc>)
      %2 = tilegpu.wgmma %x, %buffer, %cst instr = [64, 8, 16] precision = ieee : tensor<64x16xf16, #a>, !tilegpu.buffer<16x8xf16, #sb> -> tensor<64x8xf32, #acc>
      %3 = tilegpu.wgmma_wait num = 0 (%2 : tensor<64x8xf32, #acc>)
      %4 = arith.addf %t, %3 : tensor<64x8xf32, #acc>
      scf.yield %1, %4 : tensor<64x8xf32, #acc>, tensor<64x8xf32, #acc>
    }
    return %r#0, %r#1 : tensor<64x8xf32, #acc>, tensor<64x8xf32, #acc>
  }

  // The second product adds to the first one's result: the order stays.
  // CHECK-LABEL: func.func @depends
  // CHECK: tilegpu.wgmma %{{.*}}, %{{.*}}, %[[S:arg[0-9]+]]
  // CHECK-NEXT: %[[W:.*]] = tilegpu.wgmma_wait
  // CHECK-NEXT: tilegpu.wgmma %{{.*}}, %{{.*}}, %[[W]]
  func.func @depends(%x: tensor<64x16xf16, #a>, %buffer: !tilegpu.buffer<16x8xf16, #sb>, %n: i32) -> tensor<64x8xf32, #acc> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %cst = arith.constant dense<0.0> : tensor<64x8xf32, #acc>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %cst) -> (tensor<64x8xf32, #acc>) : i32 {
      %0 = tilegpu.wgmma %x, %buffer, %s instr = [64, 8, 16] precision = ieee : tensor<64x16xf16, #a>, !tilegpu.buffer<16x8xf16, #sb> -> tensor<64x8xf32, #acc>
      %1 = tilegpu.wgmma_wait num = 0 (%0 : tensor<64x8xf32, #acc>)
      %2 = tilegpu.wgmma %x, %buffer, %1 instr = [64, 8, 16] precision = ieee : tensor<64x16xf16, #a>, !tilegpu.buffer<16x8xf16, #sb> -> tensor<64x8xf32, #acc>
      %3 = tilegpu.wgmma_wait num = 0 (%2 : tensor<64x8xf32, #acc>)
      scf.yield %3 : tensor<64x8xf32, #acc>
    }
    return %r : tensor<64x8xf32, #acc>
  }
}

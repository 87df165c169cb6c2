// RUN: tilewright-opt %s --passes=tilegpu-warp-specialize{num_stages=3},tilegpu-stage-stores,tilegpu-overlap-wgmma,tilegpu-defer-stores,canonicalize,cse | filecheck %s

// A tile is stored beside the second product of the next one, or beside the first if there is no other. What is stored is carried in
// registers, with its place. The last tile is stored at once; without products, all tiles are.

#acc = #tilegpu.linear<register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0], [64, 0]], block = []>
#load = #tilegpu.linear<register = [[0, 1], [0, 2], [0, 4], [32, 0], [64, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0], [16, 0]], block = []>
#load_b = #tilegpu.linear<register = [[0, 1], [0, 2], [0, 4], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0], [16, 0]], block = []>
#a = #tilegpu.shared<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0], [64, 0]]>
#b = #tilegpu.shared<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
#bt = #tilegpu.shared<offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [8, 1], [16, 2], [32, 4], [0, 8], [0, 16], [0, 32]]>

module attributes {tilegpu.num_ctas = 1 : i32, tilegpu.num_warps = 8 : i32, tilegpu.target = "cuda:90", tilegpu.threads_per_warp = 32 : i32} {
  // CHECK-LABEL: func.func @gemm
  // CHECK: tilegpu.warp_specialize
  // CHECK: %[[STAGED:.*]] = tilegpu.local_alloc : !tilegpu.buffer<128x64xf16
  // CHECK: %[[ANY:.*]] = arith.cmpi sgt, %[[STEPS:.*]], %c0_i32
  // CHECK: scf.if %[[ANY]] {
  // CHECK: scf.for %[[T:.*]] = %[[FIRST:.*]] to %[[TILES:.*]] step %{{.*}} iter_args(%[[SLOT:[a-z0-9]+]] = %c0_i32, %{{[a-z0-9]+}} = %c0_i32, %[[DONE:[a-z0-9]+]] = %{{[0-9]+}}, %[[ROW:[a-z0-9]+]] = %c0_i32)
  // CHECK: %[[BEFORE:.*]] = arith.cmpi sgt, %[[T]], %[[FIRST]]
  // CHECK-NEXT: %[[SUMS:.*]]:5 = scf.for %[[K:.*]] = %c0_i32 to %[[STEPS]] {{.*}} iter_args(%[[SUM:[a-z0-9]+]] = %{{[0-9]+}}, %{{[a-z0-9]+}} = %[[SLOT]], {{.*}}, %[[KEPT:[a-z0-9]+]] = %c0_i32)
  // CHECK: %[[AGAIN:.*]] = arith.cmpi sgt, %[[K]], %c0_i32
  // CHECK: tilegpu.mbarrier_wait
  // CHECK: tilegpu.wgmma %{{.*}}, %[[SUM]] use_acc = %[[AGAIN]]
  // CHECK: %[[AFTER:.*]] = arith.addi %[[K]], %c1_i32
  // CHECK: %[[END:.*]] = arith.cmpi sge, %[[AFTER]], %[[STEPS]]
  // CHECK: %[[EARLY:.*]] = arith.cmpi slt, %[[K]], %c2_i32
  // CHECK: %[[STORES:.*]] = arith.andi %[[BEFORE]], %[[EARLY]]
  // CHECK-NEXT: scf.if %[[STORES]] {
  // CHECK: %[[FEW:.*]] = arith.cmpi slt, %[[K]], %c1_i32
  // CHECK: %[[REST:.*]] = arith.andi %[[END]], %[[FEW]]
  // CHECK: %[[SECOND:.*]] = arith.cmpi eq, %[[K]], %c1_i32
  // CHECK: %[[DUE:.*]] = arith.ori %[[REST]], %[[SECOND]]
  // CHECK-NEXT: scf.if %[[DUE]] {
  // CHECK: tilegpu.tma_store_wait num = 0 read
  // CHECK-NEXT: tilegpu.local_store %[[DONE]], %[[STAGED]] {tilegpu.each_warp = 16 : i32}
  // CHECK-NEXT: tilegpu.fence_async
  // CHECK-NEXT: tilegpu.tma_store %{{.*}}[%[[ROW]], %c0_i32], %[[STAGED]]
  // CHECK: }
  // CHECK: %[[PLACE:.*]] = scf.if %{{.*}} -> (i32) {
  // CHECK: %[[OWN:.*]] = arith.muli %[[T]], %c128_i32
  // CHECK: scf.yield %[[OWN]]
  // CHECK: scf.yield %[[KEPT]]
  // CHECK: tilegpu.wgmma_wait num = 1
  // CHECK-NEXT: %[[E:.*]] = tilegpu.slot
  // CHECK-NEXT: tilegpu.mbarrier_arrive %[[E]] count = 1 pred = %[[AGAIN]] {tilegpu.each_warpgroup}
  // CHECK: scf.yield {{.*}}, %[[PLACE]]
  // CHECK: %[[ACC:.*]] = tilegpu.wgmma_wait num = 0(
  // CHECK: tilegpu.mbarrier_arrive
  // CHECK: %[[NEXT:.*]] = arith.addi %[[T]], %{{.*}}
  // CHECK-NEXT: %[[LAST:.*]] = arith.cmpi sge, %[[NEXT]], %[[TILES]]
  // CHECK-NEXT: %[[LEFT:.*]] = scf.if %[[LAST]] -> (tensor<128x64xf16, #{{.*}}>) {
  // CHECK-NEXT: %[[OWN:.*]] = tile.fp_to_fp %[[ACC]]
  // CHECK-NEXT: tilegpu.tma_store_wait num = 0 read
  // CHECK-NEXT: tilegpu.local_store %[[OWN]], %[[STAGED]]
  // CHECK-NEXT: tilegpu.fence_async
  // CHECK-NEXT: tilegpu.tma_store %{{.*}}[%[[SUMS]]#4, %c0_i32], %[[STAGED]]
  // CHECK: } else {
  // CHECK-NEXT: %[[HALF:.*]] = tile.fp_to_fp %[[ACC]]
  // CHECK-NEXT: scf.yield %[[HALF]]
  // CHECK: scf.yield %{{.*}}, %{{.*}}, %[[LEFT]], %[[SUMS]]#4
  // CHECK: } else {
  // CHECK: scf.for %[[T:.*]] = %[[FIRST]] to %[[TILES]]
  // CHECK: %[[AT:.*]] = arith.muli %[[T]], %c128_i32
  // CHECK: tilegpu.local_store %{{.*}}, %[[STAGED]]
  // CHECK: tilegpu.tma_store %{{.*}}[%[[AT]], %c0_i32]
  // CHECK: tilegpu.warp_yield
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

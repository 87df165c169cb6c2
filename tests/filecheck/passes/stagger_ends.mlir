// RUN: tilewright-opt %s --split-input-file --passes=tilegpu-warp-specialize{num_stages=3},tilegpu-stage-stores,tilegpu-overlap-wgmma,tilegpu-defer-stores,tilegpu-stagger-ends,canonicalize,cse | filecheck %s

// Two warpgroups do the last two iterations of the last tile one after the other, if the tile has so many. Each waits for its turn in front
// of these, and passes it on when it has issued the last product.

#acc = #tilegpu.linear<register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0], [64, 0]], block = []>
#load = #tilegpu.linear<register = [[0, 1], [0, 2], [0, 4], [32, 0], [64, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0], [16, 0]], block = []>
#load_b = #tilegpu.linear<register = [[0, 1], [0, 2], [0, 4], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0], [16, 0]], block = []>
#a = #tilegpu.shared<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0], [64, 0]]>
#b = #tilegpu.shared<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
#bt = #tilegpu.shared<offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [8, 1], [16, 2], [32, 4], [0, 8], [0, 16], [0, 32]]>

module attributes {tilegpu.num_ctas = 1 : i32, tilegpu.num_warps = 8 : i32, tilegpu.target = "cuda:90", tilegpu.threads_per_warp = 32 : i32} {
  // CHECK-LABEL: func.func @tiles
  // CHECK: tilegpu.warp_specialize
  // CHECK-NEXT: tilegpu.named_barrier_arrive id = 4 threads = 256 {tilegpu.last_warpgroup, tilegpu.turns = 2 : i32}
  // CHECK: scf.for %[[T:[a-z0-9]+]] = %{{.*}} to %[[TILES:[a-z0-9]+]] step %[[STEP:[a-z0-9_]+]] iter_args
  // CHECK: %[[START:.*]] = arith.subi %[[STEPS:[a-z0-9]+]], %c2_i32
  // CHECK-NEXT: %[[ENOUGH:.*]] = arith.cmpi sge, %[[START]], %c0_i32
  // CHECK-NEXT: %[[NEXT:.*]] = arith.addi %[[T]], %[[STEP]]
  // CHECK-NEXT: %[[LAST:.*]] = arith.cmpi sge, %[[NEXT]], %[[TILES]]
  // CHECK-NEXT: %[[ENDS:.*]] = arith.andi %[[ENOUGH]], %[[LAST]]
  // CHECK-NEXT: %[[AT:.*]] = arith.select %[[ENDS]], %[[START]], %[[STEPS]]
  // CHECK-NEXT: %[[BEHIND:.*]] = arith.addi %[[AT]], %c1_i32
  // CHECK-NEXT: scf.for %[[K:[a-z0-9]+]] = %c0_i32 to %[[STEPS]] {{.*}}
  // CHECK-NEXT: %[[REACHED:.*]] = arith.cmpi sge, %[[K]], %[[AT]]
  // CHECK-NEXT: %[[NOT:.*]] = arith.cmpi sgt, %[[BEHIND]], %[[K]]
  // CHECK-NEXT: %[[DUE:.*]] = arith.andi %[[REACHED]], %[[NOT]]
  // CHECK-NEXT: scf.if %[[DUE]] {
  // CHECK-NEXT: tilegpu.named_barrier_sync id = 4 threads = 256 {tilegpu.turns = 2 : i32}
  // CHECK-NEXT: }
  // CHECK: tilegpu.mbarrier_wait
  // CHECK: tilegpu.wgmma %
  // CHECK: tilegpu.wgmma_wait num = 1
  // CHECK: } {{{.*}}tilegpu.stagger = 2 : i32
  // CHECK-NEXT: scf.if %[[ENDS]] {
  // CHECK-NEXT: tilegpu.named_barrier_arrive id = 4 threads = 256 {tilegpu.turns = 2 : i32}
  // CHECK-NEXT: }
  // CHECK-NEXT: tilegpu.wgmma_wait num = 0(
  func.func @tiles(%pa: !tile.ptr<f16>, %pb: !tile.ptr<f16>, %pc: !tile.ptr<f16>, %tiles: i32, %steps: i32,
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
      } {tilegpu.slots = 3 : i32, tilegpu.stagger = 2 : i32}
      %h = tile.fp_to_fp %acc : tensor<128x64xf32, #acc> -> tensor<128x64xf16, #acc>
      tile.descriptor_store %dc[%row, %c0], %h : !tile.desc<128x64xf16, #a>, tensor<128x64xf16, #acc>
    } {tile.warp_specialize = true}
    return
  }
}

// -----

// One tile: it is the last one.

#acc = #tilegpu.linear<register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0], [64, 0]], block = []>
#load = #tilegpu.linear<register = [[0, 1], [0, 2], [0, 4], [32, 0], [64, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0], [16, 0]], block = []>
#load_b = #tilegpu.linear<register = [[0, 1], [0, 2], [0, 4], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0], [16, 0]], block = []>
#a = #tilegpu.shared<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0], [64, 0]]>
#b = #tilegpu.shared<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
#bt = #tilegpu.shared<offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [8, 1], [16, 2], [32, 4], [0, 8], [0, 16], [0, 32]]>

module attributes {tilegpu.num_ctas = 1 : i32, tilegpu.num_warps = 8 : i32, tilegpu.target = "cuda:90", tilegpu.threads_per_warp = 32 : i32} {
  // CHECK-LABEL: func.func @tile(
  // CHECK: tilegpu.warp_specialize
  // CHECK-NEXT: tilegpu.named_barrier_arrive id = 4 threads = 256 {tilegpu.last_warpgroup, tilegpu.turns = 2 : i32}
  // CHECK: %[[ENDS:.*]] = arith.cmpi sge
  // CHECK: scf.for
  // CHECK: tilegpu.named_barrier_sync
  // CHECK: scf.if %[[ENDS]] {
  // CHECK-NEXT: tilegpu.named_barrier_arrive
  func.func @tile(%pa: !tile.ptr<f16>, %pb: !tile.ptr<f16>, %pc: !tile.ptr<f16>, %steps: i32,
                   %da: !tile.desc<128x64xf16, #a> {tile.descriptor = {argument = 0 : i32}},
                   %db: !tile.desc<64x64xf16, #b> {tile.descriptor = {argument = 1 : i32}},
                   %dc: !tile.desc<128x64xf16, #a> {tile.descriptor = {argument = 2 : i32}}) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<128x64xf32, #acc>
    %row = tile.program_id 0
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
    } {tilegpu.slots = 3 : i32, tilegpu.stagger = 2 : i32, tile.warp_specialize = true}
    %h = tile.fp_to_fp %acc : tensor<128x64xf32, #acc> -> tensor<128x64xf16, #acc>
    tile.descriptor_store %dc[%row, %c0], %h : !tile.desc<128x64xf16, #a>, tensor<128x64xf16, #acc>
    return
  }
}

// -----

// As many blocks as the ring has slots are never full at the same time as the one before them is read: not done.

#acc = #tilegpu.linear<register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0], [64, 0]], block = []>
#load = #tilegpu.linear<register = [[0, 1], [0, 2], [0, 4], [32, 0], [64, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0], [16, 0]], block = []>
#load_b = #tilegpu.linear<register = [[0, 1], [0, 2], [0, 4], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0], [16, 0]], block = []>
#a = #tilegpu.shared<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0], [64, 0]]>
#b = #tilegpu.shared<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
#bt = #tilegpu.shared<offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [8, 1], [16, 2], [32, 4], [0, 8], [0, 16], [0, 32]]>

module attributes {tilegpu.num_ctas = 1 : i32, tilegpu.num_warps = 8 : i32, tilegpu.target = "cuda:90", tilegpu.threads_per_warp = 32 : i32} {
  // CHECK-LABEL: func.func @too_long(
  // CHECK-NOT: tilegpu.turns =
  func.func @too_long(%pa: !tile.ptr<f16>, %pb: !tile.ptr<f16>, %pc: !tile.ptr<f16>, %steps: i32,
                   %da: !tile.desc<128x64xf16, #a> {tile.descriptor = {argument = 0 : i32}},
                   %db: !tile.desc<64x64xf16, #b> {tile.descriptor = {argument = 1 : i32}},
                   %dc: !tile.desc<128x64xf16, #a> {tile.descriptor = {argument = 2 : i32}}) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<128x64xf32, #acc>
    %row = tile.program_id 0
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
    } {tilegpu.slots = 3 : i32, tilegpu.stagger = 3 : i32, tile.warp_specialize = true}
    %h = tile.fp_to_fp %acc : tensor<128x64xf32, #acc> -> tensor<128x64xf16, #acc>
    tile.descriptor_store %dc[%row, %c0], %h : !tile.desc<128x64xf16, #a>, tensor<128x64xf16, #acc>
    return
  }
}

// RUN: tilewright-opt %s --passes=tilegpu-overlap-programs | filecheck %s

// Attention without its softmax: a program multiplies a block of rows by blocks of keys, and what comes out by blocks of values, an iteration
// late. The loop over programs carries the product of the first block, which is issued for the next program in front of the wait for this
// one's last product. Programs without any block have a loop of their own.

#acc = #tilegpu.linear<register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0], [64, 0]], block = []>
#q = #tilegpu.shared<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0], [64, 0]]>
#k = #tilegpu.shared<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
#kt = #tilegpu.shared<offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [8, 1], [16, 2], [32, 4], [0, 8], [0, 16], [0, 32]]>
#bar = #tilegpu.shared<offset = [], rank = 1>

module attributes {tilegpu.num_ctas = 1 : i32, tilegpu.num_warps = 8 : i32, tilegpu.target = "cuda:90", tilegpu.threads_per_warp = 32 : i32} {
  // CHECK-LABEL: func.func @overlap
  // CHECK: %[[ANY:.*]] = arith.cmpi slt, %c0_i32, %arg1
  // CHECK-NEXT: scf.if %[[ANY]] {
  // CHECK-NEXT: %[[ONE:.*]] = arith.cmpi slt, %{{.*}}, %arg2
  // CHECK: tilegpu.mbarrier_wait %{{.*}}, %c0_i32 pred = %[[ONE]]
  // CHECK: tilegpu.mbarrier_wait %{{.*}}, %c0_i32 pred = %[[ONE]]
  // CHECK: %[[FIRST:.*]] = tilegpu.wgmma %
  // CHECK: %[[DONE:.*]] = tilegpu.wgmma_wait num = 0(%[[FIRST]] :
  // CHECK-NEXT: tilegpu.mbarrier_arrive %{{.*}} count = 1 pred = %[[ONE]]
  // CHECK-NEXT: scf.for %[[T:[a-z0-9]+]] = %{{.*}} to %arg2 step %[[STEP:[0-9]+]] iter_args({{.*}}, %[[READY:[a-z0-9]+]] = %[[DONE]])
  // CHECK-NOT: tilegpu.mbarrier_wait
  // CHECK: scf.while ({{.*}} = %[[READY]], {{.*}})
  // CHECK: } do {
  // CHECK: tilegpu.mbarrier_wait
  // CHECK: %[[LAST:.*]] = tilegpu.wgmma %{{[0-9]+#1}}, %{{.*}}, %{{[0-9]+#2}}
  // CHECK: %[[THEN:.*]] = arith.addi %[[T]], %[[STEP]]
  // CHECK-NEXT: %[[MORE:.*]] = arith.cmpi slt, %[[THEN]], %arg2
  // CHECK: tilegpu.mbarrier_wait %{{.*}} pred = %[[MORE]]
  // CHECK: tilegpu.mbarrier_wait %{{.*}} pred = %[[MORE]]
  // CHECK: %[[NEXT:.*]] = tilegpu.wgmma %
  // CHECK: %[[SUM:.*]] = tilegpu.wgmma_wait num = 1(%[[LAST]] :
  // CHECK: arith.addf %[[SUM]], %[[SUM]]
  // CHECK: tile.store
  // CHECK-NEXT: %[[NEXT_DONE:.*]] = tilegpu.wgmma_wait num = 0(%[[NEXT]] :
  // CHECK-NEXT: tilegpu.mbarrier_arrive %{{.*}} count = 1 pred = %[[MORE]]
  // CHECK-NEXT: scf.yield %{{.*}}, %{{.*}}, %[[NEXT_DONE]]
  // CHECK: } else {
  // CHECK: scf.for
  // CHECK: scf.if %false
  // CHECK: {tile.programs}
  func.func @overlap(%out: !tile.ptr<f32>, %n: i32, %programs: i32) {
    %first = tile.program_id 0
    %ctas = tile.num_programs 0
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.000000e+00> : tensor<128x64xf32, #acc>
    %ks = tilegpu.local_alloc : !tilegpu.buffer<64x64xf16, #k, slots = 2>
    %vs = tilegpu.local_alloc : !tilegpu.buffer<64x64xf16, #k, slots = 2>
    %qs = tilegpu.local_alloc : !tilegpu.buffer<128x64xf16, #q, slots = 2>
    %k_full = tilegpu.local_alloc : !tilegpu.buffer<1xi64, #bar, slots = 2>
    %k_empty = tilegpu.local_alloc : !tilegpu.buffer<1xi64, #bar, slots = 2>
    %v_full = tilegpu.local_alloc : !tilegpu.buffer<1xi64, #bar, slots = 2>
    %q_full = tilegpu.local_alloc : !tilegpu.buffer<1xi64, #bar, slots = 2>
    %q_empty = tilegpu.local_alloc : !tilegpu.buffer<1xi64, #bar, slots = 2>
    %any = arith.cmpi slt, %c0, %n : i32
    %all:2 = scf.for %t = %first to %programs step %ctas iter_args(%slot = %c0, %phase = %c0) -> (i32, i32) : i32 {
      %qf = tilegpu.slot %q_full[%slot] : !tilegpu.buffer<1xi64, #bar, slots = 2>
      tilegpu.mbarrier_wait %qf, %phase : !tilegpu.buffer<1xi64, #bar>
      %q = tilegpu.slot %qs[%slot] : !tilegpu.buffer<128x64xf16, #q, slots = 2>
      %sum = scf.if %any -> (tensor<128x64xf32, #acc>) {
        %kf = tilegpu.slot %k_full[%slot] : !tilegpu.buffer<1xi64, #bar, slots = 2>
        tilegpu.mbarrier_wait %kf, %phase : !tilegpu.buffer<1xi64, #bar>
        %k = tilegpu.slot %ks[%slot] : !tilegpu.buffer<64x64xf16, #k, slots = 2>
        %kt = tilegpu.view %k order = [1, 0] : !tilegpu.buffer<64x64xf16, #k> -> !tilegpu.buffer<64x64xf16, #kt>
        %s = tilegpu.wgmma %q, %kt, %zero instr = [64, 64, 16] precision = ieee : !tilegpu.buffer<128x64xf16, #q>, !tilegpu.buffer<64x64xf16, #kt> -> tensor<128x64xf32, #acc>
        %ke = tilegpu.slot %k_empty[%slot] : !tilegpu.buffer<1xi64, #bar, slots = 2>
        %s0 = tilegpu.wgmma_wait num = 0(%s : tensor<128x64xf32, #acc>)
        tilegpu.mbarrier_arrive %ke count = 1 {tilegpu.each_warpgroup} : !tilegpu.buffer<1xi64, #bar>
        %w:3 = scf.while (%i = %c0, %s1 = %s0, %o = %zero) : (i32, tensor<128x64xf32, #acc>, tensor<128x64xf32, #acc>) -> (i32, tensor<128x64xf16, #acc>, tensor<128x64xf32, #acc>) {
          %o1 = tilegpu.wgmma_wait num = 0(%o : tensor<128x64xf32, #acc>)
          %p = tile.fp_to_fp %s1 : tensor<128x64xf32, #acc> -> tensor<128x64xf16, #acc>
          %left = arith.subi %n, %i : i32
          %more = arith.cmpi sgt, %left, %c64 : i32
          scf.condition(%more) %i, %p, %o1 : i32, tensor<128x64xf16, #acc>, tensor<128x64xf32, #acc>
        } do {
        ^bb0(%i: i32, %p: tensor<128x64xf16, #acc>, %o: tensor<128x64xf32, #acc>):
          %k1 = tilegpu.slot %ks[%slot] : !tilegpu.buffer<64x64xf16, #k, slots = 2>
          %kt1 = tilegpu.view %k1 order = [1, 0] : !tilegpu.buffer<64x64xf16, #k> -> !tilegpu.buffer<64x64xf16, #kt>
          %s2 = tilegpu.wgmma %q, %kt1, %zero instr = [64, 64, 16] precision = ieee : !tilegpu.buffer<128x64xf16, #q>, !tilegpu.buffer<64x64xf16, #kt> -> tensor<128x64xf32, #acc>
          %v = tilegpu.slot %vs[%slot] : !tilegpu.buffer<64x64xf16, #k, slots = 2>
          %o2 = tilegpu.wgmma %p, %v, %o instr = [64, 64, 16] precision = ieee : tensor<128x64xf16, #acc>, !tilegpu.buffer<64x64xf16, #k> -> tensor<128x64xf32, #acc>
          %s3 = tilegpu.wgmma_wait num = 1(%s2 : tensor<128x64xf32, #acc>)
          %next = arith.addi %i, %c64 : i32
          scf.yield %next, %s3, %o2 : i32, tensor<128x64xf32, #acc>, tensor<128x64xf32, #acc>
        }
        %vf = tilegpu.slot %v_full[%slot] : !tilegpu.buffer<1xi64, #bar, slots = 2>
        tilegpu.mbarrier_wait %vf, %phase : !tilegpu.buffer<1xi64, #bar>
        %v = tilegpu.slot %vs[%slot] : !tilegpu.buffer<64x64xf16, #k, slots = 2>
        %o3 = tilegpu.wgmma %w#1, %v, %w#2 instr = [64, 64, 16] precision = ieee : tensor<128x64xf16, #acc>, !tilegpu.buffer<64x64xf16, #k> -> tensor<128x64xf32, #acc>
        %o4 = tilegpu.wgmma_wait num = 0(%o3 : tensor<128x64xf32, #acc>)
        scf.yield %o4 : tensor<128x64xf32, #acc>
      } else {
        scf.yield %zero : tensor<128x64xf32, #acc>
      }
      %qe = tilegpu.slot %q_empty[%slot] : !tilegpu.buffer<1xi64, #bar, slots = 2>
      tilegpu.mbarrier_arrive %qe count = 1 {tilegpu.each_warpgroup} : !tilegpu.buffer<1xi64, #bar>
      %total = arith.addf %sum, %sum : tensor<128x64xf32, #acc>
      %to = tile.splat %out : !tile.ptr<f32> -> tensor<128x64x!tile.ptr<f32>, #acc>
      tile.store %to, %total : tensor<128x64x!tile.ptr<f32>, #acc>
      %next_slot = arith.xori %slot, %c1 : i32
      %wraps = arith.cmpi eq, %next_slot, %c0 : i32
      %flip = arith.extui %wraps : i1 to i32
      %next_phase = arith.xori %phase, %flip : i32
      scf.yield %next_slot, %next_phase : i32, i32
    } {tile.programs}
    return
  }

  // The next program's rows have no place while this one's are read: nothing changes.
  // CHECK-LABEL: func.func @one_slot
  // CHECK-NOT: pred =
  // CHECK: scf.for
  // CHECK-NOT: pred =
  // CHECK: {tile.programs}
  func.func @one_slot(%out: !tile.ptr<f32>, %n: i32, %programs: i32) {
    %first = tile.program_id 0
    %ctas = tile.num_programs 0
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.000000e+00> : tensor<128x64xf32, #acc>
    %ks = tilegpu.local_alloc : !tilegpu.buffer<64x64xf16, #k, slots = 2>
    %vs = tilegpu.local_alloc : !tilegpu.buffer<64x64xf16, #k, slots = 2>
    %qs = tilegpu.local_alloc : !tilegpu.buffer<128x64xf16, #q, slots = 1>
    %k_full = tilegpu.local_alloc : !tilegpu.buffer<1xi64, #bar, slots = 2>
    %k_empty = tilegpu.local_alloc : !tilegpu.buffer<1xi64, #bar, slots = 2>
    %v_full = tilegpu.local_alloc : !tilegpu.buffer<1xi64, #bar, slots = 2>
    %q_full = tilegpu.local_alloc : !tilegpu.buffer<1xi64, #bar, slots = 1>
    %q_empty = tilegpu.local_alloc : !tilegpu.buffer<1xi64, #bar, slots = 1>
    %any = arith.cmpi slt, %c0, %n : i32
    %all:2 = scf.for %t = %first to %programs step %ctas iter_args(%slot = %c0, %phase = %c0) -> (i32, i32) : i32 {
      %qf = tilegpu.slot %q_full[%slot] : !tilegpu.buffer<1xi64, #bar, slots = 1>
      tilegpu.mbarrier_wait %qf, %phase : !tilegpu.buffer<1xi64, #bar>
      %q = tilegpu.slot %qs[%slot] : !tilegpu.buffer<128x64xf16, #q, slots = 1>
      %sum = scf.if %any -> (tensor<128x64xf32, #acc>) {
        %kf = tilegpu.slot %k_full[%slot] : !tilegpu.buffer<1xi64, #bar, slots = 2>
        tilegpu.mbarrier_wait %kf, %phase : !tilegpu.buffer<1xi64, #bar>
        %k = tilegpu.slot %ks[%slot] : !tilegpu.buffer<64x64xf16, #k, slots = 2>
        %kt = tilegpu.view %k order = [1, 0] : !tilegpu.buffer<64x64xf16, #k> -> !tilegpu.buffer<64x64xf16, #kt>
        %s = tilegpu.wgmma %q, %kt, %zero instr = [64, 64, 16] precision = ieee : !tilegpu.buffer<128x64xf16, #q>, !tilegpu.buffer<64x64xf16, #kt> -> tensor<128x64xf32, #acc>
        %ke = tilegpu.slot %k_empty[%slot] : !tilegpu.buffer<1xi64, #bar, slots = 2>
        %s0 = tilegpu.wgmma_wait num = 0(%s : tensor<128x64xf32, #acc>)
        tilegpu.mbarrier_arrive %ke count = 1 {tilegpu.each_warpgroup} : !tilegpu.buffer<1xi64, #bar>
        %w:3 = scf.while (%i = %c0, %s1 = %s0, %o = %zero) : (i32, tensor<128x64xf32, #acc>, tensor<128x64xf32, #acc>) -> (i32, tensor<128x64xf16, #acc>, tensor<128x64xf32, #acc>) {
          %o1 = tilegpu.wgmma_wait num = 0(%o : tensor<128x64xf32, #acc>)
          %p = tile.fp_to_fp %s1 : tensor<128x64xf32, #acc> -> tensor<128x64xf16, #acc>
          %left = arith.subi %n, %i : i32
          %more = arith.cmpi sgt, %left, %c64 : i32
          scf.condition(%more) %i, %p, %o1 : i32, tensor<128x64xf16, #acc>, tensor<128x64xf32, #acc>
        } do {
        ^bb0(%i: i32, %p: tensor<128x64xf16, #acc>, %o: tensor<128x64xf32, #acc>):
          %k1 = tilegpu.slot %ks[%slot] : !tilegpu.buffer<64x64xf16, #k, slots = 2>
          %kt1 = tilegpu.view %k1 order = [1, 0] : !tilegpu.buffer<64x64xf16, #k> -> !tilegpu.buffer<64x64xf16, #kt>
          %s2 = tilegpu.wgmma %q, %kt1, %zero instr = [64, 64, 16] precision = ieee : !tilegpu.buffer<128x64xf16, #q>, !tilegpu.buffer<64x64xf16, #kt> -> tensor<128x64xf32, #acc>
          %v = tilegpu.slot %vs[%slot] : !tilegpu.buffer<64x64xf16, #k, slots = 2>
          %o2 = tilegpu.wgmma %p, %v, %o instr = [64, 64, 16] precision = ieee : tensor<128x64xf16, #acc>, !tilegpu.buffer<64x64xf16, #k> -> tensor<128x64xf32, #acc>
          %s3 = tilegpu.wgmma_wait num = 1(%s2 : tensor<128x64xf32, #acc>)
          %next = arith.addi %i, %c64 : i32
          scf.yield %next, %s3, %o2 : i32, tensor<128x64xf32, #acc>, tensor<128x64xf32, #acc>
        }
        %vf = tilegpu.slot %v_full[%slot] : !tilegpu.buffer<1xi64, #bar, slots = 2>
        tilegpu.mbarrier_wait %vf, %phase : !tilegpu.buffer<1xi64, #bar>
        %v = tilegpu.slot %vs[%slot] : !tilegpu.buffer<64x64xf16, #k, slots = 2>
        %o3 = tilegpu.wgmma %w#1, %v, %w#2 instr = [64, 64, 16] precision = ieee : tensor<128x64xf16, #acc>, !tilegpu.buffer<64x64xf16, #k> -> tensor<128x64xf32, #acc>
        %o4 = tilegpu.wgmma_wait num = 0(%o3 : tensor<128x64xf32, #acc>)
        scf.yield %o4 : tensor<128x64xf32, #acc>
      } else {
        scf.yield %zero : tensor<128x64xf32, #acc>
      }
      %qe = tilegpu.slot %q_empty[%slot] : !tilegpu.buffer<1xi64, #bar, slots = 1>
      tilegpu.mbarrier_arrive %qe count = 1 {tilegpu.each_warpgroup} : !tilegpu.buffer<1xi64, #bar>
      %total = arith.addf %sum, %sum : tensor<128x64xf32, #acc>
      %to = tile.splat %out : !tile.ptr<f32> -> tensor<128x64x!tile.ptr<f32>, #acc>
      tile.store %to, %total : tensor<128x64x!tile.ptr<f32>, #acc>
      %next_slot = arith.xori %slot, %c1 : i32
      %wraps = arith.cmpi eq, %next_slot, %c0 : i32
      %flip = arith.extui %wraps : i1 to i32
      %next_phase = arith.xori %phase, %flip : i32
      scf.yield %next_slot, %next_phase : i32, i32
    } {tile.programs}
    return
  }
}

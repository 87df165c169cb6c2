// RUN: tilewright-opt %s --pass-pipeline='builtin.module(tilegpu-assign-layouts{target=cuda:90 num_warps=4},tilegpu-lower-dots)' | filecheck %s --check-prefix=DOT
// RUN: tilewright-opt %s --pass-pipeline='builtin.module(tilegpu-assign-layouts{target=cuda:90 num_warps=4},tilegpu-lower-dots,tilegpu-pipeline{num_stages=4},tilegpu-overlap-wgmma)' | filecheck %s --check-prefix=RING
// RUN: tilewright-opt %s --pass-pipeline='builtin.module(tilegpu-assign-layouts{target=cuda:90 num_warps=4},tilegpu-lower-dots,tilegpu-pipeline{num_stages=3},tilegpu-overlap-wgmma)' | filecheck %s --check-prefix=TIGHT
// RUN: tilewright-opt %s --pass-pipeline='builtin.module(tilegpu-assign-layouts{target=cuda:80 num_warps=4},tilegpu-lower-dots,tilegpu-pipeline{num_stages=3},tilegpu-overlap-wgmma)' | filecheck %s --check-prefix=SM80

// DOT: scf.for
// DOT: %[[A:.*]] = tile.load
// DOT-NEXT: %[[AB:.*]] = tilegpu.local_alloc %[[A]]
// DOT-NEXT: tilegpu.fence_async
// DOT: %[[B:.*]] = tile.load
// DOT-NEXT: %[[BB:.*]] = tilegpu.local_alloc %[[B]]
// DOT: %[[D:.*]] = tilegpu.wgmma %[[AB]], %[[BB]], %{{.*}} instr = [64, 128, 16]
// DOT-NEXT: tilegpu.wgmma_wait num = 0(%[[D]]

// One slot more than stages, so that the wgmma of the iteration before may still read when the copies are issued.
// RING: tilegpu.local_alloc : {{.*}}<128x64xbf16, #{{.*}}, slots = 5>
// RING-COUNT-3: tilegpu.async_commit
// RING: %[[LOOP:.*]]:{{[0-9]+}} = scf.for
// RING-NEXT: tilegpu.async_wait num = 2
// RING-NEXT: tilegpu.fence_async
// RING: tilegpu.wgmma
// RING: tilegpu.async_copy {{.*}}tilegpu.slot_is_free, tilegpu.vector = 8 : i32
// RING: tilegpu.async_commit
// RING: tilegpu.wgmma_wait num = 1{{$}}
// RING: scf.yield
// RING: %[[ACC:.*]] = tilegpu.wgmma_wait num = 0(%[[LOOP]]#0
// RING: tilegpu.async_wait num = 0
// Four lanes of the accumulator write a whole sector of 32 bytes: no conversion.
// RING-NOT: convert_layout
// RING: tile.store %{{.*}}, %[[ACC]] {tilegpu.vector = 2 : i32}

// Where a slot more would leave room for fewer CTAs, the copies wait for that wgmma.
// TIGHT: tilegpu.local_alloc : {{.*}}<128x64xbf16, #{{.*}}, slots = 3>
// TIGHT: scf.for
// TIGHT: tilegpu.wgmma
// TIGHT: tilegpu.wgmma_wait num = 1{{$}}
// TIGHT-NOT: slot_is_free
// TIGHT: tilegpu.async_copy

// SM80: tilegpu.local_alloc : {{.*}}<128x64xbf16, #{{.*}}, slots = 3>
// SM80: scf.for
// SM80-NEXT: tilegpu.async_wait num = 1
// SM80: tilegpu.async_copy
// SM80: tilegpu.async_commit
// SM80: tilegpu.local_load
// SM80: tilegpu.local_load
// SM80: tilegpu.mma {{.*}} instr = [16, 8, 16]

func.func public @gemm(%a: !tile.ptr<bf16> {tile.divisibility = 16 : i32}, %b: !tile.ptr<bf16> {tile.divisibility = 16 : i32},
                       %c: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %n: i32, %stride: i32 {tile.divisibility = 16 : i32}) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %m = tile.range 0 to 128 : tensor<128xi32>
  %k = tile.range 0 to 64 : tensor<64xi32>
  %stride_m = tile.splat %stride : i32 -> tensor<128x1xi32>
  %stride_k = tile.splat %stride : i32 -> tensor<64x1xi32>
  %m1 = tile.expand_dims %m axis = 1 : tensor<128xi32> -> tensor<128x1xi32>
  %m0 = tile.expand_dims %m axis = 0 : tensor<128xi32> -> tensor<1x128xi32>
  %k1 = tile.expand_dims %k axis = 1 : tensor<64xi32> -> tensor<64x1xi32>
  %k0 = tile.expand_dims %k axis = 0 : tensor<64xi32> -> tensor<1x64xi32>
  %rows_a = arith.muli %m1, %stride_m : tensor<128x1xi32>
  %rows_b = arith.muli %k1, %stride_k : tensor<64x1xi32>
  %ra = tile.broadcast %rows_a : tensor<128x1xi32> -> tensor<128x64xi32>
  %ca = tile.broadcast %k0 : tensor<1x64xi32> -> tensor<128x64xi32>
  %oa = arith.addi %ra, %ca : tensor<128x64xi32>
  %rb = tile.broadcast %rows_b : tensor<64x1xi32> -> tensor<64x128xi32>
  %cb = tile.broadcast %m0 : tensor<1x128xi32> -> tensor<64x128xi32>
  %ob = arith.addi %rb, %cb : tensor<64x128xi32>
  %sa = tile.splat %a : !tile.ptr<bf16> -> tensor<128x64x!tile.ptr<bf16>>
  %pa = tile.addptr %sa, %oa : tensor<128x64x!tile.ptr<bf16>>, tensor<128x64xi32>
  %sb = tile.splat %b : !tile.ptr<bf16> -> tensor<64x128x!tile.ptr<bf16>>
  %pb = tile.addptr %sb, %ob : tensor<64x128x!tile.ptr<bf16>>, tensor<64x128xi32>
  %step_a = arith.constant dense<64> : tensor<128x64xi32>
  %step = arith.constant 64 : i32
  %by = arith.muli %step, %stride : i32
  %step_b = tile.splat %by : i32 -> tensor<64x128xi32>
  %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero, %x = %pa, %y = %pb)
      -> (tensor<128x128xf32>, tensor<128x64x!tile.ptr<bf16>>, tensor<64x128x!tile.ptr<bf16>>) : i32 {
    %va = tile.load %x : tensor<128x64x!tile.ptr<bf16>>
    %vb = tile.load %y : tensor<64x128x!tile.ptr<bf16>>
    %d = tile.dot %va, %vb, %acc precision = ieee : tensor<128x64xbf16>, tensor<64x128xbf16> -> tensor<128x128xf32>
    %nx = tile.addptr %x, %step_a : tensor<128x64x!tile.ptr<bf16>>, tensor<128x64xi32>
    %ny = tile.addptr %y, %step_b : tensor<64x128x!tile.ptr<bf16>>, tensor<64x128xi32>
    scf.yield %d, %nx, %ny : tensor<128x128xf32>, tensor<128x64x!tile.ptr<bf16>>, tensor<64x128x!tile.ptr<bf16>>
  }
  %rc = tile.broadcast %rows_a : tensor<128x1xi32> -> tensor<128x128xi32>
  %cc = tile.broadcast %m0 : tensor<1x128xi32> -> tensor<128x128xi32>
  %oc = arith.addi %rc, %cc : tensor<128x128xi32>
  %sc = tile.splat %c : !tile.ptr<f32> -> tensor<128x128x!tile.ptr<f32>>
  %pc = tile.addptr %sc, %oc : tensor<128x128x!tile.ptr<f32>>, tensor<128x128xi32>
  tile.store %pc, %r#0 : tensor<128x128x!tile.ptr<f32>>
  return
}

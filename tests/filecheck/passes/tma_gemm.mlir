// RUN: tilewright-opt %s --pass-pipeline='builtin.module(tile-host-descriptors{target=cuda:90},tile-lower-descriptors,canonicalize,tilegpu-assign-layouts{target=cuda:90 num_warps=4},tilegpu-lower-dots,tilegpu-place-descriptors,tilegpu-pipeline{num_stages=3},tilegpu-lower-tma,tilegpu-stage-stores,tilegpu-overlap-wgmma)' | filecheck %s

// CHECK-DAG: #[[SWIZZLED:.*]] = #tilegpu.shared<offset = {{\[\[}}0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>

// CHECK-LABEL: func.func public @gemm
// CHECK-SAME: !tile.desc<64x64xf16, #[[SWIZZLED]]>
func.func public @gemm(%pa: !tile.ptr<f16>, %pb: !tile.ptr<f16>, %pc: !tile.ptr<f16>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %one = arith.constant 1 : i64
  %s = arith.constant 512 : i64
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %a = tile.make_descriptor %pa, shape = [%n, %n], strides = [%s, %one], padding = zero : !tile.ptr<f16> -> !tile.desc<64x64xf16>
  %b = tile.make_descriptor %pb, shape = [%n, %n], strides = [%s, %one], padding = zero : !tile.ptr<f16> -> !tile.desc<64x64xf16>
  %c = tile.make_descriptor %pc, shape = [%n, %n], strides = [%s, %one], padding = zero : !tile.ptr<f16> -> !tile.desc<64x64xf16>
  // One mbarrier for each slot; the first copies are announced, and left out where there is no iteration for them.
  // CHECK: tilegpu.local_alloc : {{.*}}<64x64xf16, #[[SWIZZLED]], slots = 3>
  // CHECK: %[[FULL:.*]] = tilegpu.local_alloc : {{.*}}<1xi64, {{.*}}, slots = 3>
  // CHECK: tilegpu.mbarrier_init %[[FULL]] count = 1
  // CHECK: tilegpu.mbarrier_expect %{{.*}} bytes = 16384 pred =
  // CHECK-COUNT-4: tilegpu.tma_load %{{.*}} pred =
  // CHECK: scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[SLOT:.*]] = %{{.*}}, %[[OLDEST:.*]] = %{{.*}}, %[[PARITY:.*]] = %{{.*}})
  %acc = scf.for %k = %c0 to %n step %c64 iter_args(%sum = %zero) -> (tensor<64x64xf32>) : i32 {
    // CHECK-NEXT: %[[SLOT_FULL:.*]] = tilegpu.slot %[[FULL]][%[[SLOT]]]
    // CHECK-NEXT: tilegpu.mbarrier_wait %[[SLOT_FULL]], %[[PARITY]]
    %x = tile.descriptor_load %a[%c0, %k] : !tile.desc<64x64xf16> -> tensor<64x64xf16>
    %y = tile.descriptor_load %b[%k, %c0] : !tile.desc<64x64xf16> -> tensor<64x64xf16>
    // Copies for a later iteration stand behind the wait for the wgmma that read their slot.
    // CHECK: tilegpu.wgmma
    // CHECK-NEXT: tilegpu.wgmma_wait num = 1
    // CHECK: %[[FREE:.*]] = tilegpu.slot %[[FULL]][%[[OLDEST]]]
    // CHECK-NEXT: tilegpu.mbarrier_expect %[[FREE]] bytes = 16384 pred = %[[MORE:.*]] :
    // CHECK-COUNT-2: tilegpu.tma_load %{{.*}}, %[[FREE]] pred = %[[MORE]]
    // CHECK: arith.xori %[[PARITY]]
    %d = tile.dot %x, %y, %sum precision = tf32 : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  // CHECK-NOT: async_
  // CHECK: %[[STAGED:.*]] = tilegpu.local_alloc : {{.*}}<64x64xf16, #[[SWIZZLED]]>
  // CHECK-NEXT: tilegpu.local_store %{{.*}}, %[[STAGED]]
  // CHECK-NEXT: tilegpu.fence_async
  // CHECK-NEXT: tilegpu.tma_store %{{.*}}, %[[STAGED]]
  // CHECK-NEXT: tilegpu.tma_store_wait num = 0 read
  %half = tile.fp_to_fp %acc : tensor<64x64xf32> -> tensor<64x64xf16>
  tile.descriptor_store %c[%c0, %c0], %half : !tile.desc<64x64xf16>, tensor<64x64xf16>
  return
}

// Outside of a pipelined loop a load waits for an mbarrier of its own. In a loop, a store is waited for before the next one.
// CHECK-LABEL: func.func public @copy
func.func public @copy(%p: !tile.ptr<f32>, %q: !tile.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %one = arith.constant 1 : i64
  %s = arith.constant 32 : i64
  %a = tile.make_descriptor %p, shape = [%n, %n], strides = [%s, %one], padding = zero : !tile.ptr<f32> -> !tile.desc<32x32xf32>
  %b = tile.make_descriptor %q, shape = [%n, %n], strides = [%s, %one], padding = zero : !tile.ptr<f32> -> !tile.desc<32x32xf32>
  // CHECK: scf.for
  scf.for %k = %c0 to %n step %c32 : i32 {
    // CHECK: tilegpu.mbarrier_init %[[BAR:.*]] count = 1
    // CHECK: tilegpu.mbarrier_expect %[[BAR]] bytes = 4096
    // CHECK-NEXT: tilegpu.tma_load %arg3[%{{.*}}], %[[BUFFER:.*]], %[[BAR]] :
    // CHECK: tilegpu.mbarrier_wait %[[BAR]], %
    // CHECK-NEXT: %[[VALUE:.*]] = tilegpu.local_load %[[BUFFER]]
    %x = tile.descriptor_load %a[%k, %c0] : !tile.desc<32x32xf32> -> tensor<32x32xf32>
    // CHECK: tilegpu.tma_store_wait num = 0 read
    // CHECK-NEXT: tilegpu.local_store %[[VALUE]], %[[OUT:.*]] :
    // CHECK: tilegpu.tma_store %arg4[%{{.*}}], %[[OUT]]
    tile.descriptor_store %b[%k, %c0], %x : !tile.desc<32x32xf32>, tensor<32x32xf32>
    // CHECK-NEXT: }
  }
  // CHECK-NEXT: tilegpu.tma_store_wait num = 0 read
  // CHECK-NEXT: return
  return
}

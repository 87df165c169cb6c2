// RUN: tilewright-opt %s | tilewright-opt | filecheck %s

// CHECK-LABEL: func.func @loads
func.func @loads(%p: !tile.ptr<f32>, %t: tensor<4x!tile.ptr<f16>>, %m: tensor<4xi1>, %o: tensor<4xf16>) {
  // CHECK: tile.load %{{.*}} : !tile.ptr<f32>
  %0 = tile.load %p : !tile.ptr<f32>
  // CHECK: tile.load %{{.*}} mask = %{{.*}} other = %{{.*}} cache = cg evict = evict_first volatile : tensor<4x!tile.ptr<f16>>
  %1 = tile.load %t mask = %m other = %o cache = cg evict = evict_first volatile : tensor<4x!tile.ptr<f16>>
  // CHECK: tile.store %{{.*}}, %{{.*}} mask = %{{.*}} cache = wt evict = evict_last : tensor<4x!tile.ptr<f16>>
  tile.store %t, %1 mask = %m cache = wt evict = evict_last : tensor<4x!tile.ptr<f16>>
  // CHECK: tile.store %{{.*}}, %{{.*}} : !tile.ptr<f32>
  tile.store %p, %0 : !tile.ptr<f32>
  return
}

// CHECK-LABEL: func.func @atomics
func.func @atomics(%p: !tile.ptr<i32>, %t: tensor<4x!tile.ptr<f32>>, %m: tensor<4xi1>, %v: tensor<4xf32>, %i: i32, %ns: i64) {
  // CHECK: tile.atomic_rmw fadd relaxed sys %{{.*}}, %{{.*}} mask = %{{.*}} : tensor<4x!tile.ptr<f32>>
  %0 = tile.atomic_rmw fadd relaxed sys %t, %v mask = %m : tensor<4x!tile.ptr<f32>>
  // CHECK: tile.atomic_rmw umax acq_rel gpu %{{.*}}, %{{.*}} : !tile.ptr<i32>
  %1 = tile.atomic_rmw umax acq_rel gpu %p, %i : !tile.ptr<i32>
  // CHECK: tile.atomic_cas acquire cta %{{.*}}, %{{.*}}, %{{.*}} : !tile.ptr<i32>
  %2 = tile.atomic_cas acquire cta %p, %i, %i : !tile.ptr<i32>
  // CHECK: tile.atomic_load acquire gpu %{{.*}} mask = %{{.*}} : tensor<4x!tile.ptr<f32>>
  %3 = tile.atomic_load acquire gpu %t mask = %m : tensor<4x!tile.ptr<f32>>
  // CHECK: tile.atomic_store release gpu %{{.*}}, %{{.*}} : !tile.ptr<i32>
  tile.atomic_store release gpu %p, %i : !tile.ptr<i32>
  // CHECK: tile.atomic_poll acquire gpu %{{.*}}, %{{.*}} timeout = %{{.*}} : !tile.ptr<i32>
  %4 = tile.atomic_poll acquire gpu %p, %i timeout = %ns : !tile.ptr<i32>
  return
}

// Ordering and scope have defaults.
// CHECK-LABEL: func.func @atomic_defaults
func.func @atomic_defaults(%p: !tile.ptr<i32>, %i: i32) {
  // CHECK: tile.atomic_rmw add acq_rel gpu
  %0 = "tile.atomic_rmw"(%p, %i) {kind = #tile<rmw add>} : (!tile.ptr<i32>, i32) -> i32
  // CHECK: tile.atomic_load acquire gpu
  %1 = "tile.atomic_load"(%p) : (!tile.ptr<i32>) -> i32
  return
}

// CHECK-LABEL: func.func @descriptors
func.func @descriptors(%p: !tile.ptr<f16>, %n: i32, %s: i64, %v: tensor<32x64xf16>, %x: tensor<8xi32>, %rows: tensor<8x64xf16>) {
  // CHECK: %[[D:.*]] = tile.make_descriptor %{{.*}}, shape = [%{{.*}}, %{{.*}}], strides = [%{{.*}}, %{{.*}}], padding = nan : !tile.ptr<f16> -> !tile.desc<32x64xf16>
  %d = tile.make_descriptor %p, shape = [%n, %n], strides = [%s, %s], padding = nan : !tile.ptr<f16> -> !tile.desc<32x64xf16>
  // CHECK: tile.descriptor_load %[[D]][%{{.*}}, %{{.*}}] cache = ca evict = evict_normal : !tile.desc<32x64xf16> -> tensor<32x64xf16>
  %0 = tile.descriptor_load %d[%n, %n] cache = ca evict = evict_normal : !tile.desc<32x64xf16> -> tensor<32x64xf16>
  // CHECK: tile.descriptor_store %[[D]][%{{.*}}, %{{.*}}], %{{.*}} : !tile.desc<32x64xf16>, tensor<32x64xf16>
  tile.descriptor_store %d[%n, %n], %v : !tile.desc<32x64xf16>, tensor<32x64xf16>
  // CHECK: tile.descriptor_reduce fadd %[[D]][%{{.*}}, %{{.*}}], %{{.*}} : !tile.desc<32x64xf16>, tensor<32x64xf16>
  tile.descriptor_reduce fadd %d[%n, %n], %v : !tile.desc<32x64xf16>, tensor<32x64xf16>
  %r = tile.make_descriptor %p, shape = [%n, %n], strides = [%s, %s], padding = zero : !tile.ptr<f16> -> !tile.desc<1x64xf16>
  // CHECK: tile.descriptor_gather %{{.*}}[%{{.*}}, %{{.*}}] : !tile.desc<1x64xf16>, tensor<8xi32> -> tensor<8x64xf16>
  %1 = tile.descriptor_gather %r[%x, %n] : !tile.desc<1x64xf16>, tensor<8xi32> -> tensor<8x64xf16>
  // CHECK: tile.descriptor_scatter %{{.*}}[%{{.*}}, %{{.*}}], %{{.*}} : !tile.desc<1x64xf16>, tensor<8xi32>, tensor<8x64xf16>
  tile.descriptor_scatter %r[%x, %n], %rows : !tile.desc<1x64xf16>, tensor<8xi32>, tensor<8x64xf16>
  return
}

// RUN: tilewright-opt %s --passes='tile-loop-programs{target=cuda:90 num_warps=4},canonicalize,loop-invariant-code-motion' | filecheck %s
// RUN: tilewright-opt %s --passes='tile-loop-programs{target=cuda:80 num_warps=4}' | filecheck %s --check-prefix=NONE
// RUN: tilewright-opt %s --passes='tile-loop-programs{target=cuda:90 num_warps=4 force=true}' | filecheck %s --check-prefix=FORCED

// NONE-NOT: tile.programs

// A loop over products whose blocks TMA loads: all of the kernel becomes the body of a loop over programs.
// CHECK-LABEL: func.func public @product
// CHECK-SAME: %arg4: i32 {tile.alike, tile.grid = 0 : i32}, %arg5: i32 {tile.alike, tile.grid = 1 : i32}, %arg6: i32 {tile.alike, tile.grid = 2 : i32}
// CHECK-DAG: %[[FIRST:.*]] = tile.program_id 0
// CHECK-DAG: %[[STEP:.*]] = tile.num_programs 0
// CHECK-DAG: %[[PLANE:.*]] = arith.muli %arg4, %arg5
// CHECK-DAG: %[[COUNT:.*]] = arith.muli %[[PLANE]], %arg6
// CHECK-DAG: arith.sitofp %arg4
// CHECK: scf.for %[[T:.*]] = %[[FIRST]] to %[[COUNT]] step %[[STEP]]
// CHECK: %[[X:.*]] = arith.remui %[[T]], %arg4
// CHECK: %[[ROW:.*]] = arith.muli %[[X]], %c128_i32
// CHECK: scf.for
// CHECK: tile.descriptor_load %arg0[%[[ROW]],
// CHECK: tile.descriptor_store %arg2[%[[ROW]], %c0_i32]
// CHECK: } {tile.programs}
// CHECK-NOT: tile.num_programs
func.func public @product(%a: !tile.desc<128x64xf16>, %b: !tile.desc<64x128xf16>, %c: !tile.desc<128x128xf32>, %k: i32) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %zeros = arith.constant dense<0.0> : tensor<128x128xf32>
  %id = tile.program_id 0
  %row = arith.muli %id, %c128 : i32
  %n = tile.num_programs 0
  %count = arith.sitofp %n : i32 to f32
  %counts = tile.splat %count : f32 -> tensor<128x128xf32>
  %sum = scf.for %i = %c0 to %k step %c64 iter_args(%acc = %zeros) -> (tensor<128x128xf32>) : i32 {
    %x = tile.descriptor_load %a[%row, %i] : !tile.desc<128x64xf16> -> tensor<128x64xf16>
    %y = tile.descriptor_load %b[%i, %c0] : !tile.desc<64x128xf16> -> tensor<64x128xf16>
    %next = tile.dot %x, %y, %acc precision = tf32 : tensor<128x64xf16>, tensor<64x128xf16> -> tensor<128x128xf32>
    scf.yield %next : tensor<128x128xf32>
  }
  %out = arith.addf %sum, %counts : tensor<128x128xf32>
  tile.descriptor_store %c[%row, %c0], %out : !tile.desc<128x128xf32>, tensor<128x128xf32>
  return
}

// Programs of different length, and one without products: these may be forced. Those that may wait for each other may not.
// CHECK-LABEL: func.func public @triangle
// CHECK-NOT: tile.programs
// FORCED-LABEL: func.func public @triangle
// FORCED-SAME: i32 {tile.grid = 0 : i32}
// FORCED: tile.programs
func.func public @triangle(%a: !tile.desc<128x64xf16>, %b: !tile.desc<64x128xf16>, %c: !tile.desc<128x128xf32>) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %zeros = arith.constant dense<0.0> : tensor<128x128xf32>
  %id = tile.program_id 0
  %row = arith.muli %id, %c128 : i32
  %sum = scf.for %i = %c0 to %row step %c64 iter_args(%acc = %zeros) -> (tensor<128x128xf32>) : i32 {
    %x = tile.descriptor_load %a[%row, %i] : !tile.desc<128x64xf16> -> tensor<128x64xf16>
    %y = tile.descriptor_load %b[%i, %c0] : !tile.desc<64x128xf16> -> tensor<64x128xf16>
    %next = tile.dot %x, %y, %acc precision = tf32 : tensor<128x64xf16>, tensor<64x128xf16> -> tensor<128x128xf32>
    scf.yield %next : tensor<128x128xf32>
  }
  tile.descriptor_store %c[%row, %c0], %sum : !tile.desc<128x128xf32>, tensor<128x128xf32>
  return
}

// CHECK-LABEL: func.func public @plane
// CHECK-NOT: tile.programs
// FORCED-LABEL: func.func public @plane
// FORCED: %[[T:.*]] = arith.divui %{{.*}}, %arg1
// FORCED: arith.remui %[[T]], %arg2
// FORCED: tile.programs
func.func public @plane(%c: !tile.desc<64x64xf32>) {
  %zeros = arith.constant dense<0.0> : tensor<64x64xf32>
  %x = tile.program_id 0
  %y = tile.program_id 1
  tile.descriptor_store %c[%y, %x], %zeros : !tile.desc<64x64xf32>, tensor<64x64xf32>
  return
}

// FORCED-LABEL: func.func public @ordered
// FORCED-NOT: tile.programs
func.func public @ordered(%p: !tile.ptr<i32>, %c: !tile.desc<64x64xf32>) {
  %zeros = arith.constant dense<0.0> : tensor<64x64xf32>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %x = tile.program_id 0
  %old = tile.atomic_rmw add acq_rel gpu %p, %c1 : !tile.ptr<i32>
  tile.descriptor_store %c[%old, %x], %zeros : !tile.desc<64x64xf32>, tensor<64x64xf32>
  return
}

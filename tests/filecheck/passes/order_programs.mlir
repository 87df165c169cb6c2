// RUN: tilewright-opt %s --split-input-file --passes=tile-order-programs,canonicalize | filecheck %s

// The loop is the longer the greater the program id: that counts down.
// CHECK-LABEL: func.func @grows
// CHECK: %[[ID:.*]] = tile.program_id 0
// CHECK: %[[N:.*]] = tile.num_programs 0
// CHECK: %[[LAST:.*]] = arith.subi %[[N]], %c1_i32
// CHECK: arith.subi %[[LAST]], %[[ID]]
func.func @grows(%x: f32) -> f32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %id = tile.program_id 0
  %next = arith.addi %id, %c1 : i32
  %n = arith.muli %next, %c64 : i32
  %r = scf.for %i = %c0 to %n step %c64 iter_args(%s = %x) -> (f32) : i32 {
    %t = arith.addf %s, %x : f32
    scf.yield %t : f32
  }
  return %r : f32
}

// -----

// With a second id, programs are numbered anew: groups of at least 256 of them, the longest of each group first.
// CHECK-LABEL: func.func @grows_in_a_plane
// CHECK: %[[N:.*]] = tile.num_programs 0
// CHECK: %[[LESS:.*]] = arith.divui %c255_i32, %[[N]]
// CHECK: %[[HEADS:.*]] = arith.addi %[[LESS]], %c1_i32
// CHECK: arith.minui %[[HEADS]],
// CHECK: %[[ALONG:.*]] = arith.divui
// CHECK: arith.subi %{{.*}}, %[[ALONG]]
func.func @grows_in_a_plane(%p: !tile.ptr<f32>, %x: f32) -> f32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %id = tile.program_id 0
  %other = tile.program_id 1
  %next = arith.addi %id, %c1 : i32
  %at = tile.addptr %p, %other : !tile.ptr<f32>, i32
  %y = tile.load %at : !tile.ptr<f32>
  %r = scf.for %i = %c0 to %next step %c1 iter_args(%s = %x) -> (f32) : i32 {
    %t = arith.addf %s, %y : f32
    scf.yield %t : f32
  }
  return %r : f32
}

// -----

// It shrinks: the order is good as it is. Likewise where the length does not depend on the id, or in a way that is not plain to see.
// CHECK-LABEL: func.func @shrinks
// CHECK-NOT: tile.num_programs
// CHECK-LABEL: func.func @window
// CHECK-NOT: tile.num_programs
func.func @shrinks(%x: f32, %n: i32) -> f32 {
  %c1 = arith.constant 1 : i32
  %id = tile.program_id 0
  %r = scf.for %i = %id to %n step %c1 iter_args(%s = %x) -> (f32) : i32 {
    %t = arith.addf %s, %x : f32
    scf.yield %t : f32
  }
  return %r : f32
}

func.func @window(%x: f32, %n: i32) -> f32 {
  %c1 = arith.constant 1 : i32
  %id = tile.program_id 0
  %end = arith.addi %id, %n : i32
  %r = scf.for %i = %id to %end step %c1 iter_args(%s = %x) -> (f32) : i32 {
    %t = arith.addf %s, %x : f32
    scf.yield %t : f32
  }
  return %r : f32
}

// -----

// Programs that may wait for each other keep their order.
// CHECK-LABEL: func.func @waits
// CHECK-NOT: tile.num_programs
func.func @waits(%p: !tile.ptr<i32>, %x: f32) -> f32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %id = tile.program_id 0
  %old = tile.atomic_rmw add acq_rel gpu %p, %c1 : !tile.ptr<i32>
  %r = scf.for %i = %c0 to %id step %c1 iter_args(%s = %x) -> (f32) : i32 {
    %t = arith.addf %s, %x : f32
    scf.yield %t : f32
  }
  return %r : f32
}

// CHECK-LABEL: func.func @waits_in_assembly
// CHECK-NOT: tile.num_programs
func.func @waits_in_assembly(%p: i64, %x: f32) -> f32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %id = tile.program_id 0
  %old = tile.inline_asm "ld.acquire.gpu.b32 $0, [$1];", "=r,l"(%p) : (i64) -> i32
  %r = scf.for %i = %c0 to %id step %c1 iter_args(%s = %x) -> (f32) : i32 {
    %t = arith.addf %s, %x : f32
    scf.yield %t : f32
  }
  return %r : f32
}

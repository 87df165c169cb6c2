// What upstream's passes need of the dialect: effects, speculation, inlining, constants.
// RUN: tilewright-opt %s --passes=inline,symbol-dce,sccp,canonicalize,cse,loop-invariant-code-motion,canonicalize | filecheck %s

// CHECK-NOT: @helper
// CHECK-LABEL: func.func @inlined
// CHECK: tile.range
// CHECK-NEXT: %[[P:.*]] = tile.addptr
// CHECK-NEXT: tile.load %[[P]]
// CHECK-NEXT: tile.store
func.func private @helper(%p: tensor<8x!tile.ptr<f32>>) -> tensor<8xf32> {
  %r = tile.range 0 to 8 : tensor<8xi32>
  %q = tile.addptr %p, %r : tensor<8x!tile.ptr<f32>>, tensor<8xi32>
  %v = tile.load %q : tensor<8x!tile.ptr<f32>>
  return %v : tensor<8xf32>
}

func.func @inlined(%p: tensor<8x!tile.ptr<f32>>) {
  %v = func.call @helper(%p) : (tensor<8x!tile.ptr<f32>>) -> tensor<8xf32>
  tile.store %p, %v : tensor<8x!tile.ptr<f32>>
  return
}

// Pure ops leave the loop, one of two equal loads remains, no load crosses a store.
// CHECK-LABEL: func.func @loop
// CHECK: tile.splat
// CHECK: scf.for
// CHECK-NEXT: %[[V:.*]] = tile.load
// CHECK-NEXT: %[[S:.*]] = arith.addf %[[V]], %[[V]]
// CHECK-NEXT: tile.store %{{.*}}, %[[S]]
// CHECK-NEXT: }
func.func @loop(%p: !tile.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    %q = tile.splat %p : !tile.ptr<f32> -> tensor<8x!tile.ptr<f32>>
    %a = tile.load %q : tensor<8x!tile.ptr<f32>>
    %b = tile.load %q : tensor<8x!tile.ptr<f32>>
    %s = arith.addf %a, %b : tensor<8xf32>
    tile.store %q, %s : tensor<8x!tile.ptr<f32>>
  }
  return
}

// Constants of a combine region stay inside.
// CHECK-LABEL: func.func @region_constant
// CHECK-NEXT: tile.reduce
// CHECK: arith.constant 2.0
func.func @region_constant(%a: tensor<8xf32>) -> f32 {
  %0 = tile.reduce(%a) axis = 0 {
  ^bb0(%x: f32, %y: f32):
    %c = arith.constant 2.0 : f32
    %s = arith.addf %x, %y : f32
    %m = arith.mulf %s, %c : f32
    tile.yield %m : f32
  } : (tensor<8xf32>) -> f32
  return %0 : f32
}

// A splat of what sccp finds constant folds.
// CHECK-LABEL: func.func @propagated
// CHECK: arith.constant dense<5> : tensor<4xi32>
func.func @propagated() -> tensor<4xi32> {
  %c5 = arith.constant 5 : i32
  %t = arith.constant true
  %0 = scf.if %t -> i32 {
    scf.yield %c5 : i32
  } else {
    %x = tile.program_id 0
    scf.yield %x : i32
  }
  %1 = tile.splat %0 : i32 -> tensor<4xi32>
  return %1 : tensor<4xi32>
}

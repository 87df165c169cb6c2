// RUN: tilewright-opt %s --pass-pipeline='builtin.module(tilegpu-assign-layouts{target=cuda:90 num_warps=4})' | filecheck %s

// Four f32 a thread, then lanes, then warps; index arithmetic, pointers and masks are made in that layout.
// CHECK: #[[VEC:layout[0-9]*]] = #tilegpu.linear<register = {{\[\[}}1], [2], [512]], lane = {{\[\[}}4], [8], [16], [32], [64]], warp = {{\[\[}}128], [256]], block = []>
// CHECK: tilegpu.num_warps = 4 : i32
// CHECK-LABEL: func.func public @add
func.func public @add(%x: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %o: !tile.ptr<f32> {tile.divisibility = 16 : i32},
                      %n: i32 {tile.divisibility = 16 : i32}) {
  %c1024 = arith.constant 1024 : i32
  %pid = tile.program_id 0
  %start = arith.muli %pid, %c1024 : i32
  // CHECK: tile.range 0 to 1024 : tensor<1024xi32, #[[VEC]]>
  %r = tile.range 0 to 1024 : tensor<1024xi32>
  %s = tile.splat %start : i32 -> tensor<1024xi32>
  %i = arith.addi %s, %r : tensor<1024xi32>
  %ns = tile.splat %n : i32 -> tensor<1024xi32>
  %m = arith.cmpi slt, %i, %ns : tensor<1024xi32>
  %xs = tile.splat %x : !tile.ptr<f32> -> tensor<1024x!tile.ptr<f32>>
  %xp = tile.addptr %xs, %i : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
  // CHECK: tile.load {{.*}} {tilegpu.vector = 4 : i32} : tensor<1024x!tile.ptr<f32>, #[[VEC]]>
  %a = tile.load %xp mask = %m : tensor<1024x!tile.ptr<f32>>
  %c = arith.addf %a, %a : tensor<1024xf32>
  %os = tile.splat %o : !tile.ptr<f32> -> tensor<1024x!tile.ptr<f32>>
  %op = tile.addptr %os, %i : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
  // CHECK-NOT: convert_layout
  // CHECK: tile.store {{.*}} {tilegpu.vector = 4 : i32}
  tile.store %op, %c mask = %m : tensor<1024x!tile.ptr<f32>>
  return
}

// A mask at an unaligned bound parts the vectors.
// CHECK-LABEL: func.func public @unaligned
// CHECK: tile.load {{.*}} {tilegpu.vector = 1 : i32}
func.func public @unaligned(%x: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %n: i32) {
  %i = tile.range 0 to 1024 : tensor<1024xi32>
  %ns = tile.splat %n : i32 -> tensor<1024xi32>
  %m = arith.cmpi slt, %i, %ns : tensor<1024xi32>
  %xs = tile.splat %x : !tile.ptr<f32> -> tensor<1024x!tile.ptr<f32>>
  %xp = tile.addptr %xs, %i : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
  %a = tile.load %xp mask = %m : tensor<1024x!tile.ptr<f32>>
  tile.store %xp, %a mask = %m : tensor<1024x!tile.ptr<f32>>
  return
}

// bf16 and f32 of one row share a layout of four elements a thread.
// CHECK-LABEL: func.func public @mixed
func.func public @mixed(%x: !tile.ptr<bf16> {tile.divisibility = 16 : i32}, %w: !tile.ptr<f32> {tile.divisibility = 16 : i32}) {
  %i = tile.range 0 to 2048 : tensor<2048xi32>
  %xs = tile.splat %x : !tile.ptr<bf16> -> tensor<2048x!tile.ptr<bf16>>
  %xp = tile.addptr %xs, %i : tensor<2048x!tile.ptr<bf16>>, tensor<2048xi32>
  // CHECK: %[[X:.*]] = tile.load {{.*}} {tilegpu.run, tilegpu.vector = 4 : i32}
  %a = tile.load %xp : tensor<2048x!tile.ptr<bf16>>
  %ws = tile.splat %w : !tile.ptr<f32> -> tensor<2048x!tile.ptr<f32>>
  %wp = tile.addptr %ws, %i : tensor<2048x!tile.ptr<f32>>, tensor<2048xi32>
  // CHECK: %[[W:.*]] = tile.load {{.*}} {tilegpu.run, tilegpu.vector = 4 : i32}
  %b = tile.load %wp : tensor<2048x!tile.ptr<f32>>
  %e = tile.fp_to_fp %a : tensor<2048xbf16> -> tensor<2048xf32>
  // CHECK-NOT: convert_layout
  // CHECK: arith.mulf
  %c = arith.mulf %e, %b : tensor<2048xf32>
  tile.store %wp, %c : tensor<2048x!tile.ptr<f32>>
  return
}

// A carried sum takes the layout of what is added; the constant that it starts from is made in it, the pointers too.
// CHECK-LABEL: func.func public @carried
func.func public @carried(%x: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %step = arith.constant dense<1024> : tensor<1024xi32>
  %zero = arith.constant dense<0.0> : tensor<1024xf32>
  %i = tile.range 0 to 1024 : tensor<1024xi32>
  %xs = tile.splat %x : !tile.ptr<f32> -> tensor<1024x!tile.ptr<f32>>
  %xp = tile.addptr %xs, %i : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
  // CHECK: scf.for {{.*}} -> (tensor<1024xf32, #[[VEC]]>, tensor<1024x!tile.ptr<f32>, #[[VEC]]>)
  %s:2 = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero, %p = %xp) -> (tensor<1024xf32>, tensor<1024x!tile.ptr<f32>>) : i32 {
    %a = tile.load %p : tensor<1024x!tile.ptr<f32>>
    %t = arith.addf %acc, %a : tensor<1024xf32>
    %q = tile.addptr %p, %step : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
    scf.yield %t, %q : tensor<1024xf32>, tensor<1024x!tile.ptr<f32>>
  }
  // CHECK-NOT: convert_layout
  tile.store %xp, %s#0 : tensor<1024x!tile.ptr<f32>>
  return
}

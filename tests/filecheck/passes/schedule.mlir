// RUN: tilewright-opt %s --passes='tilegpu-schedule{num_stages=3}' | filecheck %s
// RUN: tilewright-opt %s --passes='tilegpu-schedule{num_stages=3},tilegpu-pipeline' | filecheck %s --check-prefix=DONE

#a = #tilegpu.linear<register = [[0, 1], [0, 2], [0, 4], [16, 0], [32, 0]], lane = [[0, 8], [0, 16], [1, 0], [2, 0], [4, 0]], warp = [[8, 0]], block = []>

module attributes {tilegpu.num_ctas = 1 : i32, tilegpu.num_warps = 2 : i32, tilegpu.target = "cuda:80", tilegpu.threads_per_warp = 32 : i32} {
  // A loop without anything to copy has no schedule.
  // CHECK: tilegpu.scheduled
  // CHECK-LABEL: @plain
  // CHECK-NOT: tilegpu.slots
  // DONE-NOT: tilegpu.scheduled
  func.func public @plain(%p: !tile.ptr<f32>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant 0.0 : f32
    %sum = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero) -> (f32) : i32 {
      %at = tile.addptr %p, %i : !tile.ptr<f32>, i32
      %x = tile.load %at : !tile.ptr<f32>
      %next = arith.addf %s, %x : f32
      scf.yield %next : f32
    }
    tile.store %p, %sum : !tile.ptr<f32>
    return
  }

  // Loads of a loop that asks for stages run ahead; what is written down already stays.
  // CHECK-LABEL: @copied
  // CHECK: tile.load {{.*}}tilegpu.ahead = 2 : i32
  // CHECK: tile.load {{.*}}tilegpu.ahead = 0 : i32
  // CHECK: {tile.num_stages = 3 : i32, tilegpu.slots = 3 : i32}
  // DONE-LABEL: @copied
  // DONE-COUNT-3: tilegpu.async_copy
  // DONE-NOT: tilegpu.async_copy
  func.func public @copied(%p: !tile.ptr<f16>, %q: !tile.ptr<f16>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x32xf16, #a>
    %ps = tile.splat %p : !tile.ptr<f16> -> tensor<64x32x!tile.ptr<f16>, #a>
    %qs = tile.splat %q : !tile.ptr<f16> -> tensor<64x32x!tile.ptr<f16>, #a>
    %sum = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero) -> (tensor<64x32xf16, #a>) : i32 {
      %offset = tile.splat %i : i32 -> tensor<64x32xi32, #a>
      %at = tile.addptr %ps, %offset : tensor<64x32x!tile.ptr<f16>, #a>, tensor<64x32xi32, #a>
      %other = tile.addptr %qs, %offset : tensor<64x32x!tile.ptr<f16>, #a>, tensor<64x32xi32, #a>
      %x = tile.load %at {tilegpu.vector = 8 : i32} : tensor<64x32x!tile.ptr<f16>, #a>
      %y = tile.load %other {tilegpu.ahead = 0 : i32, tilegpu.vector = 8 : i32} : tensor<64x32x!tile.ptr<f16>, #a>
      %z = arith.addf %x, %y : tensor<64x32xf16, #a>
      %next = arith.addf %s, %z : tensor<64x32xf16, #a>
      scf.yield %next : tensor<64x32xf16, #a>
    } {tile.num_stages = 3 : i32}
    tile.store %qs, %sum : tensor<64x32x!tile.ptr<f16>, #a>
    return
  }
}

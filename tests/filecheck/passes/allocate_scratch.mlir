// Reductions in a row take turns between two places: the barrier inside of each is all that is needed.
// RUN: tilewright-opt %s --pass-pipeline='builtin.module(tilegpu-allocate-shared,tilegpu-insert-barriers)' | filecheck %s

#l = #tilegpu.linear<register = [[1], [2]], lane = [[4], [8], [16], [32], [64]], warp = [[128], [256]], block = []>

// CHECK: tilegpu.shared = 32 : i32
module attributes {tilegpu.num_ctas = 1 : i32, tilegpu.num_warps = 4 : i32, tilegpu.target = "cuda:90", tilegpu.threads_per_warp = 32 : i32} {
  // CHECK-LABEL: func.func @three_sums
  // CHECK-NOT: tilegpu.barrier
  // CHECK: {tilegpu.offset = 0 : i32}
  // CHECK: {tilegpu.offset = 16 : i32}
  // CHECK: {tilegpu.offset = 0 : i32}
  // CHECK: return
  func.func @three_sums(%x: tensor<512xf32, #l>) -> (f32, f32, f32) {
    %a = tile.reduce(%x) axis = 0 {
    ^bb0(%p: f32, %q: f32):
      %s = arith.addf %p, %q : f32
      tile.yield %s : f32
    } : (tensor<512xf32, #l>) -> f32
    %b = tile.reduce(%x) axis = 0 {
    ^bb0(%p: f32, %q: f32):
      %s = arith.maximumf %p, %q : f32
      tile.yield %s : f32
    } : (tensor<512xf32, #l>) -> f32
    %c = tile.reduce(%x) axis = 0 {
    ^bb0(%p: f32, %q: f32):
      %s = arith.minimumf %p, %q : f32
      tile.yield %s : f32
    } : (tensor<512xf32, #l>) -> f32
    return %a, %b, %c : f32, f32, f32
  }
}

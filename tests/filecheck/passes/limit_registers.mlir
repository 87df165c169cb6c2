// RUN: tilewright-opt %s --split-input-file --passes=tilegpu-limit-registers | filecheck %s

// 32 registers a thread hold the row: with what is needed besides, four CTAs of four warps fit.
// CHECK: tilegpu.min_ctas = 4 : i32
// CHECK: func.func @row
#l = #tilegpu.linear<register = [[1], [2], [4], [8], [16]], lane = [[32], [64], [128], [256], [512]], warp = [[1024], [2048]], block = []>
module attributes {tilegpu.num_ctas = 1 : i32, tilegpu.num_warps = 4 : i32, tilegpu.target = "cuda:90", tilegpu.threads_per_warp = 32 : i32} {
  func.func @row(%x: !tile.ptr<f32>) {
    %range = tile.range 0 to 4096 : tensor<4096xi32, #l>
    %s = tile.splat %x : !tile.ptr<f32> -> tensor<4096x!tile.ptr<f32>, #l>
    %p = tile.addptr %s, %range : tensor<4096x!tile.ptr<f32>, #l>, tensor<4096xi32, #l>
    %v = tile.load %p : tensor<4096x!tile.ptr<f32>, #l>
    %sum = tile.reduce(%v) axis = 0 {
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tile.yield %c : f32
    } : (tensor<4096xf32, #l>) -> f32
    %all = tile.splat %sum : f32 -> tensor<4096xf32, #l>
    %y = arith.divf %v, %all : tensor<4096xf32, #l>
    tile.store %p, %y : tensor<4096x!tile.ptr<f32>, #l>
    return
  }
}

// -----

// Weights that are loaded behind the reduction need registers to arrive in, more than are left if a multiprocessor is full of threads.
// CHECK-NOT: tilegpu.min_ctas
// CHECK: func.func @weights
#l = #tilegpu.linear<register = [[1], [2], [4], [8], [16]], lane = [[32], [64], [128], [256], [512]], warp = [[1024], [2048]], block = []>
module attributes {tilegpu.num_ctas = 1 : i32, tilegpu.num_warps = 4 : i32, tilegpu.target = "cuda:90", tilegpu.threads_per_warp = 32 : i32} {
  func.func @weights(%x: !tile.ptr<f32>, %w: !tile.ptr<f32>) {
    %range = tile.range 0 to 4096 : tensor<4096xi32, #l>
    %s = tile.splat %x : !tile.ptr<f32> -> tensor<4096x!tile.ptr<f32>, #l>
    %p = tile.addptr %s, %range : tensor<4096x!tile.ptr<f32>, #l>, tensor<4096xi32, #l>
    %t = tile.splat %w : !tile.ptr<f32> -> tensor<4096x!tile.ptr<f32>, #l>
    %q = tile.addptr %t, %range : tensor<4096x!tile.ptr<f32>, #l>, tensor<4096xi32, #l>
    %v = tile.load %p : tensor<4096x!tile.ptr<f32>, #l>
    %sum = tile.reduce(%v) axis = 0 {
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tile.yield %c : f32
    } : (tensor<4096xf32, #l>) -> f32
    %all = tile.splat %sum : f32 -> tensor<4096xf32, #l>
    %weights = tile.load %q : tensor<4096x!tile.ptr<f32>, #l>
    %z = arith.mulf %v, %weights : tensor<4096xf32, #l>
    %y = arith.divf %z, %all : tensor<4096xf32, #l>
    tile.store %p, %y : tensor<4096x!tile.ptr<f32>, #l>
    return
  }
}

// -----

// A row that takes 128 registers leaves room for two CTAs at most, as ptxas finds by itself.
// CHECK-NOT: tilegpu.min_ctas
// CHECK: func.func @long_row
#l = #tilegpu.linear<register = [[1], [2], [4], [8], [16], [32], [64]], lane = [[128], [256], [512], [1024], [2048]], warp = [[4096], [8192], [16384]], block = []>
module attributes {tilegpu.num_ctas = 1 : i32, tilegpu.num_warps = 8 : i32, tilegpu.target = "cuda:90", tilegpu.threads_per_warp = 32 : i32} {
  func.func @long_row(%x: !tile.ptr<f32>) {
    %range = tile.range 0 to 32768 : tensor<32768xi32, #l>
    %s = tile.splat %x : !tile.ptr<f32> -> tensor<32768x!tile.ptr<f32>, #l>
    %p = tile.addptr %s, %range : tensor<32768x!tile.ptr<f32>, #l>, tensor<32768xi32, #l>
    %v = tile.load %p : tensor<32768x!tile.ptr<f32>, #l>
    %sum = tile.reduce(%v) axis = 0 {
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tile.yield %c : f32
    } : (tensor<32768xf32, #l>) -> f32
    %all = tile.splat %sum : f32 -> tensor<32768xf32, #l>
    %y = arith.divf %v, %all : tensor<32768xf32, #l>
    tile.store %p, %y : tensor<32768x!tile.ptr<f32>, #l>
    return
  }
}

// -----

// A quarter as long, they fit into the 32 registers of each thread of a full multiprocessor: 16 CTAs.
// CHECK: tilegpu.min_ctas = 16 : i32
// CHECK: func.func @short_weights
#l = #tilegpu.linear<register = [[1], [2], [4]], lane = [[8], [16], [32], [64], [128]], warp = [[256], [512]], block = []>
module attributes {tilegpu.num_ctas = 1 : i32, tilegpu.num_warps = 4 : i32, tilegpu.target = "cuda:90", tilegpu.threads_per_warp = 32 : i32} {
  func.func @short_weights(%x: !tile.ptr<f32>, %w: !tile.ptr<f32>) {
    %range = tile.range 0 to 1024 : tensor<1024xi32, #l>
    %s = tile.splat %x : !tile.ptr<f32> -> tensor<1024x!tile.ptr<f32>, #l>
    %p = tile.addptr %s, %range : tensor<1024x!tile.ptr<f32>, #l>, tensor<1024xi32, #l>
    %t = tile.splat %w : !tile.ptr<f32> -> tensor<1024x!tile.ptr<f32>, #l>
    %q = tile.addptr %t, %range : tensor<1024x!tile.ptr<f32>, #l>, tensor<1024xi32, #l>
    %v = tile.load %p : tensor<1024x!tile.ptr<f32>, #l>
    %square = arith.mulf %v, %v : tensor<1024xf32, #l>
    %sum = tile.reduce(%square) axis = 0 {
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tile.yield %c : f32
    } : (tensor<1024xf32, #l>) -> f32
    %all = tile.splat %sum : f32 -> tensor<1024xf32, #l>
    %weights = tile.load %q : tensor<1024x!tile.ptr<f32>, #l>
    %z = arith.mulf %v, %weights : tensor<1024xf32, #l>
    %y = arith.divf %z, %all : tensor<1024xf32, #l>
    tile.store %p, %y : tensor<1024x!tile.ptr<f32>, #l>
    return
  }
}

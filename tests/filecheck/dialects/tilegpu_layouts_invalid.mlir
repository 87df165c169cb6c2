// RUN: tilewright-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{layout does not reach every element of 8}}
func.func private @not_onto(tensor<8xf32, #tilegpu.linear<register = [[1]], lane = [[2]], warp = [], block = []>>)

// -----

// expected-error@+1 {{layout does not reach every element of 4}}
func.func private @dependent(tensor<4xf32, #tilegpu.linear<register = [[1]], lane = [[1]], warp = [], block = []>>)

// -----

// expected-error@+1 {{layout reaches coordinate 4 of dimension 0, whose size is 4}}
func.func private @outside(tensor<4xf32, #tilegpu.linear<register = [[1], [2]], lane = [[4]], warp = [], block = []>>)

// -----

// expected-error@+1 {{layout of rank 1 on a shape of rank 2}}
func.func private @rank(tensor<4x4xf32, #tilegpu.linear<register = [[1], [2]], lane = [], warp = [], block = []>>)

// -----

// expected-error@+1 {{dimensions must be powers of 2, got 6}}
func.func private @power(tensor<6xf32, #tilegpu.linear<register = [[1], [2]], lane = [], warp = [], block = []>>)

// -----

// expected-error@+1 {{expected 1 coordinates, got 2}}
func.func private @ragged(tensor<4xf32, #tilegpu.linear<register = [[1], [0, 2]], lane = [], warp = [], block = []>>)

// -----

// expected-error@+1 {{coordinates cannot be negative, got -1}}
func.func private @negative(tensor<4xf32, #tilegpu.linear<register = [[-1], [2]], lane = [], warp = [], block = []>>)

// -----

// expected-error@+1 {{shared layout does not reach every element of 8}}
func.func private @shared_not_onto(!tilegpu.buffer<8xf32, #tilegpu.shared<offset = [[1], [2]]>>)

// -----

// expected-error@+1 {{pad needs an interval that is a power of 2 and a positive amount, got [6, 1]}}
func.func private @pad(!tilegpu.buffer<4xf32, #tilegpu.shared<offset = [[1], [2]], pad = [6, 1]>>)

// -----

// expected-error@+1 {{expected a #tilegpu.shared layout}}
func.func private @buffer_layout(!tilegpu.buffer<4xf32, #tilegpu.linear<register = [[1], [2]], lane = [], warp = [], block = []>>)

// -----

// expected-error@+1 {{slots cannot be negative, got -1}}
func.func private @slots(!tilegpu.buffer<4xf32, #tilegpu.shared<offset = [[1], [2]]>, slots = -1>)

// -----

// expected-error@+1 {{expected 'pad' or 'rank', got 'swizzle'}}
func.func private @keyword(!tilegpu.buffer<4xf32, #tilegpu.shared<offset = [[1], [2]], swizzle = 3>>)

// -----

// expected-error@+1 {{'tilegpu.num_warps' must be a power of 2, got 3}}
module attributes {tilegpu.num_warps = 3 : i32} {}

// -----

// expected-error@+1 {{'tilegpu.shared' must be a non-negative i32}}
module attributes {tilegpu.shared = "many"} {}

// -----

// expected-error@+1 {{'tilegpu.target' must be a string such as "cuda:90"}}
module attributes {tilegpu.target = 90 : i32} {}

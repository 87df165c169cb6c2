// RUN: tilewright-opt %s --emit=ptx --target=cuda:80 --split-input-file --verify-diagnostics

// expected-error@unknown {{argument 1 of the kernel takes_tensor is tensor<32xf32}}
func.func @takes_tensor(%n: i32, %x: tensor<32xf32>) {
  return
}

// -----

// expected-error@unknown {{the kernel returns_number returns i32; a public function returns nothing}}
func.func @returns_number(%n: i32) -> i32 {
  return %n : i32
}

// -----

// expected-error@unknown {{tile.gdc_wait: dependent launches need compute capability 9.0 or newer, and the target is sm_80}}
func.func @waits_for_the_launch_before() {
  tile.gdc_wait
  return
}

// -----

// expected-error@unknown {{tile.gdc_launch: dependent launches need compute capability 9.0 or newer, and the target is sm_80}}
func.func @lets_the_next_launch() {
  tile.gdc_launch
  return
}

// -----

// expected-error@unknown {{was made for "cuda:90", not for cuda:80}}
module attributes {tilegpu.num_ctas = 1 : i32, tilegpu.num_warps = 4 : i32, tilegpu.target = "cuda:90", tilegpu.threads_per_warp = 32 : i32} {
  func.func @other_target() {
    return
  }
}

// -----

// The accumulator has a thread's registers for all 64 x 8 elements, not those of a warpgroup.
// expected-error@unknown {{tilegpu.wgmma: the instruction takes 9 registers, not 1025}}
#a = #tilegpu.linear<register = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0]], lane = [], warp = [], block = []>
#c = #tilegpu.linear<register = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0]], lane = [], warp = [], block = []>
#b = #tilegpu.linear<register = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0]], lane = [], warp = [], block = []>
#sb = #tilegpu.shared<offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0]]>
module attributes {tilegpu.num_ctas = 1 : i32, tilegpu.num_warps = 4 : i32, tilegpu.target = "cuda:80", tilegpu.threads_per_warp = 32 : i32} {
  func.func @registers_of_another_layout(%x: f16, %p: !tile.ptr<f32>) {
    %a = tile.splat %x : f16 -> tensor<64x16xf16, #a>
    %b = tile.splat %x : f16 -> tensor<16x8xf16, #b>
    %c = arith.constant dense<1.0> : tensor<64x8xf32, #c>
    %0 = tilegpu.local_alloc %b : tensor<16x8xf16, #b> -> !tilegpu.buffer<16x8xf16, #sb>
    %1 = tilegpu.wgmma %a, %0, %c instr = [64, 8, 16] precision = tf32 : tensor<64x16xf16, #a>, !tilegpu.buffer<16x8xf16, #sb> -> tensor<64x8xf32, #c>
    %2 = tilegpu.wgmma_wait num = 0 (%1 : tensor<64x8xf32, #c>)
    %3 = tile.splat %p : !tile.ptr<f32> -> tensor<64x8x!tile.ptr<f32>, #c>
    tile.store %3, %2 : tensor<64x8x!tile.ptr<f32>, #c>
    return
  }
}

// -----

// expected-error@unknown {{the function elsewhere is declared and has no body}}
func.func private @elsewhere(i32) attributes {no_inline}
func.func @calls(%n: i32) {
  func.call @elsewhere(%n) : (i32) -> ()
  return
}

// -----

// What --emit takes as ttir is the result of that stage, in which no descriptors are made any more.
// expected-error@unknown {{a descriptor that the kernel makes has no layout: run tile-host-descriptors and tile-lower-descriptors first}}
func.func @makes_a_descriptor(%p: !tile.ptr<f32>, %n: i32, %s: i64) {
  %c0 = arith.constant 0 : i32
  %d = tile.make_descriptor %p, shape = [%n], strides = [%s], padding = zero : !tile.ptr<f32> -> !tile.desc<32xf32>
  %x = tile.descriptor_load %d[%c0] : !tile.desc<32xf32> -> tensor<32xf32>
  tile.descriptor_store %d[%c0], %x : !tile.desc<32xf32>, tensor<32xf32>
  return
}

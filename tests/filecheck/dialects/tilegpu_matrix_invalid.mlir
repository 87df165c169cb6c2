// RUN: tilewright-opt %s --split-input-file --verify-diagnostics

func.func @mma_k(%a: tensor<16x16xf16>, %b: tensor<32x8xf16>, %c: tensor<16x8xf32>) {
  // expected-error@+1 {{K of a (16) differs from K of b (32)}}
  %0 = tilegpu.mma %a, %b, %c instr = [16, 8, 16] precision = ieee : tensor<16x16xf16>, tensor<32x8xf16> -> tensor<16x8xf32>
  return
}

// -----

func.func @mma_instr(%a: tensor<16x16xf16>, %b: tensor<16x8xf16>, %c: tensor<16x8xf32>) {
  // expected-error@+1 {{instr must be [m, n, k]}}
  %0 = tilegpu.mma %a, %b, %c instr = [16, 8] precision = ieee : tensor<16x16xf16>, tensor<16x8xf16> -> tensor<16x8xf32>
  return
}

// -----

func.func @mma_types(%a: tensor<16x16xf16>, %b: tensor<16x8xf32>, %c: tensor<16x8xf32>) {
  // expected-error@+1 {{operand types differ: 'f16' and 'f32'}}
  %0 = tilegpu.mma %a, %b, %c instr = [16, 8, 16] precision = ieee : tensor<16x16xf16>, tensor<16x8xf32> -> tensor<16x8xf32>
  return
}

// -----

#s = #tilegpu.shared<offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0]]>
func.func @wgmma_m(%a: tensor<64x16xf16>, %b: !tilegpu.buffer<16x8xf16, #s>, %c: tensor<64x8xf32>) {
  // expected-error@+1 {{instr must have m = 64, got 16}}
  %0 = tilegpu.wgmma %a, %b, %c instr = [16, 8, 16] precision = tf32 : tensor<64x16xf16>, !tilegpu.buffer<16x8xf16, #s> -> tensor<64x8xf32>
  return
}

// -----

#s = #tilegpu.shared<offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0]]>
func.func @wgmma_slots(%a: tensor<64x16xf16>, %b: !tilegpu.buffer<16x8xf16, #s, slots = 2>, %c: tensor<64x8xf32>) {
  // expected-error@+1 {{needs one slot of the buffer: index it with tilegpu.slot}}
  %0 = tilegpu.wgmma %a, %b, %c instr = [64, 8, 16] precision = tf32 : tensor<64x16xf16>, !tilegpu.buffer<16x8xf16, #s, slots = 2> -> tensor<64x8xf32>
  return
}

// -----

#s = #tilegpu.shared<offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0]]>
func.func @wgmma_k(%a: tensor<64x32xf16>, %b: !tilegpu.buffer<16x8xf16, #s>, %c: tensor<64x8xf32>) {
  // expected-error@+1 {{K of a (32) differs from K of b (16)}}
  %0 = tilegpu.wgmma %a, %b, %c instr = [64, 8, 16] precision = tf32 : tensor<64x32xf16>, !tilegpu.buffer<16x8xf16, #s> -> tensor<64x8xf32>
  return
}

// -----

func.func @wait_num() {
  // expected-error@+1 {{attribute 'num' failed to satisfy constraint}}
  tilegpu.wgmma_wait num = -1
  return
}

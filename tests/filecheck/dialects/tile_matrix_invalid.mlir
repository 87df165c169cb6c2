// RUN: tilewright-opt %s --split-input-file --verify-diagnostics

func.func @dot_k(%a: tensor<16x64xf16>, %b: tensor<32x8xf16>, %c: tensor<16x8xf32>) {
  // expected-error@+1 {{'tile.dot' op K of a (64) differs from K of b (32)}}
  %0 = tile.dot %a, %b, %c precision = ieee : tensor<16x64xf16>, tensor<32x8xf16> -> tensor<16x8xf32>
  return
}

// -----

func.func @dot_m(%a: tensor<16x32xf16>, %b: tensor<32x8xf16>, %c: tensor<8x8xf32>) {
  // expected-error@+1 {{M of a (16) differs from M of acc (8)}}
  %0 = tile.dot %a, %b, %c precision = ieee : tensor<16x32xf16>, tensor<32x8xf16> -> tensor<8x8xf32>
  return
}

// -----

func.func @dot_n(%a: tensor<16x32xf16>, %b: tensor<32x8xf16>, %c: tensor<16x16xf32>) {
  // expected-error@+1 {{N of b (8) differs from N of acc (16)}}
  %0 = tile.dot %a, %b, %c precision = ieee : tensor<16x32xf16>, tensor<32x8xf16> -> tensor<16x16xf32>
  return
}

// -----

func.func @dot_rank(%a: tensor<16xf16>, %b: tensor<32x8xf16>, %c: tensor<16x8xf32>) {
  // expected-error@+1 {{needs operands of rank 2, or 3 with a batch, got 16, 32x8 and 16x8}}
  %0 = tile.dot %a, %b, %c precision = ieee : tensor<16xf16>, tensor<32x8xf16> -> tensor<16x8xf32>
  return
}

// -----

func.func @dot_batch(%a: tensor<2x16x32xf16>, %b: tensor<4x32x8xf16>, %c: tensor<2x16x8xf32>) {
  // expected-error@+1 {{batch sizes differ: 2, 4 and 2}}
  %0 = tile.dot %a, %b, %c precision = ieee : tensor<2x16x32xf16>, tensor<4x32x8xf16> -> tensor<2x16x8xf32>
  return
}

// -----

func.func @dot_types(%a: tensor<16x32xf16>, %b: tensor<32x8xbf16>, %c: tensor<16x8xf32>) {
  // expected-error@+1 {{operand types differ: 'f16' and 'bf16'}}
  %0 = tile.dot %a, %b, %c precision = ieee : tensor<16x32xf16>, tensor<32x8xbf16> -> tensor<16x8xf32>
  return
}

// -----

func.func @dot_mixed(%a: tensor<16x32xi8>, %b: tensor<32x8xi8>, %c: tensor<16x8xf32>) {
  // expected-error@+1 {{cannot multiply 'i8' and 'i8' into 'f32'}}
  %0 = tile.dot %a, %b, %c precision = ieee : tensor<16x32xi8>, tensor<32x8xi8> -> tensor<16x8xf32>
  return
}

// -----

func.func @dot_narrow(%a: tensor<16x32xf32>, %b: tensor<32x8xf32>, %c: tensor<16x8xf16>) {
  // expected-error@+1 {{the accumulator ('f16') is narrower than the operands ('f32')}}
  %0 = tile.dot %a, %b, %c precision = ieee : tensor<16x32xf32>, tensor<32x8xf32> -> tensor<16x8xf16>
  return
}

// -----

func.func @scaled_format(%a: tensor<16x32xi8>, %b: tensor<32x8xi8>, %c: tensor<16x8xf32>) {
  // expected-error@+1 {{format of a must be e2m1, e4m3, e5m2, bf16 or fp16, got "e3m4"}}
  %0 = tile.dot_scaled %a format = "e3m4", %b format = "e4m3", %c : tensor<16x32xi8>, tensor<32x8xi8> -> tensor<16x8xf32>
  return
}

// -----

func.func @scaled_width(%a: tensor<16x32xf16>, %b: tensor<32x8xi8>, %c: tensor<16x8xf32>) {
  // expected-error@+1 {{a of format e4m3 needs elements of 8 bits, got 'f16'}}
  %0 = tile.dot_scaled %a format = "e4m3", %b format = "e4m3", %c : tensor<16x32xf16>, tensor<32x8xi8> -> tensor<16x8xf32>
  return
}

// -----

func.func @scaled_pack(%a: tensor<16x32xi8>, %b: tensor<32x8xi8>, %c: tensor<16x8xf32>) {
  // expected-error@+1 {{only e2m1 operands can be packed along M or N}}
  %0 = tile.dot_scaled %a format = "e4m3", %b format = "e4m3", %c {a_k_pack = false} : tensor<16x32xi8>, tensor<32x8xi8> -> tensor<16x8xf32>
  return
}

// -----

func.func @scaled_scale(%a: tensor<16x32xi8>, %s: tensor<8x1xi8>, %b: tensor<32x8xi8>, %c: tensor<16x8xf32>) {
  // expected-error@+1 {{a_scale of 8x1 does not scale 16 rows of K = 32}}
  %0 = tile.dot_scaled %a scale %s : tensor<8x1xi8> format = "e4m3", %b format = "e4m3", %c : tensor<16x32xi8>, tensor<32x8xi8> -> tensor<16x8xf32>
  return
}

// -----

func.func @scaled_acc(%a: tensor<16x32xi8>, %b: tensor<32x8xi8>, %c: tensor<16x8xi32>) {
  // expected-error@+1 {{the accumulator must be a float, got 'i32'}}
  %0 = tile.dot_scaled %a format = "e4m3", %b format = "e4m3", %c : tensor<16x32xi8>, tensor<32x8xi8> -> tensor<16x8xi32>
  return
}

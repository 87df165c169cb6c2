// RUN: tilewright-opt %s --split-input-file --verify-diagnostics

func.func @addptr_shape(%p: tensor<4x!tile.ptr<f32>>, %o: tensor<8xi32>) {
  // expected-error@+1 {{shape of ptr (4) differs from shape of offset (8)}}
  %0 = tile.addptr %p, %o : tensor<4x!tile.ptr<f32>>, tensor<8xi32>
  return
}

// -----

func.func @addptr_scalar(%p: tensor<4x!tile.ptr<f32>>, %o: i32) {
  // expected-error@+1 {{shape of ptr (4) differs from shape of offset (scalar)}}
  %0 = tile.addptr %p, %o : tensor<4x!tile.ptr<f32>>, i32
  return
}

// -----

func.func @addptr_type(%p: tensor<4xf32>, %o: tensor<4xi32>) {
  // expected-error@+1 {{operand #0 must be pointer or tensor of pointers, but got 'tensor<4xf32>'}}
  %0 = tile.addptr %p, %o : tensor<4xf32>, tensor<4xi32>
  return
}

// -----

func.func @bitcast_width(%x: tensor<4xf32>) {
  // expected-error@+1 {{cannot reinterpret 32 bits as 16}}
  %0 = tile.bitcast %x : tensor<4xf32> -> tensor<4xi16>
  return
}

// -----

func.func @bitcast_pointer(%x: i64) {
  // expected-error@+1 {{cannot turn a pointer into a number: use ptr_to_int or int_to_ptr}}
  %0 = tile.bitcast %x : i64 -> !tile.ptr<f32>
  return
}

// -----

func.func @int_to_ptr_shape(%x: i64) {
  // expected-error@+1 {{shape of src (scalar) differs from shape of result (4)}}
  %0 = tile.int_to_ptr %x : i64 -> tensor<4x!tile.ptr<f32>>
  return
}

// -----

func.func @fp_to_fp_int(%x: tensor<4xi32>) {
  // expected-error@+1 {{src must be a float, got 'i32'}}
  %0 = tile.fp_to_fp %x : tensor<4xi32> -> tensor<4xf32>
  return
}

// -----

func.func @fp_to_fp_kind(%x: tensor<4xf32>) {
  // expected-error@+1 {{src_kind must be "fp8e4b15", got "fp8"}}
  %0 = tile.fp_to_fp %x src_kind = "fp8" : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

func.func @fp_to_fp_carrier(%x: tensor<4xf32>) {
  // expected-error@+1 {{a fp8e4b15 dst is carried as i8, not as 'f16'}}
  %0 = tile.fp_to_fp %x dst_kind = "fp8e4b15" : tensor<4xf32> -> tensor<4xf16>
  return
}

// -----

func.func @clamp_types(%x: f32, %y: f16) {
  // expected-error@+1 {{requires the same type for all operands and results}}
  %0 = "tile.clampf"(%x, %y, %y) : (f32, f16, f16) -> f32
  return
}

// -----

func.func @sqrt_type(%x: f64) {
  // expected-error@+1 {{operand #0 must be f32 or tensor of f32, but got 'f64'}}
  %0 = tile.sqrt_rn %x : f64
  return
}

// -----

func.func @div_type(%x: f16) {
  // expected-error@+1 {{operand #0 must be f32 or tensor of f32, but got 'f16'}}
  %0 = tile.div_rn %x, %x : f16
  return
}

// -----

func.func @mulhi_type(%x: f32) {
  // expected-error@+1 {{operand #0 must be integer or tensor of integers, but got 'f32'}}
  %0 = tile.mulhi %x, %x : f32
  return
}

// -----

func.func @asm_shape(%x: tensor<4xf32>) {
  // expected-error@+1 {{shape of one tensor (4) differs from shape of another (8)}}
  %0 = tile.inline_asm "", "=f,f"(%x) : (tensor<4xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @asm_pack(%x: tensor<4xf32>) {
  // expected-error@+1 {{attribute 'pack' failed to satisfy constraint}}
  %0 = tile.inline_asm "", "=f,f"(%x) {pack = 0 : i32} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @extern_shape(%x: f32) {
  // expected-error@+1 {{shape of an argument (scalar) differs from shape of the result (4)}}
  %0 = tile.extern_call "f"(%x) : (f32) -> tensor<4xf32>
  return
}

// -----

func.func @extern_name(%x: f32) {
  // expected-error@+1 {{needs the name of a function}}
  %0 = tile.extern_call ""(%x) : (f32) -> f32
  return
}

// -----

func.func @ptr_to_int_type(%x: i32) {
  // expected-error@+1 {{'src' must be pointer or tensor of pointers, but got 'i32'}}
  %0 = tile.ptr_to_int %x : i32
  return
}

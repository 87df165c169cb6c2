// RUN: tilewright-opt %s --split-input-file --verify-diagnostics

func.func @axis() {
  // expected-error@+1 {{attribute 'axis' failed to satisfy constraint}}
  %0 = tile.program_id 3
  return
}

// -----

func.func @programs_axis() {
  // expected-error@+1 {{attribute 'axis' failed to satisfy constraint}}
  %0 = tile.num_programs -1
  return
}

// -----

func.func @print_signs(%x: i32) {
  // expected-error@+1 {{is_signed has 2 entries for 1 arguments}}
  tile.print "" signed = [true, true] (%x : i32)
  return
}

// -----

func.func @assert_mask(%x: tensor<4xi1>, %m: tensor<8xi1>) {
  // expected-error@+1 {{mask must have the type of cond}}
  tile.assert %x mask = %m : tensor<8xi1>, "" : tensor<4xi1>
  return
}

// -----

func.func @hint() {
  // expected-error@+1 {{attribute 'tile.contiguity' must be array<i32: one value per dimension>}}
  %0 = tile.range 0 to 4 {tile.contiguity = 4 : i32} : tensor<4xi32>
  return
}

// -----

// expected-error@+1 {{argument 0: attribute 'tile.divisibility' must be an integer}}
func.func @argument_hint(%p: i32 {tile.divisibility = "x"}) {
  return
}

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

// -----

func.func @assume_type(%x: i32) {
  // expected-error@+1 {{operand #0 must be 1-bit signless integer, but got 'i32'}}
  "tile.assume"(%x) : (i32) -> ()
  return
}

// -----

func.func @barrier_operand(%x: i32) {
  // expected-error@+1 {{requires zero operands}}
  "tile.barrier"(%x) : (i32) -> ()
  return
}

// -----

func.func @gdc_wait_operand(%x: i32) {
  // expected-error@+1 {{requires zero operands}}
  "tile.gdc_wait"(%x) : (i32) -> ()
  return
}

// -----

func.func @gdc_launch_result() {
  // expected-error@+1 {{requires zero results}}
  %0 = "tile.gdc_launch"() : () -> i32
  return
}

// -----

func.func @globaltimer_width() {
  // expected-error@+1 {{result #0 must be 64-bit signless integer, but got 'i32'}}
  %0 = "tile.globaltimer"() : () -> i32
  return
}

// -----

func.func @smid_width() {
  // expected-error@+1 {{result #0 must be 32-bit signless integer, but got 'i64'}}
  %0 = "tile.smid"() : () -> i64
  return
}

// -----

func.func @rank_width() {
  // expected-error@+1 {{result #0 must be 32-bit signless integer, but got 'i64'}}
  %0 = "tile.cluster_rank"() : () -> i64
  return
}

// -----

func.func @exchange_parts(%x: tensor<4xf32>) {
  // expected-error@+1 {{'tensor<4xf32>' and 'tensor<4xf32>' are not the parts that from and to describe}}
  %0 = tile.exchange %x of [8] from [4] to [0] : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

func.func @exchange_elements(%x: tensor<4xf32>) {
  // expected-error@+1 {{are not the parts that from and to describe}}
  %0 = tile.exchange %x of [8] from [4] to [0] : tensor<4xf32> -> tensor<8xi32>
  return
}

// -----

func.func @exchange_steps(%x: tensor<4x4xf32>) {
  // expected-error@+1 {{each bit of the rank adds one power of two inside one dimension}}
  %0 = tile.exchange %x of [8, 8] from [4, 4] to [0, 0] : tensor<4x4xf32> -> tensor<8x8xf32>
  return
}

// -----

func.func @exchange_numbers(%x: tensor<4x4xf32>) {
  // expected-error@+1 {{needs as many numbers in from and to, 2 for each bit of the rank}}
  %0 = tile.exchange %x of [4, 4] from [4] to [0] : tensor<4x4xf32> -> tensor<4x4xf32>
  return
}

// -----

func.func @exchange_results(%x: tensor<4xf32>) {
  // expected-error@+1 {{takes 1 sources for 2 results}}
  %0:2 = tile.exchange %x of [8] from [4] to [0] : tensor<4xf32> -> tensor<8xf32>, tensor<8xf32>
  return
}

// RUN: tilewright-opt %s --split-input-file --verify-diagnostics

func.func @load_mask(%p: tensor<4x!tile.ptr<f32>>, %m: tensor<8xi1>) {
  // expected-error@+1 {{mask is i1 of the shape and layout of ptr}}
  %0 = "tile.load"(%p, %m) {operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<4x!tile.ptr<f32>>, tensor<8xi1>) -> tensor<4xf32>
  return
}

// -----

func.func @load_other(%p: tensor<4x!tile.ptr<f32>>, %o: tensor<4xf32>) {
  // expected-error@+1 {{'other' needs a 'mask'}}
  %0 = tile.load %p other = %o : tensor<4x!tile.ptr<f32>>
  return
}

// -----

func.func @load_result(%p: tensor<4x!tile.ptr<f32>>) {
  // expected-error@+1 {{result type matches the pointee of ptr}}
  %0 = "tile.load"(%p) {operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<4x!tile.ptr<f32>>) -> tensor<4xf16>
  return
}

// -----

func.func @load_cache(%p: !tile.ptr<f32>) {
  // expected-error@+1 {{cache operator 'wb' is for stores; a load takes ca, cg, cs or cv}}
  %0 = tile.load %p cache = wb : !tile.ptr<f32>
  return
}

// -----

func.func @load_cache_name(%p: !tile.ptr<f32>) {
  // expected-error@+2 {{failed to parse Tile_CacheAttr parameter}}
  // expected-error@+1 {{expected ::tilewright::tile::Cache to be one of: ca, cg, cs, cv, wb, wt}}
  %0 = tile.load %p cache = xx : !tile.ptr<f32>
  return
}

// -----

func.func @store_value(%p: !tile.ptr<f32>, %v: f16) {
  // expected-error@+1 {{value type matches the pointee of ptr}}
  "tile.store"(%p, %v) : (!tile.ptr<f32>, f16) -> ()
  return
}

// -----

func.func @store_cache(%p: !tile.ptr<f32>, %v: f32) {
  // expected-error@+1 {{cache operator 'ca' is for loads; a store takes wb, cg, cs or wt}}
  tile.store %p, %v cache = ca : !tile.ptr<f32>
  return
}

// -----

func.func @rmw_float(%p: !tile.ptr<i32>, %v: i32) {
  // expected-error@+1 {{'fadd' needs floats, got 'i32'}}
  %0 = tile.atomic_rmw fadd acq_rel gpu %p, %v : !tile.ptr<i32>
  return
}

// -----

func.func @rmw_int(%p: !tile.ptr<f32>, %v: f32) {
  // expected-error@+1 {{'xor' needs integers, got 'f32'}}
  %0 = tile.atomic_rmw xor acq_rel gpu %p, %v : !tile.ptr<f32>
  return
}

// -----

func.func @rmw_width(%p: !tile.ptr<i8>, %v: i8) {
  // expected-error@+1 {{needs elements of 16, 32 or 64 bits, got 'i8'}}
  %0 = tile.atomic_rmw add acq_rel gpu %p, %v : !tile.ptr<i8>
  return
}

// -----

func.func @cas_width(%p: !tile.ptr<i8>, %v: i8) {
  // expected-error@+1 {{needs elements of 16, 32 or 64 bits, got 'i8'}}
  %0 = tile.atomic_cas acq_rel gpu %p, %v, %v : !tile.ptr<i8>
  return
}

// -----

func.func @load_sem(%p: !tile.ptr<i32>) {
  // expected-error@+1 {{a load is acquire or relaxed, not release}}
  %0 = tile.atomic_load release gpu %p : !tile.ptr<i32>
  return
}

// -----

func.func @store_sem(%p: !tile.ptr<i32>, %v: i32) {
  // expected-error@+1 {{a store is release or relaxed, not acquire}}
  tile.atomic_store acquire gpu %p, %v : !tile.ptr<i32>
  return
}

// -----

func.func @poll_sem(%p: !tile.ptr<i32>, %v: i32) {
  // expected-error@+1 {{a poll is acquire or relaxed, not acq_rel}}
  %0 = tile.atomic_poll acq_rel gpu %p, %v : !tile.ptr<i32>
  return
}

// -----

func.func @poll_type(%p: !tile.ptr<f32>, %v: f32) {
  // expected-error@+1 {{needs integers, got 'f32'}}
  %0 = tile.atomic_poll acquire gpu %p, %v : !tile.ptr<f32>
  return
}

// -----

func.func @descriptor_rank(%p: !tile.ptr<f16>, %n: i32, %s: i64) {
  // expected-error@+1 {{needs 2 sizes and strides for block shape 32x64, got 1 and 2}}
  %d = tile.make_descriptor %p, shape = [%n], strides = [%s, %s], padding = zero : !tile.ptr<f16> -> !tile.desc<32x64xf16>
  return
}

// -----

func.func @descriptor_element(%p: !tile.ptr<f32>, %n: i32, %s: i64) {
  // expected-error@+1 {{base points to 'f32', the descriptor's elements are 'f16'}}
  %d = tile.make_descriptor %p, shape = [%n], strides = [%s], padding = zero : !tile.ptr<f32> -> !tile.desc<64xf16>
  return
}

// -----

func.func @descriptor_padding(%p: !tile.ptr<i32>, %n: i32, %s: i64) {
  // expected-error@+1 {{NaN padding needs floats, got 'i32'}}
  %d = tile.make_descriptor %p, shape = [%n], strides = [%s], padding = nan : !tile.ptr<i32> -> !tile.desc<64xi32>
  return
}

// -----

// expected-error@+1 {{a tensor descriptor has 1 to 5 dimensions, not 6}}
func.func private @descriptor_dims(!tile.desc<1x1x1x1x1x4xf32>)

// -----

func.func @descriptor_indices(%d: !tile.desc<32x64xf16>, %n: i32) {
  // expected-error@+1 {{needs 2 indices, got 1}}
  %0 = tile.descriptor_load %d[%n] : !tile.desc<32x64xf16> -> tensor<32x64xf16>
  return
}

// -----

func.func @descriptor_value(%d: !tile.desc<64xf16>, %n: i32, %v: tensor<32xf16>) {
  // expected-error@+1 {{value of 32x'f16' is not a block of the descriptor: 64x'f16'}}
  tile.descriptor_store %d[%n], %v : !tile.desc<64xf16>, tensor<32xf16>
  return
}

// -----

func.func @descriptor_xchg(%d: !tile.desc<64xf16>, %n: i32, %v: tensor<64xf16>) {
  // expected-error@+1 {{cannot exchange a block}}
  tile.descriptor_reduce xchg %d[%n], %v : !tile.desc<64xf16>, tensor<64xf16>
  return
}

// -----

func.func @gather_block(%d: !tile.desc<2x64xf16>, %n: i32, %x: tensor<8xi32>) {
  // expected-error@+2 {{needs a descriptor of blocks of one row, got 2x64}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = tile.descriptor_gather %d[%x, %n] : !tile.desc<2x64xf16>, tensor<8xi32> -> tensor<8x64xf16>
  return
}

// -----

func.func @scatter_value(%d: !tile.desc<1x64xf16>, %n: i32, %x: tensor<8xi32>, %v: tensor<4x64xf16>) {
  // expected-error@+1 {{value of 4x64x'f16' should be 8x64x'f16'}}
  tile.descriptor_scatter %d[%x, %n], %v : !tile.desc<1x64xf16>, tensor<8xi32>, tensor<4x64xf16>
  return
}

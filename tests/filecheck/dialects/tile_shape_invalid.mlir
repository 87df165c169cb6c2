// RUN: tilewright-opt %s --split-input-file --verify-diagnostics

func.func @empty_range() {
  // expected-error@+2 {{range end (4) must be greater than its start (4)}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = tile.range 4 to 4 : tensor<1xi32>
  return
}

// -----

func.func @range_size() {
  // expected-error@+2 {{inferred type(s) 'tensor<8xi32>' are incompatible with return type(s) of operation 'tensor<4xi32>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = "tile.range"() {start = 0 : i32, end = 8 : i32} : () -> tensor<4xi32>
  return
}

// -----

func.func @splat_element(%x: f32) {
  // expected-error@+1 {{element type of the result ('f16') differs from the scalar's type ('f32')}}
  %0 = tile.splat %x : f32 -> tensor<4xf16>
  return
}

// -----

func.func @unsplat_many(%x: tensor<4x2xf32>) {
  // expected-error@+1 {{needs a tensor of one element, got shape 4x2}}
  %0 = tile.unsplat %x : tensor<4x2xf32>
  return
}

// -----

func.func @expand_axis(%x: tensor<4xf32>) {
  // expected-error@+2 {{axis 2 is outside [0, 2)}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = tile.expand_dims %x axis = 2 : tensor<4xf32> -> tensor<4x1xf32>
  return
}

// -----

func.func @broadcast_rank(%x: tensor<4xf32>) {
  // expected-error@+1 {{cannot change the rank: 4 to 4x4}}
  %0 = tile.broadcast %x : tensor<4xf32> -> tensor<4x4xf32>
  return
}

// -----

func.func @broadcast_size(%x: tensor<4x2xf32>) {
  // expected-error@+1 {{cannot broadcast dimension 1 of size 2 to 8}}
  %0 = tile.broadcast %x : tensor<4x2xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @reshape_count(%x: tensor<4x2xf32>) {
  // expected-error@+1 {{cannot reshape 4x2 to 16: the numbers of elements differ}}
  %0 = tile.reshape %x : tensor<4x2xf32> -> tensor<16xf32>
  return
}

// -----

func.func @trans_order(%x: tensor<4x2xf32>) {
  // expected-error@+2 {{order must be a permutation of the dimensions 0 to 1}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = tile.trans %x order = [0, 0] : tensor<4x2xf32> -> tensor<4x2xf32>
  return
}

// -----

func.func @trans_rank(%x: tensor<4x2xf32>) {
  // expected-error@+2 {{order has 1 entries for a tensor of rank 2}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = tile.trans %x order = [0] : tensor<4x2xf32> -> tensor<4x2xf32>
  return
}

// -----

func.func @join_types(%x: tensor<4xf32>, %y: tensor<8xf32>) {
  // expected-error@+1 {{requires all operands to have the same type}}
  %0 = "tile.join"(%x, %y) : (tensor<4xf32>, tensor<8xf32>) -> tensor<4x2xf32>
  return
}

// -----

func.func @split_size(%x: tensor<4xf32>) {
  // expected-error@+2 {{the last dimension must be 2, got shape 4}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:2 = tile.split %x : tensor<4xf32> -> f32
  return
}

// -----

func.func @cat_dim(%x: tensor<4xf32>) {
  // expected-error@+2 {{axis 1 is outside [0, 1)}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = tile.cat %x, %x dim = 1 : tensor<4xf32> -> tensor<8xf32>
  return
}

// -----

func.func @gather_shape(%x: tensor<4x8xf32>, %i: tensor<2x8xi32>) {
  // expected-error@+2 {{dimension 0 of indices (2) differs from that of src (4)}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = tile.gather %x[%i] axis = 1 : tensor<4x8xf32>, tensor<2x8xi32> -> tensor<2x8xf32>
  return
}

// -----

func.func @gather_rank(%x: tensor<4x8xf32>, %i: tensor<8xi32>) {
  // expected-error@+2 {{rank of indices (1) differs from rank of src (2)}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = tile.gather %x[%i] axis = 1 : tensor<4x8xf32>, tensor<8xi32> -> tensor<8xf32>
  return
}

// -----

// expected-error@+1 {{a pointer points to an integer, a float or a pointer, not to 'tensor<4xf32>'}}
func.func private @pointee(!tile.ptr<tensor<4xf32>>)

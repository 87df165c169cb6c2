// RUN: tilewright-opt %s --split-input-file --verify-diagnostics

func.func @reduce_axis(%a: tensor<4xf32>) {
  // expected-error@+1 {{axis 1 is outside [0, 1)}}
  %0 = tile.reduce(%a) axis = 1 {
  ^bb0(%x: f32, %y: f32):
    tile.yield %x : f32
  } : (tensor<4xf32>) -> f32
  return
}

// -----

func.func @reduce_result(%a: tensor<4x8xf32>) {
  // expected-error@+1 {{result of reducing 4x8 along axis 0 is 8 of 'f32', got 'tensor<4xf32>'}}
  %0 = tile.reduce(%a) axis = 0 {
  ^bb0(%x: f32, %y: f32):
    tile.yield %x : f32
  } : (tensor<4x8xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @reduce_arguments(%a: tensor<4xf32>) {
  // expected-error@+1 {{region takes ('f32') where it needs ('f32', 'f32')}}
  %0 = tile.reduce(%a) axis = 0 {
  ^bb0(%x: f32):
    tile.yield %x : f32
  } : (tensor<4xf32>) -> f32
  return
}

// -----

func.func @reduce_yield(%a: tensor<4xf32>) {
  %0 = tile.reduce(%a) axis = 0 {
  ^bb0(%x: f32, %y: f32):
    // expected-error@+1 {{yields ('f32', 'f32') where 'tile.reduce' needs ('f32')}}
    tile.yield %x, %y : f32, f32
  } : (tensor<4xf32>) -> f32
  return
}

// -----

func.func @reduce_shapes(%a: tensor<4xf32>, %b: tensor<8xf32>) {
  // expected-error@+1 {{sources differ in shape: 4 and 8}}
  %0:2 = tile.reduce(%a, %b) axis = 0 {
  ^bb0(%x: f32, %y: f32, %z: f32, %w: f32):
    tile.yield %x, %y : f32, f32
  } : (tensor<4xf32>, tensor<8xf32>) -> (f32, f32)
  return
}

// -----

func.func @reduce_capture(%a: tensor<4xf32>, %c: f32) {
  // expected-note@+1 {{required by region isolation constraints}}
  %0 = tile.reduce(%a) axis = 0 {
  ^bb0(%x: f32, %y: f32):
    // expected-error@+1 {{using value defined outside the region}}
    tile.yield %c : f32
  } : (tensor<4xf32>) -> f32
  return
}

// -----

func.func @scan_result(%a: tensor<4xf32>) {
  // expected-error@+1 {{results must have the types of the sources}}
  %0 = tile.scan(%a) axis = 0 {
  ^bb0(%x: f32, %y: f32):
    tile.yield %x : f32
  } : (tensor<4xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @map_shape(%a: tensor<4xf32>) {
  // expected-error@+1 {{sources and results differ in shape or layout}}
  %0 = tile.map_elementwise(%a) pack = 1 {
  ^bb0(%x: f32):
    tile.yield %x : f32
  } : (tensor<4xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @map_pack(%a: tensor<4xf32>) {
  // expected-error@+1 {{pack 8 does not divide the 4 elements}}
  %0 = tile.map_elementwise(%a) pack = 8 {
  ^bb0(%x: f32):
    tile.yield %x : f32
  } : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @yield_parent(%x: f32) {
  // expected-error@+1 {{expects parent op to be one of 'tile.reduce, tile.scan, tile.map_elementwise'}}
  tile.yield %x : f32
}

// -----

func.func @histogram_rank(%a: tensor<4x4xi32>) {
  // expected-error@+1 {{needs a source and a result of rank 1}}
  %0 = tile.histogram %a : tensor<4x4xi32> -> tensor<8xi32>
  return
}

// -----

func.func @histogram_mask(%a: tensor<4xi32>, %m: tensor<8xi1>) {
  // expected-error@+1 {{mask must be i1 of the shape and layout of src}}
  %0 = tile.histogram %a mask = %m : tensor<8xi1> : tensor<4xi32> -> tensor<8xi32>
  return
}

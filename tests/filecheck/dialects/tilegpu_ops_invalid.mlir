// RUN: tilewright-opt %s --split-input-file --verify-diagnostics

func.func @convert_shape(%a: tensor<4xf32>) {
  // expected-error@+1 {{only the layout may change: 'tensor<4xf32>' to 'tensor<8xf32>'}}
  %0 = tilegpu.convert_layout %a : tensor<4xf32> -> tensor<8xf32>
  return
}

// -----

func.func @convert_plain(%a: tensor<4xf32>) {
  // expected-error@+1 {{needs tensors with layouts}}
  %0 = tilegpu.convert_layout %a : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

#s = #tilegpu.shared<offset = [[1], [2]]>
func.func @alloc_init(%a: tensor<4xf16>) {
  // expected-error@+1 {{tensor of 4x'f16' and buffer of 4x'f32' differ}}
  %0 = tilegpu.local_alloc %a : tensor<4xf16> -> !tilegpu.buffer<4xf32, #s>
  return
}

// -----

#s = #tilegpu.shared<offset = [[1], [2]]>
func.func @alloc_init_slots(%a: tensor<4xf16>) {
  // expected-error@+1 {{needs one slot of the buffer: index it with tilegpu.slot}}
  %0 = tilegpu.local_alloc %a : tensor<4xf16> -> !tilegpu.buffer<4xf16, #s, slots = 2>
  return
}

// -----

#s = #tilegpu.shared<offset = [[1], [2]]>
func.func @alloc_offset() {
  // expected-error@+1 {{'tilegpu.offset' must be a non-negative i32}}
  %0 = tilegpu.local_alloc : !tilegpu.buffer<4xf16, #s> {tilegpu.offset = -16 : i32}
  return
}

// -----

#s = #tilegpu.shared<offset = [[1], [2]]>
func.func @slot_of_one(%b: !tilegpu.buffer<4xf16, #s>, %i: i32) {
  // expected-error@+1 {{needs a buffer with slots}}
  %0 = tilegpu.slot %b[%i] : !tilegpu.buffer<4xf16, #s>
  return
}

// -----

#s = #tilegpu.shared<offset = [[1], [2], [4]]>
#t = #tilegpu.shared<offset = [[1], [2]]>
func.func @view_block(%b: !tilegpu.buffer<8xf16, #s>) {
  // expected-error@+1 {{sub-block of 4 at 2 is not an aligned part of dimension 0 of size 8}}
  %0 = tilegpu.view %b offsets = [2] : !tilegpu.buffer<8xf16, #s> -> !tilegpu.buffer<4xf16, #t>
  return
}

// -----

#s = #tilegpu.shared<offset = [[0, 1], [0, 2], [1, 0]]>
func.func @view_order(%b: !tilegpu.buffer<2x4xf16, #s>) {
  // expected-error@+1 {{dimension 0 should be 4, got 2}}
  %0 = tilegpu.view %b order = [1, 0] : !tilegpu.buffer<2x4xf16, #s> -> !tilegpu.buffer<2x4xf16, #s>
  return
}

// -----

#s = #tilegpu.shared<offset = [[1], [2], [4]]>
#t = #tilegpu.shared<offset = [[1], [2]]>
func.func @view_reshape(%b: !tilegpu.buffer<8xf16, #s>) {
  // expected-error@+1 {{cannot reshape 8 to 4}}
  %0 = tilegpu.view %b : !tilegpu.buffer<8xf16, #s> -> !tilegpu.buffer<4xf16, #t>
  return
}

// -----

#s = #tilegpu.shared<offset = [[1], [2]]>
func.func @view_element(%b: !tilegpu.buffer<4xf16, #s>) {
  // expected-error@+1 {{cannot change the element type ('f16' to 'i16')}}
  %0 = tilegpu.view %b : !tilegpu.buffer<4xf16, #s> -> !tilegpu.buffer<4xi16, #s>
  return
}

// -----

#s = #tilegpu.shared<offset = [[1], [2]]>
func.func @load_shape(%b: !tilegpu.buffer<4xf16, #s>) {
  // expected-error@+1 {{tensor of 8x'f16' and buffer of 4x'f16' differ}}
  %0 = tilegpu.local_load %b : !tilegpu.buffer<4xf16, #s> -> tensor<8xf16>
  return
}

// -----

#s = #tilegpu.shared<offset = [[1], [2]]>
func.func @store_shape(%b: !tilegpu.buffer<4xf16, #s>, %v: tensor<4xf32>) {
  // expected-error@+1 {{tensor of 4x'f32' and buffer of 4x'f16' differ}}
  tilegpu.local_store %v, %b : tensor<4xf32>, !tilegpu.buffer<4xf16, #s>
  return
}

// -----

#s = #tilegpu.shared<offset = [[1], [2]]>
func.func @copy_mask(%p: tensor<4x!tile.ptr<f16>>, %b: !tilegpu.buffer<4xf16, #s>, %m: tensor<2xi1>) {
  // expected-error@+1 {{mask must be i1 of the shape and layout of ptrs}}
  %0 = tilegpu.async_copy %p, %b mask = %m : tensor<2xi1> : tensor<4x!tile.ptr<f16>>, !tilegpu.buffer<4xf16, #s>
  return
}

// -----

#s = #tilegpu.shared<offset = [[1], [2]]>
func.func @copy_other(%p: tensor<4x!tile.ptr<f16>>, %b: !tilegpu.buffer<4xf16, #s>, %o: tensor<4xf16>) {
  // expected-error@+1 {{'other' needs a 'mask'}}
  %0 = tilegpu.async_copy %p, %b other = %o : tensor<4xf16> : tensor<4x!tile.ptr<f16>>, !tilegpu.buffer<4xf16, #s>
  return
}

// -----

func.func @commit_token(%x: i32) {
  // expected-error@+1 {{operand #0 must be variadic of token, but got 'i32'}}
  %0 = "tilegpu.async_commit"(%x) : (i32) -> !tilegpu.token
  return
}

// -----

func.func @wait_num() {
  // expected-error@+1 {{attribute 'num' failed to satisfy constraint}}
  %0 = tilegpu.async_wait num = -1
  return
}

// -----

#s = #tilegpu.shared<offset = [[1], [2]]>
#w = #tilegpu.shared<offset = [], rank = 1>
func.func @tma_block(%d: !tile.desc<8xf16>, %i: i32, %b: !tilegpu.buffer<4xf16, #s>, %m: !tilegpu.buffer<1xi64, #w>) {
  // expected-error@+1 {{buffer of 4x'f16' does not hold a block of the descriptor: 8x'f16'}}
  tilegpu.tma_load %d[%i], %b, %m : !tile.desc<8xf16>, !tilegpu.buffer<4xf16, #s>, !tilegpu.buffer<1xi64, #w>
  return
}

// -----

#s = #tilegpu.shared<offset = [[1], [2]]>
#w = #tilegpu.shared<offset = [], rank = 1>
func.func @tma_barrier(%d: !tile.desc<4xf16>, %i: i32, %b: !tilegpu.buffer<4xf16, #s>, %m: !tilegpu.buffer<1xi64, #w, slots = 2>) {
  // expected-error@+1 {{needs a single mbarrier}}
  tilegpu.tma_load %d[%i], %b, %m : !tile.desc<4xf16>, !tilegpu.buffer<4xf16, #s>, !tilegpu.buffer<1xi64, #w, slots = 2>
  return
}

// -----

#s = #tilegpu.shared<offset = [[1], [2]]>
func.func @barrier_element(%b: !tilegpu.buffer<4xf16, #s>) {
  // expected-error@+1 {{operand #0 must be buffer of i64 mbarriers}}
  tilegpu.mbarrier_init %b count = 1 : !tilegpu.buffer<4xf16, #s>
  return
}

// -----

#s = #tilegpu.shared<offset = [[1], [2]]>
func.func @store_indices(%d: !tile.desc<4xf16>, %i: i32, %b: !tilegpu.buffer<4xf16, #s>) {
  // expected-error@+1 {{needs 1 indices, got 2}}
  tilegpu.tma_store %d[%i, %i], %b : !tile.desc<4xf16>, !tilegpu.buffer<4xf16, #s>
  return
}

// -----

#s = #tilegpu.shared<offset = [[1], [2]]>
func.func @reduce_xchg(%d: !tile.desc<4xf16>, %i: i32, %b: !tilegpu.buffer<4xf16, #s>) {
  // expected-error@+1 {{cannot exchange a block}}
  tilegpu.tma_reduce xchg %d[%i], %b : !tile.desc<4xf16>, !tilegpu.buffer<4xf16, #s>
  return
}

// -----

#s = #tilegpu.shared<offset = [[0, 1], [0, 2], [1, 0]]>
#w = #tilegpu.shared<offset = [], rank = 1>
func.func @gather_rows(%d: !tile.desc<1x4xf16>, %x: tensor<4xi32>, %i: i32, %b: !tilegpu.buffer<2x4xf16, #s>, %m: !tilegpu.buffer<1xi64, #w>) {
  // expected-error@+1 {{buffer of 2x4x'f16' should be 4x4x'f16'}}
  tilegpu.tma_gather %d[%x, %i], %b, %m : !tile.desc<1x4xf16>, tensor<4xi32>, !tilegpu.buffer<2x4xf16, #s>, !tilegpu.buffer<1xi64, #w>
  return
}

// -----

#s = #tilegpu.shared<offset = [[0, 1], [0, 2], [1, 0]]>
func.func @scatter_rows(%d: !tile.desc<2x4xf16>, %x: tensor<2xi32>, %i: i32, %b: !tilegpu.buffer<2x4xf16, #s>) {
  // expected-error@+1 {{needs a descriptor of blocks of one row and x offsets of rank 1}}
  tilegpu.tma_scatter %d[%x, %i], %b : !tile.desc<2x4xf16>, tensor<2xi32>, !tilegpu.buffer<2x4xf16, #s>
  return
}

// -----

func.func @barrier_id() {
  // expected-error@+1 {{attribute 'id' failed to satisfy constraint}}
  tilegpu.named_barrier_sync id = 16 threads = 128
  return
}

// -----

func.func @roles_count(%x: f32) {
  // expected-error@+1 {{has 1 regions for 2 roles, 1 warps and 1 registers}}
  tilegpu.warp_specialize(%x) roles = ["a", "b"] warps = [4] registers = [0] {
  ^bb0(%y: f32):
    tilegpu.warp_yield
  } : (f32) -> ()
  return
}

// -----

func.func @roles_captures(%x: f32) {
  // expected-error@+1 {{role 'a' must take the captures as block arguments}}
  tilegpu.warp_specialize(%x) roles = ["a"] warps = [4] registers = [0] {
    tilegpu.warp_yield
  } : (f32) -> ()
  return
}

// -----

func.func @roles_end() {
  // expected-error@+1 {{role 'b' must end with warp_return}}
  tilegpu.warp_specialize() roles = ["a", "b"] warps = [4, 4] registers = [0, 0] {
    tilegpu.warp_yield
  }, {
    tilegpu.warp_yield
  } : () -> ()
  return
}

// -----

func.func @roles_yield() -> f32 {
  %0 = tilegpu.warp_specialize() roles = ["a"] warps = [4] registers = [0] {
    // expected-error@+1 {{yields () where the results are ('f32')}}
    tilegpu.warp_yield
  } : () -> f32
  return %0 : f32
}

// -----

func.func @barrier_operand(%x: i32) {
  // expected-error@+1 {{requires zero operands}}
  "tilegpu.barrier"(%x) : (i32) -> ()
  return
}

// -----

func.func @fence_operand(%x: i32) {
  // expected-error@+1 {{requires zero operands}}
  "tilegpu.fence_async"(%x) : (i32) -> ()
  return
}

// -----

func.func @cluster_arrive_operand(%x: i32) {
  // expected-error@+1 {{requires zero operands}}
  "tilegpu.cluster_arrive"(%x) : (i32) -> ()
  return
}

// -----

func.func @cluster_wait_result() {
  // expected-error@+1 {{requires zero results}}
  %0 = "tilegpu.cluster_wait"() : () -> i32
  return
}

// -----

func.func @named_arrive_threads() {
  // expected-error@+1 {{attribute 'threads' failed to satisfy constraint}}
  tilegpu.named_barrier_arrive id = 1 threads = 0
  return
}

// -----

#w = #tilegpu.shared<offset = [], rank = 1>
func.func @arrive_count(%m: !tilegpu.buffer<1xi64, #w>) {
  // expected-error@+1 {{attribute 'count' failed to satisfy constraint}}
  tilegpu.mbarrier_arrive %m count = 0 : !tilegpu.buffer<1xi64, #w>
  return
}

// -----

#w = #tilegpu.shared<offset = [], rank = 1>
func.func @expect_bytes(%m: !tilegpu.buffer<1xi64, #w>) {
  // expected-error@+1 {{attribute 'bytes' failed to satisfy constraint}}
  tilegpu.mbarrier_expect %m bytes = -1 : !tilegpu.buffer<1xi64, #w>
  return
}

// -----

#s = #tilegpu.shared<offset = [[1], [2]]>
func.func @wait_element(%b: !tilegpu.buffer<4xf16, #s>, %p: i32) {
  // expected-error@+1 {{operand #0 must be buffer of i64 mbarriers}}
  tilegpu.mbarrier_wait %b, %p : !tilegpu.buffer<4xf16, #s>
  return
}

// -----

func.func @store_wait_num() {
  // expected-error@+1 {{attribute 'num' failed to satisfy constraint}}
  tilegpu.tma_store_wait num = -1
  return
}

// -----

func.func @return_alone() {
  // expected-error@+1 {{expects parent op 'tilegpu.warp_specialize'}}
  tilegpu.warp_return
}

// RUN: tilewright-opt %s --passes=canonicalize | filecheck %s

#x = #tilegpu.linear<register = [[1], [2]], lane = [[4]], warp = [], block = []>
#y = #tilegpu.linear<register = [[4], [2]], lane = [[1]], warp = [], block = []>
#s = #tilegpu.shared<offset = [[1], [2], [4]]>

// CHECK-DAG: #[[X:.*]] = #tilegpu.linear<register = {{\[}}[1], [2]
// CHECK-DAG: #[[Y:.*]] = #tilegpu.linear<register = {{\[}}[4], [2]

// CHECK-LABEL: func.func @conversions
// CHECK-SAME: %[[A:[a-z0-9]*]]: tensor<8xf32, #[[X]]>, %[[V:[a-z0-9]*]]: f32
// CHECK-DAG: %[[C:.*]] = arith.constant dense<1.000000e+00> : tensor<8xf32, #[[Y]]>
// CHECK-DAG: %[[S:.*]] = tile.splat %[[V]] : f32 -> tensor<8xf32, #[[Y]]>
// CHECK-DAG: %[[R:.*]] = tile.range 0 to 8 : tensor<8xi32, #[[Y]]>
// CHECK-NOT: tilegpu.convert_layout
// CHECK: return %[[A]], %[[C]], %[[S]], %[[R]]
func.func @conversions(%a: tensor<8xf32, #x>, %v: f32) -> (tensor<8xf32, #x>, tensor<8xf32, #y>, tensor<8xf32, #y>, tensor<8xi32, #y>) {
  %0 = tilegpu.convert_layout %a : tensor<8xf32, #x> -> tensor<8xf32, #y>
  %1 = tilegpu.convert_layout %0 : tensor<8xf32, #y> -> tensor<8xf32, #x>
  %c = arith.constant dense<1.0> : tensor<8xf32, #x>
  %2 = tilegpu.convert_layout %c : tensor<8xf32, #x> -> tensor<8xf32, #y>
  %s = tile.splat %v : f32 -> tensor<8xf32, #x>
  %3 = tilegpu.convert_layout %s : tensor<8xf32, #x> -> tensor<8xf32, #y>
  %r = tile.range 0 to 8 : tensor<8xi32, #x>
  %4 = tilegpu.convert_layout %r : tensor<8xi32, #x> -> tensor<8xi32, #y>
  return %1, %2, %3, %4 : tensor<8xf32, #x>, tensor<8xf32, #y>, tensor<8xf32, #y>, tensor<8xi32, #y>
}

// Layout and shape ops of splats meet in one splat.
// CHECK-LABEL: func.func @splat_with_layout
// CHECK-NEXT: %[[S:.*]] = tile.splat %{{.*}} : f32 -> tensor<8x1xf32, #{{.*}}>
// CHECK-NEXT: return %[[S]]
#col = #tilegpu.linear<register = [[4, 0], [2, 0]], lane = [[1, 0]], warp = [], block = []>
func.func @splat_with_layout(%v: f32) -> tensor<8x1xf32, #col> {
  %s = tile.splat %v : f32 -> tensor<8xf32, #x>
  %0 = tilegpu.convert_layout %s : tensor<8xf32, #x> -> tensor<8xf32, #y>
  %1 = tile.expand_dims %0 axis = 1 : tensor<8xf32, #y> -> tensor<8x1xf32, #col>
  return %1 : tensor<8x1xf32, #col>
}

// CHECK-LABEL: func.func @shared
// CHECK-NEXT: tilegpu.local_store
// CHECK-NEXT: tilegpu.barrier
// CHECK-NEXT: %[[L:.*]] = tilegpu.local_load
// CHECK-NEXT: return %[[L]]
func.func @shared(%b: !tilegpu.buffer<8xf32, #s>, %v: tensor<8xf32, #x>) -> tensor<8xf32, #x> {
  %0 = tilegpu.view %b : !tilegpu.buffer<8xf32, #s> -> !tilegpu.buffer<8xf32, #s>
  %dead = tilegpu.local_load %b : !tilegpu.buffer<8xf32, #s> -> tensor<8xf32, #x>
  %unused = tilegpu.local_alloc : !tilegpu.buffer<8xf32, #s>
  tilegpu.local_store %v, %0 : tensor<8xf32, #x>, !tilegpu.buffer<8xf32, #s>
  tilegpu.barrier
  tilegpu.barrier
  %1 = tilegpu.local_load %0 : !tilegpu.buffer<8xf32, #s> -> tensor<8xf32, #x>
  return %1 : tensor<8xf32, #x>
}

// RUN: tilewright-opt %s | tilewright-opt | filecheck %s

// CHECK-DAG: #[[L:layout[0-9]*]] = #tilegpu.linear<register = {{\[}}[0, 1], [0, 2]{{\]}}, lane = {{\[}}[0, 4], [1, 0]{{\]}}, warp = {{\[}}[0, 0]{{\]}}, block = []>
// CHECK-DAG: #tilegpu.linear<register = [], lane = [], warp = [], block = [], rank = 2>
// CHECK-DAG: #[[S:shared[0-9]*]] = #tilegpu.shared<offset = {{\[}}[0, 1], [0, 2], [0, 4], [1, 1]{{\]}}, pad = [8, 4]>
#layout = #tilegpu.linear<register = [[0, 1], [0, 2]], lane = [[0, 4], [1, 0]], warp = [[0, 0]], block = []>
#one = #tilegpu.linear<register = [], lane = [], warp = [], block = [], rank = 2>
#shared = #tilegpu.shared<offset = [[0, 1], [0, 2], [0, 4], [1, 1]], pad = [8, 4]>
#plain = #tilegpu.shared<offset = [[1], [2]]>
#word = #tilegpu.shared<offset = [], rank = 1>

// CHECK: module attributes
// CHECK-SAME: tilegpu.num_warps = 2 : i32
module attributes {tilegpu.target = "cuda:90", tilegpu.num_warps = 2 : i32, tilegpu.num_ctas = 1 : i32, tilegpu.threads_per_warp = 4 : i32, tilegpu.shared = 128 : i32} {
  // CHECK: func.func private @types(tensor<2x8xf32, #[[L]]>, tensor<1x1xf16, #{{.*}}>, !tilegpu.buffer<2x8xf16, #[[S]]>, !tilegpu.buffer<2x8xf16, #[[S]], slots = 3>,
  // CHECK-SAME: !tilegpu.buffer<4x!tile.ptr<f32>, #{{.*}}>, !tilegpu.buffer<1xi64, #{{.*}}, slots = 2>, !tilegpu.token, !tile.desc<2x8xf16, #[[S]]>)
  func.func private @types(tensor<2x8xf32, #layout>, tensor<1x1xf16, #one>, !tilegpu.buffer<2x8xf16, #shared>, !tilegpu.buffer<2x8xf16, #shared, slots = 3>,
    !tilegpu.buffer<4x!tile.ptr<f32>, #plain>, !tilegpu.buffer<1xi64, #word, slots = 2>, !tilegpu.token, !tile.desc<2x8xf16, #shared>)

  // arith, math and scf take tensors with layouts as they are.
  // CHECK-LABEL: func.func @upstream
  func.func @upstream(%a: tensor<2x8xf32, #layout>, %c: i1, %n: i32) -> tensor<2x8xf32, #layout> {
    %0 = arith.addf %a, %a : tensor<2x8xf32, #layout>
    %1 = math.exp2 %0 : tensor<2x8xf32, #layout>
    // CHECK: arith.cmpf ogt, %{{.*}}, %{{.*}} : tensor<2x8xf32, #[[L]]>
    %2 = arith.cmpf ogt, %0, %1 : tensor<2x8xf32, #layout>
    %3 = arith.select %2, %0, %1 : tensor<2x8xi1, #layout>, tensor<2x8xf32, #layout>
    %4 = scf.if %c -> tensor<2x8xf32, #layout> {
      scf.yield %3 : tensor<2x8xf32, #layout>
    } else {
      %z = arith.constant dense<0.0> : tensor<2x8xf32, #layout>
      scf.yield %z : tensor<2x8xf32, #layout>
    }
    return %4 : tensor<2x8xf32, #layout>
  }
}

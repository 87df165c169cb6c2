// RUN: tilewright-opt %s | tilewright-opt | filecheck %s

#a = #tilegpu.linear<register = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0]], lane = [], warp = [], block = []>
#b = #tilegpu.linear<register = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0]], lane = [], warp = [], block = []>
#c = #tilegpu.linear<register = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0]], lane = [], warp = [], block = []>
#sa = #tilegpu.shared<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0]]>
#sb = #tilegpu.shared<offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0]]>

// CHECK-LABEL: func.func @mma
func.func @mma(%a: tensor<64x16xf16, #a>, %b: tensor<16x8xf16, #b>, %c: tensor<64x8xf32, #c>) -> tensor<64x8xf32, #c> {
  // CHECK: tilegpu.mma %{{.*}}, %{{.*}}, %{{.*}} instr = [16, 8, 16] precision = ieee : tensor<64x16xf16, #{{.*}}>, tensor<16x8xf16, #{{.*}}> -> tensor<64x8xf32, #{{.*}}>
  %0 = tilegpu.mma %a, %b, %c instr = [16, 8, 16] precision = ieee : tensor<64x16xf16, #a>, tensor<16x8xf16, #b> -> tensor<64x8xf32, #c>
  return %0 : tensor<64x8xf32, #c>
}

// CHECK-LABEL: func.func @wgmma
func.func @wgmma(%a: tensor<64x16xf16, #a>, %sa: !tilegpu.buffer<64x16xf16, #sa>, %sb: !tilegpu.buffer<16x8xf16, #sb>, %c: tensor<64x8xf32, #c>, %u: i1) -> tensor<64x8xf32, #c> {
  // CHECK: %[[P:.*]] = tilegpu.wgmma %{{.*}}, %{{.*}}, %{{.*}} use_acc = %{{.*}} instr = [64, 8, 16] precision = tf32 : !tilegpu.buffer<64x16xf16, #{{.*}}>, !tilegpu.buffer<16x8xf16, #{{.*}}> -> tensor<64x8xf32, #{{.*}}>
  %0 = tilegpu.wgmma %sa, %sb, %c use_acc = %u instr = [64, 8, 16] precision = tf32 : !tilegpu.buffer<64x16xf16, #sa>, !tilegpu.buffer<16x8xf16, #sb> -> tensor<64x8xf32, #c>
  // CHECK: %[[Q:.*]] = tilegpu.wgmma %{{.*}}, %{{.*}}, %[[P]] instr = [64, 8, 16] precision = tf32 : tensor<64x16xf16, #{{.*}}>, !tilegpu.buffer<16x8xf16, #{{.*}}>
  %1 = tilegpu.wgmma %a, %sb, %0 instr = [64, 8, 16] precision = tf32 : tensor<64x16xf16, #a>, !tilegpu.buffer<16x8xf16, #sb> -> tensor<64x8xf32, #c>
  // CHECK: tilegpu.wgmma_wait num = 1
  tilegpu.wgmma_wait num = 1
  // CHECK: %[[R:.*]] = tilegpu.wgmma_wait num = 0(%[[Q]] : tensor<64x8xf32, #{{.*}}>)
  %2 = tilegpu.wgmma_wait num = 0 (%1 : tensor<64x8xf32, #c>)
  // CHECK: return %[[R]]
  return %2 : tensor<64x8xf32, #c>
}

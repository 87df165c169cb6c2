// RUN: tilewright-opt %s --pass-pipeline='builtin.module(tilegpu-start-accumulators)' | filecheck %s

#acc = #tilegpu.linear<register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]], block = []>
#a = #tilegpu.shared<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
module attributes {tilegpu.num_ctas = 1 : i32, tilegpu.num_warps = 4 : i32, tilegpu.target = "cuda:90", tilegpu.threads_per_warp = 32 : i32} {
  // Behind the branch the loop is sure to run: its first product does not read the accumulator.
  // CHECK-LABEL: func.func @behind_branch
  // CHECK: scf.if
  // CHECK-NEXT: %[[NOTHING:.*]] = ub.poison
  // CHECK-NEXT: scf.for %[[IV:.*]] = %[[LOWER:.*]] to %{{.*}} iter_args(%{{.*}} = %[[NOTHING]])
  // CHECK-NEXT: %[[AGAIN:.*]] = arith.cmpi sgt, %[[IV]], %[[LOWER]]
  // CHECK-NEXT: tilegpu.wgmma {{.*}} use_acc = %[[AGAIN]]
  func.func @behind_branch(%x: !tilegpu.buffer<64x64xf16, #a>, %lower: i32, %upper: i32) -> tensor<64x64xf32, #acc> {
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #acc>
    %c1 = arith.constant 1 : i32
    %runs = arith.cmpi slt, %lower, %upper : i32
    %sum = scf.if %runs -> (tensor<64x64xf32, #acc>) {
      %s = scf.for %i = %lower to %upper step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32, #acc>) : i32 {
        %d = tilegpu.wgmma %x, %x, %acc instr = [64, 64, 16] precision = tf32 : !tilegpu.buffer<64x64xf16, #a>, !tilegpu.buffer<64x64xf16, #a> -> tensor<64x64xf32, #acc>
        %w = tilegpu.wgmma_wait num = 0 (%d : tensor<64x64xf32, #acc>)
        scf.yield %w : tensor<64x64xf32, #acc>
      }
      scf.yield %s : tensor<64x64xf32, #acc>
    } else {
      scf.yield %zero : tensor<64x64xf32, #acc>
    }
    return %sum : tensor<64x64xf32, #acc>
  }

  // It may not run, or something else reads the accumulator: zeros.
  // CHECK-LABEL: func.func @zeros
  // CHECK-NOT: ub.poison
  // CHECK-NOT: use_acc
  func.func @zeros(%x: !tilegpu.buffer<64x64xf16, #a>, %upper: i32) -> (tensor<64x64xf32, #acc>, tensor<64x64xf32, #acc>) {
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #acc>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c8 = arith.constant 8 : i32
    %s = scf.for %i = %c0 to %upper step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32, #acc>) : i32 {
      %d = tilegpu.wgmma %x, %x, %acc instr = [64, 64, 16] precision = tf32 : !tilegpu.buffer<64x64xf16, #a>, !tilegpu.buffer<64x64xf16, #a> -> tensor<64x64xf32, #acc>
      %w = tilegpu.wgmma_wait num = 0 (%d : tensor<64x64xf32, #acc>)
      scf.yield %w : tensor<64x64xf32, #acc>
    }
    %t = scf.for %i = %c0 to %c8 step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32, #acc>) : i32 {
      %e = arith.addf %acc, %s : tensor<64x64xf32, #acc>
      %d = tilegpu.wgmma %x, %x, %e instr = [64, 64, 16] precision = tf32 : !tilegpu.buffer<64x64xf16, #a>, !tilegpu.buffer<64x64xf16, #a> -> tensor<64x64xf32, #acc>
      %w = tilegpu.wgmma_wait num = 0 (%d : tensor<64x64xf32, #acc>)
      scf.yield %w : tensor<64x64xf32, #acc>
    }
    return %s, %t : tensor<64x64xf32, #acc>, tensor<64x64xf32, #acc>
  }
}

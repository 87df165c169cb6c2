// RUN: tilewright-opt %s --split-input-file --passes=tilegpu-version-masks,canonicalize,cse | filecheck %s

#acc = #tilegpu.linear<register = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]], block = []>
#rows = #tilegpu.linear<register = [[8]], lane = [[0], [0], [1], [2], [4]], warp = [[16], [32]], block = []>
#rows1 = #tilegpu.linear<register = [[8, 0]], lane = [[0, 0], [0, 0], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]], block = []>
#cols = #tilegpu.linear<register = [[1], [0]], lane = [[2], [4], [0], [0], [0]], warp = [[0], [0]], block = []>
#cols1 = #tilegpu.linear<register = [[0, 1], [0, 0]], lane = [[0, 2], [0, 4], [0, 0], [0, 0], [0, 0]], warp = [[0, 0], [0, 0]], block = []>
#sa = #tilegpu.shared<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0]]>
#sb = #tilegpu.shared<offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0]]>
module attributes {tilegpu.num_ctas = 1 : i32, tilegpu.num_warps = 4 : i32, tilegpu.target = "cuda:90", tilegpu.threads_per_warp = 32 : i32} {
  // Row 64 * pid + (0 to 63) >= column n + (0 to 7) everywhere if 64 * pid >= n + 7. There the scale follows the maximum, if it is positive.
  // CHECK-LABEL: func.func @causal
  // CHECK: scf.for
  // CHECK: %[[X:.*]] = tilegpu.wgmma_wait
  // CHECK: %[[N:.*]] = arith.muli
  // CHECK: %[[END:.*]] = arith.addi %[[N]], %c7_i32
  // CHECK: %[[TRUE:.*]] = arith.cmpi sge, %{{.*}}, %[[END]] : i32
  // CHECK: arith.cmpf ogt, %[[SCALE:[^,]*]], %
  // CHECK: arith.cmpf olt, %[[SCALE]], %
  // CHECK: scf.if
  // CHECK-NOT: arith.select
  // CHECK: %[[MAX:.*]] = tile.reduce(%[[X]])
  // CHECK: arith.mulf %[[MAX]],
  // CHECK: arith.subf
  // CHECK: math.exp2
  // CHECK: } else {
  // CHECK: arith.cmpi sge, %{{.*}} : tensor
  // CHECK: arith.select
  // CHECK: tile.reduce
  // CHECK: }
  func.func @causal(%a: !tilegpu.buffer<64x16xf16, #sa>, %b: !tilegpu.buffer<16x8xf16, #sb>, %scale: f32, %end: i32) -> tensor<64x8xf32, #acc> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c8 = arith.constant 8 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x8xf32, #acc>
    %low = arith.constant dense<-1.0e6> : tensor<64x8xf32, #acc>
    %pid = tile.program_id 0
    %first = arith.muli %pid, %c64 : i32
    %r0 = tile.range 0 to 64 : tensor<64xi32, #rows>
    %r1 = tile.splat %first : i32 -> tensor<64xi32, #rows>
    %r2 = arith.addi %r0, %r1 : tensor<64xi32, #rows>
    %r3 = tile.expand_dims %r2 axis = 1 : tensor<64xi32, #rows> -> tensor<64x1xi32, #rows1>
    %row = tile.broadcast %r3 : tensor<64x1xi32, #rows1> -> tensor<64x8xi32, #acc>
    %s = tile.splat %scale : f32 -> tensor<64x8xf32, #acc>
    %r = scf.for %i = %c0 to %end step %c1 iter_args(%sum = %zero) -> (tensor<64x8xf32, #acc>) : i32 {
      %p = tilegpu.wgmma %a, %b, %zero instr = [64, 8, 16] precision = ieee : !tilegpu.buffer<64x16xf16, #sa>, !tilegpu.buffer<16x8xf16, #sb> -> tensor<64x8xf32, #acc>
      %x = tilegpu.wgmma_wait num = 0 (%p : tensor<64x8xf32, #acc>)
      %n = arith.muli %i, %c8 : i32
      %k0 = tile.range 0 to 8 : tensor<8xi32, #cols>
      %k1 = tile.splat %n : i32 -> tensor<8xi32, #cols>
      %k2 = arith.addi %k0, %k1 : tensor<8xi32, #cols>
      %k3 = tile.expand_dims %k2 axis = 0 : tensor<8xi32, #cols> -> tensor<1x8xi32, #cols1>
      %col = tile.broadcast %k3 : tensor<1x8xi32, #cols1> -> tensor<64x8xi32, #acc>
      %mask = arith.cmpi sge, %row, %col : tensor<64x8xi32, #acc>
      %scaled = arith.mulf %x, %s : tensor<64x8xf32, #acc>
      %masked = arith.select %mask, %scaled, %low : tensor<64x8xi1, #acc>, tensor<64x8xf32, #acc>
      %m = tile.reduce(%masked) axis = 1 {
      ^bb0(%l: f32, %q: f32):
        %best = arith.maxnumf %l, %q : f32
        tile.yield %best : f32
      } : (tensor<64x8xf32, #acc>) -> tensor<64xf32, #rows>
      %m1 = tile.expand_dims %m axis = 1 : tensor<64xf32, #rows> -> tensor<64x1xf32, #rows1>
      %m2 = tile.broadcast %m1 : tensor<64x1xf32, #rows1> -> tensor<64x8xf32, #acc>
      %d = arith.subf %masked, %m2 : tensor<64x8xf32, #acc>
      %e = math.exp2 %d : tensor<64x8xf32, #acc>
      %next = arith.addf %sum, %e : tensor<64x8xf32, #acc>
      scf.yield %next : tensor<64x8xf32, #acc>
    }
    return %r : tensor<64x8xf32, #acc>
  }

  // A mask of values is not known to be true anywhere.
  // CHECK-LABEL: func.func @values
  // CHECK-NOT: scf.if
  func.func @values(%a: !tilegpu.buffer<64x16xf16, #sa>, %b: !tilegpu.buffer<16x8xf16, #sb>, %mask: tensor<64x8xi1, #acc>, %end: i32) -> tensor<64x8xf32, #acc> {
    %c0 = arith.constant 0 : i32
    %c8 = arith.constant 8 : i32
    %zero = arith.constant dense<0.0> : tensor<64x8xf32, #acc>
    %r = scf.for %n = %c0 to %end step %c8 iter_args(%sum = %zero) -> (tensor<64x8xf32, #acc>) : i32 {
      %p = tilegpu.wgmma %a, %b, %zero instr = [64, 8, 16] precision = ieee : !tilegpu.buffer<64x16xf16, #sa>, !tilegpu.buffer<16x8xf16, #sb> -> tensor<64x8xf32, #acc>
      %x = tilegpu.wgmma_wait num = 0 (%p : tensor<64x8xf32, #acc>)
      %masked = arith.select %mask, %x, %zero : tensor<64x8xi1, #acc>, tensor<64x8xf32, #acc>
      %next = arith.addf %sum, %masked : tensor<64x8xf32, #acc>
      scf.yield %next : tensor<64x8xf32, #acc>
    }
    return %r : tensor<64x8xf32, #acc>
  }
}

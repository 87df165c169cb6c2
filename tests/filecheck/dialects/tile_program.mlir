// RUN: tilewright-opt %s | tilewright-opt | filecheck %s

// CHECK-LABEL: func.func @kernel
// CHECK-SAME: tile.divisibility = 16 : i32
func.func @kernel(%p: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %c: i1, %t: tensor<4xf32>, %m: tensor<4xi1>,
    %part: tensor<4x2xf32>, %bytes: tensor<4x2xi8>) {
  // CHECK: tile.program_id 2
  %0 = tile.program_id 2
  // CHECK: tile.num_programs 0
  %1 = tile.num_programs 0
  // CHECK: tile.print "x = " hex signed = [true, false](%{{.*}}, %{{.*}} : i32, tensor<4xf32>)
  tile.print "x = " hex signed = [true, false] (%0, %t : i32, tensor<4xf32>)
  // CHECK: tile.print "done"
  tile.print "done"
  // CHECK: tile.assert %{{.*}}, "text" : i1
  tile.assert %c, "text" : i1
  // CHECK: tile.assert %{{.*}} mask = %{{.*}} : tensor<4xi1>, "text" : tensor<4xi1>
  tile.assert %m mask = %m : tensor<4xi1>, "text" : tensor<4xi1>
  // CHECK: tile.assume %{{.*}}
  tile.assume %c
  // CHECK: tile.barrier
  tile.barrier
  // CHECK: tile.globaltimer
  %2 = tile.globaltimer
  // CHECK: tile.smid
  %3 = tile.smid
  // CHECK: tile.cluster_rank
  %rank = tile.cluster_rank
  // CHECK: tile.exchange %{{.*}}, %{{.*}} of [8, 4] from [4, 0, 0, 2] to [0, 0, 0, 1] first : tensor<4x2xf32>, tensor<4x2xi8> -> tensor<8x2xf32>, tensor<8x2xi8>
  %e:2 = tile.exchange %part, %bytes of [8, 4] from [4, 0, 0, 2] to [0, 0, 0, 1] first
      : tensor<4x2xf32>, tensor<4x2xi8> -> tensor<8x2xf32>, tensor<8x2xi8>
  // CHECK: tile.gdc_wait
  tile.gdc_wait
  // CHECK: tile.gdc_launch
  tile.gdc_launch
  // CHECK: tile.range 0 to 4 {tile.divisibility = array<i32: 4>}
  %4 = tile.range 0 to 4 {tile.divisibility = array<i32: 4>} : tensor<4xi32>
  return
}

// RUN: tilewright-opt %s | tilewright-opt | filecheck %s

// CHECK-LABEL: func.func @pointers
func.func @pointers(%p: !tile.ptr<f32>, %t: tensor<4x!tile.ptr<f32>>, %i: i64, %o: tensor<4xi32>) {
  // CHECK: tile.addptr %{{.*}}, %{{.*}} : !tile.ptr<f32>, i64
  %0 = tile.addptr %p, %i : !tile.ptr<f32>, i64
  // CHECK: tile.addptr %{{.*}}, %{{.*}} : tensor<4x!tile.ptr<f32>>, tensor<4xi32>
  %1 = tile.addptr %t, %o : tensor<4x!tile.ptr<f32>>, tensor<4xi32>
  // CHECK: tile.ptr_to_int %{{.*}} : tensor<4x!tile.ptr<f32>>
  %2 = tile.ptr_to_int %t : tensor<4x!tile.ptr<f32>>
  // CHECK: tile.int_to_ptr %{{.*}} : tensor<4xi64> -> tensor<4x!tile.ptr<i8>>
  %3 = tile.int_to_ptr %2 : tensor<4xi64> -> tensor<4x!tile.ptr<i8>>
  // CHECK: tile.bitcast %{{.*}} : !tile.ptr<f32> -> !tile.ptr<i8>
  %4 = tile.bitcast %p : !tile.ptr<f32> -> !tile.ptr<i8>
  return
}

// CHECK-LABEL: func.func @floats
func.func @floats(%x: f32, %t: tensor<4xf32>, %e: tensor<4xf8E5M2>, %b: tensor<4xi8>, %i: tensor<4xi32>) {
  // CHECK: tile.bitcast %{{.*}} : tensor<4xf32> -> tensor<4xi32>
  %0 = tile.bitcast %t : tensor<4xf32> -> tensor<4xi32>
  // CHECK: tile.fp_to_fp %{{.*}} : tensor<4xf8E5M2> -> tensor<4xf16>
  %1 = tile.fp_to_fp %e : tensor<4xf8E5M2> -> tensor<4xf16>
  // CHECK: tile.fp_to_fp %{{.*}} rounding = rtz : f32 -> bf16
  %2 = tile.fp_to_fp %x rounding = rtz : f32 -> bf16
  // CHECK: tile.fp_to_fp %{{.*}} src_kind = "fp8e4b15" : tensor<4xi8> -> tensor<4xf16>
  %3 = tile.fp_to_fp %b src_kind = "fp8e4b15" : tensor<4xi8> -> tensor<4xf16>
  // CHECK: tile.fp_to_fp %{{.*}} rounding = rtne dst_kind = "fp8e4b15" : tensor<4xf32> -> tensor<4xi8>
  %4 = tile.fp_to_fp %t rounding = rtne dst_kind = "fp8e4b15" : tensor<4xf32> -> tensor<4xi8>
  // CHECK: tile.clampf %{{.*}}, %{{.*}}, %{{.*}} : f32
  %5 = tile.clampf %x, %x, %x : f32
  // CHECK: tile.clampf %{{.*}}, %{{.*}}, %{{.*}} propagate_nan : tensor<4xf32>
  %6 = tile.clampf %t, %t, %t propagate_nan : tensor<4xf32>
  // CHECK: tile.sqrt_rn %{{.*}} : tensor<4xf32>
  %7 = tile.sqrt_rn %t : tensor<4xf32>
  // CHECK: tile.div_rn %{{.*}}, %{{.*}} : f32
  %8 = tile.div_rn %x, %x : f32
  // CHECK: tile.mulhi %{{.*}}, %{{.*}} : tensor<4xi32>
  %9 = tile.mulhi %i, %i : tensor<4xi32>
  // CHECK: tile.mulhi %{{.*}}, %{{.*}} signed : tensor<4xi32>
  %10 = tile.mulhi %i, %i signed : tensor<4xi32>
  return
}

// CHECK-LABEL: func.func @calls
func.func @calls(%t: tensor<4xf32>, %x: f32) {
  // CHECK: tile.inline_asm "add.f32 $0, $1, $2;", "=f,f,f"(%{{.*}}, %{{.*}}) pure : (tensor<4xf32>, f32) -> tensor<4xf32>
  %0 = tile.inline_asm "add.f32 $0, $1, $2;", "=f,f,f"(%t, %x) pure : (tensor<4xf32>, f32) -> tensor<4xf32>
  // CHECK: tile.inline_asm "nop;", "=r,=r"() {pack = 2 : i32} : () -> (i32, i32)
  %1:2 = tile.inline_asm "nop;", "=r,=r"() {pack = 2 : i32} : () -> (i32, i32)
  // CHECK: tile.extern_call "__nv_fmaxf"(%{{.*}}, %{{.*}}) pure {lib_name = "libdevice"} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = tile.extern_call "__nv_fmaxf"(%t, %t) pure {lib_name = "libdevice"} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// RUN: tilewright-opt %s --passes=tilegpu-allocate-shared | filecheck %s

// The buffer that comes after the last use of the mbarrier does not lie where that is.
#shared = #tilegpu.shared<offset = [[1], [2], [4], [8], [16], [32]]>
#single = #tilegpu.shared<offset = [], rank = 1>
#linear = #tilegpu.linear<register = [[32]], lane = [[1], [2], [4], [8], [16]], warp = [], block = []>
// CHECK: tilegpu.shared = 264 : i32
func.func public @kernel(%v: tensor<64xf32, #linear>) {
  %c0 = arith.constant 0 : i32
  // CHECK: tilegpu.local_alloc : {{.*}}<1xi64{{.*}} {tilegpu.offset = 256 : i32}
  %m = tilegpu.local_alloc : !tilegpu.buffer<1xi64, #single>
  tilegpu.mbarrier_init %m count = 1 : !tilegpu.buffer<1xi64, #single>
  tilegpu.mbarrier_wait %m, %c0 : !tilegpu.buffer<1xi64, #single>
  // CHECK: tilegpu.local_alloc %{{.*}} {tilegpu.offset = 0 : i32}
  %b = tilegpu.local_alloc %v : tensor<64xf32, #linear> -> !tilegpu.buffer<64xf32, #shared>
  %w = tilegpu.local_load %b : !tilegpu.buffer<64xf32, #shared> -> tensor<64xf32, #linear>
  tile.print "w" signed = [true] (%w : tensor<64xf32, #linear>)
  return
}

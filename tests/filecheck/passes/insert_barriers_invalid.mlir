// RUN: tilewright-opt %s --split-input-file --verify-diagnostics --passes=tilegpu-insert-barriers

// expected-error@unknown {{tilegpu.local_alloc has no tilegpu.offset: run tilegpu-allocate-shared first}}
#s = #tilegpu.shared<offset = [[1], [2]]>
func.func @unplaced() {
  %0 = tilegpu.local_alloc : !tilegpu.buffer<4xf32, #s>
  return
}

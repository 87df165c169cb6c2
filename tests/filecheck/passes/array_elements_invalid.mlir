// RUN: not tilewright-opt %s 2>&1 | filecheck %s
// The parser of MLIR aborts on this; An array in a comment or a string is none: array<index: 1>.

// CHECK: line 5: array<index>: the elements of an array attribute are integers or floats, such as i32
module attributes {a = "array<index: 1>", b = array<i32: 1>, c = array<index: 1>} {}

// Contractions and sorts are a library's work.
// RUN: smelt-opt %s --fuse | filecheck %s

// CHECK-LABEL: func.func @library(
// CHECK: "smelt.dot_general"(%arg0, %arg1)
// CHECK: "smelt.sort"
// CHECK-NOT: call
func.func @library(%x: tensor<4x8xf32>, %y: tensor<8x3xf32>) -> tensor<4x3xf32> {
  %0 = "smelt.dot_general"(%x, %y) {lhs_contracting = array<i64: 1>, rhs_contracting = array<i64: 0>} : (tensor<4x8xf32>, tensor<8x3xf32>) -> tensor<4x3xf32>
  %1 = "smelt.sort"(%0) {axis = 1 : i64} : (tensor<4x3xf32>) -> tensor<4x3xf32>
  return %1 : tensor<4x3xf32>
}

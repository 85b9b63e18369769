// Intermediates that do not live at the same time share memory; results have their own (-1).
// RUN: smelt-opt %s --plan-buffers | filecheck %s

// CHECK-LABEL: func.func @main(
// CHECK-SAME: smelt.arena_bytes = 32768 : i64
// CHECK: "smelt.dot_general"{{.*}}smelt.offset = array<i64: 0>
// CHECK-NEXT: %{{.*}} = "smelt.dot_general"{{.*}}smelt.offset = array<i64: 16384>
// CHECK-NEXT: %{{.*}} = "smelt.dot_general"{{.*}}smelt.offset = array<i64: 0>
// CHECK-NEXT: %{{.*}} = "smelt.dot_general"{{.*}}smelt.offset = array<i64: -1>
func.func @main(%x: tensor<64x64xf32>, %y: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %0 = "smelt.dot_general"(%x, %y) {lhs_contracting = array<i64: 1>, rhs_contracting = array<i64: 0>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = "smelt.dot_general"(%0, %y) {lhs_contracting = array<i64: 1>, rhs_contracting = array<i64: 0>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = "smelt.dot_general"(%1, %y) {lhs_contracting = array<i64: 1>, rhs_contracting = array<i64: 0>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %3 = "smelt.dot_general"(%2, %y) {lhs_contracting = array<i64: 1>, rhs_contracting = array<i64: 0>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %3 : tensor<64x64xf32>
}

// Only @main is planned, and what its control flow runs.
// CHECK-LABEL: func.func @one(%arg0: tensor<64x64xf32>) -> tensor<64x64xf32> {
func.func @one(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %0 = "smelt.sort"(%x) {axis = 1 : i64} : (tensor<64x64xf32>) -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}

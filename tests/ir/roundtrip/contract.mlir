// RUN: smelt-opt %s | smelt-opt - | filecheck %s

// CHECK-LABEL: func.func @dot_general(
// CHECK: "smelt.dot_general"(%{{.*}}, %{{.*}}) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<4x8xf32>, tensor<8x3xf32>) -> tensor<4x3xf32>
func.func @dot_general(%x: tensor<4x8xf32>, %y: tensor<8x3xf32>) -> (tensor<4x3xf32>) {
  %r = "smelt.dot_general"(%x, %y) {lhs_contracting = array<i64: 1>, rhs_contracting = array<i64: 0>, lhs_batch = array<i64>, rhs_batch = array<i64>} : (tensor<4x8xf32>, tensor<8x3xf32>) -> tensor<4x3xf32>
  return %r : tensor<4x3xf32>
}

// CHECK-LABEL: func.func @wide_dot_general(
// CHECK: "smelt.wide_dot_general"(%{{.*}}, %{{.*}}) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<4x8xbf16>, tensor<8x3xbf16>) -> tensor<4x3xf32>
func.func @wide_dot_general(%x: tensor<4x8xbf16>, %y: tensor<8x3xbf16>) -> (tensor<4x3xf32>) {
  %r = "smelt.wide_dot_general"(%x, %y) {lhs_contracting = array<i64: 1>, rhs_contracting = array<i64: 0>, lhs_batch = array<i64>, rhs_batch = array<i64>} : (tensor<4x8xbf16>, tensor<8x3xbf16>) -> tensor<4x3xf32>
  return %r : tensor<4x3xf32>
}

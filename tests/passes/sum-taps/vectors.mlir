// Products of matrices that lie in memory with vectors are sums, along their last axes and of numbers that add up so.
// RUN: smelt-opt %s --pass-pipeline='sum-taps{vectors=12}' | filecheck %s
// RUN: smelt-opt %s --pass-pipeline='sum-taps{vectors=13}' | filecheck %s --check-prefix=LARGER

// CHECK-LABEL: func.func @main
// CHECK: "smelt.broadcast"
// CHECK-NEXT: "smelt.mul"(%arg0
// CHECK-NEXT: "smelt.reduce_sum"{{.*}} {axes = array<i64: 1>}
// CHECK-NOT: dot_general
// LARGER-LABEL: func.func @main
// LARGER: dot_general
func.func @main(%x: tensor<3x4xf32>, %v: tensor<4xf32>) -> tensor<3xf32> {
  %0 = "smelt.dot_general"(%x, %v) {lhs_contracting = array<i64: 1>, rhs_contracting = array<i64: 0>, lhs_batch = array<i64>, rhs_batch = array<i64>} : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// Both operands are vectors of two axes, the left one reshaped.
// CHECK-LABEL: func.func @all
// CHECK: "smelt.reduce_sum"{{.*}} {axes = array<i64: 0, 1>}
func.func @all(%x: tensor<12xf32>, %y: tensor<3x4xf32>) -> tensor<f32> {
  %0 = "smelt.reshape"(%x) {shape = array<i64: 3, 4>} : (tensor<12xf32>) -> tensor<3x4xf32>
  %1 = "smelt.dot_general"(%0, %y) {lhs_contracting = array<i64: 0, 1>, rhs_contracting = array<i64: 0, 1>, lhs_batch = array<i64>, rhs_batch = array<i64>} : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}

// Rounded after each product it would be; or lies the other way; or is computed.
// CHECK-LABEL: func.func @none
// CHECK-COUNT-3: dot_general
func.func @none(%h: tensor<3x4xf16>, %u: tensor<4xf16>, %x: tensor<3x4xf32>, %v: tensor<3xf32>, %w: tensor<4xf32>) -> (tensor<3xf16>, tensor<4xf32>, tensor<3xf32>) {
  %0 = "smelt.dot_general"(%h, %u) {lhs_contracting = array<i64: 1>, rhs_contracting = array<i64: 0>, lhs_batch = array<i64>, rhs_batch = array<i64>} : (tensor<3x4xf16>, tensor<4xf16>) -> tensor<3xf16>
  %1 = "smelt.dot_general"(%v, %x) {lhs_contracting = array<i64: 0>, rhs_contracting = array<i64: 0>, lhs_batch = array<i64>, rhs_batch = array<i64>} : (tensor<3xf32>, tensor<3x4xf32>) -> tensor<4xf32>
  %2 = "smelt.exp"(%x) : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %3 = "smelt.dot_general"(%w, %2) {lhs_contracting = array<i64: 0>, rhs_contracting = array<i64: 1>, lhs_batch = array<i64>, rhs_batch = array<i64>} : (tensor<4xf32>, tensor<3x4xf32>) -> tensor<3xf32>
  return %0, %1, %3 : tensor<3xf16>, tensor<4xf32>, tensor<3xf32>
}

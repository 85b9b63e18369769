// Contractions as kernels, with the elementwise ops that read them.
// RUN: smelt-opt %s --pass-pipeline='fuse{contractions=true}' | filecheck %s

// A linear layer: product, bias and nonlinearity are one kernel.
// CHECK-LABEL: func.func @linear(
// CHECK-NEXT: %[[R:.*]] = call @fused_dot_general_add_tanh(%arg0, %arg1, %arg2)
// CHECK-NEXT: return %[[R]]
// CHECK: func.func private @fused_dot_general_add_tanh({{.*}} attributes {smelt.fusion = "contract"}
func.func @linear(%x: tensor<2x3x5xf32>, %w: tensor<5x4xf32>, %c: tensor<4xf32>) -> tensor<2x3x4xf32> {
  %0 = "smelt.dot_general"(%x, %w) {lhs_contracting = array<i64: 2>, rhs_contracting = array<i64: 0>} : (tensor<2x3x5xf32>, tensor<5x4xf32>) -> tensor<2x3x4xf32>
  %1 = "smelt.broadcast"(%c) {shape = array<i64: 2, 3, 4>} : (tensor<4xf32>) -> tensor<2x3x4xf32>
  %2 = "smelt.add"(%0, %1) : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %3 = "smelt.tanh"(%2) : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  return %3 : tensor<2x3x4xf32>
}

// Movement in front of it joins, arithmetic does not.
// CHECK-LABEL: func.func @in_front(
// CHECK-NEXT: %[[E:.*]] = call @kernel_exp(%arg1)
// CHECK-NEXT: %[[R:.*]] = call @fused_dot_general(%arg0, %[[E]])
// CHECK-NEXT: return %[[R]]
// CHECK: func.func private @fused_dot_general(
// CHECK-NEXT: "smelt.transpose"
// CHECK-NEXT: "smelt.dot_general"
func.func @in_front(%x: tensor<5x3xf32>, %w: tensor<5x4xf32>) -> tensor<3x4xf32> {
  %0 = "smelt.transpose"(%x) {permutation = array<i64: 1, 0>} : (tensor<5x3xf32>) -> tensor<3x5xf32>
  %1 = "smelt.exp"(%w) : (tensor<5x4xf32>) -> tensor<5x4xf32>
  %2 = "smelt.dot_general"(%0, %1) {lhs_contracting = array<i64: 1>, rhs_contracting = array<i64: 0>} : (tensor<3x5xf32>, tensor<5x4xf32>) -> tensor<3x4xf32>
  return %2 : tensor<3x4xf32>
}

// Weights of fewer bytes are scaled where they are read; what is scaled lies in no memory.
// CHECK-LABEL: func.func @scaled(
// CHECK-NEXT: %[[R:.*]] = call @fused_convert_mul_dot_general(%arg1, %arg2, %arg0)
// CHECK-NEXT: return %[[R]]
func.func @scaled(%x: tensor<3x8xf32>, %w: tensor<8x4xi8>, %s: tensor<4xf32>) -> tensor<3x4xf32> {
  %0 = "smelt.convert"(%w) {dtype = f32} : (tensor<8x4xi8>) -> tensor<8x4xf32>
  %1 = "smelt.broadcast"(%s) {shape = array<i64: 8, 4>} : (tensor<4xf32>) -> tensor<8x4xf32>
  %2 = "smelt.mul"(%0, %1) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %3 = "smelt.dot_general"(%x, %2) {lhs_contracting = array<i64: 1>, rhs_contracting = array<i64: 0>} : (tensor<3x8xf32>, tensor<8x4xf32>) -> tensor<3x4xf32>
  return %3 : tensor<3x4xf32>
}

// Behind it, axes may be permuted, split and merged.
// CHECK-LABEL: func.func @moved(
// CHECK-NEXT: %[[R:.*]] = call @fused_dot_general_exp(%arg0, %arg1)
// CHECK-NEXT: return %[[R]]
func.func @moved(%x: tensor<6x5xf32>, %w: tensor<5x4xf32>) -> tensor<4x2x3xf32> {
  %0 = "smelt.dot_general"(%x, %w) {lhs_contracting = array<i64: 1>, rhs_contracting = array<i64: 0>} : (tensor<6x5xf32>, tensor<5x4xf32>) -> tensor<6x4xf32>
  %1 = "smelt.reshape"(%0) {shape = array<i64: 2, 3, 4>} : (tensor<6x4xf32>) -> tensor<2x3x4xf32>
  %2 = "smelt.transpose"(%1) {permutation = array<i64: 2, 0, 1>} : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
  %3 = "smelt.exp"(%2) : (tensor<4x2x3xf32>) -> tensor<4x2x3xf32>
  return %3 : tensor<4x2x3xf32>
}

// The product is another result where others need it.
// CHECK-LABEL: func.func @returned(
// CHECK-NEXT: %[[R:.*]]:2 = call @fused_dot_general_exp_1(%arg0, %arg1)
// CHECK-NEXT: return %[[R]]#1, %[[R]]#0 :
func.func @returned(%x: tensor<6x5xf32>, %w: tensor<5x4xf32>) -> (tensor<6x4xf32>, tensor<6x4xf32>) {
  %0 = "smelt.dot_general"(%x, %w) {lhs_contracting = array<i64: 1>, rhs_contracting = array<i64: 0>} : (tensor<6x5xf32>, tensor<5x4xf32>) -> tensor<6x4xf32>
  %1 = "smelt.exp"(%0) : (tensor<6x4xf32>) -> tensor<6x4xf32>
  return %0, %1 : tensor<6x4xf32>, tensor<6x4xf32>
}

// Elements that are read twice, reductions, and a second contraction stay outside.
// CHECK-LABEL: func.func @apart(
// CHECK-NEXT: %[[P:.*]] = call @kernel_dot_general(%arg0, %arg1)
// CHECK-NEXT: %[[S:.*]] = call @fused_add(%[[P]])
// CHECK-NEXT: %[[Q:.*]] = call @kernel_dot_general(%[[S]], %arg1)
// CHECK-NEXT: %[[R:.*]] = call @kernel_reduce_sum(%[[Q]])
// CHECK-NEXT: return %[[R]]
func.func @apart(%x: tensor<4x4xf32>, %w: tensor<4x4xf32>) -> tensor<4xf32> {
  %0 = "smelt.dot_general"(%x, %w) {lhs_contracting = array<i64: 1>, rhs_contracting = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = "smelt.transpose"(%0) {permutation = array<i64: 1, 0>} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = "smelt.add"(%0, %1) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %3 = "smelt.dot_general"(%2, %w) {lhs_contracting = array<i64: 1>, rhs_contracting = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %4 = "smelt.reduce_sum"(%3) {axes = array<i64: 1>} : (tensor<4x4xf32>) -> tensor<4xf32>
  return %4 : tensor<4xf32>
}

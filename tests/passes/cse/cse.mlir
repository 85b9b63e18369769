// Equal ops on equal operands are computed once.
// RUN: smelt-opt %s --cse | filecheck %s

// CHECK-LABEL: func.func @equal(
// CHECK-NEXT: %[[V0:.*]] = "smelt.exp"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.add"(%[[V0]], %[[V0]]) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: return %[[V1]] : tensor<4xf32>
func.func @equal(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "smelt.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "smelt.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = "smelt.add"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// In either order where the op commutes.
// CHECK-LABEL: func.func @commutative(
// CHECK-NEXT: %[[V0:.*]] = "smelt.mul"(%arg0, %arg1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: return %[[V0]], %[[V0]] : tensor<4xf32>, tensor<4xf32>
func.func @commutative(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = "smelt.mul"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = "smelt.mul"(%y, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// Ops that become equal by merging their operands.
// CHECK-LABEL: func.func @chains(
// CHECK-NEXT: %[[V0:.*]] = "smelt.exp"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.reduce_sum"(%[[V0]]) {axes = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
// CHECK-NEXT: return %[[V1]], %[[V1]] : tensor<f32>, tensor<f32>
func.func @chains(%x: tensor<4xf32>) -> (tensor<f32>, tensor<f32>) {
  %0 = "smelt.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "smelt.reduce_sum"(%0) {axes = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  %2 = "smelt.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %3 = "smelt.reduce_sum"(%2) {axes = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  return %1, %3 : tensor<f32>, tensor<f32>
}

// CHECK-LABEL: func.func @literals(
// CHECK-NEXT: %[[V0:.*]] = "smelt.literal"() {value = dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>} : () -> tensor<2xf32>
// CHECK-NEXT: return %[[V0]], %[[V0]] : tensor<2xf32>, tensor<2xf32>
func.func @literals() -> (tensor<2xf32>, tensor<2xf32>) {
  %0 = "smelt.literal"() {value = dense<[1.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %1 = "smelt.literal"() {value = dense<[1.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  return %0, %1 : tensor<2xf32>, tensor<2xf32>
}

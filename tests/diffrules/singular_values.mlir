// smelt.singular_values: forward mode, reverse mode, and the values of both (checked by finite differences).
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,jvp,linearize,transpose),canonicalize,cse,dce' | filecheck %s
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,jvp,linearize,transpose)' --execute | filecheck %s --check-prefix=VALUE

func.func private @f(%arg0: tensor<3x2xf64>) -> tensor<2xf64> {
  %0 = "smelt.singular_values"(%arg0) : (tensor<3x2xf64>) -> tensor<2xf64>
  return %0 : tensor<2xf64>
}

// CHECK-LABEL: func.func @forward(
// CHECK-NEXT: %[[V0:.*]]:3 = "smelt.svd"(%arg0) {full = false} : (tensor<3x2xf64>) -> (tensor<3x2xf64>, tensor<2xf64>, tensor<2x2xf64>)
// CHECK-NEXT: %[[V1:.*]] = "smelt.transpose"(%[[V0]]#0) {permutation = array<i64: 1, 0>} : (tensor<3x2xf64>) -> tensor<2x3xf64>
// CHECK-NEXT: %[[V2:.*]] = "smelt.dot_general"(%[[V1]], %arg1) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<2x3xf64>, tensor<3x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V3:.*]] = "smelt.mul"(%[[V2]], %[[V0]]#2) : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V4:.*]] = "smelt.reduce_sum"(%[[V3]]) {axes = array<i64: 1>} : (tensor<2x2xf64>) -> tensor<2xf64>
// CHECK-NEXT: return %[[V4]] : tensor<2xf64>
func.func @forward(%arg0: tensor<3x2xf64>, %arg1: tensor<3x2xf64>) -> tensor<2xf64> {
  %f = constant @f : (tensor<3x2xf64>) -> tensor<2xf64>
  %0 = "smelt.jvp"(%f) {wrt = array<i64: 0>} : ((tensor<3x2xf64>) -> tensor<2xf64>) -> ((tensor<3x2xf64>, tensor<3x2xf64>) -> (tensor<2xf64>, tensor<2xf64>))
  %1:2 = call_indirect %0(%arg0, %arg1) : (tensor<3x2xf64>, tensor<3x2xf64>) -> (tensor<2xf64>, tensor<2xf64>)
  return %1#1 : tensor<2xf64>
}

// CHECK-LABEL: func.func @reverse(
// CHECK-NEXT: %[[V0:.*]]:3 = "smelt.svd"(%arg0) {full = false} : (tensor<3x2xf64>) -> (tensor<3x2xf64>, tensor<2xf64>, tensor<2x2xf64>)
// CHECK-NEXT: %[[V1:.*]] = "smelt.transpose"(%[[V0]]#0) {permutation = array<i64: 1, 0>} : (tensor<3x2xf64>) -> tensor<2x3xf64>
// CHECK-NEXT: %[[V2:.*]] = "smelt.reshape"(%arg1) {shape = array<i64: 2, 1>} : (tensor<2xf64>) -> tensor<2x1xf64>
// CHECK-NEXT: %[[V3:.*]] = "smelt.broadcast"(%[[V2]]) {shape = array<i64: 2, 2>} : (tensor<2x1xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V4:.*]] = "smelt.mul"(%[[V3]], %[[V0]]#2) : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V5:.*]] = "smelt.dot_general"(%[[V1]], %[[V4]]) {lhs_batch = array<i64>, lhs_contracting = array<i64: 0>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<2x3xf64>, tensor<2x2xf64>) -> tensor<3x2xf64>
// CHECK-NEXT: return %[[V5]] : tensor<3x2xf64>
func.func @reverse(%arg0: tensor<3x2xf64>, %arg1: tensor<2xf64>) -> tensor<3x2xf64> {
  %f = constant @f : (tensor<3x2xf64>) -> tensor<2xf64>
  %0 = "smelt.vjp"(%f) {seeds = array<i64: 0>, wrt = array<i64: 0>} : ((tensor<3x2xf64>) -> tensor<2xf64>) -> ((tensor<3x2xf64>, tensor<2xf64>) -> (tensor<2xf64>, tensor<3x2xf64>))
  %1:2 = call_indirect %0(%arg0, %arg1) : (tensor<3x2xf64>, tensor<2xf64>) -> (tensor<2xf64>, tensor<3x2xf64>)
  return %1#1 : tensor<3x2xf64>
}

// VALUE: dense<[0.755169, 0.760777]> : tensor<2xf64>
// VALUE-NEXT: dense<{{\[\[}}0.289569, 0.0675971], [0.269632, -1.04017], [-0.0995649, 0.216846]]> : tensor<3x2xf64>
func.func @main() -> (tensor<2xf64>, tensor<3x2xf64>) {
  %0 = "smelt.literal"() {value = dense<[[2.0, 0.5], [1.0, -4.0], [-0.5, 0.8]]> : tensor<3x2xf64>} : () -> tensor<3x2xf64>
  %1 = "smelt.literal"() {value = dense<[[1.0, -1.3], [-1.0, -0.8], [-1.0, 0.9]]> : tensor<3x2xf64>} : () -> tensor<3x2xf64>
  %2 = "smelt.literal"() {value = dense<[1.1, 0.3]> : tensor<2xf64>} : () -> tensor<2xf64>
  %3 = call @forward(%0, %1) : (tensor<3x2xf64>, tensor<3x2xf64>) -> tensor<2xf64>
  %4 = call @reverse(%0, %2) : (tensor<3x2xf64>, tensor<2xf64>) -> tensor<3x2xf64>
  return %3, %4 : tensor<2xf64>, tensor<3x2xf64>
}

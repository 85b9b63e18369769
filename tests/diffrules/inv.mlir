// smelt.inv: forward mode, reverse mode, and the values of both (checked by finite differences).
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,jvp,linearize,transpose),canonicalize,cse,dce' | filecheck %s
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,jvp,linearize,transpose)' --execute | filecheck %s --check-prefix=VALUE

func.func private @f(%arg0: tensor<3x3xf64>) -> tensor<3x3xf64> {
  %0 = "smelt.inv"(%arg0) : (tensor<3x3xf64>) -> tensor<3x3xf64>
  return %0 : tensor<3x3xf64>
}

// CHECK-LABEL: func.func @forward(
// CHECK-NEXT: %[[V0:.*]] = "smelt.inv"(%arg0) : (tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V1:.*]] = "smelt.dot_general"(%[[V0]], %arg1) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V2:.*]] = "smelt.dot_general"(%[[V1]], %[[V0]]) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V3:.*]] = "smelt.neg"(%[[V2]]) : (tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: return %[[V3]] : tensor<3x3xf64>
func.func @forward(%arg0: tensor<3x3xf64>, %arg1: tensor<3x3xf64>) -> tensor<3x3xf64> {
  %f = constant @f : (tensor<3x3xf64>) -> tensor<3x3xf64>
  %0 = "smelt.jvp"(%f) {wrt = array<i64: 0>} : ((tensor<3x3xf64>) -> tensor<3x3xf64>) -> ((tensor<3x3xf64>, tensor<3x3xf64>) -> (tensor<3x3xf64>, tensor<3x3xf64>))
  %1:2 = call_indirect %0(%arg0, %arg1) : (tensor<3x3xf64>, tensor<3x3xf64>) -> (tensor<3x3xf64>, tensor<3x3xf64>)
  return %1#1 : tensor<3x3xf64>
}

// CHECK-LABEL: func.func @reverse(
// CHECK-NEXT: %[[V0:.*]] = "smelt.inv"(%arg0) : (tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V1:.*]] = "smelt.neg"(%arg1) : (tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V2:.*]] = "smelt.dot_general"(%[[V1]], %[[V0]]) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 1>} : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V3:.*]] = "smelt.dot_general"(%[[V0]], %[[V2]]) {lhs_batch = array<i64>, lhs_contracting = array<i64: 0>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: return %[[V3]] : tensor<3x3xf64>
func.func @reverse(%arg0: tensor<3x3xf64>, %arg1: tensor<3x3xf64>) -> tensor<3x3xf64> {
  %f = constant @f : (tensor<3x3xf64>) -> tensor<3x3xf64>
  %0 = "smelt.vjp"(%f) {seeds = array<i64: 0>, wrt = array<i64: 0>} : ((tensor<3x3xf64>) -> tensor<3x3xf64>) -> ((tensor<3x3xf64>, tensor<3x3xf64>) -> (tensor<3x3xf64>, tensor<3x3xf64>))
  %1:2 = call_indirect %0(%arg0, %arg1) : (tensor<3x3xf64>, tensor<3x3xf64>) -> (tensor<3x3xf64>, tensor<3x3xf64>)
  return %1#1 : tensor<3x3xf64>
}

// VALUE: dense<{{\[\[}}-0.340064, 0.141399, 0.284552], [0.0769493, 0.0247671, -0.0615595], [-0.243766, -0.0269353, 0.257513]]> : tensor<3x3xf64>
// VALUE-NEXT: dense<{{\[\[}}0.491974, -0.0549819, 0.0913484], [-0.161397, 0.060088, 0.0376299], [0.261631, -0.112072, 0.0079018]]> : tensor<3x3xf64>
func.func @main() -> (tensor<3x3xf64>, tensor<3x3xf64>) {
  %0 = "smelt.literal"() {value = dense<[[2.0, 0.5, -0.4], [1.0, 4.0, -1.0], [-0.5, 0.8, 2.5]]> : tensor<3x3xf64>} : () -> tensor<3x3xf64>
  %1 = "smelt.literal"() {value = dense<[[1.0, -1.3, -1.0], [-0.8, -1.0, 0.9], [1.1, 0.3, -1.4]]> : tensor<3x3xf64>} : () -> tensor<3x3xf64>
  %2 = "smelt.literal"() {value = dense<[[-1.3, -0.5, -0.2], [0.4, -0.1, -0.7], [-1.1, 0.6, 0.7]]> : tensor<3x3xf64>} : () -> tensor<3x3xf64>
  %3 = call @forward(%0, %1) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
  %4 = call @reverse(%0, %2) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
  return %3, %4 : tensor<3x3xf64>, tensor<3x3xf64>
}

// smelt.adjugate: forward mode, reverse mode, and the values of both (checked by finite differences).
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,jvp,linearize,transpose),canonicalize,cse,dce' | filecheck %s
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,jvp,linearize,transpose)' --execute | filecheck %s --check-prefix=VALUE

func.func private @f(%arg0: tensor<3x3xf64>) -> tensor<3x3xf64> {
  %0 = "smelt.adjugate"(%arg0) : (tensor<3x3xf64>) -> tensor<3x3xf64>
  return %0 : tensor<3x3xf64>
}

// CHECK-LABEL: func.func @forward(
// CHECK-NEXT: %[[V0:.*]] = "smelt.adjugate"(%arg0) : (tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V1:.*]] = "smelt.inv"(%arg0) : (tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V2:.*]] = "smelt.transpose"(%arg1) {permutation = array<i64: 1, 0>} : (tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V3:.*]] = "smelt.mul"(%[[V0]], %[[V2]]) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V4:.*]] = "smelt.reduce_sum"(%[[V3]]) {axes = array<i64: 0, 1>} : (tensor<3x3xf64>) -> tensor<f64>
// CHECK-NEXT: %[[V5:.*]] = "smelt.broadcast"(%[[V4]]) {shape = array<i64: 3, 3>} : (tensor<f64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V6:.*]] = "smelt.mul"(%[[V5]], %[[V1]]) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V7:.*]] = "smelt.dot_general"(%[[V1]], %arg1) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V8:.*]] = "smelt.dot_general"(%[[V7]], %[[V0]]) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V9:.*]] = "smelt.sub"(%[[V6]], %[[V8]]) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: return %[[V9]] : tensor<3x3xf64>
func.func @forward(%arg0: tensor<3x3xf64>, %arg1: tensor<3x3xf64>) -> tensor<3x3xf64> {
  %f = constant @f : (tensor<3x3xf64>) -> tensor<3x3xf64>
  %0 = "smelt.jvp"(%f) {wrt = array<i64: 0>} : ((tensor<3x3xf64>) -> tensor<3x3xf64>) -> ((tensor<3x3xf64>, tensor<3x3xf64>) -> (tensor<3x3xf64>, tensor<3x3xf64>))
  %1:2 = call_indirect %0(%arg0, %arg1) : (tensor<3x3xf64>, tensor<3x3xf64>) -> (tensor<3x3xf64>, tensor<3x3xf64>)
  return %1#1 : tensor<3x3xf64>
}

// CHECK-LABEL: func.func @reverse(
// CHECK-NEXT: %[[V0:.*]] = "smelt.adjugate"(%arg0) : (tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V1:.*]] = "smelt.inv"(%arg0) : (tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V2:.*]] = "smelt.neg"(%arg1) : (tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V3:.*]] = "smelt.dot_general"(%[[V2]], %[[V0]]) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 1>} : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V4:.*]] = "smelt.dot_general"(%[[V1]], %[[V3]]) {lhs_batch = array<i64>, lhs_contracting = array<i64: 0>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V5:.*]] = "smelt.mul"(%arg1, %[[V1]]) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V6:.*]] = "smelt.reduce_sum"(%[[V5]]) {axes = array<i64: 0, 1>} : (tensor<3x3xf64>) -> tensor<f64>
// CHECK-NEXT: %[[V7:.*]] = "smelt.broadcast"(%[[V6]]) {shape = array<i64: 3, 3>} : (tensor<f64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V8:.*]] = "smelt.mul"(%[[V7]], %[[V0]]) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V9:.*]] = "smelt.transpose"(%[[V8]]) {permutation = array<i64: 1, 0>} : (tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V10:.*]] = "smelt.add"(%[[V4]], %[[V9]]) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: return %[[V10]] : tensor<3x3xf64>
func.func @reverse(%arg0: tensor<3x3xf64>, %arg1: tensor<3x3xf64>) -> tensor<3x3xf64> {
  %f = constant @f : (tensor<3x3xf64>) -> tensor<3x3xf64>
  %0 = "smelt.vjp"(%f) {seeds = array<i64: 0>, wrt = array<i64: 0>} : ((tensor<3x3xf64>) -> tensor<3x3xf64>) -> ((tensor<3x3xf64>, tensor<3x3xf64>) -> (tensor<3x3xf64>, tensor<3x3xf64>))
  %1:2 = call_indirect %0(%arg0, %arg1) : (tensor<3x3xf64>, tensor<3x3xf64>) -> (tensor<3x3xf64>, tensor<3x3xf64>)
  return %1#1 : tensor<3x3xf64>
}

// VALUE: dense<{{\[\[}}-8.52, 3.03, 5.35], [1.85, -0.36, -1.48], [-5.24, -0.2, 3.7]]> : tensor<3x3xf64>
// VALUE-NEXT: dense<{{\[\[}}1.37, 0.45, -0.35], [-1.95, -2.48, 2.14], [4.26, -3.4, -5.55]]> : tensor<3x3xf64>
func.func @main() -> (tensor<3x3xf64>, tensor<3x3xf64>) {
  %0 = "smelt.literal"() {value = dense<[[2.0, 0.5, -0.4], [1.0, 4.0, -1.0], [-0.5, 0.8, 2.5]]> : tensor<3x3xf64>} : () -> tensor<3x3xf64>
  %1 = "smelt.literal"() {value = dense<[[1.0, -1.3, -1.0], [-0.8, -1.0, 0.9], [1.1, 0.3, -1.4]]> : tensor<3x3xf64>} : () -> tensor<3x3xf64>
  %2 = "smelt.literal"() {value = dense<[[-1.3, -0.5, -0.2], [0.4, -0.1, -0.7], [-1.1, 0.6, 0.7]]> : tensor<3x3xf64>} : () -> tensor<3x3xf64>
  %3 = call @forward(%0, %1) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
  %4 = call @reverse(%0, %2) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
  return %3, %4 : tensor<3x3xf64>, tensor<3x3xf64>
}

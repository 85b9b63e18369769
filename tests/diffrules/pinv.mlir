// smelt.pinv: forward mode, reverse mode, and the values of both (checked by finite differences).
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,jvp,linearize,transpose),canonicalize,cse,dce' | filecheck %s
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,jvp,linearize,transpose)' --execute | filecheck %s --check-prefix=VALUE

func.func private @f(%arg0: tensor<3x2xf64>) -> tensor<2x3xf64> {
  %0 = "smelt.pinv"(%arg0) {rtol = 1.000000e-06 : f64} : (tensor<3x2xf64>) -> tensor<2x3xf64>
  return %0 : tensor<2x3xf64>
}

// CHECK-LABEL: func.func @forward(
// CHECK-NEXT: %[[V0:.*]] = "smelt.pinv"(%arg0) {rtol = 9.9999999999999995E-7 : f64} : (tensor<3x2xf64>) -> tensor<2x3xf64>
// CHECK-NEXT: %[[V1:.*]] = "smelt.transpose"(%[[V0]]) {permutation = array<i64: 1, 0>} : (tensor<2x3xf64>) -> tensor<3x2xf64>
// CHECK-NEXT: %[[V2:.*]] = "smelt.transpose"(%arg1) {permutation = array<i64: 1, 0>} : (tensor<3x2xf64>) -> tensor<2x3xf64>
// CHECK-NEXT: %[[V3:.*]] = "smelt.dot_general"(%[[V0]], %arg1) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<2x3xf64>, tensor<3x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V4:.*]] = "smelt.dot_general"(%[[V3]], %[[V0]]) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<2x2xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>
// CHECK-NEXT: %[[V5:.*]] = "smelt.dot_general"(%[[V0]], %[[V1]]) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<2x3xf64>, tensor<3x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V6:.*]] = "smelt.dot_general"(%[[V5]], %[[V2]]) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<2x2xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>
// CHECK-NEXT: %[[V7:.*]] = "smelt.dot_general"(%[[V2]], %[[V1]]) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<2x3xf64>, tensor<3x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V8:.*]] = "smelt.dot_general"(%[[V7]], %[[V0]]) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<2x2xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>
// CHECK-NEXT: %[[V9:.*]] = "smelt.sub"(%[[V6]], %[[V4]]) : (tensor<2x3xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>
// CHECK-NEXT: %[[V10:.*]] = "smelt.dot_general"(%[[V6]], %arg0) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<2x3xf64>, tensor<3x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V11:.*]] = "smelt.dot_general"(%[[V10]], %[[V0]]) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<2x2xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>
// CHECK-NEXT: %[[V12:.*]] = "smelt.sub"(%[[V9]], %[[V11]]) : (tensor<2x3xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>
// CHECK-NEXT: %[[V13:.*]] = "smelt.add"(%[[V12]], %[[V8]]) : (tensor<2x3xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>
// CHECK-NEXT: %[[V14:.*]] = "smelt.dot_general"(%arg0, %[[V8]]) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<3x2xf64>, tensor<2x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V15:.*]] = "smelt.dot_general"(%[[V0]], %[[V14]]) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<2x3xf64>, tensor<3x3xf64>) -> tensor<2x3xf64>
// CHECK-NEXT: %[[V16:.*]] = "smelt.sub"(%[[V13]], %[[V15]]) : (tensor<2x3xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>
// CHECK-NEXT: return %[[V16]] : tensor<2x3xf64>
func.func @forward(%arg0: tensor<3x2xf64>, %arg1: tensor<3x2xf64>) -> tensor<2x3xf64> {
  %f = constant @f : (tensor<3x2xf64>) -> tensor<2x3xf64>
  %0 = "smelt.jvp"(%f) {wrt = array<i64: 0>} : ((tensor<3x2xf64>) -> tensor<2x3xf64>) -> ((tensor<3x2xf64>, tensor<3x2xf64>) -> (tensor<2x3xf64>, tensor<2x3xf64>))
  %1:2 = call_indirect %0(%arg0, %arg1) : (tensor<3x2xf64>, tensor<3x2xf64>) -> (tensor<2x3xf64>, tensor<2x3xf64>)
  return %1#1 : tensor<2x3xf64>
}

// CHECK-LABEL: func.func @reverse(
// CHECK-NEXT: %[[V0:.*]] = "smelt.pinv"(%arg0) {rtol = 9.9999999999999995E-7 : f64} : (tensor<3x2xf64>) -> tensor<2x3xf64>
// CHECK-NEXT: %[[V1:.*]] = "smelt.transpose"(%[[V0]]) {permutation = array<i64: 1, 0>} : (tensor<2x3xf64>) -> tensor<3x2xf64>
// CHECK-NEXT: %[[V2:.*]] = "smelt.dot_general"(%[[V0]], %[[V1]]) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<2x3xf64>, tensor<3x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V3:.*]] = "smelt.neg"(%arg1) : (tensor<2x3xf64>) -> tensor<2x3xf64>
// CHECK-NEXT: %[[V4:.*]] = "smelt.dot_general"(%[[V0]], %[[V3]]) {lhs_batch = array<i64>, lhs_contracting = array<i64: 0>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<2x3xf64>, tensor<2x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V5:.*]] = "smelt.dot_general"(%arg0, %[[V4]]) {lhs_batch = array<i64>, lhs_contracting = array<i64: 0>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<3x2xf64>, tensor<3x3xf64>) -> tensor<2x3xf64>
// CHECK-NEXT: %[[V6:.*]] = "smelt.add"(%[[V5]], %arg1) : (tensor<2x3xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>
// CHECK-NEXT: %[[V7:.*]] = "smelt.dot_general"(%[[V3]], %[[V0]]) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 1>} : (tensor<2x3xf64>, tensor<2x3xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V8:.*]] = "smelt.dot_general"(%[[V7]], %arg0) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 1>} : (tensor<2x2xf64>, tensor<3x2xf64>) -> tensor<2x3xf64>
// CHECK-NEXT: %[[V9:.*]] = "smelt.add"(%[[V8]], %arg1) : (tensor<2x3xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>
// CHECK-NEXT: %[[V10:.*]] = "smelt.dot_general"(%[[V6]], %[[V0]]) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 1>} : (tensor<2x3xf64>, tensor<2x3xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V11:.*]] = "smelt.dot_general"(%[[V10]], %[[V1]]) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 1>} : (tensor<2x2xf64>, tensor<3x2xf64>) -> tensor<2x3xf64>
// CHECK-NEXT: %[[V12:.*]] = "smelt.dot_general"(%[[V2]], %[[V9]]) {lhs_batch = array<i64>, lhs_contracting = array<i64: 0>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<2x2xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>
// CHECK-NEXT: %[[V13:.*]] = "smelt.add"(%[[V11]], %[[V12]]) : (tensor<2x3xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>
// CHECK-NEXT: %[[V14:.*]] = "smelt.dot_general"(%[[V0]], %[[V7]]) {lhs_batch = array<i64>, lhs_contracting = array<i64: 0>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<2x3xf64>, tensor<2x2xf64>) -> tensor<3x2xf64>
// CHECK-NEXT: %[[V15:.*]] = "smelt.transpose"(%[[V13]]) {permutation = array<i64: 1, 0>} : (tensor<2x3xf64>) -> tensor<3x2xf64>
// CHECK-NEXT: %[[V16:.*]] = "smelt.add"(%[[V14]], %[[V15]]) : (tensor<3x2xf64>, tensor<3x2xf64>) -> tensor<3x2xf64>
// CHECK-NEXT: return %[[V16]] : tensor<3x2xf64>
func.func @reverse(%arg0: tensor<3x2xf64>, %arg1: tensor<2x3xf64>) -> tensor<3x2xf64> {
  %f = constant @f : (tensor<3x2xf64>) -> tensor<2x3xf64>
  %0 = "smelt.vjp"(%f) {seeds = array<i64: 0>, wrt = array<i64: 0>} : ((tensor<3x2xf64>) -> tensor<2x3xf64>) -> ((tensor<3x2xf64>, tensor<2x3xf64>) -> (tensor<2x3xf64>, tensor<3x2xf64>))
  %1:2 = call_indirect %0(%arg0, %arg1) : (tensor<3x2xf64>, tensor<2x3xf64>) -> (tensor<2x3xf64>, tensor<3x2xf64>)
  return %1#1 : tensor<3x2xf64>
}

// VALUE: dense<{{\[\[}}-0.168806, -0.223741, -0.139339], [-0.15419, -0.00364966, 0.0120239]]> : tensor<2x3xf64>
// VALUE-NEXT: dense<{{\[\[}}-0.249723, -0.0145198], [-0.221678, -0.030017], [-0.196533, -0.0769395]]> : tensor<3x2xf64>
func.func @main() -> (tensor<2x3xf64>, tensor<3x2xf64>) {
  %0 = "smelt.literal"() {value = dense<[[2.0, 0.5], [1.0, -4.0], [-0.5, 0.8]]> : tensor<3x2xf64>} : () -> tensor<3x2xf64>
  %1 = "smelt.literal"() {value = dense<[[1.0, -1.3], [-1.0, -0.8], [-1.0, 0.9]]> : tensor<3x2xf64>} : () -> tensor<3x2xf64>
  %2 = "smelt.literal"() {value = dense<[[1.1, 0.3, -1.4], [-1.3, -0.5, -0.2]]> : tensor<2x3xf64>} : () -> tensor<2x3xf64>
  %3 = call @forward(%0, %1) : (tensor<3x2xf64>, tensor<3x2xf64>) -> tensor<2x3xf64>
  %4 = call @reverse(%0, %2) : (tensor<3x2xf64>, tensor<2x3xf64>) -> tensor<3x2xf64>
  return %3, %4 : tensor<2x3xf64>, tensor<3x2xf64>
}

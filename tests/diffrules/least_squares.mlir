// smelt.least_squares: forward mode, reverse mode, and the values of both (checked by finite differences).
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,jvp,linearize,transpose),canonicalize,cse,dce' | filecheck %s
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,jvp,linearize,transpose)' --execute | filecheck %s --check-prefix=VALUE

func.func private @f(%arg0: tensor<3x2xf64>, %arg1: tensor<3x2xf64>) -> tensor<2x2xf64> {
  %0 = "smelt.least_squares"(%arg0, %arg1) {rtol = 1.000000e-06 : f64} : (tensor<3x2xf64>, tensor<3x2xf64>) -> tensor<2x2xf64>
  return %0 : tensor<2x2xf64>
}

// CHECK-LABEL: func.func @forward(
// CHECK-NEXT: %[[V0:.*]] = "smelt.least_squares"(%arg0, %arg1) {rtol = 9.9999999999999995E-7 : f64} : (tensor<3x2xf64>, tensor<3x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V1:.*]] = "smelt.dot_general"(%arg2, %[[V0]]) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<3x2xf64>, tensor<2x2xf64>) -> tensor<3x2xf64>
// CHECK-NEXT: %[[V2:.*]] = "smelt.sub"(%arg3, %[[V1]]) : (tensor<3x2xf64>, tensor<3x2xf64>) -> tensor<3x2xf64>
// CHECK-NEXT: %[[V3:.*]] = "smelt.least_squares"(%arg0, %[[V2]]) {rtol = 9.9999999999999995E-7 : f64} : (tensor<3x2xf64>, tensor<3x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V4:.*]] = "smelt.transpose"(%arg0) {permutation = array<i64: 1, 0>} : (tensor<3x2xf64>) -> tensor<2x3xf64>
// CHECK-NEXT: %[[V5:.*]] = "smelt.transpose"(%arg2) {permutation = array<i64: 1, 0>} : (tensor<3x2xf64>) -> tensor<2x3xf64>
// CHECK-NEXT: %[[V6:.*]] = "smelt.dot_general"(%arg0, %[[V0]]) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<3x2xf64>, tensor<2x2xf64>) -> tensor<3x2xf64>
// CHECK-NEXT: %[[V7:.*]] = "smelt.sub"(%arg1, %[[V6]]) : (tensor<3x2xf64>, tensor<3x2xf64>) -> tensor<3x2xf64>
// CHECK-NEXT: %[[V8:.*]] = "smelt.dot_general"(%[[V5]], %[[V7]]) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<2x3xf64>, tensor<3x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V9:.*]] = "smelt.least_squares"(%[[V4]], %[[V8]]) {rtol = 9.9999999999999995E-7 : f64} : (tensor<2x3xf64>, tensor<2x2xf64>) -> tensor<3x2xf64>
// CHECK-NEXT: %[[V10:.*]] = "smelt.least_squares"(%arg0, %[[V9]]) {rtol = 9.9999999999999995E-7 : f64} : (tensor<3x2xf64>, tensor<3x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V11:.*]] = "smelt.add"(%[[V3]], %[[V10]]) : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V12:.*]] = "smelt.least_squares"(%[[V4]], %[[V0]]) {rtol = 9.9999999999999995E-7 : f64} : (tensor<2x3xf64>, tensor<2x2xf64>) -> tensor<3x2xf64>
// CHECK-NEXT: %[[V13:.*]] = "smelt.dot_general"(%[[V5]], %[[V12]]) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<2x3xf64>, tensor<3x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V14:.*]] = "smelt.add"(%[[V11]], %[[V13]]) : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V15:.*]] = "smelt.dot_general"(%arg0, %[[V13]]) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<3x2xf64>, tensor<2x2xf64>) -> tensor<3x2xf64>
// CHECK-NEXT: %[[V16:.*]] = "smelt.least_squares"(%arg0, %[[V15]]) {rtol = 9.9999999999999995E-7 : f64} : (tensor<3x2xf64>, tensor<3x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V17:.*]] = "smelt.sub"(%[[V14]], %[[V16]]) : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: return %[[V17]] : tensor<2x2xf64>
func.func @forward(%arg0: tensor<3x2xf64>, %arg1: tensor<3x2xf64>, %arg2: tensor<3x2xf64>, %arg3: tensor<3x2xf64>) -> tensor<2x2xf64> {
  %f = constant @f : (tensor<3x2xf64>, tensor<3x2xf64>) -> tensor<2x2xf64>
  %0 = "smelt.jvp"(%f) {wrt = array<i64: 0, 1>} : ((tensor<3x2xf64>, tensor<3x2xf64>) -> tensor<2x2xf64>) -> ((tensor<3x2xf64>, tensor<3x2xf64>, tensor<3x2xf64>, tensor<3x2xf64>) -> (tensor<2x2xf64>, tensor<2x2xf64>))
  %1:2 = call_indirect %0(%arg0, %arg1, %arg2, %arg3) : (tensor<3x2xf64>, tensor<3x2xf64>, tensor<3x2xf64>, tensor<3x2xf64>) -> (tensor<2x2xf64>, tensor<2x2xf64>)
  return %1#1 : tensor<2x2xf64>
}

// CHECK-LABEL: func.func @reverse(
// CHECK-NEXT: %[[V0:.*]] = "smelt.least_squares"(%arg0, %arg1) {rtol = 9.9999999999999995E-7 : f64} : (tensor<3x2xf64>, tensor<3x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V1:.*]] = "smelt.transpose"(%arg0) {permutation = array<i64: 1, 0>} : (tensor<3x2xf64>) -> tensor<2x3xf64>
// CHECK-NEXT: %[[V2:.*]] = "smelt.dot_general"(%arg0, %[[V0]]) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<3x2xf64>, tensor<2x2xf64>) -> tensor<3x2xf64>
// CHECK-NEXT: %[[V3:.*]] = "smelt.sub"(%arg1, %[[V2]]) : (tensor<3x2xf64>, tensor<3x2xf64>) -> tensor<3x2xf64>
// CHECK-NEXT: %[[V4:.*]] = "smelt.least_squares"(%[[V1]], %[[V0]]) {rtol = 9.9999999999999995E-7 : f64} : (tensor<2x3xf64>, tensor<2x2xf64>) -> tensor<3x2xf64>
// CHECK-NEXT: %[[V5:.*]] = "smelt.neg"(%arg2) : (tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V6:.*]] = "smelt.least_squares"(%[[V1]], %[[V5]]) {rtol = 9.9999999999999995E-7 : f64} : (tensor<2x3xf64>, tensor<2x2xf64>) -> tensor<3x2xf64>
// CHECK-NEXT: %[[V7:.*]] = "smelt.dot_general"(%arg0, %[[V6]]) {lhs_batch = array<i64>, lhs_contracting = array<i64: 0>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<3x2xf64>, tensor<3x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V8:.*]] = "smelt.add"(%[[V7]], %arg2) : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V9:.*]] = "smelt.dot_general"(%[[V8]], %[[V4]]) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 1>} : (tensor<2x2xf64>, tensor<3x2xf64>) -> tensor<2x3xf64>
// CHECK-NEXT: %[[V10:.*]] = "smelt.least_squares"(%[[V1]], %arg2) {rtol = 9.9999999999999995E-7 : f64} : (tensor<2x3xf64>, tensor<2x2xf64>) -> tensor<3x2xf64>
// CHECK-NEXT: %[[V11:.*]] = "smelt.least_squares"(%arg0, %[[V10]]) {rtol = 9.9999999999999995E-7 : f64} : (tensor<3x2xf64>, tensor<3x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V12:.*]] = "smelt.dot_general"(%[[V11]], %[[V3]]) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 1>} : (tensor<2x2xf64>, tensor<3x2xf64>) -> tensor<2x3xf64>
// CHECK-NEXT: %[[V13:.*]] = "smelt.add"(%[[V9]], %[[V12]]) : (tensor<2x3xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>
// CHECK-NEXT: %[[V14:.*]] = "smelt.transpose"(%[[V13]]) {permutation = array<i64: 1, 0>} : (tensor<2x3xf64>) -> tensor<3x2xf64>
// CHECK-NEXT: %[[V15:.*]] = "smelt.neg"(%[[V10]]) : (tensor<3x2xf64>) -> tensor<3x2xf64>
// CHECK-NEXT: %[[V16:.*]] = "smelt.dot_general"(%[[V15]], %[[V0]]) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 1>} : (tensor<3x2xf64>, tensor<2x2xf64>) -> tensor<3x2xf64>
// CHECK-NEXT: %[[V17:.*]] = "smelt.add"(%[[V14]], %[[V16]]) : (tensor<3x2xf64>, tensor<3x2xf64>) -> tensor<3x2xf64>
// CHECK-NEXT: return %[[V17]], %[[V10]] : tensor<3x2xf64>, tensor<3x2xf64>
func.func @reverse(%arg0: tensor<3x2xf64>, %arg1: tensor<3x2xf64>, %arg2: tensor<2x2xf64>) -> (tensor<3x2xf64>, tensor<3x2xf64>) {
  %f = constant @f : (tensor<3x2xf64>, tensor<3x2xf64>) -> tensor<2x2xf64>
  %0 = "smelt.vjp"(%f) {seeds = array<i64: 0>, wrt = array<i64: 0, 1>} : ((tensor<3x2xf64>, tensor<3x2xf64>) -> tensor<2x2xf64>) -> ((tensor<3x2xf64>, tensor<3x2xf64>, tensor<2x2xf64>) -> (tensor<2x2xf64>, tensor<3x2xf64>, tensor<3x2xf64>))
  %1:3 = call_indirect %0(%arg0, %arg1, %arg2) : (tensor<3x2xf64>, tensor<3x2xf64>, tensor<2x2xf64>) -> (tensor<2x2xf64>, tensor<3x2xf64>, tensor<3x2xf64>)
  return %1#1, %1#2 : tensor<3x2xf64>, tensor<3x2xf64>
}

// VALUE: dense<{{\[\[}}-0.307558, 0.573089], [0.0433723, 0.00795123]]> : tensor<2x2xf64>
// VALUE-NEXT: dense<{{\[\[}}0.323537, -0.220924], [-0.187926, 0.204404], [-0.386707, 0.1993]]> : tensor<3x2xf64>
// VALUE-NEXT: dense<{{\[\[}}-0.581085, 0.416116], [0.194645, -0.353505], [0.264951, -0.242548]]> : tensor<3x2xf64>
func.func @main() -> (tensor<2x2xf64>, tensor<3x2xf64>, tensor<3x2xf64>) {
  %0 = "smelt.literal"() {value = dense<[[2.0, 0.5], [1.0, 4.0], [-0.5, 0.8]]> : tensor<3x2xf64>} : () -> tensor<3x2xf64>
  %1 = "smelt.literal"() {value = dense<[[1.0, -0.5], [0.3, 2.0], [0.7, 1.1]]> : tensor<3x2xf64>} : () -> tensor<3x2xf64>
  %2 = "smelt.literal"() {value = dense<[[1.0, -1.3], [-0.8, -1.0], [1.1, 0.3]]> : tensor<3x2xf64>} : () -> tensor<3x2xf64>
  %3 = "smelt.literal"() {value = dense<[[-1.3, -0.5], [-0.2, 0.4], [-0.1, -0.7]]> : tensor<3x2xf64>} : () -> tensor<3x2xf64>
  %4 = "smelt.literal"() {value = dense<[[-1.1, 0.6], [0.7, -1.4]]> : tensor<2x2xf64>} : () -> tensor<2x2xf64>
  %5 = call @forward(%0, %1, %2, %3) : (tensor<3x2xf64>, tensor<3x2xf64>, tensor<3x2xf64>, tensor<3x2xf64>) -> tensor<2x2xf64>
  %6:2 = call @reverse(%0, %1, %4) : (tensor<3x2xf64>, tensor<3x2xf64>, tensor<2x2xf64>) -> (tensor<3x2xf64>, tensor<3x2xf64>)
  return %5, %6#0, %6#1 : tensor<2x2xf64>, tensor<3x2xf64>, tensor<3x2xf64>
}

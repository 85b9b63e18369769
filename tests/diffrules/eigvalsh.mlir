// smelt.eigvalsh: forward mode, reverse mode, and the values of both (checked by finite differences).
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,jvp,linearize,transpose),canonicalize,cse,dce' | filecheck %s
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,jvp,linearize,transpose)' --execute | filecheck %s --check-prefix=VALUE

func.func private @f(%arg0: tensor<3x3xf64>) -> tensor<3xf64> {
  %0 = "smelt.eigvalsh"(%arg0) : (tensor<3x3xf64>) -> tensor<3xf64>
  return %0 : tensor<3xf64>
}

// CHECK-LABEL: func.func @forward(
// CHECK-NEXT: %[[V0:.*]]:2 = "smelt.eigh"(%arg0) : (tensor<3x3xf64>) -> (tensor<3xf64>, tensor<3x3xf64>)
// CHECK-NEXT: %[[V1:.*]] = "smelt.iota"() {axis = 0 : i64, dtype = i32, shape = array<i64: 3, 3>} : () -> tensor<3x3xi32>
// CHECK-NEXT: %[[V2:.*]] = "smelt.iota"() {axis = 1 : i64, dtype = i32, shape = array<i64: 3, 3>} : () -> tensor<3x3xi32>
// CHECK-NEXT: %[[V3:.*]] = "smelt.greater_equal"(%[[V1]], %[[V2]]) : (tensor<3x3xi32>, tensor<3x3xi32>) -> tensor<3x3xi1>
// CHECK-NEXT: %[[V4:.*]] = "smelt.constant"() {dtype = f64, value = 0 : i64} : () -> tensor<f64>
// CHECK-NEXT: %[[V5:.*]] = "smelt.broadcast"(%[[V4]]) {shape = array<i64: 3, 3>} : (tensor<f64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V6:.*]] = "smelt.select"(%[[V3]], %arg1, %[[V5]]) : (tensor<3x3xi1>, tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V7:.*]] = "smelt.constant"() {dtype = i32, value = 1 : i64} : () -> tensor<i32>
// CHECK-NEXT: %[[V8:.*]] = "smelt.broadcast"(%[[V7]]) {shape = array<i64: 3, 3>} : (tensor<i32>) -> tensor<3x3xi32>
// CHECK-NEXT: %[[V9:.*]] = "smelt.add"(%[[V2]], %[[V8]]) : (tensor<3x3xi32>, tensor<3x3xi32>) -> tensor<3x3xi32>
// CHECK-NEXT: %[[V10:.*]] = "smelt.greater_equal"(%[[V1]], %[[V9]]) : (tensor<3x3xi32>, tensor<3x3xi32>) -> tensor<3x3xi1>
// CHECK-NEXT: %[[V11:.*]] = "smelt.select"(%[[V10]], %arg1, %[[V5]]) : (tensor<3x3xi1>, tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V12:.*]] = "smelt.transpose"(%[[V11]]) {permutation = array<i64: 1, 0>} : (tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V13:.*]] = "smelt.add"(%[[V6]], %[[V12]]) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V14:.*]] = "smelt.dot_general"(%[[V13]], %[[V0]]#1) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V15:.*]] = "smelt.mul"(%[[V0]]#1, %[[V14]]) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V16:.*]] = "smelt.reduce_sum"(%[[V15]]) {axes = array<i64: 0>} : (tensor<3x3xf64>) -> tensor<3xf64>
// CHECK-NEXT: return %[[V16]] : tensor<3xf64>
func.func @forward(%arg0: tensor<3x3xf64>, %arg1: tensor<3x3xf64>) -> tensor<3xf64> {
  %f = constant @f : (tensor<3x3xf64>) -> tensor<3xf64>
  %0 = "smelt.jvp"(%f) {wrt = array<i64: 0>} : ((tensor<3x3xf64>) -> tensor<3xf64>) -> ((tensor<3x3xf64>, tensor<3x3xf64>) -> (tensor<3xf64>, tensor<3xf64>))
  %1:2 = call_indirect %0(%arg0, %arg1) : (tensor<3x3xf64>, tensor<3x3xf64>) -> (tensor<3xf64>, tensor<3xf64>)
  return %1#1 : tensor<3xf64>
}

// CHECK-LABEL: func.func @reverse(
// CHECK-NEXT: %[[V0:.*]]:2 = "smelt.eigh"(%arg0) : (tensor<3x3xf64>) -> (tensor<3xf64>, tensor<3x3xf64>)
// CHECK-NEXT: %[[V1:.*]] = "smelt.iota"() {axis = 0 : i64, dtype = i32, shape = array<i64: 3, 3>} : () -> tensor<3x3xi32>
// CHECK-NEXT: %[[V2:.*]] = "smelt.iota"() {axis = 1 : i64, dtype = i32, shape = array<i64: 3, 3>} : () -> tensor<3x3xi32>
// CHECK-NEXT: %[[V3:.*]] = "smelt.greater_equal"(%[[V1]], %[[V2]]) : (tensor<3x3xi32>, tensor<3x3xi32>) -> tensor<3x3xi1>
// CHECK-NEXT: %[[V4:.*]] = "smelt.constant"() {dtype = i32, value = 1 : i64} : () -> tensor<i32>
// CHECK-NEXT: %[[V5:.*]] = "smelt.broadcast"(%[[V4]]) {shape = array<i64: 3, 3>} : (tensor<i32>) -> tensor<3x3xi32>
// CHECK-NEXT: %[[V6:.*]] = "smelt.add"(%[[V2]], %[[V5]]) : (tensor<3x3xi32>, tensor<3x3xi32>) -> tensor<3x3xi32>
// CHECK-NEXT: %[[V7:.*]] = "smelt.greater_equal"(%[[V1]], %[[V6]]) : (tensor<3x3xi32>, tensor<3x3xi32>) -> tensor<3x3xi1>
// CHECK-NEXT: %[[V8:.*]] = "smelt.broadcast"(%arg1) {shape = array<i64: 3, 3>} : (tensor<3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V9:.*]] = "smelt.mul"(%[[V8]], %[[V0]]#1) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V10:.*]] = "smelt.dot_general"(%[[V9]], %[[V0]]#1) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 1>} : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V11:.*]] = "smelt.transpose"(%[[V10]]) {permutation = array<i64: 1, 0>} : (tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V12:.*]] = "smelt.constant"() {dtype = f64, value = 0 : i64} : () -> tensor<f64>
// CHECK-NEXT: %[[V13:.*]] = "smelt.broadcast"(%[[V12]]) {shape = array<i64: 3, 3>} : (tensor<f64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V14:.*]] = "smelt.select"(%[[V7]], %[[V11]], %[[V13]]) : (tensor<3x3xi1>, tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V15:.*]] = "smelt.select"(%[[V3]], %[[V10]], %[[V13]]) : (tensor<3x3xi1>, tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V16:.*]] = "smelt.add"(%[[V14]], %[[V15]]) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: return %[[V16]] : tensor<3x3xf64>
func.func @reverse(%arg0: tensor<3x3xf64>, %arg1: tensor<3xf64>) -> tensor<3x3xf64> {
  %f = constant @f : (tensor<3x3xf64>) -> tensor<3xf64>
  %0 = "smelt.vjp"(%f) {seeds = array<i64: 0>, wrt = array<i64: 0>} : ((tensor<3x3xf64>) -> tensor<3xf64>) -> ((tensor<3x3xf64>, tensor<3xf64>) -> (tensor<3xf64>, tensor<3x3xf64>))
  %1:2 = call_indirect %0(%arg0, %arg1) : (tensor<3x3xf64>, tensor<3xf64>) -> (tensor<3xf64>, tensor<3x3xf64>)
  return %1#1 : tensor<3x3xf64>
}

// VALUE: dense<[0.834395, -1.66622, -0.568179]> : tensor<3xf64>
// VALUE-NEXT: dense<{{\[\[}}-0.725276, 0.0, 0.0], [0.926782, -0.659638, 0.0], [-0.32759, 0.561073, -0.615086]]> : tensor<3x3xf64>
func.func @main() -> (tensor<3xf64>, tensor<3x3xf64>) {
  %0 = "smelt.literal"() {value = dense<[[4.0, 2.0, 0.6], [2.0, 5.0, 1.0], [0.6, 1.0, 3.0]]> : tensor<3x3xf64>} : () -> tensor<3x3xf64>
  %1 = "smelt.literal"() {value = dense<[[1.0, -1.3, -1.0], [-0.8, -1.0, 0.9], [1.1, 0.3, -1.4]]> : tensor<3x3xf64>} : () -> tensor<3x3xf64>
  %2 = "smelt.literal"() {value = dense<[-1.3, -0.5, -0.2]> : tensor<3xf64>} : () -> tensor<3xf64>
  %3 = call @forward(%0, %1) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3xf64>
  %4 = call @reverse(%0, %2) : (tensor<3x3xf64>, tensor<3xf64>) -> tensor<3x3xf64>
  return %3, %4 : tensor<3xf64>, tensor<3x3xf64>
}

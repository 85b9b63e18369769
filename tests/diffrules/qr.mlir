// smelt.qr: forward mode, reverse mode, and the values of both (checked by finite differences).
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,jvp,linearize,transpose),canonicalize,cse,dce' | filecheck %s
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,jvp,linearize,transpose)' --execute | filecheck %s --check-prefix=VALUE

func.func private @f(%arg0: tensor<3x2xf64>) -> (tensor<3x2xf64>, tensor<2x2xf64>) {
  %0:2 = "smelt.qr"(%arg0) : (tensor<3x2xf64>) -> (tensor<3x2xf64>, tensor<2x2xf64>)
  return %0#0, %0#1 : tensor<3x2xf64>, tensor<2x2xf64>
}

// CHECK-LABEL: func.func @forward(
// CHECK-NEXT: %[[V0:.*]]:2 = "smelt.qr"(%arg0) : (tensor<3x2xf64>) -> (tensor<3x2xf64>, tensor<2x2xf64>)
// CHECK-NEXT: %[[V1:.*]] = "smelt.transpose"(%[[V0]]#1) {permutation = array<i64: 1, 0>} : (tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V2:.*]] = "smelt.transpose"(%arg1) {permutation = array<i64: 1, 0>} : (tensor<3x2xf64>) -> tensor<2x3xf64>
// CHECK-NEXT: %[[V3:.*]] = "smelt.solve_triangular"(%[[V1]], %[[V2]]) {upper = false} : (tensor<2x2xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>
// CHECK-NEXT: %[[V4:.*]] = "smelt.transpose"(%[[V3]]) {permutation = array<i64: 1, 0>} : (tensor<2x3xf64>) -> tensor<3x2xf64>
// CHECK-NEXT: %[[V5:.*]] = "smelt.transpose"(%[[V0]]#0) {permutation = array<i64: 1, 0>} : (tensor<3x2xf64>) -> tensor<2x3xf64>
// CHECK-NEXT: %[[V6:.*]] = "smelt.dot_general"(%[[V5]], %[[V4]]) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<2x3xf64>, tensor<3x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V7:.*]] = "smelt.iota"() {axis = 0 : i64, dtype = i32, shape = array<i64: 2, 2>} : () -> tensor<2x2xi32>
// CHECK-NEXT: %[[V8:.*]] = "smelt.iota"() {axis = 1 : i64, dtype = i32, shape = array<i64: 2, 2>} : () -> tensor<2x2xi32>
// CHECK-NEXT: %[[V9:.*]] = "smelt.constant"() {dtype = i32, value = 1 : i64} : () -> tensor<i32>
// CHECK-NEXT: %[[V10:.*]] = "smelt.broadcast"(%[[V9]]) {shape = array<i64: 2, 2>} : (tensor<i32>) -> tensor<2x2xi32>
// CHECK-NEXT: %[[V11:.*]] = "smelt.add"(%[[V8]], %[[V10]]) : (tensor<2x2xi32>, tensor<2x2xi32>) -> tensor<2x2xi32>
// CHECK-NEXT: %[[V12:.*]] = "smelt.greater_equal"(%[[V7]], %[[V11]]) : (tensor<2x2xi32>, tensor<2x2xi32>) -> tensor<2x2xi1>
// CHECK-NEXT: %[[V13:.*]] = "smelt.constant"() {dtype = f64, value = 0 : i64} : () -> tensor<f64>
// CHECK-NEXT: %[[V14:.*]] = "smelt.broadcast"(%[[V13]]) {shape = array<i64: 2, 2>} : (tensor<f64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V15:.*]] = "smelt.select"(%[[V12]], %[[V6]], %[[V14]]) : (tensor<2x2xi1>, tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V16:.*]] = "smelt.sub"(%[[V6]], %[[V15]]) : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V17:.*]] = "smelt.transpose"(%[[V15]]) {permutation = array<i64: 1, 0>} : (tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V18:.*]] = "smelt.add"(%[[V16]], %[[V17]]) : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V19:.*]] = "smelt.dot_general"(%[[V0]]#0, %[[V18]]) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<3x2xf64>, tensor<2x2xf64>) -> tensor<3x2xf64>
// CHECK-NEXT: %[[V20:.*]] = "smelt.sub"(%[[V4]], %[[V19]]) : (tensor<3x2xf64>, tensor<3x2xf64>) -> tensor<3x2xf64>
// CHECK-NEXT: %[[V21:.*]] = "smelt.dot_general"(%[[V18]], %[[V0]]#1) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: return %[[V20]], %[[V21]] : tensor<3x2xf64>, tensor<2x2xf64>
func.func @forward(%arg0: tensor<3x2xf64>, %arg1: tensor<3x2xf64>) -> (tensor<3x2xf64>, tensor<2x2xf64>) {
  %f = constant @f : (tensor<3x2xf64>) -> (tensor<3x2xf64>, tensor<2x2xf64>)
  %0 = "smelt.jvp"(%f) {wrt = array<i64: 0>} : ((tensor<3x2xf64>) -> (tensor<3x2xf64>, tensor<2x2xf64>)) -> ((tensor<3x2xf64>, tensor<3x2xf64>) -> (tensor<3x2xf64>, tensor<2x2xf64>, tensor<3x2xf64>, tensor<2x2xf64>))
  %1:4 = call_indirect %0(%arg0, %arg1) : (tensor<3x2xf64>, tensor<3x2xf64>) -> (tensor<3x2xf64>, tensor<2x2xf64>, tensor<3x2xf64>, tensor<2x2xf64>)
  return %1#2, %1#3 : tensor<3x2xf64>, tensor<2x2xf64>
}

// CHECK-LABEL: func.func @reverse(
// CHECK-NEXT: %[[V0:.*]]:2 = "smelt.qr"(%arg0) : (tensor<3x2xf64>) -> (tensor<3x2xf64>, tensor<2x2xf64>)
// CHECK-NEXT: %[[V1:.*]] = "smelt.transpose"(%[[V0]]#0) {permutation = array<i64: 1, 0>} : (tensor<3x2xf64>) -> tensor<2x3xf64>
// CHECK-NEXT: %[[V2:.*]] = "smelt.iota"() {axis = 0 : i64, dtype = i32, shape = array<i64: 2, 2>} : () -> tensor<2x2xi32>
// CHECK-NEXT: %[[V3:.*]] = "smelt.iota"() {axis = 1 : i64, dtype = i32, shape = array<i64: 2, 2>} : () -> tensor<2x2xi32>
// CHECK-NEXT: %[[V4:.*]] = "smelt.constant"() {dtype = i32, value = 1 : i64} : () -> tensor<i32>
// CHECK-NEXT: %[[V5:.*]] = "smelt.broadcast"(%[[V4]]) {shape = array<i64: 2, 2>} : (tensor<i32>) -> tensor<2x2xi32>
// CHECK-NEXT: %[[V6:.*]] = "smelt.add"(%[[V3]], %[[V5]]) : (tensor<2x2xi32>, tensor<2x2xi32>) -> tensor<2x2xi32>
// CHECK-NEXT: %[[V7:.*]] = "smelt.greater_equal"(%[[V2]], %[[V6]]) : (tensor<2x2xi32>, tensor<2x2xi32>) -> tensor<2x2xi1>
// CHECK-NEXT: %[[V8:.*]] = "smelt.dot_general"(%arg2, %[[V0]]#1) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 1>} : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V9:.*]] = "smelt.neg"(%arg1) : (tensor<3x2xf64>) -> tensor<3x2xf64>
// CHECK-NEXT: %[[V10:.*]] = "smelt.dot_general"(%[[V0]]#0, %[[V9]]) {lhs_batch = array<i64>, lhs_contracting = array<i64: 0>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<3x2xf64>, tensor<3x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V11:.*]] = "smelt.add"(%[[V8]], %[[V10]]) : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V12:.*]] = "smelt.transpose"(%[[V11]]) {permutation = array<i64: 1, 0>} : (tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V13:.*]] = "smelt.sub"(%[[V12]], %[[V11]]) : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V14:.*]] = "smelt.constant"() {dtype = f64, value = 0 : i64} : () -> tensor<f64>
// CHECK-NEXT: %[[V15:.*]] = "smelt.broadcast"(%[[V14]]) {shape = array<i64: 2, 2>} : (tensor<f64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V16:.*]] = "smelt.select"(%[[V7]], %[[V13]], %[[V15]]) : (tensor<2x2xi1>, tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V17:.*]] = "smelt.add"(%[[V11]], %[[V16]]) : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V18:.*]] = "smelt.dot_general"(%[[V1]], %[[V17]]) {lhs_batch = array<i64>, lhs_contracting = array<i64: 0>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<2x3xf64>, tensor<2x2xf64>) -> tensor<3x2xf64>
// CHECK-NEXT: %[[V19:.*]] = "smelt.add"(%arg1, %[[V18]]) : (tensor<3x2xf64>, tensor<3x2xf64>) -> tensor<3x2xf64>
// CHECK-NEXT: %[[V20:.*]] = "smelt.transpose"(%[[V19]]) {permutation = array<i64: 1, 0>} : (tensor<3x2xf64>) -> tensor<2x3xf64>
// CHECK-NEXT: %[[V21:.*]] = "smelt.solve_triangular"(%[[V0]]#1, %[[V20]]) {upper = true} : (tensor<2x2xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>
// CHECK-NEXT: %[[V22:.*]] = "smelt.transpose"(%[[V21]]) {permutation = array<i64: 1, 0>} : (tensor<2x3xf64>) -> tensor<3x2xf64>
// CHECK-NEXT: return %[[V22]] : tensor<3x2xf64>
func.func @reverse(%arg0: tensor<3x2xf64>, %arg1: tensor<3x2xf64>, %arg2: tensor<2x2xf64>) -> tensor<3x2xf64> {
  %f = constant @f : (tensor<3x2xf64>) -> (tensor<3x2xf64>, tensor<2x2xf64>)
  %0 = "smelt.vjp"(%f) {seeds = array<i64: 0, 1>, wrt = array<i64: 0>} : ((tensor<3x2xf64>) -> (tensor<3x2xf64>, tensor<2x2xf64>)) -> ((tensor<3x2xf64>, tensor<3x2xf64>, tensor<2x2xf64>) -> (tensor<3x2xf64>, tensor<2x2xf64>, tensor<3x2xf64>))
  %1:3 = call_indirect %0(%arg0, %arg1, %arg2) : (tensor<3x2xf64>, tensor<3x2xf64>, tensor<2x2xf64>) -> (tensor<3x2xf64>, tensor<2x2xf64>, tensor<3x2xf64>)
  return %1#2 : tensor<3x2xf64>
}

// VALUE: dense<{{\[\[}}-0.187044, -0.469684], [0.561132, -0.240407], [0.374088, 0.0782435]]> : tensor<3x2xf64>
// VALUE-NEXT: dense<{{\[\[}}-0.654654, -0.358501], [0.0, 0.992033]]> : tensor<2x2xf64>
// VALUE-NEXT: dense<{{\[\[}}-0.866313, -0.443186], [0.885399, 0.982396], [0.138574, -0.266209]]> : tensor<3x2xf64>
func.func @main() -> (tensor<3x2xf64>, tensor<2x2xf64>, tensor<3x2xf64>) {
  %0 = "smelt.literal"() {value = dense<[[2.0, 0.5], [1.0, -4.0], [-0.5, 0.8]]> : tensor<3x2xf64>} : () -> tensor<3x2xf64>
  %1 = "smelt.literal"() {value = dense<[[1.0, -1.3], [-1.0, -0.8], [-1.0, 0.9]]> : tensor<3x2xf64>} : () -> tensor<3x2xf64>
  %2 = "smelt.literal"() {value = dense<[[1.1, 0.3], [-1.4, -1.3], [-0.5, -0.2]]> : tensor<3x2xf64>} : () -> tensor<3x2xf64>
  %3 = "smelt.literal"() {value = dense<[[0.4, -0.1], [-0.7, -1.1]]> : tensor<2x2xf64>} : () -> tensor<2x2xf64>
  %4:2 = call @forward(%0, %1) : (tensor<3x2xf64>, tensor<3x2xf64>) -> (tensor<3x2xf64>, tensor<2x2xf64>)
  %5 = call @reverse(%0, %2, %3) : (tensor<3x2xf64>, tensor<3x2xf64>, tensor<2x2xf64>) -> tensor<3x2xf64>
  return %4#0, %4#1, %5 : tensor<3x2xf64>, tensor<2x2xf64>, tensor<3x2xf64>
}

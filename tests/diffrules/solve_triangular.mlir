// smelt.solve_triangular: forward mode, reverse mode, and the values of both (checked by finite differences).
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,jvp,linearize,transpose),canonicalize,cse,dce' | filecheck %s
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,jvp,linearize,transpose)' --execute | filecheck %s --check-prefix=VALUE

func.func private @f(%arg0: tensor<3x3xf64>, %arg1: tensor<3x2xf64>) -> tensor<3x2xf64> {
  %0 = "smelt.solve_triangular"(%arg0, %arg1) {upper = false} : (tensor<3x3xf64>, tensor<3x2xf64>) -> tensor<3x2xf64>
  return %0 : tensor<3x2xf64>
}

// CHECK-LABEL: func.func @forward(
// CHECK-NEXT: %[[V0:.*]] = "smelt.solve_triangular"(%arg0, %arg1) {upper = false} : (tensor<3x3xf64>, tensor<3x2xf64>) -> tensor<3x2xf64>
// CHECK-NEXT: %[[V1:.*]] = "smelt.iota"() {axis = 0 : i64, dtype = i32, shape = array<i64: 3, 3>} : () -> tensor<3x3xi32>
// CHECK-NEXT: %[[V2:.*]] = "smelt.iota"() {axis = 1 : i64, dtype = i32, shape = array<i64: 3, 3>} : () -> tensor<3x3xi32>
// CHECK-NEXT: %[[V3:.*]] = "smelt.greater_equal"(%[[V1]], %[[V2]]) : (tensor<3x3xi32>, tensor<3x3xi32>) -> tensor<3x3xi1>
// CHECK-NEXT: %[[V4:.*]] = "smelt.constant"() {dtype = f64, value = 0 : i64} : () -> tensor<f64>
// CHECK-NEXT: %[[V5:.*]] = "smelt.broadcast"(%[[V4]]) {shape = array<i64: 3, 3>} : (tensor<f64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V6:.*]] = "smelt.select"(%[[V3]], %arg2, %[[V5]]) : (tensor<3x3xi1>, tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V7:.*]] = "smelt.dot_general"(%[[V6]], %[[V0]]) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<3x3xf64>, tensor<3x2xf64>) -> tensor<3x2xf64>
// CHECK-NEXT: %[[V8:.*]] = "smelt.sub"(%arg3, %[[V7]]) : (tensor<3x2xf64>, tensor<3x2xf64>) -> tensor<3x2xf64>
// CHECK-NEXT: %[[V9:.*]] = "smelt.solve_triangular"(%arg0, %[[V8]]) {upper = false} : (tensor<3x3xf64>, tensor<3x2xf64>) -> tensor<3x2xf64>
// CHECK-NEXT: return %[[V9]] : tensor<3x2xf64>
func.func @forward(%arg0: tensor<3x3xf64>, %arg1: tensor<3x2xf64>, %arg2: tensor<3x3xf64>, %arg3: tensor<3x2xf64>) -> tensor<3x2xf64> {
  %f = constant @f : (tensor<3x3xf64>, tensor<3x2xf64>) -> tensor<3x2xf64>
  %0 = "smelt.jvp"(%f) {wrt = array<i64: 0, 1>} : ((tensor<3x3xf64>, tensor<3x2xf64>) -> tensor<3x2xf64>) -> ((tensor<3x3xf64>, tensor<3x2xf64>, tensor<3x3xf64>, tensor<3x2xf64>) -> (tensor<3x2xf64>, tensor<3x2xf64>))
  %1:2 = call_indirect %0(%arg0, %arg1, %arg2, %arg3) : (tensor<3x3xf64>, tensor<3x2xf64>, tensor<3x3xf64>, tensor<3x2xf64>) -> (tensor<3x2xf64>, tensor<3x2xf64>)
  return %1#1 : tensor<3x2xf64>
}

// CHECK-LABEL: func.func @reverse(
// CHECK-NEXT: %[[V0:.*]] = "smelt.solve_triangular"(%arg0, %arg1) {upper = false} : (tensor<3x3xf64>, tensor<3x2xf64>) -> tensor<3x2xf64>
// CHECK-NEXT: %[[V1:.*]] = "smelt.iota"() {axis = 0 : i64, dtype = i32, shape = array<i64: 3, 3>} : () -> tensor<3x3xi32>
// CHECK-NEXT: %[[V2:.*]] = "smelt.iota"() {axis = 1 : i64, dtype = i32, shape = array<i64: 3, 3>} : () -> tensor<3x3xi32>
// CHECK-NEXT: %[[V3:.*]] = "smelt.greater_equal"(%[[V1]], %[[V2]]) : (tensor<3x3xi32>, tensor<3x3xi32>) -> tensor<3x3xi1>
// CHECK-NEXT: %[[V4:.*]] = "smelt.transpose"(%arg0) {permutation = array<i64: 1, 0>} : (tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V5:.*]] = "smelt.solve_triangular"(%[[V4]], %arg2) {upper = true} : (tensor<3x3xf64>, tensor<3x2xf64>) -> tensor<3x2xf64>
// CHECK-NEXT: %[[V6:.*]] = "smelt.neg"(%[[V5]]) : (tensor<3x2xf64>) -> tensor<3x2xf64>
// CHECK-NEXT: %[[V7:.*]] = "smelt.dot_general"(%[[V6]], %[[V0]]) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 1>} : (tensor<3x2xf64>, tensor<3x2xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V8:.*]] = "smelt.constant"() {dtype = f64, value = 0 : i64} : () -> tensor<f64>
// CHECK-NEXT: %[[V9:.*]] = "smelt.broadcast"(%[[V8]]) {shape = array<i64: 3, 3>} : (tensor<f64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V10:.*]] = "smelt.select"(%[[V3]], %[[V7]], %[[V9]]) : (tensor<3x3xi1>, tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: return %[[V10]], %[[V5]] : tensor<3x3xf64>, tensor<3x2xf64>
func.func @reverse(%arg0: tensor<3x3xf64>, %arg1: tensor<3x2xf64>, %arg2: tensor<3x2xf64>) -> (tensor<3x3xf64>, tensor<3x2xf64>) {
  %f = constant @f : (tensor<3x3xf64>, tensor<3x2xf64>) -> tensor<3x2xf64>
  %0 = "smelt.vjp"(%f) {seeds = array<i64: 0>, wrt = array<i64: 0, 1>} : ((tensor<3x3xf64>, tensor<3x2xf64>) -> tensor<3x2xf64>) -> ((tensor<3x3xf64>, tensor<3x2xf64>, tensor<3x2xf64>) -> (tensor<3x2xf64>, tensor<3x3xf64>, tensor<3x2xf64>))
  %1:3 = call_indirect %0(%arg0, %arg1, %arg2) : (tensor<3x3xf64>, tensor<3x2xf64>, tensor<3x2xf64>) -> (tensor<3x2xf64>, tensor<3x3xf64>, tensor<3x2xf64>)
  return %1#1, %1#2 : tensor<3x3xf64>, tensor<3x2xf64>
}

// VALUE: dense<{{\[\[}}-0.9, -0.125], [0.2625, 0.221875], [-0.29624, -0.2159]]> : tensor<3x2xf64>
// VALUE-NEXT: dense<{{\[\[}}0.518, 0.0, 0.0], [-0.221, 0.205925, 0.0], [0.23, -0.0015, 0.19848]]> : tensor<3x3xf64>
// VALUE-NEXT: dense<{{\[\[}}-0.8055, 0.461], [0.271, -0.342], [-0.48, -0.04]]> : tensor<3x2xf64>
func.func @main() -> (tensor<3x2xf64>, tensor<3x3xf64>, tensor<3x2xf64>) {
  %0 = "smelt.literal"() {value = dense<[[2.0, 0.5, 0.0], [1.0, 4.0, -1.0], [-0.5, 0.8, 2.5]]> : tensor<3x3xf64>} : () -> tensor<3x3xf64>
  %1 = "smelt.literal"() {value = dense<[[1.0, -0.5], [0.3, 2.0], [0.7, 1.1]]> : tensor<3x2xf64>} : () -> tensor<3x2xf64>
  %2 = "smelt.literal"() {value = dense<[[1.0, -1.3, -1.0], [-0.8, -1.0, 0.9], [1.1, 0.3, -1.4]]> : tensor<3x3xf64>} : () -> tensor<3x3xf64>
  %3 = "smelt.literal"() {value = dense<[[-1.3, -0.5], [-0.2, 0.4], [-0.1, -0.7]]> : tensor<3x2xf64>} : () -> tensor<3x2xf64>
  %4 = "smelt.literal"() {value = dense<[[-1.1, 0.6], [0.7, -1.4], [-1.2, -0.1]]> : tensor<3x2xf64>} : () -> tensor<3x2xf64>
  %5 = call @forward(%0, %1, %2, %3) : (tensor<3x3xf64>, tensor<3x2xf64>, tensor<3x3xf64>, tensor<3x2xf64>) -> tensor<3x2xf64>
  %6:2 = call @reverse(%0, %1, %4) : (tensor<3x3xf64>, tensor<3x2xf64>, tensor<3x2xf64>) -> (tensor<3x3xf64>, tensor<3x2xf64>)
  return %5, %6#0, %6#1 : tensor<3x2xf64>, tensor<3x3xf64>, tensor<3x2xf64>
}

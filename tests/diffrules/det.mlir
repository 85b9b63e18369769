// smelt.det: forward mode, reverse mode, and the values of both (checked by finite differences).
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,jvp,linearize,transpose),canonicalize,cse,dce' | filecheck %s
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,jvp,linearize,transpose)' --execute | filecheck %s --check-prefix=VALUE

func.func private @f(%arg0: tensor<3x3xf64>) -> tensor<f64> {
  %0 = "smelt.det"(%arg0) : (tensor<3x3xf64>) -> tensor<f64>
  return %0 : tensor<f64>
}

// CHECK-LABEL: func.func @forward(
// CHECK-NEXT: %[[V0:.*]] = "smelt.adjugate"(%arg0) : (tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V1:.*]] = "smelt.transpose"(%arg1) {permutation = array<i64: 1, 0>} : (tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V2:.*]] = "smelt.mul"(%[[V0]], %[[V1]]) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V3:.*]] = "smelt.reduce_sum"(%[[V2]]) {axes = array<i64: 0, 1>} : (tensor<3x3xf64>) -> tensor<f64>
// CHECK-NEXT: return %[[V3]] : tensor<f64>
func.func @forward(%arg0: tensor<3x3xf64>, %arg1: tensor<3x3xf64>) -> tensor<f64> {
  %f = constant @f : (tensor<3x3xf64>) -> tensor<f64>
  %0 = "smelt.jvp"(%f) {wrt = array<i64: 0>} : ((tensor<3x3xf64>) -> tensor<f64>) -> ((tensor<3x3xf64>, tensor<3x3xf64>) -> (tensor<f64>, tensor<f64>))
  %1:2 = call_indirect %0(%arg0, %arg1) : (tensor<3x3xf64>, tensor<3x3xf64>) -> (tensor<f64>, tensor<f64>)
  return %1#1 : tensor<f64>
}

// CHECK-LABEL: func.func @reverse(
// CHECK-NEXT: %[[V0:.*]] = "smelt.adjugate"(%arg0) : (tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V1:.*]] = "smelt.broadcast"(%arg1) {shape = array<i64: 3, 3>} : (tensor<f64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V2:.*]] = "smelt.mul"(%[[V1]], %[[V0]]) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V3:.*]] = "smelt.transpose"(%[[V2]]) {permutation = array<i64: 1, 0>} : (tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: return %[[V3]] : tensor<3x3xf64>
func.func @reverse(%arg0: tensor<3x3xf64>, %arg1: tensor<f64>) -> tensor<3x3xf64> {
  %f = constant @f : (tensor<3x3xf64>) -> tensor<f64>
  %0 = "smelt.vjp"(%f) {seeds = array<i64: 0>, wrt = array<i64: 0>} : ((tensor<3x3xf64>) -> tensor<f64>) -> ((tensor<3x3xf64>, tensor<f64>) -> (tensor<f64>, tensor<3x3xf64>))
  %1:2 = call_indirect %0(%arg0, %arg1) : (tensor<3x3xf64>, tensor<f64>) -> (tensor<f64>, tensor<3x3xf64>)
  return %1#1 : tensor<3x3xf64>
}

// VALUE: dense<-3.419> : tensor<f64>
// VALUE-NEXT: dense<{{\[\[}}-14.04, 2.6, -3.64], [2.041, -6.24, 2.405], [-1.43, -2.08, -9.75]]> : tensor<3x3xf64>
func.func @main() -> (tensor<f64>, tensor<3x3xf64>) {
  %0 = "smelt.literal"() {value = dense<[[2.0, 0.5, -0.4], [1.0, 4.0, -1.0], [-0.5, 0.8, 2.5]]> : tensor<3x3xf64>} : () -> tensor<3x3xf64>
  %1 = "smelt.literal"() {value = dense<[[1.0, -1.3, -1.0], [-0.8, -1.0, 0.9], [1.1, 0.3, -1.4]]> : tensor<3x3xf64>} : () -> tensor<3x3xf64>
  %2 = "smelt.literal"() {value = dense<-1.3> : tensor<f64>} : () -> tensor<f64>
  %3 = call @forward(%0, %1) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<f64>
  %4 = call @reverse(%0, %2) : (tensor<3x3xf64>, tensor<f64>) -> tensor<3x3xf64>
  return %3, %4 : tensor<f64>, tensor<3x3xf64>
}

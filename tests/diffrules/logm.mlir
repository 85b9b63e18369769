// smelt.logm: forward mode, reverse mode, and the values of both (checked by finite differences).
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,jvp,linearize,transpose),canonicalize,cse,dce' | filecheck %s
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,jvp,linearize,transpose)' --execute | filecheck %s --check-prefix=VALUE

func.func private @f(%arg0: tensor<3x3xf64>) -> tensor<3x3xf64> {
  %0 = "smelt.logm"(%arg0) : (tensor<3x3xf64>) -> tensor<3x3xf64>
  return %0 : tensor<3x3xf64>
}

// CHECK-LABEL: func.func @forward(
// CHECK-NEXT: %[[V0:.*]] = "smelt.logm_frechet"(%arg0, %arg1) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: return %[[V0]] : tensor<3x3xf64>
func.func @forward(%arg0: tensor<3x3xf64>, %arg1: tensor<3x3xf64>) -> tensor<3x3xf64> {
  %f = constant @f : (tensor<3x3xf64>) -> tensor<3x3xf64>
  %0 = "smelt.jvp"(%f) {wrt = array<i64: 0>} : ((tensor<3x3xf64>) -> tensor<3x3xf64>) -> ((tensor<3x3xf64>, tensor<3x3xf64>) -> (tensor<3x3xf64>, tensor<3x3xf64>))
  %1:2 = call_indirect %0(%arg0, %arg1) : (tensor<3x3xf64>, tensor<3x3xf64>) -> (tensor<3x3xf64>, tensor<3x3xf64>)
  return %1#1 : tensor<3x3xf64>
}

// CHECK-LABEL: func.func @reverse(
// CHECK-NEXT: %[[V0:.*]] = "smelt.transpose"(%arg0) {permutation = array<i64: 1, 0>} : (tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V1:.*]] = "smelt.logm_frechet"(%[[V0]], %arg1) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: return %[[V1]] : tensor<3x3xf64>
func.func @reverse(%arg0: tensor<3x3xf64>, %arg1: tensor<3x3xf64>) -> tensor<3x3xf64> {
  %f = constant @f : (tensor<3x3xf64>) -> tensor<3x3xf64>
  %0 = "smelt.vjp"(%f) {seeds = array<i64: 0>, wrt = array<i64: 0>} : ((tensor<3x3xf64>) -> tensor<3x3xf64>) -> ((tensor<3x3xf64>, tensor<3x3xf64>) -> (tensor<3x3xf64>, tensor<3x3xf64>))
  %1:2 = call_indirect %0(%arg0, %arg1) : (tensor<3x3xf64>, tensor<3x3xf64>) -> (tensor<3x3xf64>, tensor<3x3xf64>)
  return %1#1 : tensor<3x3xf64>
}

// VALUE: dense<{{\[\[}}0.433495, -0.55459, -0.416509], [-0.296451, -0.477618, 0.38123], [0.449809, 0.305684, -0.637211]]> : tensor<3x3xf64>
// VALUE-NEXT: dense<{{\[\[}}-0.614013, -0.098707, -0.0366253], [0.16472, -0.177545, -0.326923], [-0.392922, 0.353901, 0.196057]]> : tensor<3x3xf64>
func.func @main() -> (tensor<3x3xf64>, tensor<3x3xf64>) {
  %0 = "smelt.literal"() {value = dense<[[2.3, -0.5, 0.2], [0.7, 1.9, -0.4], [-0.2, 0.6, 2.4]]> : tensor<3x3xf64>} : () -> tensor<3x3xf64>
  %1 = "smelt.literal"() {value = dense<[[1.0, -1.3, -1.0], [-0.8, -1.0, 0.9], [1.1, 0.3, -1.4]]> : tensor<3x3xf64>} : () -> tensor<3x3xf64>
  %2 = "smelt.literal"() {value = dense<[[-1.3, -0.5, -0.2], [0.4, -0.1, -0.7], [-1.1, 0.6, 0.7]]> : tensor<3x3xf64>} : () -> tensor<3x3xf64>
  %3 = call @forward(%0, %1) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
  %4 = call @reverse(%0, %2) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
  return %3, %4 : tensor<3x3xf64>, tensor<3x3xf64>
}

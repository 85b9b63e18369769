// smelt.barrier: forward mode, reverse mode, and the values of both (checked by finite differences).
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,jvp,linearize,transpose),canonicalize,cse,dce' | filecheck %s
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,jvp,linearize,transpose)' --execute | filecheck %s --check-prefix=VALUE

func.func private @f(%arg0: tensor<3x4xf64>) -> tensor<3x4xf64> {
  %0 = "smelt.barrier"(%arg0) : (tensor<3x4xf64>) -> tensor<3x4xf64>
  return %0 : tensor<3x4xf64>
}

// CHECK-LABEL: func.func @forward(
// CHECK-NEXT: %[[V0:.*]] = "smelt.barrier"(%arg1) : (tensor<3x4xf64>) -> tensor<3x4xf64>
// CHECK-NEXT: return %[[V0]] : tensor<3x4xf64>
func.func @forward(%arg0: tensor<3x4xf64>, %arg1: tensor<3x4xf64>) -> tensor<3x4xf64> {
  %f = constant @f : (tensor<3x4xf64>) -> tensor<3x4xf64>
  %0 = "smelt.jvp"(%f) {wrt = array<i64: 0>} : ((tensor<3x4xf64>) -> tensor<3x4xf64>) -> ((tensor<3x4xf64>, tensor<3x4xf64>) -> (tensor<3x4xf64>, tensor<3x4xf64>))
  %1:2 = call_indirect %0(%arg0, %arg1) : (tensor<3x4xf64>, tensor<3x4xf64>) -> (tensor<3x4xf64>, tensor<3x4xf64>)
  return %1#1 : tensor<3x4xf64>
}

// CHECK-LABEL: func.func @reverse(
// CHECK-NEXT: return %arg1 : tensor<3x4xf64>
func.func @reverse(%arg0: tensor<3x4xf64>, %arg1: tensor<3x4xf64>) -> tensor<3x4xf64> {
  %f = constant @f : (tensor<3x4xf64>) -> tensor<3x4xf64>
  %0 = "smelt.vjp"(%f) {seeds = array<i64: 0>, wrt = array<i64: 0>} : ((tensor<3x4xf64>) -> tensor<3x4xf64>) -> ((tensor<3x4xf64>, tensor<3x4xf64>) -> (tensor<3x4xf64>, tensor<3x4xf64>))
  %1:2 = call_indirect %0(%arg0, %arg1) : (tensor<3x4xf64>, tensor<3x4xf64>) -> (tensor<3x4xf64>, tensor<3x4xf64>)
  return %1#1 : tensor<3x4xf64>
}

// VALUE: dense<{{\[\[}}1.3, 1.3, 1.0, 1.5], [0.7, 1.1, 0.6, 1.1], [0.9, 0.8, 1.5, 0.9]]> : tensor<3x4xf64>
// VALUE-NEXT: dense<{{\[\[}}0.9, 1.2, 1.0, 0.9], [1.2, 0.6, 1.2, 1.4], [0.9, 0.5, 0.6, 1.3]]> : tensor<3x4xf64>
func.func @main() -> (tensor<3x4xf64>, tensor<3x4xf64>) {
  %0 = "smelt.literal"() {value = dense<[[6.500000e-01, 3.900000e-01, 2.300000e-01, 2.100000e-01], [7.700000e-01, 8.400000e-01, 6.200000e-01, 7.100000e-01], [5.800000e-01, 8.500000e-01, 7.700000e-01, 2.000000e-01]]> : tensor<3x4xf64>} : () -> tensor<3x4xf64>
  %1 = "smelt.literal"() {value = dense<[[1.300000e+00, 1.300000e+00, 1.000000e+00, 1.500000e+00], [0.69999999999999996, 1.100000e+00, 6.000000e-01, 1.100000e+00], [9.000000e-01, 8.000000e-01, 1.500000e+00, 9.000000e-01]]> : tensor<3x4xf64>} : () -> tensor<3x4xf64>
  %2 = "smelt.literal"() {value = dense<[[9.000000e-01, 1.200000e+00, 1.000000e+00, 9.000000e-01], [1.200000e+00, 6.000000e-01, 1.200000e+00, 1.400000e+00], [9.000000e-01, 5.000000e-01, 6.000000e-01, 1.300000e+00]]> : tensor<3x4xf64>} : () -> tensor<3x4xf64>
  %3 = call @forward(%0, %1) : (tensor<3x4xf64>, tensor<3x4xf64>) -> tensor<3x4xf64>
  %4 = call @reverse(%0, %2) : (tensor<3x4xf64>, tensor<3x4xf64>) -> tensor<3x4xf64>
  return %3, %4 : tensor<3x4xf64>, tensor<3x4xf64>
}

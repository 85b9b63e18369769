// smelt.expm1: forward mode, reverse mode, and the values of both (checked by finite differences).
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,jvp,linearize,transpose),canonicalize,cse,dce' | filecheck %s
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,jvp,linearize,transpose)' --execute | filecheck %s --check-prefix=VALUE

func.func private @f(%arg0: tensor<3xf64>) -> tensor<3xf64> {
  %0 = "smelt.expm1"(%arg0) : (tensor<3xf64>) -> tensor<3xf64>
  return %0 : tensor<3xf64>
}

// CHECK-LABEL: func.func @forward(
// CHECK-NEXT: %[[V0:.*]] = "smelt.exp"(%arg0) : (tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V1:.*]] = "smelt.mul"(%arg1, %[[V0]]) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: return %[[V1]] : tensor<3xf64>
func.func @forward(%arg0: tensor<3xf64>, %arg1: tensor<3xf64>) -> tensor<3xf64> {
  %f = constant @f : (tensor<3xf64>) -> tensor<3xf64>
  %0 = "smelt.jvp"(%f) {wrt = array<i64: 0>} : ((tensor<3xf64>) -> tensor<3xf64>) -> ((tensor<3xf64>, tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>))
  %1:2 = call_indirect %0(%arg0, %arg1) : (tensor<3xf64>, tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>)
  return %1#1 : tensor<3xf64>
}

// CHECK-LABEL: func.func @reverse(
// CHECK-NEXT: %[[V0:.*]] = "smelt.exp"(%arg0) : (tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V1:.*]] = "smelt.mul"(%arg1, %[[V0]]) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: return %[[V1]] : tensor<3xf64>
func.func @reverse(%arg0: tensor<3xf64>, %arg1: tensor<3xf64>) -> tensor<3xf64> {
  %f = constant @f : (tensor<3xf64>) -> tensor<3xf64>
  %0 = "smelt.vjp"(%f) {seeds = array<i64: 0>, wrt = array<i64: 0>} : ((tensor<3xf64>) -> tensor<3xf64>) -> ((tensor<3xf64>, tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>))
  %1:2 = call_indirect %0(%arg0, %arg1) : (tensor<3xf64>, tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>)
  return %1#1 : tensor<3xf64>
}

// VALUE: dense<[2.4902, 1.92008, 1.2586]> : tensor<3xf64>
// VALUE-NEXT: dense<[1.72399, 1.77238, 1.2586]> : tensor<3xf64>
func.func @main() -> (tensor<3xf64>, tensor<3xf64>) {
  %0 = "smelt.literal"() {value = dense<[6.500000e-01, 3.900000e-01, 2.300000e-01]> : tensor<3xf64>} : () -> tensor<3xf64>
  %1 = "smelt.literal"() {value = dense<[1.300000e+00, 1.300000e+00, 1.000000e+00]> : tensor<3xf64>} : () -> tensor<3xf64>
  %2 = "smelt.literal"() {value = dense<[9.000000e-01, 1.200000e+00, 1.000000e+00]> : tensor<3xf64>} : () -> tensor<3xf64>
  %3 = call @forward(%0, %1) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  %4 = call @reverse(%0, %2) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  return %3, %4 : tensor<3xf64>, tensor<3xf64>
}

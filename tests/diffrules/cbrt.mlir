// smelt.cbrt: forward mode, reverse mode, and the values of both (checked by finite differences).
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,jvp,linearize,transpose),canonicalize,cse,dce' | filecheck %s
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,jvp,linearize,transpose)' --execute | filecheck %s --check-prefix=VALUE

func.func private @f(%arg0: tensor<3xf64>) -> tensor<3xf64> {
  %0 = "smelt.cbrt"(%arg0) : (tensor<3xf64>) -> tensor<3xf64>
  return %0 : tensor<3xf64>
}

// CHECK-LABEL: func.func @forward(
// CHECK-NEXT: %[[V0:.*]] = "smelt.cbrt"(%arg0) : (tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V1:.*]] = "smelt.constant"() {dtype = f64, value = 0.33333333333333331 : f64} : () -> tensor<f64>
// CHECK-NEXT: %[[V2:.*]] = "smelt.broadcast"(%[[V1]]) {shape = array<i64: 3>} : (tensor<f64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V3:.*]] = "smelt.mul"(%arg1, %[[V2]]) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V4:.*]] = "smelt.mul"(%[[V0]], %[[V0]]) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V5:.*]] = "smelt.div"(%[[V3]], %[[V4]]) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: return %[[V5]] : tensor<3xf64>
func.func @forward(%arg0: tensor<3xf64>, %arg1: tensor<3xf64>) -> tensor<3xf64> {
  %f = constant @f : (tensor<3xf64>) -> tensor<3xf64>
  %0 = "smelt.jvp"(%f) {wrt = array<i64: 0>} : ((tensor<3xf64>) -> tensor<3xf64>) -> ((tensor<3xf64>, tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>))
  %1:2 = call_indirect %0(%arg0, %arg1) : (tensor<3xf64>, tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>)
  return %1#1 : tensor<3xf64>
}

// CHECK-LABEL: func.func @reverse(
// CHECK-NEXT: %[[V0:.*]] = "smelt.cbrt"(%arg0) : (tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V1:.*]] = "smelt.constant"() {dtype = f64, value = 0.33333333333333331 : f64} : () -> tensor<f64>
// CHECK-NEXT: %[[V2:.*]] = "smelt.broadcast"(%[[V1]]) {shape = array<i64: 3>} : (tensor<f64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V3:.*]] = "smelt.mul"(%[[V0]], %[[V0]]) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V4:.*]] = "smelt.div"(%arg1, %[[V3]]) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V5:.*]] = "smelt.mul"(%[[V4]], %[[V2]]) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: return %[[V5]] : tensor<3xf64>
func.func @reverse(%arg0: tensor<3xf64>, %arg1: tensor<3xf64>) -> tensor<3xf64> {
  %f = constant @f : (tensor<3xf64>) -> tensor<3xf64>
  %0 = "smelt.vjp"(%f) {seeds = array<i64: 0>, wrt = array<i64: 0>} : ((tensor<3xf64>) -> tensor<3xf64>) -> ((tensor<3xf64>, tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>))
  %1:2 = call_indirect %0(%arg0, %arg1) : (tensor<3xf64>, tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>)
  return %1#1 : tensor<3xf64>
}

// VALUE: dense<[0.577493, 0.811794, 0.88796]> : tensor<3xf64>
// VALUE-NEXT: dense<[0.399803, 0.749348, 0.88796]> : tensor<3xf64>
func.func @main() -> (tensor<3xf64>, tensor<3xf64>) {
  %0 = "smelt.literal"() {value = dense<[6.500000e-01, 3.900000e-01, 2.300000e-01]> : tensor<3xf64>} : () -> tensor<3xf64>
  %1 = "smelt.literal"() {value = dense<[1.300000e+00, 1.300000e+00, 1.000000e+00]> : tensor<3xf64>} : () -> tensor<3xf64>
  %2 = "smelt.literal"() {value = dense<[9.000000e-01, 1.200000e+00, 1.000000e+00]> : tensor<3xf64>} : () -> tensor<3xf64>
  %3 = call @forward(%0, %1) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  %4 = call @reverse(%0, %2) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  return %3, %4 : tensor<3xf64>, tensor<3xf64>
}

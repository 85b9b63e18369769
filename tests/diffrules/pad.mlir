// smelt.pad: forward mode, reverse mode, and the values of both (checked by finite differences).
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,jvp,linearize,transpose),canonicalize,cse,dce' | filecheck %s
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,jvp,linearize,transpose)' --execute | filecheck %s --check-prefix=VALUE

func.func private @f(%arg0: tensor<4xf64>, %arg1: tensor<f64>) -> tensor<7xf64> {
  %0 = "smelt.pad"(%arg0, %arg1) {high = array<i64: 2>, interior = array<i64: 0>, low = array<i64: 1>} : (tensor<4xf64>, tensor<f64>) -> tensor<7xf64>
  return %0 : tensor<7xf64>
}

// CHECK-LABEL: func.func @forward(
// CHECK-NEXT: %[[V0:.*]] = "smelt.pad"(%arg2, %arg3) {high = array<i64: 2>, interior = array<i64: 0>, low = array<i64: 1>} : (tensor<4xf64>, tensor<f64>) -> tensor<7xf64>
// CHECK-NEXT: return %[[V0]] : tensor<7xf64>
func.func @forward(%arg0: tensor<4xf64>, %arg1: tensor<f64>, %arg2: tensor<4xf64>, %arg3: tensor<f64>) -> tensor<7xf64> {
  %f = constant @f : (tensor<4xf64>, tensor<f64>) -> tensor<7xf64>
  %0 = "smelt.jvp"(%f) {wrt = array<i64: 0, 1>} : ((tensor<4xf64>, tensor<f64>) -> tensor<7xf64>) -> ((tensor<4xf64>, tensor<f64>, tensor<4xf64>, tensor<f64>) -> (tensor<7xf64>, tensor<7xf64>))
  %1:2 = call_indirect %0(%arg0, %arg1, %arg2, %arg3) : (tensor<4xf64>, tensor<f64>, tensor<4xf64>, tensor<f64>) -> (tensor<7xf64>, tensor<7xf64>)
  return %1#1 : tensor<7xf64>
}

// CHECK-LABEL: func.func @reverse(
// CHECK-NEXT: %[[V0:.*]] = "smelt.slice"(%arg2) {start = array<i64: 1>, stop = array<i64: 5>, stride = array<i64: 1>} : (tensor<7xf64>) -> tensor<4xf64>
// CHECK-NEXT: %[[V1:.*]] = "smelt.reduce_sum"(%arg2) {axes = array<i64: 0>} : (tensor<7xf64>) -> tensor<f64>
// CHECK-NEXT: %[[V2:.*]] = "smelt.reduce_sum"(%[[V0]]) {axes = array<i64: 0>} : (tensor<4xf64>) -> tensor<f64>
// CHECK-NEXT: %[[V3:.*]] = "smelt.sub"(%[[V1]], %[[V2]]) : (tensor<f64>, tensor<f64>) -> tensor<f64>
// CHECK-NEXT: return %[[V0]], %[[V3]] : tensor<4xf64>, tensor<f64>
func.func @reverse(%arg0: tensor<4xf64>, %arg1: tensor<f64>, %arg2: tensor<7xf64>) -> (tensor<4xf64>, tensor<f64>) {
  %f = constant @f : (tensor<4xf64>, tensor<f64>) -> tensor<7xf64>
  %0 = "smelt.vjp"(%f) {seeds = array<i64: 0>, wrt = array<i64: 0, 1>} : ((tensor<4xf64>, tensor<f64>) -> tensor<7xf64>) -> ((tensor<4xf64>, tensor<f64>, tensor<7xf64>) -> (tensor<7xf64>, tensor<4xf64>, tensor<f64>))
  %1:3 = call_indirect %0(%arg0, %arg1, %arg2) : (tensor<4xf64>, tensor<f64>, tensor<7xf64>) -> (tensor<7xf64>, tensor<4xf64>, tensor<f64>)
  return %1#1, %1#2 : tensor<4xf64>, tensor<f64>
}

// VALUE: dense<[1.4, 1.3, 1.3, 1.0, 1.5, 1.4, 1.4]> : tensor<7xf64>
// VALUE-NEXT: dense<[1.2, 1.0, 0.9, 1.2]> : tensor<4xf64>
// VALUE-NEXT: dense<2.7> : tensor<f64>
func.func @main() -> (tensor<7xf64>, tensor<4xf64>, tensor<f64>) {
  %0 = "smelt.literal"() {value = dense<[6.500000e-01, 3.900000e-01, 2.300000e-01, 2.100000e-01]> : tensor<4xf64>} : () -> tensor<4xf64>
  %1 = "smelt.literal"() {value = dense<5.600000e-01> : tensor<f64>} : () -> tensor<f64>
  %2 = "smelt.literal"() {value = dense<[1.300000e+00, 1.300000e+00, 1.000000e+00, 1.500000e+00]> : tensor<4xf64>} : () -> tensor<4xf64>
  %3 = "smelt.literal"() {value = dense<1.400000e+00> : tensor<f64>} : () -> tensor<f64>
  %4 = "smelt.literal"() {value = dense<[9.000000e-01, 1.200000e+00, 1.000000e+00, 9.000000e-01, 1.200000e+00, 6.000000e-01, 1.200000e+00]> : tensor<7xf64>} : () -> tensor<7xf64>
  %5 = call @forward(%0, %1, %2, %3) : (tensor<4xf64>, tensor<f64>, tensor<4xf64>, tensor<f64>) -> tensor<7xf64>
  %6:2 = call @reverse(%0, %1, %4) : (tensor<4xf64>, tensor<f64>, tensor<7xf64>) -> (tensor<4xf64>, tensor<f64>)
  return %5, %6#0, %6#1 : tensor<7xf64>, tensor<4xf64>, tensor<f64>
}

// smelt.reduce_prod: forward mode, reverse mode, and the values of both (checked by finite differences).
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,jvp,linearize,transpose),canonicalize,cse,dce' | filecheck %s
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,jvp,linearize,transpose)' --execute | filecheck %s --check-prefix=VALUE

func.func private @f(%arg0: tensor<4x4xf64>) -> tensor<4xf64> {
  %0 = "smelt.reduce_prod"(%arg0) {axes = array<i64: 1>} : (tensor<4x4xf64>) -> tensor<4xf64>
  return %0 : tensor<4xf64>
}

// CHECK-LABEL: func.func @forward(
// CHECK-NEXT: %[[V0:.*]] = "smelt.constant"() {dtype = f64, value = 1 : i64} : () -> tensor<f64>
// CHECK-NEXT: %[[V1:.*]] = "smelt.broadcast"(%[[V0]]) {shape = array<i64: 4, 1>} : (tensor<f64>) -> tensor<4x1xf64>
// CHECK-NEXT: %[[V2:.*]] = "smelt.cumprod"(%arg0) {axis = 1 : i64, inclusive = true, reverse = false} : (tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V3:.*]] = "smelt.concatenate"(%[[V1]], %[[V2]]) {axis = 1 : i64} : (tensor<4x1xf64>, tensor<4x4xf64>) -> tensor<4x5xf64>
// CHECK-NEXT: %[[V4:.*]] = "smelt.slice"(%[[V3]]) {start = array<i64: 0, 0>, stop = array<i64: 4, 4>, stride = array<i64: 1, 1>} : (tensor<4x5xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V5:.*]] = "smelt.reverse"(%arg0) {axes = array<i64: 1>} : (tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V6:.*]] = "smelt.cumprod"(%[[V5]]) {axis = 1 : i64, inclusive = true, reverse = false} : (tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V7:.*]] = "smelt.concatenate"(%[[V1]], %[[V6]]) {axis = 1 : i64} : (tensor<4x1xf64>, tensor<4x4xf64>) -> tensor<4x5xf64>
// CHECK-NEXT: %[[V8:.*]] = "smelt.slice"(%[[V7]]) {start = array<i64: 0, 0>, stop = array<i64: 4, 4>, stride = array<i64: 1, 1>} : (tensor<4x5xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V9:.*]] = "smelt.reverse"(%[[V8]]) {axes = array<i64: 1>} : (tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V10:.*]] = "smelt.mul"(%[[V4]], %[[V9]]) : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V11:.*]] = "smelt.mul"(%arg1, %[[V10]]) : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V12:.*]] = "smelt.reduce_sum"(%[[V11]]) {axes = array<i64: 1>} : (tensor<4x4xf64>) -> tensor<4xf64>
// CHECK-NEXT: return %[[V12]] : tensor<4xf64>
func.func @forward(%arg0: tensor<4x4xf64>, %arg1: tensor<4x4xf64>) -> tensor<4xf64> {
  %f = constant @f : (tensor<4x4xf64>) -> tensor<4xf64>
  %0 = "smelt.jvp"(%f) {wrt = array<i64: 0>} : ((tensor<4x4xf64>) -> tensor<4xf64>) -> ((tensor<4x4xf64>, tensor<4x4xf64>) -> (tensor<4xf64>, tensor<4xf64>))
  %1:2 = call_indirect %0(%arg0, %arg1) : (tensor<4x4xf64>, tensor<4x4xf64>) -> (tensor<4xf64>, tensor<4xf64>)
  return %1#1 : tensor<4xf64>
}

// CHECK-LABEL: func.func @reverse(
// CHECK-NEXT: %[[V0:.*]] = "smelt.constant"() {dtype = f64, value = 1 : i64} : () -> tensor<f64>
// CHECK-NEXT: %[[V1:.*]] = "smelt.broadcast"(%[[V0]]) {shape = array<i64: 4, 1>} : (tensor<f64>) -> tensor<4x1xf64>
// CHECK-NEXT: %[[V2:.*]] = "smelt.cumprod"(%arg0) {axis = 1 : i64, inclusive = true, reverse = false} : (tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V3:.*]] = "smelt.concatenate"(%[[V1]], %[[V2]]) {axis = 1 : i64} : (tensor<4x1xf64>, tensor<4x4xf64>) -> tensor<4x5xf64>
// CHECK-NEXT: %[[V4:.*]] = "smelt.slice"(%[[V3]]) {start = array<i64: 0, 0>, stop = array<i64: 4, 4>, stride = array<i64: 1, 1>} : (tensor<4x5xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V5:.*]] = "smelt.reverse"(%arg0) {axes = array<i64: 1>} : (tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V6:.*]] = "smelt.cumprod"(%[[V5]]) {axis = 1 : i64, inclusive = true, reverse = false} : (tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V7:.*]] = "smelt.concatenate"(%[[V1]], %[[V6]]) {axis = 1 : i64} : (tensor<4x1xf64>, tensor<4x4xf64>) -> tensor<4x5xf64>
// CHECK-NEXT: %[[V8:.*]] = "smelt.slice"(%[[V7]]) {start = array<i64: 0, 0>, stop = array<i64: 4, 4>, stride = array<i64: 1, 1>} : (tensor<4x5xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V9:.*]] = "smelt.reverse"(%[[V8]]) {axes = array<i64: 1>} : (tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V10:.*]] = "smelt.mul"(%[[V4]], %[[V9]]) : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V11:.*]] = "smelt.reshape"(%arg1) {shape = array<i64: 4, 1>} : (tensor<4xf64>) -> tensor<4x1xf64>
// CHECK-NEXT: %[[V12:.*]] = "smelt.broadcast"(%[[V11]]) {shape = array<i64: 4, 4>} : (tensor<4x1xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V13:.*]] = "smelt.mul"(%[[V12]], %[[V10]]) : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: return %[[V13]] : tensor<4x4xf64>
func.func @reverse(%arg0: tensor<4x4xf64>, %arg1: tensor<4xf64>) -> tensor<4x4xf64> {
  %f = constant @f : (tensor<4x4xf64>) -> tensor<4xf64>
  %0 = "smelt.vjp"(%f) {seeds = array<i64: 0>, wrt = array<i64: 0>} : ((tensor<4x4xf64>) -> tensor<4xf64>) -> ((tensor<4x4xf64>, tensor<4xf64>) -> (tensor<4xf64>, tensor<4x4xf64>))
  %1:2 = call_indirect %0(%arg0, %arg1) : (tensor<4x4xf64>, tensor<4xf64>) -> (tensor<4xf64>, tensor<4x4xf64>)
  return %1#1 : tensor<4x4xf64>
}

// VALUE: dense<[0.205994, 1.34834, 0.678815, 0.370275]> : tensor<4xf64>
// VALUE-NEXT: dense<{{\[\[}}0.0169533, 0.0282555, 0.0479115, 0.0524745], [0.443722, 0.406745, 0.551074, 0.481219], [0.1309, 0.08932, 0.0986, 0.37961], [0.0449856, 0.163584, 0.050688, 0.112464]]> : tensor<4x4xf64>
func.func @main() -> (tensor<4xf64>, tensor<4x4xf64>) {
  %0 = "smelt.literal"() {value = dense<[[6.500000e-01, 3.900000e-01, 2.300000e-01, 2.100000e-01], [7.700000e-01, 8.400000e-01, 6.200000e-01, 7.100000e-01], [5.800000e-01, 8.500000e-01, 7.700000e-01, 2.000000e-01], [8.000000e-01, 2.200000e-01, 7.100000e-01, 3.200000e-01]]> : tensor<4x4xf64>} : () -> tensor<4x4xf64>
  %1 = "smelt.literal"() {value = dense<[[1.300000e+00, 1.300000e+00, 1.000000e+00, 1.500000e+00], [0.69999999999999996, 1.100000e+00, 6.000000e-01, 1.100000e+00], [9.000000e-01, 8.000000e-01, 1.500000e+00, 9.000000e-01], [8.000000e-01, 6.000000e-01, 6.000000e-01, 1.500000e+00]]> : tensor<4x4xf64>} : () -> tensor<4x4xf64>
  %2 = "smelt.literal"() {value = dense<[9.000000e-01, 1.200000e+00, 1.000000e+00, 9.000000e-01]> : tensor<4xf64>} : () -> tensor<4xf64>
  %3 = call @forward(%0, %1) : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4xf64>
  %4 = call @reverse(%0, %2) : (tensor<4x4xf64>, tensor<4xf64>) -> tensor<4x4xf64>
  return %3, %4 : tensor<4xf64>, tensor<4x4xf64>
}

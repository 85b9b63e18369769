// smelt.cumprod: forward mode, reverse mode, and the values of both (checked by finite differences).
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,jvp,linearize,transpose),canonicalize,cse,dce' | filecheck %s
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,jvp,linearize,transpose)' --execute | filecheck %s --check-prefix=VALUE

func.func private @f(%arg0: tensor<4x4xf64>) -> tensor<4x4xf64> {
  %0 = "smelt.cumprod"(%arg0) {axis = 1 : i64, inclusive = true, reverse = false} : (tensor<4x4xf64>) -> tensor<4x4xf64>
  return %0 : tensor<4x4xf64>
}

// CHECK-LABEL: func.func @forward(
// CHECK-NEXT: %[[V0:.*]] = "smelt.cumprod"(%arg0) {axis = 1 : i64, inclusive = false, reverse = false} : (tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V1:.*]] = "smelt.mul"(%[[V0]], %arg1) : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V2:.*]] = "smelt.slice"(%[[V1]]) {start = array<i64: 0, 0>, stop = array<i64: 4, 3>, stride = array<i64: 1, 1>} : (tensor<4x4xf64>) -> tensor<4x3xf64>
// CHECK-NEXT: %[[V3:.*]] = "smelt.constant"() {dtype = f64, value = 0 : i64} : () -> tensor<f64>
// CHECK-NEXT: %[[V4:.*]] = "smelt.pad"(%[[V2]], %[[V3]]) {high = array<i64: 0, 0>, interior = array<i64: 0, 0>, low = array<i64: 0, 1>} : (tensor<4x3xf64>, tensor<f64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V5:.*]] = "smelt.mul"(%arg0, %[[V4]]) : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V6:.*]] = "smelt.add"(%[[V1]], %[[V5]]) : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V7:.*]] = "smelt.slice"(%arg0) {start = array<i64: 0, 0>, stop = array<i64: 4, 3>, stride = array<i64: 1, 1>} : (tensor<4x4xf64>) -> tensor<4x3xf64>
// CHECK-NEXT: %[[V8:.*]] = "smelt.pad"(%[[V7]], %[[V3]]) {high = array<i64: 0, 0>, interior = array<i64: 0, 0>, low = array<i64: 0, 1>} : (tensor<4x3xf64>, tensor<f64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V9:.*]] = "smelt.mul"(%arg0, %[[V8]]) : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V10:.*]] = "smelt.slice"(%[[V6]]) {start = array<i64: 0, 0>, stop = array<i64: 4, 2>, stride = array<i64: 1, 1>} : (tensor<4x4xf64>) -> tensor<4x2xf64>
// CHECK-NEXT: %[[V11:.*]] = "smelt.pad"(%[[V10]], %[[V3]]) {high = array<i64: 0, 0>, interior = array<i64: 0, 0>, low = array<i64: 0, 2>} : (tensor<4x2xf64>, tensor<f64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V12:.*]] = "smelt.mul"(%[[V9]], %[[V11]]) : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V13:.*]] = "smelt.add"(%[[V6]], %[[V12]]) : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: return %[[V13]] : tensor<4x4xf64>
func.func @forward(%arg0: tensor<4x4xf64>, %arg1: tensor<4x4xf64>) -> tensor<4x4xf64> {
  %f = constant @f : (tensor<4x4xf64>) -> tensor<4x4xf64>
  %0 = "smelt.jvp"(%f) {wrt = array<i64: 0>} : ((tensor<4x4xf64>) -> tensor<4x4xf64>) -> ((tensor<4x4xf64>, tensor<4x4xf64>) -> (tensor<4x4xf64>, tensor<4x4xf64>))
  %1:2 = call_indirect %0(%arg0, %arg1) : (tensor<4x4xf64>, tensor<4x4xf64>) -> (tensor<4x4xf64>, tensor<4x4xf64>)
  return %1#1 : tensor<4x4xf64>
}

// CHECK-LABEL: func.func @reverse(
// CHECK-NEXT: %[[V0:.*]] = "smelt.cumprod"(%arg0) {axis = 1 : i64, inclusive = false, reverse = false} : (tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V1:.*]] = "smelt.slice"(%arg0) {start = array<i64: 0, 0>, stop = array<i64: 4, 3>, stride = array<i64: 1, 1>} : (tensor<4x4xf64>) -> tensor<4x3xf64>
// CHECK-NEXT: %[[V2:.*]] = "smelt.constant"() {dtype = f64, value = 0 : i64} : () -> tensor<f64>
// CHECK-NEXT: %[[V3:.*]] = "smelt.pad"(%[[V1]], %[[V2]]) {high = array<i64: 0, 0>, interior = array<i64: 0, 0>, low = array<i64: 0, 1>} : (tensor<4x3xf64>, tensor<f64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V4:.*]] = "smelt.mul"(%arg0, %[[V3]]) : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V5:.*]] = "smelt.mul"(%arg1, %[[V4]]) : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V6:.*]] = "smelt.slice"(%[[V5]]) {start = array<i64: 0, 2>, stop = array<i64: 4, 4>, stride = array<i64: 1, 1>} : (tensor<4x4xf64>) -> tensor<4x2xf64>
// CHECK-NEXT: %[[V7:.*]] = "smelt.pad"(%[[V6]], %[[V2]]) {high = array<i64: 0, 2>, interior = array<i64: 0, 0>, low = array<i64: 0, 0>} : (tensor<4x2xf64>, tensor<f64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V8:.*]] = "smelt.add"(%arg1, %[[V7]]) : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V9:.*]] = "smelt.mul"(%[[V8]], %arg0) : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V10:.*]] = "smelt.slice"(%[[V9]]) {start = array<i64: 0, 1>, stop = array<i64: 4, 4>, stride = array<i64: 1, 1>} : (tensor<4x4xf64>) -> tensor<4x3xf64>
// CHECK-NEXT: %[[V11:.*]] = "smelt.pad"(%[[V10]], %[[V2]]) {high = array<i64: 0, 1>, interior = array<i64: 0, 0>, low = array<i64: 0, 0>} : (tensor<4x3xf64>, tensor<f64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V12:.*]] = "smelt.add"(%[[V8]], %[[V11]]) : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V13:.*]] = "smelt.mul"(%[[V12]], %[[V0]]) : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: return %[[V13]] : tensor<4x4xf64>
func.func @reverse(%arg0: tensor<4x4xf64>, %arg1: tensor<4x4xf64>) -> tensor<4x4xf64> {
  %f = constant @f : (tensor<4x4xf64>) -> tensor<4x4xf64>
  %0 = "smelt.vjp"(%f) {seeds = array<i64: 0>, wrt = array<i64: 0>} : ((tensor<4x4xf64>) -> tensor<4x4xf64>) -> ((tensor<4x4xf64>, tensor<4x4xf64>) -> (tensor<4x4xf64>, tensor<4x4xf64>))
  %1:2 = call_indirect %0(%arg0, %arg1) : (tensor<4x4xf64>, tensor<4x4xf64>) -> (tensor<4x4xf64>, tensor<4x4xf64>)
  return %1#1 : tensor<4x4xf64>
}

// VALUE: dense<{{\[\[}}1.3, 1.352, 0.56446, 0.205994], [0.7, 1.435, 1.27778, 1.34834], [0.9, 1.229, 1.68583, 0.678815], [0.8, 0.656, 0.57136, 0.370275]]> : tensor<4x4xf64>
// VALUE-NEXT: dense<{{\[\[}}1.47465, 0.957755, 0.301411, 0.0524745], [2.84664, 1.50942, 1.41908, 0.561422], [1.88787, 0.674076, 0.42398, 0.493493], [1.49143, 1.78701, 0.256256, 0.099968]]> : tensor<4x4xf64>
func.func @main() -> (tensor<4x4xf64>, tensor<4x4xf64>) {
  %0 = "smelt.literal"() {value = dense<[[6.500000e-01, 3.900000e-01, 2.300000e-01, 2.100000e-01], [7.700000e-01, 8.400000e-01, 6.200000e-01, 7.100000e-01], [5.800000e-01, 8.500000e-01, 7.700000e-01, 2.000000e-01], [8.000000e-01, 2.200000e-01, 7.100000e-01, 3.200000e-01]]> : tensor<4x4xf64>} : () -> tensor<4x4xf64>
  %1 = "smelt.literal"() {value = dense<[[1.300000e+00, 1.300000e+00, 1.000000e+00, 1.500000e+00], [0.69999999999999996, 1.100000e+00, 6.000000e-01, 1.100000e+00], [9.000000e-01, 8.000000e-01, 1.500000e+00, 9.000000e-01], [8.000000e-01, 6.000000e-01, 6.000000e-01, 1.500000e+00]]> : tensor<4x4xf64>} : () -> tensor<4x4xf64>
  %2 = "smelt.literal"() {value = dense<[[9.000000e-01, 1.200000e+00, 1.000000e+00, 9.000000e-01], [1.200000e+00, 6.000000e-01, 1.200000e+00, 1.400000e+00], [9.000000e-01, 5.000000e-01, 6.000000e-01, 1.300000e+00], [1.000000e+00, 1.200000e+00, 1.200000e+00, 8.000000e-01]]> : tensor<4x4xf64>} : () -> tensor<4x4xf64>
  %3 = call @forward(%0, %1) : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
  %4 = call @reverse(%0, %2) : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
  return %3, %4 : tensor<4x4xf64>, tensor<4x4xf64>
}

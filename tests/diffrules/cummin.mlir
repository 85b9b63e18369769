// smelt.cummin: forward mode, reverse mode, and the values of both (checked by finite differences).
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,jvp,linearize,transpose),canonicalize,cse,dce' | filecheck %s
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,jvp,linearize,transpose)' --execute | filecheck %s --check-prefix=VALUE

func.func private @f(%arg0: tensor<4x4xf64>) -> tensor<4x4xf64> {
  %0 = "smelt.cummin"(%arg0) {axis = 1 : i64, inclusive = true, reverse = false} : (tensor<4x4xf64>) -> tensor<4x4xf64>
  return %0 : tensor<4x4xf64>
}

// CHECK-LABEL: func.func @forward(
// CHECK-NEXT: %[[V0:.*]] = "smelt.cummin"(%arg0) {axis = 1 : i64, inclusive = true, reverse = false} : (tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V1:.*]] = "smelt.iota"() {axis = 1 : i64, dtype = i32, shape = array<i64: 4, 4>} : () -> tensor<4x4xi32>
// CHECK-NEXT: %[[V2:.*]] = "smelt.constant"() {dtype = i32, value = 0 : i64} : () -> tensor<i32>
// CHECK-NEXT: %[[V3:.*]] = "smelt.broadcast"(%[[V2]]) {shape = array<i64: 4, 4>} : (tensor<i32>) -> tensor<4x4xi32>
// CHECK-NEXT: %[[V4:.*]] = "smelt.equal"(%arg0, %[[V0]]) : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xi1>
// CHECK-NEXT: %[[V5:.*]] = "smelt.select"(%[[V4]], %[[V1]], %[[V3]]) : (tensor<4x4xi1>, tensor<4x4xi32>, tensor<4x4xi32>) -> tensor<4x4xi32>
// CHECK-NEXT: %[[V6:.*]] = "smelt.cummax"(%[[V5]]) {axis = 1 : i64, inclusive = true, reverse = false} : (tensor<4x4xi32>) -> tensor<4x4xi32>
// CHECK-NEXT: %[[V7:.*]] = "smelt.iota"() {axis = 0 : i64, dtype = i32, shape = array<i64: 4, 4>} : () -> tensor<4x4xi32>
// CHECK-NEXT: %[[V8:.*]] = "smelt.gather"(%arg1, %[[V7]], %[[V6]]) {axes = array<i64: 0, 1>, slice_sizes = array<i64: 1, 1>} : (tensor<4x4xf64>, tensor<4x4xi32>, tensor<4x4xi32>) -> tensor<4x4x1x1xf64>
// CHECK-NEXT: %[[V9:.*]] = "smelt.reshape"(%[[V8]]) {shape = array<i64: 4, 4>} : (tensor<4x4x1x1xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: return %[[V9]] : tensor<4x4xf64>
func.func @forward(%arg0: tensor<4x4xf64>, %arg1: tensor<4x4xf64>) -> tensor<4x4xf64> {
  %f = constant @f : (tensor<4x4xf64>) -> tensor<4x4xf64>
  %0 = "smelt.jvp"(%f) {wrt = array<i64: 0>} : ((tensor<4x4xf64>) -> tensor<4x4xf64>) -> ((tensor<4x4xf64>, tensor<4x4xf64>) -> (tensor<4x4xf64>, tensor<4x4xf64>))
  %1:2 = call_indirect %0(%arg0, %arg1) : (tensor<4x4xf64>, tensor<4x4xf64>) -> (tensor<4x4xf64>, tensor<4x4xf64>)
  return %1#1 : tensor<4x4xf64>
}

// CHECK-LABEL: func.func @reverse(
// CHECK-NEXT: %[[V0:.*]] = "smelt.cummin"(%arg0) {axis = 1 : i64, inclusive = true, reverse = false} : (tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V1:.*]] = "smelt.iota"() {axis = 1 : i64, dtype = i32, shape = array<i64: 4, 4>} : () -> tensor<4x4xi32>
// CHECK-NEXT: %[[V2:.*]] = "smelt.constant"() {dtype = i32, value = 0 : i64} : () -> tensor<i32>
// CHECK-NEXT: %[[V3:.*]] = "smelt.broadcast"(%[[V2]]) {shape = array<i64: 4, 4>} : (tensor<i32>) -> tensor<4x4xi32>
// CHECK-NEXT: %[[V4:.*]] = "smelt.equal"(%arg0, %[[V0]]) : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xi1>
// CHECK-NEXT: %[[V5:.*]] = "smelt.select"(%[[V4]], %[[V1]], %[[V3]]) : (tensor<4x4xi1>, tensor<4x4xi32>, tensor<4x4xi32>) -> tensor<4x4xi32>
// CHECK-NEXT: %[[V6:.*]] = "smelt.cummax"(%[[V5]]) {axis = 1 : i64, inclusive = true, reverse = false} : (tensor<4x4xi32>) -> tensor<4x4xi32>
// CHECK-NEXT: %[[V7:.*]] = "smelt.iota"() {axis = 0 : i64, dtype = i32, shape = array<i64: 4, 4>} : () -> tensor<4x4xi32>
// CHECK-NEXT: %[[V8:.*]] = "smelt.reshape"(%arg1) {shape = array<i64: 4, 4, 1, 1>} : (tensor<4x4xf64>) -> tensor<4x4x1x1xf64>
// CHECK-NEXT: %[[V9:.*]] = "smelt.maximum"(%[[V6]], %[[V3]]) : (tensor<4x4xi32>, tensor<4x4xi32>) -> tensor<4x4xi32>
// CHECK-NEXT: %[[V10:.*]] = "smelt.constant"() {dtype = i32, value = 3 : i64} : () -> tensor<i32>
// CHECK-NEXT: %[[V11:.*]] = "smelt.broadcast"(%[[V10]]) {shape = array<i64: 4, 4>} : (tensor<i32>) -> tensor<4x4xi32>
// CHECK-NEXT: %[[V12:.*]] = "smelt.minimum"(%[[V9]], %[[V11]]) : (tensor<4x4xi32>, tensor<4x4xi32>) -> tensor<4x4xi32>
// CHECK-NEXT: %[[V13:.*]] = "smelt.constant"() {dtype = f64, value = 0 : i64} : () -> tensor<f64>
// CHECK-NEXT: %[[V14:.*]] = "smelt.broadcast"(%[[V13]]) {shape = array<i64: 4, 4>} : (tensor<f64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V15:.*]] = "smelt.scatter"(%[[V14]], %[[V8]], %[[V7]], %[[V12]]) {axes = array<i64: 0, 1>, mode = "add"} : (tensor<4x4xf64>, tensor<4x4x1x1xf64>, tensor<4x4xi32>, tensor<4x4xi32>) -> tensor<4x4xf64>
// CHECK-NEXT: return %[[V15]] : tensor<4x4xf64>
func.func @reverse(%arg0: tensor<4x4xf64>, %arg1: tensor<4x4xf64>) -> tensor<4x4xf64> {
  %f = constant @f : (tensor<4x4xf64>) -> tensor<4x4xf64>
  %0 = "smelt.vjp"(%f) {seeds = array<i64: 0>, wrt = array<i64: 0>} : ((tensor<4x4xf64>) -> tensor<4x4xf64>) -> ((tensor<4x4xf64>, tensor<4x4xf64>) -> (tensor<4x4xf64>, tensor<4x4xf64>))
  %1:2 = call_indirect %0(%arg0, %arg1) : (tensor<4x4xf64>, tensor<4x4xf64>) -> (tensor<4x4xf64>, tensor<4x4xf64>)
  return %1#1 : tensor<4x4xf64>
}

// VALUE: dense<{{\[\[}}1.3, 1.3, 1.0, 1.5], [0.7, 0.7, 0.6, 0.6], [0.9, 0.9, 0.9, 0.9], [0.8, 0.6, 0.6, 0.6]]> : tensor<4x4xf64>
// VALUE-NEXT: dense<{{\[\[}}0.9, 1.2, 1.0, 0.9], [1.8, 0.0, 2.6, 0.0], [2.0, 0.0, 0.0, 1.3], [1.0, 3.2, 0.0, 0.0]]> : tensor<4x4xf64>
func.func @main() -> (tensor<4x4xf64>, tensor<4x4xf64>) {
  %0 = "smelt.literal"() {value = dense<[[6.500000e-01, 3.900000e-01, 2.300000e-01, 2.100000e-01], [7.700000e-01, 8.400000e-01, 6.200000e-01, 7.100000e-01], [5.800000e-01, 8.500000e-01, 7.700000e-01, 2.000000e-01], [8.000000e-01, 2.200000e-01, 7.100000e-01, 3.200000e-01]]> : tensor<4x4xf64>} : () -> tensor<4x4xf64>
  %1 = "smelt.literal"() {value = dense<[[1.300000e+00, 1.300000e+00, 1.000000e+00, 1.500000e+00], [0.69999999999999996, 1.100000e+00, 6.000000e-01, 1.100000e+00], [9.000000e-01, 8.000000e-01, 1.500000e+00, 9.000000e-01], [8.000000e-01, 6.000000e-01, 6.000000e-01, 1.500000e+00]]> : tensor<4x4xf64>} : () -> tensor<4x4xf64>
  %2 = "smelt.literal"() {value = dense<[[9.000000e-01, 1.200000e+00, 1.000000e+00, 9.000000e-01], [1.200000e+00, 6.000000e-01, 1.200000e+00, 1.400000e+00], [9.000000e-01, 5.000000e-01, 6.000000e-01, 1.300000e+00], [1.000000e+00, 1.200000e+00, 1.200000e+00, 8.000000e-01]]> : tensor<4x4xf64>} : () -> tensor<4x4xf64>
  %3 = call @forward(%0, %1) : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
  %4 = call @reverse(%0, %2) : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
  return %3, %4 : tensor<4x4xf64>, tensor<4x4xf64>
}

// smelt.gather: forward mode, reverse mode, and the values of both (checked by finite differences).
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,jvp,linearize,transpose),canonicalize,cse,dce' | filecheck %s
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,jvp,linearize,transpose)' --execute | filecheck %s --check-prefix=VALUE

func.func private @f(%arg0: tensor<5x3xf64>, %arg1: tensor<4xi32>) -> tensor<4x1x3xf64> {
  %0 = "smelt.gather"(%arg0, %arg1) {axes = array<i64: 0>, slice_sizes = array<i64: 1, 3>} : (tensor<5x3xf64>, tensor<4xi32>) -> tensor<4x1x3xf64>
  return %0 : tensor<4x1x3xf64>
}

// CHECK-LABEL: func.func @forward(
// CHECK-NEXT: %[[V0:.*]] = "smelt.gather"(%arg2, %arg1) {axes = array<i64: 0>, slice_sizes = array<i64: 1, 3>} : (tensor<5x3xf64>, tensor<4xi32>) -> tensor<4x1x3xf64>
// CHECK-NEXT: return %[[V0]] : tensor<4x1x3xf64>
func.func @forward(%arg0: tensor<5x3xf64>, %arg1: tensor<4xi32>, %arg2: tensor<5x3xf64>) -> tensor<4x1x3xf64> {
  %f = constant @f : (tensor<5x3xf64>, tensor<4xi32>) -> tensor<4x1x3xf64>
  %0 = "smelt.jvp"(%f) {wrt = array<i64: 0>} : ((tensor<5x3xf64>, tensor<4xi32>) -> tensor<4x1x3xf64>) -> ((tensor<5x3xf64>, tensor<4xi32>, tensor<5x3xf64>) -> (tensor<4x1x3xf64>, tensor<4x1x3xf64>))
  %1:2 = call_indirect %0(%arg0, %arg1, %arg2) : (tensor<5x3xf64>, tensor<4xi32>, tensor<5x3xf64>) -> (tensor<4x1x3xf64>, tensor<4x1x3xf64>)
  return %1#1 : tensor<4x1x3xf64>
}

// CHECK-LABEL: func.func @reverse(
// CHECK-NEXT: %[[V0:.*]] = "smelt.constant"() {dtype = i32, value = 0 : i64} : () -> tensor<i32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.broadcast"(%[[V0]]) {shape = array<i64: 4>} : (tensor<i32>) -> tensor<4xi32>
// CHECK-NEXT: %[[V2:.*]] = "smelt.maximum"(%arg1, %[[V1]]) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
// CHECK-NEXT: %[[V3:.*]] = "smelt.constant"() {dtype = i32, value = 4 : i64} : () -> tensor<i32>
// CHECK-NEXT: %[[V4:.*]] = "smelt.broadcast"(%[[V3]]) {shape = array<i64: 4>} : (tensor<i32>) -> tensor<4xi32>
// CHECK-NEXT: %[[V5:.*]] = "smelt.minimum"(%[[V2]], %[[V4]]) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
// CHECK-NEXT: %[[V6:.*]] = "smelt.constant"() {dtype = f64, value = 0 : i64} : () -> tensor<f64>
// CHECK-NEXT: %[[V7:.*]] = "smelt.broadcast"(%[[V6]]) {shape = array<i64: 5, 3>} : (tensor<f64>) -> tensor<5x3xf64>
// CHECK-NEXT: %[[V8:.*]] = "smelt.scatter"(%[[V7]], %arg2, %[[V5]]) {axes = array<i64: 0>, mode = "add"} : (tensor<5x3xf64>, tensor<4x1x3xf64>, tensor<4xi32>) -> tensor<5x3xf64>
// CHECK-NEXT: return %[[V8]] : tensor<5x3xf64>
func.func @reverse(%arg0: tensor<5x3xf64>, %arg1: tensor<4xi32>, %arg2: tensor<4x1x3xf64>) -> tensor<5x3xf64> {
  %f = constant @f : (tensor<5x3xf64>, tensor<4xi32>) -> tensor<4x1x3xf64>
  %0 = "smelt.vjp"(%f) {seeds = array<i64: 0>, wrt = array<i64: 0>} : ((tensor<5x3xf64>, tensor<4xi32>) -> tensor<4x1x3xf64>) -> ((tensor<5x3xf64>, tensor<4xi32>, tensor<4x1x3xf64>) -> (tensor<4x1x3xf64>, tensor<5x3xf64>))
  %1:2 = call_indirect %0(%arg0, %arg1, %arg2) : (tensor<5x3xf64>, tensor<4xi32>, tensor<4x1x3xf64>) -> (tensor<4x1x3xf64>, tensor<5x3xf64>)
  return %1#1 : tensor<5x3xf64>
}

// VALUE: dense<{{\[\[}}[1.3, 1.3, 1.0]], {{\[\[}}0.6, 1.1, 0.9]], {{\[\[}}1.5, 0.7, 1.1]], {{\[\[}}1.3, 1.3, 1.0]]]> : tensor<4x1x3xf64>
// VALUE-NEXT: dense<{{\[\[}}1.4, 1.8, 2.3], [1.2, 1.4, 0.9], [0.9, 1.2, 0.6], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]> : tensor<5x3xf64>
func.func @main() -> (tensor<4x1x3xf64>, tensor<5x3xf64>) {
  %0 = "smelt.literal"() {value = dense<[[6.500000e-01, 3.900000e-01, 2.300000e-01], [2.100000e-01, 7.700000e-01, 8.400000e-01], [6.200000e-01, 7.100000e-01, 5.800000e-01], [8.500000e-01, 7.700000e-01, 2.000000e-01], [8.000000e-01, 2.200000e-01, 7.100000e-01]]> : tensor<5x3xf64>} : () -> tensor<5x3xf64>
  %1 = "smelt.literal"() {value = dense<[0, 2, 1, 0]> : tensor<4xi32>} : () -> tensor<4xi32>
  %2 = "smelt.literal"() {value = dense<[[1.300000e+00, 1.300000e+00, 1.000000e+00], [1.500000e+00, 0.69999999999999996, 1.100000e+00], [6.000000e-01, 1.100000e+00, 9.000000e-01], [8.000000e-01, 1.500000e+00, 9.000000e-01], [8.000000e-01, 6.000000e-01, 6.000000e-01]]> : tensor<5x3xf64>} : () -> tensor<5x3xf64>
  %3 = "smelt.literal"() {value = dense<[[[9.000000e-01, 1.200000e+00, 1.000000e+00]], [[9.000000e-01, 1.200000e+00, 6.000000e-01]], [[1.200000e+00, 1.400000e+00, 9.000000e-01]], [[5.000000e-01, 6.000000e-01, 1.300000e+00]]]> : tensor<4x1x3xf64>} : () -> tensor<4x1x3xf64>
  %4 = call @forward(%0, %1, %2) : (tensor<5x3xf64>, tensor<4xi32>, tensor<5x3xf64>) -> tensor<4x1x3xf64>
  %5 = call @reverse(%0, %1, %3) : (tensor<5x3xf64>, tensor<4xi32>, tensor<4x1x3xf64>) -> tensor<5x3xf64>
  return %4, %5 : tensor<4x1x3xf64>, tensor<5x3xf64>
}

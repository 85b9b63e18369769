// smelt.scatter: forward mode, reverse mode, and the values of both (checked by finite differences).
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,jvp,linearize,transpose),canonicalize,cse,dce' | filecheck %s
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,jvp,linearize,transpose)' --execute | filecheck %s --check-prefix=VALUE

func.func private @f(%arg0: tensor<5x3xf64>, %arg1: tensor<4x1x3xf64>, %arg2: tensor<4xi32>) -> tensor<5x3xf64> {
  %0 = "smelt.scatter"(%arg0, %arg1, %arg2) {axes = array<i64: 0>, mode = "add"} : (tensor<5x3xf64>, tensor<4x1x3xf64>, tensor<4xi32>) -> tensor<5x3xf64>
  return %0 : tensor<5x3xf64>
}

// CHECK-LABEL: func.func @forward(
// CHECK-NEXT: %[[V0:.*]] = "smelt.scatter"(%arg3, %arg4, %arg2) {axes = array<i64: 0>, mode = "add"} : (tensor<5x3xf64>, tensor<4x1x3xf64>, tensor<4xi32>) -> tensor<5x3xf64>
// CHECK-NEXT: return %[[V0]] : tensor<5x3xf64>
func.func @forward(%arg0: tensor<5x3xf64>, %arg1: tensor<4x1x3xf64>, %arg2: tensor<4xi32>, %arg3: tensor<5x3xf64>, %arg4: tensor<4x1x3xf64>) -> tensor<5x3xf64> {
  %f = constant @f : (tensor<5x3xf64>, tensor<4x1x3xf64>, tensor<4xi32>) -> tensor<5x3xf64>
  %0 = "smelt.jvp"(%f) {wrt = array<i64: 0, 1>} : ((tensor<5x3xf64>, tensor<4x1x3xf64>, tensor<4xi32>) -> tensor<5x3xf64>) -> ((tensor<5x3xf64>, tensor<4x1x3xf64>, tensor<4xi32>, tensor<5x3xf64>, tensor<4x1x3xf64>) -> (tensor<5x3xf64>, tensor<5x3xf64>))
  %1:2 = call_indirect %0(%arg0, %arg1, %arg2, %arg3, %arg4) : (tensor<5x3xf64>, tensor<4x1x3xf64>, tensor<4xi32>, tensor<5x3xf64>, tensor<4x1x3xf64>) -> (tensor<5x3xf64>, tensor<5x3xf64>)
  return %1#1 : tensor<5x3xf64>
}

// CHECK-LABEL: func.func @reverse(
// CHECK-NEXT: %[[V0:.*]] = "smelt.gather"(%arg3, %arg2) {axes = array<i64: 0>, slice_sizes = array<i64: 1, 3>} : (tensor<5x3xf64>, tensor<4xi32>) -> tensor<4x1x3xf64>
// CHECK-NEXT: %[[V1:.*]] = "smelt.constant"() {dtype = i32, value = 0 : i64} : () -> tensor<i32>
// CHECK-NEXT: %[[V2:.*]] = "smelt.broadcast"(%[[V1]]) {shape = array<i64: 4>} : (tensor<i32>) -> tensor<4xi32>
// CHECK-NEXT: %[[V3:.*]] = "smelt.maximum"(%arg2, %[[V2]]) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
// CHECK-NEXT: %[[V4:.*]] = "smelt.constant"() {dtype = i32, value = 4 : i64} : () -> tensor<i32>
// CHECK-NEXT: %[[V5:.*]] = "smelt.broadcast"(%[[V4]]) {shape = array<i64: 4>} : (tensor<i32>) -> tensor<4xi32>
// CHECK-NEXT: %[[V6:.*]] = "smelt.minimum"(%[[V3]], %[[V5]]) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
// CHECK-NEXT: %[[V7:.*]] = "smelt.equal"(%arg2, %[[V6]]) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
// CHECK-NEXT: %[[V8:.*]] = "smelt.reshape"(%[[V7]]) {shape = array<i64: 4, 1, 1>} : (tensor<4xi1>) -> tensor<4x1x1xi1>
// CHECK-NEXT: %[[V9:.*]] = "smelt.broadcast"(%[[V8]]) {shape = array<i64: 4, 1, 3>} : (tensor<4x1x1xi1>) -> tensor<4x1x3xi1>
// CHECK-NEXT: %[[V10:.*]] = "smelt.constant"() {dtype = f64, value = 0 : i64} : () -> tensor<f64>
// CHECK-NEXT: %[[V11:.*]] = "smelt.broadcast"(%[[V10]]) {shape = array<i64: 4, 1, 3>} : (tensor<f64>) -> tensor<4x1x3xf64>
// CHECK-NEXT: %[[V12:.*]] = "smelt.select"(%[[V9]], %[[V0]], %[[V11]]) : (tensor<4x1x3xi1>, tensor<4x1x3xf64>, tensor<4x1x3xf64>) -> tensor<4x1x3xf64>
// CHECK-NEXT: return %arg3, %[[V12]] : tensor<5x3xf64>, tensor<4x1x3xf64>
func.func @reverse(%arg0: tensor<5x3xf64>, %arg1: tensor<4x1x3xf64>, %arg2: tensor<4xi32>, %arg3: tensor<5x3xf64>) -> (tensor<5x3xf64>, tensor<4x1x3xf64>) {
  %f = constant @f : (tensor<5x3xf64>, tensor<4x1x3xf64>, tensor<4xi32>) -> tensor<5x3xf64>
  %0 = "smelt.vjp"(%f) {seeds = array<i64: 0>, wrt = array<i64: 0, 1>} : ((tensor<5x3xf64>, tensor<4x1x3xf64>, tensor<4xi32>) -> tensor<5x3xf64>) -> ((tensor<5x3xf64>, tensor<4x1x3xf64>, tensor<4xi32>, tensor<5x3xf64>) -> (tensor<5x3xf64>, tensor<5x3xf64>, tensor<4x1x3xf64>))
  %1:3 = call_indirect %0(%arg0, %arg1, %arg2, %arg3) : (tensor<5x3xf64>, tensor<4x1x3xf64>, tensor<4xi32>, tensor<5x3xf64>) -> (tensor<5x3xf64>, tensor<5x3xf64>, tensor<4x1x3xf64>)
  return %1#1, %1#2 : tensor<5x3xf64>, tensor<4x1x3xf64>
}

// VALUE: dense<{{\[\[}}3.7, 3.5, 3.1], [2.8, 1.9, 2.0], [1.3, 2.4, 1.6], [0.8, 1.5, 0.9], [0.8, 0.6, 0.6]]> : tensor<5x3xf64>
// VALUE-NEXT: dense<{{\[\[}}0.9, 1.2, 1.0], [0.9, 1.2, 0.6], [1.2, 1.4, 0.9], [0.5, 0.6, 1.3], [1.0, 1.2, 1.2]]> : tensor<5x3xf64>
// VALUE-NEXT: dense<{{\[\[}}[0.9, 1.2, 1.0]], {{\[\[}}1.2, 1.4, 0.9]], {{\[\[}}0.9, 1.2, 0.6]], {{\[\[}}0.9, 1.2, 1.0]]]> : tensor<4x1x3xf64>
func.func @main() -> (tensor<5x3xf64>, tensor<5x3xf64>, tensor<4x1x3xf64>) {
  %0 = "smelt.literal"() {value = dense<[[6.500000e-01, 3.900000e-01, 2.300000e-01], [2.100000e-01, 7.700000e-01, 8.400000e-01], [6.200000e-01, 7.100000e-01, 5.800000e-01], [8.500000e-01, 7.700000e-01, 2.000000e-01], [8.000000e-01, 2.200000e-01, 7.100000e-01]]> : tensor<5x3xf64>} : () -> tensor<5x3xf64>
  %1 = "smelt.literal"() {value = dense<[[[5.600000e-01, 8.700000e-01, 3.000000e-01]], [[8.600000e-01, 4.200000e-01, 5.000000e-01]], [[7.800000e-01, 4.900000e-01, 5.800000e-01]], [[2.200000e-01, 7.300000e-01, 5.800000e-01]]]> : tensor<4x1x3xf64>} : () -> tensor<4x1x3xf64>
  %2 = "smelt.literal"() {value = dense<[0, 2, 1, 0]> : tensor<4xi32>} : () -> tensor<4xi32>
  %3 = "smelt.literal"() {value = dense<[[1.300000e+00, 1.300000e+00, 1.000000e+00], [1.500000e+00, 0.69999999999999996, 1.100000e+00], [6.000000e-01, 1.100000e+00, 9.000000e-01], [8.000000e-01, 1.500000e+00, 9.000000e-01], [8.000000e-01, 6.000000e-01, 6.000000e-01]]> : tensor<5x3xf64>} : () -> tensor<5x3xf64>
  %4 = "smelt.literal"() {value = dense<[[[1.400000e+00, 8.000000e-01, 8.000000e-01]], [[0.69999999999999996, 1.300000e+00, 0.69999999999999996]], [[1.300000e+00, 1.200000e+00, 9.000000e-01]], [[1.000000e+00, 1.400000e+00, 1.300000e+00]]]> : tensor<4x1x3xf64>} : () -> tensor<4x1x3xf64>
  %5 = "smelt.literal"() {value = dense<[[9.000000e-01, 1.200000e+00, 1.000000e+00], [9.000000e-01, 1.200000e+00, 6.000000e-01], [1.200000e+00, 1.400000e+00, 9.000000e-01], [5.000000e-01, 6.000000e-01, 1.300000e+00], [1.000000e+00, 1.200000e+00, 1.200000e+00]]> : tensor<5x3xf64>} : () -> tensor<5x3xf64>
  %6 = call @forward(%0, %1, %2, %3, %4) : (tensor<5x3xf64>, tensor<4x1x3xf64>, tensor<4xi32>, tensor<5x3xf64>, tensor<4x1x3xf64>) -> tensor<5x3xf64>
  %7:2 = call @reverse(%0, %1, %2, %5) : (tensor<5x3xf64>, tensor<4x1x3xf64>, tensor<4xi32>, tensor<5x3xf64>) -> (tensor<5x3xf64>, tensor<4x1x3xf64>)
  return %6, %7#0, %7#1 : tensor<5x3xf64>, tensor<5x3xf64>, tensor<4x1x3xf64>
}

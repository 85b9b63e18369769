// smelt.conv_general: forward mode, reverse mode, and the values of both (checked by finite differences).
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,jvp,linearize,transpose),canonicalize,cse,dce' | filecheck %s
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,jvp,linearize,transpose)' --execute | filecheck %s --check-prefix=VALUE

func.func private @f(%arg0: tensor<1x5x4xf64>, %arg1: tensor<2x2x2xf64>) -> tensor<1x3x2xf64> {
  %0 = "smelt.conv_general"(%arg0, %arg1) {feature_groups = 2 : i64, input_dilation = array<i64: 1>, kernel_dilation = array<i64: 2>, padding_high = array<i64: 1>, padding_low = array<i64: 2>, window_strides = array<i64: 2>} : (tensor<1x5x4xf64>, tensor<2x2x2xf64>) -> tensor<1x3x2xf64>
  return %0 : tensor<1x3x2xf64>
}

// CHECK-LABEL: func.func @forward(
// CHECK-NEXT: %[[V0:.*]] = "smelt.conv_general"(%arg2, %arg1) {feature_groups = 2 : i64, input_dilation = array<i64: 1>, kernel_dilation = array<i64: 2>, padding_high = array<i64: 1>, padding_low = array<i64: 2>, window_strides = array<i64: 2>} : (tensor<1x5x4xf64>, tensor<2x2x2xf64>) -> tensor<1x3x2xf64>
// CHECK-NEXT: %[[V1:.*]] = "smelt.conv_general"(%arg0, %arg3) {feature_groups = 2 : i64, input_dilation = array<i64: 1>, kernel_dilation = array<i64: 2>, padding_high = array<i64: 1>, padding_low = array<i64: 2>, window_strides = array<i64: 2>} : (tensor<1x5x4xf64>, tensor<2x2x2xf64>) -> tensor<1x3x2xf64>
// CHECK-NEXT: %[[V2:.*]] = "smelt.add"(%[[V0]], %[[V1]]) : (tensor<1x3x2xf64>, tensor<1x3x2xf64>) -> tensor<1x3x2xf64>
// CHECK-NEXT: return %[[V2]] : tensor<1x3x2xf64>
func.func @forward(%arg0: tensor<1x5x4xf64>, %arg1: tensor<2x2x2xf64>, %arg2: tensor<1x5x4xf64>, %arg3: tensor<2x2x2xf64>) -> tensor<1x3x2xf64> {
  %f = constant @f : (tensor<1x5x4xf64>, tensor<2x2x2xf64>) -> tensor<1x3x2xf64>
  %0 = "smelt.jvp"(%f) {wrt = array<i64: 0, 1>} : ((tensor<1x5x4xf64>, tensor<2x2x2xf64>) -> tensor<1x3x2xf64>) -> ((tensor<1x5x4xf64>, tensor<2x2x2xf64>, tensor<1x5x4xf64>, tensor<2x2x2xf64>) -> (tensor<1x3x2xf64>, tensor<1x3x2xf64>))
  %1:2 = call_indirect %0(%arg0, %arg1, %arg2, %arg3) : (tensor<1x5x4xf64>, tensor<2x2x2xf64>, tensor<1x5x4xf64>, tensor<2x2x2xf64>) -> (tensor<1x3x2xf64>, tensor<1x3x2xf64>)
  return %1#1 : tensor<1x3x2xf64>
}

// CHECK-LABEL: func.func @reverse(
// CHECK-NEXT: %[[V0:.*]] = "smelt.reshape"(%arg0) {shape = array<i64: 1, 5, 2, 2>} : (tensor<1x5x4xf64>) -> tensor<1x5x2x2xf64>
// CHECK-NEXT: %[[V1:.*]] = "smelt.transpose"(%[[V0]]) {permutation = array<i64: 3, 1, 2, 0>} : (tensor<1x5x2x2xf64>) -> tensor<2x5x2x1xf64>
// CHECK-NEXT: %[[V2:.*]] = "smelt.reshape"(%[[V1]]) {shape = array<i64: 2, 5, 2>} : (tensor<2x5x2x1xf64>) -> tensor<2x5x2xf64>
// CHECK-NEXT: %[[V3:.*]] = "smelt.transpose"(%arg2) {permutation = array<i64: 2, 1, 0>} : (tensor<1x3x2xf64>) -> tensor<2x3x1xf64>
// CHECK-NEXT: %[[V4:.*]] = "smelt.conv_general"(%[[V2]], %[[V3]]) {feature_groups = 2 : i64, input_dilation = array<i64: 1>, kernel_dilation = array<i64: 2>, padding_high = array<i64: 0>, padding_low = array<i64: 2>, window_strides = array<i64: 2>} : (tensor<2x5x2xf64>, tensor<2x3x1xf64>) -> tensor<2x2x2xf64>
// CHECK-NEXT: %[[V5:.*]] = "smelt.transpose"(%[[V4]]) {permutation = array<i64: 2, 1, 0>} : (tensor<2x2x2xf64>) -> tensor<2x2x2xf64>
// CHECK-NEXT: %[[V6:.*]] = "smelt.reverse"(%arg1) {axes = array<i64: 1>} : (tensor<2x2x2xf64>) -> tensor<2x2x2xf64>
// CHECK-NEXT: %[[V7:.*]] = "smelt.reshape"(%[[V6]]) {shape = array<i64: 2, 1, 2, 2>} : (tensor<2x2x2xf64>) -> tensor<2x1x2x2xf64>
// CHECK-NEXT: %[[V8:.*]] = "smelt.transpose"(%[[V7]]) {permutation = array<i64: 0, 3, 2, 1>} : (tensor<2x1x2x2xf64>) -> tensor<2x2x2x1xf64>
// CHECK-NEXT: %[[V9:.*]] = "smelt.reshape"(%[[V8]]) {shape = array<i64: 4, 2, 1>} : (tensor<2x2x2x1xf64>) -> tensor<4x2x1xf64>
// CHECK-NEXT: %[[V10:.*]] = "smelt.conv_general"(%arg2, %[[V9]]) {feature_groups = 2 : i64, input_dilation = array<i64: 2>, kernel_dilation = array<i64: 2>, padding_high = array<i64: 2>, padding_low = array<i64: 0>, window_strides = array<i64: 1>} : (tensor<1x3x2xf64>, tensor<4x2x1xf64>) -> tensor<1x5x4xf64>
// CHECK-NEXT: return %[[V10]], %[[V5]] : tensor<1x5x4xf64>, tensor<2x2x2xf64>
func.func @reverse(%arg0: tensor<1x5x4xf64>, %arg1: tensor<2x2x2xf64>, %arg2: tensor<1x3x2xf64>) -> (tensor<1x5x4xf64>, tensor<2x2x2xf64>) {
  %f = constant @f : (tensor<1x5x4xf64>, tensor<2x2x2xf64>) -> tensor<1x3x2xf64>
  %0 = "smelt.vjp"(%f) {seeds = array<i64: 0>, wrt = array<i64: 0, 1>} : ((tensor<1x5x4xf64>, tensor<2x2x2xf64>) -> tensor<1x3x2xf64>) -> ((tensor<1x5x4xf64>, tensor<2x2x2xf64>, tensor<1x3x2xf64>) -> (tensor<1x3x2xf64>, tensor<1x5x4xf64>, tensor<2x2x2xf64>))
  %1:3 = call_indirect %0(%arg0, %arg1, %arg2) : (tensor<1x5x4xf64>, tensor<2x2x2xf64>, tensor<1x3x2xf64>) -> (tensor<1x3x2xf64>, tensor<1x5x4xf64>, tensor<2x2x2xf64>)
  return %1#1, %1#2 : tensor<1x5x4xf64>, tensor<2x2x2xf64>
}

// VALUE: dense<{{\[\[}}[2.02, 2.52], [3.94, 6.82], [4.29, 6.83]]]> : tensor<1x3x2xf64>
// VALUE-NEXT: dense<{{\[\[}}[0.42, 1.26, 2.1, 2.0], [0.0, 0.0, 0.0, 0.0], [0.4, 1.2, 2.06, 1.92], [0.0, 0.0, 0.0, 0.0], [0.26, 0.78, 1.12, 1.12]]]> : tensor<1x5x4xf64>
// VALUE-NEXT: dense<{{\[\[}}[1.0, 0.93], [2.09, 1.17]], {{\[\[}}1.96, 2.16], [2.37, 2.81]]]> : tensor<2x2x2xf64>
func.func @main() -> (tensor<1x3x2xf64>, tensor<1x5x4xf64>, tensor<2x2x2xf64>) {
  %0 = "smelt.literal"() {value = dense<[[[5.000000e-01, 4.000000e-01, 7.000000e-01, 9.000000e-01], [3.000000e-01, 2.000000e-01, 9.000000e-01, 6.000000e-01], [5.000000e-01, 5.000000e-01, 9.000000e-01, 9.000000e-01], [8.000000e-01, 4.000000e-01, 5.000000e-01, 4.000000e-01], [8.000000e-01, 2.000000e-01, 3.000000e-01, 4.000000e-01]]]> : tensor<1x5x4xf64>} : () -> tensor<1x5x4xf64>
  %1 = "smelt.literal"() {value = dense<[[[2.000000e-01, 6.000000e-01], [2.000000e-01, 6.000000e-01]], [[9.000000e-01, 8.000000e-01], [8.000000e-01, 8.000000e-01]]]> : tensor<2x2x2xf64>} : () -> tensor<2x2x2xf64>
  %2 = "smelt.literal"() {value = dense<[[[1.400000e+00, 1.200000e+00, 7.000000e-01, 1.000000e+00], [6.000000e-01, 5.000000e-01, 7.000000e-01, 1.200000e+00], [8.000000e-01, 9.000000e-01, 1.500000e+00, 1.100000e+00], [1.500000e+00, 9.000000e-01, 1.100000e+00, 1.300000e+00], [1.100000e+00, 1.400000e+00, 1.000000e+00, 1.300000e+00]]]> : tensor<1x5x4xf64>} : () -> tensor<1x5x4xf64>
  %3 = "smelt.literal"() {value = dense<[[[1.400000e+00, 1.100000e+00], [1.400000e+00, 8.000000e-01]], [[1.000000e+00, 1.500000e+00], [5.000000e-01, 9.000000e-01]]]> : tensor<2x2x2xf64>} : () -> tensor<2x2x2xf64>
  %4 = "smelt.literal"() {value = dense<[[[1.400000e+00, 1.500000e+00], [7.000000e-01, 1.000000e+00], [1.300000e+00, 1.400000e+00]]]> : tensor<1x3x2xf64>} : () -> tensor<1x3x2xf64>
  %5 = call @forward(%0, %1, %2, %3) : (tensor<1x5x4xf64>, tensor<2x2x2xf64>, tensor<1x5x4xf64>, tensor<2x2x2xf64>) -> tensor<1x3x2xf64>
  %6:2 = call @reverse(%0, %1, %4) : (tensor<1x5x4xf64>, tensor<2x2x2xf64>, tensor<1x3x2xf64>) -> (tensor<1x5x4xf64>, tensor<2x2x2xf64>)
  return %5, %6#0, %6#1 : tensor<1x3x2xf64>, tensor<1x5x4xf64>, tensor<2x2x2xf64>
}

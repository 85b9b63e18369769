// The gradient in a kernel of one channel a group: a sum for each tap. Others stay contractions.
// RUN: smelt-opt %s --sum-taps --canonicalize | filecheck %s
// RUN: smelt-opt %s --pass-pipeline='sum-taps{most=2}' | filecheck %s --check-prefix=FEW
// RUN: smelt-opt %s --pass-pipeline='sum-taps{channels=8}' | filecheck %s --check-prefix=FEW

// CHECK-LABEL: func.func @depthwise
// CHECK-NOT: "smelt.conv_general"
// CHECK-COUNT-3: "smelt.reduce_sum"({{.*}}) {axes = array<i64: 0, 1>} : (tensor<2x32x8xf32>)
// CHECK: return
// FEW-LABEL: func.func @depthwise
// FEW: "smelt.conv_general"
func.func @depthwise(%x: tensor<2x32x8xf32>, %ct: tensor<2x32x8xf32>) -> tensor<8x3x1xf32> {
  %0 = "smelt.reshape"(%x) {shape = array<i64: 2, 32, 8, 1>} : (tensor<2x32x8xf32>) -> tensor<2x32x8x1xf32>
  %1 = "smelt.transpose"(%0) {permutation = array<i64: 3, 1, 2, 0>} : (tensor<2x32x8x1xf32>) -> tensor<1x32x8x2xf32>
  %2 = "smelt.reshape"(%1) {shape = array<i64: 1, 32, 16>} : (tensor<1x32x8x2xf32>) -> tensor<1x32x16xf32>
  %3 = "smelt.transpose"(%ct) {permutation = array<i64: 2, 1, 0>} : (tensor<2x32x8xf32>) -> tensor<8x32x2xf32>
  %4 = "smelt.conv_general"(%2, %3) {feature_groups = 8 : i64, input_dilation = array<i64: 1>, kernel_dilation = array<i64: 1>, padding_high = array<i64: 1>, padding_low = array<i64: 1>, window_strides = array<i64: 1>} : (tensor<1x32x16xf32>, tensor<8x32x2xf32>) -> tensor<1x3x8xf32>
  %5 = "smelt.transpose"(%4) {permutation = array<i64: 2, 1, 0>} : (tensor<1x3x8xf32>) -> tensor<8x3x1xf32>
  return %5 : tensor<8x3x1xf32>
}

// CHECK-LABEL: func.func @forward
// CHECK: "smelt.conv_general"
// CHECK-LABEL: func.func @two_outputs
// CHECK: "smelt.conv_general"
func.func @forward(%x: tensor<1x32x8xf32>, %w: tensor<8x3x1xf32>) -> tensor<1x30x8xf32> {
  %0 = "smelt.conv_general"(%x, %w) {feature_groups = 8 : i64, input_dilation = array<i64: 1>, kernel_dilation = array<i64: 1>, padding_high = array<i64: 0>, padding_low = array<i64: 0>, window_strides = array<i64: 1>} : (tensor<1x32x8xf32>, tensor<8x3x1xf32>) -> tensor<1x30x8xf32>
  return %0 : tensor<1x30x8xf32>
}
func.func @two_outputs(%x: tensor<1x32x8xf32>, %w: tensor<8x31x2xf32>) -> tensor<1x2x8xf32> {
  %0 = "smelt.conv_general"(%x, %w) {feature_groups = 4 : i64, input_dilation = array<i64: 1>, kernel_dilation = array<i64: 1>, padding_high = array<i64: 0>, padding_low = array<i64: 0>, window_strides = array<i64: 1>} : (tensor<1x32x8xf32>, tensor<8x31x2xf32>) -> tensor<1x2x8xf32>
  return %0 : tensor<1x2x8xf32>
}

// RUN: smelt-opt %s | smelt-opt - | filecheck %s

// CHECK-LABEL: func.func @conv_general(
// CHECK: "smelt.conv_general"(%{{.*}}, %{{.*}}) {feature_groups = 1 : i64, input_dilation = array<i64: 1>, kernel_dilation = array<i64: 1>, padding_high = array<i64: 1>, padding_low = array<i64: 1>, window_strides = array<i64: 1>} : (tensor<2x5x4xf32>, tensor<6x3x4xf32>) -> tensor<2x5x6xf32>
func.func @conv_general(%x: tensor<2x5x4xf32>, %w: tensor<6x3x4xf32>) -> (tensor<2x5x6xf32>) {
  %r = "smelt.conv_general"(%x, %w) {window_strides = array<i64: 1>, padding_low = array<i64: 1>, padding_high = array<i64: 1>, kernel_dilation = array<i64: 1>, input_dilation = array<i64: 1>, feature_groups = 1 : i64} : (tensor<2x5x4xf32>, tensor<6x3x4xf32>) -> tensor<2x5x6xf32>
  return %r : tensor<2x5x6xf32>
}

// No products with the zeros between the elements of an input: each phase of the result is a convolution of its own.
// RUN: smelt-opt %s --canonicalize | filecheck %s

// CHECK-LABEL: func.func @spread
// CHECK-COUNT-4: "smelt.conv_general"({{.*}}input_dilation = array<i64: 1, 1>
// CHECK-NOT: "smelt.conv_general"
// CHECK: "smelt.concatenate"
// CHECK: return
func.func @spread(%x: tensor<1x16x16x16xf32>, %w: tensor<32x3x3x16xf32>) -> tensor<1x31x31x32xf32> {
  %0 = "smelt.conv_general"(%x, %w) {feature_groups = 1 : i64, input_dilation = array<i64: 2, 2>, kernel_dilation = array<i64: 1, 1>, padding_high = array<i64: 1, 1>, padding_low = array<i64: 1, 1>, window_strides = array<i64: 1, 1>} : (tensor<1x16x16x16xf32>, tensor<32x3x3x16xf32>) -> tensor<1x31x31x32xf32>
  return %0 : tensor<1x31x31x32xf32>
}

// CHECK-LABEL: func.func @small
// CHECK: "smelt.conv_general"({{.*}}input_dilation = array<i64: 2, 2>
func.func @small(%x: tensor<1x4x4x8xf32>, %w: tensor<8x3x3x8xf32>) -> tensor<1x7x7x8xf32> {
  %0 = "smelt.conv_general"(%x, %w) {feature_groups = 1 : i64, input_dilation = array<i64: 2, 2>, kernel_dilation = array<i64: 1, 1>, padding_high = array<i64: 1, 1>, padding_low = array<i64: 1, 1>, window_strides = array<i64: 1, 1>} : (tensor<1x4x4x8xf32>, tensor<8x3x3x8xf32>) -> tensor<1x7x7x8xf32>
  return %0 : tensor<1x7x7x8xf32>
}

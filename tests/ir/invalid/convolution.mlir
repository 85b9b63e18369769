// RUN: smelt-opt %s --split-input-file --verify-diagnostics

func.func @f(%a: tensor<2x5x4xf32>, %b: tensor<6x3x4xf32>) {
  // expected-error @+1 {{smelt.conv_general: x has 4 channels, w has 4 for each of 2 groups}}
  %r = "smelt.conv_general"(%a, %b) {window_strides = array<i64: 1>, padding_low = array<i64: 1>, padding_high = array<i64: 1>, kernel_dilation = array<i64: 1>, input_dilation = array<i64: 1>, feature_groups = 2 : i64} : (tensor<2x5x4xf32>, tensor<6x3x4xf32>) -> tensor<2x5x6xf32>
  return
}

// -----

func.func @f(%a: tensor<2x5x4xf32>, %b: tensor<6x3x1xf32>) {
  // expected-error @+1 {{smelt.conv_general: 6 output channels are not 4 equal groups}}
  %r = "smelt.conv_general"(%a, %b) {window_strides = array<i64: 1>, padding_low = array<i64: 1>, padding_high = array<i64: 1>, kernel_dilation = array<i64: 1>, input_dilation = array<i64: 1>, feature_groups = 4 : i64} : (tensor<2x5x4xf32>, tensor<6x3x1xf32>) -> tensor<2x5x6xf32>
  return
}

// -----

func.func @f(%a: tensor<2x5x4xf32>, %b: tensor<6x3x4xf32>) {
  // expected-error @+1 {{smelt.conv_general: window_strides (0,) must be positive}}
  %r = "smelt.conv_general"(%a, %b) {window_strides = array<i64: 0>, padding_low = array<i64: 1>, padding_high = array<i64: 1>, kernel_dilation = array<i64: 1>, input_dilation = array<i64: 1>} : (tensor<2x5x4xf32>, tensor<6x3x4xf32>) -> tensor<2x5x6xf32>
  return
}

// -----

func.func @f(%a: tensor<2x5x4xf32>, %b: tensor<6x3x4xf32>) {
  // expected-error @+1 {{smelt.conv_general: kernel_dilation needs one entry for each of 1 spatial axes}}
  %r = "smelt.conv_general"(%a, %b) {window_strides = array<i64: 1>, padding_low = array<i64: 1>, padding_high = array<i64: 1>, kernel_dilation = array<i64: 1, 1>, input_dilation = array<i64: 1>} : (tensor<2x5x4xf32>, tensor<6x3x4xf32>) -> tensor<2x5x6xf32>
  return
}

// -----

func.func @f(%a: tensor<2x5x4xf32>, %b: tensor<6x3x4xf32>) {
  // expected-error @+1 {{smelt.conv_general: feature_groups must be at least 1, is 0}}
  %r = "smelt.conv_general"(%a, %b) {window_strides = array<i64: 1>, padding_low = array<i64: 1>, padding_high = array<i64: 1>, kernel_dilation = array<i64: 1>, input_dilation = array<i64: 1>, feature_groups = 0 : i64} : (tensor<2x5x4xf32>, tensor<6x3x4xf32>) -> tensor<2x5x6xf32>
  return
}

// -----

func.func @f(%a: tensor<2x5x4xf32>, %b: tensor<6x4xf32>) {
  // expected-error @+1 {{smelt.conv_general: x and w must have the same number of axes, two or more}}
  %r = "smelt.conv_general"(%a, %b) {window_strides = array<i64: 1>, padding_low = array<i64: 1>, padding_high = array<i64: 1>, kernel_dilation = array<i64: 1>, input_dilation = array<i64: 1>} : (tensor<2x5x4xf32>, tensor<6x4xf32>) -> tensor<2x5x6xf32>
  return
}

// -----

func.func @f(%a: tensor<2x5x4xf32>, %b: tensor<6x3x4xf16>) {
  // expected-error @+1 {{smelt.conv_general: x and w must have the same dtype}}
  %r = "smelt.conv_general"(%a, %b) {window_strides = array<i64: 1>, padding_low = array<i64: 1>, padding_high = array<i64: 1>, kernel_dilation = array<i64: 1>, input_dilation = array<i64: 1>} : (tensor<2x5x4xf32>, tensor<6x3x4xf16>) -> tensor<2x5x6xf32>
  return
}

// -----

func.func @f(%a: tensor<2x5x4xf32>, %b: tensor<6x0x4xf32>) {
  // expected-error @+1 {{smelt.conv_general: w must have elements along its spatial axes}}
  %r = "smelt.conv_general"(%a, %b) {window_strides = array<i64: 1>, padding_low = array<i64: 1>, padding_high = array<i64: 1>, kernel_dilation = array<i64: 1>, input_dilation = array<i64: 1>} : (tensor<2x5x4xf32>, tensor<6x0x4xf32>) -> tensor<2x5x6xf32>
  return
}

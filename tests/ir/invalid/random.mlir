// RUN: smelt-opt %s --split-input-file --verify-diagnostics

func.func @f(%a: tensor<2xi32>) {
  // expected-error @+1 {{smelt.random_bits: key is int32, must be one of uint32}}
  %r = "smelt.random_bits"(%a) {shape = array<i64: 4>, width = 32 : i64} : (tensor<2xi32>) -> tensor<4xui32>
  return
}

// -----

func.func @f(%a: tensor<3xui32>) {
  // expected-error @+1 {{smelt.random_bits: a key is 2 words: its last axis must have 2 elements}}
  %r = "smelt.random_bits"(%a) {shape = array<i64: 4>, width = 32 : i64} : (tensor<3xui32>) -> tensor<4xui32>
  return
}

// -----

func.func @f(%a: tensor<2xui32>) {
  // expected-error @+1 {{smelt.random_bits: width 24 must be 8, 16, 32 or 64}}
  %r = "smelt.random_bits"(%a) {shape = array<i64: 4>, width = 24 : i64} : (tensor<2xui32>) -> tensor<4xui32>
  return
}

// -----

func.func @f(%a: tensor<2xui32>) {
  // expected-error @+1 {{smelt.random_bits: shape (-4,) has a negative extent}}
  %r = "smelt.random_bits"(%a) {shape = array<i64: -4>, width = 32 : i64} : (tensor<2xui32>) -> tensor<4xui32>
  return
}

// -----

func.func @f(%a: tensor<ui32>) {
  // expected-error @+1 {{smelt.random_split: a key is 2 words: its last axis must have 2 elements}}
  %r = "smelt.random_split"(%a) {num = 3 : i64} : (tensor<ui32>) -> tensor<3x2xui32>
  return
}

// -----

func.func @f(%a: tensor<2xui32>) {
  // expected-error @+1 {{smelt.random_split: num -1 must lie within 0 and 2**32}}
  %r = "smelt.random_split"(%a) {num = -1 : i64} : (tensor<2xui32>) -> tensor<3x2xui32>
  return
}

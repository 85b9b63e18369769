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
  // expected-error @+1 {{smelt.random_bits: a key is 2 words: its last axis must have 2 elements}}
  %r = "smelt.random_bits"(%a) {shape = array<i64: 4>, width = 32 : i64} : (tensor<ui32>) -> tensor<4xui32>
  return
}

// -----

func.func @f(%a: tensor<2xui32>) {
  // expected-error @+1 {{smelt.random_bits: shape (8589934592, 2) of 32 bits is more than the 2**33 words of a key; split it}}
  %r = "smelt.random_bits"(%a) {shape = array<i64: 8589934592, 2>, width = 32 : i64} : (tensor<2xui32>) -> tensor<8589934592x2xui32>
  return
}

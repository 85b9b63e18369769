// RUN: smelt-opt %s --split-input-file --verify-diagnostics

func.func @f(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{smelt.reduce_sum: axes (2,) out of range for 2 dimensions}}
  %r = "smelt.reduce_sum"(%a) {axes = array<i64: 2>} : (tensor<4x8xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{smelt.reduce_sum: axes (-1,) out of range for 2 dimensions}}
  %r = "smelt.reduce_sum"(%a) {axes = array<i64: -1>} : (tensor<4x8xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{smelt.reduce_sum: axes (0, 0) repeat an axis}}
  %r = "smelt.reduce_sum"(%a) {axes = array<i64: 0, 0>} : (tensor<4x8xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{smelt.reduce_sum: attribute axes must be an array<i64: ...>, is 1 : i64}}
  %r = "smelt.reduce_sum"(%a) {axes = 1 : i64} : (tensor<4x8xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{smelt.reduce_sum: attribute axes (an array<i64: ...>) is missing}}
  %r = "smelt.reduce_sum"(%a) : (tensor<4x8xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{smelt.reduce_sum: result type must be f32[4], is f32[8]}}
  %r = "smelt.reduce_sum"(%a) {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xi1>) {
  // expected-error @+1 {{smelt.reduce_sum: operand is bool, must be one of uint8, uint16, uint32, uint64, int8, int16, int32, int64, float16, bfloat16, float32, float64, complex64, complex128}}
  %r = "smelt.reduce_sum"(%a) {axes = array<i64: 1>} : (tensor<4x8xi1>) -> tensor<4xi1>
  return
}

// -----

func.func @f(%a: tensor<4x0xf32>) {
  // expected-error @+1 {{smelt.reduce_max: an empty axis has no extremum}}
  %r = "smelt.reduce_max"(%a) {axes = array<i64: 1>} : (tensor<4x0xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{smelt.reduce_all: operand is float32, must be one of bool}}
  %r = "smelt.reduce_all"(%a) {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{smelt.argmax: axis (2,) out of range for 2 dimensions}}
  %r = "smelt.argmax"(%a) {axis = 2 : i64} : (tensor<4x8xf32>) -> tensor<4xui32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{smelt.argmax: result type must be ui32[4], is i32[4]}}
  %r = "smelt.argmax"(%a) {axis = 1 : i64} : (tensor<4x8xf32>) -> tensor<4xi32>
  return
}

// -----

func.func @f(%a: tensor<4x0xf32>) {
  // expected-error @+1 {{smelt.argmin: an empty axis has no extremum}}
  %r = "smelt.argmin"(%a) {axis = 1 : i64} : (tensor<4x0xf32>) -> tensor<4xui32>
  return
}

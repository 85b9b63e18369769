// RUN: smelt-opt %s --split-input-file --verify-diagnostics

func.func @f(%a: tensor<4xf32>) {
  // expected-error @+1 {{smelt.cumsum: axis (1,) out of range for 1 dimensions}}
  %r = "smelt.cumsum"(%a) {axis = 1 : i64, reverse = false, inclusive = true} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%a: tensor<4xi1>) {
  // expected-error @+1 {{smelt.cumsum: operand is bool, must be one of uint8, uint16, uint32, uint64, int8, int16, int32, int64, float16, bfloat16, float32, float64, complex64, complex128}}
  %r = "smelt.cumsum"(%a) {axis = 0 : i64, reverse = false, inclusive = true} : (tensor<4xi1>) -> tensor<4xi1>
  return
}

// -----

func.func @f(%a: tensor<4xf32>) {
  // expected-error @+1 {{smelt.cumsum: attribute reverse must be true or false, is 1 : i64}}
  %r = "smelt.cumsum"(%a) {axis = 0 : i64, reverse = 1 : i64, inclusive = true} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%a: tensor<4xf32>) {
  // expected-error @+1 {{smelt.sort: axis (-1,) out of range for 1 dimensions}}
  %r = "smelt.sort"(%a) {axis = -1 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%a: tensor<4xf32>) {
  // expected-error @+1 {{smelt.argsort: result type must be ui32[4], is i32[4]}}
  %r = "smelt.argsort"(%a) {axis = 0 : i64} : (tensor<4xf32>) -> tensor<4xi32>
  return
}

// -----

func.func @f(%a: tensor<4xi32>) {
  // expected-error @+1 {{smelt.logcumsumexp: operand is int32, must be one of float16, bfloat16, float32, float64, complex64, complex128}}
  %r = "smelt.logcumsumexp"(%a) {axis = 0 : i64, reverse = false, inclusive = true} : (tensor<4xi32>) -> tensor<4xi32>
  return
}

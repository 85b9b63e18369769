// RUN: smelt-opt %s --split-input-file --verify-diagnostics

func.func @f(%a: tensor<3x3xf32>, %b: tensor<4x2xf32>) {
  // expected-error @+1 {{smelt.solve: the last 2 axes of b must be (n, k), here (4, 2), with n = 3}}
  %r = "smelt.solve"(%a, %b) : (tensor<3x3xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
  return
}

// -----

func.func @f(%a: tensor<3x3xf32>, %b: tensor<3xf32>) {
  // expected-error @+1 {{smelt.solve: b has 1 axes, must have at least 2: (n, k)}}
  %r = "smelt.solve"(%a, %b) : (tensor<3x3xf32>, tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @f(%a: tensor<3x3xf32>, %b: tensor<3x2xf64>) {
  // expected-error @+1 {{smelt.solve: operands must have the same dtype}}
  %r = "smelt.solve"(%a, %b) : (tensor<3x3xf32>, tensor<3x2xf64>) -> tensor<3x2xf64>
  return
}

// -----

func.func @f(%a: tensor<5x3x3xf32>, %b: tensor<2x3x2xf32>) {
  // expected-error @+1 {{smelt.solve: batch axes (5,) and (2,) cannot be broadcast together}}
  %r = "smelt.solve"(%a, %b) : (tensor<5x3x3xf32>, tensor<2x3x2xf32>) -> tensor<5x3x2xf32>
  return
}

// -----

func.func @f(%a: tensor<3x4xf32>) {
  // expected-error @+1 {{smelt.inv: the last 2 axes of a must be (n, n), here (3, 4), with n = 3}}
  %r = "smelt.inv"(%a) : (tensor<3x4xf32>) -> tensor<3x4xf32>
  return
}

// -----

func.func @f(%a: tensor<3x3xf16>) {
  // expected-error @+1 {{smelt.inv: a is float16, must be one of float32, float64, complex64, complex128; convert it first, e.g. with .astype(smelt.float32)}}
  %r = "smelt.inv"(%a) : (tensor<3x3xf16>) -> tensor<3x3xf16>
  return
}

// -----

func.func @f(%a: tensor<3xf32>) {
  // expected-error @+1 {{smelt.det: a has 1 axes, must have at least 2: (n, n)}}
  %r = "smelt.det"(%a) : (tensor<3xf32>) -> tensor<f32>
  return
}

// -----

func.func @f(%a: tensor<2x3x3xf32>) {
  // expected-error @+1 {{smelt.det: result type must be f32[2], is f32[2,3]}}
  %r = "smelt.det"(%a) : (tensor<2x3x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @f(%a: tensor<2x3xf32>) {
  // expected-error @+1 {{smelt.adjugate: the last 2 axes of a must be (n, n), here (2, 3), with n = 2}}
  %r = "smelt.adjugate"(%a) : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return
}

// -----

func.func @f(%a: tensor<3x3xcomplex<f32>>) {
  // expected-error @+1 {{smelt.slogdet: result type must be complex<f32>[], f32[], is complex<f32>[], complex<f32>[]}}
  %r:2 = "smelt.slogdet"(%a) : (tensor<3x3xcomplex<f32>>) -> (tensor<complex<f32>>, tensor<complex<f32>>)
  return
}

// -----

func.func @f(%a: tensor<4x3xf32>) {
  // expected-error @+1 {{smelt.lu: result type must be f32[4,3], ui32[3], ui32[4], is f32[4,3], ui32[4], ui32[4]}}
  %r:3 = "smelt.lu"(%a) : (tensor<4x3xf32>) -> (tensor<4x3xf32>, tensor<4xui32>, tensor<4xui32>)
  return
}

// -----

func.func @f(%a: tensor<3x3xi32>) {
  // expected-error @+1 {{smelt.lu: a is int32, must be one of float32, float64, complex64, complex128; convert it first, e.g. with .astype(smelt.float32)}}
  %r:3 = "smelt.lu"(%a) : (tensor<3x3xi32>) -> (tensor<3x3xi32>, tensor<3xui32>, tensor<3xui32>)
  return
}

// -----

func.func @f(%p: tensor<3xi64>) {
  // expected-error @+1 {{smelt.permutation_of_pivots: pivots is int64, must be one of uint32, int32; convert it first, e.g. with .astype(smelt.uint32)}}
  %r = "smelt.permutation_of_pivots"(%p) : (tensor<3xi64>) -> tensor<3xui32>
  return
}

// -----

func.func @f(%p: tensor<ui32>) {
  // expected-error @+1 {{smelt.permutation_of_pivots: pivots has 0 axes, must have at least 1: (n)}}
  %r = "smelt.permutation_of_pivots"(%p) : (tensor<ui32>) -> tensor<ui32>
  return
}

// -----

func.func @f(%p: tensor<3xi32>) {
  // expected-error @+1 {{smelt.permutation_of_pivots: result type must be ui32[3], is i32[3]}}
  %r = "smelt.permutation_of_pivots"(%p) : (tensor<3xi32>) -> tensor<3xi32>
  return
}

// RUN: smelt-opt %s --split-input-file --verify-diagnostics

func.func @f(%a: tensor<3x4xf32>) {
  // expected-error @+1 {{smelt.cholesky: the last 2 axes of a must be (n, n), here (3, 4), with n = 3}}
  %r = "smelt.cholesky"(%a) : (tensor<3x4xf32>) -> tensor<3x4xf32>
  return
}

// -----

func.func @f(%a: tensor<3xf32>) {
  // expected-error @+1 {{smelt.cholesky: a has 1 axes, must have at least 2: (n, n)}}
  %r = "smelt.cholesky"(%a) : (tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @f(%a: tensor<3x3xf16>) {
  // expected-error @+1 {{smelt.cholesky: a is float16, must be one of float32, float64, complex64, complex128; convert it first, e.g. with .astype(smelt.float32)}}
  %r = "smelt.cholesky"(%a) : (tensor<3x3xf16>) -> tensor<3x3xf16>
  return
}

// -----

func.func @f(%a: tensor<4x3xf32>) {
  // expected-error @+1 {{smelt.qr: result type must be f32[4,3], f32[3,3], is f32[4,4], f32[4,3]}}
  %r:2 = "smelt.qr"(%a) : (tensor<4x3xf32>) -> (tensor<4x4xf32>, tensor<4x3xf32>)
  return
}

// -----

func.func @f(%a: tensor<3x3xf32>, %b: tensor<4x2xf32>) {
  // expected-error @+1 {{smelt.solve_triangular: the last 2 axes of b must be (n, k), here (4, 2), with n = 3}}
  %r = "smelt.solve_triangular"(%a, %b) {upper = false} : (tensor<3x3xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
  return
}

// -----

func.func @f(%a: tensor<3x3xf32>, %b: tensor<3x2xf64>) {
  // expected-error @+1 {{smelt.solve_triangular: operands must have the same dtype}}
  %r = "smelt.solve_triangular"(%a, %b) {upper = false} : (tensor<3x3xf32>, tensor<3x2xf64>) -> tensor<3x2xf64>
  return
}

// -----

func.func @f(%a: tensor<5x3x3xf32>, %b: tensor<2x3x2xf32>) {
  // expected-error @+1 {{smelt.solve_triangular: batch axes (5,) and (2,) cannot be broadcast together}}
  %r = "smelt.solve_triangular"(%a, %b) {upper = false} : (tensor<5x3x3xf32>, tensor<2x3x2xf32>) -> tensor<5x3x2xf32>
  return
}

// RUN: smelt-opt %s --split-input-file --verify-diagnostics

func.func @f(%a: tensor<3x4xf32>) {
  // expected-error @+1 {{smelt.expm: the last 2 axes of a must be (n, n), here (3, 4), with n = 3}}
  %r = "smelt.expm"(%a) : (tensor<3x4xf32>) -> tensor<3x4xf32>
  return
}

// -----

func.func @f(%a: tensor<3x3xbf16>) {
  // expected-error @+1 {{smelt.expm: a is bfloat16, must be one of float32, float64, complex64, complex128; convert it first, e.g. with .astype(smelt.float32)}}
  %r = "smelt.expm"(%a) : (tensor<3x3xbf16>) -> tensor<3x3xbf16>
  return
}

// -----

func.func @f(%a: tensor<3xf32>) {
  // expected-error @+1 {{smelt.expm: a has 1 axes, must have at least 2: (n, n)}}
  %r = "smelt.expm"(%a) : (tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @f(%a: tensor<3x3xf32>, %e: tensor<2x2xf32>) {
  // expected-error @+1 {{smelt.expm_frechet: the last 2 axes of e must be (n, n), here (2, 2), with n = 3}}
  %r = "smelt.expm_frechet"(%a, %e) : (tensor<3x3xf32>, tensor<2x2xf32>) -> tensor<3x3xf32>
  return
}

// -----

func.func @f(%a: tensor<3x3xf32>, %e: tensor<3x3xcomplex<f32>>) {
  // expected-error @+1 {{smelt.expm_frechet: operands must have the same dtype}}
  %r = "smelt.expm_frechet"(%a, %e) : (tensor<3x3xf32>, tensor<3x3xcomplex<f32>>) -> tensor<3x3xcomplex<f32>>
  return
}

// -----

func.func @f(%a: tensor<5x3x3xf32>, %e: tensor<2x3x3xf32>) {
  // expected-error @+1 {{smelt.expm_frechet: batch axes (5,) and (2,) cannot be broadcast together}}
  %r = "smelt.expm_frechet"(%a, %e) : (tensor<5x3x3xf32>, tensor<2x3x3xf32>) -> tensor<5x3x3xf32>
  return
}

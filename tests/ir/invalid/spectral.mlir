// RUN: smelt-opt %s --split-input-file --verify-diagnostics

func.func @f(%a: tensor<3x4xf32>) {
  // expected-error @+1 {{smelt.eigh: the last 2 axes of a must be (n, n), here (3, 4), with n = 3}}
  %r:2 = "smelt.eigh"(%a) : (tensor<3x4xf32>) -> (tensor<3xf32>, tensor<3x4xf32>)
  return
}

// -----

func.func @f(%a: tensor<3x3xcomplex<f32>>) {
  // expected-error @+1 {{smelt.eigh: result type must be f32[3], complex<f32>[3,3], is complex<f32>[3], complex<f32>[3,3]}}
  %r:2 = "smelt.eigh"(%a) : (tensor<3x3xcomplex<f32>>) -> (tensor<3xcomplex<f32>>, tensor<3x3xcomplex<f32>>)
  return
}

// -----

func.func @f(%a: tensor<3x3xf32>) {
  // expected-error @+1 {{smelt.eigh: result type must be f32[3], f32[3,3], is f32[3,3], f32[3]}}
  %r:2 = "smelt.eigh"(%a) : (tensor<3x3xf32>) -> (tensor<3x3xf32>, tensor<3xf32>)
  return
}

// -----

func.func @f(%a: tensor<3x3xf16>) {
  // expected-error @+1 {{smelt.eigvalsh: a is float16, must be one of float32, float64, complex64, complex128; convert it first, e.g. with .astype(smelt.float32)}}
  %r = "smelt.eigvalsh"(%a) : (tensor<3x3xf16>) -> tensor<3xf16>
  return
}

// -----

func.func @f(%a: tensor<4xf32>) {
  // expected-error @+1 {{smelt.svd: a has 1 axes, must have at least 2: (m, n)}}
  %r:3 = "smelt.svd"(%a) {full = false} : (tensor<4xf32>) -> (tensor<4x4xf32>, tensor<4xf32>, tensor<4x4xf32>)
  return
}

// -----

func.func @f(%a: tensor<4x3xf32>) {
  // expected-error @+1 {{smelt.svd: result type must be f32[4,4], f32[3], f32[3,3], is f32[4,3], f32[3], f32[3,3]}}
  %r:3 = "smelt.svd"(%a) {full = true} : (tensor<4x3xf32>) -> (tensor<4x3xf32>, tensor<3xf32>, tensor<3x3xf32>)
  return
}

// -----

func.func @f(%a: tensor<2x3xf32>) {
  // expected-error @+1 {{smelt.singular_values: result type must be f32[2], is f32[3]}}
  %r = "smelt.singular_values"(%a) : (tensor<2x3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @f(%a: tensor<4x3xf32>) {
  // expected-error @+1 {{smelt.pinv: result type must be f32[3,4], is f32[4,3]}}
  %r = "smelt.pinv"(%a) {rtol = 1.000000e-06 : f64} : (tensor<4x3xf32>) -> tensor<4x3xf32>
  return
}

// -----

func.func @f(%a: tensor<4x3xf32>) {
  // expected-error @+1 {{smelt.pinv: attribute rtol (an f64 number) is missing}}
  %r = "smelt.pinv"(%a) : (tensor<4x3xf32>) -> tensor<3x4xf32>
  return
}

// -----

func.func @f(%a: tensor<3x3xf16>) {
  // expected-error @+1 {{smelt.eig: a is float16, must be one of float32, float64, complex64, complex128; convert it first, e.g. with .astype(smelt.float32)}}
  %r:2 = "smelt.eig"(%a) : (tensor<3x3xf16>) -> (tensor<3xcomplex<f32>>, tensor<3x3xcomplex<f32>>)
  return
}

// -----

func.func @f(%a: tensor<3x3xf32>) {
  // expected-error @+1 {{smelt.eig: result type must be complex<f32>[3], complex<f32>[3,3], is f32[3], f32[3,3]}}
  %r:2 = "smelt.eig"(%a) : (tensor<3x3xf32>) -> (tensor<3xf32>, tensor<3x3xf32>)
  return
}

// -----

func.func @f(%a: tensor<2x3xf32>) {
  // expected-error @+1 {{smelt.eigvals: the last 2 axes of a must be (n, n), here (2, 3), with n = 2}}
  %r = "smelt.eigvals"(%a) : (tensor<2x3xf32>) -> tensor<2xcomplex<f32>>
  return
}

// RUN: smelt-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<2x6xf32>) {
  // expected-error @+1 {{smelt.fft: x is float32, must be one of complex64, complex128; convert it first, e.g. with .astype(smelt.complex64)}}
  %r = "smelt.fft"(%x) {inverse = false, scale = "none"} : (tensor<2x6xf32>) -> tensor<2x6xcomplex<f32>>
  return
}

// -----

func.func @f(%x: tensor<6xcomplex<f32>>) {
  // expected-error @+1 {{smelt.fft: scale is 'forward', must be one of none, ortho, mean}}
  %r = "smelt.fft"(%x) {inverse = false, scale = "forward"} : (tensor<6xcomplex<f32>>) -> tensor<6xcomplex<f32>>
  return
}

// -----

func.func @f(%x: tensor<2x0xcomplex<f32>>) {
  // expected-error @+1 {{smelt.fft: a Fourier transform needs at least one element along its axis}}
  %r = "smelt.fft"(%x) {inverse = false, scale = "none"} : (tensor<2x0xcomplex<f32>>) -> tensor<2x0xcomplex<f32>>
  return
}

// -----

func.func @f(%x: tensor<complex<f32>>) {
  // expected-error @+1 {{smelt.fft: x has 0 axes, must have at least 1: (n)}}
  %r = "smelt.fft"(%x) {inverse = true, scale = "mean"} : (tensor<complex<f32>>) -> tensor<complex<f32>>
  return
}

// -----

func.func @f(%x: tensor<6xf16>) {
  // expected-error @+1 {{smelt.rfft: x is float16, must be one of float32, float64; convert it first, e.g. with .astype(smelt.float32)}}
  %r = "smelt.rfft"(%x) {scale = "none"} : (tensor<6xf16>) -> tensor<4xcomplex<f32>>
  return
}

// -----

func.func @f(%x: tensor<6xf32>) {
  // expected-error @+1 {{smelt.rfft: result type must be complex<f32>[4], is complex<f32>[6]}}
  %r = "smelt.rfft"(%x) {scale = "none"} : (tensor<6xf32>) -> tensor<6xcomplex<f32>>
  return
}

// -----

func.func @f(%x: tensor<0xf32>) {
  // expected-error @+1 {{smelt.rfft: a Fourier transform needs at least one element along its axis}}
  %r = "smelt.rfft"(%x) {scale = "none"} : (tensor<0xf32>) -> tensor<1xcomplex<f32>>
  return
}

// -----

func.func @f(%x: tensor<2x4xcomplex<f32>>) {
  // expected-error @+1 {{smelt.irfft: 8 real numbers have 5 coefficients, x has 4}}
  %r = "smelt.irfft"(%x) {n = 8 : i64, scale = "mean"} : (tensor<2x4xcomplex<f32>>) -> tensor<2x8xf32>
  return
}

// -----

func.func @f(%x: tensor<1xcomplex<f32>>) {
  // expected-error @+1 {{smelt.irfft: a Fourier transform needs at least one element along its axis}}
  %r = "smelt.irfft"(%x) {n = 0 : i64, scale = "mean"} : (tensor<1xcomplex<f32>>) -> tensor<0xf32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error @+1 {{smelt.irfft: x is float32, must be one of complex64, complex128; convert it first, e.g. with .astype(smelt.complex64)}}
  %r = "smelt.irfft"(%x) {n = 6 : i64, scale = "mean"} : (tensor<4xf32>) -> tensor<6xf32>
  return
}

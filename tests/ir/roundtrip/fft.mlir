// RUN: smelt-opt %s | smelt-opt - | filecheck %s

// CHECK-LABEL: func.func @fft(
// CHECK: "smelt.fft"(%{{.*}}) {inverse = true, scale = "ortho"} : (tensor<2x6xcomplex<f32>>) -> tensor<2x6xcomplex<f32>>
func.func @fft(%x: tensor<2x6xcomplex<f32>>) -> (tensor<2x6xcomplex<f32>>) {
  %r = "smelt.fft"(%x) {inverse = true, scale = "ortho"} : (tensor<2x6xcomplex<f32>>) -> tensor<2x6xcomplex<f32>>
  return %r : tensor<2x6xcomplex<f32>>
}

// CHECK-LABEL: func.func @rfft(
// CHECK: "smelt.rfft"(%{{.*}}) {scale = "none"} : (tensor<2x6xf32>) -> tensor<2x4xcomplex<f32>>
func.func @rfft(%x: tensor<2x6xf32>) -> (tensor<2x4xcomplex<f32>>) {
  %r = "smelt.rfft"(%x) {scale = "none"} : (tensor<2x6xf32>) -> tensor<2x4xcomplex<f32>>
  return %r : tensor<2x4xcomplex<f32>>
}

// CHECK-LABEL: func.func @irfft(
// CHECK: "smelt.irfft"(%{{.*}}) {n = 7 : i64, scale = "mean"} : (tensor<2x4xcomplex<f32>>) -> tensor<2x7xf32>
func.func @irfft(%x: tensor<2x4xcomplex<f32>>) -> (tensor<2x7xf32>) {
  %r = "smelt.irfft"(%x) {n = 7 : i64, scale = "mean"} : (tensor<2x4xcomplex<f32>>) -> tensor<2x7xf32>
  return %r : tensor<2x7xf32>
}

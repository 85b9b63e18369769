// RUN: smelt-opt %s | smelt-opt - | filecheck %s

// CHECK-LABEL: func.func @expm(
// CHECK: "smelt.expm"(%{{.*}}) : (tensor<5x3x3xcomplex<f32>>) -> tensor<5x3x3xcomplex<f32>>
func.func @expm(%a: tensor<5x3x3xcomplex<f32>>) -> (tensor<5x3x3xcomplex<f32>>) {
  %r = "smelt.expm"(%a) : (tensor<5x3x3xcomplex<f32>>) -> tensor<5x3x3xcomplex<f32>>
  return %r : tensor<5x3x3xcomplex<f32>>
}

// CHECK-LABEL: func.func @expm_frechet(
// CHECK: "smelt.expm_frechet"(%{{.*}}, %{{.*}}) : (tensor<3x3xf64>, tensor<5x3x3xf64>) -> tensor<5x3x3xf64>
func.func @expm_frechet(%a: tensor<3x3xf64>, %e: tensor<5x3x3xf64>) -> (tensor<5x3x3xf64>) {
  %r = "smelt.expm_frechet"(%a, %e) : (tensor<3x3xf64>, tensor<5x3x3xf64>) -> tensor<5x3x3xf64>
  return %r : tensor<5x3x3xf64>
}

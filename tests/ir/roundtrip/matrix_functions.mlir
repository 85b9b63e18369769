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

// CHECK-LABEL: func.func @sylvester(
// CHECK: "smelt.sylvester"(%{{.*}}, %{{.*}}, %{{.*}}) : (tensor<3x3xf64>, tensor<2x2xf64>, tensor<3x2xf64>) -> tensor<3x2xf64>
func.func @sylvester(%a: tensor<3x3xf64>, %b: tensor<2x2xf64>, %c: tensor<3x2xf64>) -> (tensor<3x2xf64>) {
  %r = "smelt.sylvester"(%a, %b, %c) : (tensor<3x3xf64>, tensor<2x2xf64>, tensor<3x2xf64>) -> tensor<3x2xf64>
  return %r : tensor<3x2xf64>
}

// CHECK-LABEL: func.func @roots(
// CHECK: "smelt.sqrtm"(%{{.*}}) : (tensor<5x3x3xf32>) -> tensor<5x3x3xf32>
// CHECK: "smelt.logm"(%{{.*}}) : (tensor<5x3x3xf32>) -> tensor<5x3x3xf32>
func.func @roots(%a: tensor<5x3x3xf32>) -> (tensor<5x3x3xf32>, tensor<5x3x3xf32>) {
  %r = "smelt.sqrtm"(%a) : (tensor<5x3x3xf32>) -> tensor<5x3x3xf32>
  %l = "smelt.logm"(%a) : (tensor<5x3x3xf32>) -> tensor<5x3x3xf32>
  return %r, %l : tensor<5x3x3xf32>, tensor<5x3x3xf32>
}

// CHECK-LABEL: func.func @logm_frechet(
// CHECK: "smelt.logm_frechet"(%{{.*}}, %{{.*}}) : (tensor<3x3xf64>, tensor<5x3x3xf64>) -> tensor<5x3x3xf64>
func.func @logm_frechet(%a: tensor<3x3xf64>, %e: tensor<5x3x3xf64>) -> (tensor<5x3x3xf64>) {
  %r = "smelt.logm_frechet"(%a, %e) : (tensor<3x3xf64>, tensor<5x3x3xf64>) -> tensor<5x3x3xf64>
  return %r : tensor<5x3x3xf64>
}

// RUN: smelt-opt %s | smelt-opt - | filecheck %s

// CHECK-LABEL: func.func @eigh(
// CHECK: %[[R:.*]]:2 = "smelt.eigh"(%{{.*}}) : (tensor<5x3x3xf64>) -> (tensor<5x3xf64>, tensor<5x3x3xf64>)
// CHECK: return %[[R]]#0, %[[R]]#1
func.func @eigh(%a: tensor<5x3x3xf64>) -> (tensor<5x3xf64>, tensor<5x3x3xf64>) {
  %r:2 = "smelt.eigh"(%a) : (tensor<5x3x3xf64>) -> (tensor<5x3xf64>, tensor<5x3x3xf64>)
  return %r#0, %r#1 : tensor<5x3xf64>, tensor<5x3x3xf64>
}

// CHECK-LABEL: func.func @eigvalsh(
// CHECK: "smelt.eigvalsh"(%{{.*}}) : (tensor<5x3x3xf32>) -> tensor<5x3xf32>
func.func @eigvalsh(%a: tensor<5x3x3xf32>) -> (tensor<5x3xf32>) {
  %r = "smelt.eigvalsh"(%a) : (tensor<5x3x3xf32>) -> tensor<5x3xf32>
  return %r : tensor<5x3xf32>
}

// CHECK-LABEL: func.func @svd(
// CHECK: %[[R:.*]]:3 = "smelt.svd"(%{{.*}}) {full = true} : (tensor<4x3xf32>) -> (tensor<4x4xf32>, tensor<3xf32>, tensor<3x3xf32>)
// CHECK: return %[[R]]#0, %[[R]]#1, %[[R]]#2
func.func @svd(%a: tensor<4x3xf32>) -> (tensor<4x4xf32>, tensor<3xf32>, tensor<3x3xf32>) {
  %r:3 = "smelt.svd"(%a) {full = true} : (tensor<4x3xf32>) -> (tensor<4x4xf32>, tensor<3xf32>, tensor<3x3xf32>)
  return %r#0, %r#1, %r#2 : tensor<4x4xf32>, tensor<3xf32>, tensor<3x3xf32>
}

// CHECK-LABEL: func.func @singular_values(
// CHECK: "smelt.singular_values"(%{{.*}}) : (tensor<5x2x3xf32>) -> tensor<5x2xf32>
func.func @singular_values(%a: tensor<5x2x3xf32>) -> (tensor<5x2xf32>) {
  %r = "smelt.singular_values"(%a) : (tensor<5x2x3xf32>) -> tensor<5x2xf32>
  return %r : tensor<5x2xf32>
}

// CHECK-LABEL: func.func @pinv(
// CHECK: "smelt.pinv"(%{{.*}}) {rtol = 1.000000e-10 : f64} : (tensor<4x3xf64>) -> tensor<3x4xf64>
func.func @pinv(%a: tensor<4x3xf64>) -> (tensor<3x4xf64>) {
  %r = "smelt.pinv"(%a) {rtol = 1.000000e-10 : f64} : (tensor<4x3xf64>) -> tensor<3x4xf64>
  return %r : tensor<3x4xf64>
}

// CHECK-LABEL: func.func @least_squares(
// CHECK: "smelt.least_squares"(%{{.*}}, %{{.*}}) {rtol = 1.000000e-10 : f64} : (tensor<4x3xf64>, tensor<4x2xf64>) -> tensor<3x2xf64>
func.func @least_squares(%a: tensor<4x3xf64>, %b: tensor<4x2xf64>) -> (tensor<3x2xf64>) {
  %r = "smelt.least_squares"(%a, %b) {rtol = 1.000000e-10 : f64} : (tensor<4x3xf64>, tensor<4x2xf64>) -> tensor<3x2xf64>
  return %r : tensor<3x2xf64>
}

// CHECK-LABEL: func.func @eig(
// CHECK: %[[R:.*]]:2 = "smelt.eig"(%{{.*}}) : (tensor<3x3xf32>) -> (tensor<3xcomplex<f32>>, tensor<3x3xcomplex<f32>>)
// CHECK: return %[[R]]#0, %[[R]]#1
func.func @eig(%a: tensor<3x3xf32>) -> (tensor<3xcomplex<f32>>, tensor<3x3xcomplex<f32>>) {
  %r:2 = "smelt.eig"(%a) : (tensor<3x3xf32>) -> (tensor<3xcomplex<f32>>, tensor<3x3xcomplex<f32>>)
  return %r#0, %r#1 : tensor<3xcomplex<f32>>, tensor<3x3xcomplex<f32>>
}

// CHECK-LABEL: func.func @eigvals(
// CHECK: "smelt.eigvals"(%{{.*}}) : (tensor<5x3x3xcomplex<f32>>) -> tensor<5x3xcomplex<f32>>
func.func @eigvals(%a: tensor<5x3x3xcomplex<f32>>) -> (tensor<5x3xcomplex<f32>>) {
  %r = "smelt.eigvals"(%a) : (tensor<5x3x3xcomplex<f32>>) -> tensor<5x3xcomplex<f32>>
  return %r : tensor<5x3xcomplex<f32>>
}

// CHECK-LABEL: func.func @schur(
// CHECK: %[[R:.*]]:2 = "smelt.schur"(%{{.*}}) : (tensor<5x3x3xf32>) -> (tensor<5x3x3xf32>, tensor<5x3x3xf32>)
// CHECK: return %[[R]]#0, %[[R]]#1
func.func @schur(%a: tensor<5x3x3xf32>) -> (tensor<5x3x3xf32>, tensor<5x3x3xf32>) {
  %r:2 = "smelt.schur"(%a) : (tensor<5x3x3xf32>) -> (tensor<5x3x3xf32>, tensor<5x3x3xf32>)
  return %r#0, %r#1 : tensor<5x3x3xf32>, tensor<5x3x3xf32>
}

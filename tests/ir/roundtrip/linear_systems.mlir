// RUN: smelt-opt %s | smelt-opt - | filecheck %s

// CHECK-LABEL: func.func @solve(
// CHECK: "smelt.solve"(%{{.*}}, %{{.*}}) : (tensor<3x3xf32>, tensor<5x3x2xf32>) -> tensor<5x3x2xf32>
func.func @solve(%a: tensor<3x3xf32>, %b: tensor<5x3x2xf32>) -> (tensor<5x3x2xf32>) {
  %r = "smelt.solve"(%a, %b) : (tensor<3x3xf32>, tensor<5x3x2xf32>) -> tensor<5x3x2xf32>
  return %r : tensor<5x3x2xf32>
}

// CHECK-LABEL: func.func @inv(
// CHECK: "smelt.inv"(%{{.*}}) : (tensor<5x3x3xf64>) -> tensor<5x3x3xf64>
func.func @inv(%a: tensor<5x3x3xf64>) -> (tensor<5x3x3xf64>) {
  %r = "smelt.inv"(%a) : (tensor<5x3x3xf64>) -> tensor<5x3x3xf64>
  return %r : tensor<5x3x3xf64>
}

// CHECK-LABEL: func.func @det(
// CHECK: "smelt.det"(%{{.*}}) : (tensor<3x3xcomplex<f32>>) -> tensor<complex<f32>>
func.func @det(%a: tensor<3x3xcomplex<f32>>) -> (tensor<complex<f32>>) {
  %r = "smelt.det"(%a) : (tensor<3x3xcomplex<f32>>) -> tensor<complex<f32>>
  return %r : tensor<complex<f32>>
}

// CHECK-LABEL: func.func @adjugate(
// CHECK: "smelt.adjugate"(%{{.*}}) : (tensor<5x3x3xf32>) -> tensor<5x3x3xf32>
func.func @adjugate(%a: tensor<5x3x3xf32>) -> (tensor<5x3x3xf32>) {
  %r = "smelt.adjugate"(%a) : (tensor<5x3x3xf32>) -> tensor<5x3x3xf32>
  return %r : tensor<5x3x3xf32>
}

// CHECK-LABEL: func.func @slogdet(
// CHECK: %[[R:.*]]:2 = "smelt.slogdet"(%{{.*}}) : (tensor<5x3x3xcomplex<f32>>) -> (tensor<5xcomplex<f32>>, tensor<5xf32>)
// CHECK: return %[[R]]#0, %[[R]]#1
func.func @slogdet(%a: tensor<5x3x3xcomplex<f32>>) -> (tensor<5xcomplex<f32>>, tensor<5xf32>) {
  %r:2 = "smelt.slogdet"(%a) : (tensor<5x3x3xcomplex<f32>>) -> (tensor<5xcomplex<f32>>, tensor<5xf32>)
  return %r#0, %r#1 : tensor<5xcomplex<f32>>, tensor<5xf32>
}

// CHECK-LABEL: func.func @lu(
// CHECK: %[[R:.*]]:3 = "smelt.lu"(%{{.*}}) : (tensor<2x4x3xf32>) -> (tensor<2x4x3xf32>, tensor<2x3xui32>, tensor<2x4xui32>)
// CHECK: return %[[R]]#0, %[[R]]#1, %[[R]]#2
func.func @lu(%a: tensor<2x4x3xf32>) -> (tensor<2x4x3xf32>, tensor<2x3xui32>, tensor<2x4xui32>) {
  %r:3 = "smelt.lu"(%a) : (tensor<2x4x3xf32>) -> (tensor<2x4x3xf32>, tensor<2x3xui32>, tensor<2x4xui32>)
  return %r#0, %r#1, %r#2 : tensor<2x4x3xf32>, tensor<2x3xui32>, tensor<2x4xui32>
}

// CHECK-LABEL: func.func @permutation_of_pivots(
// CHECK: "smelt.permutation_of_pivots"(%{{.*}}) : (tensor<2x3xi32>) -> tensor<2x3xui32>
func.func @permutation_of_pivots(%p: tensor<2x3xi32>) -> (tensor<2x3xui32>) {
  %r = "smelt.permutation_of_pivots"(%p) : (tensor<2x3xi32>) -> tensor<2x3xui32>
  return %r : tensor<2x3xui32>
}

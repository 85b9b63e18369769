// RUN: smelt-opt %s | smelt-opt - | filecheck %s

// CHECK-LABEL: func.func @cholesky(
// CHECK: "smelt.cholesky"(%{{.*}}) : (tensor<5x3x3xf64>) -> tensor<5x3x3xf64>
func.func @cholesky(%a: tensor<5x3x3xf64>) -> (tensor<5x3x3xf64>) {
  %r = "smelt.cholesky"(%a) : (tensor<5x3x3xf64>) -> tensor<5x3x3xf64>
  return %r : tensor<5x3x3xf64>
}

// CHECK-LABEL: func.func @qr(
// CHECK: %[[R:.*]]:2 = "smelt.qr"(%{{.*}}) : (tensor<2x4xf32>) -> (tensor<2x2xf32>, tensor<2x4xf32>)
// CHECK: return %[[R]]#0, %[[R]]#1
func.func @qr(%a: tensor<2x4xf32>) -> (tensor<2x2xf32>, tensor<2x4xf32>) {
  %r:2 = "smelt.qr"(%a) : (tensor<2x4xf32>) -> (tensor<2x2xf32>, tensor<2x4xf32>)
  return %r#0, %r#1 : tensor<2x2xf32>, tensor<2x4xf32>
}

// CHECK-LABEL: func.func @solve_triangular(
// CHECK: "smelt.solve_triangular"(%{{.*}}, %{{.*}}) {upper = true} : (tensor<3x3xf32>, tensor<5x3x2xf32>) -> tensor<5x3x2xf32>
func.func @solve_triangular(%a: tensor<3x3xf32>, %b: tensor<5x3x2xf32>) -> (tensor<5x3x2xf32>) {
  %r = "smelt.solve_triangular"(%a, %b) {upper = true} : (tensor<3x3xf32>, tensor<5x3x2xf32>) -> tensor<5x3x2xf32>
  return %r : tensor<5x3x2xf32>
}

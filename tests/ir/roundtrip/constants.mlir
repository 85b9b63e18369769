// RUN: smelt-opt %s | smelt-opt - | filecheck %s

// CHECK-LABEL: func.func @constant(
// CHECK: "smelt.constant"() {dtype = f32, value = 5.000000e-01 : f64} : () -> tensor<f32>
func.func @constant() -> (tensor<f32>) {
  %r = "smelt.constant"() {value = 5.000000e-01 : f64, dtype = f32} : () -> tensor<f32>
  return %r : tensor<f32>
}

// CHECK-LABEL: func.func @literal(
// CHECK: "smelt.literal"() {value = dense<[1, 2]> : tensor<2xi32>} : () -> tensor<2xi32>
func.func @literal() -> (tensor<2xi32>) {
  %r = "smelt.literal"() {value = dense<[1, 2]> : tensor<2xi32>} : () -> tensor<2xi32>
  return %r : tensor<2xi32>
}

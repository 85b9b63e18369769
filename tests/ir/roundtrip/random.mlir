// RUN: smelt-opt %s | smelt-opt - | filecheck %s

// CHECK-LABEL: func.func @random_bits(
// CHECK: "smelt.random_bits"(%{{.*}}) {shape = array<i64: 4>, width = 32 : i64} : (tensor<2xui32>) -> tensor<4xui32>
func.func @random_bits(%key: tensor<2xui32>) -> (tensor<4xui32>) {
  %r = "smelt.random_bits"(%key) {shape = array<i64: 4>, width = 32 : i64} : (tensor<2xui32>) -> tensor<4xui32>
  return %r : tensor<4xui32>
}

// RUN: smelt-opt %s | smelt-opt - | filecheck %s

// CHECK-LABEL: func.func @barrier(
// CHECK: "smelt.barrier"(%{{.*}}) : (tensor<4xf32>) -> tensor<4xf32>
func.func @barrier(%x: tensor<4xf32>) -> (tensor<4xf32>) {
  %r = "smelt.barrier"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

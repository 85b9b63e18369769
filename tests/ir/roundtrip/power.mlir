// RUN: smelt-opt %s | smelt-opt - | filecheck %s

// CHECK-LABEL: func.func @power(
// CHECK: "smelt.power"(%{{.*}}, %{{.*}}) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
func.func @power(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>) {
  %r = "smelt.power"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @arctan2(
// CHECK: "smelt.arctan2"(%{{.*}}, %{{.*}}) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
func.func @arctan2(%y: tensor<4xf32>, %x: tensor<4xf32>) -> (tensor<4xf32>) {
  %r = "smelt.arctan2"(%y, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @cbrt(
// CHECK: "smelt.cbrt"(%{{.*}}) : (tensor<4xf32>) -> tensor<4xf32>
func.func @cbrt(%x: tensor<4xf32>) -> (tensor<4xf32>) {
  %r = "smelt.cbrt"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

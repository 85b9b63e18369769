// RUN: smelt-opt %s | smelt-opt - | filecheck %s

// CHECK-LABEL: func.func @round(
// CHECK: "smelt.round"(%{{.*}}) : (tensor<4xf32>) -> tensor<4xf32>
func.func @round(%x: tensor<4xf32>) -> (tensor<4xf32>) {
  %r = "smelt.round"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @floor(
// CHECK: "smelt.floor"(%{{.*}}) : (tensor<4xf32>) -> tensor<4xf32>
func.func @floor(%x: tensor<4xf32>) -> (tensor<4xf32>) {
  %r = "smelt.floor"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @ceil(
// CHECK: "smelt.ceil"(%{{.*}}) : (tensor<4xf32>) -> tensor<4xf32>
func.func @ceil(%x: tensor<4xf32>) -> (tensor<4xf32>) {
  %r = "smelt.ceil"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @trunc(
// CHECK: "smelt.trunc"(%{{.*}}) : (tensor<4xf32>) -> tensor<4xf32>
func.func @trunc(%x: tensor<4xf32>) -> (tensor<4xf32>) {
  %r = "smelt.trunc"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

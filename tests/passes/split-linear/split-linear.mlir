// What depends on the last argument becomes @main.linear; what it needs of the rest, @main returns.
// RUN: smelt-opt %s --split-linear='primals=1 results=1' | filecheck %s

// CHECK-LABEL: func.func @main(
// CHECK-NEXT: %[[V0:.*]] = "smelt.sin"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.cos"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V2:.*]] = "smelt.reduce_sum"(%[[V0]]) {axes = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
// CHECK-NEXT: return %[[V2]], %[[V1]], %[[V0]] : tensor<f32>, tensor<4xf32>, tensor<4xf32>
// CHECK-LABEL: func.func @main.linear(
// CHECK-NEXT: %[[V0:.*]] = "smelt.mul"(%arg2, %arg0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.reduce_sum"(%[[V0]]) {axes = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
// CHECK-NEXT: return %[[V1]], %arg1 : tensor<f32>, tensor<4xf32>
func.func @main(%x: tensor<4xf32>, %t: tensor<4xf32>) -> (tensor<f32>, tensor<f32>, tensor<4xf32>) {
  %0 = "smelt.sin"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "smelt.cos"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = "smelt.mul"(%t, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %3 = "smelt.reduce_sum"(%0) {axes = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  %4 = "smelt.reduce_sum"(%2) {axes = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  return %3, %4, %0 : tensor<f32>, tensor<f32>, tensor<4xf32>
}

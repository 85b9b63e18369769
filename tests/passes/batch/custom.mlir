// The batch rule serves calls of its size and axes.
// RUN: smelt-opt %s --batch | filecheck %s

func.func private @g_batch(%x: tensor<8x4xf32>) -> tensor<4x8xf32> {
  %0 = "smelt.transpose"(%x) {permutation = array<i64: 1, 0>} : (tensor<8x4xf32>) -> tensor<4x8xf32>
  %1 = "smelt.abs"(%0) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}
func.func private @g(%x: tensor<4xf32>) -> tensor<4xf32> attributes {smelt.custom_batch = @g_batch, smelt.batch_size = 8 : i64, smelt.batch_axes = array<i64: 0>, smelt.batch_out_axes = array<i64: 1>} {
  %0 = "smelt.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "smelt.sin"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @g(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// CHECK-LABEL: func.func private @f_batch(
// CHECK-NEXT: %[[V0:.*]] = "smelt.sin"(%arg0) : (tensor<8x4xf32>) -> tensor<8x4xf32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.transpose"(%[[V0]]) {permutation = array<i64: 1, 0>} : (tensor<8x4xf32>) -> tensor<4x8xf32>
// CHECK-NEXT: %[[V2:.*]] = "smelt.abs"(%[[V1]]) : (tensor<4x8xf32>) -> tensor<4x8xf32>
// CHECK-NEXT: %[[V3:.*]] = "smelt.transpose"(%[[V2]]) {permutation = array<i64: 1, 0>} : (tensor<4x8xf32>) -> tensor<8x4xf32>
// CHECK-NEXT: return %[[V3]] : tensor<8x4xf32>
func.func @main(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %f = func.constant @f : (tensor<4xf32>) -> tensor<4xf32>
  %d = "smelt.batch"(%f) {size = 8 : i64, in_axes = array<i64: 0>, out_axes = array<i64: 0>} : ((tensor<4xf32>) -> tensor<4xf32>) -> ((tensor<8x4xf32>) -> tensor<8x4xf32>)
  %r = func.call_indirect %d(%x) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %r : tensor<8x4xf32>
}

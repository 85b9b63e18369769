// smelt.batch of a function is a function with one axis more.
// RUN: smelt-opt %s --batch | filecheck %s

func.func private @f(%x: tensor<4xf32>, %w: tensor<4xf32>) -> (tensor<f32>, tensor<4xf32>) {
  %0 = "smelt.mul"(%x, %w) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = "smelt.reduce_sum"(%0) {axes = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  %2 = "smelt.exp"(%w) : (tensor<4xf32>) -> tensor<4xf32>
  return %1, %2 : tensor<f32>, tensor<4xf32>
}

// The second result does not depend on the batch and keeps its shape.
// CHECK-LABEL: func.func private @f_batch(
// CHECK-NEXT: %[[V0:.*]] = "smelt.transpose"(%arg0) {permutation = array<i64: 1, 0>} : (tensor<4x8xf32>) -> tensor<8x4xf32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.broadcast"(%arg1) {shape = array<i64: 8, 4>} : (tensor<4xf32>) -> tensor<8x4xf32>
// CHECK-NEXT: %[[V2:.*]] = "smelt.mul"(%[[V0]], %[[V1]]) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
// CHECK-NEXT: %[[V3:.*]] = "smelt.reduce_sum"(%[[V2]]) {axes = array<i64: 1>} : (tensor<8x4xf32>) -> tensor<8xf32>
// CHECK-NEXT: %[[V4:.*]] = "smelt.exp"(%arg1) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: return %[[V3]], %[[V4]] : tensor<8xf32>, tensor<4xf32>
// CHECK-LABEL: func.func @main(
// CHECK-NEXT: %[[VF:.*]] = constant @f : (tensor<4xf32>, tensor<4xf32>) -> (tensor<f32>, tensor<4xf32>)
// CHECK-NEXT: %[[VF_0:.*]] = constant @f_batch : (tensor<4x8xf32>, tensor<4xf32>) -> (tensor<8xf32>, tensor<4xf32>)
// CHECK-NEXT: %[[V0:.*]]:2 = call_indirect %[[VF_0]](%arg0, %arg1) : (tensor<4x8xf32>, tensor<4xf32>) -> (tensor<8xf32>, tensor<4xf32>)
// CHECK-NEXT: return %[[V0]]#0, %[[V0]]#1 : tensor<8xf32>, tensor<4xf32>
func.func @main(%x: tensor<4x8xf32>, %w: tensor<4xf32>) -> (tensor<8xf32>, tensor<4xf32>) {
  %f = func.constant @f : (tensor<4xf32>, tensor<4xf32>) -> (tensor<f32>, tensor<4xf32>)
  %v = "smelt.batch"(%f) {size = 8 : i64, in_axes = array<i64: 1, -1>, out_axes = array<i64: 0, -1>} : ((tensor<4xf32>, tensor<4xf32>) -> (tensor<f32>, tensor<4xf32>)) -> ((tensor<4x8xf32>, tensor<4xf32>) -> (tensor<8xf32>, tensor<4xf32>))
  %r:2 = func.call_indirect %v(%x, %w) : (tensor<4x8xf32>, tensor<4xf32>) -> (tensor<8xf32>, tensor<4xf32>)
  return %r#0, %r#1 : tensor<8xf32>, tensor<4xf32>
}

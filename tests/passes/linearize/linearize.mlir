// smelt.vjp becomes the function with its residuals, the tangent map, and the latter's transpose.
// RUN: smelt-opt %s --linearize | filecheck %s

func.func private @f(%x: tensor<4xf32>) -> tensor<f32> {
  %0 = "smelt.sin"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "smelt.reduce_sum"(%0) {axes = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}

// CHECK-LABEL: func.func private @f_primal(
// CHECK-NEXT: %[[V0:.*]] = "smelt.sin"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.cos"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V2:.*]] = "smelt.reduce_sum"(%[[V0]]) {axes = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
// CHECK-NEXT: return %[[V2]], %[[V1]] : tensor<f32>, tensor<4xf32>
// CHECK-LABEL: func.func private @f_tangent(
// CHECK-NEXT: %[[V0:.*]] = "smelt.mul"(%arg1, %arg0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.reduce_sum"(%[[V0]]) {axes = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
// CHECK-NEXT: return %[[V1]] : tensor<f32>
// CHECK-LABEL: func.func private @f_vjp(
// CHECK-NEXT: %[[V0:.*]]:2 = call @f_primal(%arg0) : (tensor<4xf32>) -> (tensor<f32>, tensor<4xf32>)
// CHECK-NEXT: %[[VF:.*]] = constant @f_tangent : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.linear_transpose"(%[[VF]]) {wrt = array<i64: 1>} : ((tensor<4xf32>, tensor<4xf32>) -> tensor<f32>) -> ((tensor<4xf32>, tensor<f32>) -> tensor<4xf32>)
// CHECK-NEXT: %[[V2:.*]] = call_indirect %[[V1]](%[[V0]]#1, %arg1) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
// CHECK-NEXT: return %[[V0]]#0, %[[V2]] : tensor<f32>, tensor<4xf32>
// CHECK-LABEL: func.func @main(
// CHECK-NEXT: %[[VF:.*]] = constant @f : (tensor<4xf32>) -> tensor<f32>
// CHECK-NEXT: %[[VF_0:.*]] = constant @f_vjp : (tensor<4xf32>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>)
// CHECK-NEXT: %[[V0:.*]]:2 = call_indirect %[[VF_0]](%arg0, %arg1) : (tensor<4xf32>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>)
// CHECK-NEXT: return %[[V0]]#1 : tensor<4xf32>
func.func @main(%x: tensor<4xf32>, %ct: tensor<f32>) -> tensor<4xf32> {
  %f = func.constant @f : (tensor<4xf32>) -> tensor<f32>
  %d = "smelt.vjp"(%f) {wrt = array<i64: 0>, seeds = array<i64: 0>} : ((tensor<4xf32>) -> tensor<f32>) -> ((tensor<4xf32>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>))
  %r:2 = func.call_indirect %d(%x, %ct) : (tensor<4xf32>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>)
  return %r#1 : tensor<4xf32>
}

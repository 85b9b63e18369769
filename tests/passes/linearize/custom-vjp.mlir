// The tangent of a function with a vjp rule is known by its transpose only; the rule gets argument and result.
// RUN: smelt-opt %s --linearize | filecheck %s

func.func private @g_vjp(%x: tensor<4xf32>, %y: tensor<4xf32>, %ct: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "smelt.abs"(%y) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "smelt.mul"(%ct, %0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @g(%x: tensor<4xf32>) -> tensor<4xf32> attributes {smelt.custom_vjp = @g_vjp} {
  %0 = "smelt.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "smelt.sin"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @g(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// CHECK-LABEL: func.func private @g_linear(
// CHECK-SAME: attributes {smelt.custom_transpose = @g_vjp}
// CHECK-LABEL: func.func private @f_primal(
// CHECK-NEXT: %[[V0:.*]] = "smelt.sin"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.cos"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V2:.*]] = call @g(%[[V0]]) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: return %[[V2]], %[[V1]], %[[V0]], %[[V2]] : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
// CHECK-LABEL: func.func private @f_tangent(
// CHECK-NEXT: %[[V0:.*]] = "smelt.mul"(%arg3, %arg0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V1:.*]] = call @g_linear(%arg1, %arg2, %[[V0]]) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: return %[[V1]] : tensor<4xf32>
// CHECK-LABEL: func.func @main(
// CHECK-NEXT: %[[VF:.*]] = constant @f : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[VF_0:.*]] = constant @f_vjp : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
// CHECK-NEXT: %[[V0:.*]]:2 = call_indirect %[[VF_0]](%arg0, %arg1) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
// CHECK-NEXT: return %[[V0]]#0, %[[V0]]#1 : tensor<4xf32>, tensor<4xf32>
func.func @main(%x: tensor<4xf32>, %ct: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %f = func.constant @f : (tensor<4xf32>) -> tensor<4xf32>
  %d = "smelt.vjp"(%f) {wrt = array<i64: 0>, seeds = array<i64: 0>} : ((tensor<4xf32>) -> tensor<4xf32>) -> ((tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>))
  %r:2 = func.call_indirect %d(%x, %ct) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %r#0, %r#1 : tensor<4xf32>, tensor<4xf32>
}

// Reverse mode transposes a jvp rule.
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,batch,jvp,linearize,transpose),canonicalize,cse,dce' | filecheck %s

func.func private @g_jvp(%x: tensor<4xf32>, %t: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "smelt.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "smelt.abs"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = "smelt.mul"(%t, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}
func.func private @g(%x: tensor<4xf32>) -> tensor<4xf32> attributes {smelt.custom_jvp = @g_jvp} {
  %0 = "smelt.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "smelt.sin"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @g(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// CHECK-LABEL: func.func @main(
// CHECK-NEXT: %[[V0:.*]] = "smelt.sin"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.cos"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V2:.*]] = "smelt.exp"(%[[V0]]) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V3:.*]] = "smelt.abs"(%[[V2]]) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V4:.*]] = "smelt.mul"(%arg1, %[[V3]]) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V5:.*]] = "smelt.mul"(%[[V4]], %[[V1]]) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: return %[[V2]], %[[V5]] : tensor<4xf32>, tensor<4xf32>
func.func @main(%x: tensor<4xf32>, %ct: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %f = func.constant @f : (tensor<4xf32>) -> tensor<4xf32>
  %d = "smelt.vjp"(%f) {wrt = array<i64: 0>, seeds = array<i64: 0>} : ((tensor<4xf32>) -> tensor<4xf32>) -> ((tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>))
  %r:2 = func.call_indirect %d(%x, %ct) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %r#0, %r#1 : tensor<4xf32>, tensor<4xf32>
}

// neg is cheap: it is computed again for the pullback; exp is kept.
// RUN: smelt-opt %s --linearize --remat | filecheck %s

func.func private @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "smelt.neg"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "smelt.exp"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = "smelt.mul"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// CHECK-LABEL: func.func private @f_primal_remat(
// CHECK-NEXT: %[[V0:.*]] = "smelt.neg"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.exp"(%[[V0]]) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V2:.*]] = "smelt.mul"(%[[V0]], %[[V1]]) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: return %[[V2]], %[[V1]] : tensor<4xf32>, tensor<4xf32>
// CHECK-LABEL: func.func private @f_tangent_remat(
// CHECK-NEXT: %[[V0:.*]] = "smelt.barrier"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.neg"(%[[V0]]) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V2:.*]] = "smelt.neg"(%arg2) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V3:.*]] = "smelt.mul"(%[[V2]], %arg1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V4:.*]] = "smelt.mul"(%[[V2]], %arg1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V5:.*]] = "smelt.mul"(%[[V1]], %[[V3]]) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V6:.*]] = "smelt.add"(%[[V4]], %[[V5]]) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: return %[[V6]] : tensor<4xf32>
// CHECK-LABEL: func.func private @f_vjp(
// CHECK-NEXT: %[[V0:.*]]:2 = call @f_primal_remat(%arg0) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
// CHECK-NEXT: %[[VF:.*]] = constant @f_tangent_remat : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.linear_transpose"(%[[VF]]) {wrt = array<i64: 2>} : ((tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>) -> ((tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>)
// CHECK-NEXT: %[[V2:.*]] = call_indirect %[[V1]](%arg0, %[[V0]]#1, %arg1) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: return %[[V0]]#0, %[[V2]] : tensor<4xf32>, tensor<4xf32>
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

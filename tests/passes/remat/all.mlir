// Both residuals are worth computing again; cse does not merge them with the forward work.
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,linearize,remat{max-flops=100},transpose),canonicalize,cse,dce' | filecheck %s

func.func private @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "smelt.neg"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "smelt.exp"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = "smelt.mul"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// CHECK-LABEL: func.func @main(
// CHECK-NEXT: %[[V0:.*]] = "smelt.neg"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.exp"(%[[V0]]) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V2:.*]] = "smelt.mul"(%[[V0]], %[[V1]]) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V3:.*]] = "smelt.barrier"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V4:.*]] = "smelt.neg"(%[[V3]]) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V5:.*]] = "smelt.exp"(%[[V4]]) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V6:.*]] = "smelt.mul"(%arg1, %[[V4]]) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V7:.*]] = "smelt.mul"(%arg1, %[[V5]]) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V8:.*]] = "smelt.mul"(%[[V6]], %[[V5]]) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V9:.*]] = "smelt.add"(%[[V7]], %[[V8]]) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V10:.*]] = "smelt.neg"(%[[V9]]) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: return %[[V2]], %[[V10]] : tensor<4xf32>, tensor<4xf32>
func.func @main(%x: tensor<4xf32>, %ct: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %f = func.constant @f : (tensor<4xf32>) -> tensor<4xf32>
  %d = "smelt.vjp"(%f) {wrt = array<i64: 0>, seeds = array<i64: 0>} : ((tensor<4xf32>) -> tensor<4xf32>) -> ((tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>))
  %r:2 = func.call_indirect %d(%x, %ct) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %r#0, %r#1 : tensor<4xf32>, tensor<4xf32>
}

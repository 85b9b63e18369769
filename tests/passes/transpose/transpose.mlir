// The transpose of a linear function: what does not depend on its linear arguments is computed forwards.
// RUN: smelt-opt %s --transpose | filecheck %s

func.func private @f(%r: tensor<4xf32>, %t: tensor<4xf32>) -> tensor<f32> {
  %0 = "smelt.cos"(%r) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "smelt.mul"(%t, %0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = "smelt.reduce_sum"(%1) {axes = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  return %2 : tensor<f32>
}

// An argument that does not reach the result has a cotangent of zero; one that is used twice, a sum.
func.func private @g(%s: tensor<4xf32>, %t: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "smelt.add"(%t, %t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// CHECK-LABEL: func.func private @f_transpose(
// CHECK-NEXT: %[[V0:.*]] = "smelt.cos"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.reshape"(%arg1) {shape = array<i64: 1>} : (tensor<f32>) -> tensor<1xf32>
// CHECK-NEXT: %[[V2:.*]] = "smelt.broadcast"(%[[V1]]) {shape = array<i64: 4>} : (tensor<1xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V3:.*]] = "smelt.mul"(%[[V2]], %[[V0]]) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: return %[[V3]] : tensor<4xf32>
// CHECK-LABEL: func.func private @g_transpose(
// CHECK-NEXT: %[[V0:.*]] = "smelt.add"(%arg0, %arg0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.constant"() {dtype = f32, value = 0 : i64} : () -> tensor<f32>
// CHECK-NEXT: %[[V2:.*]] = "smelt.broadcast"(%[[V1]]) {shape = array<i64: 4>} : (tensor<f32>) -> tensor<4xf32>
// CHECK-NEXT: return %[[V2]], %[[V0]] : tensor<4xf32>, tensor<4xf32>
// CHECK-LABEL: func.func @main(
// CHECK-NEXT: %[[VF:.*]] = constant @f : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>
// CHECK-NEXT: %[[VF_0:.*]] = constant @f_transpose : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V0:.*]] = call_indirect %[[VF_0]](%arg0, %arg1) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
// CHECK-NEXT: %[[VF_1:.*]] = constant @g : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[VF_2:.*]] = constant @g_transpose : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
// CHECK-NEXT: %[[V1:.*]]:2 = call_indirect %[[VF_2]](%arg2) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
// CHECK-NEXT: return %[[V0]], %[[V1]]#0, %[[V1]]#1 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
func.func @main(%r: tensor<4xf32>, %ct: tensor<f32>, %cv: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %f = func.constant @f : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>
  %ft = "smelt.linear_transpose"(%f) {wrt = array<i64: 1>} : ((tensor<4xf32>, tensor<4xf32>) -> tensor<f32>) -> ((tensor<4xf32>, tensor<f32>) -> tensor<4xf32>)
  %0 = func.call_indirect %ft(%r, %ct) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %g = func.constant @g : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %gt = "smelt.linear_transpose"(%g) {wrt = array<i64: 0, 1>} : ((tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>) -> ((tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>))
  %1:2 = func.call_indirect %gt(%cv) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %0, %1#0, %1#1 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

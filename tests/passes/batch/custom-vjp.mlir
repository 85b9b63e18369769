// Without a batch rule the function and its other rules are batched.
// RUN: smelt-opt %s --batch | filecheck %s

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

// CHECK-LABEL: func.func private @g_vjp_batch(
// CHECK-NEXT: %[[V0:.*]] = "smelt.abs"(%arg1) : (tensor<8x4xf32>) -> tensor<8x4xf32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.mul"(%arg2, %[[V0]]) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
// CHECK-NEXT: return %[[V1]] : tensor<8x4xf32>
// CHECK-LABEL: func.func private @g_batch(
// CHECK-NEXT: %[[V0:.*]] = "smelt.exp"(%arg0) : (tensor<8x4xf32>) -> tensor<8x4xf32>
// CHECK-NEXT: return %[[V0]] : tensor<8x4xf32>
// CHECK-LABEL: func.func private @f_batch(
// CHECK-NEXT: %[[V0:.*]] = "smelt.sin"(%arg0) : (tensor<8x4xf32>) -> tensor<8x4xf32>
// CHECK-NEXT: %[[V1:.*]] = call @g_batch(%[[V0]]) : (tensor<8x4xf32>) -> tensor<8x4xf32>
// CHECK-NEXT: return %[[V1]] : tensor<8x4xf32>
func.func @main(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %f = func.constant @f : (tensor<4xf32>) -> tensor<4xf32>
  %d = "smelt.batch"(%f) {size = 8 : i64, in_axes = array<i64: 0>, out_axes = array<i64: 0>} : ((tensor<4xf32>) -> tensor<4xf32>) -> ((tensor<8x4xf32>) -> tensor<8x4xf32>)
  %r = func.call_indirect %d(%x) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %r : tensor<8x4xf32>
}

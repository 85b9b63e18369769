// A function that still holds a call is differentiated in a later round, after inline.
// RUN: smelt-opt %s --jvp | filecheck %s

func.func private @g(%x: tensor<f32>) -> tensor<f32> {
  return %x : tensor<f32>
}

func.func private @f(%x: tensor<f32>) -> tensor<f32> {
  %0 = func.call @g(%x) : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// CHECK-LABEL: func.func @main(
// CHECK-NEXT: %[[VF:.*]] = constant @f : (tensor<f32>) -> tensor<f32>
// CHECK-NEXT: %[[V0:.*]] = "smelt.jvp"(%[[VF]]) {wrt = array<i64: 0>} : ((tensor<f32>) -> tensor<f32>) -> ((tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>))
// CHECK-NEXT: %[[V1:.*]]:2 = call_indirect %[[V0]](%arg0, %arg1) : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
// CHECK-NEXT: return %[[V1]]#1 : tensor<f32>
func.func @main(%x: tensor<f32>, %t: tensor<f32>) -> tensor<f32> {
  %f = func.constant @f : (tensor<f32>) -> tensor<f32>
  %d = "smelt.jvp"(%f) {wrt = array<i64: 0>} : ((tensor<f32>) -> tensor<f32>) -> ((tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>))
  %r:2 = func.call_indirect %d(%x, %t) : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
  return %r#1 : tensor<f32>
}

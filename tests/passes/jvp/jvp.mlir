// smelt.jvp of a function is a function.
// RUN: smelt-opt %s --jvp | filecheck %s

func.func private @f(%x: tensor<4xf32>, %n: tensor<4xi32>) -> (tensor<4xf32>, tensor<4xi32>) {
  %0 = "smelt.sin"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %n : tensor<4xf32>, tensor<4xi32>
}

// The tangent of an integer is zero.
// CHECK-LABEL: func.func private @f_jvp(
// CHECK-NEXT: %[[V0:.*]] = "smelt.sin"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.cos"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V2:.*]] = "smelt.mul"(%arg2, %[[V1]]) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V3:.*]] = "smelt.constant"() {dtype = i32, value = 0 : i64} : () -> tensor<i32>
// CHECK-NEXT: %[[V4:.*]] = "smelt.broadcast"(%[[V3]]) {shape = array<i64: 4>} : (tensor<i32>) -> tensor<4xi32>
// CHECK-NEXT: return %[[V0]], %arg1, %[[V2]], %[[V4]] : tensor<4xf32>, tensor<4xi32>, tensor<4xf32>, tensor<4xi32>
// CHECK-LABEL: func.func @main(
// CHECK-NEXT: %[[VF:.*]] = constant @f : (tensor<4xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xi32>)
// CHECK-NEXT: %[[VF_0:.*]] = constant @f_jvp : (tensor<4xf32>, tensor<4xi32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xi32>, tensor<4xf32>, tensor<4xi32>)
// CHECK-NEXT: %[[V0:.*]]:4 = call_indirect %[[VF_0]](%arg0, %arg1, %arg2) : (tensor<4xf32>, tensor<4xi32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xi32>, tensor<4xf32>, tensor<4xi32>)
// CHECK-NEXT: return %[[V0]]#0, %[[V0]]#1, %[[V0]]#2, %[[V0]]#3 : tensor<4xf32>, tensor<4xi32>, tensor<4xf32>, tensor<4xi32>
func.func @main(%x: tensor<4xf32>, %n: tensor<4xi32>, %t: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xi32>, tensor<4xf32>, tensor<4xi32>) {
  %f = func.constant @f : (tensor<4xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xi32>)
  %d = "smelt.jvp"(%f) {wrt = array<i64: 0>} : ((tensor<4xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xi32>)) -> ((tensor<4xf32>, tensor<4xi32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xi32>, tensor<4xf32>, tensor<4xi32>))
  %r:4 = func.call_indirect %d(%x, %n, %t) : (tensor<4xf32>, tensor<4xi32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xi32>, tensor<4xf32>, tensor<4xi32>)
  return %r#0, %r#1, %r#2, %r#3 : tensor<4xf32>, tensor<4xi32>, tensor<4xf32>, tensor<4xi32>
}

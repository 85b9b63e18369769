// The second derivative of a sum of cubes, over a batch; and its values.
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,batch,jvp,linearize,transpose),canonicalize,cse,dce' | filecheck %s
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,batch,jvp,linearize,transpose)' --execute | filecheck %s --check-prefix=VALUE

func.func private @f(%x: tensor<2xf32>) -> tensor<f32> {
  %0 = "smelt.integer_power"(%x) {exponent = 3 : i64} : (tensor<2xf32>) -> tensor<2xf32>
  %1 = "smelt.reduce_sum"(%0) {axes = array<i64: 0>} : (tensor<2xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}

func.func private @gradient(%x: tensor<2xf32>) -> tensor<2xf32> {
  %one = "smelt.constant"() {value = 1.0 : f64, dtype = f32} : () -> tensor<f32>
  %f = func.constant @f : (tensor<2xf32>) -> tensor<f32>
  %d = "smelt.vjp"(%f) {wrt = array<i64: 0>, seeds = array<i64: 0>} : ((tensor<2xf32>) -> tensor<f32>) -> ((tensor<2xf32>, tensor<f32>) -> (tensor<f32>, tensor<2xf32>))
  %r:2 = func.call_indirect %d(%x, %one) : (tensor<2xf32>, tensor<f32>) -> (tensor<f32>, tensor<2xf32>)
  return %r#1 : tensor<2xf32>
}

func.func private @second(%x: tensor<2xf32>, %t: tensor<2xf32>) -> tensor<2xf32> {
  %g = func.constant @gradient : (tensor<2xf32>) -> tensor<2xf32>
  %d = "smelt.jvp"(%g) {wrt = array<i64: 0>} : ((tensor<2xf32>) -> tensor<2xf32>) -> ((tensor<2xf32>, tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>))
  %r:2 = func.call_indirect %d(%x, %t) : (tensor<2xf32>, tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>)
  return %r#1 : tensor<2xf32>
}

// CHECK-LABEL: func.func @batched(
// CHECK-NEXT: %[[V0:.*]] = "smelt.constant"() {dtype = f32, value = 2 : i64} : () -> tensor<f32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.broadcast"(%[[V0]]) {shape = array<i64: 3, 2>} : (tensor<f32>) -> tensor<3x2xf32>
// CHECK-NEXT: %[[V2:.*]] = "smelt.mul"(%arg0, %[[V1]]) : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
// CHECK-NEXT: %[[V3:.*]] = "smelt.broadcast"(%arg1) {shape = array<i64: 3, 2>} : (tensor<2xf32>) -> tensor<3x2xf32>
// CHECK-NEXT: %[[V4:.*]] = "smelt.mul"(%[[V3]], %[[V2]]) : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
// CHECK-NEXT: %[[V5:.*]] = "smelt.constant"() {dtype = f32, value = 3 : i64} : () -> tensor<f32>
// CHECK-NEXT: %[[V6:.*]] = "smelt.broadcast"(%[[V5]]) {shape = array<i64: 3, 2>} : (tensor<f32>) -> tensor<3x2xf32>
// CHECK-NEXT: %[[V7:.*]] = "smelt.mul"(%[[V4]], %[[V6]]) : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
// CHECK-NEXT: return %[[V7]] : tensor<3x2xf32>
func.func @batched(%x: tensor<3x2xf32>, %t: tensor<2xf32>) -> tensor<3x2xf32> {
  %f = func.constant @second : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %v = "smelt.batch"(%f) {size = 3 : i64, in_axes = array<i64: 0, -1>, out_axes = array<i64: 0>} : ((tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>) -> ((tensor<3x2xf32>, tensor<2xf32>) -> tensor<3x2xf32>)
  %r = func.call_indirect %v(%x, %t) : (tensor<3x2xf32>, tensor<2xf32>) -> tensor<3x2xf32>
  return %r : tensor<3x2xf32>
}

// VALUE: dense<{{\[\[}}6.0, 120.0], [18.0, 240.0], [30.0, 360.0]]> : tensor<3x2xf32>
func.func @main() -> tensor<3x2xf32> {
  %x = "smelt.literal"() {value = dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]> : tensor<3x2xf32>} : () -> tensor<3x2xf32>
  %t = "smelt.literal"() {value = dense<[1.0, 10.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %r = func.call @batched(%x, %t) : (tensor<3x2xf32>, tensor<2xf32>) -> tensor<3x2xf32>
  return %r : tensor<3x2xf32>
}

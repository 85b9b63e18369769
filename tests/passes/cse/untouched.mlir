// What only looks equal.
// RUN: smelt-opt %s --cse | filecheck %s

// CHECK-LABEL: func.func @other_order(
// CHECK-NEXT: %[[V0:.*]] = "smelt.sub"(%arg0, %arg1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.sub"(%arg1, %arg0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: return %[[V0]], %[[V1]] : tensor<4xf32>, tensor<4xf32>
func.func @other_order(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = "smelt.sub"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = "smelt.sub"(%y, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @other_attributes(
// CHECK-NEXT: %[[V0:.*]] = "smelt.reduce_sum"(%arg0) {axes = array<i64: 0>} : (tensor<4x4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.reduce_sum"(%arg0) {axes = array<i64: 1>} : (tensor<4x4xf32>) -> tensor<4xf32>
// CHECK-NEXT: return %[[V0]], %[[V1]] : tensor<4xf32>, tensor<4xf32>
func.func @other_attributes(%x: tensor<4x4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = "smelt.reduce_sum"(%x) {axes = array<i64: 0>} : (tensor<4x4xf32>) -> tensor<4xf32>
  %1 = "smelt.reduce_sum"(%x) {axes = array<i64: 1>} : (tensor<4x4xf32>) -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @signs_of_zero(
// CHECK-NEXT: %[[V0:.*]] = "smelt.constant"() {dtype = f32, value = 0.000000e+00 : f64} : () -> tensor<f32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.constant"() {dtype = f32, value = -0.000000e+00 : f64} : () -> tensor<f32>
// CHECK-NEXT: return %[[V0]], %[[V1]] : tensor<f32>, tensor<f32>
func.func @signs_of_zero() -> (tensor<f32>, tensor<f32>) {
  %0 = "smelt.constant"() {value = 0.0 : f64, dtype = f32} : () -> tensor<f32>
  %1 = "smelt.constant"() {value = -0.0 : f64, dtype = f32} : () -> tensor<f32>
  return %0, %1 : tensor<f32>, tensor<f32>
}

// CHECK-LABEL: func.func @dtypes(
// CHECK-NEXT: %[[V0:.*]] = "smelt.constant"() {dtype = f32, value = 1 : i64} : () -> tensor<f32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.constant"() {dtype = i32, value = 1 : i64} : () -> tensor<i32>
// CHECK-NEXT: return %[[V0]], %[[V1]] : tensor<f32>, tensor<i32>
func.func @dtypes() -> (tensor<f32>, tensor<i32>) {
  %0 = "smelt.constant"() {value = 1 : i64, dtype = f32} : () -> tensor<f32>
  %1 = "smelt.constant"() {value = 1 : i64, dtype = i32} : () -> tensor<i32>
  return %0, %1 : tensor<f32>, tensor<i32>
}

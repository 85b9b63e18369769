// One update for each row of an array of one number.
// RUN: smelt-opt %s --canonicalize | filecheck %s

// CHECK-LABEL: func.func @added(
// CHECK-NOT: smelt.scatter
// CHECK: "smelt.iota"() {axis = 1 : i64, dtype = i32, shape = array<i64: 4, 5>}
// CHECK: "smelt.select"
func.func @added(%arg0: tensor<4x1x1x1xf32>, %arg1: tensor<4x1xi32>) -> tensor<4x5xf32> {
  %0 = "smelt.constant"() {dtype = f32, value = 0 : i64} : () -> tensor<f32>
  %1 = "smelt.broadcast"(%0) {shape = array<i64: 4, 5>} : (tensor<f32>) -> tensor<4x5xf32>
  %2 = "smelt.iota"() {axis = 0 : i64, dtype = i32, shape = array<i64: 4, 1>} : () -> tensor<4x1xi32>
  %3 = "smelt.scatter"(%1, %arg0, %2, %arg1) {axes = array<i64: 0, 1>, mode = "add"} : (tensor<4x5xf32>, tensor<4x1x1x1xf32>, tensor<4x1xi32>, tensor<4x1xi32>) -> tensor<4x5xf32>
  return %3 : tensor<4x5xf32>
}

// An index that does not count to the end of the axis is compared as a wider one.
// CHECK-LABEL: func.func @narrow(
// CHECK-NOT: smelt.scatter
// CHECK: "smelt.convert"(%arg1) {dtype = i64}
func.func @narrow(%arg0: tensor<1x1xf32>, %arg1: tensor<1xui8>) -> tensor<300xf32> {
  %0 = "smelt.constant"() {dtype = f32, value = 2 : i64} : () -> tensor<f32>
  %1 = "smelt.broadcast"(%0) {shape = array<i64: 300>} : (tensor<f32>) -> tensor<300xf32>
  %2 = "smelt.scatter"(%1, %arg0, %arg1) {axes = array<i64: 0>, mode = "set"} : (tensor<300xf32>, tensor<1x1xf32>, tensor<1xui8>) -> tensor<300xf32>
  return %2 : tensor<300xf32>
}

// Several updates of a row, places that are not the rows' own, and an array of many numbers stay.
// CHECK-LABEL: func.func @stays(
// CHECK-COUNT-3: "smelt.scatter"
func.func @stays(%arg0: tensor<4x2x1x1xf32>, %arg1: tensor<4x2xi32>, %arg2: tensor<4x5xf32>, %arg3: tensor<4x1x1x1xf32>, %arg4: tensor<4x1xi32>) -> (tensor<4x5xf32>, tensor<4x5xf32>, tensor<4x5xf32>) {
  %0 = "smelt.constant"() {dtype = f32, value = 0 : i64} : () -> tensor<f32>
  %1 = "smelt.broadcast"(%0) {shape = array<i64: 4, 5>} : (tensor<f32>) -> tensor<4x5xf32>
  %2 = "smelt.iota"() {axis = 0 : i64, dtype = i32, shape = array<i64: 4, 2>} : () -> tensor<4x2xi32>
  %3 = "smelt.scatter"(%1, %arg0, %2, %arg1) {axes = array<i64: 0, 1>, mode = "add"} : (tensor<4x5xf32>, tensor<4x2x1x1xf32>, tensor<4x2xi32>, tensor<4x2xi32>) -> tensor<4x5xf32>
  %4 = "smelt.scatter"(%1, %arg3, %arg4, %arg4) {axes = array<i64: 0, 1>, mode = "add"} : (tensor<4x5xf32>, tensor<4x1x1x1xf32>, tensor<4x1xi32>, tensor<4x1xi32>) -> tensor<4x5xf32>
  %5 = "smelt.iota"() {axis = 0 : i64, dtype = i32, shape = array<i64: 4, 1>} : () -> tensor<4x1xi32>
  %6 = "smelt.scatter"(%arg2, %arg3, %5, %arg4) {axes = array<i64: 0, 1>, mode = "add"} : (tensor<4x5xf32>, tensor<4x1x1x1xf32>, tensor<4x1xi32>, tensor<4x1xi32>) -> tensor<4x5xf32>
  return %3, %4, %6 : tensor<4x5xf32>, tensor<4x5xf32>, tensor<4x5xf32>
}

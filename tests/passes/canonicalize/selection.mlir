// Selections and truth values.
// RUN: smelt-opt %s --canonicalize | filecheck %s

// CHECK-LABEL: func.func @limit_of_index(
// CHECK-NEXT: %[[V0:.*]] = "smelt.argsort"(%arg0) {axis = 0 : i64} : (tensor<4xf32>) -> tensor<4xui32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.iota"() {axis = 0 : i64, dtype = i32, shape = array<i64: 4>} : () -> tensor<4xi32>
// CHECK-NEXT: return %[[V0]], %[[V1]] : tensor<4xui32>, tensor<4xi32>
func.func @limit_of_index(%arg0: tensor<4xf32>) -> (tensor<4xui32>, tensor<4xi32>) {
  %0 = "smelt.argsort"(%arg0) {axis = 0 : i64} : (tensor<4xf32>) -> tensor<4xui32>
  %1 = "smelt.constant"() {dtype = ui32, value = 3 : i64} : () -> tensor<ui32>
  %2 = "smelt.broadcast"(%1) {shape = array<i64: 4>} : (tensor<ui32>) -> tensor<4xui32>
  %3 = "smelt.minimum"(%0, %2) : (tensor<4xui32>, tensor<4xui32>) -> tensor<4xui32>
  %4 = "smelt.iota"() {axis = 0 : i64, dtype = i32, shape = array<i64: 4>} : () -> tensor<4xi32>
  %5 = "smelt.constant"() {dtype = i32, value = 0 : i64} : () -> tensor<i32>
  %6 = "smelt.broadcast"(%5) {shape = array<i64: 4>} : (tensor<i32>) -> tensor<4xi32>
  %7 = "smelt.maximum"(%4, %6) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  return %3, %7 : tensor<4xui32>, tensor<4xi32>
}

// CHECK-LABEL: func.func @limit_of_index_stays(
// CHECK-NEXT: %[[V0:.*]] = "smelt.argsort"(%arg0) {axis = 0 : i64} : (tensor<4xf32>) -> tensor<4xui32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.constant"() {dtype = ui32, value = 2 : i64} : () -> tensor<ui32>
// CHECK-NEXT: %[[V2:.*]] = "smelt.broadcast"(%[[V1]]) {shape = array<i64: 4>} : (tensor<ui32>) -> tensor<4xui32>
// CHECK-NEXT: %[[V3:.*]] = "smelt.minimum"(%[[V0]], %[[V2]]) : (tensor<4xui32>, tensor<4xui32>) -> tensor<4xui32>
// CHECK-NEXT: return %[[V3]] : tensor<4xui32>
func.func @limit_of_index_stays(%arg0: tensor<4xf32>) -> tensor<4xui32> {
  %0 = "smelt.argsort"(%arg0) {axis = 0 : i64} : (tensor<4xf32>) -> tensor<4xui32>
  %1 = "smelt.constant"() {dtype = ui32, value = 2 : i64} : () -> tensor<ui32>
  %2 = "smelt.broadcast"(%1) {shape = array<i64: 4>} : (tensor<ui32>) -> tensor<4xui32>
  %3 = "smelt.minimum"(%0, %2) : (tensor<4xui32>, tensor<4xui32>) -> tensor<4xui32>
  return %3 : tensor<4xui32>
}

// CHECK-LABEL: func.func @select_constant(
// CHECK-NEXT: return %arg0, %arg1 : tensor<4xf32>, tensor<4xf32>
func.func @select_constant(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = "smelt.constant"() {dtype = i1, value = true} : () -> tensor<i1>
  %1 = "smelt.broadcast"(%0) {shape = array<i64: 4>} : (tensor<i1>) -> tensor<4xi1>
  %2 = "smelt.select"(%1, %arg0, %arg1) : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %3 = "smelt.constant"() {dtype = i1, value = false} : () -> tensor<i1>
  %4 = "smelt.broadcast"(%3) {shape = array<i64: 4>} : (tensor<i1>) -> tensor<4xi1>
  %5 = "smelt.select"(%4, %arg0, %arg1) : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2, %5 : tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @select_equal(
// CHECK-NEXT: %[[V0:.*]] = "smelt.constant"() {dtype = f32, value = 2.000000e+00 : f64} : () -> tensor<f32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.broadcast"(%[[V0]]) {shape = array<i64: 4>} : (tensor<f32>) -> tensor<4xf32>
// CHECK-NEXT: return %arg1, %[[V1]] : tensor<4xf32>, tensor<4xf32>
func.func @select_equal(%arg0: tensor<4xi1>, %arg1: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = "smelt.select"(%arg0, %arg1, %arg1) : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = "smelt.constant"() {dtype = f32, value = 2.000000e+00 : f64} : () -> tensor<f32>
  %2 = "smelt.broadcast"(%1) {shape = array<i64: 4>} : (tensor<f32>) -> tensor<4xf32>
  %3 = "smelt.constant"() {dtype = f32, value = 2.000000e+00 : f64} : () -> tensor<f32>
  %4 = "smelt.broadcast"(%3) {shape = array<i64: 4>} : (tensor<f32>) -> tensor<4xf32>
  %5 = "smelt.select"(%arg0, %2, %4) : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0, %5 : tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @select_of_not(
// CHECK-NEXT: %[[V0:.*]] = "smelt.select"(%arg0, %arg2, %arg1) : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: return %[[V0]] : tensor<4xf32>
func.func @select_of_not(%arg0: tensor<4xi1>, %arg1: tensor<4xf32>, %arg2: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "smelt.logical_not"(%arg0) : (tensor<4xi1>) -> tensor<4xi1>
  %1 = "smelt.select"(%0, %arg1, %arg2) : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// CHECK-LABEL: func.func @select_of_bools(
// CHECK-NEXT: return %arg0 : tensor<4xi1>
func.func @select_of_bools(%arg0: tensor<4xi1>) -> tensor<4xi1> {
  %0 = "smelt.constant"() {dtype = i1, value = true} : () -> tensor<i1>
  %1 = "smelt.broadcast"(%0) {shape = array<i64: 4>} : (tensor<i1>) -> tensor<4xi1>
  %2 = "smelt.constant"() {dtype = i1, value = false} : () -> tensor<i1>
  %3 = "smelt.broadcast"(%2) {shape = array<i64: 4>} : (tensor<i1>) -> tensor<4xi1>
  %4 = "smelt.select"(%arg0, %1, %3) : (tensor<4xi1>, tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  return %4 : tensor<4xi1>
}

// CHECK-LABEL: func.func @not_of_not(
// CHECK-NEXT: return %arg0 : tensor<4xi1>
func.func @not_of_not(%arg0: tensor<4xi1>) -> tensor<4xi1> {
  %0 = "smelt.logical_not"(%arg0) : (tensor<4xi1>) -> tensor<4xi1>
  %1 = "smelt.logical_not"(%0) : (tensor<4xi1>) -> tensor<4xi1>
  return %1 : tensor<4xi1>
}

// CHECK-LABEL: func.func @not_of_equal(
// CHECK-NEXT: %[[V0:.*]] = "smelt.not_equal"(%arg0, %arg1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
// CHECK-NEXT: %[[V1:.*]] = "smelt.equal"(%arg0, %arg1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
// CHECK-NEXT: return %[[V0]], %[[V1]] : tensor<4xi1>, tensor<4xi1>
func.func @not_of_equal(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> (tensor<4xi1>, tensor<4xi1>) {
  %0 = "smelt.equal"(%arg0, %arg1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %1 = "smelt.logical_not"(%0) : (tensor<4xi1>) -> tensor<4xi1>
  %2 = "smelt.not_equal"(%arg0, %arg1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %3 = "smelt.logical_not"(%2) : (tensor<4xi1>) -> tensor<4xi1>
  return %1, %3 : tensor<4xi1>, tensor<4xi1>
}

// CHECK-LABEL: func.func @logical_with_constant(
// CHECK-NEXT: %[[V0:.*]] = "smelt.constant"() {dtype = i1, value = true} : () -> tensor<i1>
// CHECK-NEXT: %[[V1:.*]] = "smelt.broadcast"(%[[V0]]) {shape = array<i64: 4>} : (tensor<i1>) -> tensor<4xi1>
// CHECK-NEXT: return %arg0, %[[V1]] : tensor<4xi1>, tensor<4xi1>
func.func @logical_with_constant(%arg0: tensor<4xi1>) -> (tensor<4xi1>, tensor<4xi1>) {
  %0 = "smelt.constant"() {dtype = i1, value = true} : () -> tensor<i1>
  %1 = "smelt.broadcast"(%0) {shape = array<i64: 4>} : (tensor<i1>) -> tensor<4xi1>
  %2 = "smelt.logical_and"(%arg0, %1) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  %3 = "smelt.constant"() {dtype = i1, value = true} : () -> tensor<i1>
  %4 = "smelt.broadcast"(%3) {shape = array<i64: 4>} : (tensor<i1>) -> tensor<4xi1>
  %5 = "smelt.logical_or"(%arg0, %4) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  return %2, %5 : tensor<4xi1>, tensor<4xi1>
}

// with a NaN, neither x < y nor x ≥ y
// CHECK-LABEL: func.func @not_of_less_stays(
// CHECK-NEXT: %[[V0:.*]] = "smelt.less"(%arg0, %arg1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
// CHECK-NEXT: %[[V1:.*]] = "smelt.logical_not"(%[[V0]]) : (tensor<4xi1>) -> tensor<4xi1>
// CHECK-NEXT: return %[[V1]] : tensor<4xi1>
func.func @not_of_less_stays(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> tensor<4xi1> {
  %0 = "smelt.less"(%arg0, %arg1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %1 = "smelt.logical_not"(%0) : (tensor<4xi1>) -> tensor<4xi1>
  return %1 : tensor<4xi1>
}

// 0 = -0, yet they are two numbers
// CHECK-LABEL: func.func @select_of_zeros_stays(
// CHECK-NEXT: %[[V0:.*]] = "smelt.constant"() {dtype = f32, value = 0.000000e+00 : f64} : () -> tensor<f32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.broadcast"(%[[V0]]) {shape = array<i64: 4>} : (tensor<f32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V2:.*]] = "smelt.constant"() {dtype = f32, value = -0.000000e+00 : f64} : () -> tensor<f32>
// CHECK-NEXT: %[[V3:.*]] = "smelt.broadcast"(%[[V2]]) {shape = array<i64: 4>} : (tensor<f32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V4:.*]] = "smelt.select"(%arg0, %[[V1]], %[[V3]]) : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: return %[[V4]] : tensor<4xf32>
func.func @select_of_zeros_stays(%arg0: tensor<4xi1>) -> tensor<4xf32> {
  %0 = "smelt.constant"() {dtype = f32, value = 0.000000e+00 : f64} : () -> tensor<f32>
  %1 = "smelt.broadcast"(%0) {shape = array<i64: 4>} : (tensor<f32>) -> tensor<4xf32>
  %2 = "smelt.constant"() {dtype = f32, value = -0.000000e+00 : f64} : () -> tensor<f32>
  %3 = "smelt.broadcast"(%2) {shape = array<i64: 4>} : (tensor<f32>) -> tensor<4xf32>
  %4 = "smelt.select"(%arg0, %1, %3) : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %4 : tensor<4xf32>
}

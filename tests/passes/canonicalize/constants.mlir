// Constants are computed ahead, and elementwise ops before broadcasts.
// RUN: smelt-opt %s --canonicalize | filecheck %s

// CHECK-LABEL: func.func @fold_constants(
// CHECK-NEXT: %[[V0:.*]] = "smelt.constant"() {dtype = f32, value = 2.000000e+00 : f64} : () -> tensor<f32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.broadcast"(%[[V0]]) {shape = array<i64: 4>} : (tensor<f32>) -> tensor<4xf32>
// CHECK-NEXT: return %[[V1]] : tensor<4xf32>
func.func @fold_constants() -> tensor<4xf32> {
  %0 = "smelt.constant"() {dtype = f32, value = 3.000000e+00 : f64} : () -> tensor<f32>
  %1 = "smelt.broadcast"(%0) {shape = array<i64: 4>} : (tensor<f32>) -> tensor<4xf32>
  %2 = "smelt.constant"() {dtype = f32, value = 1.000000e+00 : f64} : () -> tensor<f32>
  %3 = "smelt.broadcast"(%2) {shape = array<i64: 4>} : (tensor<f32>) -> tensor<4xf32>
  %4 = "smelt.add"(%1, %3) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %5 = "smelt.sqrt"(%4) : (tensor<4xf32>) -> tensor<4xf32>
  return %5 : tensor<4xf32>
}

// CHECK-LABEL: func.func @fold_division_by_zero(
// CHECK-NEXT: %[[V0:.*]] = "smelt.constant"() {dtype = f32, value = 0x7FF8000000000000 : f64} : () -> tensor<f32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.broadcast"(%[[V0]]) {shape = array<i64: 4>} : (tensor<f32>) -> tensor<4xf32>
// CHECK-NEXT: return %[[V1]] : tensor<4xf32>
func.func @fold_division_by_zero() -> tensor<4xf32> {
  %0 = "smelt.constant"() {dtype = f32, value = 0.000000e+00 : f64} : () -> tensor<f32>
  %1 = "smelt.broadcast"(%0) {shape = array<i64: 4>} : (tensor<f32>) -> tensor<4xf32>
  %2 = "smelt.constant"() {dtype = f32, value = 0.000000e+00 : f64} : () -> tensor<f32>
  %3 = "smelt.broadcast"(%2) {shape = array<i64: 4>} : (tensor<f32>) -> tensor<4xf32>
  %4 = "smelt.div"(%1, %3) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %4 : tensor<4xf32>
}

// CHECK-LABEL: func.func @fold_wraps(
// CHECK-NEXT: %[[V0:.*]] = "smelt.constant"() {dtype = ui8, value = 44 : i64} : () -> tensor<ui8>
// CHECK-NEXT: %[[V1:.*]] = "smelt.broadcast"(%[[V0]]) {shape = array<i64: 4>} : (tensor<ui8>) -> tensor<4xui8>
// CHECK-NEXT: return %[[V1]] : tensor<4xui8>
func.func @fold_wraps() -> tensor<4xui8> {
  %0 = "smelt.constant"() {dtype = ui8, value = 200 : i64} : () -> tensor<ui8>
  %1 = "smelt.broadcast"(%0) {shape = array<i64: 4>} : (tensor<ui8>) -> tensor<4xui8>
  %2 = "smelt.constant"() {dtype = ui8, value = 100 : i64} : () -> tensor<ui8>
  %3 = "smelt.broadcast"(%2) {shape = array<i64: 4>} : (tensor<ui8>) -> tensor<4xui8>
  %4 = "smelt.add"(%1, %3) : (tensor<4xui8>, tensor<4xui8>) -> tensor<4xui8>
  return %4 : tensor<4xui8>
}

// CHECK-LABEL: func.func @fold_comparison(
// CHECK-NEXT: %[[V0:.*]] = "smelt.constant"() {dtype = i1, value = true} : () -> tensor<i1>
// CHECK-NEXT: %[[V1:.*]] = "smelt.broadcast"(%[[V0]]) {shape = array<i64: 4>} : (tensor<i1>) -> tensor<4xi1>
// CHECK-NEXT: return %[[V1]] : tensor<4xi1>
func.func @fold_comparison() -> tensor<4xi1> {
  %0 = "smelt.constant"() {dtype = f32, value = 1.000000e+00 : f64} : () -> tensor<f32>
  %1 = "smelt.broadcast"(%0) {shape = array<i64: 4>} : (tensor<f32>) -> tensor<4xf32>
  %2 = "smelt.constant"() {dtype = f32, value = 2.000000e+00 : f64} : () -> tensor<f32>
  %3 = "smelt.broadcast"(%2) {shape = array<i64: 4>} : (tensor<f32>) -> tensor<4xf32>
  %4 = "smelt.less"(%1, %3) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  return %4 : tensor<4xi1>
}

// CHECK-LABEL: func.func @fold_literals(
// CHECK-NEXT: %[[V0:.*]] = "smelt.literal"() {value = dense<[3, 5, 7, 9]> : tensor<4xi32>} : () -> tensor<4xi32>
// CHECK-NEXT: return %[[V0]] : tensor<4xi32>
func.func @fold_literals() -> tensor<4xi32> {
  %0 = "smelt.literal"() {value = dense<[1, 2, 3, 4]> : tensor<4xi32>} : () -> tensor<4xi32>
  %1 = "smelt.constant"() {dtype = i32, value = 2 : i64} : () -> tensor<i32>
  %2 = "smelt.broadcast"(%1) {shape = array<i64: 4>} : (tensor<i32>) -> tensor<4xi32>
  %3 = "smelt.mul"(%0, %2) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %4 = "smelt.constant"() {dtype = i32, value = 1 : i64} : () -> tensor<i32>
  %5 = "smelt.broadcast"(%4) {shape = array<i64: 4>} : (tensor<i32>) -> tensor<4xi32>
  %6 = "smelt.add"(%3, %5) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  return %6 : tensor<4xi32>
}

// CHECK-LABEL: func.func @fold_movement_of_literals(
// CHECK-NEXT: %[[V0:.*]] = "smelt.literal"() {value = dense<{{\[\[}}2, 4], [1, 3]]> : tensor<2x2xi32>} : () -> tensor<2x2xi32>
// CHECK-NEXT: return %[[V0]] : tensor<2x2xi32>
func.func @fold_movement_of_literals() -> tensor<2x2xi32> {
  %0 = "smelt.literal"() {value = dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>} : () -> tensor<2x2xi32>
  %1 = "smelt.transpose"(%0) {permutation = array<i64: 1, 0>} : (tensor<2x2xi32>) -> tensor<2x2xi32>
  %2 = "smelt.reverse"(%1) {axes = array<i64: 0>} : (tensor<2x2xi32>) -> tensor<2x2xi32>
  return %2 : tensor<2x2xi32>
}

// CHECK-LABEL: func.func @fold_reduction_of_literals(
// CHECK-NEXT: %[[V0:.*]] = "smelt.constant"() {dtype = f32, value = 6.500000e+00 : f64} : () -> tensor<f32>
// CHECK-NEXT: return %[[V0]] : tensor<f32>
func.func @fold_reduction_of_literals() -> tensor<f32> {
  %0 = "smelt.literal"() {value = dense<[1.500000e+00, 2.000000e+00, 3.000000e+00]> : tensor<3xf32>} : () -> tensor<3xf32>
  %1 = "smelt.reduce_sum"(%0) {axes = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}

// CHECK-LABEL: func.func @literal_of_one_number(
// CHECK-NEXT: %[[V0:.*]] = "smelt.constant"() {dtype = i32, value = 7 : i64} : () -> tensor<i32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.broadcast"(%[[V0]]) {shape = array<i64: 3>} : (tensor<i32>) -> tensor<3xi32>
// CHECK-NEXT: return %[[V1]] : tensor<3xi32>
func.func @literal_of_one_number() -> tensor<3xi32> {
  %0 = "smelt.literal"() {value = dense<7> : tensor<3xi32>} : () -> tensor<3xi32>
  return %0 : tensor<3xi32>
}

// CHECK-LABEL: func.func @iota_of_one_element(
// CHECK-NEXT: %[[V0:.*]] = "smelt.constant"() {dtype = i32, value = 0 : i64} : () -> tensor<i32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.broadcast"(%[[V0]]) {shape = array<i64: 1, 3>} : (tensor<i32>) -> tensor<1x3xi32>
// CHECK-NEXT: return %[[V1]] : tensor<1x3xi32>
func.func @iota_of_one_element() -> tensor<1x3xi32> {
  %0 = "smelt.iota"() {axis = 0 : i64, dtype = i32, shape = array<i64: 1, 3>} : () -> tensor<1x3xi32>
  return %0 : tensor<1x3xi32>
}

// CHECK-LABEL: func.func @elementwise_before_broadcast(
// CHECK-NEXT: %[[V0:.*]] = "smelt.mul"(%arg0, %arg1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.constant"() {dtype = f32, value = 1.000000e+00 : f64} : () -> tensor<f32>
// CHECK-NEXT: %[[V2:.*]] = "smelt.add"(%[[V0]], %[[V1]]) : (tensor<f32>, tensor<f32>) -> tensor<f32>
// CHECK-NEXT: %[[V3:.*]] = "smelt.sqrt"(%[[V2]]) : (tensor<f32>) -> tensor<f32>
// CHECK-NEXT: %[[V4:.*]] = "smelt.broadcast"(%[[V3]]) {shape = array<i64: 8, 4>} : (tensor<f32>) -> tensor<8x4xf32>
// CHECK-NEXT: return %[[V4]] : tensor<8x4xf32>
func.func @elementwise_before_broadcast(%arg0: tensor<f32>, %arg1: tensor<f32>) -> tensor<8x4xf32> {
  %0 = "smelt.broadcast"(%arg0) {shape = array<i64: 8, 4>} : (tensor<f32>) -> tensor<8x4xf32>
  %1 = "smelt.broadcast"(%arg1) {shape = array<i64: 8, 4>} : (tensor<f32>) -> tensor<8x4xf32>
  %2 = "smelt.mul"(%0, %1) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %3 = "smelt.constant"() {dtype = f32, value = 1.000000e+00 : f64} : () -> tensor<f32>
  %4 = "smelt.broadcast"(%3) {shape = array<i64: 8, 4>} : (tensor<f32>) -> tensor<8x4xf32>
  %5 = "smelt.add"(%2, %4) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %6 = "smelt.sqrt"(%5) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %6 : tensor<8x4xf32>
}

// CHECK-LABEL: func.func @elementwise_before_broadcast_of_rows(
// CHECK-NEXT: %[[V0:.*]] = "smelt.exp"(%arg0) : (tensor<8x1xf32>) -> tensor<8x1xf32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.broadcast"(%arg1) {shape = array<i64: 8, 1>} : (tensor<f32>) -> tensor<8x1xf32>
// CHECK-NEXT: %[[V2:.*]] = "smelt.mul"(%[[V0]], %[[V1]]) : (tensor<8x1xf32>, tensor<8x1xf32>) -> tensor<8x1xf32>
// CHECK-NEXT: %[[V3:.*]] = "smelt.broadcast"(%[[V2]]) {shape = array<i64: 8, 4>} : (tensor<8x1xf32>) -> tensor<8x4xf32>
// CHECK-NEXT: return %[[V3]] : tensor<8x4xf32>
func.func @elementwise_before_broadcast_of_rows(%arg0: tensor<8x1xf32>, %arg1: tensor<f32>) -> tensor<8x4xf32> {
  %0 = "smelt.broadcast"(%arg0) {shape = array<i64: 8, 4>} : (tensor<8x1xf32>) -> tensor<8x4xf32>
  %1 = "smelt.exp"(%0) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %2 = "smelt.broadcast"(%arg1) {shape = array<i64: 8, 4>} : (tensor<f32>) -> tensor<8x4xf32>
  %3 = "smelt.mul"(%1, %2) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  return %3 : tensor<8x4xf32>
}

// each operand is smaller than the result, but all of them together are not
// CHECK-LABEL: func.func @outer_product_stays(
// CHECK-NEXT: %[[V0:.*]] = "smelt.broadcast"(%arg0) {shape = array<i64: 8, 4>} : (tensor<8x1xf32>) -> tensor<8x4xf32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.broadcast"(%arg1) {shape = array<i64: 8, 4>} : (tensor<4xf32>) -> tensor<8x4xf32>
// CHECK-NEXT: %[[V2:.*]] = "smelt.mul"(%[[V0]], %[[V1]]) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
// CHECK-NEXT: return %[[V2]] : tensor<8x4xf32>
func.func @outer_product_stays(%arg0: tensor<8x1xf32>, %arg1: tensor<4xf32>) -> tensor<8x4xf32> {
  %0 = "smelt.broadcast"(%arg0) {shape = array<i64: 8, 4>} : (tensor<8x1xf32>) -> tensor<8x4xf32>
  %1 = "smelt.broadcast"(%arg1) {shape = array<i64: 8, 4>} : (tensor<4xf32>) -> tensor<8x4xf32>
  %2 = "smelt.mul"(%0, %1) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  return %2 : tensor<8x4xf32>
}

// a broadcast says it shorter
// CHECK-LABEL: func.func @large_literals_stay(
// CHECK-NEXT: %[[V0:.*]] = "smelt.literal"() {value = dense<{{\[\[}}1], [2]]> : tensor<2x1xi32>} : () -> tensor<2x1xi32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.broadcast"(%[[V0]]) {shape = array<i64: 2, 1000>} : (tensor<2x1xi32>) -> tensor<2x1000xi32>
// CHECK-NEXT: return %[[V1]] : tensor<2x1000xi32>
func.func @large_literals_stay() -> tensor<2x1000xi32> {
  %0 = "smelt.literal"() {value = dense<[[1], [2]]> : tensor<2x1xi32>} : () -> tensor<2x1xi32>
  %1 = "smelt.broadcast"(%0) {shape = array<i64: 2, 1000>} : (tensor<2x1xi32>) -> tensor<2x1000xi32>
  return %1 : tensor<2x1000xi32>
}

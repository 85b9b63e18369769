// Reductions.
// RUN: smelt-opt %s --canonicalize | filecheck %s

// CHECK-LABEL: func.func @reduce_over_nothing(
// CHECK-NEXT: return %arg0 : tensor<2x3xf32>
func.func @reduce_over_nothing(%arg0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = "smelt.reduce_max"(%arg0) {axes = array<i64>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// Sums begin with zero: one of -0 alone is 0
// CHECK-LABEL: func.func @sum_over_nothing(
// CHECK-NEXT: %[[V0:.*]] = "smelt.constant"() {dtype = f32, value = 0 : i64} : () -> tensor<f32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.broadcast"(%[[V0]]) {shape = array<i64: 2, 3>} : (tensor<f32>) -> tensor<2x3xf32>
// CHECK-NEXT: %[[V2:.*]] = "smelt.add"(%arg0, %[[V1]]) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
// CHECK-NEXT: return %[[V2]], %arg1 : tensor<2x3xf32>, tensor<2x3xi32>
func.func @sum_over_nothing(%arg0: tensor<2x3xf32>, %arg1: tensor<2x3xi32>) -> (tensor<2x3xf32>, tensor<2x3xi32>) {
  %0 = "smelt.reduce_sum"(%arg0) {axes = array<i64>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = "smelt.reduce_sum"(%arg1) {axes = array<i64>} : (tensor<2x3xi32>) -> tensor<2x3xi32>
  return %0, %1 : tensor<2x3xf32>, tensor<2x3xi32>
}

// CHECK-LABEL: func.func @sum_over_unit_axes(
// CHECK-NEXT: %[[V0:.*]] = "smelt.reshape"(%arg0) {shape = array<i64: 2>} : (tensor<2x1xf32>) -> tensor<2xf32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.constant"() {dtype = f32, value = 0 : i64} : () -> tensor<f32>
// CHECK-NEXT: %[[V2:.*]] = "smelt.broadcast"(%[[V1]]) {shape = array<i64: 2>} : (tensor<f32>) -> tensor<2xf32>
// CHECK-NEXT: %[[V3:.*]] = "smelt.add"(%[[V0]], %[[V2]]) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
// CHECK-NEXT: return %[[V3]] : tensor<2xf32>
func.func @sum_over_unit_axes(%arg0: tensor<2x1xf32>) -> tensor<2xf32> {
  %0 = "smelt.reduce_sum"(%arg0) {axes = array<i64: 1>} : (tensor<2x1xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// CHECK-LABEL: func.func @reduce_over_unit_axes(
// CHECK-NEXT: %[[V0:.*]] = "smelt.reshape"(%arg0) {shape = array<i64: 2, 3>} : (tensor<2x1x3xf32>) -> tensor<2x3xf32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.reduce_sum"(%arg0) {axes = array<i64: 2>} : (tensor<2x1x3xf32>) -> tensor<2x1xf32>
// CHECK-NEXT: %[[V2:.*]] = "smelt.reshape"(%[[V1]]) {shape = array<i64: 2>} : (tensor<2x1xf32>) -> tensor<2xf32>
// CHECK-NEXT: return %[[V0]], %[[V2]] : tensor<2x3xf32>, tensor<2xf32>
func.func @reduce_over_unit_axes(%arg0: tensor<2x1x3xf32>) -> (tensor<2x3xf32>, tensor<2xf32>) {
  %0 = "smelt.reduce_max"(%arg0) {axes = array<i64: 1>} : (tensor<2x1x3xf32>) -> tensor<2x3xf32>
  %1 = "smelt.reduce_sum"(%arg0) {axes = array<i64: 1, 2>} : (tensor<2x1x3xf32>) -> tensor<2xf32>
  return %0, %1 : tensor<2x3xf32>, tensor<2xf32>
}

// CHECK-LABEL: func.func @reduce_of_reduce(
// CHECK-NEXT: %[[V0:.*]] = "smelt.reduce_sum"(%arg0) {axes = array<i64: 1, 2>} : (tensor<2x3x4xf32>) -> tensor<2xf32>
// CHECK-NEXT: return %[[V0]] : tensor<2xf32>
func.func @reduce_of_reduce(%arg0: tensor<2x3x4xf32>) -> tensor<2xf32> {
  %0 = "smelt.reduce_sum"(%arg0) {axes = array<i64: 1>} : (tensor<2x3x4xf32>) -> tensor<2x4xf32>
  %1 = "smelt.reduce_sum"(%0) {axes = array<i64: 1>} : (tensor<2x4xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}

// CHECK-LABEL: func.func @reduce_of_transpose(
// CHECK-NEXT: %[[V0:.*]] = "smelt.reduce_sum"(%arg0) {axes = array<i64: 2>} : (tensor<2x3x4xf32>) -> tensor<2x3xf32>
// CHECK-NEXT: return %[[V0]] : tensor<2x3xf32>
func.func @reduce_of_transpose(%arg0: tensor<2x3x4xf32>) -> tensor<2x3xf32> {
  %0 = "smelt.transpose"(%arg0) {permutation = array<i64: 2, 0, 1>} : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
  %1 = "smelt.reduce_sum"(%0) {axes = array<i64: 0>} : (tensor<4x2x3xf32>) -> tensor<2x3xf32>
  return %1 : tensor<2x3xf32>
}

// CHECK-LABEL: func.func @place_in_transpose(
// CHECK-NEXT: %[[V0:.*]] = "smelt.argmax"(%arg0) {axis = 1 : i64} : (tensor<2x3x4xf32>) -> tensor<2x4xui32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.transpose"(%[[V0]]) {permutation = array<i64: 1, 0>} : (tensor<2x4xui32>) -> tensor<4x2xui32>
// CHECK-NEXT: return %[[V1]] : tensor<4x2xui32>
func.func @place_in_transpose(%arg0: tensor<2x3x4xf32>) -> tensor<4x2xui32> {
  %0 = "smelt.transpose"(%arg0) {permutation = array<i64: 2, 1, 0>} : (tensor<2x3x4xf32>) -> tensor<4x3x2xf32>
  %1 = "smelt.argmax"(%0) {axis = 1 : i64} : (tensor<4x3x2xf32>) -> tensor<4x2xui32>
  return %1 : tensor<4x2xui32>
}

// CHECK-LABEL: func.func @reduce_of_transposed_operands(
// CHECK-NEXT: %[[V0:.*]] = "smelt.exp"(%arg0) : (tensor<2x3xf32>) -> tensor<2x3xf32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.mul"(%[[V0]], %arg1) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
// CHECK-NEXT: %[[V2:.*]] = "smelt.reduce_sum"(%[[V1]]) {axes = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<2xf32>
// CHECK-NEXT: return %[[V2]] : tensor<2xf32>
func.func @reduce_of_transposed_operands(%arg0: tensor<2x3xf32>, %arg1: tensor<2x3xf32>) -> tensor<2xf32> {
  %0 = "smelt.transpose"(%arg0) {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %1 = "smelt.transpose"(%arg1) {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %2 = "smelt.exp"(%0) : (tensor<3x2xf32>) -> tensor<3x2xf32>
  %3 = "smelt.mul"(%2, %1) : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
  %4 = "smelt.reduce_sum"(%3) {axes = array<i64: 0>} : (tensor<3x2xf32>) -> tensor<2xf32>
  return %4 : tensor<2xf32>
}

// CHECK-LABEL: func.func @reduce_of_unit_reshape(
// CHECK-NEXT: %[[V0:.*]] = "smelt.reduce_sum"(%arg0) {axes = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<2xf32>
// CHECK-NEXT: return %[[V0]] : tensor<2xf32>
func.func @reduce_of_unit_reshape(%arg0: tensor<2x3xf32>) -> tensor<2xf32> {
  %0 = "smelt.reshape"(%arg0) {shape = array<i64: 2, 1, 3>} : (tensor<2x3xf32>) -> tensor<2x1x3xf32>
  %1 = "smelt.reduce_sum"(%0) {axes = array<i64: 1, 2>} : (tensor<2x1x3xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}

// CHECK-LABEL: func.func @max_before_broadcast(
// CHECK-NEXT: %[[V0:.*]] = "smelt.reshape"(%arg0) {shape = array<i64: 2>} : (tensor<2x1xf32>) -> tensor<2xf32>
// CHECK-NEXT: return %[[V0]] : tensor<2xf32>
func.func @max_before_broadcast(%arg0: tensor<2x1xf32>) -> tensor<2xf32> {
  %0 = "smelt.broadcast"(%arg0) {shape = array<i64: 2, 3>} : (tensor<2x1xf32>) -> tensor<2x3xf32>
  %1 = "smelt.reduce_max"(%0) {axes = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}

// CHECK-LABEL: func.func @sum_of_ones(
// CHECK-NEXT: %[[V0:.*]] = "smelt.constant"() {dtype = f32, value = 1.000000e+01 : f64} : () -> tensor<f32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.broadcast"(%[[V0]]) {shape = array<i64: 3>} : (tensor<f32>) -> tensor<3xf32>
// CHECK-NEXT: return %[[V1]] : tensor<3xf32>
func.func @sum_of_ones() -> tensor<3xf32> {
  %0 = "smelt.constant"() {dtype = f32, value = 1.000000e+00 : f64} : () -> tensor<f32>
  %1 = "smelt.broadcast"(%0) {shape = array<i64: 10, 3>} : (tensor<f32>) -> tensor<10x3xf32>
  %2 = "smelt.reduce_sum"(%1) {axes = array<i64: 0>} : (tensor<10x3xf32>) -> tensor<3xf32>
  return %2 : tensor<3xf32>
}

// a power of two is an exact factor
// CHECK-LABEL: func.func @sum_before_broadcast(
// CHECK-NEXT: %[[V0:.*]] = "smelt.reduce_sum"(%arg0) {axes = array<i64: 0>} : (tensor<2x1xf32>) -> tensor<1xf32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.constant"() {dtype = f32, value = 8 : i64} : () -> tensor<f32>
// CHECK-NEXT: %[[V2:.*]] = "smelt.broadcast"(%[[V1]]) {shape = array<i64: 1>} : (tensor<f32>) -> tensor<1xf32>
// CHECK-NEXT: %[[V3:.*]] = "smelt.mul"(%[[V0]], %[[V2]]) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
// CHECK-NEXT: %[[V4:.*]] = "smelt.reshape"(%[[V3]]) {shape = array<i64>} : (tensor<1xf32>) -> tensor<f32>
// CHECK-NEXT: return %[[V4]] : tensor<f32>
func.func @sum_before_broadcast(%arg0: tensor<2x1xf32>) -> tensor<f32> {
  %0 = "smelt.broadcast"(%arg0) {shape = array<i64: 2, 8>} : (tensor<2x1xf32>) -> tensor<2x8xf32>
  %1 = "smelt.reduce_sum"(%0) {axes = array<i64: 0, 1>} : (tensor<2x8xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}

// CHECK-LABEL: func.func @prod_before_broadcast_int(
// CHECK-NEXT: %[[V0:.*]] = "smelt.integer_power"(%arg0) {exponent = 5 : i64} : (tensor<2x1xi32>) -> tensor<2x1xi32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.reshape"(%[[V0]]) {shape = array<i64: 2>} : (tensor<2x1xi32>) -> tensor<2xi32>
// CHECK-NEXT: return %[[V1]] : tensor<2xi32>
func.func @prod_before_broadcast_int(%arg0: tensor<2x1xi32>) -> tensor<2xi32> {
  %0 = "smelt.broadcast"(%arg0) {shape = array<i64: 2, 5>} : (tensor<2x1xi32>) -> tensor<2x5xi32>
  %1 = "smelt.reduce_prod"(%0) {axes = array<i64: 1>} : (tensor<2x5xi32>) -> tensor<2xi32>
  return %1 : tensor<2xi32>
}

// CHECK-LABEL: func.func @arg_of_one_element(
// CHECK-NEXT: %[[V0:.*]] = "smelt.constant"() {dtype = ui32, value = 0 : i64} : () -> tensor<ui32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.broadcast"(%[[V0]]) {shape = array<i64: 4>} : (tensor<ui32>) -> tensor<4xui32>
// CHECK-NEXT: return %[[V1]] : tensor<4xui32>
func.func @arg_of_one_element(%arg0: tensor<4x1xf32>) -> tensor<4xui32> {
  %0 = "smelt.argmax"(%arg0) {axis = 1 : i64} : (tensor<4x1xf32>) -> tensor<4xui32>
  return %0 : tensor<4xui32>
}

// x + x + x and 3·x round differently
// CHECK-LABEL: func.func @sum_of_three_stays(
// CHECK-NEXT: %[[V0:.*]] = "smelt.broadcast"(%arg0) {shape = array<i64: 2, 3>} : (tensor<2x1xf32>) -> tensor<2x3xf32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.reduce_sum"(%[[V0]]) {axes = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<2xf32>
// CHECK-NEXT: return %[[V1]] : tensor<2xf32>
func.func @sum_of_three_stays(%arg0: tensor<2x1xf32>) -> tensor<2xf32> {
  %0 = "smelt.broadcast"(%arg0) {shape = array<i64: 2, 3>} : (tensor<2x1xf32>) -> tensor<2x3xf32>
  %1 = "smelt.reduce_sum"(%0) {axes = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}

// CHECK-LABEL: func.func @max_of_sum_stays(
// CHECK-NEXT: %[[V0:.*]] = "smelt.reduce_sum"(%arg0) {axes = array<i64: 1>} : (tensor<2x3x4xf32>) -> tensor<2x4xf32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.reduce_max"(%[[V0]]) {axes = array<i64: 1>} : (tensor<2x4xf32>) -> tensor<2xf32>
// CHECK-NEXT: return %[[V1]] : tensor<2xf32>
func.func @max_of_sum_stays(%arg0: tensor<2x3x4xf32>) -> tensor<2xf32> {
  %0 = "smelt.reduce_sum"(%arg0) {axes = array<i64: 1>} : (tensor<2x3x4xf32>) -> tensor<2x4xf32>
  %1 = "smelt.reduce_max"(%0) {axes = array<i64: 1>} : (tensor<2x4xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}

// What repeats elements is summed along its own axes: places along merged ones are quotients
// CHECK-LABEL: func.func @sum_of_merged_axes(
// CHECK: %[[V0:.*]] = "smelt.mul"(%{{.*}}, %{{.*}}) : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.exp"(%[[V0]]) : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
// CHECK-NEXT: %[[V2:.*]] = "smelt.reduce_sum"(%[[V1]]) {axes = array<i64: 1, 2>} : (tensor<2x3x4xf32>) -> tensor<2xf32>
// CHECK-NEXT: return %[[V2]] : tensor<2xf32>
func.func @sum_of_merged_axes(%x: tensor<2x3x1xf32>, %y: tensor<2x1x4xf32>) -> tensor<2xf32> {
  %0 = "smelt.broadcast"(%x) {shape = array<i64: 2, 3, 4>} : (tensor<2x3x1xf32>) -> tensor<2x3x4xf32>
  %1 = "smelt.broadcast"(%y) {shape = array<i64: 2, 3, 4>} : (tensor<2x1x4xf32>) -> tensor<2x3x4xf32>
  %2 = "smelt.mul"(%0, %1) : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %3 = "smelt.reshape"(%2) {shape = array<i64: 2, 12>} : (tensor<2x3x4xf32>) -> tensor<2x12xf32>
  %4 = "smelt.exp"(%3) : (tensor<2x12xf32>) -> tensor<2x12xf32>
  %5 = "smelt.reduce_sum"(%4) {axes = array<i64: 1>} : (tensor<2x12xf32>) -> tensor<2xf32>
  return %5 : tensor<2xf32>
}

// Where elements are wanted along the merged axis, too, both stay along it
// CHECK-LABEL: func.func @merged_axes_of_elements(
// CHECK: "smelt.reduce_max"(%{{.*}}) {axes = array<i64: 1>} : (tensor<2x12xf32>) -> tensor<2xf32>
func.func @merged_axes_of_elements(%x: tensor<2x3x1xf32>) -> (tensor<2xf32>, tensor<2x12xf32>) {
  %0 = "smelt.broadcast"(%x) {shape = array<i64: 2, 3, 4>} : (tensor<2x3x1xf32>) -> tensor<2x3x4xf32>
  %1 = "smelt.exp"(%0) : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %2 = "smelt.transpose"(%1) {permutation = array<i64: 0, 2, 1>} : (tensor<2x3x4xf32>) -> tensor<2x4x3xf32>
  %3 = "smelt.reshape"(%2) {shape = array<i64: 2, 12>} : (tensor<2x4x3xf32>) -> tensor<2x12xf32>
  %4 = "smelt.reduce_max"(%3) {axes = array<i64: 1>} : (tensor<2x12xf32>) -> tensor<2xf32>
  %5 = "smelt.neg"(%3) : (tensor<2x12xf32>) -> tensor<2x12xf32>
  return %4, %5 : tensor<2xf32>, tensor<2x12xf32>
}

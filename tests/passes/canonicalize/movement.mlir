// Reshapes, transposes, broadcasts, slices, padding.
// RUN: smelt-opt %s --canonicalize | filecheck %s

// CHECK-LABEL: func.func @movement_of_one_number(
// CHECK-NEXT: %[[V0:.*]] = "smelt.broadcast"(%arg0) {shape = array<i64: 6>} : (tensor<f32>) -> tensor<6xf32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.broadcast"(%arg0) {shape = array<i64: 3, 2>} : (tensor<f32>) -> tensor<3x2xf32>
// CHECK-NEXT: return %[[V0]], %[[V1]] : tensor<6xf32>, tensor<3x2xf32>
func.func @movement_of_one_number(%arg0: tensor<f32>) -> (tensor<6xf32>, tensor<3x2xf32>) {
  %0 = "smelt.broadcast"(%arg0) {shape = array<i64: 2, 3>} : (tensor<f32>) -> tensor<2x3xf32>
  %1 = "smelt.reshape"(%0) {shape = array<i64: 6>} : (tensor<2x3xf32>) -> tensor<6xf32>
  %2 = "smelt.broadcast"(%arg0) {shape = array<i64: 2, 3>} : (tensor<f32>) -> tensor<2x3xf32>
  %3 = "smelt.transpose"(%2) {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return %1, %3 : tensor<6xf32>, tensor<3x2xf32>
}

// CHECK-LABEL: func.func @reshape_to_same(
// CHECK-NEXT: return %arg0 : tensor<2x3xf32>
func.func @reshape_to_same(%arg0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = "smelt.reshape"(%arg0) {shape = array<i64: 2, 3>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// CHECK-LABEL: func.func @reshape_of_reshape(
// CHECK-NEXT: %[[V0:.*]] = "smelt.reshape"(%arg0) {shape = array<i64: 6>} : (tensor<2x3xf32>) -> tensor<6xf32>
// CHECK-NEXT: return %[[V0]] : tensor<6xf32>
func.func @reshape_of_reshape(%arg0: tensor<2x3xf32>) -> tensor<6xf32> {
  %0 = "smelt.reshape"(%arg0) {shape = array<i64: 3, 2>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %1 = "smelt.reshape"(%0) {shape = array<i64: 6>} : (tensor<3x2xf32>) -> tensor<6xf32>
  return %1 : tensor<6xf32>
}

// CHECK-LABEL: func.func @reshape_before_broadcast(
// CHECK-NEXT: %[[V0:.*]] = "smelt.reshape"(%arg0) {shape = array<i64: 2, 1, 1>} : (tensor<2x1xf32>) -> tensor<2x1x1xf32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.broadcast"(%[[V0]]) {shape = array<i64: 2, 1, 3>} : (tensor<2x1x1xf32>) -> tensor<2x1x3xf32>
// CHECK-NEXT: return %[[V1]] : tensor<2x1x3xf32>
func.func @reshape_before_broadcast(%arg0: tensor<2x1xf32>) -> tensor<2x1x3xf32> {
  %0 = "smelt.broadcast"(%arg0) {shape = array<i64: 2, 3>} : (tensor<2x1xf32>) -> tensor<2x3xf32>
  %1 = "smelt.reshape"(%0) {shape = array<i64: 2, 1, 3>} : (tensor<2x3xf32>) -> tensor<2x1x3xf32>
  return %1 : tensor<2x1x3xf32>
}

// CHECK-LABEL: func.func @transpose_by_identity(
// CHECK-NEXT: return %arg0 : tensor<2x3xf32>
func.func @transpose_by_identity(%arg0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = "smelt.transpose"(%arg0) {permutation = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// CHECK-LABEL: func.func @transpose_of_transpose(
// CHECK-NEXT: %[[V0:.*]] = "smelt.transpose"(%arg0) {permutation = array<i64: 2, 0, 1>} : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
// CHECK-NEXT: return %arg0, %[[V0]] : tensor<2x3x4xf32>, tensor<4x2x3xf32>
func.func @transpose_of_transpose(%arg0: tensor<2x3x4xf32>) -> (tensor<2x3x4xf32>, tensor<4x2x3xf32>) {
  %0 = "smelt.transpose"(%arg0) {permutation = array<i64: 1, 2, 0>} : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
  %1 = "smelt.transpose"(%0) {permutation = array<i64: 2, 0, 1>} : (tensor<3x4x2xf32>) -> tensor<2x3x4xf32>
  %2 = "smelt.transpose"(%arg0) {permutation = array<i64: 1, 2, 0>} : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
  %3 = "smelt.transpose"(%2) {permutation = array<i64: 1, 2, 0>} : (tensor<3x4x2xf32>) -> tensor<4x2x3xf32>
  return %1, %3 : tensor<2x3x4xf32>, tensor<4x2x3xf32>
}

// CHECK-LABEL: func.func @transpose_of_unit_axes(
// CHECK-NEXT: %[[V0:.*]] = "smelt.reshape"(%arg0) {shape = array<i64: 1, 2, 3>} : (tensor<2x1x3xf32>) -> tensor<1x2x3xf32>
// CHECK-NEXT: return %[[V0]] : tensor<1x2x3xf32>
func.func @transpose_of_unit_axes(%arg0: tensor<2x1x3xf32>) -> tensor<1x2x3xf32> {
  %0 = "smelt.transpose"(%arg0) {permutation = array<i64: 1, 0, 2>} : (tensor<2x1x3xf32>) -> tensor<1x2x3xf32>
  return %0 : tensor<1x2x3xf32>
}

// CHECK-LABEL: func.func @transpose_before_broadcast(
// CHECK-NEXT: %[[V0:.*]] = "smelt.reshape"(%arg0) {shape = array<i64: 3, 1>} : (tensor<3xf32>) -> tensor<3x1xf32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.broadcast"(%[[V0]]) {shape = array<i64: 3, 2>} : (tensor<3x1xf32>) -> tensor<3x2xf32>
// CHECK-NEXT: return %[[V1]] : tensor<3x2xf32>
func.func @transpose_before_broadcast(%arg0: tensor<3xf32>) -> tensor<3x2xf32> {
  %0 = "smelt.broadcast"(%arg0) {shape = array<i64: 2, 3>} : (tensor<3xf32>) -> tensor<2x3xf32>
  %1 = "smelt.transpose"(%0) {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return %1 : tensor<3x2xf32>
}

// CHECK-LABEL: func.func @broadcast_to_same(
// CHECK-NEXT: return %arg0 : tensor<2x3xf32>
func.func @broadcast_to_same(%arg0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = "smelt.broadcast"(%arg0) {shape = array<i64: 2, 3>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// CHECK-LABEL: func.func @broadcast_of_broadcast(
// CHECK-NEXT: %[[V0:.*]] = "smelt.broadcast"(%arg0) {shape = array<i64: 4, 2, 3>} : (tensor<3xf32>) -> tensor<4x2x3xf32>
// CHECK-NEXT: return %[[V0]] : tensor<4x2x3xf32>
func.func @broadcast_of_broadcast(%arg0: tensor<3xf32>) -> tensor<4x2x3xf32> {
  %0 = "smelt.broadcast"(%arg0) {shape = array<i64: 2, 3>} : (tensor<3xf32>) -> tensor<2x3xf32>
  %1 = "smelt.broadcast"(%0) {shape = array<i64: 4, 2, 3>} : (tensor<2x3xf32>) -> tensor<4x2x3xf32>
  return %1 : tensor<4x2x3xf32>
}

// CHECK-LABEL: func.func @broadcast_of_unit_axes(
// CHECK-NEXT: %[[V0:.*]] = "smelt.broadcast"(%arg0) {shape = array<i64: 2, 3>} : (tensor<3xf32>) -> tensor<2x3xf32>
// CHECK-NEXT: return %[[V0]] : tensor<2x3xf32>
func.func @broadcast_of_unit_axes(%arg0: tensor<3xf32>) -> tensor<2x3xf32> {
  %0 = "smelt.reshape"(%arg0) {shape = array<i64: 1, 3>} : (tensor<3xf32>) -> tensor<1x3xf32>
  %1 = "smelt.broadcast"(%0) {shape = array<i64: 2, 3>} : (tensor<1x3xf32>) -> tensor<2x3xf32>
  return %1 : tensor<2x3xf32>
}

// CHECK-LABEL: func.func @broadcast_that_repeats_nothing(
// CHECK-NEXT: %[[V0:.*]] = "smelt.reshape"(%arg0) {shape = array<i64: 1, 3>} : (tensor<3xf32>) -> tensor<1x3xf32>
// CHECK-NEXT: return %[[V0]] : tensor<1x3xf32>
func.func @broadcast_that_repeats_nothing(%arg0: tensor<3xf32>) -> tensor<1x3xf32> {
  %0 = "smelt.broadcast"(%arg0) {shape = array<i64: 1, 3>} : (tensor<3xf32>) -> tensor<1x3xf32>
  return %0 : tensor<1x3xf32>
}

// CHECK-LABEL: func.func @slice_of_everything(
// CHECK-NEXT: return %arg0 : tensor<2x3xf32>
func.func @slice_of_everything(%arg0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = "smelt.slice"(%arg0) {start = array<i64: 0, 0>, stop = array<i64: 2, 3>, stride = array<i64: 1, 1>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// CHECK-LABEL: func.func @slice_of_slice(
// CHECK-NEXT: %[[V0:.*]] = "smelt.slice"(%arg0) {start = array<i64: 5>, stop = array<i64: 18>, stride = array<i64: 6>} : (tensor<20xf32>) -> tensor<3xf32>
// CHECK-NEXT: return %[[V0]] : tensor<3xf32>
func.func @slice_of_slice(%arg0: tensor<20xf32>) -> tensor<3xf32> {
  %0 = "smelt.slice"(%arg0) {start = array<i64: 2>, stop = array<i64: 20>, stride = array<i64: 3>} : (tensor<20xf32>) -> tensor<6xf32>
  %1 = "smelt.slice"(%0) {start = array<i64: 1>, stop = array<i64: 6>, stride = array<i64: 2>} : (tensor<6xf32>) -> tensor<3xf32>
  return %1 : tensor<3xf32>
}

// CHECK-LABEL: func.func @slice_before_broadcast(
// CHECK-NEXT: %[[V0:.*]] = "smelt.slice"(%arg0) {start = array<i64: 1, 0>, stop = array<i64: 3, 1>, stride = array<i64: 1, 1>} : (tensor<4x1xf32>) -> tensor<2x1xf32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.broadcast"(%[[V0]]) {shape = array<i64: 2, 5>} : (tensor<2x1xf32>) -> tensor<2x5xf32>
// CHECK-NEXT: return %[[V1]] : tensor<2x5xf32>
func.func @slice_before_broadcast(%arg0: tensor<4x1xf32>) -> tensor<2x5xf32> {
  %0 = "smelt.broadcast"(%arg0) {shape = array<i64: 4, 8>} : (tensor<4x1xf32>) -> tensor<4x8xf32>
  %1 = "smelt.slice"(%0) {start = array<i64: 1, 2>, stop = array<i64: 3, 7>, stride = array<i64: 1, 1>} : (tensor<4x8xf32>) -> tensor<2x5xf32>
  return %1 : tensor<2x5xf32>
}

// CHECK-LABEL: func.func @slice_of_concatenate(
// CHECK-NEXT: %[[V0:.*]] = "smelt.slice"(%arg1) {start = array<i64: 1>, stop = array<i64: 3>, stride = array<i64: 1>} : (tensor<3xf32>) -> tensor<2xf32>
// CHECK-NEXT: return %arg0, %[[V0]] : tensor<2xf32>, tensor<2xf32>
func.func @slice_of_concatenate(%arg0: tensor<2xf32>, %arg1: tensor<3xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %0 = "smelt.concatenate"(%arg0, %arg1) {axis = 0 : i64} : (tensor<2xf32>, tensor<3xf32>) -> tensor<5xf32>
  %1 = "smelt.slice"(%0) {start = array<i64: 0>, stop = array<i64: 2>, stride = array<i64: 1>} : (tensor<5xf32>) -> tensor<2xf32>
  %2 = "smelt.concatenate"(%arg0, %arg1) {axis = 0 : i64} : (tensor<2xf32>, tensor<3xf32>) -> tensor<5xf32>
  %3 = "smelt.slice"(%2) {start = array<i64: 3>, stop = array<i64: 5>, stride = array<i64: 1>} : (tensor<5xf32>) -> tensor<2xf32>
  return %1, %3 : tensor<2xf32>, tensor<2xf32>
}

// CHECK-LABEL: func.func @slice_of_pad(
// CHECK-NEXT: %[[V0:.*]] = "smelt.slice"(%arg0) {start = array<i64: 1>, stop = array<i64: 3>, stride = array<i64: 1>} : (tensor<4xf32>) -> tensor<2xf32>
// CHECK-NEXT: return %[[V0]] : tensor<2xf32>
func.func @slice_of_pad(%arg0: tensor<4xf32>, %arg1: tensor<f32>) -> tensor<2xf32> {
  %0 = "smelt.pad"(%arg0, %arg1) {high = array<i64: 1>, interior = array<i64: 0>, low = array<i64: 2>} : (tensor<4xf32>, tensor<f32>) -> tensor<7xf32>
  %1 = "smelt.slice"(%0) {start = array<i64: 3>, stop = array<i64: 5>, stride = array<i64: 1>} : (tensor<7xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}

// CHECK-LABEL: func.func @reverse_of_short_axes(
// CHECK-NEXT: %[[V0:.*]] = "smelt.reverse"(%arg0) {axes = array<i64: 1>} : (tensor<1x3xf32>) -> tensor<1x3xf32>
// CHECK-NEXT: return %arg0, %[[V0]] : tensor<1x3xf32>, tensor<1x3xf32>
func.func @reverse_of_short_axes(%arg0: tensor<1x3xf32>) -> (tensor<1x3xf32>, tensor<1x3xf32>) {
  %0 = "smelt.reverse"(%arg0) {axes = array<i64: 0>} : (tensor<1x3xf32>) -> tensor<1x3xf32>
  %1 = "smelt.reverse"(%arg0) {axes = array<i64: 0, 1>} : (tensor<1x3xf32>) -> tensor<1x3xf32>
  return %0, %1 : tensor<1x3xf32>, tensor<1x3xf32>
}

// CHECK-LABEL: func.func @reverse_of_reverse(
// CHECK-NEXT: %[[V0:.*]] = "smelt.reverse"(%arg0) {axes = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
// CHECK-NEXT: return %arg0, %[[V0]] : tensor<2x3xf32>, tensor<2x3xf32>
func.func @reverse_of_reverse(%arg0: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>) {
  %0 = "smelt.reverse"(%arg0) {axes = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = "smelt.reverse"(%0) {axes = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %2 = "smelt.reverse"(%arg0) {axes = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %3 = "smelt.reverse"(%2) {axes = array<i64: 0>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %1, %3 : tensor<2x3xf32>, tensor<2x3xf32>
}

// CHECK-LABEL: func.func @reverse_of_broadcast(
// CHECK-NEXT: %[[V0:.*]] = "smelt.broadcast"(%arg0) {shape = array<i64: 2, 3>} : (tensor<2x1xf32>) -> tensor<2x3xf32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.reverse"(%[[V0]]) {axes = array<i64: 0>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
// CHECK-NEXT: return %[[V1]] : tensor<2x3xf32>
func.func @reverse_of_broadcast(%arg0: tensor<2x1xf32>) -> tensor<2x3xf32> {
  %0 = "smelt.broadcast"(%arg0) {shape = array<i64: 2, 3>} : (tensor<2x1xf32>) -> tensor<2x3xf32>
  %1 = "smelt.reverse"(%0) {axes = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %1 : tensor<2x3xf32>
}

// CHECK-LABEL: func.func @pad_by_nothing(
// CHECK-NEXT: return %arg0 : tensor<4xf32>
func.func @pad_by_nothing(%arg0: tensor<4xf32>, %arg1: tensor<f32>) -> tensor<4xf32> {
  %0 = "smelt.pad"(%arg0, %arg1) {high = array<i64: 0>, interior = array<i64: 0>, low = array<i64: 0>} : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// CHECK-LABEL: func.func @pad_of_its_value(
// CHECK-NEXT: %[[V0:.*]] = "smelt.constant"() {dtype = f32, value = 0.000000e+00 : f64} : () -> tensor<f32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.broadcast"(%[[V0]]) {shape = array<i64: 6>} : (tensor<f32>) -> tensor<6xf32>
// CHECK-NEXT: return %[[V1]] : tensor<6xf32>
func.func @pad_of_its_value() -> tensor<6xf32> {
  %0 = "smelt.constant"() {dtype = f32, value = 0.000000e+00 : f64} : () -> tensor<f32>
  %1 = "smelt.broadcast"(%0) {shape = array<i64: 4>} : (tensor<f32>) -> tensor<4xf32>
  %2 = "smelt.constant"() {dtype = f32, value = 0.000000e+00 : f64} : () -> tensor<f32>
  %3 = "smelt.pad"(%1, %2) {high = array<i64: 1>, interior = array<i64: 0>, low = array<i64: 1>} : (tensor<4xf32>, tensor<f32>) -> tensor<6xf32>
  return %3 : tensor<6xf32>
}

// CHECK-LABEL: func.func @pad_of_pad(
// CHECK-NEXT: %[[V0:.*]] = "smelt.pad"(%arg0, %arg1) {high = array<i64: 2>, interior = array<i64: 0>, low = array<i64: 4>} : (tensor<4xf32>, tensor<f32>) -> tensor<10xf32>
// CHECK-NEXT: return %[[V0]] : tensor<10xf32>
func.func @pad_of_pad(%arg0: tensor<4xf32>, %arg1: tensor<f32>) -> tensor<10xf32> {
  %0 = "smelt.pad"(%arg0, %arg1) {high = array<i64: 2>, interior = array<i64: 0>, low = array<i64: 1>} : (tensor<4xf32>, tensor<f32>) -> tensor<7xf32>
  %1 = "smelt.pad"(%0, %arg1) {high = array<i64: 0>, interior = array<i64: 0>, low = array<i64: 3>} : (tensor<7xf32>, tensor<f32>) -> tensor<10xf32>
  return %1 : tensor<10xf32>
}

// CHECK-LABEL: func.func @concatenate_with_empty(
// CHECK-NEXT: return %arg0, %arg0 : tensor<4xf32>, tensor<4xf32>
func.func @concatenate_with_empty(%arg0: tensor<4xf32>, %arg1: tensor<0xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = "smelt.concatenate"(%arg0, %arg1) {axis = 0 : i64} : (tensor<4xf32>, tensor<0xf32>) -> tensor<4xf32>
  %1 = "smelt.concatenate"(%arg1, %arg0) {axis = 0 : i64} : (tensor<0xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @concatenate_equal_numbers(
// CHECK-NEXT: %[[V0:.*]] = "smelt.constant"() {dtype = f32, value = 0.000000e+00 : f64} : () -> tensor<f32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.broadcast"(%[[V0]]) {shape = array<i64: 5>} : (tensor<f32>) -> tensor<5xf32>
// CHECK-NEXT: return %[[V1]] : tensor<5xf32>
func.func @concatenate_equal_numbers() -> tensor<5xf32> {
  %0 = "smelt.constant"() {dtype = f32, value = 0.000000e+00 : f64} : () -> tensor<f32>
  %1 = "smelt.broadcast"(%0) {shape = array<i64: 2>} : (tensor<f32>) -> tensor<2xf32>
  %2 = "smelt.constant"() {dtype = f32, value = 0.000000e+00 : f64} : () -> tensor<f32>
  %3 = "smelt.broadcast"(%2) {shape = array<i64: 3>} : (tensor<f32>) -> tensor<3xf32>
  %4 = "smelt.concatenate"(%1, %3) {axis = 0 : i64} : (tensor<2xf32>, tensor<3xf32>) -> tensor<5xf32>
  return %4 : tensor<5xf32>
}

// CHECK-LABEL: func.func @concatenate_adjacent_slices(
// CHECK-NEXT: %[[V0:.*]] = "smelt.slice"(%arg0) {start = array<i64: 1>, stop = array<i64: 7>, stride = array<i64: 1>} : (tensor<8xf32>) -> tensor<6xf32>
// CHECK-NEXT: return %[[V0]] : tensor<6xf32>
func.func @concatenate_adjacent_slices(%arg0: tensor<8xf32>) -> tensor<6xf32> {
  %0 = "smelt.slice"(%arg0) {start = array<i64: 1>, stop = array<i64: 3>, stride = array<i64: 1>} : (tensor<8xf32>) -> tensor<2xf32>
  %1 = "smelt.slice"(%arg0) {start = array<i64: 3>, stop = array<i64: 7>, stride = array<i64: 1>} : (tensor<8xf32>) -> tensor<4xf32>
  %2 = "smelt.concatenate"(%0, %1) {axis = 0 : i64} : (tensor<2xf32>, tensor<4xf32>) -> tensor<6xf32>
  return %2 : tensor<6xf32>
}

// Movement that has to stay.
// RUN: smelt-opt %s --canonicalize | filecheck %s

// CHECK-LABEL: func.func @transpose(
// CHECK-NEXT: %[[V0:.*]] = "smelt.transpose"(%arg0) {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
// CHECK-NEXT: return %[[V0]] : tensor<3x2xf32>
func.func @transpose(%arg0: tensor<2x3xf32>) -> tensor<3x2xf32> {
  %0 = "smelt.transpose"(%arg0) {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return %0 : tensor<3x2xf32>
}

// CHECK-LABEL: func.func @reshape_of_transpose(
// CHECK-NEXT: %[[V0:.*]] = "smelt.transpose"(%arg0) {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.reshape"(%[[V0]]) {shape = array<i64: 6>} : (tensor<3x2xf32>) -> tensor<6xf32>
// CHECK-NEXT: return %[[V1]] : tensor<6xf32>
func.func @reshape_of_transpose(%arg0: tensor<2x3xf32>) -> tensor<6xf32> {
  %0 = "smelt.transpose"(%arg0) {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %1 = "smelt.reshape"(%0) {shape = array<i64: 6>} : (tensor<3x2xf32>) -> tensor<6xf32>
  return %1 : tensor<6xf32>
}

// CHECK-LABEL: func.func @reshape_that_splits_a_broadcast(
// CHECK-NEXT: %[[V0:.*]] = "smelt.broadcast"(%arg0) {shape = array<i64: 2, 3>} : (tensor<2x1xf32>) -> tensor<2x3xf32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.reshape"(%[[V0]]) {shape = array<i64: 6>} : (tensor<2x3xf32>) -> tensor<6xf32>
// CHECK-NEXT: return %[[V1]] : tensor<6xf32>
func.func @reshape_that_splits_a_broadcast(%arg0: tensor<2x1xf32>) -> tensor<6xf32> {
  %0 = "smelt.broadcast"(%arg0) {shape = array<i64: 2, 3>} : (tensor<2x1xf32>) -> tensor<2x3xf32>
  %1 = "smelt.reshape"(%0) {shape = array<i64: 6>} : (tensor<2x3xf32>) -> tensor<6xf32>
  return %1 : tensor<6xf32>
}

// CHECK-LABEL: func.func @slice_across_concatenate(
// CHECK-NEXT: %[[V0:.*]] = "smelt.concatenate"(%arg0, %arg1) {axis = 0 : i64} : (tensor<2xf32>, tensor<3xf32>) -> tensor<5xf32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.slice"(%[[V0]]) {start = array<i64: 1>, stop = array<i64: 4>, stride = array<i64: 1>} : (tensor<5xf32>) -> tensor<3xf32>
// CHECK-NEXT: return %[[V1]] : tensor<3xf32>
func.func @slice_across_concatenate(%arg0: tensor<2xf32>, %arg1: tensor<3xf32>) -> tensor<3xf32> {
  %0 = "smelt.concatenate"(%arg0, %arg1) {axis = 0 : i64} : (tensor<2xf32>, tensor<3xf32>) -> tensor<5xf32>
  %1 = "smelt.slice"(%0) {start = array<i64: 1>, stop = array<i64: 4>, stride = array<i64: 1>} : (tensor<5xf32>) -> tensor<3xf32>
  return %1 : tensor<3xf32>
}

// CHECK-LABEL: func.func @concatenate_of_separate_slices(
// CHECK-NEXT: %[[V0:.*]] = "smelt.slice"(%arg0) {start = array<i64: 1>, stop = array<i64: 3>, stride = array<i64: 1>} : (tensor<8xf32>) -> tensor<2xf32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.slice"(%arg0) {start = array<i64: 4>, stop = array<i64: 7>, stride = array<i64: 1>} : (tensor<8xf32>) -> tensor<3xf32>
// CHECK-NEXT: %[[V2:.*]] = "smelt.concatenate"(%[[V0]], %[[V1]]) {axis = 0 : i64} : (tensor<2xf32>, tensor<3xf32>) -> tensor<5xf32>
// CHECK-NEXT: return %[[V2]] : tensor<5xf32>
func.func @concatenate_of_separate_slices(%arg0: tensor<8xf32>) -> tensor<5xf32> {
  %0 = "smelt.slice"(%arg0) {start = array<i64: 1>, stop = array<i64: 3>, stride = array<i64: 1>} : (tensor<8xf32>) -> tensor<2xf32>
  %1 = "smelt.slice"(%arg0) {start = array<i64: 4>, stop = array<i64: 7>, stride = array<i64: 1>} : (tensor<8xf32>) -> tensor<3xf32>
  %2 = "smelt.concatenate"(%0, %1) {axis = 0 : i64} : (tensor<2xf32>, tensor<3xf32>) -> tensor<5xf32>
  return %2 : tensor<5xf32>
}

// CHECK-LABEL: func.func @pad_with_another_value(
// CHECK-NEXT: %[[V0:.*]] = "smelt.pad"(%arg0, %arg1) {high = array<i64: 0>, interior = array<i64: 0>, low = array<i64: 1>} : (tensor<4xf32>, tensor<f32>) -> tensor<5xf32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.pad"(%[[V0]], %arg2) {high = array<i64: 0>, interior = array<i64: 0>, low = array<i64: 1>} : (tensor<5xf32>, tensor<f32>) -> tensor<6xf32>
// CHECK-NEXT: return %[[V1]] : tensor<6xf32>
func.func @pad_with_another_value(%arg0: tensor<4xf32>, %arg1: tensor<f32>, %arg2: tensor<f32>) -> tensor<6xf32> {
  %0 = "smelt.pad"(%arg0, %arg1) {high = array<i64: 0>, interior = array<i64: 0>, low = array<i64: 1>} : (tensor<4xf32>, tensor<f32>) -> tensor<5xf32>
  %1 = "smelt.pad"(%0, %arg2) {high = array<i64: 0>, interior = array<i64: 0>, low = array<i64: 1>} : (tensor<5xf32>, tensor<f32>) -> tensor<6xf32>
  return %1 : tensor<6xf32>
}

// CHECK-LABEL: func.func @slice_of_padding(
// CHECK-NEXT: %[[V0:.*]] = "smelt.pad"(%arg0, %arg1) {high = array<i64: 1>, interior = array<i64: 0>, low = array<i64: 2>} : (tensor<4xf32>, tensor<f32>) -> tensor<7xf32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.slice"(%[[V0]]) {start = array<i64: 1>, stop = array<i64: 5>, stride = array<i64: 1>} : (tensor<7xf32>) -> tensor<4xf32>
// CHECK-NEXT: return %[[V1]] : tensor<4xf32>
func.func @slice_of_padding(%arg0: tensor<4xf32>, %arg1: tensor<f32>) -> tensor<4xf32> {
  %0 = "smelt.pad"(%arg0, %arg1) {high = array<i64: 1>, interior = array<i64: 0>, low = array<i64: 2>} : (tensor<4xf32>, tensor<f32>) -> tensor<7xf32>
  %1 = "smelt.slice"(%0) {start = array<i64: 1>, stop = array<i64: 5>, stride = array<i64: 1>} : (tensor<7xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// Slices that are neighbours, but of different strides.
// CHECK-LABEL: func.func @slices_of_other_strides(
// CHECK: "smelt.concatenate"
func.func @slices_of_other_strides(%x: tensor<12xf32>) -> tensor<5xf32> {
  %0 = "smelt.slice"(%x) {start = array<i64: 0>, stop = array<i64: 2>, stride = array<i64: 1>} : (tensor<12xf32>) -> tensor<2xf32>
  %1 = "smelt.slice"(%x) {start = array<i64: 2>, stop = array<i64: 8>, stride = array<i64: 2>} : (tensor<12xf32>) -> tensor<3xf32>
  %2 = "smelt.concatenate"(%0, %1) {axis = 0 : i64} : (tensor<2xf32>, tensor<3xf32>) -> tensor<5xf32>
  return %2 : tensor<5xf32>
}

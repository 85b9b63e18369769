// Contractions.
// RUN: smelt-opt %s --canonicalize | filecheck %s

// CHECK-LABEL: func.func @vector_times_reshape(
// CHECK-NEXT: %[[V0:.*]] = "smelt.dot_general"(%arg0, %arg1) {{.*}} : (tensor<5xf32>, tensor<5x4x3xf32>) -> tensor<4x3xf32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.transpose"(%[[V0]]) {permutation = array<i64: 1, 0>} : (tensor<4x3xf32>) -> tensor<3x4xf32>
// CHECK-NEXT: %[[V2:.*]] = "smelt.reshape"(%[[V1]]) {shape = array<i64: 12>} : (tensor<3x4xf32>) -> tensor<12xf32>
// CHECK-NEXT: return %[[V2]] : tensor<12xf32>
func.func @vector_times_reshape(%v: tensor<5xf32>, %x: tensor<5x4x3xf32>) -> tensor<12xf32> {
  %0 = "smelt.transpose"(%x) {permutation = array<i64: 0, 2, 1>} : (tensor<5x4x3xf32>) -> tensor<5x3x4xf32>
  %1 = "smelt.reshape"(%0) {shape = array<i64: 5, 12>} : (tensor<5x3x4xf32>) -> tensor<5x12xf32>
  %2 = "smelt.dot_general"(%v, %1) {lhs_batch = array<i64>, lhs_contracting = array<i64: 0>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<5xf32>, tensor<5x12xf32>) -> tensor<12xf32>
  return %2 : tensor<12xf32>
}

// CHECK-LABEL: func.func @vector_times_transpose(
// CHECK-NEXT: %[[V0:.*]] = "smelt.dot_general"(%arg1, %arg0) {{.*}}lhs_contracting = array<i64: 1>{{.*}} : (tensor<4x5x3xf32>, tensor<5xf32>) -> tensor<4x3xf32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.transpose"(%[[V0]]) {permutation = array<i64: 1, 0>} : (tensor<4x3xf32>) -> tensor<3x4xf32>
// CHECK-NEXT: return %[[V1]] : tensor<3x4xf32>
func.func @vector_times_transpose(%v: tensor<5xf32>, %x: tensor<4x5x3xf32>) -> tensor<3x4xf32> {
  %0 = "smelt.transpose"(%x) {permutation = array<i64: 2, 0, 1>} : (tensor<4x5x3xf32>) -> tensor<3x4x5xf32>
  %1 = "smelt.dot_general"(%0, %v) {lhs_batch = array<i64>, lhs_contracting = array<i64: 2>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<3x4x5xf32>, tensor<5xf32>) -> tensor<3x4xf32>
  return %1 : tensor<3x4xf32>
}

// A matrix on both sides: libraries read transposes as they are.
// CHECK-LABEL: func.func @matrices(
// CHECK-NEXT: "smelt.transpose"
func.func @matrices(%v: tensor<2x5xf32>, %x: tensor<5x4x3xf32>) -> tensor<2x3x4xf32> {
  %0 = "smelt.transpose"(%x) {permutation = array<i64: 0, 2, 1>} : (tensor<5x4x3xf32>) -> tensor<5x3x4xf32>
  %1 = "smelt.dot_general"(%v, %0) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<2x5xf32>, tensor<5x3x4xf32>) -> tensor<2x3x4xf32>
  return %1 : tensor<2x3x4xf32>
}

// A product of vectors is one of elements, with batches too: other ops take part in it.
// CHECK-LABEL: func.func @of_vectors(
// CHECK-DAG: %[[X:.*]] = "smelt.broadcast"(%{{.*}}) {shape = array<i64: 2, 3, 4>}
// CHECK: %[[V0:.*]] = "smelt.mul"(%{{.*}}, %{{.*}}) : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
// CHECK-NEXT: return %[[V0]] : tensor<2x3x4xf32>
func.func @of_vectors(%x: tensor<3x2x1xf32>, %y: tensor<2x1x4xf32>) -> tensor<2x3x4xf32> {
  %0 = "smelt.dot_general"(%x, %y) {lhs_batch = array<i64: 1>, lhs_contracting = array<i64: 2>, rhs_batch = array<i64: 0>, rhs_contracting = array<i64: 1>} : (tensor<3x2x1xf32>, tensor<2x1x4xf32>) -> tensor<2x3x4xf32>
  return %0 : tensor<2x3x4xf32>
}

// Nothing is summed over.
// CHECK-LABEL: func.func @of_all(
// CHECK-NOT: dot_general
// CHECK: "smelt.mul"
func.func @of_all(%x: tensor<3xi32>, %y: tensor<4xi32>) -> tensor<3x4xi32> {
  %0 = "smelt.dot_general"(%x, %y) {lhs_batch = array<i64>, lhs_contracting = array<i64>, rhs_batch = array<i64>, rhs_contracting = array<i64>} : (tensor<3xi32>, tensor<4xi32>) -> tensor<3x4xi32>
  return %0 : tensor<3x4xi32>
}

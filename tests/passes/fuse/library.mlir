// Large matrix products of some dtypes are a library's work; others are kernels.
// RUN: smelt-opt %s --pass-pipeline='fuse{contractions=true library=f32:1000:4}' | filecheck %s

// CHECK-LABEL: func.func @large(
// CHECK-NEXT: %[[P:.*]] = "smelt.dot_general"(%arg0, %arg1)
// CHECK-NEXT: %[[R:.*]] = call @kernel_tanh(%[[P]])
// CHECK-NEXT: return %[[R]]
func.func @large(%x: tensor<8x16xf32>, %w: tensor<16x8xf32>) -> tensor<8x8xf32> {
  %0 = "smelt.dot_general"(%x, %w) {lhs_contracting = array<i64: 1>, rhs_contracting = array<i64: 0>} : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
  %1 = "smelt.tanh"(%0) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// CHECK-LABEL: func.func @small(
// CHECK-NEXT: %[[R:.*]] = call @fused_dot_general_tanh(%arg0, %arg1)
// CHECK-NEXT: return %[[R]]
func.func @small(%x: tensor<2x16xf32>, %w: tensor<16x8xf32>) -> tensor<2x8xf32> {
  %0 = "smelt.dot_general"(%x, %w) {lhs_contracting = array<i64: 1>, rhs_contracting = array<i64: 0>} : (tensor<2x16xf32>, tensor<16x8xf32>) -> tensor<2x8xf32>
  %1 = "smelt.tanh"(%0) : (tensor<2x8xf32>) -> tensor<2x8xf32>
  return %1 : tensor<2x8xf32>
}

// CHECK-LABEL: func.func @another_dtype(
// CHECK-NEXT: %[[R:.*]] = call @fused_dot_general_tanh_1(%arg0, %arg1)
// CHECK-NEXT: return %[[R]]
func.func @another_dtype(%x: tensor<8x16xf16>, %w: tensor<16x8xf16>) -> tensor<8x8xf16> {
  %0 = "smelt.dot_general"(%x, %w) {lhs_contracting = array<i64: 1>, rhs_contracting = array<i64: 0>} : (tensor<8x16xf16>, tensor<16x8xf16>) -> tensor<8x8xf16>
  %1 = "smelt.tanh"(%0) : (tensor<8x8xf16>) -> tensor<8x8xf16>
  return %1 : tensor<8x8xf16>
}

// One that computes an operand while it reads it is a kernel, however large.
// CHECK-LABEL: func.func @computed(
// CHECK-NEXT: %[[R:.*]] = call @fused_convert_dot_general(%arg1, %arg0)
// CHECK-NEXT: return %[[R]]
func.func @computed(%x: tensor<8x16xf32>, %w: tensor<16x8xi8>) -> tensor<8x8xf32> {
  %0 = "smelt.convert"(%w) {dtype = f32} : (tensor<16x8xi8>) -> tensor<16x8xf32>
  %1 = "smelt.dot_general"(%x, %0) {lhs_contracting = array<i64: 1>, rhs_contracting = array<i64: 0>} : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// A transpose in front of one is read behind: another axis is contracted.
// CHECK-LABEL: func.func @transposed(
// CHECK-NEXT: %[[R:.*]] = "smelt.dot_general"(%arg0, %arg1) {{.*}}rhs_contracting = array<i64: 1>
// CHECK-NEXT: return %[[R]]
func.func @transposed(%x: tensor<8x16xf32>, %w: tensor<8x16xf32>) -> tensor<8x8xf32> {
  %0 = "smelt.transpose"(%w) {permutation = array<i64: 1, 0>} : (tensor<8x16xf32>) -> tensor<16x8xf32>
  %1 = "smelt.dot_general"(%x, %0) {lhs_contracting = array<i64: 1>, rhs_contracting = array<i64: 0>} : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

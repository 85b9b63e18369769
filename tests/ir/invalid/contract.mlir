// RUN: smelt-opt %s --split-input-file --verify-diagnostics

func.func @f(%a: tensor<4x8xf32>, %b: tensor<8x3xf32>) {
  // expected-error @+1 {{smelt.dot_general: contracting axis 1 of lhs has 8 elements, axis 1 of rhs has 3}}
  %r = "smelt.dot_general"(%a, %b) {lhs_contracting = array<i64: 1>, rhs_contracting = array<i64: 1>} : (tensor<4x8xf32>, tensor<8x3xf32>) -> tensor<4x3xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>, %b: tensor<8x3xf32>) {
  // expected-error @+1 {{smelt.dot_general: lhs has 1 contracting axes, rhs has 0}}
  %r = "smelt.dot_general"(%a, %b) {lhs_contracting = array<i64: 1>, rhs_contracting = array<i64>} : (tensor<4x8xf32>, tensor<8x3xf32>) -> tensor<4x3xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>, %b: tensor<8x3xf32>) {
  // expected-error @+1 {{smelt.dot_general: batch and contracting axes of lhs (2,) out of range for 2 dimensions}}
  %r = "smelt.dot_general"(%a, %b) {lhs_contracting = array<i64: 2>, rhs_contracting = array<i64: 0>} : (tensor<4x8xf32>, tensor<8x3xf32>) -> tensor<4x3xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>, %b: tensor<8x3xf16>) {
  // expected-error @+1 {{smelt.dot_general: lhs and rhs must have the same dtype}}
  %r = "smelt.dot_general"(%a, %b) {lhs_contracting = array<i64: 1>, rhs_contracting = array<i64: 0>} : (tensor<4x8xf32>, tensor<8x3xf16>) -> tensor<4x3xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>, %b: tensor<8x3xf32>) {
  // expected-error @+1 {{smelt.dot_general: batch axis 0 of lhs has 4 elements, axis 1 of rhs has 3}}
  %r = "smelt.dot_general"(%a, %b) {lhs_contracting = array<i64: 1>, rhs_contracting = array<i64: 0>, lhs_batch = array<i64: 0>, rhs_batch = array<i64: 1>} : (tensor<4x8xf32>, tensor<8x3xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xi1>, %b: tensor<8x3xi1>) {
  // expected-error @+1 {{smelt.dot_general: lhs is bool, must be one of uint8, uint16, uint32, uint64, int8, int16, int32, int64, float16, bfloat16, float32, float64, complex64, complex128}}
  %r = "smelt.dot_general"(%a, %b) {lhs_contracting = array<i64: 1>, rhs_contracting = array<i64: 0>} : (tensor<4x8xi1>, tensor<8x3xi1>) -> tensor<4x3xi1>
  return
}

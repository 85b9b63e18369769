// RUN: smelt-opt %s --split-input-file --verify-diagnostics

func.func @f(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{smelt.reshape: cannot reshape 32 elements to (33,), which holds 33}}
  %r = "smelt.reshape"(%a) {shape = array<i64: 33>} : (tensor<4x8xf32>) -> tensor<33xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{smelt.reshape: shape (-4, -8) has a negative extent}}
  %r = "smelt.reshape"(%a) {shape = array<i64: -4, -8>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{smelt.transpose: permutation (0, 0) repeat an axis}}
  %r = "smelt.transpose"(%a) {permutation = array<i64: 0, 0>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{smelt.transpose: permutation (0,) must name all 2 axes}}
  %r = "smelt.transpose"(%a) {permutation = array<i64: 0>} : (tensor<4x8xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{smelt.transpose: permutation (1, 2) out of range for 2 dimensions}}
  %r = "smelt.transpose"(%a) {permutation = array<i64: 1, 2>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{smelt.transpose: result type must be f32[8,4], is f32[4,8]}}
  %r = "smelt.transpose"(%a) {permutation = array<i64: 1, 0>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @f(%a: tensor<3xf32>) {
  // expected-error @+1 {{smelt.broadcast: cannot broadcast shape (3,) to (3, 4)}}
  %r = "smelt.broadcast"(%a) {shape = array<i64: 3, 4>} : (tensor<3xf32>) -> tensor<3x4xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{smelt.broadcast: cannot broadcast shape (4, 8) to (8,)}}
  %r = "smelt.broadcast"(%a) {shape = array<i64: 8>} : (tensor<4x8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @f(%a: tensor<f32>) {
  // expected-error @+1 {{smelt.broadcast: cannot broadcast shape () to (-1,)}}
  %r = "smelt.broadcast"(%a) {shape = array<i64: -1>} : (tensor<f32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%a: tensor<4xf32>) {
  // expected-error @+1 {{smelt.slice: axis 0: 0:5:1 does not lie within 0:4}}
  %r = "smelt.slice"(%a) {start = array<i64: 0>, stop = array<i64: 5>, stride = array<i64: 1>} : (tensor<4xf32>) -> tensor<5xf32>
  return
}

// -----

func.func @f(%a: tensor<4xf32>) {
  // expected-error @+1 {{smelt.slice: axis 0: 3:2:1 does not lie within 0:4}}
  %r = "smelt.slice"(%a) {start = array<i64: 3>, stop = array<i64: 2>, stride = array<i64: 1>} : (tensor<4xf32>) -> tensor<0xf32>
  return
}

// -----

func.func @f(%a: tensor<4xf32>) {
  // expected-error @+1 {{smelt.slice: axis 0: 0:4:0 does not lie within 0:4}}
  %r = "smelt.slice"(%a) {start = array<i64: 0>, stop = array<i64: 4>, stride = array<i64: 0>} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{smelt.slice: start, stop and stride need one entry an axis}}
  %r = "smelt.slice"(%a) {start = array<i64: 0>, stop = array<i64: 4>, stride = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%a: tensor<4xf32>) {
  // expected-error @+1 {{smelt.reverse: axes (1,) out of range for 1 dimensions}}
  %r = "smelt.reverse"(%a) {axes = array<i64: 1>} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%a: tensor<4xf32>, %b: tensor<4xf32>) {
  // expected-error @+1 {{smelt.pad: value must be a scalar}}
  %r = "smelt.pad"(%a, %b) {low = array<i64: 0>, high = array<i64: 0>, interior = array<i64: 0>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%a: tensor<4xf32>, %b: tensor<i32>) {
  // expected-error @+1 {{smelt.pad: value must have the dtype of x}}
  %r = "smelt.pad"(%a, %b) {low = array<i64: 0>, high = array<i64: 0>, interior = array<i64: 0>} : (tensor<4xf32>, tensor<i32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%a: tensor<4xf32>, %b: tensor<f32>) {
  // expected-error @+1 {{smelt.pad: low, high and interior must not be negative}}
  %r = "smelt.pad"(%a, %b) {low = array<i64: -1>, high = array<i64: 0>, interior = array<i64: 0>} : (tensor<4xf32>, tensor<f32>) -> tensor<3xf32>
  return
}

// -----

func.func @f(%a: tensor<4xf32>, %b: tensor<f32>) {
  // expected-error @+1 {{smelt.pad: low, high and interior need one entry an axis}}
  %r = "smelt.pad"(%a, %b) {low = array<i64: 0, 0>, high = array<i64: 0>, interior = array<i64: 0>} : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%a: tensor<4xf32>, %b: tensor<4xf32>) {
  // expected-error @+1 {{smelt.concatenate: axis (1,) out of range for 1 dimensions}}
  %r = "smelt.concatenate"(%a, %b) {axis = 1 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>, %b: tensor<4x8xi32>) {
  // expected-error @+1 {{smelt.concatenate: operands must have the same dtype}}
  %r = "smelt.concatenate"(%a, %b) {axis = 0 : i64} : (tensor<4x8xf32>, tensor<4x8xi32>) -> tensor<8x8xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>, %b: tensor<3x7xf32>) {
  // expected-error @+1 {{smelt.concatenate: shapes must agree on all axes but 0}}
  %r = "smelt.concatenate"(%a, %b) {axis = 0 : i64} : (tensor<4x8xf32>, tensor<3x7xf32>) -> tensor<7x8xf32>
  return
}

// -----

func.func @f() {
  // expected-error @+1 {{smelt.iota: axis (1,) out of range for 1 dimensions}}
  %r = "smelt.iota"() {shape = array<i64: 4>, axis = 1 : i64, dtype = i32} : () -> tensor<4xi32>
  return
}

// -----

func.func @f() {
  // expected-error @+1 {{smelt.iota: dtype is bool, must be one of uint8, uint16, uint32, uint64, int8, int16, int32, int64, float16, bfloat16, float32, float64, complex64, complex128}}
  %r = "smelt.iota"() {shape = array<i64: 4>, axis = 0 : i64, dtype = i1} : () -> tensor<4xi1>
  return
}

// -----

func.func @f() {
  // expected-error @+1 {{smelt.iota: shape (-4,) has a negative extent}}
  %r = "smelt.iota"() {shape = array<i64: -4>, axis = 0 : i64, dtype = i32} : () -> tensor<4xi32>
  return
}

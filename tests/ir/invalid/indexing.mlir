// RUN: smelt-opt %s --split-input-file --verify-diagnostics

func.func @f(%a: tensor<5x3xf32>, %b: tensor<4xi32>) {
  // expected-error @+1 {{smelt.gather: axes (2,) out of range for 2 dimensions}}
  %r = "smelt.gather"(%a, %b) {axes = array<i64: 2>, slice_sizes = array<i64: 1, 3>} : (tensor<5x3xf32>, tensor<4xi32>) -> tensor<4x1x3xf32>
  return
}

// -----

func.func @f(%a: tensor<5x3xf32>, %b: tensor<4xi32>) {
  // expected-error @+1 {{smelt.gather: slice_sizes (6, 3) do not fit into shape (5, 3)}}
  %r = "smelt.gather"(%a, %b) {axes = array<i64: 0>, slice_sizes = array<i64: 6, 3>} : (tensor<5x3xf32>, tensor<4xi32>) -> tensor<4x6x3xf32>
  return
}

// -----

func.func @f(%a: tensor<5x3xf32>, %b: tensor<4xf32>) {
  // expected-error @+1 {{smelt.gather: an index tensor is float32, must be one of uint8, uint16, uint32, uint64, int8, int16, int32, int64}}
  %r = "smelt.gather"(%a, %b) {axes = array<i64: 0>, slice_sizes = array<i64: 1, 3>} : (tensor<5x3xf32>, tensor<4xf32>) -> tensor<4x1x3xf32>
  return
}

// -----

func.func @f(%a: tensor<5x3xf32>, %b: tensor<4xi32>) {
  // expected-error @+1 {{smelt.gather: needs one index tensor an axis in axes (0, 1)}}
  %r = "smelt.gather"(%a, %b) {axes = array<i64: 0, 1>, slice_sizes = array<i64: 1, 3>} : (tensor<5x3xf32>, tensor<4xi32>) -> tensor<4x1x3xf32>
  return
}

// -----

func.func @f(%a: tensor<5x3xf32>, %b: tensor<4xi32>) {
  // expected-error @+1 {{smelt.gather: slice_sizes (1,) needs one entry an axis}}
  %r = "smelt.gather"(%a, %b) {axes = array<i64: 0>, slice_sizes = array<i64: 1>} : (tensor<5x3xf32>, tensor<4xi32>) -> tensor<4x1x3xf32>
  return
}

// -----

func.func @f(%a: tensor<5x3xf32>, %b: tensor<4x1x3xf32>, %c: tensor<4xi32>) {
  // expected-error @+1 {{smelt.scatter: mode "sum" must be one of set, add, mul, max, min}}
  %r = "smelt.scatter"(%a, %b, %c) {axes = array<i64: 0>, mode = "sum"} : (tensor<5x3xf32>, tensor<4x1x3xf32>, tensor<4xi32>) -> tensor<5x3xf32>
  return
}

// -----

func.func @f(%a: tensor<5x3xf32>, %b: tensor<4x6x3xf32>, %c: tensor<4xi32>) {
  // expected-error @+1 {{smelt.scatter: updates must have shape (4,) and then a window that fits into (5, 3)}}
  %r = "smelt.scatter"(%a, %b, %c) {axes = array<i64: 0>, mode = "add"} : (tensor<5x3xf32>, tensor<4x6x3xf32>, tensor<4xi32>) -> tensor<5x3xf32>
  return
}

// -----

func.func @f(%a: tensor<5x3xf32>, %b: tensor<3x1x3xf32>, %c: tensor<4xi32>) {
  // expected-error @+1 {{smelt.scatter: updates must have shape (4,) and then a window that fits into (5, 3)}}
  %r = "smelt.scatter"(%a, %b, %c) {axes = array<i64: 0>, mode = "add"} : (tensor<5x3xf32>, tensor<3x1x3xf32>, tensor<4xi32>) -> tensor<5x3xf32>
  return
}

// -----

func.func @f(%a: tensor<5x3xf32>, %b: tensor<4x1x3xi32>, %c: tensor<4xi32>) {
  // expected-error @+1 {{smelt.scatter: updates must have the dtype of x}}
  %r = "smelt.scatter"(%a, %b, %c) {axes = array<i64: 0>, mode = "add"} : (tensor<5x3xf32>, tensor<4x1x3xi32>, tensor<4xi32>) -> tensor<5x3xf32>
  return
}


// RUN: smelt-opt %s --split-input-file --verify-diagnostics

func.func @f(%f: (tensor<4xf32>) -> tensor<f32>) {
  // expected-error @+1 {{smelt.jvp: wrt (1,) must be distinct and below 1}}
  %d = "smelt.jvp"(%f) {wrt = array<i64: 1>} : ((tensor<4xf32>) -> tensor<f32>) -> ((tensor<4xf32>) -> tensor<f32>)
  return
}

// -----

func.func @f(%f: (tensor<4xf32>) -> tensor<f32>) {
  // expected-error-re @+1 {{smelt.jvp: result must be (f32[4], f32[4]) -> {{.*}}, is (f32[4]) -> (f32[])}}
  %d = "smelt.jvp"(%f) {wrt = array<i64: 0>} : ((tensor<4xf32>) -> tensor<f32>) -> ((tensor<4xf32>) -> tensor<f32>)
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error @+1 {{smelt.jvp: operand and result are functions, one is tensor<4xf32>}}
  %d = "smelt.jvp"(%x) {wrt = array<i64: 0>} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%f: (tensor<4xf32>) -> tensor<f32>) {
  // expected-error @+1 {{smelt.vjp: seeds (0, 0) must be distinct and below 1}}
  %d = "smelt.vjp"(%f) {wrt = array<i64: 0>, seeds = array<i64: 0, 0>} : ((tensor<4xf32>) -> tensor<f32>) -> ((tensor<4xf32>) -> tensor<f32>)
  return
}

// -----

func.func @f(%f: (tensor<4xf32>) -> tensor<f32>) {
  // expected-error @+1 {{smelt.vjp: attribute seeds (an array<i64: ...>) is missing}}
  %d = "smelt.vjp"(%f) {wrt = array<i64: 0>} : ((tensor<4xf32>) -> tensor<f32>) -> ((tensor<4xf32>) -> tensor<f32>)
  return
}

// -----

func.func @f(%f: (tensor<4xf32>) -> tensor<f32>) {
  // expected-error @+1 {{smelt.linear_transpose: result must be (f32[]) -> (f32[4]), is (f32[4]) -> (f32[])}}
  %d = "smelt.linear_transpose"(%f) {wrt = array<i64: 0>} : ((tensor<4xf32>) -> tensor<f32>) -> ((tensor<4xf32>) -> tensor<f32>)
  return
}

// -----

func.func @f(%f: (tensor<4xf32>) -> tensor<f32>) {
  // expected-error @+1 {{smelt.batch: 1 arguments and 1 results need as many in_axes and out_axes}}
  %d = "smelt.batch"(%f) {size = 8 : i64, in_axes = array<i64>, out_axes = array<i64: 0>} : ((tensor<4xf32>) -> tensor<f32>) -> ((tensor<8x4xf32>) -> tensor<8xf32>)
  return
}

// -----

func.func @f(%f: (tensor<4xf32>) -> tensor<f32>) {
  // expected-error @+1 {{smelt.batch: in_axes entry 2 out of range for f32[4]}}
  %d = "smelt.batch"(%f) {size = 8 : i64, in_axes = array<i64: 2>, out_axes = array<i64: 0>} : ((tensor<4xf32>) -> tensor<f32>) -> ((tensor<8x4xf32>) -> tensor<8xf32>)
  return
}

// -----

func.func @f(%f: (tensor<4xf32>) -> tensor<f32>) {
  // expected-error @+1 {{smelt.batch: size -1 must not be negative}}
  %d = "smelt.batch"(%f) {size = -1 : i64, in_axes = array<i64: 0>, out_axes = array<i64: 0>} : ((tensor<4xf32>) -> tensor<f32>) -> ((tensor<8x4xf32>) -> tensor<8xf32>)
  return
}

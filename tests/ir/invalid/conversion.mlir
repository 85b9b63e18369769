// RUN: smelt-opt %s --split-input-file --verify-diagnostics

func.func @f(%a: tensor<4xf32>) {
  // expected-error @+1 {{smelt.convert: result type must be i32[4], is f32[4]}}
  %r = "smelt.convert"(%a) {dtype = i32} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%a: tensor<4xf32>) {
  // expected-error @+1 {{smelt.bitcast: cannot read float32 as int64: sizes differ or kind has no bits}}
  %r = "smelt.bitcast"(%a) {dtype = i64} : (tensor<4xf32>) -> tensor<4xi64>
  return
}

// -----

func.func @f(%a: tensor<4xi1>) {
  // expected-error @+1 {{smelt.bitcast: operand is bool, must be one of uint8, uint16, uint32, uint64, int8, int16, int32, int64, float16, bfloat16, float32, float64}}
  %r = "smelt.bitcast"(%a) {dtype = i8} : (tensor<4xi1>) -> tensor<4xi8>
  return
}

// -----

func.func @f(%a: tensor<4xf32>) {
  // expected-error @+1 {{smelt.byte_view: operand is float32, must be one of bool, uint8, int8}}
  %r = "smelt.byte_view"(%a) {dtype = i1} : (tensor<4xf32>) -> tensor<4xi1>
  return
}

// -----

func.func @f(%a: tensor<4xi1>) {
  // expected-error @+1 {{smelt.byte_view: cannot read bool as uint16: not a dtype of one byte}}
  %r = "smelt.byte_view"(%a) {dtype = ui16} : (tensor<4xi1>) -> tensor<4xui16>
  return
}

// -----

func.func @f(%a: tensor<4xf32>) {
  // expected-error @+1 {{smelt.real: operand is float32, must be one of complex64, complex128}}
  %r = "smelt.real"(%a) : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%a: tensor<4xf16>, %b: tensor<4xf16>) {
  // expected-error @+1 {{smelt.complex: operand is float16, must be one of float32, float64}}
  %r = "smelt.complex"(%a, %b) : (tensor<4xf16>, tensor<4xf16>) -> tensor<4xcomplex<f32>>
  return
}

// -----

func.func @f(%a: tensor<4xf32>) {
  // expected-error @+1 {{smelt.stop_gradient: result type must be f32[4], is f32[3]}}
  %r = "smelt.stop_gradient"(%a) : (tensor<4xf32>) -> tensor<3xf32>
  return
}

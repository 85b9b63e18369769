// RUN: smelt-opt %s --split-input-file --verify-diagnostics

func.func @f(%a: tensor<4xf32>, %b: tensor<3xf32>) {
  // expected-error @+1 {{smelt.add: operands must have the same shape}}
  %r = "smelt.add"(%a, %b) : (tensor<4xf32>, tensor<3xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%a: tensor<4xf32>, %b: tensor<4xi32>) {
  // expected-error @+1 {{smelt.add: operands must have the same dtype}}
  %r = "smelt.add"(%a, %b) : (tensor<4xf32>, tensor<4xi32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%a: tensor<4xf32>, %b: tensor<4xf32>) {
  // expected-error @+1 {{smelt.add: result type must be f32[4], is f32[3]}}
  %r = "smelt.add"(%a, %b) : (tensor<4xf32>, tensor<4xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @f(%a: tensor<4xf32>) {
  // expected-error @+1 {{smelt.add takes 2 operands (x, y), has 1}}
  %r = "smelt.add"(%a) : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%a: tensor<4xf32>, %b: tensor<4xf32>) {
  // expected-error @+1 {{smelt.add has no attribute extra}}
  %r = "smelt.add"(%a, %b) {extra = 1 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%a: tensor<4xi4>, %b: tensor<4xi4>) {
  // expected-error @+1 {{smelt.add: element type i4 is not one of smelt's: i1, ui8, ui16, ui32, ui64, i8, i16, i32, i64, f16, bf16, f32, f64, complex<f32>, complex<f64>}}
  %r = "smelt.add"(%a, %b) : (tensor<4xi4>, tensor<4xi4>) -> tensor<4xi4>
  return
}

// -----

func.func @f(%a: tensor<?xf32>, %b: tensor<?xf32>) {
  // expected-error @+1 {{smelt.add: tensor<?xf32> has a dynamic dimension}}
  %r = "smelt.add"(%a, %b) : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  return
}

// -----

func.func @f(%a: tensor<*xf32>, %b: tensor<*xf32>) {
  // expected-error @+1 {{smelt.add: smelt values are ranked tensors, this one is tensor<*xf32>}}
  %r = "smelt.add"(%a, %b) : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  return
}

// -----

func.func @f(%a: f32, %b: f32) {
  // expected-error @+1 {{smelt.add: smelt values are ranked tensors, this one is f32}}
  %r = "smelt.add"(%a, %b) : (f32, f32) -> f32
  return
}

// -----

func.func @f(%a: tensor<4xf32, "x">, %b: tensor<4xf32, "x">) {
  // expected-error @+1 {{smelt.add: tensor<4xf32, "x"> has an encoding, which smelt tensors do not take}}
  %r = "smelt.add"(%a, %b) : (tensor<4xf32, "x">, tensor<4xf32, "x">) -> tensor<4xf32, "x">
  return
}

// -----

func.func @f(%a: tensor<4xi32>, %b: tensor<4xi32>) {
  // expected-error @+1 {{smelt.div: operand is int32, must be one of float16, bfloat16, float32, float64, complex64, complex128}}
  %r = "smelt.div"(%a, %b) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @f(%a: tensor<4xi32>) {
  // expected-error @+1 {{smelt.sqrt: operand is int32, must be one of float16, bfloat16, float32, float64, complex64, complex128}}
  %r = "smelt.sqrt"(%a) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @f(%a: tensor<4xf32>, %b: tensor<3xf32>) {
  // expected-error @+1 {{smelt.maximum: operands must have the same shape}}
  %r = "smelt.maximum"(%a, %b) : (tensor<4xf32>, tensor<3xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%a: tensor<4xf32>, %b: tensor<4xf32>, %c: tensor<3xf32>) {
  // expected-error @+1 {{smelt.clamp: operands must have the same shape}}
  %r = "smelt.clamp"(%a, %b, %c) : (tensor<4xf32>, tensor<4xf32>, tensor<3xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%a: tensor<4xi32>) {
  // expected-error @+1 {{smelt.integer_power: the exponent -1 of an integer must not be negative}}
  %r = "smelt.integer_power"(%a) {exponent = -1 : i64} : (tensor<4xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @f(%a: tensor<4xf32>) {
  // expected-error @+1 {{smelt.integer_power: attribute exponent must be an i64 integer, is 2.000000e+00 : f64}}
  %r = "smelt.integer_power"(%a) {exponent = 2.0 : f64} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%a: tensor<4xf32>) {
  // expected-error @+1 {{smelt.integer_power: attribute exponent (an i64 integer) is missing}}
  %r = "smelt.integer_power"(%a) : (tensor<4xf32>) -> tensor<4xf32>
  return
}

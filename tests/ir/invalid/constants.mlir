// RUN: smelt-opt %s --split-input-file --verify-diagnostics

func.func @f() {
  // expected-error @+1 {{smelt.constant: attribute value (a number) is missing}}
  %r = "smelt.constant"() {dtype = f32} : () -> tensor<f32>
  return
}

// -----

func.func @f() {
  // expected-error @+1 {{smelt.constant: attribute dtype (a type) is missing}}
  %r = "smelt.constant"() {value = 1.0 : f64} : () -> tensor<f32>
  return
}

// -----

func.func @f() {
  // expected-error @+1 {{smelt.constant: result type must be f32[], is f32[4]}}
  %r = "smelt.constant"() {value = 1.0 : f64, dtype = f32} : () -> tensor<4xf32>
  return
}

// -----

func.func @f() {
  // expected-error @+1 {{smelt.constant: result type must be i32[], is f32[]}}
  %r = "smelt.constant"() {value = 1.0 : f64, dtype = i32} : () -> tensor<f32>
  return
}

// -----

func.func @f() {
  // expected-error @+1 {{smelt.constant: attribute value must be a number, is "one"}}
  %r = "smelt.constant"() {value = "one", dtype = f32} : () -> tensor<f32>
  return
}

// -----

func.func @f() {
  // expected-error @+1 {{smelt.constant: a complex value cannot be a float32}}
  %r = "smelt.constant"() {value = array<f64: 1.0, 2.0>, dtype = f32} : () -> tensor<f32>
  return
}

// -----

func.func @f() {
  // expected-error @+1 {{smelt.constant: attribute dtype must be a type, is 3 : i64}}
  %r = "smelt.constant"() {value = 1.0 : f64, dtype = 3 : i64} : () -> tensor<f32>
  return
}

// -----

func.func @f() {
  // expected-error @+1 {{smelt.literal: result type must be i32[2], is i32[3]}}
  %r = "smelt.literal"() {value = dense<[1, 2]> : tensor<2xi32>} : () -> tensor<3xi32>
  return
}

// -----

func.func @f() {
  // expected-error @+1 {{smelt.literal: attribute value must be dense elements of a dtype among bool, uint8, uint16, uint32, uint64, int8, int16, int32, int64, float16, float32, float64}}
  %r = "smelt.literal"() {value = dense<(1.0, 2.0)> : tensor<1xcomplex<f32>>} : () -> tensor<1xcomplex<f32>>
  return
}

// -----

func.func @f() {
  // expected-error @+1 {{smelt.literal: attribute value must be dense elements, is 1 : i64}}
  %r = "smelt.literal"() {value = 1 : i64} : () -> tensor<1xi32>
  return
}

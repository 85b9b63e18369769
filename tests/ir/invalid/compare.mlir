// RUN: smelt-opt %s --split-input-file --verify-diagnostics

func.func @f(%a: tensor<4xf32>, %b: tensor<4xf32>) {
  // expected-error @+1 {{smelt.equal: result type must be i1[4], is f32[4]}}
  %r = "smelt.equal"(%a, %b) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%a: tensor<4xf32>, %b: tensor<4xi32>) {
  // expected-error @+1 {{smelt.less: operands must have the same dtype}}
  %r = "smelt.less"(%a, %b) : (tensor<4xf32>, tensor<4xi32>) -> tensor<4xi1>
  return
}

// -----

func.func @f(%a: tensor<4xf32>) {
  // expected-error @+1 {{smelt.logical_not: operand is float32, must be one of bool}}
  %r = "smelt.logical_not"(%a) : (tensor<4xf32>) -> tensor<4xi1>
  return
}

// -----

func.func @f(%a: tensor<4xf32>, %b: tensor<4xf32>) {
  // expected-error @+1 {{smelt.bitwise_and: operand is float32, must be one of bool, uint8, uint16, uint32, uint64, int8, int16, int32, int64}}
  %r = "smelt.bitwise_and"(%a, %b) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%a: tensor<4xi1>, %b: tensor<4xi1>) {
  // expected-error @+1 {{smelt.left_shift: operand is bool, must be one of uint8, uint16, uint32, uint64, int8, int16, int32, int64}}
  %r = "smelt.left_shift"(%a, %b) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  return
}

// -----

func.func @f(%a: tensor<4xf32>, %b: tensor<4xf32>, %c: tensor<4xf32>) {
  // expected-error @+1 {{smelt.select: condition is float32, must be one of bool}}
  %r = "smelt.select"(%a, %b, %c) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%a: tensor<4xi1>, %b: tensor<4xf32>, %c: tensor<4xi32>) {
  // expected-error @+1 {{smelt.select: x and y must have the same dtype}}
  %r = "smelt.select"(%a, %b, %c) : (tensor<4xi1>, tensor<4xf32>, tensor<4xi32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%a: tensor<3xi1>, %b: tensor<4xf32>, %c: tensor<4xf32>) {
  // expected-error @+1 {{smelt.select: operands must have the same shape}}
  %r = "smelt.select"(%a, %b, %c) : (tensor<3xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

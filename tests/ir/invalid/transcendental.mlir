// RUN: smelt-opt %s --split-input-file --verify-diagnostics

func.func @f(%a: tensor<4xcomplex<f32>>) {
  // expected-error @+1 {{smelt.erf: operand is complex64, must be one of float16, bfloat16, float32, float64}}
  %r = "smelt.erf"(%a) : (tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>
  return
}

// -----

func.func @f(%a: tensor<4xf32>, %b: tensor<3xf32>) {
  // expected-error @+1 {{smelt.arctan2: operands must have the same shape}}
  %r = "smelt.arctan2"(%a, %b) : (tensor<4xf32>, tensor<3xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%a: tensor<4xi1>) {
  // expected-error @+1 {{smelt.sigmoid: operand is bool, must be one of float16, bfloat16, float32, float64}}
  %r = "smelt.sigmoid"(%a) : (tensor<4xi1>) -> tensor<4xi1>
  return
}

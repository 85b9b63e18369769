// RUN: smelt-opt %s --split-input-file --verify-diagnostics

func.func @f(%a: tensor<4xi32>) {
  // expected-error @+1 {{smelt.exp: operand is int32, must be one of float16, bfloat16, float32, float64, complex64, complex128}}
  %r = "smelt.exp"(%a) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @f(%a: tensor<4xi1>) {
  // expected-error @+1 {{smelt.log1p: operand is bool, must be one of float16, bfloat16, float32, float64, complex64, complex128}}
  %r = "smelt.log1p"(%a) : (tensor<4xi1>) -> tensor<4xi1>
  return
}

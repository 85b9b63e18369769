// RUN: smelt-opt %s --split-input-file --verify-diagnostics

func.func @f(%a: tensor<4xi32>) {
  // expected-error @+1 {{smelt.floor: operand is int32, must be one of float16, bfloat16, float32, float64}}
  %r = "smelt.floor"(%a) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

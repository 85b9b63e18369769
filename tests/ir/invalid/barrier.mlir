// RUN: smelt-opt %s --split-input-file --verify-diagnostics

func.func @f(%a: tensor<4xf32>) {
  // expected-error @+1 {{smelt.barrier: result type must be f32[4], is f32[3]}}
  %r = "smelt.barrier"(%a) : (tensor<4xf32>) -> tensor<3xf32>
  return
}

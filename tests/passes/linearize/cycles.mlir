// A function that differentiates itself would be expanded for ever.
// RUN: not smelt-opt %s --linearize 2>&1 | filecheck %s
// CHECK: error: @main transforms itself by @main → @f → @main: smelt functions do not recurse

func.func @main(%x: tensor<f32>) -> tensor<f32> {
  %f = func.constant @f : (tensor<f32>) -> tensor<f32>
  %d = "smelt.vjp"(%f) {seeds = array<i64: 0>, wrt = array<i64: 0>} : ((tensor<f32>) -> tensor<f32>) -> ((tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>))
  %0:2 = func.call_indirect %d(%x, %x) : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
  return %0#1 : tensor<f32>
}

func.func private @f(%x: tensor<f32>) -> tensor<f32> {
  %0 = func.call @main(%x) : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}

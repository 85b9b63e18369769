// Functions that run themselves through others are refused, with the way.
// RUN: not smelt-opt %s --split-input-file --inline 2>&1 | filecheck %s

// CHECK: error: @main calls itself by @main → @f → @main: smelt functions do not recurse
func.func @main(%x: tensor<f32>) -> tensor<f32> {
  %0 = func.call @f(%x) : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}

func.func private @f(%x: tensor<f32>) -> tensor<f32> {
  %0 = func.call @main(%x) : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}

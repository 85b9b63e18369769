// RUN: not smelt-opt %s --inline 2>&1 | filecheck %s
// CHECK: error: @main calls itself: smelt functions do not recurse

func.func @main(%x: tensor<f32>) -> tensor<f32> {
  %0 = func.call @main(%x) : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// Nothing changes without arguments to differentiate by; wrong ones and transformations are errors.
// RUN: smelt-opt %s --push-tangents | filecheck %s
// RUN: not smelt-opt %s --push-tangents='wrt=1' 2>&1 | filecheck %s --check-prefix=COUNT
// RUN: not smelt-opt %s --push-tangents='wrt=x' 2>&1 | filecheck %s --check-prefix=TEXT

// COUNT: error: push-tangents: @main has 1 arguments, and no number 1
// TEXT: error: push-tangents: wrt must be numbers of arguments such as 0+2, is 'x'

// CHECK-LABEL: func.func @main(
// CHECK-NEXT: %[[V0:.*]] = "smelt.sin"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: return %[[V0]] : tensor<4xf32>
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "smelt.sin"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

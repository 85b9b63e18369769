// A result that depends on the last arguments keeps the program whole; so does the default.
// RUN: smelt-opt %s --split-linear | filecheck %s
// RUN: smelt-opt %s --split-linear='primals=1 results=1' | filecheck %s
// RUN: not smelt-opt %s --split-linear='primals=3' 2>&1 | filecheck %s --check-prefix=COUNT

// COUNT: error: split-linear: @main has 2 arguments and 1 results, not 3 and 0

// CHECK-LABEL: func.func @main(
// CHECK-NEXT: %[[V0:.*]] = "smelt.mul"(%arg0, %arg1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: return %[[V0]] : tensor<4xf32>
func.func @main(%x: tensor<4xf32>, %t: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "smelt.mul"(%x, %t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

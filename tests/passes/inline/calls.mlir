// Calls, direct and through a function value, are replaced by bodies; private functions then vanish.
// RUN: smelt-opt %s --inline | filecheck %s
// RUN: smelt-opt %s --inline | filecheck %s --check-prefix=GONE

// GONE-NOT: @square

// CHECK-LABEL: func.func @main(
// CHECK-NEXT: %[[V0:.*]] = "smelt.mul"(%arg0, %arg0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.mul"(%[[V0]], %[[V0]]) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: return %[[V1]] : tensor<4xf32>
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %f = func.constant @square : (tensor<4xf32>) -> tensor<4xf32>
  %0 = func.call_indirect %f(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = func.call @square(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

func.func private @square(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "smelt.mul"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

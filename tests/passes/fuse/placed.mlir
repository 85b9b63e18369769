// Functions for another device are called, and not looked into.
// RUN: smelt-opt %s --fuse | filecheck %s

// CHECK-LABEL: func.func @main(
// CHECK-NEXT: %[[E:.*]] = call @kernel_exp(%arg0)
// CHECK-NEXT: %[[H:.*]] = call @host_0(%[[E]])
// CHECK-NEXT: %[[R:.*]] = call @kernel_neg(%[[H]])
// CHECK-NEXT: return %[[R]]
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "smelt.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = func.call @host_0(%0) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = "smelt.neg"(%1) : (tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// CHECK: func.func private @host_0
// CHECK-SAME: smelt.device = "cpu"
// CHECK-NEXT: "smelt.exp"
// CHECK-NEXT: "smelt.neg"
func.func private @host_0(%x: tensor<4xf32>) -> tensor<4xf32> attributes {smelt.device = "cpu"} {
  %0 = "smelt.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "smelt.neg"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

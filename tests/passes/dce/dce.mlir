// Ops without users and private functions without callers are erased.
// RUN: smelt-opt %s --dce | filecheck %s
// RUN: smelt-opt %s --dce | filecheck %s --check-prefix=GONE

// GONE-NOT: @unused

// CHECK-LABEL: func.func @main(
// CHECK-NEXT: %[[V0:.*]] = call @used(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: return %[[V0]] : tensor<4xf32>
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "smelt.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "smelt.sin"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  %f = func.constant @unused : (tensor<4xf32>) -> tensor<4xf32>
  %2 = func.call @unused(%1) : (tensor<4xf32>) -> tensor<4xf32>
  %3 = func.call @used(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %3 : tensor<4xf32>
}

// CHECK-LABEL: func.func private @used(
// CHECK-NEXT: %[[V0:.*]] = "smelt.cos"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: return %[[V0]] : tensor<4xf32>
func.func private @used(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "smelt.cos"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

func.func private @unused(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

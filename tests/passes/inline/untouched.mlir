// Public functions stay, transformations are no calls, and kernels made by fuse are not inlined.
// RUN: smelt-opt %s --inline | filecheck %s

// CHECK-LABEL: func.func @main(
// CHECK-NEXT: %[[V0:.*]] = call @kernel(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[VF:.*]] = constant @double : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.jvp"(%[[VF]]) {wrt = array<i64: 0>} : ((tensor<4xf32>) -> tensor<4xf32>) -> ((tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>))
// CHECK-NEXT: %[[V2:.*]]:2 = call_indirect %[[V1]](%[[V0]], %arg0) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
// CHECK-NEXT: return %[[V2]]#1 : tensor<4xf32>
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = func.call @kernel(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %f = func.constant @double : (tensor<4xf32>) -> tensor<4xf32>
  %d = "smelt.jvp"(%f) {wrt = array<i64: 0>} : ((tensor<4xf32>) -> tensor<4xf32>) -> ((tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>))
  %1:2 = func.call_indirect %d(%0, %x) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %1#1 : tensor<4xf32>
}

// CHECK-LABEL: func.func @double(
// CHECK-NEXT: %[[V0:.*]] = "smelt.add"(%arg0, %arg0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: return %[[V0]] : tensor<4xf32>
func.func @double(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "smelt.add"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

func.func private @kernel(%x: tensor<4xf32>) -> tensor<4xf32> attributes {smelt.fusion = "map"} {
  %0 = "smelt.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

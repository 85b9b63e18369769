// Branches and calls make only the results that are read. A function of which callers need different results
// becomes several; one with attributes of smelt keeps its signature.
// RUN: smelt-opt %s --dce | filecheck %s

// Both branches return %y as their second result.
// CHECK-LABEL: func.func @main(
// CHECK-NEXT: %[[VEXTRACTED:.*]] = tensor.extract %arg0[] : tensor<i1>
// CHECK-NEXT: %[[V0:.*]] = scf.if %[[VEXTRACTED]] -> (tensor<4xf32>) {
// CHECK-NEXT: %[[V1:.*]] = func.call @yes_part(%arg1) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: scf.yield %[[V1]] : tensor<4xf32>
// CHECK-NEXT: } else {
// CHECK-NEXT: %[[V1:.*]] = func.call @no(%arg1) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: scf.yield %[[V1]] : tensor<4xf32>
// CHECK-NEXT: }
// CHECK-NEXT: return %[[V0]], %arg2 : tensor<4xf32>, tensor<4xf32>
func.func @main(%p: tensor<i1>, %x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %take = tensor.extract %p[] : tensor<i1>
  %0:3 = scf.if %take -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
    %1:3 = func.call @yes(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
    scf.yield %1#0, %1#1, %1#2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  } else {
    %1:3 = func.call @no(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
    scf.yield %1#0, %1#1, %1#2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  }
  return %0#0, %0#1 : tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @calls(
// CHECK-NEXT: %[[V0:.*]] = call @yes(%arg1) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V1:.*]]:2 = call @kernel(%[[V0]]) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
// CHECK-NEXT: return %[[V1]]#0, %[[V0]] : tensor<4xf32>, tensor<4xf32>
func.func @calls(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0:3 = func.call @yes(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  %1:2 = func.call @kernel(%0#2) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %1#0, %0#2 : tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func private @yes(
// CHECK-NEXT: %[[V0:.*]] = "smelt.exp"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: return %[[V0]] : tensor<4xf32>
func.func private @yes(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0 = "smelt.sin"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "smelt.exp"(%y) : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %y, %1 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func private @no(
// CHECK-NEXT: %[[V0:.*]] = "smelt.cos"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: return %[[V0]] : tensor<4xf32>
func.func private @no(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0 = "smelt.cos"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %y, %0 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func private @kernel(
// CHECK-NEXT: %[[V0:.*]] = "smelt.exp"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: return %[[V0]], %arg0 : tensor<4xf32>, tensor<4xf32>
func.func private @kernel(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) attributes {smelt.fusion = "map"} {
  %0 = "smelt.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %x : tensor<4xf32>, tensor<4xf32>
}

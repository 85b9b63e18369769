// Without options nothing is placed. Functions with transformations are not ready, and kernels are done.
// RUN: smelt-opt %s --place | filecheck %s
// RUN: smelt-opt %s --pass-pipeline='place{kinds=elementwise}' | filecheck %s --check-prefix=KIND
// RUN: not smelt-opt %s --pass-pipeline='place{dtypes=f65}' 2>&1 | filecheck %s --check-prefix=WRONG

// WRONG: place: there is no dtype 'f65'; dtypes:

// CHECK-LABEL: func.func @main(
// CHECK-NEXT: "smelt.sort"
// CHECK-NEXT: "smelt.exp"
// KIND-LABEL: func.func @main(
// KIND-NEXT: "smelt.sort"
// KIND-NEXT: call @host_0
func.func @main(%x: tensor<4xf64>) -> tensor<4xf64> {
  %0 = "smelt.sort"(%x) {axis = 0 : i64} : (tensor<4xf64>) -> tensor<4xf64>
  %1 = "smelt.exp"(%0) : (tensor<4xf64>) -> tensor<4xf64>
  return %1 : tensor<4xf64>
}

// KIND-LABEL: func.func @not_ready(
// KIND-NEXT: constant @kernel
// KIND-NEXT: call_indirect
// KIND-NEXT: "smelt.exp"
func.func @not_ready(%x: tensor<4xf32>) -> tensor<4xf32> {
  %f = func.constant @kernel : (tensor<4xf32>) -> tensor<4xf32>
  %0 = func.call_indirect %f(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "smelt.exp"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// KIND-LABEL: func.func private @kernel(
// KIND-NEXT: "smelt.exp"
func.func private @kernel(%x: tensor<4xf32>) -> tensor<4xf32> attributes {smelt.fusion = "map"} {
  %0 = "smelt.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// Control flow moves with the functions that it runs, which are marked and stay as they are.
// RUN: smelt-opt %s --pass-pipeline='place{dtypes=f64}' | filecheck %s

// CHECK-LABEL: func.func private @wide(
// CHECK-SAME: attributes {smelt.device = "cpu"}
// CHECK-NEXT: "smelt.convert"
// CHECK-NEXT: "smelt.exp"
// CHECK-NEXT: "smelt.convert"
func.func private @wide(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "smelt.convert"(%x) {dtype = f64} : (tensor<4xf32>) -> tensor<4xf64>
  %1 = "smelt.exp"(%0) : (tensor<4xf64>) -> tensor<4xf64>
  %2 = "smelt.convert"(%1) {dtype = f32} : (tensor<4xf64>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// CHECK-LABEL: func.func private @same(
// CHECK-SAME: attributes {smelt.device = "cpu"}
func.func private @same(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// CHECK-LABEL: func.func @main(
// CHECK-NEXT: "smelt.exp"
// CHECK-NEXT: call @host_0
// CHECK-NEXT: return
// CHECK-LABEL: func.func private @host_0(
// CHECK: scf.if
func.func @main(%p: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "smelt.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = tensor.extract %p[] : tensor<i1>
  %2 = scf.if %1 -> (tensor<4xf32>) {
    %3 = func.call @wide(%0) : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %3 : tensor<4xf32>
  } else {
    %3 = func.call @same(%0) : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %3 : tensor<4xf32>
  }
  return %2 : tensor<4xf32>
}

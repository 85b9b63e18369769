// RUN: smelt-opt %s --pass-pipeline='rewrite{set=workbench}' --mlir-pass-statistics 2>%t | filecheck %s
// RUN: filecheck %s --check-prefix=COUNT < %t
// RUN: smelt-opt %s --pass-pipeline='rewrite{set=workbench without=recognize-softsign}' | filecheck %s --check-prefix=WITHOUT
// RUN: smelt-opt --list-rewrites | filecheck %s --check-prefix=LIST
// COUNT: 1 exponentials
// COUNT: 1 recognize-softsign
// LIST: workbench: Softsigns, exponentials and factors.
// LIST: recognize-softsign
// LIST-NEXT: x / (abs(x) + 1) → workbench_softsign(x)
// LIST: exponentials (for real numbers)

// CHECK-LABEL: func.func @softsign
// WITHOUT-LABEL: func.func @softsign
func.func @softsign(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = "smelt.constant"() {value = 1.000000e+00 : f64, dtype = f32} : () -> tensor<f32>
  %b = "smelt.broadcast"(%a) {shape = array<i64: 4>} : (tensor<f32>) -> tensor<4xf32>
  %0 = "smelt.abs"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "smelt.add"(%b, %0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // CHECK-NEXT: "smelt.workbench_softsign"(%arg0)
  // CHECK-NEXT: return
  // WITHOUT: "smelt.div"
  %2 = "smelt.div"(%x, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// CHECK-LABEL: func.func @exponentials
func.func @exponentials(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "smelt.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "smelt.exp"(%y) : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK-NEXT: %[[S:.*]] = "smelt.add"(%arg0, %arg1)
  // CHECK-NEXT: "smelt.exp"(%[[S]])
  // CHECK-NEXT: return
  %2 = "smelt.mul"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// RUN: smelt-opt %s --pass-pipeline='fixpoint(workbench-census),analyze{of=workbench-kinds}' -o /dev/null 2>&1 | filecheck %s
// CHECK: // -----// workbench-census#1 //----- //
// CHECK-NEXT: 2 elementwise
// CHECK-NEXT: 1 reduction
// CHECK: Counter({'elementwise': 2, 'reduction': 1})
func.func @main(%x: tensor<4xf32>) -> tensor<f32> {
  %0 = "smelt.workbench_softsign"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "smelt.exp"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = "smelt.reduce_sum"(%1) {axes = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  return %2 : tensor<f32>
}

// RUN: smelt-opt %s --pass-pipeline='workbench-reciprocal{functions=main,"other one" smallest=1e-3},canonicalize' | filecheck %s
// RUN: smelt-opt %s --workbench-reciprocal --mlir-pass-statistics -o /dev/null 2>&1 | filecheck %s --check-prefix=COUNT
// COUNT: 2 divisions replaced

// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = "smelt.constant"() {value = 3.000000e+00 : f64, dtype = f32} : () -> tensor<f32>
  %b = "smelt.broadcast"(%a) {shape = array<i64: 4>} : (tensor<f32>) -> tensor<4xf32>
  // CHECK-NOT: smelt.div
  // CHECK: "smelt.mul"
  %0 = "smelt.div"(%x, %b) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // CHECK: "smelt.div"
  %1 = "smelt.div"(%b, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// Not one of the functions that are named.
// CHECK-LABEL: func.func @elsewhere
func.func @elsewhere(%x: tensor<f32>) -> tensor<f32> {
  %a = "smelt.constant"() {value = 3.000000e+00 : f64, dtype = f32} : () -> tensor<f32>
  // CHECK: "smelt.div"
  %0 = "smelt.div"(%x, %a) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// RUN: smelt-opt %s --inline | filecheck %s
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,batch,jvp,linearize,transpose)' | filecheck %s --check-prefix=SLOPE

func.func private @f(%x: tensor<4xf32>, %a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "smelt.sin"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "smelt.mul"(%0, %a) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// CHECK-LABEL: func.func @main
// CHECK-NOT: workbench_iterate
// CHECK: scf.for
// CHECK: call @
func.func @main(%x: tensor<4xf32>, %a: tensor<4xf32>) -> tensor<4xf32> {
  %f = constant @f : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %g = "smelt.workbench_iterate"(%f) {times = 3 : i64} : ((tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>) -> ((tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>)
  %0 = call_indirect %g(%x, %a) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// Its derivative is a loop forwards, which keeps residuals, and one backwards.
// SLOPE-LABEL: func.func @slope
// SLOPE: scf.for
// SLOPE: scf.for
func.func @slope(%x: tensor<4xf32>, %a: tensor<4xf32>, %ct: tensor<4xf32>) -> tensor<4xf32> {
  %f = constant @f : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %g = "smelt.workbench_iterate"(%f) {times = 3 : i64} : ((tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>) -> ((tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>)
  %h = "smelt.vjp"(%g) {wrt = array<i64: 0>, seeds = array<i64: 0>} : ((tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>) -> ((tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>))
  %0:2 = call_indirect %h(%x, %a, %ct) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %0#1 : tensor<4xf32>
}

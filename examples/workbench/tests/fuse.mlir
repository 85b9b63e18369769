// RUN: smelt-opt %s --pass-pipeline='fuse{heuristic=workbench-short}' --remarks 2>&1 | filecheck %s
// RUN: smelt-opt %s --fuse | filecheck %s --check-prefix=OWN
// OWN-COUNT-1: call @
// OWN-NOT: call @
// CHECK: the kernel would compute 4 ops, more than 3
// CHECK-COUNT-2: call @
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "smelt.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "smelt.sin"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = "smelt.workbench_softsign"(%1) : (tensor<4xf32>) -> tensor<4xf32>
  %3 = "smelt.neg"(%2) : (tensor<4xf32>) -> tensor<4xf32>
  return %3 : tensor<4xf32>
}

// Nothing may become a kernel that a transformation has still to look into.
// RUN: not smelt-opt %s --fuse 2>&1 | filecheck %s
// RUN: not smelt-opt %s --plan-buffers 2>&1 | filecheck %s --check-prefix=PLAN
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,batch,jvp,linearize,transpose),fuse,plan-buffers' | filecheck %s --check-prefix=DONE

// CHECK: error: fuse is for modules without transformations, and @main uses functions as values: func.constant;
// CHECK-SAME: run the passes that expand them before it: fixpoint(inline,batch,jvp,linearize,transpose)
// PLAN: error: plan-buffers is for modules without transformations
// DONE: call @{{.*}}exp

func.func @main(%x: tensor<4xf32>, %t: tensor<4xf32>) -> tensor<4xf32> {
  %f = func.constant @f : (tensor<4xf32>) -> tensor<4xf32>
  %d = "smelt.jvp"(%f) {wrt = array<i64: 0>} : ((tensor<4xf32>) -> tensor<4xf32>) -> ((tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>))
  %0:2 = func.call_indirect %d(%x, %t) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %0#1 : tensor<4xf32>
}

func.func private @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "smelt.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// A scan of elementwise ops becomes one kernel; one whose body sums stays a loop.
// RUN: smelt-opt %s --loops | filecheck %s
// RUN: smelt-opt %s --pass-pipeline='loops{max-ops=1}' | filecheck %s --check-prefix=SMALL

// CHECK: func.func private @decay{{.*}} attributes {smelt.fusion = "loop body"}
// CHECK-LABEL: func.func @main
// CHECK-NOT: scf.for
// CHECK: call @fused_loop
// CHECK: func.func private @fused_loop{{.*}} attributes {smelt.fusion = "loop"}
// CHECK: scf.for
// CHECK: call @decay
// SMALL-NOT: smelt.fusion

func.func private @decay(%c: tensor<8xf32>, %x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = "smelt.mul"(%c, %c) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %1 = "smelt.add"(%0, %x) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %1, %c : tensor<8xf32>, tensor<8xf32>
}
func.func @main(%first: tensor<8xf32>, %xs: tensor<40x8xf32>) -> (tensor<8xf32>, tensor<40x8xf32>) {
  %c0 = arith.constant 0 : index
  %c40 = arith.constant 40 : index
  %c1 = arith.constant 1 : index
  %0 = tensor.empty() : tensor<40x8xf32>
  %1:2 = scf.for %i = %c0 to %c40 step %c1 iter_args(%c = %first, %ys = %0) -> (tensor<8xf32>, tensor<40x8xf32>) {
    %x = tensor.extract_slice %xs[%i, 0] [1, 8] [1, 1] : tensor<40x8xf32> to tensor<8xf32>
    %2:2 = func.call @decay(%c, %x) : (tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
    %3 = tensor.insert_slice %2#1 into %ys[%i, 0] [1, 8] [1, 1] : tensor<8xf32> into tensor<40x8xf32>
    scf.yield %2#0, %3 : tensor<8xf32>, tensor<40x8xf32>
  } {smelt.carries = 1 : i64, smelt.constants = 0 : i64}
  return %1#0, %1#1 : tensor<8xf32>, tensor<40x8xf32>
}

// Functions that control flow runs have arenas of their own, for which the caller has room.
// RUN: smelt-opt %s --plan-buffers | filecheck %s

// The sorted carry and a product are intermediates of the body; the next carry is a result.
// CHECK-LABEL: func.func private @body(
// CHECK-SAME: smelt.arena_bytes = 128 : i64
// CHECK: "smelt.sort"{{.*}}smelt.offset = array<i64: 0>
// CHECK: "smelt.dot_general"{{.*}}smelt.offset = array<i64: 64>
// CHECK: "smelt.dot_general"{{.*}}smelt.offset = array<i64: -1>
func.func private @body(%c: tensor<4x4xf32>, %s: tensor<4x4xf32>, %x: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %0 = "smelt.sort"(%s) {axis = 1 : i64} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = "smelt.dot_general"(%c, %0) {lhs_contracting = array<i64: 1>, rhs_contracting = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = "smelt.dot_general"(%1, %x) {lhs_contracting = array<i64: 1>, rhs_contracting = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %2, %s : tensor<4x4xf32>, tensor<4x4xf32>
}

// In the scratch: the arena of the body, and the second buffer of the carry.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: smelt.arena_bytes = 512 : i64
// CHECK: smelt.offset = array<i64: -1, 0>, smelt.scratch = array<i64: 320>
func.func @main(%c: tensor<4x4xf32>, %s: tensor<4x4xf32>, %xs: tensor<5x4x4xf32>) -> tensor<4x4xf32> {
  %c0 = arith.constant 0 : index
  %c5 = arith.constant 5 : index
  %c1 = arith.constant 1 : index
  %0 = tensor.empty() : tensor<5x4x4xf32>
  %1:2 = scf.for %i = %c0 to %c5 step %c1 iter_args(%a = %s, %b = %0) -> (tensor<4x4xf32>, tensor<5x4x4xf32>) {
    %x = tensor.extract_slice %xs[%i, 0, 0] [1, 4, 4] [1, 1, 1] : tensor<5x4x4xf32> to tensor<4x4xf32>
    %2:2 = func.call @body(%c, %a, %x) : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>)
    %3 = tensor.insert_slice %2#1 into %b[%i, 0, 0] [1, 4, 4] [1, 1, 1] : tensor<4x4xf32> into tensor<5x4x4xf32>
    scf.yield %2#0, %3 : tensor<4x4xf32>, tensor<5x4x4xf32>
  } {smelt.carries = 1 : i64, smelt.constants = 1 : i64}
  return %1#0 : tensor<4x4xf32>
}

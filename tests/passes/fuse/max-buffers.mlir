// A kernel reads and writes no more arrays than there are bindings for. Broadcast numbers are no arrays.
// RUN: smelt-opt %s --pass-pipeline='fuse{max-buffers=4}' | filecheck %s
// RUN: smelt-opt %s --pass-pipeline='fuse{max-buffers=5}' | filecheck %s --check-prefix=FIVE

// CHECK-LABEL: func.func @sum(
// CHECK-NEXT: %[[A:.*]] = call @fused_add(%arg0, %arg1)
// CHECK-NEXT: %[[B:.*]] = call @fused_add_1(%[[A]], %arg2, %arg3)
// CHECK-NEXT: return %[[B]]
// FIVE-LABEL: func.func @sum(
// FIVE-NEXT: %[[B:.*]] = call @fused_add(%arg0, %arg1, %arg2, %arg3)
// FIVE-NEXT: return %[[B]]
func.func @sum(%x: tensor<4xf32>, %y: tensor<4xf32>, %z: tensor<4xf32>, %w: tensor<4xf32>) -> tensor<4xf32> {
  %c = "smelt.constant"() {value = 2.0 : f64, dtype = f32} : () -> tensor<f32>
  %two = "smelt.broadcast"(%c) {shape = array<i64: 4>} : (tensor<f32>) -> tensor<4xf32>
  %0 = "smelt.add"(%x, %two) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = "smelt.add"(%0, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = "smelt.add"(%1, %z) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %3 = "smelt.add"(%2, %w) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %3 : tensor<4xf32>
}

// Two reductions of one array would share a kernel, but for the arrays that only one of them reads.
// CHECK-LABEL: func.func @siblings(
// CHECK-NEXT: call @
// CHECK-NEXT: call @
// CHECK-NEXT: return
// FIVE-LABEL: func.func @siblings(
// FIVE-NEXT: call @
// FIVE-NEXT: return
func.func @siblings(%x: tensor<8x16xf32>, %y: tensor<8x16xf32>, %z: tensor<8x16xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = "smelt.mul"(%x, %y) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  %1 = "smelt.mul"(%x, %z) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  %2 = "smelt.reduce_sum"(%0) {axes = array<i64: 1>} : (tensor<8x16xf32>) -> tensor<8xf32>
  %3 = "smelt.reduce_sum"(%1) {axes = array<i64: 1>} : (tensor<8x16xf32>) -> tensor<8xf32>
  return %2, %3 : tensor<8xf32>, tensor<8xf32>
}

// Two contractions with a softmax in between are one kernel where the pass is told to make such.
// RUN: smelt-opt %s --pass-pipeline="fuse{contractions=true attention=64}" | filecheck %s
// RUN: smelt-opt %s --pass-pipeline="fuse{contractions=true attention=16}" | filecheck %s --check-prefix=FEWER

// A mask that is cheap to make is made there; one that is costly is read.
// CHECK-LABEL: func.func @main(
// CHECK: %[[M:.*]] = call @{{.*}}exp{{.*}}(%arg3)
// CHECK-NEXT: %[[R:.*]] = call @fused_attention(
// CHECK-NEXT: return %[[R]]
// CHECK: func.func private @fused_attention({{.*}} attributes {smelt.fusion = "attention"}
// CHECK: "smelt.dot_general"
// CHECK: "smelt.iota"
// CHECK: "smelt.reduce_max"
// CHECK: "smelt.exp"
// CHECK-NEXT: "smelt.reduce_sum"
// CHECK: "smelt.dot_general"
// FEWER-NOT: attention
func.func @main(%q: tensor<2x32x24xf32>, %k: tensor<2x48x24xf32>, %v: tensor<2x48x24xf32>, %b: tensor<32x48xf32>) -> tensor<2x32x24xf32> {
  %s = "smelt.dot_general"(%q, %k) {lhs_batch = array<i64: 0>, lhs_contracting = array<i64: 2>, rhs_batch = array<i64: 0>, rhs_contracting = array<i64: 2>} : (tensor<2x32x24xf32>, tensor<2x48x24xf32>) -> tensor<2x32x48xf32>
  %i = "smelt.iota"() {axis = 2 : i64, dtype = f32, shape = array<i64: 2, 32, 48>} : () -> tensor<2x32x48xf32>
  %0 = "smelt.add"(%s, %i) : (tensor<2x32x48xf32>, tensor<2x32x48xf32>) -> tensor<2x32x48xf32>
  %1 = "smelt.exp"(%b) : (tensor<32x48xf32>) -> tensor<32x48xf32>
  %2 = "smelt.broadcast"(%1) {shape = array<i64: 2, 32, 48>} : (tensor<32x48xf32>) -> tensor<2x32x48xf32>
  %x = "smelt.add"(%0, %2) : (tensor<2x32x48xf32>, tensor<2x32x48xf32>) -> tensor<2x32x48xf32>
  %3 = "smelt.reduce_max"(%x) {axes = array<i64: 2>} : (tensor<2x32x48xf32>) -> tensor<2x32xf32>
  %4 = "smelt.reshape"(%3) {shape = array<i64: 2, 32, 1>} : (tensor<2x32xf32>) -> tensor<2x32x1xf32>
  %m = "smelt.broadcast"(%4) {shape = array<i64: 2, 32, 48>} : (tensor<2x32x1xf32>) -> tensor<2x32x48xf32>
  %5 = "smelt.sub"(%x, %m) : (tensor<2x32x48xf32>, tensor<2x32x48xf32>) -> tensor<2x32x48xf32>
  %e = "smelt.exp"(%5) : (tensor<2x32x48xf32>) -> tensor<2x32x48xf32>
  %6 = "smelt.reduce_sum"(%e) {axes = array<i64: 2>} : (tensor<2x32x48xf32>) -> tensor<2x32xf32>
  %7 = "smelt.reshape"(%6) {shape = array<i64: 2, 32, 1>} : (tensor<2x32xf32>) -> tensor<2x32x1xf32>
  %t = "smelt.broadcast"(%7) {shape = array<i64: 2, 32, 48>} : (tensor<2x32x1xf32>) -> tensor<2x32x48xf32>
  %w = "smelt.div"(%e, %t) : (tensor<2x32x48xf32>, tensor<2x32x48xf32>) -> tensor<2x32x48xf32>
  %o = "smelt.dot_general"(%w, %v) {lhs_batch = array<i64: 0>, lhs_contracting = array<i64: 2>, rhs_batch = array<i64: 0>, rhs_contracting = array<i64: 1>} : (tensor<2x32x48xf32>, tensor<2x48x24xf32>) -> tensor<2x32x24xf32>
  return %o : tensor<2x32x24xf32>
}

// What makes the cotangents of queries, and those of keys and values, is one call, with the sums of rows between them.
// RUN: smelt-opt %s --pass-pipeline='recompute-attention,dce,fuse{contractions=true attention=256 chains=true shared-rows=true},join-chains' | filecheck %s
// RUN: smelt-opt %s --join-chains | filecheck %s --check-prefix=NONE

// NONE-NOT: smelt.fusion
// CHECK-LABEL: func.func @main
// CHECK: %[[OUT:.*]]:3 = call @fused_attention(
// CHECK-NEXT: %[[FOUND:.*]]:3 = call @fused_chains(
// CHECK-NEXT: return %[[OUT]]#0, %[[FOUND]]#{{.}}, %[[FOUND]]#{{.}}, %[[FOUND]]#{{.}}
// CHECK: func.func private @fused_chains({{.*}}smelt.fusion = "chains"
// CHECK-NEXT: %[[SUMS:.*]] = call @fused_mul_reduce_sum(
// CHECK-NEXT: call @fused_chain{{.*}}%[[SUMS]])
// CHECK-NEXT: call @fused_chain{{.*}}%[[SUMS]])
// CHECK-NEXT: return

func.func @main(%q: tensor<32x16xf32>, %k: tensor<24x16xf32>, %v: tensor<24x16xf32>, %do: tensor<32x16xf32>)
    -> (tensor<32x16xf32>, tensor<32x16xf32>, tensor<24x16xf32>, tensor<24x16xf32>) {
  %s = "smelt.dot_general"(%q, %k) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 1>} : (tensor<32x16xf32>, tensor<24x16xf32>) -> tensor<32x24xf32>
  %m = "smelt.reduce_max"(%s) {axes = array<i64: 1>} : (tensor<32x24xf32>) -> tensor<32xf32>
  %m1 = "smelt.reshape"(%m) {shape = array<i64: 32, 1>} : (tensor<32xf32>) -> tensor<32x1xf32>
  %m2 = "smelt.broadcast"(%m1) {shape = array<i64: 32, 24>} : (tensor<32x1xf32>) -> tensor<32x24xf32>
  %x = "smelt.sub"(%s, %m2) : (tensor<32x24xf32>, tensor<32x24xf32>) -> tensor<32x24xf32>
  %e = "smelt.exp"(%x) : (tensor<32x24xf32>) -> tensor<32x24xf32>
  %t = "smelt.reduce_sum"(%e) {axes = array<i64: 1>} : (tensor<32x24xf32>) -> tensor<32xf32>
  %t1 = "smelt.reshape"(%t) {shape = array<i64: 32, 1>} : (tensor<32xf32>) -> tensor<32x1xf32>
  %t2 = "smelt.broadcast"(%t1) {shape = array<i64: 32, 24>} : (tensor<32x1xf32>) -> tensor<32x24xf32>
  %w = "smelt.div"(%e, %t2) : (tensor<32x24xf32>, tensor<32x24xf32>) -> tensor<32x24xf32>
  %o = "smelt.dot_general"(%w, %v) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<32x24xf32>, tensor<24x16xf32>) -> tensor<32x16xf32>
  %dv = "smelt.dot_general"(%w, %do) {lhs_batch = array<i64>, lhs_contracting = array<i64: 0>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<32x24xf32>, tensor<32x16xf32>) -> tensor<24x16xf32>
  %dw = "smelt.dot_general"(%do, %v) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 1>} : (tensor<32x16xf32>, tensor<24x16xf32>) -> tensor<32x24xf32>
  %w2 = "smelt.div"(%w, %t2) : (tensor<32x24xf32>, tensor<32x24xf32>) -> tensor<32x24xf32>
  %n = "smelt.neg"(%dw) : (tensor<32x24xf32>) -> tensor<32x24xf32>
  %p = "smelt.mul"(%n, %w2) : (tensor<32x24xf32>, tensor<32x24xf32>) -> tensor<32x24xf32>
  %d = "smelt.reduce_sum"(%p) {axes = array<i64: 1>} : (tensor<32x24xf32>) -> tensor<32xf32>
  %d1 = "smelt.reshape"(%d) {shape = array<i64: 32, 1>} : (tensor<32xf32>) -> tensor<32x1xf32>
  %d2 = "smelt.broadcast"(%d1) {shape = array<i64: 32, 24>} : (tensor<32x1xf32>) -> tensor<32x24xf32>
  %q1 = "smelt.div"(%dw, %t2) : (tensor<32x24xf32>, tensor<32x24xf32>) -> tensor<32x24xf32>
  %a = "smelt.add"(%q1, %d2) : (tensor<32x24xf32>, tensor<32x24xf32>) -> tensor<32x24xf32>
  %dx = "smelt.mul"(%a, %e) : (tensor<32x24xf32>, tensor<32x24xf32>) -> tensor<32x24xf32>
  %dq = "smelt.dot_general"(%dx, %k) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<32x24xf32>, tensor<24x16xf32>) -> tensor<32x16xf32>
  %dk = "smelt.dot_general"(%dx, %q) {lhs_batch = array<i64>, lhs_contracting = array<i64: 0>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<32x24xf32>, tensor<32x16xf32>) -> tensor<24x16xf32>
  return %o, %dq, %dk, %dv : tensor<32x16xf32>, tensor<32x16xf32>, tensor<24x16xf32>, tensor<24x16xf32>
}

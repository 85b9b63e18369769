// Calls that become one stay behind what they read, and before what reads them, where these are joined calls, too.
// RUN: smelt-opt %s --join-chains | filecheck %s

// The chains of %p are made where %z is there; so those of %q, of which the last one reads one of these, stand behind.
// CHECK-LABEL: func.func @groups(
// CHECK-NEXT: %[[Z:.*]] = "smelt.neg"
// CHECK-NEXT: %[[P:.*]]:2 = call @fused_chains(%{{.*}}%[[Z]])
// CHECK-NEXT: %[[Q:.*]]:2 = call @fused_chains(%{{.*}}%[[P]]#0)
// CHECK-NEXT: return %[[Q]]#0, %[[Q]]#1, %[[P]]#1

// What makes numbers of rows of one chain for another one stands between them.
// CHECK-LABEL: func.func @between(
// CHECK-NEXT: %[[FOUND:.*]]:2 = call @fused_chains_1(
// CHECK-NEXT: return %[[FOUND]]#0, %[[FOUND]]#1
// CHECK: func.func private @fused_chains_1(
// CHECK-NEXT: %[[A:.*]] = call @chain(
// CHECK-NEXT: %[[R:.*]] = call @row(%[[A]])
// CHECK-NEXT: %[[B:.*]] = call @chain_of_rows({{.*}}%[[R]])
// CHECK-NEXT: return %[[A]], %[[B]]

// One that others read before the next one can be made stays where it is.
// CHECK-LABEL: func.func @apart(
// CHECK-NEXT: call @chain(
// CHECK-NEXT: "smelt.neg"
// CHECK-NEXT: call @chain(

func.func @groups(%p: tensor<32x16xf32>, %q: tensor<32x16xf32>, %k: tensor<24x16xf32>, %y: tensor<32x16xf32>)
    -> (tensor<32x16xf32>, tensor<32x16xf32>, tensor<32x16xf32>) {
  %p1 = func.call @chain(%p, %k, %y) : (tensor<32x16xf32>, tensor<24x16xf32>, tensor<32x16xf32>) -> tensor<32x16xf32>
  %q1 = func.call @chain(%q, %k, %y) : (tensor<32x16xf32>, tensor<24x16xf32>, tensor<32x16xf32>) -> tensor<32x16xf32>
  %z = "smelt.neg"(%y) : (tensor<32x16xf32>) -> tensor<32x16xf32>
  %p2 = func.call @chain(%p, %k, %z) : (tensor<32x16xf32>, tensor<24x16xf32>, tensor<32x16xf32>) -> tensor<32x16xf32>
  %q2 = func.call @chain(%q, %k, %p1) : (tensor<32x16xf32>, tensor<24x16xf32>, tensor<32x16xf32>) -> tensor<32x16xf32>
  return %q1, %q2, %p2 : tensor<32x16xf32>, tensor<32x16xf32>, tensor<32x16xf32>
}

func.func @between(%q: tensor<32x16xf32>, %k: tensor<24x16xf32>, %y: tensor<32x16xf32>)
    -> (tensor<32x16xf32>, tensor<32x16xf32>) {
  %a = func.call @chain(%q, %k, %y) : (tensor<32x16xf32>, tensor<24x16xf32>, tensor<32x16xf32>) -> tensor<32x16xf32>
  %r = func.call @row(%a) : (tensor<32x16xf32>) -> tensor<32xf32>
  %b = func.call @chain_of_rows(%q, %k, %r) : (tensor<32x16xf32>, tensor<24x16xf32>, tensor<32xf32>) -> tensor<32x16xf32>
  return %a, %b : tensor<32x16xf32>, tensor<32x16xf32>
}

func.func @apart(%q: tensor<32x16xf32>, %k: tensor<24x16xf32>, %y: tensor<32x16xf32>)
    -> (tensor<32x16xf32>, tensor<32x16xf32>) {
  %a = func.call @chain(%q, %k, %y) : (tensor<32x16xf32>, tensor<24x16xf32>, tensor<32x16xf32>) -> tensor<32x16xf32>
  %z = "smelt.neg"(%a) : (tensor<32x16xf32>) -> tensor<32x16xf32>
  %b = func.call @chain(%q, %k, %z) : (tensor<32x16xf32>, tensor<24x16xf32>, tensor<32x16xf32>) -> tensor<32x16xf32>
  return %a, %b : tensor<32x16xf32>, tensor<32x16xf32>
}

func.func private @chain(%q: tensor<32x16xf32>, %k: tensor<24x16xf32>, %y: tensor<32x16xf32>) -> tensor<32x16xf32> attributes {smelt.fusion = "chain"} {
  %s = "smelt.dot_general"(%q, %k) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 1>} : (tensor<32x16xf32>, tensor<24x16xf32>) -> tensor<32x24xf32>
  %e = "smelt.exp"(%s) : (tensor<32x24xf32>) -> tensor<32x24xf32>
  %o = "smelt.dot_general"(%e, %k) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<32x24xf32>, tensor<24x16xf32>) -> tensor<32x16xf32>
  %a = "smelt.add"(%o, %y) : (tensor<32x16xf32>, tensor<32x16xf32>) -> tensor<32x16xf32>
  return %a : tensor<32x16xf32>
}

func.func private @chain_of_rows(%q: tensor<32x16xf32>, %k: tensor<24x16xf32>, %r: tensor<32xf32>) -> tensor<32x16xf32> attributes {smelt.fusion = "chain"} {
  %s = "smelt.dot_general"(%q, %k) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 1>} : (tensor<32x16xf32>, tensor<24x16xf32>) -> tensor<32x24xf32>
  %e = "smelt.exp"(%s) : (tensor<32x24xf32>) -> tensor<32x24xf32>
  %o = "smelt.dot_general"(%e, %k) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<32x24xf32>, tensor<24x16xf32>) -> tensor<32x16xf32>
  %r1 = "smelt.reshape"(%r) {shape = array<i64: 32, 1>} : (tensor<32xf32>) -> tensor<32x1xf32>
  %r2 = "smelt.broadcast"(%r1) {shape = array<i64: 32, 16>} : (tensor<32x1xf32>) -> tensor<32x16xf32>
  %a = "smelt.mul"(%o, %r2) : (tensor<32x16xf32>, tensor<32x16xf32>) -> tensor<32x16xf32>
  return %a : tensor<32x16xf32>
}

func.func private @row(%x: tensor<32x16xf32>) -> tensor<32xf32> attributes {smelt.fusion = "row", smelt.kept = [array<i64: 0>]} {
  %r = "smelt.reduce_sum"(%x) {axes = array<i64: 1>} : (tensor<32x16xf32>) -> tensor<32xf32>
  return %r : tensor<32xf32>
}

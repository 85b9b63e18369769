// smelt.sylvester: forward mode, reverse mode, and the values of both (checked by finite differences).
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,jvp,linearize,transpose),canonicalize,cse,dce' | filecheck %s
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,jvp,linearize,transpose)' --execute | filecheck %s --check-prefix=VALUE

func.func private @f(%arg0: tensor<2x2xf64>, %arg1: tensor<2x2xf64>, %arg2: tensor<2x2xf64>) -> tensor<2x2xf64> {
  %0 = "smelt.sylvester"(%arg0, %arg1, %arg2) : (tensor<2x2xf64>, tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
  return %0 : tensor<2x2xf64>
}

// CHECK-LABEL: func.func @forward(
// CHECK-NEXT: %[[V0:.*]] = "smelt.sylvester"(%arg0, %arg1, %arg2) : (tensor<2x2xf64>, tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V1:.*]] = "smelt.dot_general"(%arg3, %[[V0]]) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V2:.*]] = "smelt.sub"(%arg5, %[[V1]]) : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V3:.*]] = "smelt.dot_general"(%[[V0]], %arg4) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V4:.*]] = "smelt.sub"(%[[V2]], %[[V3]]) : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V5:.*]] = "smelt.sylvester"(%arg0, %arg1, %[[V4]]) : (tensor<2x2xf64>, tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: return %[[V5]] : tensor<2x2xf64>
func.func @forward(%arg0: tensor<2x2xf64>, %arg1: tensor<2x2xf64>, %arg2: tensor<2x2xf64>, %arg3: tensor<2x2xf64>, %arg4: tensor<2x2xf64>, %arg5: tensor<2x2xf64>) -> tensor<2x2xf64> {
  %f = constant @f : (tensor<2x2xf64>, tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
  %0 = "smelt.jvp"(%f) {wrt = array<i64: 0, 1, 2>} : ((tensor<2x2xf64>, tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>) -> ((tensor<2x2xf64>, tensor<2x2xf64>, tensor<2x2xf64>, tensor<2x2xf64>, tensor<2x2xf64>, tensor<2x2xf64>) -> (tensor<2x2xf64>, tensor<2x2xf64>))
  %1:2 = call_indirect %0(%arg0, %arg1, %arg2, %arg3, %arg4, %arg5) : (tensor<2x2xf64>, tensor<2x2xf64>, tensor<2x2xf64>, tensor<2x2xf64>, tensor<2x2xf64>, tensor<2x2xf64>) -> (tensor<2x2xf64>, tensor<2x2xf64>)
  return %1#1 : tensor<2x2xf64>
}

// CHECK-LABEL: func.func @reverse(
// CHECK-NEXT: %[[V0:.*]] = "smelt.sylvester"(%arg0, %arg1, %arg2) : (tensor<2x2xf64>, tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V1:.*]] = "smelt.transpose"(%arg0) {permutation = array<i64: 1, 0>} : (tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V2:.*]] = "smelt.transpose"(%arg1) {permutation = array<i64: 1, 0>} : (tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V3:.*]] = "smelt.sylvester"(%[[V1]], %[[V2]], %arg3) : (tensor<2x2xf64>, tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V4:.*]] = "smelt.neg"(%[[V3]]) : (tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V5:.*]] = "smelt.dot_general"(%[[V0]], %[[V4]]) {lhs_batch = array<i64>, lhs_contracting = array<i64: 0>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V6:.*]] = "smelt.dot_general"(%[[V4]], %[[V0]]) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 1>} : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: return %[[V6]], %[[V5]], %[[V3]] : tensor<2x2xf64>, tensor<2x2xf64>, tensor<2x2xf64>
func.func @reverse(%arg0: tensor<2x2xf64>, %arg1: tensor<2x2xf64>, %arg2: tensor<2x2xf64>, %arg3: tensor<2x2xf64>) -> (tensor<2x2xf64>, tensor<2x2xf64>, tensor<2x2xf64>) {
  %f = constant @f : (tensor<2x2xf64>, tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
  %0 = "smelt.vjp"(%f) {seeds = array<i64: 0>, wrt = array<i64: 0, 1, 2>} : ((tensor<2x2xf64>, tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>) -> ((tensor<2x2xf64>, tensor<2x2xf64>, tensor<2x2xf64>, tensor<2x2xf64>) -> (tensor<2x2xf64>, tensor<2x2xf64>, tensor<2x2xf64>, tensor<2x2xf64>))
  %1:4 = call_indirect %0(%arg0, %arg1, %arg2, %arg3) : (tensor<2x2xf64>, tensor<2x2xf64>, tensor<2x2xf64>, tensor<2x2xf64>) -> (tensor<2x2xf64>, tensor<2x2xf64>, tensor<2x2xf64>, tensor<2x2xf64>)
  return %1#1, %1#2, %1#3 : tensor<2x2xf64>, tensor<2x2xf64>, tensor<2x2xf64>
}

// VALUE: dense<{{\[\[}}0.112528, -0.00409316], [0.123529, 0.0815141]]> : tensor<2x2xf64>
// VALUE-NEXT: dense<{{\[\[}}-0.0102787, 0.0306958], [-0.0178046, 0.0451506]]> : tensor<2x2xf64>
// VALUE-NEXT: dense<{{\[\[}}0.0498025, 0.0356148], [-0.0231932, -0.0149306]]> : tensor<2x2xf64>
// VALUE-NEXT: dense<{{\[\[}}0.115264, -0.0681426], [0.277095, 0.144062]]> : tensor<2x2xf64>
func.func @main() -> (tensor<2x2xf64>, tensor<2x2xf64>, tensor<2x2xf64>, tensor<2x2xf64>) {
  %0 = "smelt.literal"() {value = dense<[[2.3, -0.5], [0.7, 1.9]]> : tensor<2x2xf64>} : () -> tensor<2x2xf64>
  %1 = "smelt.literal"() {value = dense<[[1.4, 0.3], [-0.6, 1.1]]> : tensor<2x2xf64>} : () -> tensor<2x2xf64>
  %2 = "smelt.literal"() {value = dense<[[0.4, -0.1], [-0.7, 0.2]]> : tensor<2x2xf64>} : () -> tensor<2x2xf64>
  %3 = "smelt.literal"() {value = dense<[[1.0, -1.3], [-0.8, -1.0]]> : tensor<2x2xf64>} : () -> tensor<2x2xf64>
  %4 = "smelt.literal"() {value = dense<[[-1.3, -0.5], [0.4, -0.1]]> : tensor<2x2xf64>} : () -> tensor<2x2xf64>
  %5 = "smelt.literal"() {value = dense<[[0.6, -0.2], [0.9, 0.3]]> : tensor<2x2xf64>} : () -> tensor<2x2xf64>
  %6 = call @forward(%0, %1, %2, %3, %4, %5) : (tensor<2x2xf64>, tensor<2x2xf64>, tensor<2x2xf64>, tensor<2x2xf64>, tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
  %7:3 = call @reverse(%0, %1, %2, %5) : (tensor<2x2xf64>, tensor<2x2xf64>, tensor<2x2xf64>, tensor<2x2xf64>) -> (tensor<2x2xf64>, tensor<2x2xf64>, tensor<2x2xf64>)
  return %6, %7#0, %7#1, %7#2 : tensor<2x2xf64>, tensor<2x2xf64>, tensor<2x2xf64>, tensor<2x2xf64>
}

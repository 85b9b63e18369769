// smelt.solve: forward mode, reverse mode, and the values of both (checked by finite differences).
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,jvp,linearize,transpose),canonicalize,cse,dce' | filecheck %s
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,jvp,linearize,transpose)' --execute | filecheck %s --check-prefix=VALUE

func.func private @f(%arg0: tensor<3x3xf64>, %arg1: tensor<3x2xf64>) -> tensor<3x2xf64> {
  %0 = "smelt.solve"(%arg0, %arg1) : (tensor<3x3xf64>, tensor<3x2xf64>) -> tensor<3x2xf64>
  return %0 : tensor<3x2xf64>
}

// CHECK-LABEL: func.func @forward(
// CHECK-NEXT: %[[V0:.*]] = "smelt.solve"(%arg0, %arg1) : (tensor<3x3xf64>, tensor<3x2xf64>) -> tensor<3x2xf64>
// CHECK-NEXT: %[[V1:.*]] = "smelt.dot_general"(%arg2, %[[V0]]) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<3x3xf64>, tensor<3x2xf64>) -> tensor<3x2xf64>
// CHECK-NEXT: %[[V2:.*]] = "smelt.sub"(%arg3, %[[V1]]) : (tensor<3x2xf64>, tensor<3x2xf64>) -> tensor<3x2xf64>
// CHECK-NEXT: %[[V3:.*]] = "smelt.solve"(%arg0, %[[V2]]) : (tensor<3x3xf64>, tensor<3x2xf64>) -> tensor<3x2xf64>
// CHECK-NEXT: return %[[V3]] : tensor<3x2xf64>
func.func @forward(%arg0: tensor<3x3xf64>, %arg1: tensor<3x2xf64>, %arg2: tensor<3x3xf64>, %arg3: tensor<3x2xf64>) -> tensor<3x2xf64> {
  %f = constant @f : (tensor<3x3xf64>, tensor<3x2xf64>) -> tensor<3x2xf64>
  %0 = "smelt.jvp"(%f) {wrt = array<i64: 0, 1>} : ((tensor<3x3xf64>, tensor<3x2xf64>) -> tensor<3x2xf64>) -> ((tensor<3x3xf64>, tensor<3x2xf64>, tensor<3x3xf64>, tensor<3x2xf64>) -> (tensor<3x2xf64>, tensor<3x2xf64>))
  %1:2 = call_indirect %0(%arg0, %arg1, %arg2, %arg3) : (tensor<3x3xf64>, tensor<3x2xf64>, tensor<3x3xf64>, tensor<3x2xf64>) -> (tensor<3x2xf64>, tensor<3x2xf64>)
  return %1#1 : tensor<3x2xf64>
}

// CHECK-LABEL: func.func @reverse(
// CHECK-NEXT: %[[V0:.*]] = "smelt.solve"(%arg0, %arg1) : (tensor<3x3xf64>, tensor<3x2xf64>) -> tensor<3x2xf64>
// CHECK-NEXT: %[[V1:.*]] = "smelt.transpose"(%arg0) {permutation = array<i64: 1, 0>} : (tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V2:.*]] = "smelt.solve"(%[[V1]], %arg2) : (tensor<3x3xf64>, tensor<3x2xf64>) -> tensor<3x2xf64>
// CHECK-NEXT: %[[V3:.*]] = "smelt.neg"(%[[V2]]) : (tensor<3x2xf64>) -> tensor<3x2xf64>
// CHECK-NEXT: %[[V4:.*]] = "smelt.dot_general"(%[[V3]], %[[V0]]) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 1>} : (tensor<3x2xf64>, tensor<3x2xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: return %[[V4]], %[[V2]] : tensor<3x3xf64>, tensor<3x2xf64>
func.func @reverse(%arg0: tensor<3x3xf64>, %arg1: tensor<3x2xf64>, %arg2: tensor<3x2xf64>) -> (tensor<3x3xf64>, tensor<3x2xf64>) {
  %f = constant @f : (tensor<3x3xf64>, tensor<3x2xf64>) -> tensor<3x2xf64>
  %0 = "smelt.vjp"(%f) {seeds = array<i64: 0>, wrt = array<i64: 0, 1>} : ((tensor<3x3xf64>, tensor<3x2xf64>) -> tensor<3x2xf64>) -> ((tensor<3x3xf64>, tensor<3x2xf64>, tensor<3x2xf64>) -> (tensor<3x2xf64>, tensor<3x3xf64>, tensor<3x2xf64>))
  %1:3 = call_indirect %0(%arg0, %arg1, %arg2) : (tensor<3x3xf64>, tensor<3x2xf64>, tensor<3x2xf64>) -> (tensor<3x2xf64>, tensor<3x3xf64>, tensor<3x2xf64>)
  return %1#1, %1#2 : tensor<3x3xf64>, tensor<3x2xf64>
}

// VALUE: dense<{{\[\[}}-0.808726, 0.416863], [0.117263, 0.0357467], [-0.277953, -0.0280869]]> : tensor<3x2xf64>
// VALUE-NEXT: dense<{{\[\[}}0.660545, -0.268589, 0.253951], [-0.358149, 0.232755, -0.0822552], [0.220863, 0.0893066, 0.19888]]> : tensor<3x3xf64>
// VALUE-NEXT: dense<{{\[\[}}-0.854209, 0.462012], [0.375103, -0.38383], [-0.466632, -0.11961]]> : tensor<3x2xf64>
func.func @main() -> (tensor<3x2xf64>, tensor<3x3xf64>, tensor<3x2xf64>) {
  %0 = "smelt.literal"() {value = dense<[[2.0, 0.5, -0.4], [1.0, 4.0, -1.0], [-0.5, 0.8, 2.5]]> : tensor<3x3xf64>} : () -> tensor<3x3xf64>
  %1 = "smelt.literal"() {value = dense<[[1.0, -0.5], [0.3, 2.0], [0.7, 1.1]]> : tensor<3x2xf64>} : () -> tensor<3x2xf64>
  %2 = "smelt.literal"() {value = dense<[[1.0, -1.3, -1.0], [-0.8, -1.0, 0.9], [1.1, 0.3, -1.4]]> : tensor<3x3xf64>} : () -> tensor<3x3xf64>
  %3 = "smelt.literal"() {value = dense<[[-1.3, -0.5], [-0.2, 0.4], [-0.1, -0.7]]> : tensor<3x2xf64>} : () -> tensor<3x2xf64>
  %4 = "smelt.literal"() {value = dense<[[-1.1, 0.6], [0.7, -1.4], [-1.2, -0.1]]> : tensor<3x2xf64>} : () -> tensor<3x2xf64>
  %5 = call @forward(%0, %1, %2, %3) : (tensor<3x3xf64>, tensor<3x2xf64>, tensor<3x3xf64>, tensor<3x2xf64>) -> tensor<3x2xf64>
  %6:2 = call @reverse(%0, %1, %4) : (tensor<3x3xf64>, tensor<3x2xf64>, tensor<3x2xf64>) -> (tensor<3x3xf64>, tensor<3x2xf64>)
  return %5, %6#0, %6#1 : tensor<3x2xf64>, tensor<3x3xf64>, tensor<3x2xf64>
}

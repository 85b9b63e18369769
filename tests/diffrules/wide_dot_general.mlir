// smelt.wide_dot_general: forward mode, reverse mode, and the values of both (checked by finite differences).
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,jvp,linearize,transpose),canonicalize,cse,dce' | filecheck %s
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,jvp,linearize,transpose)' --execute | filecheck %s --check-prefix=VALUE

func.func private @f(%arg0: tensor<4x8xf64>, %arg1: tensor<8x3xf64>) -> tensor<4x3xf64> {
  %0 = "smelt.wide_dot_general"(%arg0, %arg1) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<4x8xf64>, tensor<8x3xf64>) -> tensor<4x3xf64>
  return %0 : tensor<4x3xf64>
}

// CHECK-LABEL: func.func @forward(
// CHECK-NEXT: %[[V0:.*]] = "smelt.wide_dot_general"(%arg2, %arg1) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<4x8xf64>, tensor<8x3xf64>) -> tensor<4x3xf64>
// CHECK-NEXT: %[[V1:.*]] = "smelt.wide_dot_general"(%arg0, %arg3) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<4x8xf64>, tensor<8x3xf64>) -> tensor<4x3xf64>
// CHECK-NEXT: %[[V2:.*]] = "smelt.add"(%[[V0]], %[[V1]]) : (tensor<4x3xf64>, tensor<4x3xf64>) -> tensor<4x3xf64>
// CHECK-NEXT: return %[[V2]] : tensor<4x3xf64>
func.func @forward(%arg0: tensor<4x8xf64>, %arg1: tensor<8x3xf64>, %arg2: tensor<4x8xf64>, %arg3: tensor<8x3xf64>) -> tensor<4x3xf64> {
  %f = constant @f : (tensor<4x8xf64>, tensor<8x3xf64>) -> tensor<4x3xf64>
  %0 = "smelt.jvp"(%f) {wrt = array<i64: 0, 1>} : ((tensor<4x8xf64>, tensor<8x3xf64>) -> tensor<4x3xf64>) -> ((tensor<4x8xf64>, tensor<8x3xf64>, tensor<4x8xf64>, tensor<8x3xf64>) -> (tensor<4x3xf64>, tensor<4x3xf64>))
  %1:2 = call_indirect %0(%arg0, %arg1, %arg2, %arg3) : (tensor<4x8xf64>, tensor<8x3xf64>, tensor<4x8xf64>, tensor<8x3xf64>) -> (tensor<4x3xf64>, tensor<4x3xf64>)
  return %1#1 : tensor<4x3xf64>
}

// CHECK-LABEL: func.func @reverse(
// CHECK-NEXT: %[[V0:.*]] = "smelt.dot_general"(%arg0, %arg2) {lhs_batch = array<i64>, lhs_contracting = array<i64: 0>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<4x8xf64>, tensor<4x3xf64>) -> tensor<8x3xf64>
// CHECK-NEXT: %[[V1:.*]] = "smelt.dot_general"(%arg2, %arg1) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 1>} : (tensor<4x3xf64>, tensor<8x3xf64>) -> tensor<4x8xf64>
// CHECK-NEXT: return %[[V1]], %[[V0]] : tensor<4x8xf64>, tensor<8x3xf64>
func.func @reverse(%arg0: tensor<4x8xf64>, %arg1: tensor<8x3xf64>, %arg2: tensor<4x3xf64>) -> (tensor<4x8xf64>, tensor<8x3xf64>) {
  %f = constant @f : (tensor<4x8xf64>, tensor<8x3xf64>) -> tensor<4x3xf64>
  %0 = "smelt.vjp"(%f) {seeds = array<i64: 0>, wrt = array<i64: 0, 1>} : ((tensor<4x8xf64>, tensor<8x3xf64>) -> tensor<4x3xf64>) -> ((tensor<4x8xf64>, tensor<8x3xf64>, tensor<4x3xf64>) -> (tensor<4x3xf64>, tensor<4x8xf64>, tensor<8x3xf64>))
  %1:3 = call_indirect %0(%arg0, %arg1, %arg2) : (tensor<4x8xf64>, tensor<8x3xf64>, tensor<4x3xf64>) -> (tensor<4x3xf64>, tensor<4x8xf64>, tensor<8x3xf64>)
  return %1#1, %1#2 : tensor<4x8xf64>, tensor<8x3xf64>
}

// VALUE: dense<{{\[\[}}9.613, 9.216, 8.614], [8.864, 9.215, 8.425], [8.756, 8.554, 7.887], [9.839, 9.807, 9.146]]> : tensor<4x3xf64>
// VALUE-NEXT: dense<{{\[\[}}1.848, 1.778, 1.87, 1.654, 1.697, 1.296, 1.492, 1.898], [1.728, 1.578, 1.638, 1.422, 1.533, 1.104, 1.2, 1.542], [2.16, 2.07, 2.144, 1.808, 1.935, 1.462, 1.597, 2.037], [1.192, 1.332, 1.438, 1.302, 1.198, 1.058, 1.347, 1.681]]> : tensor<4x8xf64>
// VALUE-NEXT: dense<{{\[\[}}2.382, 2.974, 2.537], [2.047, 2.582, 2.033], [1.842, 2.314, 2.231], [1.414, 1.726, 1.937], [2.017, 2.6, 2.332], [1.632, 2.074, 2.091], [2.341, 2.942, 2.533], [1.942, 2.428, 2.098]]> : tensor<8x3xf64>
func.func @main() -> (tensor<4x3xf64>, tensor<4x8xf64>, tensor<8x3xf64>) {
  %0 = "smelt.literal"() {value = dense<[[6.500000e-01, 3.900000e-01, 2.300000e-01, 2.100000e-01, 7.700000e-01, 8.400000e-01, 6.200000e-01, 7.100000e-01], [5.800000e-01, 8.500000e-01, 7.700000e-01, 2.000000e-01, 8.000000e-01, 2.200000e-01, 7.100000e-01, 3.200000e-01], [8.000000e-01, 5.800000e-01, 4.100000e-01, 5.000000e-01, 2.200000e-01, 2.900000e-01, 6.700000e-01, 6.500000e-01], [6.300000e-01, 4.700000e-01, 9.000000e-01, 8.900000e-01, 6.800000e-01, 6.600000e-01, 6.800000e-01, 4.700000e-01]]> : tensor<4x8xf64>} : () -> tensor<4x8xf64>
  %1 = "smelt.literal"() {value = dense<[[5.600000e-01, 8.700000e-01, 3.000000e-01], [8.600000e-01, 4.200000e-01, 5.000000e-01], [7.800000e-01, 4.900000e-01, 5.800000e-01], [2.200000e-01, 7.300000e-01, 5.800000e-01], [4.300000e-01, 7.500000e-01, 4.100000e-01], [5.200000e-01, 2.900000e-01, 4.800000e-01], [3.400000e-01, 3.800000e-01, 7.300000e-01], [4.000000e-01, 5.400000e-01, 8.900000e-01]]> : tensor<8x3xf64>} : () -> tensor<8x3xf64>
  %2 = "smelt.literal"() {value = dense<[[1.300000e+00, 1.300000e+00, 1.000000e+00, 1.500000e+00, 0.69999999999999996, 1.100000e+00, 6.000000e-01, 1.100000e+00], [9.000000e-01, 8.000000e-01, 1.500000e+00, 9.000000e-01, 8.000000e-01, 6.000000e-01, 6.000000e-01, 1.500000e+00], [1.100000e+00, 1.400000e+00, 5.000000e-01, 1.100000e+00, 9.000000e-01, 9.000000e-01, 1.200000e+00, 6.000000e-01], [0.69999999999999996, 0.69999999999999996, 9.000000e-01, 8.000000e-01, 1.300000e+00, 1.000000e+00, 1.300000e+00, 6.000000e-01]]> : tensor<4x8xf64>} : () -> tensor<4x8xf64>
  %3 = "smelt.literal"() {value = dense<[[1.400000e+00, 8.000000e-01, 8.000000e-01], [0.69999999999999996, 1.300000e+00, 0.69999999999999996], [1.300000e+00, 1.200000e+00, 9.000000e-01], [1.000000e+00, 1.400000e+00, 1.300000e+00], [0.69999999999999996, 1.200000e+00, 9.000000e-01], [1.500000e+00, 0.69999999999999996, 9.000000e-01], [1.400000e+00, 1.100000e+00, 1.200000e+00], [1.100000e+00, 0.69999999999999996, 6.000000e-01]]> : tensor<8x3xf64>} : () -> tensor<8x3xf64>
  %4 = "smelt.literal"() {value = dense<[[9.000000e-01, 1.200000e+00, 1.000000e+00], [9.000000e-01, 1.200000e+00, 6.000000e-01], [1.200000e+00, 1.400000e+00, 9.000000e-01], [5.000000e-01, 6.000000e-01, 1.300000e+00]]> : tensor<4x3xf64>} : () -> tensor<4x3xf64>
  %5 = call @forward(%0, %1, %2, %3) : (tensor<4x8xf64>, tensor<8x3xf64>, tensor<4x8xf64>, tensor<8x3xf64>) -> tensor<4x3xf64>
  %6:2 = call @reverse(%0, %1, %4) : (tensor<4x8xf64>, tensor<8x3xf64>, tensor<4x3xf64>) -> (tensor<4x8xf64>, tensor<8x3xf64>)
  return %5, %6#0, %6#1 : tensor<4x3xf64>, tensor<4x8xf64>, tensor<8x3xf64>
}

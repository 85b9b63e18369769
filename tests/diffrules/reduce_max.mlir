// smelt.reduce_max: forward mode, reverse mode, and the values of both (checked by finite differences).
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,jvp,linearize,transpose),canonicalize,cse,dce' | filecheck %s
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,jvp,linearize,transpose)' --execute | filecheck %s --check-prefix=VALUE

func.func private @f(%arg0: tensor<4x4xf64>) -> tensor<4xf64> {
  %0 = "smelt.reduce_max"(%arg0) {axes = array<i64: 1>} : (tensor<4x4xf64>) -> tensor<4xf64>
  return %0 : tensor<4xf64>
}

// CHECK-LABEL: func.func @forward(
// CHECK-NEXT: %[[V0:.*]] = "smelt.reduce_max"(%arg0) {axes = array<i64: 1>} : (tensor<4x4xf64>) -> tensor<4xf64>
// CHECK-NEXT: %[[V1:.*]] = "smelt.reshape"(%[[V0]]) {shape = array<i64: 4, 1>} : (tensor<4xf64>) -> tensor<4x1xf64>
// CHECK-NEXT: %[[V2:.*]] = "smelt.broadcast"(%[[V1]]) {shape = array<i64: 4, 4>} : (tensor<4x1xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V3:.*]] = "smelt.equal"(%arg0, %[[V2]]) : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xi1>
// CHECK-NEXT: %[[V4:.*]] = "smelt.convert"(%[[V3]]) {dtype = f64} : (tensor<4x4xi1>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V5:.*]] = "smelt.reduce_sum"(%[[V4]]) {axes = array<i64: 1>} : (tensor<4x4xf64>) -> tensor<4xf64>
// CHECK-NEXT: %[[V6:.*]] = "smelt.mul"(%arg1, %[[V4]]) : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V7:.*]] = "smelt.reduce_sum"(%[[V6]]) {axes = array<i64: 1>} : (tensor<4x4xf64>) -> tensor<4xf64>
// CHECK-NEXT: %[[V8:.*]] = "smelt.div"(%[[V7]], %[[V5]]) : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
// CHECK-NEXT: return %[[V8]] : tensor<4xf64>
func.func @forward(%arg0: tensor<4x4xf64>, %arg1: tensor<4x4xf64>) -> tensor<4xf64> {
  %f = constant @f : (tensor<4x4xf64>) -> tensor<4xf64>
  %0 = "smelt.jvp"(%f) {wrt = array<i64: 0>} : ((tensor<4x4xf64>) -> tensor<4xf64>) -> ((tensor<4x4xf64>, tensor<4x4xf64>) -> (tensor<4xf64>, tensor<4xf64>))
  %1:2 = call_indirect %0(%arg0, %arg1) : (tensor<4x4xf64>, tensor<4x4xf64>) -> (tensor<4xf64>, tensor<4xf64>)
  return %1#1 : tensor<4xf64>
}

// CHECK-LABEL: func.func @reverse(
// CHECK-NEXT: %[[V0:.*]] = "smelt.reduce_max"(%arg0) {axes = array<i64: 1>} : (tensor<4x4xf64>) -> tensor<4xf64>
// CHECK-NEXT: %[[V1:.*]] = "smelt.reshape"(%[[V0]]) {shape = array<i64: 4, 1>} : (tensor<4xf64>) -> tensor<4x1xf64>
// CHECK-NEXT: %[[V2:.*]] = "smelt.broadcast"(%[[V1]]) {shape = array<i64: 4, 4>} : (tensor<4x1xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V3:.*]] = "smelt.equal"(%arg0, %[[V2]]) : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xi1>
// CHECK-NEXT: %[[V4:.*]] = "smelt.convert"(%[[V3]]) {dtype = f64} : (tensor<4x4xi1>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V5:.*]] = "smelt.reduce_sum"(%[[V4]]) {axes = array<i64: 1>} : (tensor<4x4xf64>) -> tensor<4xf64>
// CHECK-NEXT: %[[V6:.*]] = "smelt.div"(%arg1, %[[V5]]) : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
// CHECK-NEXT: %[[V7:.*]] = "smelt.reshape"(%[[V6]]) {shape = array<i64: 4, 1>} : (tensor<4xf64>) -> tensor<4x1xf64>
// CHECK-NEXT: %[[V8:.*]] = "smelt.broadcast"(%[[V7]]) {shape = array<i64: 4, 4>} : (tensor<4x1xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V9:.*]] = "smelt.mul"(%[[V8]], %[[V4]]) : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: return %[[V9]] : tensor<4x4xf64>
func.func @reverse(%arg0: tensor<4x4xf64>, %arg1: tensor<4xf64>) -> tensor<4x4xf64> {
  %f = constant @f : (tensor<4x4xf64>) -> tensor<4xf64>
  %0 = "smelt.vjp"(%f) {seeds = array<i64: 0>, wrt = array<i64: 0>} : ((tensor<4x4xf64>) -> tensor<4xf64>) -> ((tensor<4x4xf64>, tensor<4xf64>) -> (tensor<4xf64>, tensor<4x4xf64>))
  %1:2 = call_indirect %0(%arg0, %arg1) : (tensor<4x4xf64>, tensor<4xf64>) -> (tensor<4xf64>, tensor<4x4xf64>)
  return %1#1 : tensor<4x4xf64>
}

// VALUE: dense<[1.3, 1.1, 0.8, 0.8]> : tensor<4xf64>
// VALUE-NEXT: dense<{{\[\[}}0.9, 0.0, 0.0, 0.0], [0.0, 1.2, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.9, 0.0, 0.0, 0.0]]> : tensor<4x4xf64>
func.func @main() -> (tensor<4xf64>, tensor<4x4xf64>) {
  %0 = "smelt.literal"() {value = dense<[[6.500000e-01, 3.900000e-01, 2.300000e-01, 2.100000e-01], [7.700000e-01, 8.400000e-01, 6.200000e-01, 7.100000e-01], [5.800000e-01, 8.500000e-01, 7.700000e-01, 2.000000e-01], [8.000000e-01, 2.200000e-01, 7.100000e-01, 3.200000e-01]]> : tensor<4x4xf64>} : () -> tensor<4x4xf64>
  %1 = "smelt.literal"() {value = dense<[[1.300000e+00, 1.300000e+00, 1.000000e+00, 1.500000e+00], [0.69999999999999996, 1.100000e+00, 6.000000e-01, 1.100000e+00], [9.000000e-01, 8.000000e-01, 1.500000e+00, 9.000000e-01], [8.000000e-01, 6.000000e-01, 6.000000e-01, 1.500000e+00]]> : tensor<4x4xf64>} : () -> tensor<4x4xf64>
  %2 = "smelt.literal"() {value = dense<[9.000000e-01, 1.200000e+00, 1.000000e+00, 9.000000e-01]> : tensor<4xf64>} : () -> tensor<4xf64>
  %3 = call @forward(%0, %1) : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4xf64>
  %4 = call @reverse(%0, %2) : (tensor<4x4xf64>, tensor<4xf64>) -> tensor<4x4xf64>
  return %3, %4 : tensor<4xf64>, tensor<4x4xf64>
}

// smelt.clamp: forward mode, reverse mode, and the values of both (checked by finite differences).
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,jvp,linearize,transpose),canonicalize,cse,dce' | filecheck %s
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,jvp,linearize,transpose)' --execute | filecheck %s --check-prefix=VALUE

func.func private @f(%arg0: tensor<3xf64>, %arg1: tensor<3xf64>, %arg2: tensor<3xf64>) -> tensor<3xf64> {
  %0 = "smelt.clamp"(%arg0, %arg1, %arg2) : (tensor<3xf64>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  return %0 : tensor<3xf64>
}

// CHECK-LABEL: func.func @forward(
// CHECK-NEXT: %[[V0:.*]] = "smelt.constant"() {dtype = f64, value = 0 : i64} : () -> tensor<f64>
// CHECK-NEXT: %[[V1:.*]] = "smelt.broadcast"(%[[V0]]) {shape = array<i64: 3>} : (tensor<f64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V2:.*]] = "smelt.less_equal"(%arg1, %arg0) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xi1>
// CHECK-NEXT: %[[V3:.*]] = "smelt.maximum"(%arg1, %arg0) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V4:.*]] = "smelt.greater_equal"(%[[V3]], %arg2) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xi1>
// CHECK-NEXT: %[[V5:.*]] = "smelt.logical_or"(%[[V2]], %[[V4]]) : (tensor<3xi1>, tensor<3xi1>) -> tensor<3xi1>
// CHECK-NEXT: %[[V6:.*]] = "smelt.logical_not"(%[[V4]]) : (tensor<3xi1>) -> tensor<3xi1>
// CHECK-NEXT: %[[V7:.*]] = "smelt.logical_and"(%[[V2]], %[[V6]]) : (tensor<3xi1>, tensor<3xi1>) -> tensor<3xi1>
// CHECK-NEXT: %[[V8:.*]] = "smelt.select"(%[[V7]], %arg3, %[[V1]]) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V9:.*]] = "smelt.select"(%[[V5]], %[[V1]], %arg4) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V10:.*]] = "smelt.add"(%[[V8]], %[[V9]]) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V11:.*]] = "smelt.select"(%[[V4]], %arg5, %[[V1]]) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V12:.*]] = "smelt.add"(%[[V10]], %[[V11]]) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: return %[[V12]] : tensor<3xf64>
func.func @forward(%arg0: tensor<3xf64>, %arg1: tensor<3xf64>, %arg2: tensor<3xf64>, %arg3: tensor<3xf64>, %arg4: tensor<3xf64>, %arg5: tensor<3xf64>) -> tensor<3xf64> {
  %f = constant @f : (tensor<3xf64>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  %0 = "smelt.jvp"(%f) {wrt = array<i64: 0, 1, 2>} : ((tensor<3xf64>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>) -> ((tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>))
  %1:2 = call_indirect %0(%arg0, %arg1, %arg2, %arg3, %arg4, %arg5) : (tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>)
  return %1#1 : tensor<3xf64>
}

// CHECK-LABEL: func.func @reverse(
// CHECK-NEXT: %[[V0:.*]] = "smelt.less_equal"(%arg1, %arg0) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xi1>
// CHECK-NEXT: %[[V1:.*]] = "smelt.maximum"(%arg1, %arg0) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V2:.*]] = "smelt.greater_equal"(%[[V1]], %arg2) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xi1>
// CHECK-NEXT: %[[V3:.*]] = "smelt.logical_or"(%[[V0]], %[[V2]]) : (tensor<3xi1>, tensor<3xi1>) -> tensor<3xi1>
// CHECK-NEXT: %[[V4:.*]] = "smelt.logical_not"(%[[V2]]) : (tensor<3xi1>) -> tensor<3xi1>
// CHECK-NEXT: %[[V5:.*]] = "smelt.logical_and"(%[[V0]], %[[V4]]) : (tensor<3xi1>, tensor<3xi1>) -> tensor<3xi1>
// CHECK-NEXT: %[[V6:.*]] = "smelt.constant"() {dtype = f64, value = 0 : i64} : () -> tensor<f64>
// CHECK-NEXT: %[[V7:.*]] = "smelt.broadcast"(%[[V6]]) {shape = array<i64: 3>} : (tensor<f64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V8:.*]] = "smelt.select"(%[[V2]], %arg3, %[[V7]]) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V9:.*]] = "smelt.select"(%[[V3]], %[[V7]], %arg3) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V10:.*]] = "smelt.select"(%[[V5]], %arg3, %[[V7]]) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: return %[[V10]], %[[V9]], %[[V8]] : tensor<3xf64>, tensor<3xf64>, tensor<3xf64>
func.func @reverse(%arg0: tensor<3xf64>, %arg1: tensor<3xf64>, %arg2: tensor<3xf64>, %arg3: tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>, tensor<3xf64>) {
  %f = constant @f : (tensor<3xf64>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  %0 = "smelt.vjp"(%f) {seeds = array<i64: 0>, wrt = array<i64: 0, 1, 2>} : ((tensor<3xf64>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>) -> ((tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>))
  %1:4 = call_indirect %0(%arg0, %arg1, %arg2, %arg3) : (tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>)
  return %1#1, %1#2, %1#3 : tensor<3xf64>, tensor<3xf64>, tensor<3xf64>
}

// VALUE: dense<[1.3, 0.8, 1.0]> : tensor<3xf64>
// VALUE-NEXT: dense<[0.9, 0.0, 0.0]> : tensor<3xf64>
// VALUE-NEXT: dense<[0.0, 1.2, 0.0]> : tensor<3xf64>
// VALUE-NEXT: dense<[0.0, 0.0, 1.0]> : tensor<3xf64>
func.func @main() -> (tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>) {
  %0 = "smelt.literal"() {value = dense<3.000000e-01> : tensor<3xf64>} : () -> tensor<3xf64>
  %1 = "smelt.literal"() {value = dense<[1.000000e-01, 5.000000e-01, 9.000000e-01]> : tensor<3xf64>} : () -> tensor<3xf64>
  %2 = "smelt.literal"() {value = dense<0.69999999999999996> : tensor<3xf64>} : () -> tensor<3xf64>
  %3 = "smelt.literal"() {value = dense<[1.300000e+00, 1.300000e+00, 1.000000e+00]> : tensor<3xf64>} : () -> tensor<3xf64>
  %4 = "smelt.literal"() {value = dense<[1.400000e+00, 8.000000e-01, 8.000000e-01]> : tensor<3xf64>} : () -> tensor<3xf64>
  %5 = "smelt.literal"() {value = dense<[1.100000e+00, 1.100000e+00, 1.000000e+00]> : tensor<3xf64>} : () -> tensor<3xf64>
  %6 = "smelt.literal"() {value = dense<[9.000000e-01, 1.200000e+00, 1.000000e+00]> : tensor<3xf64>} : () -> tensor<3xf64>
  %7 = call @forward(%0, %1, %2, %3, %4, %5) : (tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  %8:3 = call @reverse(%0, %1, %2, %6) : (tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>, tensor<3xf64>)
  return %7, %8#0, %8#1, %8#2 : tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>
}

// smelt.arctanh: forward mode, reverse mode, and the values of both (checked by finite differences).
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,jvp,linearize,transpose),canonicalize,cse,dce' | filecheck %s
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,jvp,linearize,transpose)' --execute | filecheck %s --check-prefix=VALUE

func.func private @f(%arg0: tensor<3xf64>) -> tensor<3xf64> {
  %0 = "smelt.arctanh"(%arg0) : (tensor<3xf64>) -> tensor<3xf64>
  return %0 : tensor<3xf64>
}

// CHECK-LABEL: func.func @forward(
// CHECK-NEXT: %[[V0:.*]] = "smelt.abs"(%arg0) : (tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V1:.*]] = "smelt.constant"() {dtype = f64, value = 5.000000e-01 : f64} : () -> tensor<f64>
// CHECK-NEXT: %[[V2:.*]] = "smelt.broadcast"(%[[V1]]) {shape = array<i64: 3>} : (tensor<f64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V3:.*]] = "smelt.less"(%[[V0]], %[[V2]]) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xi1>
// CHECK-NEXT: %[[V4:.*]] = "smelt.mul"(%arg0, %arg0) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V5:.*]] = "smelt.constant"() {dtype = f64, value = 1 : i64} : () -> tensor<f64>
// CHECK-NEXT: %[[V6:.*]] = "smelt.broadcast"(%[[V5]]) {shape = array<i64: 3>} : (tensor<f64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V7:.*]] = "smelt.sub"(%[[V6]], %[[V4]]) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V8:.*]] = "smelt.sub"(%[[V6]], %arg0) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V9:.*]] = "smelt.add"(%arg0, %[[V6]]) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V10:.*]] = "smelt.mul"(%[[V8]], %[[V9]]) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V11:.*]] = "smelt.select"(%[[V3]], %[[V7]], %[[V10]]) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V12:.*]] = "smelt.div"(%arg1, %[[V11]]) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: return %[[V12]] : tensor<3xf64>
func.func @forward(%arg0: tensor<3xf64>, %arg1: tensor<3xf64>) -> tensor<3xf64> {
  %f = constant @f : (tensor<3xf64>) -> tensor<3xf64>
  %0 = "smelt.jvp"(%f) {wrt = array<i64: 0>} : ((tensor<3xf64>) -> tensor<3xf64>) -> ((tensor<3xf64>, tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>))
  %1:2 = call_indirect %0(%arg0, %arg1) : (tensor<3xf64>, tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>)
  return %1#1 : tensor<3xf64>
}

// CHECK-LABEL: func.func @reverse(
// CHECK-NEXT: %[[V0:.*]] = "smelt.abs"(%arg0) : (tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V1:.*]] = "smelt.constant"() {dtype = f64, value = 5.000000e-01 : f64} : () -> tensor<f64>
// CHECK-NEXT: %[[V2:.*]] = "smelt.broadcast"(%[[V1]]) {shape = array<i64: 3>} : (tensor<f64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V3:.*]] = "smelt.less"(%[[V0]], %[[V2]]) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xi1>
// CHECK-NEXT: %[[V4:.*]] = "smelt.mul"(%arg0, %arg0) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V5:.*]] = "smelt.constant"() {dtype = f64, value = 1 : i64} : () -> tensor<f64>
// CHECK-NEXT: %[[V6:.*]] = "smelt.broadcast"(%[[V5]]) {shape = array<i64: 3>} : (tensor<f64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V7:.*]] = "smelt.sub"(%[[V6]], %[[V4]]) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V8:.*]] = "smelt.sub"(%[[V6]], %arg0) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V9:.*]] = "smelt.add"(%arg0, %[[V6]]) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V10:.*]] = "smelt.mul"(%[[V8]], %[[V9]]) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V11:.*]] = "smelt.select"(%[[V3]], %[[V7]], %[[V10]]) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V12:.*]] = "smelt.div"(%arg1, %[[V11]]) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: return %[[V12]] : tensor<3xf64>
func.func @reverse(%arg0: tensor<3xf64>, %arg1: tensor<3xf64>) -> tensor<3xf64> {
  %f = constant @f : (tensor<3xf64>) -> tensor<3xf64>
  %0 = "smelt.vjp"(%f) {seeds = array<i64: 0>, wrt = array<i64: 0>} : ((tensor<3xf64>) -> tensor<3xf64>) -> ((tensor<3xf64>, tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>))
  %1:2 = call_indirect %0(%arg0, %arg1) : (tensor<3xf64>, tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>)
  return %1#1 : tensor<3xf64>
}

// VALUE: dense<[2.25108, 1.5332, 1.05585]> : tensor<3xf64>
// VALUE-NEXT: dense<[1.55844, 1.41526, 1.05585]> : tensor<3xf64>
func.func @main() -> (tensor<3xf64>, tensor<3xf64>) {
  %0 = "smelt.literal"() {value = dense<[6.500000e-01, 3.900000e-01, 2.300000e-01]> : tensor<3xf64>} : () -> tensor<3xf64>
  %1 = "smelt.literal"() {value = dense<[1.300000e+00, 1.300000e+00, 1.000000e+00]> : tensor<3xf64>} : () -> tensor<3xf64>
  %2 = "smelt.literal"() {value = dense<[9.000000e-01, 1.200000e+00, 1.000000e+00]> : tensor<3xf64>} : () -> tensor<3xf64>
  %3 = call @forward(%0, %1) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  %4 = call @reverse(%0, %2) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  return %3, %4 : tensor<3xf64>, tensor<3xf64>
}

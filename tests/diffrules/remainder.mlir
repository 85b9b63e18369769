// smelt.remainder: forward mode, reverse mode, and the values of both (checked by finite differences).
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,jvp,linearize,transpose),canonicalize,cse,dce' | filecheck %s
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,jvp,linearize,transpose)' --execute | filecheck %s --check-prefix=VALUE

func.func private @f(%arg0: tensor<3xf64>, %arg1: tensor<3xf64>) -> tensor<3xf64> {
  %0 = "smelt.remainder"(%arg0, %arg1) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  return %0 : tensor<3xf64>
}

// CHECK-LABEL: func.func @forward(
// CHECK-NEXT: %[[V0:.*]] = "smelt.remainder"(%arg0, %arg1) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V1:.*]] = "smelt.abs"(%arg1) : (tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V2:.*]] = "smelt.constant"() {dtype = f64, value = 0x7FF0000000000000 : f64} : () -> tensor<f64>
// CHECK-NEXT: %[[V3:.*]] = "smelt.broadcast"(%[[V2]]) {shape = array<i64: 3>} : (tensor<f64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V4:.*]] = "smelt.equal"(%[[V1]], %[[V3]]) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xi1>
// CHECK-NEXT: %[[V5:.*]] = "smelt.div"(%[[V0]], %arg1) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V6:.*]] = "smelt.constant"() {dtype = f64, value = -1 : i64} : () -> tensor<f64>
// CHECK-NEXT: %[[V7:.*]] = "smelt.broadcast"(%[[V6]]) {shape = array<i64: 3>} : (tensor<f64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V8:.*]] = "smelt.equal"(%[[V0]], %arg1) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xi1>
// CHECK-NEXT: %[[V9:.*]] = "smelt.select"(%[[V8]], %[[V7]], %[[V5]]) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V10:.*]] = "smelt.div"(%arg0, %arg1) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V11:.*]] = "smelt.sub"(%[[V10]], %[[V5]]) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V12:.*]] = "smelt.round"(%[[V11]]) : (tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V13:.*]] = "smelt.select"(%[[V4]], %[[V9]], %[[V12]]) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V14:.*]] = "smelt.mul"(%arg3, %[[V13]]) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V15:.*]] = "smelt.sub"(%arg2, %[[V14]]) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: return %[[V15]] : tensor<3xf64>
func.func @forward(%arg0: tensor<3xf64>, %arg1: tensor<3xf64>, %arg2: tensor<3xf64>, %arg3: tensor<3xf64>) -> tensor<3xf64> {
  %f = constant @f : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  %0 = "smelt.jvp"(%f) {wrt = array<i64: 0, 1>} : ((tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>) -> ((tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>))
  %1:2 = call_indirect %0(%arg0, %arg1, %arg2, %arg3) : (tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>)
  return %1#1 : tensor<3xf64>
}

// CHECK-LABEL: func.func @reverse(
// CHECK-NEXT: %[[V0:.*]] = "smelt.remainder"(%arg0, %arg1) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V1:.*]] = "smelt.abs"(%arg1) : (tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V2:.*]] = "smelt.constant"() {dtype = f64, value = 0x7FF0000000000000 : f64} : () -> tensor<f64>
// CHECK-NEXT: %[[V3:.*]] = "smelt.broadcast"(%[[V2]]) {shape = array<i64: 3>} : (tensor<f64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V4:.*]] = "smelt.equal"(%[[V1]], %[[V3]]) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xi1>
// CHECK-NEXT: %[[V5:.*]] = "smelt.div"(%[[V0]], %arg1) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V6:.*]] = "smelt.constant"() {dtype = f64, value = -1 : i64} : () -> tensor<f64>
// CHECK-NEXT: %[[V7:.*]] = "smelt.broadcast"(%[[V6]]) {shape = array<i64: 3>} : (tensor<f64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V8:.*]] = "smelt.equal"(%[[V0]], %arg1) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xi1>
// CHECK-NEXT: %[[V9:.*]] = "smelt.select"(%[[V8]], %[[V7]], %[[V5]]) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V10:.*]] = "smelt.div"(%arg0, %arg1) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V11:.*]] = "smelt.sub"(%[[V10]], %[[V5]]) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V12:.*]] = "smelt.round"(%[[V11]]) : (tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V13:.*]] = "smelt.select"(%[[V4]], %[[V9]], %[[V12]]) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V14:.*]] = "smelt.neg"(%arg2) : (tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V15:.*]] = "smelt.mul"(%[[V14]], %[[V13]]) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: return %arg2, %[[V15]] : tensor<3xf64>, tensor<3xf64>
func.func @reverse(%arg0: tensor<3xf64>, %arg1: tensor<3xf64>, %arg2: tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>) {
  %f = constant @f : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  %0 = "smelt.vjp"(%f) {seeds = array<i64: 0>, wrt = array<i64: 0, 1>} : ((tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>) -> ((tensor<3xf64>, tensor<3xf64>, tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>, tensor<3xf64>))
  %1:3 = call_indirect %0(%arg0, %arg1, %arg2) : (tensor<3xf64>, tensor<3xf64>, tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>, tensor<3xf64>)
  return %1#1, %1#2 : tensor<3xf64>, tensor<3xf64>
}

// VALUE: dense<[-0.1, 1.3, 1.0]> : tensor<3xf64>
// VALUE-NEXT: dense<[0.9, 1.2, 1.0]> : tensor<3xf64>
// VALUE-NEXT: dense<[-0.9, -0.0, -0.0]> : tensor<3xf64>
func.func @main() -> (tensor<3xf64>, tensor<3xf64>, tensor<3xf64>) {
  %0 = "smelt.literal"() {value = dense<[6.500000e-01, 3.900000e-01, 2.300000e-01]> : tensor<3xf64>} : () -> tensor<3xf64>
  %1 = "smelt.literal"() {value = dense<[5.600000e-01, 8.700000e-01, 3.000000e-01]> : tensor<3xf64>} : () -> tensor<3xf64>
  %2 = "smelt.literal"() {value = dense<[1.300000e+00, 1.300000e+00, 1.000000e+00]> : tensor<3xf64>} : () -> tensor<3xf64>
  %3 = "smelt.literal"() {value = dense<[1.400000e+00, 8.000000e-01, 8.000000e-01]> : tensor<3xf64>} : () -> tensor<3xf64>
  %4 = "smelt.literal"() {value = dense<[9.000000e-01, 1.200000e+00, 1.000000e+00]> : tensor<3xf64>} : () -> tensor<3xf64>
  %5 = call @forward(%0, %1, %2, %3) : (tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  %6:2 = call @reverse(%0, %1, %4) : (tensor<3xf64>, tensor<3xf64>, tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>)
  return %5, %6#0, %6#1 : tensor<3xf64>, tensor<3xf64>, tensor<3xf64>
}

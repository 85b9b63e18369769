// smelt.arctan2: forward mode, reverse mode, and the values of both (checked by finite differences).
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,jvp,linearize,transpose),canonicalize,cse,dce' | filecheck %s
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,jvp,linearize,transpose)' --execute | filecheck %s --check-prefix=VALUE

func.func private @f(%arg0: tensor<3xf64>, %arg1: tensor<3xf64>) -> tensor<3xf64> {
  %0 = "smelt.arctan2"(%arg0, %arg1) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  return %0 : tensor<3xf64>
}

// CHECK-LABEL: func.func @forward(
// CHECK-NEXT: %[[V0:.*]] = "smelt.abs"(%arg1) : (tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V1:.*]] = "smelt.abs"(%arg0) : (tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V2:.*]] = "smelt.maximum"(%[[V0]], %[[V1]]) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V3:.*]] = "smelt.constant"() {dtype = f64, value = 0 : i64} : () -> tensor<f64>
// CHECK-NEXT: %[[V4:.*]] = "smelt.broadcast"(%[[V3]]) {shape = array<i64: 3>} : (tensor<f64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V5:.*]] = "smelt.constant"() {dtype = f64, value = 1 : i64} : () -> tensor<f64>
// CHECK-NEXT: %[[V6:.*]] = "smelt.broadcast"(%[[V5]]) {shape = array<i64: 3>} : (tensor<f64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V7:.*]] = "smelt.constant"() {dtype = f64, value = 0x7FF0000000000000 : f64} : () -> tensor<f64>
// CHECK-NEXT: %[[V8:.*]] = "smelt.broadcast"(%[[V7]]) {shape = array<i64: 3>} : (tensor<f64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V9:.*]] = "smelt.equal"(%[[V2]], %[[V8]]) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xi1>
// CHECK-NEXT: %[[V10:.*]] = "smelt.equal"(%[[V2]], %[[V4]]) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xi1>
// CHECK-NEXT: %[[V11:.*]] = "smelt.logical_or"(%[[V9]], %[[V10]]) : (tensor<3xi1>, tensor<3xi1>) -> tensor<3xi1>
// CHECK-NEXT: %[[V12:.*]] = "smelt.select"(%[[V11]], %[[V6]], %[[V2]]) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V13:.*]] = "smelt.div"(%arg0, %[[V12]]) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V14:.*]] = "smelt.select"(%[[V9]], %[[V4]], %[[V13]]) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V15:.*]] = "smelt.div"(%arg1, %[[V12]]) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V16:.*]] = "smelt.select"(%[[V9]], %[[V4]], %[[V15]]) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V17:.*]] = "smelt.mul"(%[[V16]], %[[V16]]) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V18:.*]] = "smelt.mul"(%[[V14]], %[[V14]]) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V19:.*]] = "smelt.add"(%[[V17]], %[[V18]]) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V20:.*]] = "smelt.equal"(%[[V19]], %[[V4]]) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xi1>
// CHECK-NEXT: %[[V21:.*]] = "smelt.select"(%[[V20]], %[[V6]], %[[V19]]) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V22:.*]] = "smelt.mul"(%[[V12]], %[[V21]]) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V23:.*]] = "smelt.div"(%[[V16]], %[[V22]]) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V24:.*]] = "smelt.mul"(%arg2, %[[V23]]) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V25:.*]] = "smelt.div"(%[[V14]], %[[V22]]) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V26:.*]] = "smelt.mul"(%arg3, %[[V25]]) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V27:.*]] = "smelt.sub"(%[[V24]], %[[V26]]) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: return %[[V27]] : tensor<3xf64>
func.func @forward(%arg0: tensor<3xf64>, %arg1: tensor<3xf64>, %arg2: tensor<3xf64>, %arg3: tensor<3xf64>) -> tensor<3xf64> {
  %f = constant @f : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  %0 = "smelt.jvp"(%f) {wrt = array<i64: 0, 1>} : ((tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>) -> ((tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>))
  %1:2 = call_indirect %0(%arg0, %arg1, %arg2, %arg3) : (tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>)
  return %1#1 : tensor<3xf64>
}

// CHECK-LABEL: func.func @reverse(
// CHECK-NEXT: %[[V0:.*]] = "smelt.abs"(%arg1) : (tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V1:.*]] = "smelt.abs"(%arg0) : (tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V2:.*]] = "smelt.maximum"(%[[V0]], %[[V1]]) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V3:.*]] = "smelt.constant"() {dtype = f64, value = 0 : i64} : () -> tensor<f64>
// CHECK-NEXT: %[[V4:.*]] = "smelt.broadcast"(%[[V3]]) {shape = array<i64: 3>} : (tensor<f64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V5:.*]] = "smelt.constant"() {dtype = f64, value = 1 : i64} : () -> tensor<f64>
// CHECK-NEXT: %[[V6:.*]] = "smelt.broadcast"(%[[V5]]) {shape = array<i64: 3>} : (tensor<f64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V7:.*]] = "smelt.constant"() {dtype = f64, value = 0x7FF0000000000000 : f64} : () -> tensor<f64>
// CHECK-NEXT: %[[V8:.*]] = "smelt.broadcast"(%[[V7]]) {shape = array<i64: 3>} : (tensor<f64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V9:.*]] = "smelt.equal"(%[[V2]], %[[V8]]) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xi1>
// CHECK-NEXT: %[[V10:.*]] = "smelt.equal"(%[[V2]], %[[V4]]) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xi1>
// CHECK-NEXT: %[[V11:.*]] = "smelt.logical_or"(%[[V9]], %[[V10]]) : (tensor<3xi1>, tensor<3xi1>) -> tensor<3xi1>
// CHECK-NEXT: %[[V12:.*]] = "smelt.select"(%[[V11]], %[[V6]], %[[V2]]) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V13:.*]] = "smelt.div"(%arg0, %[[V12]]) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V14:.*]] = "smelt.select"(%[[V9]], %[[V4]], %[[V13]]) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V15:.*]] = "smelt.div"(%arg1, %[[V12]]) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V16:.*]] = "smelt.select"(%[[V9]], %[[V4]], %[[V15]]) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V17:.*]] = "smelt.mul"(%[[V16]], %[[V16]]) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V18:.*]] = "smelt.mul"(%[[V14]], %[[V14]]) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V19:.*]] = "smelt.add"(%[[V17]], %[[V18]]) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V20:.*]] = "smelt.equal"(%[[V19]], %[[V4]]) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xi1>
// CHECK-NEXT: %[[V21:.*]] = "smelt.select"(%[[V20]], %[[V6]], %[[V19]]) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V22:.*]] = "smelt.mul"(%[[V12]], %[[V21]]) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V23:.*]] = "smelt.div"(%[[V16]], %[[V22]]) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V24:.*]] = "smelt.div"(%[[V14]], %[[V22]]) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V25:.*]] = "smelt.neg"(%arg2) : (tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V26:.*]] = "smelt.mul"(%[[V25]], %[[V24]]) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V27:.*]] = "smelt.mul"(%arg2, %[[V23]]) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: return %[[V27]], %[[V26]] : tensor<3xf64>, tensor<3xf64>
func.func @reverse(%arg0: tensor<3xf64>, %arg1: tensor<3xf64>, %arg2: tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>) {
  %f = constant @f : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  %0 = "smelt.vjp"(%f) {seeds = array<i64: 0>, wrt = array<i64: 0, 1>} : ((tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>) -> ((tensor<3xf64>, tensor<3xf64>, tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>, tensor<3xf64>))
  %1:3 = call_indirect %0(%arg0, %arg1, %arg2) : (tensor<3xf64>, tensor<3xf64>, tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>, tensor<3xf64>)
  return %1#1, %1#2 : tensor<3xf64>, tensor<3xf64>
}

// VALUE: dense<[-0.247249, 0.90099, 0.811756]> : tensor<3xf64>
// VALUE-NEXT: dense<[0.68469, 1.14851, 2.09937]> : tensor<3xf64>
// VALUE-NEXT: dense<[-0.794729, -0.514851, -1.60952]> : tensor<3xf64>
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

// smelt.eigh: forward mode, reverse mode, and the values of both (checked by finite differences).
// Vectors are squared: their signs are the library's choice.
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,jvp,linearize,transpose),canonicalize,cse,dce' | filecheck %s
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,jvp,linearize,transpose)' --execute | filecheck %s --check-prefix=VALUE

func.func private @f(%arg0: tensor<3x3xf64>) -> (tensor<3xf64>, tensor<3x3xf64>) {
  %0:2 = "smelt.eigh"(%arg0) : (tensor<3x3xf64>) -> (tensor<3xf64>, tensor<3x3xf64>)
  %1 = "smelt.mul"(%0#1, %0#1) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
  return %0#0, %1 : tensor<3xf64>, tensor<3x3xf64>
}

// CHECK-LABEL: func.func @forward(
// CHECK-NEXT: %[[V0:.*]]:2 = "smelt.eigh"(%arg0) : (tensor<3x3xf64>) -> (tensor<3xf64>, tensor<3x3xf64>)
// CHECK-NEXT: %[[V1:.*]] = "smelt.iota"() {axis = 0 : i64, dtype = i32, shape = array<i64: 3, 3>} : () -> tensor<3x3xi32>
// CHECK-NEXT: %[[V2:.*]] = "smelt.iota"() {axis = 1 : i64, dtype = i32, shape = array<i64: 3, 3>} : () -> tensor<3x3xi32>
// CHECK-NEXT: %[[V3:.*]] = "smelt.greater_equal"(%[[V1]], %[[V2]]) : (tensor<3x3xi32>, tensor<3x3xi32>) -> tensor<3x3xi1>
// CHECK-NEXT: %[[V4:.*]] = "smelt.constant"() {dtype = f64, value = 0 : i64} : () -> tensor<f64>
// CHECK-NEXT: %[[V5:.*]] = "smelt.broadcast"(%[[V4]]) {shape = array<i64: 3, 3>} : (tensor<f64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V6:.*]] = "smelt.select"(%[[V3]], %arg1, %[[V5]]) : (tensor<3x3xi1>, tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V7:.*]] = "smelt.constant"() {dtype = i32, value = 1 : i64} : () -> tensor<i32>
// CHECK-NEXT: %[[V8:.*]] = "smelt.broadcast"(%[[V7]]) {shape = array<i64: 3, 3>} : (tensor<i32>) -> tensor<3x3xi32>
// CHECK-NEXT: %[[V9:.*]] = "smelt.add"(%[[V2]], %[[V8]]) : (tensor<3x3xi32>, tensor<3x3xi32>) -> tensor<3x3xi32>
// CHECK-NEXT: %[[V10:.*]] = "smelt.greater_equal"(%[[V1]], %[[V9]]) : (tensor<3x3xi32>, tensor<3x3xi32>) -> tensor<3x3xi1>
// CHECK-NEXT: %[[V11:.*]] = "smelt.select"(%[[V10]], %arg1, %[[V5]]) : (tensor<3x3xi1>, tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V12:.*]] = "smelt.transpose"(%[[V11]]) {permutation = array<i64: 1, 0>} : (tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V13:.*]] = "smelt.add"(%[[V6]], %[[V12]]) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V14:.*]] = "smelt.transpose"(%[[V0]]#1) {permutation = array<i64: 1, 0>} : (tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V15:.*]] = "smelt.dot_general"(%[[V13]], %[[V0]]#1) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V16:.*]] = "smelt.dot_general"(%[[V14]], %[[V15]]) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V17:.*]] = "smelt.equal"(%[[V1]], %[[V2]]) : (tensor<3x3xi32>, tensor<3x3xi32>) -> tensor<3x3xi1>
// CHECK-NEXT: %[[V18:.*]] = "smelt.select"(%[[V17]], %[[V16]], %[[V5]]) : (tensor<3x3xi1>, tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V19:.*]] = "smelt.reduce_sum"(%[[V18]]) {axes = array<i64: 0>} : (tensor<3x3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V20:.*]] = "smelt.broadcast"(%[[V0]]#0) {shape = array<i64: 3, 3>} : (tensor<3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V21:.*]] = "smelt.reshape"(%[[V0]]#0) {shape = array<i64: 3, 1>} : (tensor<3xf64>) -> tensor<3x1xf64>
// CHECK-NEXT: %[[V22:.*]] = "smelt.broadcast"(%[[V21]]) {shape = array<i64: 3, 3>} : (tensor<3x1xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V23:.*]] = "smelt.sub"(%[[V20]], %[[V22]]) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V24:.*]] = "smelt.abs"(%[[V0]]#0) : (tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V25:.*]] = "smelt.reduce_max"(%[[V24]]) {axes = array<i64: 0>} : (tensor<3xf64>) -> tensor<f64>
// CHECK-NEXT: %[[V26:.*]] = "smelt.constant"() {dtype = f64, value = 6.6613381477509392E-16 : f64} : () -> tensor<f64>
// CHECK-NEXT: %[[V27:.*]] = "smelt.mul"(%[[V25]], %[[V26]]) : (tensor<f64>, tensor<f64>) -> tensor<f64>
// CHECK-NEXT: %[[V28:.*]] = "smelt.abs"(%[[V23]]) : (tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V29:.*]] = "smelt.broadcast"(%[[V27]]) {shape = array<i64: 3, 3>} : (tensor<f64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V30:.*]] = "smelt.less_equal"(%[[V28]], %[[V29]]) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xi1>
// CHECK-NEXT: %[[V31:.*]] = "smelt.constant"() {dtype = f64, value = 1 : i64} : () -> tensor<f64>
// CHECK-NEXT: %[[V32:.*]] = "smelt.broadcast"(%[[V31]]) {shape = array<i64: 3, 3>} : (tensor<f64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V33:.*]] = "smelt.select"(%[[V30]], %[[V32]], %[[V23]]) : (tensor<3x3xi1>, tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V34:.*]] = "smelt.div"(%[[V32]], %[[V33]]) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V35:.*]] = "smelt.select"(%[[V30]], %[[V5]], %[[V34]]) : (tensor<3x3xi1>, tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V36:.*]] = "smelt.mul"(%[[V35]], %[[V16]]) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V37:.*]] = "smelt.dot_general"(%[[V0]]#1, %[[V36]]) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V38:.*]] = "smelt.mul"(%[[V37]], %[[V0]]#1) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V39:.*]] = "smelt.add"(%[[V38]], %[[V38]]) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: return %[[V19]], %[[V39]] : tensor<3xf64>, tensor<3x3xf64>
func.func @forward(%arg0: tensor<3x3xf64>, %arg1: tensor<3x3xf64>) -> (tensor<3xf64>, tensor<3x3xf64>) {
  %f = constant @f : (tensor<3x3xf64>) -> (tensor<3xf64>, tensor<3x3xf64>)
  %0 = "smelt.jvp"(%f) {wrt = array<i64: 0>} : ((tensor<3x3xf64>) -> (tensor<3xf64>, tensor<3x3xf64>)) -> ((tensor<3x3xf64>, tensor<3x3xf64>) -> (tensor<3xf64>, tensor<3x3xf64>, tensor<3xf64>, tensor<3x3xf64>))
  %1:4 = call_indirect %0(%arg0, %arg1) : (tensor<3x3xf64>, tensor<3x3xf64>) -> (tensor<3xf64>, tensor<3x3xf64>, tensor<3xf64>, tensor<3x3xf64>)
  return %1#2, %1#3 : tensor<3xf64>, tensor<3x3xf64>
}

// CHECK-LABEL: func.func @reverse(
// CHECK-NEXT: %[[V0:.*]]:2 = "smelt.eigh"(%arg0) : (tensor<3x3xf64>) -> (tensor<3xf64>, tensor<3x3xf64>)
// CHECK-NEXT: %[[V1:.*]] = "smelt.iota"() {axis = 0 : i64, dtype = i32, shape = array<i64: 3, 3>} : () -> tensor<3x3xi32>
// CHECK-NEXT: %[[V2:.*]] = "smelt.iota"() {axis = 1 : i64, dtype = i32, shape = array<i64: 3, 3>} : () -> tensor<3x3xi32>
// CHECK-NEXT: %[[V3:.*]] = "smelt.greater_equal"(%[[V1]], %[[V2]]) : (tensor<3x3xi32>, tensor<3x3xi32>) -> tensor<3x3xi1>
// CHECK-NEXT: %[[V4:.*]] = "smelt.constant"() {dtype = i32, value = 1 : i64} : () -> tensor<i32>
// CHECK-NEXT: %[[V5:.*]] = "smelt.broadcast"(%[[V4]]) {shape = array<i64: 3, 3>} : (tensor<i32>) -> tensor<3x3xi32>
// CHECK-NEXT: %[[V6:.*]] = "smelt.add"(%[[V2]], %[[V5]]) : (tensor<3x3xi32>, tensor<3x3xi32>) -> tensor<3x3xi32>
// CHECK-NEXT: %[[V7:.*]] = "smelt.greater_equal"(%[[V1]], %[[V6]]) : (tensor<3x3xi32>, tensor<3x3xi32>) -> tensor<3x3xi1>
// CHECK-NEXT: %[[V8:.*]] = "smelt.transpose"(%[[V0]]#1) {permutation = array<i64: 1, 0>} : (tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V9:.*]] = "smelt.equal"(%[[V1]], %[[V2]]) : (tensor<3x3xi32>, tensor<3x3xi32>) -> tensor<3x3xi1>
// CHECK-NEXT: %[[V10:.*]] = "smelt.broadcast"(%[[V0]]#0) {shape = array<i64: 3, 3>} : (tensor<3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V11:.*]] = "smelt.reshape"(%[[V0]]#0) {shape = array<i64: 3, 1>} : (tensor<3xf64>) -> tensor<3x1xf64>
// CHECK-NEXT: %[[V12:.*]] = "smelt.broadcast"(%[[V11]]) {shape = array<i64: 3, 3>} : (tensor<3x1xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V13:.*]] = "smelt.sub"(%[[V10]], %[[V12]]) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V14:.*]] = "smelt.abs"(%[[V0]]#0) : (tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V15:.*]] = "smelt.reduce_max"(%[[V14]]) {axes = array<i64: 0>} : (tensor<3xf64>) -> tensor<f64>
// CHECK-NEXT: %[[V16:.*]] = "smelt.constant"() {dtype = f64, value = 6.6613381477509392E-16 : f64} : () -> tensor<f64>
// CHECK-NEXT: %[[V17:.*]] = "smelt.mul"(%[[V15]], %[[V16]]) : (tensor<f64>, tensor<f64>) -> tensor<f64>
// CHECK-NEXT: %[[V18:.*]] = "smelt.abs"(%[[V13]]) : (tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V19:.*]] = "smelt.broadcast"(%[[V17]]) {shape = array<i64: 3, 3>} : (tensor<f64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V20:.*]] = "smelt.less_equal"(%[[V18]], %[[V19]]) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xi1>
// CHECK-NEXT: %[[V21:.*]] = "smelt.constant"() {dtype = f64, value = 1 : i64} : () -> tensor<f64>
// CHECK-NEXT: %[[V22:.*]] = "smelt.broadcast"(%[[V21]]) {shape = array<i64: 3, 3>} : (tensor<f64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V23:.*]] = "smelt.constant"() {dtype = f64, value = 0 : i64} : () -> tensor<f64>
// CHECK-NEXT: %[[V24:.*]] = "smelt.broadcast"(%[[V23]]) {shape = array<i64: 3, 3>} : (tensor<f64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V25:.*]] = "smelt.select"(%[[V20]], %[[V22]], %[[V13]]) : (tensor<3x3xi1>, tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V26:.*]] = "smelt.div"(%[[V22]], %[[V25]]) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V27:.*]] = "smelt.select"(%[[V20]], %[[V24]], %[[V26]]) : (tensor<3x3xi1>, tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V28:.*]] = "smelt.mul"(%arg2, %[[V0]]#1) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V29:.*]] = "smelt.add"(%[[V28]], %[[V28]]) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V30:.*]] = "smelt.dot_general"(%[[V0]]#1, %[[V29]]) {lhs_batch = array<i64>, lhs_contracting = array<i64: 0>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V31:.*]] = "smelt.mul"(%[[V30]], %[[V27]]) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V32:.*]] = "smelt.broadcast"(%arg1) {shape = array<i64: 3, 3>} : (tensor<3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V33:.*]] = "smelt.select"(%[[V9]], %[[V32]], %[[V24]]) : (tensor<3x3xi1>, tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V34:.*]] = "smelt.add"(%[[V31]], %[[V33]]) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V35:.*]] = "smelt.dot_general"(%[[V8]], %[[V34]]) {lhs_batch = array<i64>, lhs_contracting = array<i64: 0>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V36:.*]] = "smelt.dot_general"(%[[V35]], %[[V0]]#1) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 1>} : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V37:.*]] = "smelt.transpose"(%[[V36]]) {permutation = array<i64: 1, 0>} : (tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V38:.*]] = "smelt.select"(%[[V7]], %[[V37]], %[[V24]]) : (tensor<3x3xi1>, tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V39:.*]] = "smelt.select"(%[[V3]], %[[V36]], %[[V24]]) : (tensor<3x3xi1>, tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V40:.*]] = "smelt.add"(%[[V38]], %[[V39]]) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: return %[[V40]] : tensor<3x3xf64>
func.func @reverse(%arg0: tensor<3x3xf64>, %arg1: tensor<3xf64>, %arg2: tensor<3x3xf64>) -> tensor<3x3xf64> {
  %f = constant @f : (tensor<3x3xf64>) -> (tensor<3xf64>, tensor<3x3xf64>)
  %0 = "smelt.vjp"(%f) {seeds = array<i64: 0, 1>, wrt = array<i64: 0>} : ((tensor<3x3xf64>) -> (tensor<3xf64>, tensor<3x3xf64>)) -> ((tensor<3x3xf64>, tensor<3xf64>, tensor<3x3xf64>) -> (tensor<3xf64>, tensor<3x3xf64>, tensor<3x3xf64>))
  %1:3 = call_indirect %0(%arg0, %arg1, %arg2) : (tensor<3x3xf64>, tensor<3xf64>, tensor<3x3xf64>) -> (tensor<3xf64>, tensor<3x3xf64>, tensor<3x3xf64>)
  return %1#2 : tensor<3x3xf64>
}

// VALUE: dense<[0.834395, -1.66622, -0.568179]> : tensor<3xf64>
// VALUE-NEXT: dense<{{\[\[}}-1.75598, 1.59916, 0.156825], [0.0481554, 0.189851, -0.238007], [1.70783, -1.78901, 0.081182]]> : tensor<3x3xf64>
// VALUE-NEXT: dense<{{\[\[}}-1.27804, 0.0, 0.0], [1.13897, -0.439674, 0.0], [-0.140805, 0.137449, -0.282291]]> : tensor<3x3xf64>
func.func @main() -> (tensor<3xf64>, tensor<3x3xf64>, tensor<3x3xf64>) {
  %0 = "smelt.literal"() {value = dense<[[4.0, 2.0, 0.6], [2.0, 5.0, 1.0], [0.6, 1.0, 3.0]]> : tensor<3x3xf64>} : () -> tensor<3x3xf64>
  %1 = "smelt.literal"() {value = dense<[[1.0, -1.3, -1.0], [-0.8, -1.0, 0.9], [1.1, 0.3, -1.4]]> : tensor<3x3xf64>} : () -> tensor<3x3xf64>
  %2 = "smelt.literal"() {value = dense<[-1.3, -0.5, -0.2]> : tensor<3xf64>} : () -> tensor<3xf64>
  %3 = "smelt.literal"() {value = dense<[[0.4, -0.1, -0.7], [-1.1, 0.6, 0.7], [-1.4, -1.2, -0.1]]> : tensor<3x3xf64>} : () -> tensor<3x3xf64>
  %4:2 = call @forward(%0, %1) : (tensor<3x3xf64>, tensor<3x3xf64>) -> (tensor<3xf64>, tensor<3x3xf64>)
  %5 = call @reverse(%0, %2, %3) : (tensor<3x3xf64>, tensor<3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
  return %4#0, %4#1, %5 : tensor<3xf64>, tensor<3x3xf64>, tensor<3x3xf64>
}

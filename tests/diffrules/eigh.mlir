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
// CHECK-NEXT: %[[V1:.*]] = "smelt.transpose"(%[[V0]]#1) {permutation = array<i64: 1, 0>} : (tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V2:.*]] = "smelt.iota"() {axis = 0 : i64, dtype = i32, shape = array<i64: 3, 3>} : () -> tensor<3x3xi32>
// CHECK-NEXT: %[[V3:.*]] = "smelt.iota"() {axis = 1 : i64, dtype = i32, shape = array<i64: 3, 3>} : () -> tensor<3x3xi32>
// CHECK-NEXT: %[[V4:.*]] = "smelt.greater_equal"(%[[V2]], %[[V3]]) : (tensor<3x3xi32>, tensor<3x3xi32>) -> tensor<3x3xi1>
// CHECK-NEXT: %[[V5:.*]] = "smelt.constant"() {dtype = f64, value = 0 : i64} : () -> tensor<f64>
// CHECK-NEXT: %[[V6:.*]] = "smelt.broadcast"(%[[V5]]) {shape = array<i64: 3, 3>} : (tensor<f64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V7:.*]] = "smelt.select"(%[[V4]], %arg1, %[[V6]]) : (tensor<3x3xi1>, tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V8:.*]] = "smelt.constant"() {dtype = i32, value = 1 : i64} : () -> tensor<i32>
// CHECK-NEXT: %[[V9:.*]] = "smelt.broadcast"(%[[V8]]) {shape = array<i64: 3, 3>} : (tensor<i32>) -> tensor<3x3xi32>
// CHECK-NEXT: %[[V10:.*]] = "smelt.add"(%[[V3]], %[[V9]]) : (tensor<3x3xi32>, tensor<3x3xi32>) -> tensor<3x3xi32>
// CHECK-NEXT: %[[V11:.*]] = "smelt.greater_equal"(%[[V2]], %[[V10]]) : (tensor<3x3xi32>, tensor<3x3xi32>) -> tensor<3x3xi1>
// CHECK-NEXT: %[[V12:.*]] = "smelt.select"(%[[V11]], %arg1, %[[V6]]) : (tensor<3x3xi1>, tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V13:.*]] = "smelt.transpose"(%[[V12]]) {permutation = array<i64: 1, 0>} : (tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V14:.*]] = "smelt.add"(%[[V7]], %[[V13]]) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V15:.*]] = "smelt.dot_general"(%[[V14]], %[[V0]]#1) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V16:.*]] = "smelt.dot_general"(%[[V1]], %[[V15]]) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V17:.*]] = "smelt.broadcast"(%[[V0]]#0) {shape = array<i64: 3, 3>} : (tensor<3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V18:.*]] = "smelt.reshape"(%[[V0]]#0) {shape = array<i64: 3, 1>} : (tensor<3xf64>) -> tensor<3x1xf64>
// CHECK-NEXT: %[[V19:.*]] = "smelt.broadcast"(%[[V18]]) {shape = array<i64: 3, 3>} : (tensor<3x1xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V20:.*]] = "smelt.sub"(%[[V17]], %[[V19]]) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V21:.*]] = "smelt.abs"(%[[V0]]#0) : (tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V22:.*]] = "smelt.reduce_max"(%[[V21]]) {axes = array<i64: 0>} : (tensor<3xf64>) -> tensor<f64>
// CHECK-NEXT: %[[V23:.*]] = "smelt.constant"() {dtype = f64, value = 6.6613381477509392E-16 : f64} : () -> tensor<f64>
// CHECK-NEXT: %[[V24:.*]] = "smelt.mul"(%[[V22]], %[[V23]]) : (tensor<f64>, tensor<f64>) -> tensor<f64>
// CHECK-NEXT: %[[V25:.*]] = "smelt.abs"(%[[V20]]) : (tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V26:.*]] = "smelt.broadcast"(%[[V24]]) {shape = array<i64: 3, 3>} : (tensor<f64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V27:.*]] = "smelt.less_equal"(%[[V25]], %[[V26]]) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xi1>
// CHECK-NEXT: %[[V28:.*]] = "smelt.constant"() {dtype = f64, value = 1 : i64} : () -> tensor<f64>
// CHECK-NEXT: %[[V29:.*]] = "smelt.broadcast"(%[[V28]]) {shape = array<i64: 3, 3>} : (tensor<f64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V30:.*]] = "smelt.select"(%[[V27]], %[[V29]], %[[V20]]) : (tensor<3x3xi1>, tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V31:.*]] = "smelt.div"(%[[V29]], %[[V30]]) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V32:.*]] = "smelt.select"(%[[V27]], %[[V6]], %[[V31]]) : (tensor<3x3xi1>, tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V33:.*]] = "smelt.mul"(%[[V32]], %[[V16]]) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V34:.*]] = "smelt.dot_general"(%[[V0]]#1, %[[V33]]) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V35:.*]] = "smelt.equal"(%[[V2]], %[[V3]]) : (tensor<3x3xi32>, tensor<3x3xi32>) -> tensor<3x3xi1>
// CHECK-NEXT: %[[V36:.*]] = "smelt.select"(%[[V35]], %[[V16]], %[[V6]]) : (tensor<3x3xi1>, tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V37:.*]] = "smelt.reduce_sum"(%[[V36]]) {axes = array<i64: 0>} : (tensor<3x3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V38:.*]] = "smelt.mul"(%[[V34]], %[[V0]]#1) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V39:.*]] = "smelt.add"(%[[V38]], %[[V38]]) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: return %[[V37]], %[[V39]] : tensor<3xf64>, tensor<3x3xf64>
func.func @forward(%arg0: tensor<3x3xf64>, %arg1: tensor<3x3xf64>) -> (tensor<3xf64>, tensor<3x3xf64>) {
  %f = constant @f : (tensor<3x3xf64>) -> (tensor<3xf64>, tensor<3x3xf64>)
  %0 = "smelt.jvp"(%f) {wrt = array<i64: 0>} : ((tensor<3x3xf64>) -> (tensor<3xf64>, tensor<3x3xf64>)) -> ((tensor<3x3xf64>, tensor<3x3xf64>) -> (tensor<3xf64>, tensor<3x3xf64>, tensor<3xf64>, tensor<3x3xf64>))
  %1:4 = call_indirect %0(%arg0, %arg1) : (tensor<3x3xf64>, tensor<3x3xf64>) -> (tensor<3xf64>, tensor<3x3xf64>, tensor<3xf64>, tensor<3x3xf64>)
  return %1#2, %1#3 : tensor<3xf64>, tensor<3x3xf64>
}

// CHECK-LABEL: func.func @reverse(
// CHECK-NEXT: %[[V0:.*]]:2 = "smelt.eigh"(%arg0) : (tensor<3x3xf64>) -> (tensor<3xf64>, tensor<3x3xf64>)
// CHECK-NEXT: %[[V1:.*]] = "smelt.transpose"(%[[V0]]#1) {permutation = array<i64: 1, 0>} : (tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V2:.*]] = "smelt.iota"() {axis = 0 : i64, dtype = i32, shape = array<i64: 3, 3>} : () -> tensor<3x3xi32>
// CHECK-NEXT: %[[V3:.*]] = "smelt.iota"() {axis = 1 : i64, dtype = i32, shape = array<i64: 3, 3>} : () -> tensor<3x3xi32>
// CHECK-NEXT: %[[V4:.*]] = "smelt.greater_equal"(%[[V2]], %[[V3]]) : (tensor<3x3xi32>, tensor<3x3xi32>) -> tensor<3x3xi1>
// CHECK-NEXT: %[[V5:.*]] = "smelt.constant"() {dtype = i32, value = 1 : i64} : () -> tensor<i32>
// CHECK-NEXT: %[[V6:.*]] = "smelt.broadcast"(%[[V5]]) {shape = array<i64: 3, 3>} : (tensor<i32>) -> tensor<3x3xi32>
// CHECK-NEXT: %[[V7:.*]] = "smelt.add"(%[[V3]], %[[V6]]) : (tensor<3x3xi32>, tensor<3x3xi32>) -> tensor<3x3xi32>
// CHECK-NEXT: %[[V8:.*]] = "smelt.greater_equal"(%[[V2]], %[[V7]]) : (tensor<3x3xi32>, tensor<3x3xi32>) -> tensor<3x3xi1>
// CHECK-NEXT: %[[V9:.*]] = "smelt.broadcast"(%[[V0]]#0) {shape = array<i64: 3, 3>} : (tensor<3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V10:.*]] = "smelt.reshape"(%[[V0]]#0) {shape = array<i64: 3, 1>} : (tensor<3xf64>) -> tensor<3x1xf64>
// CHECK-NEXT: %[[V11:.*]] = "smelt.broadcast"(%[[V10]]) {shape = array<i64: 3, 3>} : (tensor<3x1xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V12:.*]] = "smelt.sub"(%[[V9]], %[[V11]]) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V13:.*]] = "smelt.abs"(%[[V0]]#0) : (tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V14:.*]] = "smelt.reduce_max"(%[[V13]]) {axes = array<i64: 0>} : (tensor<3xf64>) -> tensor<f64>
// CHECK-NEXT: %[[V15:.*]] = "smelt.constant"() {dtype = f64, value = 6.6613381477509392E-16 : f64} : () -> tensor<f64>
// CHECK-NEXT: %[[V16:.*]] = "smelt.mul"(%[[V14]], %[[V15]]) : (tensor<f64>, tensor<f64>) -> tensor<f64>
// CHECK-NEXT: %[[V17:.*]] = "smelt.abs"(%[[V12]]) : (tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V18:.*]] = "smelt.broadcast"(%[[V16]]) {shape = array<i64: 3, 3>} : (tensor<f64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V19:.*]] = "smelt.less_equal"(%[[V17]], %[[V18]]) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xi1>
// CHECK-NEXT: %[[V20:.*]] = "smelt.constant"() {dtype = f64, value = 1 : i64} : () -> tensor<f64>
// CHECK-NEXT: %[[V21:.*]] = "smelt.broadcast"(%[[V20]]) {shape = array<i64: 3, 3>} : (tensor<f64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V22:.*]] = "smelt.constant"() {dtype = f64, value = 0 : i64} : () -> tensor<f64>
// CHECK-NEXT: %[[V23:.*]] = "smelt.broadcast"(%[[V22]]) {shape = array<i64: 3, 3>} : (tensor<f64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V24:.*]] = "smelt.select"(%[[V19]], %[[V21]], %[[V12]]) : (tensor<3x3xi1>, tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V25:.*]] = "smelt.div"(%[[V21]], %[[V24]]) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V26:.*]] = "smelt.select"(%[[V19]], %[[V23]], %[[V25]]) : (tensor<3x3xi1>, tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V27:.*]] = "smelt.equal"(%[[V2]], %[[V3]]) : (tensor<3x3xi32>, tensor<3x3xi32>) -> tensor<3x3xi1>
// CHECK-NEXT: %[[V28:.*]] = "smelt.mul"(%arg2, %[[V0]]#1) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V29:.*]] = "smelt.add"(%[[V28]], %[[V28]]) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V30:.*]] = "smelt.broadcast"(%arg1) {shape = array<i64: 3, 3>} : (tensor<3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V31:.*]] = "smelt.select"(%[[V27]], %[[V30]], %[[V23]]) : (tensor<3x3xi1>, tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V32:.*]] = "smelt.dot_general"(%[[V0]]#1, %[[V29]]) {lhs_batch = array<i64>, lhs_contracting = array<i64: 0>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V33:.*]] = "smelt.mul"(%[[V32]], %[[V26]]) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V34:.*]] = "smelt.add"(%[[V31]], %[[V33]]) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V35:.*]] = "smelt.dot_general"(%[[V1]], %[[V34]]) {lhs_batch = array<i64>, lhs_contracting = array<i64: 0>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V36:.*]] = "smelt.dot_general"(%[[V35]], %[[V0]]#1) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 1>} : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V37:.*]] = "smelt.transpose"(%[[V36]]) {permutation = array<i64: 1, 0>} : (tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V38:.*]] = "smelt.select"(%[[V8]], %[[V37]], %[[V23]]) : (tensor<3x3xi1>, tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V39:.*]] = "smelt.select"(%[[V4]], %[[V36]], %[[V23]]) : (tensor<3x3xi1>, tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
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

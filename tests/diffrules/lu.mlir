// smelt.lu: forward mode, reverse mode, and the values of both (checked by finite differences).
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,jvp,linearize,transpose),canonicalize,cse,dce' | filecheck %s
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,jvp,linearize,transpose)' --execute | filecheck %s --check-prefix=VALUE

func.func private @f(%arg0: tensor<3x3xf64>) -> tensor<3x3xf64> {
  %0:3 = "smelt.lu"(%arg0) : (tensor<3x3xf64>) -> (tensor<3x3xf64>, tensor<3xui32>, tensor<3xui32>)
  return %0#0 : tensor<3x3xf64>
}

// CHECK-LABEL: func.func @forward(
// CHECK-NEXT: %[[V0:.*]]:3 = "smelt.lu"(%arg0) : (tensor<3x3xf64>) -> (tensor<3x3xf64>, tensor<3xui32>, tensor<3xui32>)
// CHECK-NEXT: %[[V1:.*]] = "smelt.reshape"(%[[V0]]#2) {shape = array<i64: 3, 1>} : (tensor<3xui32>) -> tensor<3x1xui32>
// CHECK-NEXT: %[[V2:.*]] = "smelt.broadcast"(%[[V1]]) {shape = array<i64: 3, 3>} : (tensor<3x1xui32>) -> tensor<3x3xui32>
// CHECK-NEXT: %[[V3:.*]] = "smelt.iota"() {axis = 1 : i64, dtype = ui32, shape = array<i64: 3, 3>} : () -> tensor<3x3xui32>
// CHECK-NEXT: %[[V4:.*]] = "smelt.equal"(%[[V2]], %[[V3]]) : (tensor<3x3xui32>, tensor<3x3xui32>) -> tensor<3x3xi1>
// CHECK-NEXT: %[[V5:.*]] = "smelt.convert"(%[[V4]]) {dtype = f64} : (tensor<3x3xi1>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V6:.*]] = "smelt.dot_general"(%[[V5]], %arg1) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V7:.*]] = "smelt.iota"() {axis = 0 : i64, dtype = i32, shape = array<i64: 3, 3>} : () -> tensor<3x3xi32>
// CHECK-NEXT: %[[V8:.*]] = "smelt.iota"() {axis = 1 : i64, dtype = i32, shape = array<i64: 3, 3>} : () -> tensor<3x3xi32>
// CHECK-NEXT: %[[V9:.*]] = "smelt.constant"() {dtype = i32, value = 1 : i64} : () -> tensor<i32>
// CHECK-NEXT: %[[V10:.*]] = "smelt.broadcast"(%[[V9]]) {shape = array<i64: 3, 3>} : (tensor<i32>) -> tensor<3x3xi32>
// CHECK-NEXT: %[[V11:.*]] = "smelt.add"(%[[V8]], %[[V10]]) : (tensor<3x3xi32>, tensor<3x3xi32>) -> tensor<3x3xi32>
// CHECK-NEXT: %[[V12:.*]] = "smelt.greater_equal"(%[[V7]], %[[V11]]) : (tensor<3x3xi32>, tensor<3x3xi32>) -> tensor<3x3xi1>
// CHECK-NEXT: %[[V13:.*]] = "smelt.constant"() {dtype = f64, value = 0 : i64} : () -> tensor<f64>
// CHECK-NEXT: %[[V14:.*]] = "smelt.broadcast"(%[[V13]]) {shape = array<i64: 3, 3>} : (tensor<f64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V15:.*]] = "smelt.select"(%[[V12]], %[[V0]]#0, %[[V14]]) : (tensor<3x3xi1>, tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V16:.*]] = "smelt.less_equal"(%[[V7]], %[[V8]]) : (tensor<3x3xi32>, tensor<3x3xi32>) -> tensor<3x3xi1>
// CHECK-NEXT: %[[V17:.*]] = "smelt.select"(%[[V16]], %[[V0]]#0, %[[V14]]) : (tensor<3x3xi1>, tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V18:.*]] = "smelt.constant"() {dtype = f64, value = 1 : i64} : () -> tensor<f64>
// CHECK-NEXT: %[[V19:.*]] = "smelt.broadcast"(%[[V18]]) {shape = array<i64: 3, 3>} : (tensor<f64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V20:.*]] = "smelt.select"(%[[V16]], %[[V19]], %[[V14]]) : (tensor<3x3xi1>, tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V21:.*]] = "smelt.greater_equal"(%[[V7]], %[[V8]]) : (tensor<3x3xi32>, tensor<3x3xi32>) -> tensor<3x3xi1>
// CHECK-NEXT: %[[V22:.*]] = "smelt.select"(%[[V21]], %[[V20]], %[[V14]]) : (tensor<3x3xi1>, tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V23:.*]] = "smelt.add"(%[[V15]], %[[V22]]) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V24:.*]] = "smelt.solve_triangular"(%[[V23]], %[[V6]]) {upper = false} : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V25:.*]] = "smelt.transpose"(%[[V17]]) {permutation = array<i64: 1, 0>} : (tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V26:.*]] = "smelt.transpose"(%[[V24]]) {permutation = array<i64: 1, 0>} : (tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V27:.*]] = "smelt.solve_triangular"(%[[V25]], %[[V26]]) {upper = false} : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V28:.*]] = "smelt.transpose"(%[[V27]]) {permutation = array<i64: 1, 0>} : (tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V29:.*]] = "smelt.select"(%[[V12]], %[[V28]], %[[V14]]) : (tensor<3x3xi1>, tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V30:.*]] = "smelt.select"(%[[V16]], %[[V28]], %[[V14]]) : (tensor<3x3xi1>, tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V31:.*]] = "smelt.dot_general"(%[[V23]], %[[V29]]) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V32:.*]] = "smelt.dot_general"(%[[V30]], %[[V17]]) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V33:.*]] = "smelt.add"(%[[V31]], %[[V32]]) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: return %[[V33]] : tensor<3x3xf64>
func.func @forward(%arg0: tensor<3x3xf64>, %arg1: tensor<3x3xf64>) -> tensor<3x3xf64> {
  %f = constant @f : (tensor<3x3xf64>) -> tensor<3x3xf64>
  %0 = "smelt.jvp"(%f) {wrt = array<i64: 0>} : ((tensor<3x3xf64>) -> tensor<3x3xf64>) -> ((tensor<3x3xf64>, tensor<3x3xf64>) -> (tensor<3x3xf64>, tensor<3x3xf64>))
  %1:2 = call_indirect %0(%arg0, %arg1) : (tensor<3x3xf64>, tensor<3x3xf64>) -> (tensor<3x3xf64>, tensor<3x3xf64>)
  return %1#1 : tensor<3x3xf64>
}

// CHECK-LABEL: func.func @reverse(
// CHECK-NEXT: %[[V0:.*]]:3 = "smelt.lu"(%arg0) : (tensor<3x3xf64>) -> (tensor<3x3xf64>, tensor<3xui32>, tensor<3xui32>)
// CHECK-NEXT: %[[V1:.*]] = "smelt.reshape"(%[[V0]]#2) {shape = array<i64: 3, 1>} : (tensor<3xui32>) -> tensor<3x1xui32>
// CHECK-NEXT: %[[V2:.*]] = "smelt.broadcast"(%[[V1]]) {shape = array<i64: 3, 3>} : (tensor<3x1xui32>) -> tensor<3x3xui32>
// CHECK-NEXT: %[[V3:.*]] = "smelt.iota"() {axis = 1 : i64, dtype = ui32, shape = array<i64: 3, 3>} : () -> tensor<3x3xui32>
// CHECK-NEXT: %[[V4:.*]] = "smelt.equal"(%[[V2]], %[[V3]]) : (tensor<3x3xui32>, tensor<3x3xui32>) -> tensor<3x3xi1>
// CHECK-NEXT: %[[V5:.*]] = "smelt.convert"(%[[V4]]) {dtype = f64} : (tensor<3x3xi1>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V6:.*]] = "smelt.iota"() {axis = 0 : i64, dtype = i32, shape = array<i64: 3, 3>} : () -> tensor<3x3xi32>
// CHECK-NEXT: %[[V7:.*]] = "smelt.iota"() {axis = 1 : i64, dtype = i32, shape = array<i64: 3, 3>} : () -> tensor<3x3xi32>
// CHECK-NEXT: %[[V8:.*]] = "smelt.constant"() {dtype = i32, value = 1 : i64} : () -> tensor<i32>
// CHECK-NEXT: %[[V9:.*]] = "smelt.broadcast"(%[[V8]]) {shape = array<i64: 3, 3>} : (tensor<i32>) -> tensor<3x3xi32>
// CHECK-NEXT: %[[V10:.*]] = "smelt.add"(%[[V7]], %[[V9]]) : (tensor<3x3xi32>, tensor<3x3xi32>) -> tensor<3x3xi32>
// CHECK-NEXT: %[[V11:.*]] = "smelt.greater_equal"(%[[V6]], %[[V10]]) : (tensor<3x3xi32>, tensor<3x3xi32>) -> tensor<3x3xi1>
// CHECK-NEXT: %[[V12:.*]] = "smelt.constant"() {dtype = f64, value = 0 : i64} : () -> tensor<f64>
// CHECK-NEXT: %[[V13:.*]] = "smelt.broadcast"(%[[V12]]) {shape = array<i64: 3, 3>} : (tensor<f64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V14:.*]] = "smelt.select"(%[[V11]], %[[V0]]#0, %[[V13]]) : (tensor<3x3xi1>, tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V15:.*]] = "smelt.less_equal"(%[[V6]], %[[V7]]) : (tensor<3x3xi32>, tensor<3x3xi32>) -> tensor<3x3xi1>
// CHECK-NEXT: %[[V16:.*]] = "smelt.select"(%[[V15]], %[[V0]]#0, %[[V13]]) : (tensor<3x3xi1>, tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V17:.*]] = "smelt.constant"() {dtype = f64, value = 1 : i64} : () -> tensor<f64>
// CHECK-NEXT: %[[V18:.*]] = "smelt.broadcast"(%[[V17]]) {shape = array<i64: 3, 3>} : (tensor<f64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V19:.*]] = "smelt.select"(%[[V15]], %[[V18]], %[[V13]]) : (tensor<3x3xi1>, tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V20:.*]] = "smelt.greater_equal"(%[[V6]], %[[V7]]) : (tensor<3x3xi32>, tensor<3x3xi32>) -> tensor<3x3xi1>
// CHECK-NEXT: %[[V21:.*]] = "smelt.select"(%[[V20]], %[[V19]], %[[V13]]) : (tensor<3x3xi1>, tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V22:.*]] = "smelt.add"(%[[V14]], %[[V21]]) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V23:.*]] = "smelt.dot_general"(%arg1, %[[V16]]) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 1>} : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V24:.*]] = "smelt.dot_general"(%[[V22]], %arg1) {lhs_batch = array<i64>, lhs_contracting = array<i64: 0>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V25:.*]] = "smelt.select"(%[[V15]], %[[V23]], %[[V13]]) : (tensor<3x3xi1>, tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V26:.*]] = "smelt.select"(%[[V11]], %[[V24]], %[[V13]]) : (tensor<3x3xi1>, tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V27:.*]] = "smelt.add"(%[[V25]], %[[V26]]) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V28:.*]] = "smelt.transpose"(%[[V27]]) {permutation = array<i64: 1, 0>} : (tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V29:.*]] = "smelt.solve_triangular"(%[[V16]], %[[V28]]) {upper = true} : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V30:.*]] = "smelt.transpose"(%[[V29]]) {permutation = array<i64: 1, 0>} : (tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V31:.*]] = "smelt.transpose"(%[[V22]]) {permutation = array<i64: 1, 0>} : (tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V32:.*]] = "smelt.solve_triangular"(%[[V31]], %[[V30]]) {upper = true} : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V33:.*]] = "smelt.dot_general"(%[[V5]], %[[V32]]) {lhs_batch = array<i64>, lhs_contracting = array<i64: 0>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: return %[[V33]] : tensor<3x3xf64>
func.func @reverse(%arg0: tensor<3x3xf64>, %arg1: tensor<3x3xf64>) -> tensor<3x3xf64> {
  %f = constant @f : (tensor<3x3xf64>) -> tensor<3x3xf64>
  %0 = "smelt.vjp"(%f) {seeds = array<i64: 0>, wrt = array<i64: 0>} : ((tensor<3x3xf64>) -> tensor<3x3xf64>) -> ((tensor<3x3xf64>, tensor<3x3xf64>) -> (tensor<3x3xf64>, tensor<3x3xf64>))
  %1:2 = call_indirect %0(%arg0, %arg1) : (tensor<3x3xf64>, tensor<3x3xf64>) -> (tensor<3x3xf64>, tensor<3x3xf64>)
  return %1#1 : tensor<3x3xf64>
}

// VALUE: dense<{{\[\[}}1.1, 0.3, -1.4], [0.230095, -1.59364, -0.580716], [-0.168006, 0.0408589, 0.822678]]> : tensor<3x3xf64>
// VALUE-NEXT: dense<{{\[\[}}-0.0846795, -0.324194, -1.06993], [-0.234232, 0.424234, 0.7], [-1.32654, -0.387395, 0.0580982]]> : tensor<3x3xf64>
func.func @main() -> (tensor<3x3xf64>, tensor<3x3xf64>) {
  %0 = "smelt.literal"() {value = dense<[[0.5, 2.0, -0.4], [-0.6, 0.8, 2.5], [3.7, 1.1, -1.0]]> : tensor<3x3xf64>} : () -> tensor<3x3xf64>
  %1 = "smelt.literal"() {value = dense<[[1.0, -1.3, -1.0], [-0.8, -1.0, 0.9], [1.1, 0.3, -1.4]]> : tensor<3x3xf64>} : () -> tensor<3x3xf64>
  %2 = "smelt.literal"() {value = dense<[[-1.3, -0.5, -0.2], [0.4, -0.1, -0.7], [-1.1, 0.6, 0.7]]> : tensor<3x3xf64>} : () -> tensor<3x3xf64>
  %3 = call @forward(%0, %1) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
  %4 = call @reverse(%0, %2) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
  return %3, %4 : tensor<3x3xf64>, tensor<3x3xf64>
}

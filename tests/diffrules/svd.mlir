// smelt.svd: forward mode, reverse mode, and the values of both (checked by finite differences).
// Vectors are squared: their signs are the library's choice.
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,jvp,linearize,transpose),canonicalize,cse,dce' | filecheck %s
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,jvp,linearize,transpose)' --execute | filecheck %s --check-prefix=VALUE

func.func private @f(%arg0: tensor<3x2xf64>) -> (tensor<3x3xf64>, tensor<2xf64>, tensor<2x2xf64>) {
  %0:3 = "smelt.svd"(%arg0) {full = true} : (tensor<3x2xf64>) -> (tensor<3x3xf64>, tensor<2xf64>, tensor<2x2xf64>)
  %1 = "smelt.mul"(%0#0, %0#0) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
  %2 = "smelt.mul"(%0#2, %0#2) : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
  return %1, %0#1, %2 : tensor<3x3xf64>, tensor<2xf64>, tensor<2x2xf64>
}

// CHECK-LABEL: func.func @forward(
// CHECK-NEXT: %[[V0:.*]]:3 = "smelt.svd"(%arg0) {full = true} : (tensor<3x2xf64>) -> (tensor<3x3xf64>, tensor<2xf64>, tensor<2x2xf64>)
// CHECK-NEXT: %[[V1:.*]] = "smelt.slice"(%[[V0]]#0) {start = array<i64: 0, 0>, stop = array<i64: 3, 2>, stride = array<i64: 1, 1>} : (tensor<3x3xf64>) -> tensor<3x2xf64>
// CHECK-NEXT: %[[V2:.*]] = "smelt.transpose"(%[[V1]]) {permutation = array<i64: 1, 0>} : (tensor<3x2xf64>) -> tensor<2x3xf64>
// CHECK-NEXT: %[[V3:.*]] = "smelt.transpose"(%[[V0]]#2) {permutation = array<i64: 1, 0>} : (tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V4:.*]] = "smelt.dot_general"(%[[V2]], %arg1) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<2x3xf64>, tensor<3x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V5:.*]] = "smelt.dot_general"(%arg1, %[[V3]]) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<3x2xf64>, tensor<2x2xf64>) -> tensor<3x2xf64>
// CHECK-NEXT: %[[V6:.*]] = "smelt.dot_general"(%[[V4]], %[[V3]]) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V7:.*]] = "smelt.transpose"(%[[V6]]) {permutation = array<i64: 1, 0>} : (tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V8:.*]] = "smelt.broadcast"(%[[V0]]#1) {shape = array<i64: 2, 2>} : (tensor<2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V9:.*]] = "smelt.reshape"(%[[V0]]#1) {shape = array<i64: 2, 1>} : (tensor<2xf64>) -> tensor<2x1xf64>
// CHECK-NEXT: %[[V10:.*]] = "smelt.broadcast"(%[[V9]]) {shape = array<i64: 2, 2>} : (tensor<2x1xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V11:.*]] = "smelt.add"(%[[V10]], %[[V8]]) : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V12:.*]] = "smelt.constant"() {dtype = f64, value = 0 : i64} : () -> tensor<f64>
// CHECK-NEXT: %[[V13:.*]] = "smelt.broadcast"(%[[V12]]) {shape = array<i64: 2, 2>} : (tensor<f64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V14:.*]] = "smelt.equal"(%[[V11]], %[[V13]]) : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xi1>
// CHECK-NEXT: %[[V15:.*]] = "smelt.sub"(%[[V8]], %[[V10]]) : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V16:.*]] = "smelt.abs"(%[[V0]]#1) : (tensor<2xf64>) -> tensor<2xf64>
// CHECK-NEXT: %[[V17:.*]] = "smelt.reduce_max"(%[[V16]]) {axes = array<i64: 0>} : (tensor<2xf64>) -> tensor<f64>
// CHECK-NEXT: %[[V18:.*]] = "smelt.constant"() {dtype = f64, value = 4.4408920985006262E-16 : f64} : () -> tensor<f64>
// CHECK-NEXT: %[[V19:.*]] = "smelt.mul"(%[[V17]], %[[V18]]) : (tensor<f64>, tensor<f64>) -> tensor<f64>
// CHECK-NEXT: %[[V20:.*]] = "smelt.abs"(%[[V15]]) : (tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V21:.*]] = "smelt.broadcast"(%[[V19]]) {shape = array<i64: 2, 2>} : (tensor<f64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V22:.*]] = "smelt.less_equal"(%[[V20]], %[[V21]]) : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xi1>
// CHECK-NEXT: %[[V23:.*]] = "smelt.constant"() {dtype = f64, value = 1 : i64} : () -> tensor<f64>
// CHECK-NEXT: %[[V24:.*]] = "smelt.broadcast"(%[[V23]]) {shape = array<i64: 2, 2>} : (tensor<f64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V25:.*]] = "smelt.select"(%[[V22]], %[[V24]], %[[V15]]) : (tensor<2x2xi1>, tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V26:.*]] = "smelt.div"(%[[V24]], %[[V25]]) : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V27:.*]] = "smelt.select"(%[[V22]], %[[V13]], %[[V26]]) : (tensor<2x2xi1>, tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V28:.*]] = "smelt.select"(%[[V14]], %[[V24]], %[[V11]]) : (tensor<2x2xi1>, tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V29:.*]] = "smelt.div"(%[[V27]], %[[V28]]) : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V30:.*]] = "smelt.mul"(%[[V6]], %[[V8]]) : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V31:.*]] = "smelt.mul"(%[[V10]], %[[V7]]) : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V32:.*]] = "smelt.add"(%[[V30]], %[[V31]]) : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V33:.*]] = "smelt.mul"(%[[V29]], %[[V32]]) : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V34:.*]] = "smelt.dot_general"(%[[V1]], %[[V33]]) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<3x2xf64>, tensor<2x2xf64>) -> tensor<3x2xf64>
// CHECK-NEXT: %[[V35:.*]] = "smelt.mul"(%[[V10]], %[[V6]]) : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V36:.*]] = "smelt.mul"(%[[V7]], %[[V8]]) : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V37:.*]] = "smelt.add"(%[[V35]], %[[V36]]) : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V38:.*]] = "smelt.mul"(%[[V29]], %[[V37]]) : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V39:.*]] = "smelt.dot_general"(%[[V3]], %[[V38]]) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V40:.*]] = "smelt.dot_general"(%[[V1]], %[[V6]]) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<3x2xf64>, tensor<2x2xf64>) -> tensor<3x2xf64>
// CHECK-NEXT: %[[V41:.*]] = "smelt.sub"(%[[V5]], %[[V40]]) : (tensor<3x2xf64>, tensor<3x2xf64>) -> tensor<3x2xf64>
// CHECK-NEXT: %[[V42:.*]] = "smelt.broadcast"(%[[V12]]) {shape = array<i64: 2>} : (tensor<f64>) -> tensor<2xf64>
// CHECK-NEXT: %[[V43:.*]] = "smelt.equal"(%[[V0]]#1, %[[V42]]) : (tensor<2xf64>, tensor<2xf64>) -> tensor<2xi1>
// CHECK-NEXT: %[[V44:.*]] = "smelt.broadcast"(%[[V23]]) {shape = array<i64: 2>} : (tensor<f64>) -> tensor<2xf64>
// CHECK-NEXT: %[[V45:.*]] = "smelt.select"(%[[V43]], %[[V44]], %[[V0]]#1) : (tensor<2xi1>, tensor<2xf64>, tensor<2xf64>) -> tensor<2xf64>
// CHECK-NEXT: %[[V46:.*]] = "smelt.div"(%[[V44]], %[[V45]]) : (tensor<2xf64>, tensor<2xf64>) -> tensor<2xf64>
// CHECK-NEXT: %[[V47:.*]] = "smelt.select"(%[[V43]], %[[V42]], %[[V46]]) : (tensor<2xi1>, tensor<2xf64>, tensor<2xf64>) -> tensor<2xf64>
// CHECK-NEXT: %[[V48:.*]] = "smelt.broadcast"(%[[V47]]) {shape = array<i64: 3, 2>} : (tensor<2xf64>) -> tensor<3x2xf64>
// CHECK-NEXT: %[[V49:.*]] = "smelt.mul"(%[[V41]], %[[V48]]) : (tensor<3x2xf64>, tensor<3x2xf64>) -> tensor<3x2xf64>
// CHECK-NEXT: %[[V50:.*]] = "smelt.add"(%[[V34]], %[[V49]]) : (tensor<3x2xf64>, tensor<3x2xf64>) -> tensor<3x2xf64>
// CHECK-NEXT: %[[V51:.*]] = "smelt.slice"(%[[V0]]#0) {start = array<i64: 0, 2>, stop = array<i64: 3, 3>, stride = array<i64: 1, 1>} : (tensor<3x3xf64>) -> tensor<3x1xf64>
// CHECK-NEXT: %[[V52:.*]] = "smelt.transpose"(%[[V50]]) {permutation = array<i64: 1, 0>} : (tensor<3x2xf64>) -> tensor<2x3xf64>
// CHECK-NEXT: %[[V53:.*]] = "smelt.dot_general"(%[[V52]], %[[V51]]) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<2x3xf64>, tensor<3x1xf64>) -> tensor<2x1xf64>
// CHECK-NEXT: %[[V54:.*]] = "smelt.dot_general"(%[[V1]], %[[V53]]) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<3x2xf64>, tensor<2x1xf64>) -> tensor<3x1xf64>
// CHECK-NEXT: %[[V55:.*]] = "smelt.neg"(%[[V54]]) : (tensor<3x1xf64>) -> tensor<3x1xf64>
// CHECK-NEXT: %[[V56:.*]] = "smelt.concatenate"(%[[V50]], %[[V55]]) {axis = 1 : i64} : (tensor<3x2xf64>, tensor<3x1xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V57:.*]] = "smelt.iota"() {axis = 0 : i64, dtype = i32, shape = array<i64: 2, 2>} : () -> tensor<2x2xi32>
// CHECK-NEXT: %[[V58:.*]] = "smelt.iota"() {axis = 1 : i64, dtype = i32, shape = array<i64: 2, 2>} : () -> tensor<2x2xi32>
// CHECK-NEXT: %[[V59:.*]] = "smelt.equal"(%[[V57]], %[[V58]]) : (tensor<2x2xi32>, tensor<2x2xi32>) -> tensor<2x2xi1>
// CHECK-NEXT: %[[V60:.*]] = "smelt.select"(%[[V59]], %[[V6]], %[[V13]]) : (tensor<2x2xi1>, tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V61:.*]] = "smelt.reduce_sum"(%[[V60]]) {axes = array<i64: 0>} : (tensor<2x2xf64>) -> tensor<2xf64>
// CHECK-NEXT: %[[V62:.*]] = "smelt.transpose"(%[[V39]]) {permutation = array<i64: 1, 0>} : (tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V63:.*]] = "smelt.mul"(%[[V56]], %[[V0]]#0) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V64:.*]] = "smelt.add"(%[[V63]], %[[V63]]) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V65:.*]] = "smelt.mul"(%[[V62]], %[[V0]]#2) : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V66:.*]] = "smelt.add"(%[[V65]], %[[V65]]) : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: return %[[V64]], %[[V61]], %[[V66]] : tensor<3x3xf64>, tensor<2xf64>, tensor<2x2xf64>
func.func @forward(%arg0: tensor<3x2xf64>, %arg1: tensor<3x2xf64>) -> (tensor<3x3xf64>, tensor<2xf64>, tensor<2x2xf64>) {
  %f = constant @f : (tensor<3x2xf64>) -> (tensor<3x3xf64>, tensor<2xf64>, tensor<2x2xf64>)
  %0 = "smelt.jvp"(%f) {wrt = array<i64: 0>} : ((tensor<3x2xf64>) -> (tensor<3x3xf64>, tensor<2xf64>, tensor<2x2xf64>)) -> ((tensor<3x2xf64>, tensor<3x2xf64>) -> (tensor<3x3xf64>, tensor<2xf64>, tensor<2x2xf64>, tensor<3x3xf64>, tensor<2xf64>, tensor<2x2xf64>))
  %1:6 = call_indirect %0(%arg0, %arg1) : (tensor<3x2xf64>, tensor<3x2xf64>) -> (tensor<3x3xf64>, tensor<2xf64>, tensor<2x2xf64>, tensor<3x3xf64>, tensor<2xf64>, tensor<2x2xf64>)
  return %1#3, %1#4, %1#5 : tensor<3x3xf64>, tensor<2xf64>, tensor<2x2xf64>
}

// CHECK-LABEL: func.func @reverse(
// CHECK-NEXT: %[[V0:.*]]:3 = "smelt.svd"(%arg0) {full = true} : (tensor<3x2xf64>) -> (tensor<3x3xf64>, tensor<2xf64>, tensor<2x2xf64>)
// CHECK-NEXT: %[[V1:.*]] = "smelt.slice"(%[[V0]]#0) {start = array<i64: 0, 0>, stop = array<i64: 3, 2>, stride = array<i64: 1, 1>} : (tensor<3x3xf64>) -> tensor<3x2xf64>
// CHECK-NEXT: %[[V2:.*]] = "smelt.transpose"(%[[V1]]) {permutation = array<i64: 1, 0>} : (tensor<3x2xf64>) -> tensor<2x3xf64>
// CHECK-NEXT: %[[V3:.*]] = "smelt.transpose"(%[[V0]]#2) {permutation = array<i64: 1, 0>} : (tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V4:.*]] = "smelt.broadcast"(%[[V0]]#1) {shape = array<i64: 2, 2>} : (tensor<2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V5:.*]] = "smelt.reshape"(%[[V0]]#1) {shape = array<i64: 2, 1>} : (tensor<2xf64>) -> tensor<2x1xf64>
// CHECK-NEXT: %[[V6:.*]] = "smelt.broadcast"(%[[V5]]) {shape = array<i64: 2, 2>} : (tensor<2x1xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V7:.*]] = "smelt.add"(%[[V6]], %[[V4]]) : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V8:.*]] = "smelt.constant"() {dtype = f64, value = 0 : i64} : () -> tensor<f64>
// CHECK-NEXT: %[[V9:.*]] = "smelt.broadcast"(%[[V8]]) {shape = array<i64: 2, 2>} : (tensor<f64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V10:.*]] = "smelt.equal"(%[[V7]], %[[V9]]) : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xi1>
// CHECK-NEXT: %[[V11:.*]] = "smelt.sub"(%[[V4]], %[[V6]]) : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V12:.*]] = "smelt.abs"(%[[V0]]#1) : (tensor<2xf64>) -> tensor<2xf64>
// CHECK-NEXT: %[[V13:.*]] = "smelt.reduce_max"(%[[V12]]) {axes = array<i64: 0>} : (tensor<2xf64>) -> tensor<f64>
// CHECK-NEXT: %[[V14:.*]] = "smelt.constant"() {dtype = f64, value = 4.4408920985006262E-16 : f64} : () -> tensor<f64>
// CHECK-NEXT: %[[V15:.*]] = "smelt.mul"(%[[V13]], %[[V14]]) : (tensor<f64>, tensor<f64>) -> tensor<f64>
// CHECK-NEXT: %[[V16:.*]] = "smelt.abs"(%[[V11]]) : (tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V17:.*]] = "smelt.broadcast"(%[[V15]]) {shape = array<i64: 2, 2>} : (tensor<f64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V18:.*]] = "smelt.less_equal"(%[[V16]], %[[V17]]) : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xi1>
// CHECK-NEXT: %[[V19:.*]] = "smelt.constant"() {dtype = f64, value = 1 : i64} : () -> tensor<f64>
// CHECK-NEXT: %[[V20:.*]] = "smelt.broadcast"(%[[V19]]) {shape = array<i64: 2, 2>} : (tensor<f64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V21:.*]] = "smelt.select"(%[[V18]], %[[V20]], %[[V11]]) : (tensor<2x2xi1>, tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V22:.*]] = "smelt.div"(%[[V20]], %[[V21]]) : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V23:.*]] = "smelt.select"(%[[V18]], %[[V9]], %[[V22]]) : (tensor<2x2xi1>, tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V24:.*]] = "smelt.select"(%[[V10]], %[[V20]], %[[V7]]) : (tensor<2x2xi1>, tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V25:.*]] = "smelt.div"(%[[V23]], %[[V24]]) : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V26:.*]] = "smelt.broadcast"(%[[V8]]) {shape = array<i64: 2>} : (tensor<f64>) -> tensor<2xf64>
// CHECK-NEXT: %[[V27:.*]] = "smelt.equal"(%[[V0]]#1, %[[V26]]) : (tensor<2xf64>, tensor<2xf64>) -> tensor<2xi1>
// CHECK-NEXT: %[[V28:.*]] = "smelt.broadcast"(%[[V19]]) {shape = array<i64: 2>} : (tensor<f64>) -> tensor<2xf64>
// CHECK-NEXT: %[[V29:.*]] = "smelt.select"(%[[V27]], %[[V28]], %[[V0]]#1) : (tensor<2xi1>, tensor<2xf64>, tensor<2xf64>) -> tensor<2xf64>
// CHECK-NEXT: %[[V30:.*]] = "smelt.div"(%[[V28]], %[[V29]]) : (tensor<2xf64>, tensor<2xf64>) -> tensor<2xf64>
// CHECK-NEXT: %[[V31:.*]] = "smelt.select"(%[[V27]], %[[V26]], %[[V30]]) : (tensor<2xi1>, tensor<2xf64>, tensor<2xf64>) -> tensor<2xf64>
// CHECK-NEXT: %[[V32:.*]] = "smelt.broadcast"(%[[V31]]) {shape = array<i64: 3, 2>} : (tensor<2xf64>) -> tensor<3x2xf64>
// CHECK-NEXT: %[[V33:.*]] = "smelt.slice"(%[[V0]]#0) {start = array<i64: 0, 2>, stop = array<i64: 3, 3>, stride = array<i64: 1, 1>} : (tensor<3x3xf64>) -> tensor<3x1xf64>
// CHECK-NEXT: %[[V34:.*]] = "smelt.iota"() {axis = 0 : i64, dtype = i32, shape = array<i64: 2, 2>} : () -> tensor<2x2xi32>
// CHECK-NEXT: %[[V35:.*]] = "smelt.iota"() {axis = 1 : i64, dtype = i32, shape = array<i64: 2, 2>} : () -> tensor<2x2xi32>
// CHECK-NEXT: %[[V36:.*]] = "smelt.equal"(%[[V34]], %[[V35]]) : (tensor<2x2xi32>, tensor<2x2xi32>) -> tensor<2x2xi1>
// CHECK-NEXT: %[[V37:.*]] = "smelt.mul"(%arg3, %[[V0]]#2) : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V38:.*]] = "smelt.add"(%[[V37]], %[[V37]]) : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V39:.*]] = "smelt.mul"(%arg1, %[[V0]]#0) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V40:.*]] = "smelt.add"(%[[V39]], %[[V39]]) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V41:.*]] = "smelt.transpose"(%[[V38]]) {permutation = array<i64: 1, 0>} : (tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V42:.*]] = "smelt.broadcast"(%arg2) {shape = array<i64: 2, 2>} : (tensor<2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V43:.*]] = "smelt.select"(%[[V36]], %[[V42]], %[[V9]]) : (tensor<2x2xi1>, tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V44:.*]] = "smelt.slice"(%[[V40]]) {start = array<i64: 0, 0>, stop = array<i64: 3, 2>, stride = array<i64: 1, 1>} : (tensor<3x3xf64>) -> tensor<3x2xf64>
// CHECK-NEXT: %[[V45:.*]] = "smelt.slice"(%[[V40]]) {start = array<i64: 0, 2>, stop = array<i64: 3, 3>, stride = array<i64: 1, 1>} : (tensor<3x3xf64>) -> tensor<3x1xf64>
// CHECK-NEXT: %[[V46:.*]] = "smelt.neg"(%[[V45]]) : (tensor<3x1xf64>) -> tensor<3x1xf64>
// CHECK-NEXT: %[[V47:.*]] = "smelt.dot_general"(%[[V1]], %[[V46]]) {lhs_batch = array<i64>, lhs_contracting = array<i64: 0>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<3x2xf64>, tensor<3x1xf64>) -> tensor<2x1xf64>
// CHECK-NEXT: %[[V48:.*]] = "smelt.broadcast"(%[[V47]]) {shape = array<i64: 2, 3>} : (tensor<2x1xf64>) -> tensor<2x3xf64>
// CHECK-NEXT: %[[V49:.*]] = "smelt.reshape"(%[[V33]]) {shape = array<i64: 1, 3>} : (tensor<3x1xf64>) -> tensor<1x3xf64>
// CHECK-NEXT: %[[V50:.*]] = "smelt.broadcast"(%[[V49]]) {shape = array<i64: 2, 3>} : (tensor<1x3xf64>) -> tensor<2x3xf64>
// CHECK-NEXT: %[[V51:.*]] = "smelt.mul"(%[[V48]], %[[V50]]) : (tensor<2x3xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>
// CHECK-NEXT: %[[V52:.*]] = "smelt.transpose"(%[[V51]]) {permutation = array<i64: 1, 0>} : (tensor<2x3xf64>) -> tensor<3x2xf64>
// CHECK-NEXT: %[[V53:.*]] = "smelt.add"(%[[V44]], %[[V52]]) : (tensor<3x2xf64>, tensor<3x2xf64>) -> tensor<3x2xf64>
// CHECK-NEXT: %[[V54:.*]] = "smelt.mul"(%[[V53]], %[[V32]]) : (tensor<3x2xf64>, tensor<3x2xf64>) -> tensor<3x2xf64>
// CHECK-NEXT: %[[V55:.*]] = "smelt.neg"(%[[V54]]) : (tensor<3x2xf64>) -> tensor<3x2xf64>
// CHECK-NEXT: %[[V56:.*]] = "smelt.dot_general"(%[[V1]], %[[V55]]) {lhs_batch = array<i64>, lhs_contracting = array<i64: 0>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<3x2xf64>, tensor<3x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V57:.*]] = "smelt.add"(%[[V43]], %[[V56]]) : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V58:.*]] = "smelt.dot_general"(%[[V3]], %[[V41]]) {lhs_batch = array<i64>, lhs_contracting = array<i64: 0>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V59:.*]] = "smelt.mul"(%[[V58]], %[[V25]]) : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V60:.*]] = "smelt.mul"(%[[V59]], %[[V4]]) : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V61:.*]] = "smelt.mul"(%[[V59]], %[[V6]]) : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V62:.*]] = "smelt.add"(%[[V57]], %[[V61]]) : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V63:.*]] = "smelt.dot_general"(%[[V1]], %[[V53]]) {lhs_batch = array<i64>, lhs_contracting = array<i64: 0>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<3x2xf64>, tensor<3x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V64:.*]] = "smelt.mul"(%[[V63]], %[[V25]]) : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V65:.*]] = "smelt.mul"(%[[V64]], %[[V6]]) : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V66:.*]] = "smelt.add"(%[[V60]], %[[V65]]) : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V67:.*]] = "smelt.mul"(%[[V64]], %[[V4]]) : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V68:.*]] = "smelt.add"(%[[V62]], %[[V67]]) : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V69:.*]] = "smelt.transpose"(%[[V66]]) {permutation = array<i64: 1, 0>} : (tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V70:.*]] = "smelt.add"(%[[V68]], %[[V69]]) : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V71:.*]] = "smelt.dot_general"(%[[V70]], %[[V3]]) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 1>} : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
// CHECK-NEXT: %[[V72:.*]] = "smelt.dot_general"(%[[V54]], %[[V3]]) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 1>} : (tensor<3x2xf64>, tensor<2x2xf64>) -> tensor<3x2xf64>
// CHECK-NEXT: %[[V73:.*]] = "smelt.dot_general"(%[[V2]], %[[V71]]) {lhs_batch = array<i64>, lhs_contracting = array<i64: 0>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<2x3xf64>, tensor<2x2xf64>) -> tensor<3x2xf64>
// CHECK-NEXT: %[[V74:.*]] = "smelt.add"(%[[V72]], %[[V73]]) : (tensor<3x2xf64>, tensor<3x2xf64>) -> tensor<3x2xf64>
// CHECK-NEXT: return %[[V74]] : tensor<3x2xf64>
func.func @reverse(%arg0: tensor<3x2xf64>, %arg1: tensor<3x3xf64>, %arg2: tensor<2xf64>, %arg3: tensor<2x2xf64>) -> tensor<3x2xf64> {
  %f = constant @f : (tensor<3x2xf64>) -> (tensor<3x3xf64>, tensor<2xf64>, tensor<2x2xf64>)
  %0 = "smelt.vjp"(%f) {seeds = array<i64: 0, 1, 2>, wrt = array<i64: 0>} : ((tensor<3x2xf64>) -> (tensor<3x3xf64>, tensor<2xf64>, tensor<2x2xf64>)) -> ((tensor<3x2xf64>, tensor<3x3xf64>, tensor<2xf64>, tensor<2x2xf64>) -> (tensor<3x3xf64>, tensor<2xf64>, tensor<2x2xf64>, tensor<3x2xf64>))
  %1:4 = call_indirect %0(%arg0, %arg1, %arg2, %arg3) : (tensor<3x2xf64>, tensor<3x3xf64>, tensor<2xf64>, tensor<2x2xf64>) -> (tensor<3x3xf64>, tensor<2xf64>, tensor<2x2xf64>, tensor<3x2xf64>)
  return %1#3 : tensor<3x2xf64>
}

// VALUE: dense<{{\[\[}}0.00624566, -0.119738, 0.113492], [-0.102863, 0.0336465, 0.0692167], [0.0966175, 0.0860913, -0.182709]]> : tensor<3x3xf64>
// VALUE-NEXT: dense<[0.755169, 0.760777]> : tensor<2xf64>
// VALUE-NEXT: dense<{{\[\[}}-0.0285618, 0.0285618], [0.0285618, -0.0285618]]> : tensor<2x2xf64>
// VALUE-NEXT: dense<{{\[\[}}0.660754, -0.0689178], [0.204416, 1.22632], [-0.0457577, -0.00355492]]> : tensor<3x2xf64>
func.func @main() -> (tensor<3x3xf64>, tensor<2xf64>, tensor<2x2xf64>, tensor<3x2xf64>) {
  %0 = "smelt.literal"() {value = dense<[[2.0, 0.5], [1.0, -4.0], [-0.5, 0.8]]> : tensor<3x2xf64>} : () -> tensor<3x2xf64>
  %1 = "smelt.literal"() {value = dense<[[1.0, -1.3], [-1.0, -0.8], [-1.0, 0.9]]> : tensor<3x2xf64>} : () -> tensor<3x2xf64>
  %2 = "smelt.literal"() {value = dense<[[1.1, 0.3, -1.4], [-1.3, -0.5, -0.2], [0.4, -0.1, -0.7]]> : tensor<3x3xf64>} : () -> tensor<3x3xf64>
  %3 = "smelt.literal"() {value = dense<[-1.1, 0.6]> : tensor<2xf64>} : () -> tensor<2xf64>
  %4 = "smelt.literal"() {value = dense<[[0.7, -1.4], [-1.2, -0.1]]> : tensor<2x2xf64>} : () -> tensor<2x2xf64>
  %5:3 = call @forward(%0, %1) : (tensor<3x2xf64>, tensor<3x2xf64>) -> (tensor<3x3xf64>, tensor<2xf64>, tensor<2x2xf64>)
  %6 = call @reverse(%0, %2, %3, %4) : (tensor<3x2xf64>, tensor<3x3xf64>, tensor<2xf64>, tensor<2x2xf64>) -> tensor<3x2xf64>
  return %5#0, %5#1, %5#2, %6 : tensor<3x3xf64>, tensor<2xf64>, tensor<2x2xf64>, tensor<3x2xf64>
}

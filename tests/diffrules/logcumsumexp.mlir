// smelt.logcumsumexp: forward mode, reverse mode, and the values of both (checked by finite differences).
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,jvp,linearize,transpose),canonicalize,cse,dce' | filecheck %s
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,jvp,linearize,transpose)' --execute | filecheck %s --check-prefix=VALUE

func.func private @f(%arg0: tensor<4x4xf64>) -> tensor<4x4xf64> {
  %0 = "smelt.logcumsumexp"(%arg0) {axis = 1 : i64, inclusive = true, reverse = false} : (tensor<4x4xf64>) -> tensor<4x4xf64>
  return %0 : tensor<4x4xf64>
}

// CHECK-LABEL: func.func @forward(
// CHECK-NEXT: %[[V0:.*]] = "smelt.cummax"(%arg0) {axis = 1 : i64, inclusive = true, reverse = false} : (tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V1:.*]] = "smelt.constant"() {dtype = f64, value = 0xFFF0000000000000 : f64} : () -> tensor<f64>
// CHECK-NEXT: %[[V2:.*]] = "smelt.broadcast"(%[[V1]]) {shape = array<i64: 4, 4>} : (tensor<f64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V3:.*]] = "smelt.equal"(%[[V0]], %[[V2]]) : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xi1>
// CHECK-NEXT: %[[V4:.*]] = "smelt.constant"() {dtype = f64, value = 0 : i64} : () -> tensor<f64>
// CHECK-NEXT: %[[V5:.*]] = "smelt.broadcast"(%[[V4]]) {shape = array<i64: 4, 4>} : (tensor<f64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V6:.*]] = "smelt.select"(%[[V3]], %[[V5]], %[[V0]]) : (tensor<4x4xi1>, tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V7:.*]] = "smelt.slice"(%[[V0]]) {start = array<i64: 0, 0>, stop = array<i64: 4, 3>, stride = array<i64: 1, 1>} : (tensor<4x4xf64>) -> tensor<4x3xf64>
// CHECK-NEXT: %[[V8:.*]] = "smelt.pad"(%[[V7]], %[[V1]]) {high = array<i64: 0, 0>, interior = array<i64: 0, 0>, low = array<i64: 0, 1>} : (tensor<4x3xf64>, tensor<f64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V9:.*]] = "smelt.constant"() {dtype = f64, value = 0x7FF0000000000000 : f64} : () -> tensor<f64>
// CHECK-NEXT: %[[V10:.*]] = "smelt.broadcast"(%[[V9]]) {shape = array<i64: 4, 4>} : (tensor<f64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V11:.*]] = "smelt.equal"(%[[V8]], %[[V10]]) : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xi1>
// CHECK-NEXT: %[[V12:.*]] = "smelt.sub"(%[[V8]], %[[V6]]) : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V13:.*]] = "smelt.select"(%[[V11]], %[[V5]], %[[V12]]) : (tensor<4x4xi1>, tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V14:.*]] = "smelt.exp"(%[[V13]]) : (tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V15:.*]] = "smelt.equal"(%arg0, %[[V10]]) : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xi1>
// CHECK-NEXT: %[[V16:.*]] = "smelt.sub"(%arg0, %[[V6]]) : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V17:.*]] = "smelt.select"(%[[V15]], %[[V5]], %[[V16]]) : (tensor<4x4xi1>, tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V18:.*]] = "smelt.exp"(%[[V17]]) : (tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V19:.*]] = "smelt.slice"(%[[V18]]) {start = array<i64: 0, 0>, stop = array<i64: 4, 3>, stride = array<i64: 1, 1>} : (tensor<4x4xf64>) -> tensor<4x3xf64>
// CHECK-NEXT: %[[V20:.*]] = "smelt.pad"(%[[V19]], %[[V4]]) {high = array<i64: 0, 0>, interior = array<i64: 0, 0>, low = array<i64: 0, 1>} : (tensor<4x3xf64>, tensor<f64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V21:.*]] = "smelt.mul"(%[[V14]], %[[V20]]) : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V22:.*]] = "smelt.add"(%[[V18]], %[[V21]]) : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V23:.*]] = "smelt.slice"(%[[V14]]) {start = array<i64: 0, 0>, stop = array<i64: 4, 3>, stride = array<i64: 1, 1>} : (tensor<4x4xf64>) -> tensor<4x3xf64>
// CHECK-NEXT: %[[V24:.*]] = "smelt.pad"(%[[V23]], %[[V4]]) {high = array<i64: 0, 0>, interior = array<i64: 0, 0>, low = array<i64: 0, 1>} : (tensor<4x3xf64>, tensor<f64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V25:.*]] = "smelt.mul"(%[[V14]], %[[V24]]) : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V26:.*]] = "smelt.slice"(%[[V22]]) {start = array<i64: 0, 0>, stop = array<i64: 4, 2>, stride = array<i64: 1, 1>} : (tensor<4x4xf64>) -> tensor<4x2xf64>
// CHECK-NEXT: %[[V27:.*]] = "smelt.pad"(%[[V26]], %[[V4]]) {high = array<i64: 0, 0>, interior = array<i64: 0, 0>, low = array<i64: 0, 2>} : (tensor<4x2xf64>, tensor<f64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V28:.*]] = "smelt.mul"(%[[V25]], %[[V27]]) : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V29:.*]] = "smelt.add"(%[[V22]], %[[V28]]) : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V30:.*]] = "smelt.equal"(%[[V29]], %[[V5]]) : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xi1>
// CHECK-NEXT: %[[V31:.*]] = "smelt.constant"() {dtype = f64, value = 1 : i64} : () -> tensor<f64>
// CHECK-NEXT: %[[V32:.*]] = "smelt.broadcast"(%[[V31]]) {shape = array<i64: 4, 4>} : (tensor<f64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V33:.*]] = "smelt.select"(%[[V30]], %[[V32]], %[[V29]]) : (tensor<4x4xi1>, tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V34:.*]] = "smelt.mul"(%[[V18]], %arg1) : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V35:.*]] = "smelt.slice"(%[[V34]]) {start = array<i64: 0, 0>, stop = array<i64: 4, 3>, stride = array<i64: 1, 1>} : (tensor<4x4xf64>) -> tensor<4x3xf64>
// CHECK-NEXT: %[[V36:.*]] = "smelt.pad"(%[[V35]], %[[V4]]) {high = array<i64: 0, 0>, interior = array<i64: 0, 0>, low = array<i64: 0, 1>} : (tensor<4x3xf64>, tensor<f64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V37:.*]] = "smelt.mul"(%[[V14]], %[[V36]]) : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V38:.*]] = "smelt.add"(%[[V34]], %[[V37]]) : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V39:.*]] = "smelt.slice"(%[[V38]]) {start = array<i64: 0, 0>, stop = array<i64: 4, 2>, stride = array<i64: 1, 1>} : (tensor<4x4xf64>) -> tensor<4x2xf64>
// CHECK-NEXT: %[[V40:.*]] = "smelt.pad"(%[[V39]], %[[V4]]) {high = array<i64: 0, 0>, interior = array<i64: 0, 0>, low = array<i64: 0, 2>} : (tensor<4x2xf64>, tensor<f64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V41:.*]] = "smelt.mul"(%[[V25]], %[[V40]]) : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V42:.*]] = "smelt.add"(%[[V38]], %[[V41]]) : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V43:.*]] = "smelt.div"(%[[V42]], %[[V33]]) : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: return %[[V43]] : tensor<4x4xf64>
func.func @forward(%arg0: tensor<4x4xf64>, %arg1: tensor<4x4xf64>) -> tensor<4x4xf64> {
  %f = constant @f : (tensor<4x4xf64>) -> tensor<4x4xf64>
  %0 = "smelt.jvp"(%f) {wrt = array<i64: 0>} : ((tensor<4x4xf64>) -> tensor<4x4xf64>) -> ((tensor<4x4xf64>, tensor<4x4xf64>) -> (tensor<4x4xf64>, tensor<4x4xf64>))
  %1:2 = call_indirect %0(%arg0, %arg1) : (tensor<4x4xf64>, tensor<4x4xf64>) -> (tensor<4x4xf64>, tensor<4x4xf64>)
  return %1#1 : tensor<4x4xf64>
}

// CHECK-LABEL: func.func @reverse(
// CHECK-NEXT: %[[V0:.*]] = "smelt.cummax"(%arg0) {axis = 1 : i64, inclusive = true, reverse = false} : (tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V1:.*]] = "smelt.constant"() {dtype = f64, value = 0xFFF0000000000000 : f64} : () -> tensor<f64>
// CHECK-NEXT: %[[V2:.*]] = "smelt.broadcast"(%[[V1]]) {shape = array<i64: 4, 4>} : (tensor<f64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V3:.*]] = "smelt.equal"(%[[V0]], %[[V2]]) : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xi1>
// CHECK-NEXT: %[[V4:.*]] = "smelt.constant"() {dtype = f64, value = 0 : i64} : () -> tensor<f64>
// CHECK-NEXT: %[[V5:.*]] = "smelt.broadcast"(%[[V4]]) {shape = array<i64: 4, 4>} : (tensor<f64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V6:.*]] = "smelt.select"(%[[V3]], %[[V5]], %[[V0]]) : (tensor<4x4xi1>, tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V7:.*]] = "smelt.slice"(%[[V0]]) {start = array<i64: 0, 0>, stop = array<i64: 4, 3>, stride = array<i64: 1, 1>} : (tensor<4x4xf64>) -> tensor<4x3xf64>
// CHECK-NEXT: %[[V8:.*]] = "smelt.pad"(%[[V7]], %[[V1]]) {high = array<i64: 0, 0>, interior = array<i64: 0, 0>, low = array<i64: 0, 1>} : (tensor<4x3xf64>, tensor<f64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V9:.*]] = "smelt.constant"() {dtype = f64, value = 0x7FF0000000000000 : f64} : () -> tensor<f64>
// CHECK-NEXT: %[[V10:.*]] = "smelt.broadcast"(%[[V9]]) {shape = array<i64: 4, 4>} : (tensor<f64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V11:.*]] = "smelt.equal"(%[[V8]], %[[V10]]) : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xi1>
// CHECK-NEXT: %[[V12:.*]] = "smelt.sub"(%[[V8]], %[[V6]]) : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V13:.*]] = "smelt.select"(%[[V11]], %[[V5]], %[[V12]]) : (tensor<4x4xi1>, tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V14:.*]] = "smelt.exp"(%[[V13]]) : (tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V15:.*]] = "smelt.equal"(%arg0, %[[V10]]) : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xi1>
// CHECK-NEXT: %[[V16:.*]] = "smelt.sub"(%arg0, %[[V6]]) : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V17:.*]] = "smelt.select"(%[[V15]], %[[V5]], %[[V16]]) : (tensor<4x4xi1>, tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V18:.*]] = "smelt.exp"(%[[V17]]) : (tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V19:.*]] = "smelt.slice"(%[[V18]]) {start = array<i64: 0, 0>, stop = array<i64: 4, 3>, stride = array<i64: 1, 1>} : (tensor<4x4xf64>) -> tensor<4x3xf64>
// CHECK-NEXT: %[[V20:.*]] = "smelt.pad"(%[[V19]], %[[V4]]) {high = array<i64: 0, 0>, interior = array<i64: 0, 0>, low = array<i64: 0, 1>} : (tensor<4x3xf64>, tensor<f64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V21:.*]] = "smelt.mul"(%[[V14]], %[[V20]]) : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V22:.*]] = "smelt.add"(%[[V18]], %[[V21]]) : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V23:.*]] = "smelt.slice"(%[[V14]]) {start = array<i64: 0, 0>, stop = array<i64: 4, 3>, stride = array<i64: 1, 1>} : (tensor<4x4xf64>) -> tensor<4x3xf64>
// CHECK-NEXT: %[[V24:.*]] = "smelt.pad"(%[[V23]], %[[V4]]) {high = array<i64: 0, 0>, interior = array<i64: 0, 0>, low = array<i64: 0, 1>} : (tensor<4x3xf64>, tensor<f64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V25:.*]] = "smelt.mul"(%[[V14]], %[[V24]]) : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V26:.*]] = "smelt.slice"(%[[V22]]) {start = array<i64: 0, 0>, stop = array<i64: 4, 2>, stride = array<i64: 1, 1>} : (tensor<4x4xf64>) -> tensor<4x2xf64>
// CHECK-NEXT: %[[V27:.*]] = "smelt.pad"(%[[V26]], %[[V4]]) {high = array<i64: 0, 0>, interior = array<i64: 0, 0>, low = array<i64: 0, 2>} : (tensor<4x2xf64>, tensor<f64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V28:.*]] = "smelt.mul"(%[[V25]], %[[V27]]) : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V29:.*]] = "smelt.add"(%[[V22]], %[[V28]]) : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V30:.*]] = "smelt.equal"(%[[V29]], %[[V5]]) : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xi1>
// CHECK-NEXT: %[[V31:.*]] = "smelt.constant"() {dtype = f64, value = 1 : i64} : () -> tensor<f64>
// CHECK-NEXT: %[[V32:.*]] = "smelt.broadcast"(%[[V31]]) {shape = array<i64: 4, 4>} : (tensor<f64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V33:.*]] = "smelt.select"(%[[V30]], %[[V32]], %[[V29]]) : (tensor<4x4xi1>, tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V34:.*]] = "smelt.div"(%arg1, %[[V33]]) : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V35:.*]] = "smelt.mul"(%[[V34]], %[[V25]]) : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V36:.*]] = "smelt.slice"(%[[V35]]) {start = array<i64: 0, 2>, stop = array<i64: 4, 4>, stride = array<i64: 1, 1>} : (tensor<4x4xf64>) -> tensor<4x2xf64>
// CHECK-NEXT: %[[V37:.*]] = "smelt.pad"(%[[V36]], %[[V4]]) {high = array<i64: 0, 2>, interior = array<i64: 0, 0>, low = array<i64: 0, 0>} : (tensor<4x2xf64>, tensor<f64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V38:.*]] = "smelt.add"(%[[V34]], %[[V37]]) : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V39:.*]] = "smelt.mul"(%[[V38]], %[[V14]]) : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V40:.*]] = "smelt.slice"(%[[V39]]) {start = array<i64: 0, 1>, stop = array<i64: 4, 4>, stride = array<i64: 1, 1>} : (tensor<4x4xf64>) -> tensor<4x3xf64>
// CHECK-NEXT: %[[V41:.*]] = "smelt.pad"(%[[V40]], %[[V4]]) {high = array<i64: 0, 1>, interior = array<i64: 0, 0>, low = array<i64: 0, 0>} : (tensor<4x3xf64>, tensor<f64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V42:.*]] = "smelt.add"(%[[V38]], %[[V41]]) : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: %[[V43:.*]] = "smelt.mul"(%[[V42]], %[[V18]]) : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK-NEXT: return %[[V43]] : tensor<4x4xf64>
func.func @reverse(%arg0: tensor<4x4xf64>, %arg1: tensor<4x4xf64>) -> tensor<4x4xf64> {
  %f = constant @f : (tensor<4x4xf64>) -> tensor<4x4xf64>
  %0 = "smelt.vjp"(%f) {seeds = array<i64: 0>, wrt = array<i64: 0>} : ((tensor<4x4xf64>) -> tensor<4x4xf64>) -> ((tensor<4x4xf64>, tensor<4x4xf64>) -> (tensor<4x4xf64>, tensor<4x4xf64>))
  %1:2 = call_indirect %0(%arg0, %arg1) : (tensor<4x4xf64>, tensor<4x4xf64>) -> (tensor<4x4xf64>, tensor<4x4xf64>)
  return %1#1 : tensor<4x4xf64>
}

// VALUE: dense<{{\[\[}}1.3, 1.3, 1.21882, 1.27777], [0.7, 0.906997, 0.816913, 0.885714], [0.9, 0.843291, 1.06894, 1.04146], [0.8, 0.728213, 0.680846, 0.844746]]> : tensor<4x4xf64>
// VALUE-NEXT: dense<{{\[\[}}2.28236, 1.06587, 0.463087, 0.188674], [2.2599, 1.13676, 0.663089, 0.340252], [1.59624, 0.912054, 0.580186, 0.211517], [2.51304, 0.847148, 0.679744, 0.160067]]> : tensor<4x4xf64>
func.func @main() -> (tensor<4x4xf64>, tensor<4x4xf64>) {
  %0 = "smelt.literal"() {value = dense<[[6.500000e-01, 3.900000e-01, 2.300000e-01, 2.100000e-01], [7.700000e-01, 8.400000e-01, 6.200000e-01, 7.100000e-01], [5.800000e-01, 8.500000e-01, 7.700000e-01, 2.000000e-01], [8.000000e-01, 2.200000e-01, 7.100000e-01, 3.200000e-01]]> : tensor<4x4xf64>} : () -> tensor<4x4xf64>
  %1 = "smelt.literal"() {value = dense<[[1.300000e+00, 1.300000e+00, 1.000000e+00, 1.500000e+00], [0.69999999999999996, 1.100000e+00, 6.000000e-01, 1.100000e+00], [9.000000e-01, 8.000000e-01, 1.500000e+00, 9.000000e-01], [8.000000e-01, 6.000000e-01, 6.000000e-01, 1.500000e+00]]> : tensor<4x4xf64>} : () -> tensor<4x4xf64>
  %2 = "smelt.literal"() {value = dense<[[9.000000e-01, 1.200000e+00, 1.000000e+00, 9.000000e-01], [1.200000e+00, 6.000000e-01, 1.200000e+00, 1.400000e+00], [9.000000e-01, 5.000000e-01, 6.000000e-01, 1.300000e+00], [1.000000e+00, 1.200000e+00, 1.200000e+00, 8.000000e-01]]> : tensor<4x4xf64>} : () -> tensor<4x4xf64>
  %3 = call @forward(%0, %1) : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
  %4 = call @reverse(%0, %2) : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
  return %3, %4 : tensor<4x4xf64>, tensor<4x4xf64>
}

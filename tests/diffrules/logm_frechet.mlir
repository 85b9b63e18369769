// smelt.logm_frechet: forward mode, reverse mode, and the values of both (checked by finite differences).
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,jvp,linearize,transpose),canonicalize,cse,dce' | filecheck %s
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,jvp,linearize,transpose)' --execute | filecheck %s --check-prefix=VALUE

func.func private @f(%arg0: tensor<3x3xf64>, %arg1: tensor<3x3xf64>) -> tensor<3x3xf64> {
  %0 = "smelt.logm_frechet"(%arg0, %arg1) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
  return %0 : tensor<3x3xf64>
}

// CHECK-LABEL: func.func @forward(
// CHECK-NEXT: %[[V0:.*]] = "smelt.logm_frechet"(%arg0, %arg3) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V1:.*]] = "smelt.constant"() {dtype = f64, value = 0 : i64} : () -> tensor<f64>
// CHECK-NEXT: %[[V2:.*]] = "smelt.broadcast"(%[[V1]]) {shape = array<i64: 3, 3>} : (tensor<f64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V3:.*]] = "smelt.concatenate"(%arg0, %arg1) {axis = 1 : i64} : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x6xf64>
// CHECK-NEXT: %[[V4:.*]] = "smelt.concatenate"(%[[V2]], %arg0) {axis = 1 : i64} : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x6xf64>
// CHECK-NEXT: %[[V5:.*]] = "smelt.concatenate"(%[[V3]], %[[V4]]) {axis = 0 : i64} : (tensor<3x6xf64>, tensor<3x6xf64>) -> tensor<6x6xf64>
// CHECK-NEXT: %[[V6:.*]] = "smelt.concatenate"(%arg2, %[[V2]]) {axis = 1 : i64} : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x6xf64>
// CHECK-NEXT: %[[V7:.*]] = "smelt.concatenate"(%[[V2]], %arg2) {axis = 1 : i64} : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x6xf64>
// CHECK-NEXT: %[[V8:.*]] = "smelt.concatenate"(%[[V6]], %[[V7]]) {axis = 0 : i64} : (tensor<3x6xf64>, tensor<3x6xf64>) -> tensor<6x6xf64>
// CHECK-NEXT: %[[V9:.*]] = "smelt.logm_frechet"(%[[V5]], %[[V8]]) : (tensor<6x6xf64>, tensor<6x6xf64>) -> tensor<6x6xf64>
// CHECK-NEXT: %[[V10:.*]] = "smelt.slice"(%[[V9]]) {start = array<i64: 0, 3>, stop = array<i64: 3, 6>, stride = array<i64: 1, 1>} : (tensor<6x6xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V11:.*]] = "smelt.add"(%[[V0]], %[[V10]]) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: return %[[V11]] : tensor<3x3xf64>
func.func @forward(%arg0: tensor<3x3xf64>, %arg1: tensor<3x3xf64>, %arg2: tensor<3x3xf64>, %arg3: tensor<3x3xf64>) -> tensor<3x3xf64> {
  %f = constant @f : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
  %0 = "smelt.jvp"(%f) {wrt = array<i64: 0, 1>} : ((tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>) -> ((tensor<3x3xf64>, tensor<3x3xf64>, tensor<3x3xf64>, tensor<3x3xf64>) -> (tensor<3x3xf64>, tensor<3x3xf64>))
  %1:2 = call_indirect %0(%arg0, %arg1, %arg2, %arg3) : (tensor<3x3xf64>, tensor<3x3xf64>, tensor<3x3xf64>, tensor<3x3xf64>) -> (tensor<3x3xf64>, tensor<3x3xf64>)
  return %1#1 : tensor<3x3xf64>
}

// CHECK-LABEL: func.func @reverse(
// CHECK-NEXT: %[[V0:.*]] = "smelt.constant"() {dtype = f64, value = 0 : i64} : () -> tensor<f64>
// CHECK-NEXT: %[[V1:.*]] = "smelt.broadcast"(%[[V0]]) {shape = array<i64: 3, 3>} : (tensor<f64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V2:.*]] = "smelt.concatenate"(%arg0, %arg1) {axis = 1 : i64} : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x6xf64>
// CHECK-NEXT: %[[V3:.*]] = "smelt.concatenate"(%[[V1]], %arg0) {axis = 1 : i64} : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x6xf64>
// CHECK-NEXT: %[[V4:.*]] = "smelt.concatenate"(%[[V2]], %[[V3]]) {axis = 0 : i64} : (tensor<3x6xf64>, tensor<3x6xf64>) -> tensor<6x6xf64>
// CHECK-NEXT: %[[V5:.*]] = "smelt.pad"(%arg2, %[[V0]]) {high = array<i64: 3, 0>, interior = array<i64: 0, 0>, low = array<i64: 0, 3>} : (tensor<3x3xf64>, tensor<f64>) -> tensor<6x6xf64>
// CHECK-NEXT: %[[V6:.*]] = "smelt.transpose"(%[[V4]]) {permutation = array<i64: 1, 0>} : (tensor<6x6xf64>) -> tensor<6x6xf64>
// CHECK-NEXT: %[[V7:.*]] = "smelt.logm_frechet"(%[[V6]], %[[V5]]) : (tensor<6x6xf64>, tensor<6x6xf64>) -> tensor<6x6xf64>
// CHECK-NEXT: %[[V8:.*]] = "smelt.slice"(%[[V7]]) {start = array<i64: 3, 3>, stop = array<i64: 6, 6>, stride = array<i64: 1, 1>} : (tensor<6x6xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V9:.*]] = "smelt.slice"(%[[V7]]) {start = array<i64: 0, 0>, stop = array<i64: 3, 3>, stride = array<i64: 1, 1>} : (tensor<6x6xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V10:.*]] = "smelt.add"(%[[V8]], %[[V9]]) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V11:.*]] = "smelt.transpose"(%arg0) {permutation = array<i64: 1, 0>} : (tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: %[[V12:.*]] = "smelt.logm_frechet"(%[[V11]], %arg2) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
// CHECK-NEXT: return %[[V10]], %[[V12]] : tensor<3x3xf64>, tensor<3x3xf64>
func.func @reverse(%arg0: tensor<3x3xf64>, %arg1: tensor<3x3xf64>, %arg2: tensor<3x3xf64>) -> (tensor<3x3xf64>, tensor<3x3xf64>) {
  %f = constant @f : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
  %0 = "smelt.vjp"(%f) {seeds = array<i64: 0>, wrt = array<i64: 0, 1>} : ((tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>) -> ((tensor<3x3xf64>, tensor<3x3xf64>, tensor<3x3xf64>) -> (tensor<3x3xf64>, tensor<3x3xf64>, tensor<3x3xf64>))
  %1:3 = call_indirect %0(%arg0, %arg1, %arg2) : (tensor<3x3xf64>, tensor<3x3xf64>, tensor<3x3xf64>) -> (tensor<3x3xf64>, tensor<3x3xf64>, tensor<3x3xf64>)
  return %1#1, %1#2 : tensor<3x3xf64>, tensor<3x3xf64>
}

// VALUE: dense<{{\[\[}}-0.633445, -0.334242, -0.0311535], [0.16085, 0.0311477, -0.252733], [-0.527891, 0.0793036, 0.390932]]> : tensor<3x3xf64>
// VALUE-NEXT: dense<{{\[\[}}0.0609863, 0.0333519, -0.0451573], [0.0662308, -0.0287744, 0.0208926], [0.0128272, 0.134747, -0.114321]]> : tensor<3x3xf64>
// VALUE-NEXT: dense<{{\[\[}}-0.667895, -0.501234, 0.0370888], [0.25417, 0.168046, -0.294628], [0.495669, -0.440395, 0.136015]]> : tensor<3x3xf64>
func.func @main() -> (tensor<3x3xf64>, tensor<3x3xf64>, tensor<3x3xf64>) {
  %0 = "smelt.literal"() {value = dense<[[2.3, -0.5, 0.2], [0.7, 1.9, -0.4], [-0.2, 0.6, 2.4]]> : tensor<3x3xf64>} : () -> tensor<3x3xf64>
  %1 = "smelt.literal"() {value = dense<[[0.4, -0.1, 0.6], [-0.7, 0.2, 0.3], [0.5, -0.6, 0.1]]> : tensor<3x3xf64>} : () -> tensor<3x3xf64>
  %2 = "smelt.literal"() {value = dense<[[1.0, -1.3, -1.0], [-0.8, -1.0, 0.9], [1.1, 0.3, -1.4]]> : tensor<3x3xf64>} : () -> tensor<3x3xf64>
  %3 = "smelt.literal"() {value = dense<[[-1.3, -0.5, -0.2], [0.4, -0.1, -0.7], [-1.1, 0.6, 0.7]]> : tensor<3x3xf64>} : () -> tensor<3x3xf64>
  %4 = "smelt.literal"() {value = dense<[[-1.4, -1.2, -0.1], [0.8, 0.5, -0.6], [1.2, -0.9, 0.2]]> : tensor<3x3xf64>} : () -> tensor<3x3xf64>
  %5 = call @forward(%0, %1, %2, %3) : (tensor<3x3xf64>, tensor<3x3xf64>, tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
  %6:2 = call @reverse(%0, %1, %4) : (tensor<3x3xf64>, tensor<3x3xf64>, tensor<3x3xf64>) -> (tensor<3x3xf64>, tensor<3x3xf64>)
  return %5, %6#0, %6#1 : tensor<3x3xf64>, tensor<3x3xf64>, tensor<3x3xf64>
}

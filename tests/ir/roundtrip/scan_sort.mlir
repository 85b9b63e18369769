// RUN: smelt-opt %s | smelt-opt - | filecheck %s

// CHECK-LABEL: func.func @cumsum(
// CHECK: "smelt.cumsum"(%{{.*}}) {axis = 1 : i64, inclusive = true, reverse = false} : (tensor<4x8xf32>) -> tensor<4x8xf32>
func.func @cumsum(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>) {
  %r = "smelt.cumsum"(%x) {axis = 1 : i64, reverse = false, inclusive = true} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}

// CHECK-LABEL: func.func @cumprod(
// CHECK: "smelt.cumprod"(%{{.*}}) {axis = 1 : i64, inclusive = true, reverse = false} : (tensor<4x8xf32>) -> tensor<4x8xf32>
func.func @cumprod(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>) {
  %r = "smelt.cumprod"(%x) {axis = 1 : i64, reverse = false, inclusive = true} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}

// CHECK-LABEL: func.func @cummax(
// CHECK: "smelt.cummax"(%{{.*}}) {axis = 1 : i64, inclusive = true, reverse = false} : (tensor<4x8xf32>) -> tensor<4x8xf32>
func.func @cummax(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>) {
  %r = "smelt.cummax"(%x) {axis = 1 : i64, reverse = false, inclusive = true} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}

// CHECK-LABEL: func.func @cummin(
// CHECK: "smelt.cummin"(%{{.*}}) {axis = 1 : i64, inclusive = true, reverse = false} : (tensor<4x8xf32>) -> tensor<4x8xf32>
func.func @cummin(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>) {
  %r = "smelt.cummin"(%x) {axis = 1 : i64, reverse = false, inclusive = true} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}

// CHECK-LABEL: func.func @logcumsumexp(
// CHECK: "smelt.logcumsumexp"(%{{.*}}) {axis = 1 : i64, inclusive = true, reverse = false} : (tensor<4x8xf32>) -> tensor<4x8xf32>
func.func @logcumsumexp(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>) {
  %r = "smelt.logcumsumexp"(%x) {axis = 1 : i64, reverse = false, inclusive = true} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}

// CHECK-LABEL: func.func @sort(
// CHECK: "smelt.sort"(%{{.*}}) {axis = 1 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
func.func @sort(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>) {
  %r = "smelt.sort"(%x) {axis = 1 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}

// CHECK-LABEL: func.func @argsort(
// CHECK: "smelt.argsort"(%{{.*}}) {axis = 1 : i64} : (tensor<4x8xf32>) -> tensor<4x8xui32>
func.func @argsort(%x: tensor<4x8xf32>) -> (tensor<4x8xui32>) {
  %r = "smelt.argsort"(%x) {axis = 1 : i64} : (tensor<4x8xf32>) -> tensor<4x8xui32>
  return %r : tensor<4x8xui32>
}

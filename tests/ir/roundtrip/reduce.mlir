// RUN: smelt-opt %s | smelt-opt - | filecheck %s

// CHECK-LABEL: func.func @reduce_sum(
// CHECK: "smelt.reduce_sum"(%{{.*}}) {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xf32>
func.func @reduce_sum(%x: tensor<4x8xf32>) -> (tensor<4xf32>) {
  %r = "smelt.reduce_sum"(%x) {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @reduce_prod(
// CHECK: "smelt.reduce_prod"(%{{.*}}) {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xf32>
func.func @reduce_prod(%x: tensor<4x8xf32>) -> (tensor<4xf32>) {
  %r = "smelt.reduce_prod"(%x) {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @reduce_max(
// CHECK: "smelt.reduce_max"(%{{.*}}) {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xf32>
func.func @reduce_max(%x: tensor<4x8xf32>) -> (tensor<4xf32>) {
  %r = "smelt.reduce_max"(%x) {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @reduce_min(
// CHECK: "smelt.reduce_min"(%{{.*}}) {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xf32>
func.func @reduce_min(%x: tensor<4x8xf32>) -> (tensor<4xf32>) {
  %r = "smelt.reduce_min"(%x) {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @reduce_all(
// CHECK: "smelt.reduce_all"(%{{.*}}) {axes = array<i64: 1>} : (tensor<4x8xi1>) -> tensor<4xi1>
func.func @reduce_all(%x: tensor<4x8xi1>) -> (tensor<4xi1>) {
  %r = "smelt.reduce_all"(%x) {axes = array<i64: 1>} : (tensor<4x8xi1>) -> tensor<4xi1>
  return %r : tensor<4xi1>
}

// CHECK-LABEL: func.func @reduce_any(
// CHECK: "smelt.reduce_any"(%{{.*}}) {axes = array<i64: 1>} : (tensor<4x8xi1>) -> tensor<4xi1>
func.func @reduce_any(%x: tensor<4x8xi1>) -> (tensor<4xi1>) {
  %r = "smelt.reduce_any"(%x) {axes = array<i64: 1>} : (tensor<4x8xi1>) -> tensor<4xi1>
  return %r : tensor<4xi1>
}

// CHECK-LABEL: func.func @argmax(
// CHECK: "smelt.argmax"(%{{.*}}) {axis = 1 : i64} : (tensor<4x8xf32>) -> tensor<4xui32>
func.func @argmax(%x: tensor<4x8xf32>) -> (tensor<4xui32>) {
  %r = "smelt.argmax"(%x) {axis = 1 : i64} : (tensor<4x8xf32>) -> tensor<4xui32>
  return %r : tensor<4xui32>
}

// CHECK-LABEL: func.func @argmin(
// CHECK: "smelt.argmin"(%{{.*}}) {axis = 1 : i64} : (tensor<4x8xf32>) -> tensor<4xui32>
func.func @argmin(%x: tensor<4x8xf32>) -> (tensor<4xui32>) {
  %r = "smelt.argmin"(%x) {axis = 1 : i64} : (tensor<4x8xf32>) -> tensor<4xui32>
  return %r : tensor<4xui32>
}

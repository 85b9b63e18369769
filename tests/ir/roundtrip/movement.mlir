// RUN: smelt-opt %s | smelt-opt - | filecheck %s

// CHECK-LABEL: func.func @reshape(
// CHECK: "smelt.reshape"(%{{.*}}) {shape = array<i64: 2, 6>} : (tensor<3x4xf32>) -> tensor<2x6xf32>
func.func @reshape(%x: tensor<3x4xf32>) -> (tensor<2x6xf32>) {
  %r = "smelt.reshape"(%x) {shape = array<i64: 2, 6>} : (tensor<3x4xf32>) -> tensor<2x6xf32>
  return %r : tensor<2x6xf32>
}

// CHECK-LABEL: func.func @transpose(
// CHECK: "smelt.transpose"(%{{.*}}) {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
func.func @transpose(%x: tensor<2x3xf32>) -> (tensor<3x2xf32>) {
  %r = "smelt.transpose"(%x) {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return %r : tensor<3x2xf32>
}

// CHECK-LABEL: func.func @broadcast(
// CHECK: "smelt.broadcast"(%{{.*}}) {shape = array<i64: 2, 3>} : (tensor<3xf32>) -> tensor<2x3xf32>
func.func @broadcast(%x: tensor<3xf32>) -> (tensor<2x3xf32>) {
  %r = "smelt.broadcast"(%x) {shape = array<i64: 2, 3>} : (tensor<3xf32>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// CHECK-LABEL: func.func @slice(
// CHECK: "smelt.slice"(%{{.*}}) {start = array<i64: 1>, stop = array<i64: 7>, stride = array<i64: 2>} : (tensor<8xf32>) -> tensor<3xf32>
func.func @slice(%x: tensor<8xf32>) -> (tensor<3xf32>) {
  %r = "smelt.slice"(%x) {start = array<i64: 1>, stop = array<i64: 7>, stride = array<i64: 2>} : (tensor<8xf32>) -> tensor<3xf32>
  return %r : tensor<3xf32>
}

// CHECK-LABEL: func.func @reverse(
// CHECK: "smelt.reverse"(%{{.*}}) {axes = array<i64: 0>} : (tensor<4xf32>) -> tensor<4xf32>
func.func @reverse(%x: tensor<4xf32>) -> (tensor<4xf32>) {
  %r = "smelt.reverse"(%x) {axes = array<i64: 0>} : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @pad(
// CHECK: "smelt.pad"(%{{.*}}, %{{.*}}) {high = array<i64: 2>, interior = array<i64: 0>, low = array<i64: 1>} : (tensor<4xf32>, tensor<f32>) -> tensor<7xf32>
func.func @pad(%x: tensor<4xf32>, %v: tensor<f32>) -> (tensor<7xf32>) {
  %r = "smelt.pad"(%x, %v) {low = array<i64: 1>, high = array<i64: 2>, interior = array<i64: 0>} : (tensor<4xf32>, tensor<f32>) -> tensor<7xf32>
  return %r : tensor<7xf32>
}

// CHECK-LABEL: func.func @concatenate(
// CHECK: "smelt.concatenate"(%{{.*}}, %{{.*}}) {axis = 0 : i64} : (tensor<2xf32>, tensor<3xf32>) -> tensor<5xf32>
func.func @concatenate(%x: tensor<2xf32>, %y: tensor<3xf32>) -> (tensor<5xf32>) {
  %r = "smelt.concatenate"(%x, %y) {axis = 0 : i64} : (tensor<2xf32>, tensor<3xf32>) -> tensor<5xf32>
  return %r : tensor<5xf32>
}

// CHECK-LABEL: func.func @iota(
// CHECK: "smelt.iota"() {axis = 0 : i64, dtype = i32, shape = array<i64: 4>} : () -> tensor<4xi32>
func.func @iota() -> (tensor<4xi32>) {
  %r = "smelt.iota"() {shape = array<i64: 4>, axis = 0 : i64, dtype = i32} : () -> tensor<4xi32>
  return %r : tensor<4xi32>
}

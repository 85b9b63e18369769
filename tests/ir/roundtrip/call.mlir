// RUN: smelt-opt %s | smelt-opt - | filecheck %s

// CHECK-LABEL: func.func private @f(
func.func private @f(%x: tensor<4xf32>) -> tensor<f32> {
  %r = "smelt.reduce_sum"(%x) {axes = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  return %r : tensor<f32>
}

// CHECK-LABEL: func.func @jvp(
// CHECK: %[[F:.*]] = constant @f : (tensor<4xf32>) -> tensor<f32>
// CHECK: "smelt.jvp"(%[[F]]) {wrt = array<i64: 0>} : ((tensor<4xf32>) -> tensor<f32>) -> ((tensor<4xf32>, tensor<4xf32>) -> (tensor<f32>, tensor<f32>))
func.func @jvp(%x: tensor<4xf32>, %t: tensor<4xf32>) -> (tensor<f32>, tensor<f32>) {
  %f = func.constant @f : (tensor<4xf32>) -> tensor<f32>
  %d = "smelt.jvp"(%f) {wrt = array<i64: 0>} : ((tensor<4xf32>) -> tensor<f32>) -> ((tensor<4xf32>, tensor<4xf32>) -> (tensor<f32>, tensor<f32>))
  %r:2 = func.call_indirect %d(%x, %t) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<f32>, tensor<f32>)
  return %r#0, %r#1 : tensor<f32>, tensor<f32>
}

// CHECK-LABEL: func.func @vjp(
// CHECK: "smelt.vjp"(%{{.*}}) {seeds = array<i64: 0>, wrt = array<i64: 0>} : ((tensor<4xf32>) -> tensor<f32>) -> ((tensor<4xf32>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>))
func.func @vjp(%x: tensor<4xf32>, %ct: tensor<f32>) -> (tensor<f32>, tensor<4xf32>) {
  %f = func.constant @f : (tensor<4xf32>) -> tensor<f32>
  %d = "smelt.vjp"(%f) {wrt = array<i64: 0>, seeds = array<i64: 0>} : ((tensor<4xf32>) -> tensor<f32>) -> ((tensor<4xf32>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>))
  %r:2 = func.call_indirect %d(%x, %ct) : (tensor<4xf32>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>)
  return %r#0, %r#1 : tensor<f32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @linear_transpose(
// CHECK: "smelt.linear_transpose"(%{{.*}}) {wrt = array<i64: 0>} : ((tensor<4xf32>) -> tensor<f32>) -> ((tensor<f32>) -> tensor<4xf32>)
func.func @linear_transpose(%ct: tensor<f32>) -> tensor<4xf32> {
  %f = func.constant @f : (tensor<4xf32>) -> tensor<f32>
  %d = "smelt.linear_transpose"(%f) {wrt = array<i64: 0>} : ((tensor<4xf32>) -> tensor<f32>) -> ((tensor<f32>) -> tensor<4xf32>)
  %r = func.call_indirect %d(%ct) : (tensor<f32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @batch(
// CHECK: "smelt.batch"(%{{.*}}) {in_axes = array<i64: 0>, out_axes = array<i64: 0>, size = 8 : i64} : ((tensor<4xf32>) -> tensor<f32>) -> ((tensor<8x4xf32>) -> tensor<8xf32>)
// CHECK: call_indirect %{{.*}}(%{{.*}}) : (tensor<8x4xf32>) -> tensor<8xf32>
func.func @batch(%x: tensor<8x4xf32>) -> tensor<8xf32> {
  %f = func.constant @f : (tensor<4xf32>) -> tensor<f32>
  %d = "smelt.batch"(%f) {size = 8 : i64, in_axes = array<i64: 0>, out_axes = array<i64: 0>} : ((tensor<4xf32>) -> tensor<f32>) -> ((tensor<8x4xf32>) -> tensor<8xf32>)
  %r = func.call_indirect %d(%x) : (tensor<8x4xf32>) -> tensor<8xf32>
  return %r : tensor<8xf32>
}

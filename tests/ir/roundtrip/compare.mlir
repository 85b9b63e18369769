// RUN: smelt-opt %s | smelt-opt - | filecheck %s

// CHECK-LABEL: func.func @equal(
// CHECK: "smelt.equal"(%{{.*}}, %{{.*}}) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
func.func @equal(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xi1>) {
  %r = "smelt.equal"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  return %r : tensor<4xi1>
}

// CHECK-LABEL: func.func @not_equal(
// CHECK: "smelt.not_equal"(%{{.*}}, %{{.*}}) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
func.func @not_equal(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xi1>) {
  %r = "smelt.not_equal"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  return %r : tensor<4xi1>
}

// CHECK-LABEL: func.func @less(
// CHECK: "smelt.less"(%{{.*}}, %{{.*}}) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
func.func @less(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xi1>) {
  %r = "smelt.less"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  return %r : tensor<4xi1>
}

// CHECK-LABEL: func.func @less_equal(
// CHECK: "smelt.less_equal"(%{{.*}}, %{{.*}}) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
func.func @less_equal(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xi1>) {
  %r = "smelt.less_equal"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  return %r : tensor<4xi1>
}

// CHECK-LABEL: func.func @greater(
// CHECK: "smelt.greater"(%{{.*}}, %{{.*}}) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
func.func @greater(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xi1>) {
  %r = "smelt.greater"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  return %r : tensor<4xi1>
}

// CHECK-LABEL: func.func @greater_equal(
// CHECK: "smelt.greater_equal"(%{{.*}}, %{{.*}}) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
func.func @greater_equal(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xi1>) {
  %r = "smelt.greater_equal"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  return %r : tensor<4xi1>
}

// CHECK-LABEL: func.func @select(
// CHECK: "smelt.select"(%{{.*}}, %{{.*}}, %{{.*}}) : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
func.func @select(%c: tensor<4xi1>, %x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>) {
  %r = "smelt.select"(%c, %x, %y) : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @logical_and(
// CHECK: "smelt.logical_and"(%{{.*}}, %{{.*}}) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
func.func @logical_and(%x: tensor<4xi1>, %y: tensor<4xi1>) -> (tensor<4xi1>) {
  %r = "smelt.logical_and"(%x, %y) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  return %r : tensor<4xi1>
}

// CHECK-LABEL: func.func @logical_or(
// CHECK: "smelt.logical_or"(%{{.*}}, %{{.*}}) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
func.func @logical_or(%x: tensor<4xi1>, %y: tensor<4xi1>) -> (tensor<4xi1>) {
  %r = "smelt.logical_or"(%x, %y) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  return %r : tensor<4xi1>
}

// CHECK-LABEL: func.func @logical_not(
// CHECK: "smelt.logical_not"(%{{.*}}) : (tensor<4xi1>) -> tensor<4xi1>
func.func @logical_not(%x: tensor<4xi1>) -> (tensor<4xi1>) {
  %r = "smelt.logical_not"(%x) : (tensor<4xi1>) -> tensor<4xi1>
  return %r : tensor<4xi1>
}

// CHECK-LABEL: func.func @bitwise_and(
// CHECK: "smelt.bitwise_and"(%{{.*}}, %{{.*}}) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
func.func @bitwise_and(%x: tensor<4xi32>, %y: tensor<4xi32>) -> (tensor<4xi32>) {
  %r = "smelt.bitwise_and"(%x, %y) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  return %r : tensor<4xi32>
}

// CHECK-LABEL: func.func @bitwise_or(
// CHECK: "smelt.bitwise_or"(%{{.*}}, %{{.*}}) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
func.func @bitwise_or(%x: tensor<4xi32>, %y: tensor<4xi32>) -> (tensor<4xi32>) {
  %r = "smelt.bitwise_or"(%x, %y) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  return %r : tensor<4xi32>
}

// CHECK-LABEL: func.func @bitwise_xor(
// CHECK: "smelt.bitwise_xor"(%{{.*}}, %{{.*}}) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
func.func @bitwise_xor(%x: tensor<4xi32>, %y: tensor<4xi32>) -> (tensor<4xi32>) {
  %r = "smelt.bitwise_xor"(%x, %y) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  return %r : tensor<4xi32>
}

// CHECK-LABEL: func.func @bitwise_invert(
// CHECK: "smelt.bitwise_invert"(%{{.*}}) : (tensor<4xi32>) -> tensor<4xi32>
func.func @bitwise_invert(%x: tensor<4xi32>) -> (tensor<4xi32>) {
  %r = "smelt.bitwise_invert"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return %r : tensor<4xi32>
}

// CHECK-LABEL: func.func @left_shift(
// CHECK: "smelt.left_shift"(%{{.*}}, %{{.*}}) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
func.func @left_shift(%x: tensor<4xi32>, %y: tensor<4xi32>) -> (tensor<4xi32>) {
  %r = "smelt.left_shift"(%x, %y) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  return %r : tensor<4xi32>
}

// CHECK-LABEL: func.func @right_shift(
// CHECK: "smelt.right_shift"(%{{.*}}, %{{.*}}) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
func.func @right_shift(%x: tensor<4xi32>, %y: tensor<4xi32>) -> (tensor<4xi32>) {
  %r = "smelt.right_shift"(%x, %y) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  return %r : tensor<4xi32>
}

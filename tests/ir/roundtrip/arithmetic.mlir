// RUN: smelt-opt %s | smelt-opt - | filecheck %s

// CHECK-LABEL: func.func @add(
// CHECK: "smelt.add"(%{{.*}}, %{{.*}}) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
func.func @add(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>) {
  %r = "smelt.add"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @sub(
// CHECK: "smelt.sub"(%{{.*}}, %{{.*}}) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
func.func @sub(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>) {
  %r = "smelt.sub"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @mul(
// CHECK: "smelt.mul"(%{{.*}}, %{{.*}}) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
func.func @mul(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>) {
  %r = "smelt.mul"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @div(
// CHECK: "smelt.div"(%{{.*}}, %{{.*}}) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
func.func @div(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>) {
  %r = "smelt.div"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @floor_divide(
// CHECK: "smelt.floor_divide"(%{{.*}}, %{{.*}}) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
func.func @floor_divide(%x: tensor<4xi32>, %y: tensor<4xi32>) -> (tensor<4xi32>) {
  %r = "smelt.floor_divide"(%x, %y) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  return %r : tensor<4xi32>
}

// CHECK-LABEL: func.func @remainder(
// CHECK: "smelt.remainder"(%{{.*}}, %{{.*}}) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
func.func @remainder(%x: tensor<4xi32>, %y: tensor<4xi32>) -> (tensor<4xi32>) {
  %r = "smelt.remainder"(%x, %y) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  return %r : tensor<4xi32>
}

// CHECK-LABEL: func.func @neg(
// CHECK: "smelt.neg"(%{{.*}}) : (tensor<4xf32>) -> tensor<4xf32>
func.func @neg(%x: tensor<4xf32>) -> (tensor<4xf32>) {
  %r = "smelt.neg"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @abs(
// CHECK: "smelt.abs"(%{{.*}}) : (tensor<4xf32>) -> tensor<4xf32>
func.func @abs(%x: tensor<4xf32>) -> (tensor<4xf32>) {
  %r = "smelt.abs"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @sign(
// CHECK: "smelt.sign"(%{{.*}}) : (tensor<4xf32>) -> tensor<4xf32>
func.func @sign(%x: tensor<4xf32>) -> (tensor<4xf32>) {
  %r = "smelt.sign"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @maximum(
// CHECK: "smelt.maximum"(%{{.*}}, %{{.*}}) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
func.func @maximum(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>) {
  %r = "smelt.maximum"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @minimum(
// CHECK: "smelt.minimum"(%{{.*}}, %{{.*}}) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
func.func @minimum(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>) {
  %r = "smelt.minimum"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @clamp(
// CHECK: "smelt.clamp"(%{{.*}}, %{{.*}}, %{{.*}}) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
func.func @clamp(%low: tensor<4xf32>, %x: tensor<4xf32>, %high: tensor<4xf32>) -> (tensor<4xf32>) {
  %r = "smelt.clamp"(%low, %x, %high) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @sqrt(
// CHECK: "smelt.sqrt"(%{{.*}}) : (tensor<4xf32>) -> tensor<4xf32>
func.func @sqrt(%x: tensor<4xf32>) -> (tensor<4xf32>) {
  %r = "smelt.sqrt"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @rsqrt(
// CHECK: "smelt.rsqrt"(%{{.*}}) : (tensor<4xf32>) -> tensor<4xf32>
func.func @rsqrt(%x: tensor<4xf32>) -> (tensor<4xf32>) {
  %r = "smelt.rsqrt"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @integer_power(
// CHECK: "smelt.integer_power"(%{{.*}}) {exponent = 3 : i64} : (tensor<4xf32>) -> tensor<4xf32>
func.func @integer_power(%x: tensor<4xf32>) -> (tensor<4xf32>) {
  %r = "smelt.integer_power"(%x) {exponent = 3 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

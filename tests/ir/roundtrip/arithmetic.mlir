// RUN: smelt-opt %s | smelt-opt - | filecheck %s

// CHECK-LABEL: func.func @constant(
// CHECK: "smelt.constant"() {dtype = f32, value = 5.000000e-01 : f64} : () -> tensor<f32>
func.func @constant() -> (tensor<f32>) {
  %r = "smelt.constant"() {value = 5.000000e-01 : f64, dtype = f32} : () -> tensor<f32>
  return %r : tensor<f32>
}

// CHECK-LABEL: func.func @literal(
// CHECK: "smelt.literal"() {value = dense<[1, 2]> : tensor<2xi32>} : () -> tensor<2xi32>
func.func @literal() -> (tensor<2xi32>) {
  %r = "smelt.literal"() {value = dense<[1, 2]> : tensor<2xi32>} : () -> tensor<2xi32>
  return %r : tensor<2xi32>
}

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

// CHECK-LABEL: func.func @round(
// CHECK: "smelt.round"(%{{.*}}) : (tensor<4xf32>) -> tensor<4xf32>
func.func @round(%x: tensor<4xf32>) -> (tensor<4xf32>) {
  %r = "smelt.round"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @floor(
// CHECK: "smelt.floor"(%{{.*}}) : (tensor<4xf32>) -> tensor<4xf32>
func.func @floor(%x: tensor<4xf32>) -> (tensor<4xf32>) {
  %r = "smelt.floor"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @ceil(
// CHECK: "smelt.ceil"(%{{.*}}) : (tensor<4xf32>) -> tensor<4xf32>
func.func @ceil(%x: tensor<4xf32>) -> (tensor<4xf32>) {
  %r = "smelt.ceil"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @trunc(
// CHECK: "smelt.trunc"(%{{.*}}) : (tensor<4xf32>) -> tensor<4xf32>
func.func @trunc(%x: tensor<4xf32>) -> (tensor<4xf32>) {
  %r = "smelt.trunc"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @select(
// CHECK: "smelt.select"(%{{.*}}, %{{.*}}, %{{.*}}) : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
func.func @select(%c: tensor<4xi1>, %x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>) {
  %r = "smelt.select"(%c, %x, %y) : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @convert(
// CHECK: "smelt.convert"(%{{.*}}) {dtype = bf16} : (tensor<4xf32>) -> tensor<4xbf16>
func.func @convert(%x: tensor<4xf32>) -> (tensor<4xbf16>) {
  %r = "smelt.convert"(%x) {dtype = bf16} : (tensor<4xf32>) -> tensor<4xbf16>
  return %r : tensor<4xbf16>
}

// CHECK-LABEL: func.func @bitcast(
// CHECK: "smelt.bitcast"(%{{.*}}) {dtype = i32} : (tensor<4xf32>) -> tensor<4xi32>
func.func @bitcast(%x: tensor<4xf32>) -> (tensor<4xi32>) {
  %r = "smelt.bitcast"(%x) {dtype = i32} : (tensor<4xf32>) -> tensor<4xi32>
  return %r : tensor<4xi32>
}

// CHECK-LABEL: func.func @real(
// CHECK: "smelt.real"(%{{.*}}) : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
func.func @real(%x: tensor<4xcomplex<f32>>) -> (tensor<4xf32>) {
  %r = "smelt.real"(%x) : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @imag(
// CHECK: "smelt.imag"(%{{.*}}) : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
func.func @imag(%x: tensor<4xcomplex<f32>>) -> (tensor<4xf32>) {
  %r = "smelt.imag"(%x) : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @complex(
// CHECK: "smelt.complex"(%{{.*}}, %{{.*}}) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xcomplex<f32>>
func.func @complex(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xcomplex<f32>>) {
  %r = "smelt.complex"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xcomplex<f32>>
  return %r : tensor<4xcomplex<f32>>
}

// CHECK-LABEL: func.func @stop_gradient(
// CHECK: "smelt.stop_gradient"(%{{.*}}) : (tensor<4xf32>) -> tensor<4xf32>
func.func @stop_gradient(%x: tensor<4xf32>) -> (tensor<4xf32>) {
  %r = "smelt.stop_gradient"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// RUN: smelt-opt %s | smelt-opt - | filecheck %s

// CHECK-LABEL: func.func @sin(
// CHECK: "smelt.sin"(%{{.*}}) : (tensor<4xf32>) -> tensor<4xf32>
func.func @sin(%x: tensor<4xf32>) -> (tensor<4xf32>) {
  %r = "smelt.sin"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @cos(
// CHECK: "smelt.cos"(%{{.*}}) : (tensor<4xf32>) -> tensor<4xf32>
func.func @cos(%x: tensor<4xf32>) -> (tensor<4xf32>) {
  %r = "smelt.cos"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @tan(
// CHECK: "smelt.tan"(%{{.*}}) : (tensor<4xf32>) -> tensor<4xf32>
func.func @tan(%x: tensor<4xf32>) -> (tensor<4xf32>) {
  %r = "smelt.tan"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @arcsin(
// CHECK: "smelt.arcsin"(%{{.*}}) : (tensor<4xf32>) -> tensor<4xf32>
func.func @arcsin(%x: tensor<4xf32>) -> (tensor<4xf32>) {
  %r = "smelt.arcsin"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @arccos(
// CHECK: "smelt.arccos"(%{{.*}}) : (tensor<4xf32>) -> tensor<4xf32>
func.func @arccos(%x: tensor<4xf32>) -> (tensor<4xf32>) {
  %r = "smelt.arccos"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @arctan(
// CHECK: "smelt.arctan"(%{{.*}}) : (tensor<4xf32>) -> tensor<4xf32>
func.func @arctan(%x: tensor<4xf32>) -> (tensor<4xf32>) {
  %r = "smelt.arctan"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @sinh(
// CHECK: "smelt.sinh"(%{{.*}}) : (tensor<4xf32>) -> tensor<4xf32>
func.func @sinh(%x: tensor<4xf32>) -> (tensor<4xf32>) {
  %r = "smelt.sinh"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @cosh(
// CHECK: "smelt.cosh"(%{{.*}}) : (tensor<4xf32>) -> tensor<4xf32>
func.func @cosh(%x: tensor<4xf32>) -> (tensor<4xf32>) {
  %r = "smelt.cosh"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @tanh(
// CHECK: "smelt.tanh"(%{{.*}}) : (tensor<4xf32>) -> tensor<4xf32>
func.func @tanh(%x: tensor<4xf32>) -> (tensor<4xf32>) {
  %r = "smelt.tanh"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @arcsinh(
// CHECK: "smelt.arcsinh"(%{{.*}}) : (tensor<4xf32>) -> tensor<4xf32>
func.func @arcsinh(%x: tensor<4xf32>) -> (tensor<4xf32>) {
  %r = "smelt.arcsinh"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @arccosh(
// CHECK: "smelt.arccosh"(%{{.*}}) : (tensor<4xf32>) -> tensor<4xf32>
func.func @arccosh(%x: tensor<4xf32>) -> (tensor<4xf32>) {
  %r = "smelt.arccosh"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @arctanh(
// CHECK: "smelt.arctanh"(%{{.*}}) : (tensor<4xf32>) -> tensor<4xf32>
func.func @arctanh(%x: tensor<4xf32>) -> (tensor<4xf32>) {
  %r = "smelt.arctanh"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @erf(
// CHECK: "smelt.erf"(%{{.*}}) : (tensor<4xf32>) -> tensor<4xf32>
func.func @erf(%x: tensor<4xf32>) -> (tensor<4xf32>) {
  %r = "smelt.erf"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @erfc(
// CHECK: "smelt.erfc"(%{{.*}}) : (tensor<4xf32>) -> tensor<4xf32>
func.func @erfc(%x: tensor<4xf32>) -> (tensor<4xf32>) {
  %r = "smelt.erfc"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @erfinv(
// CHECK: "smelt.erfinv"(%{{.*}}) : (tensor<4xf32>) -> tensor<4xf32>
func.func @erfinv(%x: tensor<4xf32>) -> (tensor<4xf32>) {
  %r = "smelt.erfinv"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @sigmoid(
// CHECK: "smelt.sigmoid"(%{{.*}}) : (tensor<4xf32>) -> tensor<4xf32>
func.func @sigmoid(%x: tensor<4xf32>) -> (tensor<4xf32>) {
  %r = "smelt.sigmoid"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// RUN: smelt-opt %s | smelt-opt - | filecheck %s

// CHECK-LABEL: func.func @exp(
// CHECK: "smelt.exp"(%{{.*}}) : (tensor<4xf32>) -> tensor<4xf32>
func.func @exp(%x: tensor<4xf32>) -> (tensor<4xf32>) {
  %r = "smelt.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @expm1(
// CHECK: "smelt.expm1"(%{{.*}}) : (tensor<4xf32>) -> tensor<4xf32>
func.func @expm1(%x: tensor<4xf32>) -> (tensor<4xf32>) {
  %r = "smelt.expm1"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @log(
// CHECK: "smelt.log"(%{{.*}}) : (tensor<4xf32>) -> tensor<4xf32>
func.func @log(%x: tensor<4xf32>) -> (tensor<4xf32>) {
  %r = "smelt.log"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @log2(
// CHECK: "smelt.log2"(%{{.*}}) : (tensor<4xf32>) -> tensor<4xf32>
func.func @log2(%x: tensor<4xf32>) -> (tensor<4xf32>) {
  %r = "smelt.log2"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @log10(
// CHECK: "smelt.log10"(%{{.*}}) : (tensor<4xf32>) -> tensor<4xf32>
func.func @log10(%x: tensor<4xf32>) -> (tensor<4xf32>) {
  %r = "smelt.log10"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @log1p(
// CHECK: "smelt.log1p"(%{{.*}}) : (tensor<4xf32>) -> tensor<4xf32>
func.func @log1p(%x: tensor<4xf32>) -> (tensor<4xf32>) {
  %r = "smelt.log1p"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

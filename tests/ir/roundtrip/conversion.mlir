// RUN: smelt-opt %s | smelt-opt - | filecheck %s

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

// CHECK-LABEL: func.func @byte_view(
// CHECK: "smelt.byte_view"(%{{.*}}) {dtype = i1} : (tensor<4xui8>) -> tensor<4xi1>
func.func @byte_view(%x: tensor<4xui8>) -> (tensor<4xi1>) {
  %r = "smelt.byte_view"(%x) {dtype = i1} : (tensor<4xui8>) -> tensor<4xi1>
  return %r : tensor<4xi1>
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

// Conversions, bit patterns and complex numbers.
// RUN: smelt-opt %s --canonicalize | filecheck %s

// CHECK-LABEL: func.func @convert_to_same(
// CHECK-NEXT: return %arg0 : tensor<4xf32>
func.func @convert_to_same(%arg0: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "smelt.convert"(%arg0) {dtype = f32} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// CHECK-LABEL: func.func @convert_of_widening(
// CHECK-NEXT: %[[V0:.*]] = "smelt.convert"(%arg1) {dtype = f32} : (tensor<4xui8>) -> tensor<4xf32>
// CHECK-NEXT: return %arg0, %[[V0]] : tensor<4xbf16>, tensor<4xf32>
func.func @convert_of_widening(%arg0: tensor<4xbf16>, %arg1: tensor<4xui8>) -> (tensor<4xbf16>, tensor<4xf32>) {
  %0 = "smelt.convert"(%arg0) {dtype = f32} : (tensor<4xbf16>) -> tensor<4xf32>
  %1 = "smelt.convert"(%0) {dtype = bf16} : (tensor<4xf32>) -> tensor<4xbf16>
  %2 = "smelt.convert"(%arg1) {dtype = i32} : (tensor<4xui8>) -> tensor<4xi32>
  %3 = "smelt.convert"(%2) {dtype = f32} : (tensor<4xi32>) -> tensor<4xf32>
  return %1, %3 : tensor<4xbf16>, tensor<4xf32>
}

// the inner conversion rounds
// CHECK-LABEL: func.func @convert_of_narrowing_stays(
// CHECK-NEXT: %[[V0:.*]] = "smelt.convert"(%arg0) {dtype = bf16} : (tensor<4xf32>) -> tensor<4xbf16>
// CHECK-NEXT: %[[V1:.*]] = "smelt.convert"(%[[V0]]) {dtype = f32} : (tensor<4xbf16>) -> tensor<4xf32>
// CHECK-NEXT: return %[[V1]] : tensor<4xf32>
func.func @convert_of_narrowing_stays(%arg0: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "smelt.convert"(%arg0) {dtype = bf16} : (tensor<4xf32>) -> tensor<4xbf16>
  %1 = "smelt.convert"(%0) {dtype = f32} : (tensor<4xbf16>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// a float saturates, an integer would wrap
// CHECK-LABEL: func.func @convert_saturates_stays(
// CHECK-NEXT: %[[V0:.*]] = "smelt.convert"(%arg0) {dtype = f32} : (tensor<4xi16>) -> tensor<4xf32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.convert"(%[[V0]]) {dtype = i8} : (tensor<4xf32>) -> tensor<4xi8>
// CHECK-NEXT: return %[[V1]] : tensor<4xi8>
func.func @convert_saturates_stays(%arg0: tensor<4xi16>) -> tensor<4xi8> {
  %0 = "smelt.convert"(%arg0) {dtype = f32} : (tensor<4xi16>) -> tensor<4xf32>
  %1 = "smelt.convert"(%0) {dtype = i8} : (tensor<4xf32>) -> tensor<4xi8>
  return %1 : tensor<4xi8>
}

// CHECK-LABEL: func.func @bitcast_of_bitcast(
// CHECK-NEXT: %[[V0:.*]] = "smelt.bitcast"(%arg0) {dtype = i32} : (tensor<4xf32>) -> tensor<4xi32>
// CHECK-NEXT: return %[[V0]], %arg0 : tensor<4xi32>, tensor<4xf32>
func.func @bitcast_of_bitcast(%arg0: tensor<4xf32>) -> (tensor<4xi32>, tensor<4xf32>) {
  %0 = "smelt.bitcast"(%arg0) {dtype = ui32} : (tensor<4xf32>) -> tensor<4xui32>
  %1 = "smelt.bitcast"(%0) {dtype = i32} : (tensor<4xui32>) -> tensor<4xi32>
  %2 = "smelt.bitcast"(%arg0) {dtype = ui32} : (tensor<4xf32>) -> tensor<4xui32>
  %3 = "smelt.bitcast"(%2) {dtype = f32} : (tensor<4xui32>) -> tensor<4xf32>
  return %1, %3 : tensor<4xi32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @part_of_complex(
// CHECK-NEXT: return %arg0, %arg1 : tensor<4xf32>, tensor<4xf32>
func.func @part_of_complex(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = "smelt.complex"(%arg0, %arg1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xcomplex<f32>>
  %1 = "smelt.real"(%0) : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
  %2 = "smelt.complex"(%arg0, %arg1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xcomplex<f32>>
  %3 = "smelt.imag"(%2) : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
  return %1, %3 : tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @complex_of_parts(
// CHECK-NEXT: return %arg0 : tensor<4xcomplex<f32>>
func.func @complex_of_parts(%arg0: tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>> {
  %0 = "smelt.real"(%arg0) : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
  %1 = "smelt.imag"(%arg0) : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
  %2 = "smelt.complex"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xcomplex<f32>>
  return %2 : tensor<4xcomplex<f32>>
}

// CHECK-LABEL: func.func @stop_gradient_at_the_end(
// CHECK-NEXT: return %arg0 : tensor<4xf32>
func.func @stop_gradient_at_the_end(%arg0: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "smelt.stop_gradient"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

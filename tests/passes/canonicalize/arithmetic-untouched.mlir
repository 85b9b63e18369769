// What looks simpler but is not the same for NaN, infinities or signed zeros.
// RUN: smelt-opt %s --canonicalize | filecheck %s

// -0 + 0 is 0
// CHECK-LABEL: func.func @add_zero(
// CHECK-NEXT: %[[V0:.*]] = "smelt.constant"() {dtype = f32, value = 0.000000e+00 : f64} : () -> tensor<f32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.broadcast"(%[[V0]]) {shape = array<i64: 4>} : (tensor<f32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V2:.*]] = "smelt.add"(%arg0, %[[V1]]) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: return %[[V2]] : tensor<4xf32>
func.func @add_zero(%arg0: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "smelt.constant"() {dtype = f32, value = 0.000000e+00 : f64} : () -> tensor<f32>
  %1 = "smelt.broadcast"(%0) {shape = array<i64: 4>} : (tensor<f32>) -> tensor<4xf32>
  %2 = "smelt.add"(%arg0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// 0 - 0 is 0, not -0
// CHECK-LABEL: func.func @zero_sub(
// CHECK-NEXT: %[[V0:.*]] = "smelt.constant"() {dtype = f32, value = 0.000000e+00 : f64} : () -> tensor<f32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.broadcast"(%[[V0]]) {shape = array<i64: 4>} : (tensor<f32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V2:.*]] = "smelt.sub"(%[[V1]], %arg0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: return %[[V2]] : tensor<4xf32>
func.func @zero_sub(%arg0: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "smelt.constant"() {dtype = f32, value = 0.000000e+00 : f64} : () -> tensor<f32>
  %1 = "smelt.broadcast"(%0) {shape = array<i64: 4>} : (tensor<f32>) -> tensor<4xf32>
  %2 = "smelt.sub"(%1, %arg0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// ∞ - ∞ is NaN
// CHECK-LABEL: func.func @sub_of_itself(
// CHECK-NEXT: %[[V0:.*]] = "smelt.sub"(%arg0, %arg0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: return %[[V0]] : tensor<4xf32>
func.func @sub_of_itself(%arg0: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "smelt.sub"(%arg0, %arg0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// ∞ · 0 is NaN
// CHECK-LABEL: func.func @mul_zero(
// CHECK-NEXT: %[[V0:.*]] = "smelt.constant"() {dtype = f32, value = 0.000000e+00 : f64} : () -> tensor<f32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.broadcast"(%[[V0]]) {shape = array<i64: 4>} : (tensor<f32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V2:.*]] = "smelt.mul"(%arg0, %[[V1]]) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: return %[[V2]] : tensor<4xf32>
func.func @mul_zero(%arg0: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "smelt.constant"() {dtype = f32, value = 0.000000e+00 : f64} : () -> tensor<f32>
  %1 = "smelt.broadcast"(%0) {shape = array<i64: 4>} : (tensor<f32>) -> tensor<4xf32>
  %2 = "smelt.mul"(%arg0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// 1/3 is rounded
// CHECK-LABEL: func.func @div_by_three(
// CHECK-NEXT: %[[V0:.*]] = "smelt.constant"() {dtype = f32, value = 3.000000e+00 : f64} : () -> tensor<f32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.broadcast"(%[[V0]]) {shape = array<i64: 4>} : (tensor<f32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V2:.*]] = "smelt.div"(%arg0, %[[V1]]) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: return %[[V2]] : tensor<4xf32>
func.func @div_by_three(%arg0: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "smelt.constant"() {dtype = f32, value = 3.000000e+00 : f64} : () -> tensor<f32>
  %1 = "smelt.broadcast"(%0) {shape = array<i64: 4>} : (tensor<f32>) -> tensor<4xf32>
  %2 = "smelt.div"(%arg0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// the reciprocal overflows
// CHECK-LABEL: func.func @div_by_tiny(
// CHECK-NEXT: %[[V0:.*]] = "smelt.constant"() {dtype = f32, value = 7.1746481373430634E-43 : f64} : () -> tensor<f32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.broadcast"(%[[V0]]) {shape = array<i64: 4>} : (tensor<f32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V2:.*]] = "smelt.div"(%arg0, %[[V1]]) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: return %[[V2]] : tensor<4xf32>
func.func @div_by_tiny(%arg0: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "smelt.constant"() {dtype = f32, value = 7.1746481373430634E-43 : f64} : () -> tensor<f32>
  %1 = "smelt.broadcast"(%0) {shape = array<i64: 4>} : (tensor<f32>) -> tensor<4xf32>
  %2 = "smelt.div"(%arg0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// -(0 - 0) is -0
// CHECK-LABEL: func.func @neg_of_sub(
// CHECK-NEXT: %[[V0:.*]] = "smelt.sub"(%arg0, %arg1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.neg"(%[[V0]]) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: return %[[V1]] : tensor<4xf32>
func.func @neg_of_sub(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "smelt.sub"(%arg0, %arg1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = "smelt.neg"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// (-∞)^0.5 is ∞
// CHECK-LABEL: func.func @square_root_as_power(
// CHECK-NEXT: %[[V0:.*]] = "smelt.constant"() {dtype = f32, value = 5.000000e-01 : f64} : () -> tensor<f32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.broadcast"(%[[V0]]) {shape = array<i64: 4>} : (tensor<f32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V2:.*]] = "smelt.power"(%arg0, %[[V1]]) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: return %[[V2]] : tensor<4xf32>
func.func @square_root_as_power(%arg0: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "smelt.constant"() {dtype = f32, value = 5.000000e-01 : f64} : () -> tensor<f32>
  %1 = "smelt.broadcast"(%0) {shape = array<i64: 4>} : (tensor<f32>) -> tensor<4xf32>
  %2 = "smelt.power"(%arg0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// two roundings
// CHECK-LABEL: func.func @reassociate_floats(
// CHECK-NEXT: %[[V0:.*]] = "smelt.constant"() {dtype = f32, value = 3.000000e+00 : f64} : () -> tensor<f32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.broadcast"(%[[V0]]) {shape = array<i64: 4>} : (tensor<f32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V2:.*]] = "smelt.add"(%arg0, %[[V1]]) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V3:.*]] = "smelt.constant"() {dtype = f32, value = 4.000000e+00 : f64} : () -> tensor<f32>
// CHECK-NEXT: %[[V4:.*]] = "smelt.broadcast"(%[[V3]]) {shape = array<i64: 4>} : (tensor<f32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V5:.*]] = "smelt.add"(%[[V2]], %[[V4]]) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: return %[[V5]] : tensor<4xf32>
func.func @reassociate_floats(%arg0: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "smelt.constant"() {dtype = f32, value = 3.000000e+00 : f64} : () -> tensor<f32>
  %1 = "smelt.broadcast"(%0) {shape = array<i64: 4>} : (tensor<f32>) -> tensor<4xf32>
  %2 = "smelt.add"(%arg0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %3 = "smelt.constant"() {dtype = f32, value = 4.000000e+00 : f64} : () -> tensor<f32>
  %4 = "smelt.broadcast"(%3) {shape = array<i64: 4>} : (tensor<f32>) -> tensor<4xf32>
  %5 = "smelt.add"(%2, %4) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %5 : tensor<4xf32>
}

// (∞ + i) · 1 has a NaN in it
// CHECK-LABEL: func.func @mul_one_complex(
// CHECK-NEXT: %[[V0:.*]] = "smelt.constant"() {dtype = complex<f32>, value = 1 : i64} : () -> tensor<complex<f32>>
// CHECK-NEXT: %[[V1:.*]] = "smelt.broadcast"(%[[V0]]) {shape = array<i64: 4>} : (tensor<complex<f32>>) -> tensor<4xcomplex<f32>>
// CHECK-NEXT: %[[V2:.*]] = "smelt.mul"(%arg0, %[[V1]]) : (tensor<4xcomplex<f32>>, tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>
// CHECK-NEXT: return %[[V2]] : tensor<4xcomplex<f32>>
func.func @mul_one_complex(%arg0: tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>> {
  %0 = "smelt.constant"() {dtype = complex<f32>, value = 1 : i64} : () -> tensor<complex<f32>>
  %1 = "smelt.broadcast"(%0) {shape = array<i64: 4>} : (tensor<complex<f32>>) -> tensor<4xcomplex<f32>>
  %2 = "smelt.mul"(%arg0, %1) : (tensor<4xcomplex<f32>>, tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>
  return %2 : tensor<4xcomplex<f32>>
}

// CHECK-LABEL: func.func @mul_minus_zero(
// CHECK-NEXT: %[[V0:.*]] = "smelt.constant"() {dtype = f32, value = -0.000000e+00 : f64} : () -> tensor<f32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.broadcast"(%[[V0]]) {shape = array<i64: 4>} : (tensor<f32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V2:.*]] = "smelt.mul"(%arg0, %[[V1]]) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: return %[[V2]] : tensor<4xf32>
func.func @mul_minus_zero(%arg0: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "smelt.constant"() {dtype = f32, value = -0.000000e+00 : f64} : () -> tensor<f32>
  %1 = "smelt.broadcast"(%0) {shape = array<i64: 4>} : (tensor<f32>) -> tensor<4xf32>
  %2 = "smelt.mul"(%arg0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

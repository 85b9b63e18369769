// Identities of arithmetic.
// RUN: smelt-opt %s --canonicalize | filecheck %s

// x + 0 of integers
// CHECK-LABEL: func.func @add_zero_int(
// CHECK-NEXT: return %arg0 : tensor<4xi32>
func.func @add_zero_int(%arg0: tensor<4xi32>) -> tensor<4xi32> {
  %0 = "smelt.constant"() {dtype = i32, value = 0 : i64} : () -> tensor<i32>
  %1 = "smelt.broadcast"(%0) {shape = array<i64: 4>} : (tensor<i32>) -> tensor<4xi32>
  %2 = "smelt.add"(%arg0, %1) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  return %2 : tensor<4xi32>
}

// x + (-0) of floats
// CHECK-LABEL: func.func @add_negative_zero(
// CHECK-NEXT: return %arg0 : tensor<4xf32>
func.func @add_negative_zero(%arg0: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "smelt.constant"() {dtype = f32, value = -0.000000e+00 : f64} : () -> tensor<f32>
  %1 = "smelt.broadcast"(%0) {shape = array<i64: 4>} : (tensor<f32>) -> tensor<4xf32>
  %2 = "smelt.add"(%arg0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// x + (-y), and (-x) + y
// CHECK-LABEL: func.func @add_of_neg(
// CHECK-NEXT: %[[V0:.*]] = "smelt.sub"(%arg0, %arg1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.sub"(%arg1, %arg0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: return %[[V0]], %[[V1]] : tensor<4xf32>, tensor<4xf32>
func.func @add_of_neg(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = "smelt.neg"(%arg1) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "smelt.add"(%arg0, %0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = "smelt.neg"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
  %3 = "smelt.add"(%2, %arg1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %1, %3 : tensor<4xf32>, tensor<4xf32>
}

// x - 0
// CHECK-LABEL: func.func @sub_zero(
// CHECK-NEXT: return %arg0 : tensor<4xf32>
func.func @sub_zero(%arg0: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "smelt.constant"() {dtype = f32, value = 0.000000e+00 : f64} : () -> tensor<f32>
  %1 = "smelt.broadcast"(%0) {shape = array<i64: 4>} : (tensor<f32>) -> tensor<4xf32>
  %2 = "smelt.sub"(%arg0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// (-0) - x
// CHECK-LABEL: func.func @negative_zero_sub(
// CHECK-NEXT: %[[V0:.*]] = "smelt.neg"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: return %[[V0]] : tensor<4xf32>
func.func @negative_zero_sub(%arg0: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "smelt.constant"() {dtype = f32, value = -0.000000e+00 : f64} : () -> tensor<f32>
  %1 = "smelt.broadcast"(%0) {shape = array<i64: 4>} : (tensor<f32>) -> tensor<4xf32>
  %2 = "smelt.sub"(%1, %arg0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// 0 - x of integers
// CHECK-LABEL: func.func @zero_sub_int(
// CHECK-NEXT: %[[V0:.*]] = "smelt.neg"(%arg0) : (tensor<4xi32>) -> tensor<4xi32>
// CHECK-NEXT: return %[[V0]] : tensor<4xi32>
func.func @zero_sub_int(%arg0: tensor<4xi32>) -> tensor<4xi32> {
  %0 = "smelt.constant"() {dtype = i32, value = 0 : i64} : () -> tensor<i32>
  %1 = "smelt.broadcast"(%0) {shape = array<i64: 4>} : (tensor<i32>) -> tensor<4xi32>
  %2 = "smelt.sub"(%1, %arg0) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  return %2 : tensor<4xi32>
}

// x - (-y)
// CHECK-LABEL: func.func @sub_of_neg(
// CHECK-NEXT: %[[V0:.*]] = "smelt.add"(%arg0, %arg1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: return %[[V0]] : tensor<4xf32>
func.func @sub_of_neg(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "smelt.neg"(%arg1) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "smelt.sub"(%arg0, %0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// x - x of integers
// CHECK-LABEL: func.func @sub_of_itself_int(
// CHECK-NEXT: %[[V0:.*]] = "smelt.constant"() {dtype = i32, value = 0 : i64} : () -> tensor<i32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.broadcast"(%[[V0]]) {shape = array<i64: 4>} : (tensor<i32>) -> tensor<4xi32>
// CHECK-NEXT: return %[[V1]] : tensor<4xi32>
func.func @sub_of_itself_int(%arg0: tensor<4xi32>) -> tensor<4xi32> {
  %0 = "smelt.sub"(%arg0, %arg0) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  return %0 : tensor<4xi32>
}

// 1 · x: the seed of a gradient vanishes
// CHECK-LABEL: func.func @mul_one(
// CHECK-NEXT: return %arg0 : tensor<4xf32>
func.func @mul_one(%arg0: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "smelt.constant"() {dtype = f32, value = 1 : i64} : () -> tensor<f32>
  %1 = "smelt.broadcast"(%0) {shape = array<i64: 4>} : (tensor<f32>) -> tensor<4xf32>
  %2 = "smelt.mul"(%1, %arg0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// x · (-1)
// CHECK-LABEL: func.func @mul_minus_one(
// CHECK-NEXT: %[[V0:.*]] = "smelt.neg"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: return %[[V0]] : tensor<4xf32>
func.func @mul_minus_one(%arg0: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "smelt.constant"() {dtype = f32, value = -1 : i64} : () -> tensor<f32>
  %1 = "smelt.broadcast"(%0) {shape = array<i64: 4>} : (tensor<f32>) -> tensor<4xf32>
  %2 = "smelt.mul"(%arg0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// x · 0 of integers
// CHECK-LABEL: func.func @mul_zero_int(
// CHECK-NEXT: %[[V0:.*]] = "smelt.constant"() {dtype = i32, value = 0 : i64} : () -> tensor<i32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.broadcast"(%[[V0]]) {shape = array<i64: 4>} : (tensor<i32>) -> tensor<4xi32>
// CHECK-NEXT: return %[[V1]] : tensor<4xi32>
func.func @mul_zero_int(%arg0: tensor<4xi32>) -> tensor<4xi32> {
  %0 = "smelt.constant"() {dtype = i32, value = 0 : i64} : () -> tensor<i32>
  %1 = "smelt.broadcast"(%0) {shape = array<i64: 4>} : (tensor<i32>) -> tensor<4xi32>
  %2 = "smelt.mul"(%arg0, %1) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  return %2 : tensor<4xi32>
}

// (-x) · (-y), and (-x) · c
// CHECK-LABEL: func.func @mul_of_negs(
// CHECK-NEXT: %[[V0:.*]] = "smelt.mul"(%arg0, %arg1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.constant"() {dtype = f32, value = -3.000000e+00 : f64} : () -> tensor<f32>
// CHECK-NEXT: %[[V2:.*]] = "smelt.broadcast"(%[[V1]]) {shape = array<i64: 4>} : (tensor<f32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V3:.*]] = "smelt.mul"(%arg0, %[[V2]]) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: return %[[V0]], %[[V3]] : tensor<4xf32>, tensor<4xf32>
func.func @mul_of_negs(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = "smelt.neg"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "smelt.neg"(%arg1) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = "smelt.mul"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %3 = "smelt.neg"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
  %4 = "smelt.constant"() {dtype = f32, value = 3.000000e+00 : f64} : () -> tensor<f32>
  %5 = "smelt.broadcast"(%4) {shape = array<i64: 4>} : (tensor<f32>) -> tensor<4xf32>
  %6 = "smelt.mul"(%3, %5) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2, %6 : tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @div_one(
// CHECK-NEXT: return %arg0 : tensor<4xf32>
func.func @div_one(%arg0: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "smelt.constant"() {dtype = f32, value = 1 : i64} : () -> tensor<f32>
  %1 = "smelt.broadcast"(%0) {shape = array<i64: 4>} : (tensor<f32>) -> tensor<4xf32>
  %2 = "smelt.div"(%arg0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// x / 8 → x · 0.125
// CHECK-LABEL: func.func @div_by_power_of_two(
// CHECK-NEXT: %[[V0:.*]] = "smelt.constant"() {dtype = f32, value = 1.250000e-01 : f64} : () -> tensor<f32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.broadcast"(%[[V0]]) {shape = array<i64: 4>} : (tensor<f32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V2:.*]] = "smelt.mul"(%arg0, %[[V1]]) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: return %[[V2]] : tensor<4xf32>
func.func @div_by_power_of_two(%arg0: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "smelt.constant"() {dtype = f32, value = 8 : i64} : () -> tensor<f32>
  %1 = "smelt.broadcast"(%0) {shape = array<i64: 4>} : (tensor<f32>) -> tensor<4xf32>
  %2 = "smelt.div"(%arg0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// CHECK-LABEL: func.func @neg_of_neg(
// CHECK-NEXT: return %arg0 : tensor<4xf32>
func.func @neg_of_neg(%arg0: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "smelt.neg"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "smelt.neg"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// CHECK-LABEL: func.func @neg_of_scaled(
// CHECK-NEXT: %[[V0:.*]] = "smelt.constant"() {dtype = f32, value = -3.000000e+00 : f64} : () -> tensor<f32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.broadcast"(%[[V0]]) {shape = array<i64: 4>} : (tensor<f32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V2:.*]] = "smelt.mul"(%arg0, %[[V1]]) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V3:.*]] = "smelt.constant"() {dtype = f32, value = -3.000000e+00 : f64} : () -> tensor<f32>
// CHECK-NEXT: %[[V4:.*]] = "smelt.broadcast"(%[[V3]]) {shape = array<i64: 4>} : (tensor<f32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V5:.*]] = "smelt.div"(%arg0, %[[V4]]) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: return %[[V2]], %[[V5]] : tensor<4xf32>, tensor<4xf32>
func.func @neg_of_scaled(%arg0: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = "smelt.constant"() {dtype = f32, value = 3.000000e+00 : f64} : () -> tensor<f32>
  %1 = "smelt.broadcast"(%0) {shape = array<i64: 4>} : (tensor<f32>) -> tensor<4xf32>
  %2 = "smelt.mul"(%arg0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %3 = "smelt.neg"(%2) : (tensor<4xf32>) -> tensor<4xf32>
  %4 = "smelt.constant"() {dtype = f32, value = 3.000000e+00 : f64} : () -> tensor<f32>
  %5 = "smelt.broadcast"(%4) {shape = array<i64: 4>} : (tensor<f32>) -> tensor<4xf32>
  %6 = "smelt.div"(%arg0, %5) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %7 = "smelt.neg"(%6) : (tensor<4xf32>) -> tensor<4xf32>
  return %3, %7 : tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @abs_of_sign_change(
// CHECK-NEXT: %[[V0:.*]] = "smelt.abs"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.abs"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: return %[[V0]], %[[V1]] : tensor<4xf32>, tensor<4xf32>
func.func @abs_of_sign_change(%arg0: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = "smelt.neg"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "smelt.abs"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = "smelt.abs"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
  %3 = "smelt.abs"(%2) : (tensor<4xf32>) -> tensor<4xf32>
  return %1, %3 : tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @constant_on_the_right(
// CHECK-NEXT: %[[V0:.*]] = "smelt.constant"() {dtype = f32, value = 3.000000e+00 : f64} : () -> tensor<f32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.broadcast"(%[[V0]]) {shape = array<i64: 4>} : (tensor<f32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V2:.*]] = "smelt.add"(%arg0, %[[V1]]) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: return %[[V2]] : tensor<4xf32>
func.func @constant_on_the_right(%arg0: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "smelt.constant"() {dtype = f32, value = 3.000000e+00 : f64} : () -> tensor<f32>
  %1 = "smelt.broadcast"(%0) {shape = array<i64: 4>} : (tensor<f32>) -> tensor<4xf32>
  %2 = "smelt.add"(%1, %arg0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// CHECK-LABEL: func.func @reassociate_integers(
// CHECK-NEXT: %[[V0:.*]] = "smelt.constant"() {dtype = i32, value = 7 : i64} : () -> tensor<i32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.broadcast"(%[[V0]]) {shape = array<i64: 4>} : (tensor<i32>) -> tensor<4xi32>
// CHECK-NEXT: %[[V2:.*]] = "smelt.add"(%arg0, %[[V1]]) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
// CHECK-NEXT: %[[V3:.*]] = "smelt.constant"() {dtype = i32, value = 15 : i64} : () -> tensor<i32>
// CHECK-NEXT: %[[V4:.*]] = "smelt.broadcast"(%[[V3]]) {shape = array<i64: 4>} : (tensor<i32>) -> tensor<4xi32>
// CHECK-NEXT: %[[V5:.*]] = "smelt.mul"(%arg0, %[[V4]]) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
// CHECK-NEXT: return %[[V2]], %[[V5]] : tensor<4xi32>, tensor<4xi32>
func.func @reassociate_integers(%arg0: tensor<4xi32>) -> (tensor<4xi32>, tensor<4xi32>) {
  %0 = "smelt.constant"() {dtype = i32, value = 3 : i64} : () -> tensor<i32>
  %1 = "smelt.broadcast"(%0) {shape = array<i64: 4>} : (tensor<i32>) -> tensor<4xi32>
  %2 = "smelt.add"(%arg0, %1) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %3 = "smelt.constant"() {dtype = i32, value = 4 : i64} : () -> tensor<i32>
  %4 = "smelt.broadcast"(%3) {shape = array<i64: 4>} : (tensor<i32>) -> tensor<4xi32>
  %5 = "smelt.add"(%2, %4) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %6 = "smelt.constant"() {dtype = i32, value = 3 : i64} : () -> tensor<i32>
  %7 = "smelt.broadcast"(%6) {shape = array<i64: 4>} : (tensor<i32>) -> tensor<4xi32>
  %8 = "smelt.mul"(%arg0, %7) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %9 = "smelt.constant"() {dtype = i32, value = 5 : i64} : () -> tensor<i32>
  %10 = "smelt.broadcast"(%9) {shape = array<i64: 4>} : (tensor<i32>) -> tensor<4xi32>
  %11 = "smelt.mul"(%8, %10) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  return %5, %11 : tensor<4xi32>, tensor<4xi32>
}

// CHECK-LABEL: func.func @same_operands(
// CHECK-NEXT: return %arg0 : tensor<4xf32>
func.func @same_operands(%arg0: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "smelt.maximum"(%arg0, %arg0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// CHECK-LABEL: func.func @integer_power_small(
// CHECK-NEXT: %[[V0:.*]] = "smelt.constant"() {dtype = f32, value = 1 : i64} : () -> tensor<f32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.broadcast"(%[[V0]]) {shape = array<i64: 4>} : (tensor<f32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V2:.*]] = "smelt.mul"(%arg0, %arg0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V3:.*]] = "smelt.constant"() {dtype = f32, value = 1 : i64} : () -> tensor<f32>
// CHECK-NEXT: %[[V4:.*]] = "smelt.broadcast"(%[[V3]]) {shape = array<i64: 4>} : (tensor<f32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V5:.*]] = "smelt.div"(%[[V4]], %arg0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: return %[[V1]], %arg0, %[[V2]], %[[V5]] : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
func.func @integer_power_small(%arg0: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0 = "smelt.integer_power"(%arg0) {exponent = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "smelt.integer_power"(%arg0) {exponent = 1 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  %2 = "smelt.integer_power"(%arg0) {exponent = 2 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  %3 = "smelt.integer_power"(%arg0) {exponent = -1 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %1, %2, %3 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @power_of_constant_exponent(
// CHECK-NEXT: %[[V0:.*]] = "smelt.integer_power"(%arg0) {exponent = 3 : i64} : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.mul"(%arg0, %arg0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V2:.*]] = "smelt.integer_power"(%arg1) {exponent = 5 : i64} : (tensor<4xi32>) -> tensor<4xi32>
// CHECK-NEXT: return %[[V0]], %[[V1]], %[[V2]] : tensor<4xf32>, tensor<4xf32>, tensor<4xi32>
func.func @power_of_constant_exponent(%arg0: tensor<4xf32>, %arg1: tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xi32>) {
  %0 = "smelt.constant"() {dtype = f32, value = 3 : i64} : () -> tensor<f32>
  %1 = "smelt.broadcast"(%0) {shape = array<i64: 4>} : (tensor<f32>) -> tensor<4xf32>
  %2 = "smelt.power"(%arg0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %3 = "smelt.constant"() {dtype = f32, value = 2 : i64} : () -> tensor<f32>
  %4 = "smelt.broadcast"(%3) {shape = array<i64: 4>} : (tensor<f32>) -> tensor<4xf32>
  %5 = "smelt.power"(%arg0, %4) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %6 = "smelt.constant"() {dtype = i32, value = 5 : i64} : () -> tensor<i32>
  %7 = "smelt.broadcast"(%6) {shape = array<i64: 4>} : (tensor<i32>) -> tensor<4xi32>
  %8 = "smelt.power"(%arg1, %7) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  return %2, %5, %8 : tensor<4xf32>, tensor<4xf32>, tensor<4xi32>
}

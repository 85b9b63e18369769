// Constants and types at the edges survive.
// RUN: smelt-opt %s | smelt-opt - | filecheck %s
// RUN: smelt-opt %s --execute | filecheck %s --check-prefix=VALUE

// CHECK-LABEL: func.func @main(
func.func @main() -> (tensor<f32>, tensor<f32>, tensor<f32>, tensor<f64>, tensor<ui64>, tensor<i8>, tensor<i1>, tensor<complex<f32>>, tensor<bf16>, tensor<2x0xf16>, tensor<3xi1>, tensor<2xui64>) {
  // CHECK: value = 0x7FF8000000000000 : f64
  // VALUE: dense<nan> : tensor<f32>
  %nan = "smelt.constant"() {value = 0x7FF8000000000000 : f64, dtype = f32} : () -> tensor<f32>
  // CHECK: value = 0xFFF0000000000000 : f64
  // VALUE: dense<-inf> : tensor<f32>
  %inf = "smelt.constant"() {value = 0xFFF0000000000000 : f64, dtype = f32} : () -> tensor<f32>
  // CHECK: value = -0.000000e+00 : f64
  // VALUE: dense<-0.0> : tensor<f32>
  %zero = "smelt.constant"() {value = -0.0 : f64, dtype = f32} : () -> tensor<f32>
  // CHECK: value = 1.0000000000000002 : f64
  // VALUE: dense<1.0> : tensor<f64>
  %one = "smelt.constant"() {value = 1.0000000000000002 : f64, dtype = f64} : () -> tensor<f64>
  // CHECK: value = 18446744073709551615 : ui64
  // VALUE: dense<18446744073709551615> : tensor<ui64>
  %most = "smelt.constant"() {value = 18446744073709551615 : ui64, dtype = ui64} : () -> tensor<ui64>
  // CHECK: value = 200 : i64
  // VALUE: dense<-56> : tensor<i8>
  %wrapped = "smelt.constant"() {value = 200 : i64, dtype = i8} : () -> tensor<i8>
  // CHECK: value = true
  // VALUE: dense<true> : tensor<i1>
  %true = "smelt.constant"() {value = true, dtype = i1} : () -> tensor<i1>
  // CHECK: value = array<f64: 1.000000e+00, -2.000000e+00>
  // VALUE: dense<(1.0, -2.0)> : tensor<complex<f32>>
  %complex = "smelt.constant"() {value = array<f64: 1.0, -2.0>, dtype = complex<f32>} : () -> tensor<complex<f32>>
  // CHECK: dtype = bf16
  // VALUE: dense<1.00781> : tensor<bf16>
  %half = "smelt.constant"() {value = 1.01 : f64, dtype = bf16} : () -> tensor<bf16>
  // CHECK: value = dense<> : tensor<2x0xf16>
  // VALUE: dense<{{\[}}[], []]> : tensor<2x0xf16>
  %empty = "smelt.literal"() {value = dense<> : tensor<2x0xf16>} : () -> tensor<2x0xf16>
  // CHECK: value = dense<[true, false, true]> : tensor<3xi1>
  // VALUE: dense<[true, false, true]> : tensor<3xi1>
  %bools = "smelt.literal"() {value = dense<[true, false, true]> : tensor<3xi1>} : () -> tensor<3xi1>
  // CHECK: value = dense<[0, 18446744073709551615]> : tensor<2xui64>
  // VALUE: dense<[0, 18446744073709551615]> : tensor<2xui64>
  %wide = "smelt.literal"() {value = dense<[0, 18446744073709551615]> : tensor<2xui64>} : () -> tensor<2xui64>
  return %nan, %inf, %zero, %one, %most, %wrapped, %true, %complex, %half, %empty, %bools, %wide : tensor<f32>, tensor<f32>, tensor<f32>, tensor<f64>, tensor<ui64>, tensor<i8>, tensor<i1>, tensor<complex<f32>>, tensor<bf16>, tensor<2x0xf16>, tensor<3xi1>, tensor<2xui64>
}

// RUN: smelt-opt %s | filecheck %s
// RUN: smelt-opt %s | smelt-opt - | filecheck %s

// CHECK: func.func @mixed(
func.func @mixed(%x: tensor<4xf32>, %n: tensor<i32>) -> (tensor<4xf16>, tensor<i1>) {
  // CHECK: %[[F:.*]] = "smelt.custom_call"() {parameters = {axes = [0, 1], name = "a\0Ab", scale = 2.000000e+00 : f64, type = bf16}, target = "acme.f", types = [tensor<4xf16>, tensor<i1>]} : () -> ((tensor<4xf32>, tensor<i32>) -> (tensor<4xf16>, tensor<i1>))
  %f = "smelt.custom_call"() {target = "acme.f", parameters = {scale = 2.0 : f64, axes = [0, 1], name = "a\0Ab", type = bf16}, types = [tensor<4xf16>, tensor<i1>]} : () -> ((tensor<4xf32>, tensor<i32>) -> (tensor<4xf16>, tensor<i1>))
  // CHECK: call_indirect %[[F]](%arg0, %arg1) : (tensor<4xf32>, tensor<i32>) -> (tensor<4xf16>, tensor<i1>)
  %0:2 = call_indirect %f(%x, %n) : (tensor<4xf32>, tensor<i32>) -> (tensor<4xf16>, tensor<i1>)
  return %0#0, %0#1 : tensor<4xf16>, tensor<i1>
}

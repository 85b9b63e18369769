// RUN: smelt-opt %s --split-input-file --verify-diagnostics

func.func @f() {
  // expected-error @+1 {{smelt.custom_call: target must name what is called}}
  %f = "smelt.custom_call"() {target = "", parameters = {}, types = [tensor<f32>]} : () -> ((tensor<i32>) -> tensor<f32>)
  return
}

// -----

func.func @f() {
  // expected-error @+1 {{smelt.custom_call: the function must return f32[], returns f32[4]}}
  %f = "smelt.custom_call"() {target = "acme.f", parameters = {}, types = [tensor<f32>]} : () -> ((tensor<i32>) -> tensor<4xf32>)
  return
}

// -----

func.func @f() {
  // expected-error @+1 {{smelt.custom_call: the result is a function, which func.call_indirect applies; it is tensor<f32>}}
  %f = "smelt.custom_call"() {target = "acme.f", parameters = {}, types = [tensor<f32>]} : () -> tensor<f32>
  return
}

// -----

func.func @f() {
  // expected-error @+1 {{smelt.custom_call: attribute parameters must be a dictionary of numbers, texts, types and arrays of these, is 3 : i64}}
  %f = "smelt.custom_call"() {target = "acme.f", parameters = 3 : i64, types = [tensor<f32>]} : () -> ((tensor<i32>) -> tensor<f32>)
  return
}

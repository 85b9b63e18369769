// What is no smelt program at all.
// RUN: smelt-opt %s --canonicalize --split-input-file --verify-diagnostics

// expected-error @+1 {{operation being parsed with an unregistered dialect}}
"foo.bar"() : () -> ()

// -----

func.func @f(%x: tensor<f32>) -> tensor<f32> {
  // expected-error @+1 {{unregistered operation 'smelt.nothing' found in dialect ('smelt')}}
  %0 = "smelt.nothing"(%x) : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

func.func @f(%x: tensor<f32>) -> tensor<f32> {
  // expected-error @+1 {{arith.addf is not an op of the smelt dialect}}
  %0 = arith.addf %x, %x : tensor<f32>
  return %0 : tensor<f32>
}

// -----

func.func @f(%x: tensor<f32>) -> tensor<f32> {
  // expected-error @+1 {{use of undeclared SSA value name}}
  %0 = "smelt.exp"(%y) : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

func.func @f(%x: tensor<f32>) -> tensor<f32> {
  // expected-error @+1 {{'g' does not reference a valid function}}
  %0 = func.call @g(%x) : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// expected-error @unknown {{smelt values are ranked tensors, this one is i32}}
func.func @f(%x: i32) -> i32 {
  return %x : i32
}

// -----

func.func @f(%x: tensor<f32>) -> tensor<f32> {
// expected-error @above {{expected operation name in quotes}}

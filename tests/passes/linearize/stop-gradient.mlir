// Through a stop_gradient flows nothing: also when canonicalize runs before.
// RUN: smelt-opt %s --pass-pipeline='canonicalize,fixpoint(inline,jvp,linearize,transpose),canonicalize,cse,dce' | filecheck %s

func.func private @f(%x: tensor<f32>) -> tensor<f32> {
  %0 = "smelt.stop_gradient"(%x) : (tensor<f32>) -> tensor<f32>
  %1 = "smelt.mul"(%0, %x) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}

// CHECK-LABEL: func.func @main(
// CHECK-NEXT: return %arg0 : tensor<f32>
func.func @main(%x: tensor<f32>) -> tensor<f32> {
  %one = "smelt.constant"() {value = 1.0 : f64, dtype = f32} : () -> tensor<f32>
  %f = func.constant @f : (tensor<f32>) -> tensor<f32>
  %d = "smelt.vjp"(%f) {wrt = array<i64: 0>, seeds = array<i64: 0>} : ((tensor<f32>) -> tensor<f32>) -> ((tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>))
  %r:2 = func.call_indirect %d(%x, %one) : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
  return %r#1 : tensor<f32>
}

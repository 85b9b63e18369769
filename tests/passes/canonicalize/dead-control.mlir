// A branch that nobody reads goes with what only it reads, also through the upstream ops in between.
// RUN: smelt-opt %s --canonicalize | filecheck %s

// CHECK-LABEL: func.func @main(
// CHECK-NEXT: return %arg0 : tensor<f32>
func.func @main(%x: tensor<f32>, %i: tensor<i32>) -> tensor<f32> {
  %0 = "smelt.less"(%x, %x) : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %take = tensor.extract %0[] : tensor<i1>
  %1 = scf.if %take -> (tensor<f32>) {
    %2 = func.call @f(%x) : (tensor<f32>) -> tensor<f32>
    scf.yield %2 : tensor<f32>
  } else {
    %2 = func.call @f(%x) : (tensor<f32>) -> tensor<f32>
    scf.yield %2 : tensor<f32>
  }
  %3 = "smelt.add"(%i, %i) : (tensor<i32>, tensor<i32>) -> tensor<i32>
  %4 = tensor.extract %3[] : tensor<i32>
  %at = arith.index_cast %4 : i32 to index
  %5 = scf.index_switch %at -> tensor<f32>
  case 0 {
    %6 = func.call @f(%x) : (tensor<f32>) -> tensor<f32>
    scf.yield %6 : tensor<f32>
  }
  default {
    %6 = func.call @f(%x) : (tensor<f32>) -> tensor<f32>
    scf.yield %6 : tensor<f32>
  }
  return %x : tensor<f32>
}

func.func @f(%x: tensor<f32>) -> tensor<f32> {
  %0 = "smelt.exp"(%x) : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}

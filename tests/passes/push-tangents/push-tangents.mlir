// @main takes a tangent too; a loop becomes two, of which the second is linear in it.
// RUN: smelt-opt %s --push-tangents='wrt=1' --dce | filecheck %s

func.func private @step(%c: tensor<f32>, %x: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  %0 = "smelt.mul"(%c, %x) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %1 = "smelt.sin"(%0) : (tensor<f32>) -> tensor<f32>
  return %1, %0 : tensor<f32>, tensor<f32>
}

// CHECK-LABEL: func.func @main(
// CHECK-NEXT: %[[V0:.*]] = "smelt.constant"() {dtype = f32, value = 0 : i64} : () -> tensor<f32>
// CHECK-NEXT: %[[VC0:.*]] = arith.constant 0 : index
// CHECK-NEXT: %[[VC4:.*]] = arith.constant 4 : index
// CHECK-NEXT: %[[VC1:.*]] = arith.constant 1 : index
// CHECK-NEXT: %[[V1:.*]] = tensor.empty() : tensor<4xf32>
// CHECK-NEXT: %[[V2:.*]] = tensor.empty() : tensor<4xf32>
// CHECK-NEXT: %[[V3:.*]]:3 = scf.for %arg3 = %[[VC0]] to %[[VC4]] step %[[VC1]] iter_args(%arg4 = %arg0, %arg5 = %[[V1]], %arg6 = %[[V2]]) -> (tensor<f32>, tensor<4xf32>, tensor<4xf32>) {
// CHECK-NEXT: %[[VEXTRACTED_SLICE:.*]] = tensor.extract_slice %arg1[%arg3] [1] [1] : tensor<4xf32> to tensor<f32>
// CHECK-NEXT: %[[V7:.*]]:3 = func.call @step_primal(%arg4, %[[VEXTRACTED_SLICE]]) : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>, tensor<f32>)
// CHECK-NEXT: %[[VINSERTED_SLICE:.*]] = tensor.insert_slice %[[V7]]#1 into %arg5[%arg3] [1] [1] : tensor<f32> into tensor<4xf32>
// CHECK-NEXT: %[[VINSERTED_SLICE_3:.*]] = tensor.insert_slice %[[V7]]#2 into %arg6[%arg3] [1] [1] : tensor<f32> into tensor<4xf32>
// CHECK-NEXT: scf.yield %[[V7]]#0, %[[VINSERTED_SLICE]], %[[VINSERTED_SLICE_3]] : tensor<f32>, tensor<4xf32>, tensor<4xf32>
// CHECK-NEXT: } {smelt.carries = 1 : i64, smelt.constants = 0 : i64}
// CHECK-NEXT: %[[VC0_0:.*]] = arith.constant 0 : index
// CHECK-NEXT: %[[VC4_1:.*]] = arith.constant 4 : index
// CHECK-NEXT: %[[VC1_2:.*]] = arith.constant 1 : index
// CHECK-NEXT: %[[V4:.*]] = scf.for %arg3 = %[[VC0_0]] to %[[VC4_1]] step %[[VC1_2]] iter_args(%arg4 = %[[V0]]) -> (tensor<f32>) {
// CHECK-NEXT: %[[VEXTRACTED_SLICE:.*]] = tensor.extract_slice %arg1[%arg3] [1] [1] : tensor<4xf32> to tensor<f32>
// CHECK-NEXT: %[[VEXTRACTED_SLICE_3:.*]] = tensor.extract_slice %[[V3]]#1[%arg3] [1] [1] : tensor<4xf32> to tensor<f32>
// CHECK-NEXT: %[[VEXTRACTED_SLICE_4:.*]] = tensor.extract_slice %[[V3]]#2[%arg3] [1] [1] : tensor<4xf32> to tensor<f32>
// CHECK-NEXT: %[[VEXTRACTED_SLICE_5:.*]] = tensor.extract_slice %arg2[%arg3] [1] [1] : tensor<4xf32> to tensor<f32>
// CHECK-NEXT: %[[V7:.*]] = func.call @step_tangent(%arg4, %[[VEXTRACTED_SLICE]], %[[VEXTRACTED_SLICE_3]], %[[VEXTRACTED_SLICE_4]], %[[VEXTRACTED_SLICE_5]]) : (tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<f32>
// CHECK-NEXT: scf.yield %[[V7]] : tensor<f32>
// CHECK-NEXT: } {smelt.carries = 1 : i64, smelt.constants = 0 : i64}
// CHECK-NEXT: %[[V5:.*]] = "smelt.exp"(%arg0) : (tensor<f32>) -> tensor<f32>
// CHECK-NEXT: %[[V6:.*]] = "smelt.constant"() {dtype = f32, value = 0 : i64} : () -> tensor<f32>
// CHECK-NEXT: return %[[V3]]#0, %[[V5]], %[[V4]], %[[V6]] : tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>
func.func @main(%start: tensor<f32>, %xs: tensor<4xf32>) -> (tensor<f32>, tensor<f32>) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c1 = arith.constant 1 : index
  %empty = tensor.empty() : tensor<4xf32>
  %r:2 = scf.for %i = %c0 to %c4 step %c1 iter_args(%c = %start, %ys = %empty) -> (tensor<f32>, tensor<4xf32>) {
    %x = tensor.extract_slice %xs[%i] [1] [1] : tensor<4xf32> to tensor<f32>
    %n:2 = func.call @step(%c, %x) : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
    %y = tensor.insert_slice %n#1 into %ys[%i] [1] [1] : tensor<f32> into tensor<4xf32>
    scf.yield %n#0, %y : tensor<f32>, tensor<4xf32>
  } {smelt.carries = 1 : i64, smelt.constants = 0 : i64}
  %k = "smelt.exp"(%start) : (tensor<f32>) -> tensor<f32>
  return %r#0, %k : tensor<f32>, tensor<f32>
}

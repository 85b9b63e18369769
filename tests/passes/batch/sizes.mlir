// A batch of one, of none, and one whose result is asked for although nothing depends on it.
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,batch),canonicalize,cse,dce' | filecheck %s

func.func private @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "smelt.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// CHECK-LABEL: func.func @one(
// CHECK-NEXT: %[[V0:.*]] = "smelt.exp"(%arg0) : (tensor<1x4xf32>) -> tensor<1x4xf32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.reshape"(%[[V0]]) {shape = array<i64: 4, 1>} : (tensor<1x4xf32>) -> tensor<4x1xf32>
// CHECK-NEXT: return %[[V1]] : tensor<4x1xf32>
func.func @one(%x: tensor<1x4xf32>) -> tensor<4x1xf32> {
  %f = func.constant @f : (tensor<4xf32>) -> tensor<4xf32>
  %v = "smelt.batch"(%f) {size = 1 : i64, in_axes = array<i64: 0>, out_axes = array<i64: 1>} : ((tensor<4xf32>) -> tensor<4xf32>) -> ((tensor<1x4xf32>) -> tensor<4x1xf32>)
  %r = func.call_indirect %v(%x) : (tensor<1x4xf32>) -> tensor<4x1xf32>
  return %r : tensor<4x1xf32>
}

// CHECK-LABEL: func.func @none(
// CHECK-NEXT: %[[V0:.*]] = "smelt.exp"(%arg0) : (tensor<0x4xf32>) -> tensor<0x4xf32>
// CHECK-NEXT: return %[[V0]] : tensor<0x4xf32>
func.func @none(%x: tensor<0x4xf32>) -> tensor<0x4xf32> {
  %f = func.constant @f : (tensor<4xf32>) -> tensor<4xf32>
  %v = "smelt.batch"(%f) {size = 0 : i64, in_axes = array<i64: 0>, out_axes = array<i64: 0>} : ((tensor<4xf32>) -> tensor<4xf32>) -> ((tensor<0x4xf32>) -> tensor<0x4xf32>)
  %r = func.call_indirect %v(%x) : (tensor<0x4xf32>) -> tensor<0x4xf32>
  return %r : tensor<0x4xf32>
}

// CHECK-LABEL: func.func @unbatched(
// CHECK-NEXT: %[[V0:.*]] = "smelt.exp"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.broadcast"(%[[V0]]) {shape = array<i64: 8, 4>} : (tensor<4xf32>) -> tensor<8x4xf32>
// CHECK-NEXT: return %[[V1]] : tensor<8x4xf32>
func.func @unbatched(%x: tensor<4xf32>) -> tensor<8x4xf32> {
  %f = func.constant @f : (tensor<4xf32>) -> tensor<4xf32>
  %v = "smelt.batch"(%f) {size = 8 : i64, in_axes = array<i64: -1>, out_axes = array<i64: 0>} : ((tensor<4xf32>) -> tensor<4xf32>) -> ((tensor<4xf32>) -> tensor<8x4xf32>)
  %r = func.call_indirect %v(%x) : (tensor<4xf32>) -> tensor<8x4xf32>
  return %r : tensor<8x4xf32>
}

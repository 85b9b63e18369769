// What the device cannot do becomes functions for the CPU.
// RUN: smelt-opt %s --pass-pipeline='place{dtypes=f64,f16 kinds=sort}' | filecheck %s
// RUN: smelt-opt %s --pass-pipeline='place{dtypes=float64+float16 kinds=sort},place{dtypes=f64,f16 kinds=sort}' | filecheck %s

// Ops on f64 and the conversions from and to it are one function, with values that cross as arguments and results.
// CHECK-LABEL: func.func @double(
// CHECK-NEXT: %[[V0:.*]] = "smelt.exp"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V1:.*]] = call @host_0(%[[V0]]) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V2:.*]] = "smelt.mul"(%[[V1]], %arg1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: return %[[V2]], %[[V1]] : tensor<4xf32>, tensor<4xf32>
// CHECK-LABEL: func.func private @host_0(
// CHECK-NEXT: %[[V0:.*]] = "smelt.convert"(%arg0) {dtype = f64} : (tensor<4xf32>) -> tensor<4xf64>
// CHECK-NEXT: %[[V1:.*]] = "smelt.sqrt"(%[[V0]]) : (tensor<4xf64>) -> tensor<4xf64>
// CHECK-NEXT: %[[V2:.*]] = "smelt.convert"(%[[V1]]) {dtype = f32} : (tensor<4xf64>) -> tensor<4xf32>
// CHECK-NEXT: return %[[V2]] : tensor<4xf32>
func.func @double(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = "smelt.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "smelt.convert"(%0) {dtype = f64} : (tensor<4xf32>) -> tensor<4xf64>
  %2 = "smelt.sqrt"(%1) : (tensor<4xf64>) -> tensor<4xf64>
  %3 = "smelt.convert"(%2) {dtype = f32} : (tensor<4xf64>) -> tensor<4xf32>
  %4 = "smelt.mul"(%3, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %4, %3 : tensor<4xf32>, tensor<4xf32>
}

// Kinds of ops. Both sorts are ready at the same time: one function, after the device has done the exp that the second needs.
// CHECK-LABEL: func.func @together(
// CHECK-NEXT: %[[V0:.*]] = "smelt.exp"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V1:.*]]:2 = call @host_1(%arg0, %[[V0]]) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
// CHECK-NEXT: %[[V2:.*]] = "smelt.neg"(%[[V1]]#0) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: return %[[V1]]#1, %[[V2]] : tensor<4xf32>, tensor<4xf32>
func.func @together(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = "smelt.sort"(%x) {axis = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "smelt.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = "smelt.sort"(%1) {axis = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  %3 = "smelt.neg"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %2, %3 : tensor<4xf32>, tensor<4xf32>
}

// The second sort needs the device after the first.
// CHECK-LABEL: func.func @alternating(
// CHECK-NEXT: %[[V0:.*]] = call @host_2(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.exp"(%[[V0]]) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V2:.*]] = call @host_3(%[[V1]]) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: return %[[V2]] : tensor<4xf32>
func.func @alternating(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "smelt.sort"(%x) {axis = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "smelt.exp"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = "smelt.sort"(%1) {axis = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// CHECK-LABEL: func.func @untouched(
// CHECK-NEXT: %[[V0:.*]] = "smelt.exp"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: return %[[V0]] : tensor<4xf32>
func.func @untouched(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "smelt.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// Loops over a known number of steps take and make only what is read.
// RUN: smelt-opt %s --dce | filecheck %s

// The stacked result and the count that only feeds itself go, and %z, which only they read.
// CHECK-LABEL: func.func @unread(
// CHECK-NEXT: %[[VC0:.*]] = arith.constant 0 : index
// CHECK-NEXT: %[[VC3:.*]] = arith.constant 3 : index
// CHECK-NEXT: %[[VC1:.*]] = arith.constant 1 : index
// CHECK-NEXT: %[[V0:.*]] = scf.for %arg3 = %[[VC0]] to %[[VC3]] step %[[VC1]] iter_args(%arg4 = %arg0) -> (tensor<4xf32>) {
// CHECK-NEXT: %[[VEXTRACTED_SLICE:.*]] = tensor.extract_slice %arg2[%arg3, 0] [1, 4] [1, 1] : tensor<3x4xf32> to tensor<4xf32>
// CHECK-NEXT: %[[V1:.*]] = func.call @unread_body(%arg4, %[[VEXTRACTED_SLICE]]) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: scf.yield %[[V1]] : tensor<4xf32>
// CHECK-NEXT: } {smelt.carries = 1 : i64, smelt.constants = 0 : i64}
// CHECK-NEXT: return %[[V0]] : tensor<4xf32>
func.func @unread(%x: tensor<4xf32>, %z: tensor<4xf32>, %xs: tensor<3x4xf32>) -> tensor<4xf32> {
  %zero = "smelt.constant"() {dtype = i32, value = 0 : i64} : () -> tensor<i32>
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<3x4xf32>
  %r:3 = scf.for %i = %c0 to %c3 step %c1 iter_args(%c = %x, %n = %zero, %ys = %e) -> (tensor<4xf32>, tensor<i32>, tensor<3x4xf32>) {
    %s = tensor.extract_slice %xs[%i, 0] [1, 4] [1, 1] : tensor<3x4xf32> to tensor<4xf32>
    %0:3 = func.call @unread_body(%z, %c, %n, %s) : (tensor<4xf32>, tensor<4xf32>, tensor<i32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<i32>, tensor<4xf32>)
    %t = tensor.insert_slice %0#2 into %ys[%i, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<3x4xf32>
    scf.yield %0#0, %0#1, %t : tensor<4xf32>, tensor<i32>, tensor<3x4xf32>
  } {smelt.carries = 2 : i64, smelt.constants = 1 : i64}
  return %r#0 : tensor<4xf32>
}

// CHECK-LABEL: func.func private @unread_body(
// CHECK-NEXT: %[[V0:.*]] = "smelt.mul"(%arg0, %arg1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: return %[[V0]] : tensor<4xf32>
func.func private @unread_body(%z: tensor<4xf32>, %c: tensor<4xf32>, %n: tensor<i32>, %s: tensor<4xf32>) -> (tensor<4xf32>, tensor<i32>, tensor<4xf32>) {
  %0 = "smelt.mul"(%c, %s) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = "smelt.constant"() {dtype = i32, value = 1 : i64} : () -> tensor<i32>
  %2 = "smelt.add"(%n, %1) : (tensor<i32>, tensor<i32>) -> tensor<i32>
  %3 = "smelt.mul"(%z, %s) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0, %2, %3 : tensor<4xf32>, tensor<i32>, tensor<4xf32>
}

// The carry %k never changes, all elements of %w are %v, and %x is given twice: constants, each once. The elements
// of %xs stacked again are %xs. Two equal stacked results are one.
// CHECK-LABEL: func.func @constants(
// CHECK-NEXT: %[[VC0:.*]] = arith.constant 0 : index
// CHECK-NEXT: %[[VC3:.*]] = arith.constant 3 : index
// CHECK-NEXT: %[[VC1:.*]] = arith.constant 1 : index
// CHECK-NEXT: %[[V0:.*]] = tensor.empty() : tensor<3x4xf32>
// CHECK-NEXT: %[[V1:.*]]:2 = scf.for %arg3 = %[[VC0]] to %[[VC3]] step %[[VC1]] iter_args(%arg4 = %arg1, %arg5 = %[[V0]]) -> (tensor<4xf32>, tensor<3x4xf32>) {
// CHECK-NEXT: %[[V2:.*]]:2 = func.call @constants_body(%arg0, %arg1, %arg4) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
// CHECK-NEXT: %[[VINSERTED_SLICE:.*]] = tensor.insert_slice %[[V2]]#1 into %arg5[%arg3, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<3x4xf32>
// CHECK-NEXT: scf.yield %[[V2]]#0, %[[VINSERTED_SLICE]] : tensor<4xf32>, tensor<3x4xf32>
// CHECK-NEXT: } {smelt.carries = 1 : i64, smelt.constants = 2 : i64}
// CHECK-NEXT: return %[[V1]]#0, %arg0, %[[V1]]#1, %[[V1]]#1, %arg2 : tensor<4xf32>, tensor<4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>
func.func @constants(%x: tensor<4xf32>, %v: tensor<4xf32>, %xs: tensor<3x4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>) {
  %w = "smelt.broadcast"(%v) {shape = array<i64: 3, 4>} : (tensor<4xf32>) -> tensor<3x4xf32>
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<3x4xf32>
  %r:5 = scf.for %i = %c0 to %c3 step %c1 iter_args(%c = %v, %k = %x, %as = %e, %bs = %e, %ds = %e) -> (tensor<4xf32>, tensor<4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>) {
    %s = tensor.extract_slice %w[%i, 0] [1, 4] [1, 1] : tensor<3x4xf32> to tensor<4xf32>
    %u = tensor.extract_slice %xs[%i, 0] [1, 4] [1, 1] : tensor<3x4xf32> to tensor<4xf32>
    %0:5 = func.call @constants_body(%x, %c, %k, %s, %u) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
    %t0 = tensor.insert_slice %0#2 into %as[%i, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<3x4xf32>
    %t1 = tensor.insert_slice %0#3 into %bs[%i, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<3x4xf32>
    %t2 = tensor.insert_slice %0#4 into %ds[%i, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<3x4xf32>
    scf.yield %0#0, %0#1, %t0, %t1, %t2 : tensor<4xf32>, tensor<4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>
  } {smelt.carries = 2 : i64, smelt.constants = 1 : i64}
  return %r#0, %r#1, %r#2, %r#3, %r#4 : tensor<4xf32>, tensor<4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>
}

// CHECK-LABEL: func.func private @constants_body(
// CHECK-NEXT: %[[V0:.*]] = "smelt.mul"(%arg0, %arg0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.add"(%[[V0]], %arg1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V2:.*]] = "smelt.mul"(%arg2, %[[V1]]) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: return %[[V2]], %[[V1]] : tensor<4xf32>, tensor<4xf32>
func.func private @constants_body(%x: tensor<4xf32>, %c: tensor<4xf32>, %k: tensor<4xf32>, %s: tensor<4xf32>, %u: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0 = "smelt.mul"(%x, %k) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = "smelt.add"(%0, %s) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = "smelt.mul"(%c, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2, %k, %1, %1, %u : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// Nothing is to be done: the first carry feeds the second, and all results are read.
// CHECK-LABEL: func.func @untouched(
// CHECK-NEXT: %[[VC0:.*]] = arith.constant 0 : index
// CHECK-NEXT: %[[VC3:.*]] = arith.constant 3 : index
// CHECK-NEXT: %[[VC1:.*]] = arith.constant 1 : index
// CHECK-NEXT: %[[V0:.*]]:2 = scf.for %arg2 = %[[VC0]] to %[[VC3]] step %[[VC1]] iter_args(%arg3 = %arg0, %arg4 = %arg1) -> (tensor<4xf32>, tensor<4xf32>) {
// CHECK-NEXT: %[[V1:.*]]:2 = func.call @untouched_body(%arg3, %arg4) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
// CHECK-NEXT: scf.yield %[[V1]]#0, %[[V1]]#1 : tensor<4xf32>, tensor<4xf32>
// CHECK-NEXT: } {smelt.carries = 2 : i64, smelt.constants = 0 : i64}
// CHECK-NEXT: return %[[V0]]#1 : tensor<4xf32>
func.func @untouched(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %x, %b = %y) -> (tensor<4xf32>, tensor<4xf32>) {
    %0:2 = func.call @untouched_body(%a, %b) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    scf.yield %0#0, %0#1 : tensor<4xf32>, tensor<4xf32>
  } {smelt.carries = 2 : i64, smelt.constants = 0 : i64}
  return %r#1 : tensor<4xf32>
}

// CHECK-LABEL: func.func private @untouched_body(
// CHECK-NEXT: %[[V0:.*]] = "smelt.sin"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.mul"(%arg0, %arg1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: return %[[V0]], %[[V1]] : tensor<4xf32>, tensor<4xf32>
func.func private @untouched_body(%a: tensor<4xf32>, %b: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = "smelt.sin"(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "smelt.mul"(%a, %b) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

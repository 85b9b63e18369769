// The gradient of a layer norm: its last sum needs the one before, and becomes sums that do not. Deviations stay whole.
// RUN: smelt-opt %s --split-sums --canonicalize --dce | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: %[[D:.*]] = "smelt.sub"
// CHECK: %[[R:.*]] = "smelt.mul"(%{{.*}}, %[[D]])
// CHECK: %[[P:.*]] = "smelt.reduce_sum"(%[[R]])
// CHECK: %[[A:.*]] = "smelt.reduce_sum"(%arg1)
// CHECK: %[[B:.*]] = "smelt.reduce_sum"(%[[D]])
// CHECK: "smelt.mul"(%[[B]], %[[P]])
// CHECK: "smelt.add"(%[[A]], %{{.*}})

func.func @main(%x: tensor<4x8xf32>, %r: tensor<4x8xf32>, %m: tensor<4x1xf32>) -> tensor<4xf32> {
  %0 = "smelt.broadcast"(%m) {shape = array<i64: 4, 8>} : (tensor<4x1xf32>) -> tensor<4x8xf32>
  %d = "smelt.sub"(%x, %0) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = "smelt.mul"(%r, %d) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = "smelt.reduce_sum"(%1) {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xf32>
  %3 = "smelt.reshape"(%2) {shape = array<i64: 4, 1>} : (tensor<4xf32>) -> tensor<4x1xf32>
  %4 = "smelt.broadcast"(%3) {shape = array<i64: 4, 8>} : (tensor<4x1xf32>) -> tensor<4x8xf32>
  %5 = "smelt.mul"(%4, %d) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %6 = "smelt.add"(%r, %5) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %7 = "smelt.reduce_sum"(%6) {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xf32>
  return %7 : tensor<4xf32>
}

// One sum in place of two that differ by a factor of the row; what is stored anyway is read as it is.
// CHECK-LABEL: func.func @factors
// CHECK: %[[S:.*]] = "smelt.reduce_sum"(%arg0)
// CHECK-NOT: "smelt.reduce_sum"
// CHECK: return
func.func @factors(%x: tensor<4x8xf32>, %c: tensor<4x1xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = "smelt.broadcast"(%c) {shape = array<i64: 4, 8>} : (tensor<4x1xf32>) -> tensor<4x8xf32>
  %1 = "smelt.mul"(%x, %0) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = "smelt.reduce_sum"(%1) {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xf32>
  %3 = "smelt.reduce_sum"(%x) {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xf32>
  return %2, %3 : tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @stored
// CHECK: %[[Y:.*]] = "smelt.mul"
// CHECK: "smelt.reduce_sum"(%[[Y]])
// CHECK: "smelt.reduce_sum"(%arg0)
// CHECK-LABEL: func.func @half
// CHECK: %[[Y:.*]] = "smelt.mul"
// CHECK: "smelt.reduce_sum"(%[[Y]])
func.func @stored(%x: tensor<4x8xf32>, %c: tensor<4x1xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4x8xf32>) {
  %0 = "smelt.broadcast"(%c) {shape = array<i64: 4, 8>} : (tensor<4x1xf32>) -> tensor<4x8xf32>
  %1 = "smelt.mul"(%x, %0) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = "smelt.reduce_sum"(%1) {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xf32>
  %3 = "smelt.reduce_sum"(%x) {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xf32>
  return %2, %3, %1 : tensor<4xf32>, tensor<4xf32>, tensor<4x8xf32>
}

func.func @half(%x: tensor<4x8xf16>, %c: tensor<4x1xf16>) -> (tensor<4xf16>, tensor<4xf16>) {
  %0 = "smelt.broadcast"(%c) {shape = array<i64: 4, 8>} : (tensor<4x1xf16>) -> tensor<4x8xf16>
  %1 = "smelt.mul"(%x, %0) : (tensor<4x8xf16>, tensor<4x8xf16>) -> tensor<4x8xf16>
  %2 = "smelt.reduce_sum"(%1) {axes = array<i64: 1>} : (tensor<4x8xf16>) -> tensor<4xf16>
  %3 = "smelt.reduce_sum"(%x) {axes = array<i64: 1>} : (tensor<4x8xf16>) -> tensor<4xf16>
  return %2, %3 : tensor<4xf16>, tensor<4xf16>
}

// What one kernel computes becomes a function of its own.
// RUN: smelt-opt %s --fuse | filecheck %s

// A chain of elementwise ops is one kernel.
// CHECK-LABEL: func.func @chain(
// CHECK-NEXT: %[[R:.*]] = call @[[K:fused_.*]](%arg0, %arg1) : (tensor<1024xf32>, tensor<1024xf32>) -> tensor<1024xf32>
// CHECK-NEXT: return %[[R]]
// CHECK: func.func private @[[K]]({{.*}} attributes {smelt.fusion = "map"}
// CHECK-NEXT: %{{.*}} = "smelt.exp"
// CHECK-NEXT: %{{.*}} = "smelt.mul"
// CHECK-NEXT: %{{.*}} = "smelt.add"
func.func @chain(%x: tensor<1024xf32>, %y: tensor<1024xf32>) -> tensor<1024xf32> {
  %0 = "smelt.exp"(%x) : (tensor<1024xf32>) -> tensor<1024xf32>
  %1 = "smelt.mul"(%0, %y) : (tensor<1024xf32>, tensor<1024xf32>) -> tensor<1024xf32>
  %2 = "smelt.add"(%1, %y) : (tensor<1024xf32>, tensor<1024xf32>) -> tensor<1024xf32>
  return %2 : tensor<1024xf32>
}

// So is a whole softmax: two reductions along rows with maps between.
// CHECK-LABEL: func.func @softmax(
// CHECK-NEXT: %[[R:.*]] = call @fused_{{.*}}(%arg0) : (tensor<64x128xf32>) -> tensor<64x128xf32>
// CHECK-NEXT: return %[[R]]
// CHECK: func.func private @fused_{{.*}} attributes {smelt.fusion = "row"
func.func @softmax(%x: tensor<64x128xf32>) -> tensor<64x128xf32> {
  %0 = "smelt.reduce_max"(%x) {axes = array<i64: 1>} : (tensor<64x128xf32>) -> tensor<64xf32>
  %1 = "smelt.reshape"(%0) {shape = array<i64: 64, 1>} : (tensor<64xf32>) -> tensor<64x1xf32>
  %2 = "smelt.broadcast"(%1) {shape = array<i64: 64, 128>} : (tensor<64x1xf32>) -> tensor<64x128xf32>
  %3 = "smelt.sub"(%x, %2) : (tensor<64x128xf32>, tensor<64x128xf32>) -> tensor<64x128xf32>
  %4 = "smelt.exp"(%3) : (tensor<64x128xf32>) -> tensor<64x128xf32>
  %5 = "smelt.reduce_sum"(%4) {axes = array<i64: 1>} : (tensor<64x128xf32>) -> tensor<64xf32>
  %6 = "smelt.reshape"(%5) {shape = array<i64: 64, 1>} : (tensor<64xf32>) -> tensor<64x1xf32>
  %7 = "smelt.broadcast"(%6) {shape = array<i64: 64, 128>} : (tensor<64x1xf32>) -> tensor<64x128xf32>
  %8 = "smelt.div"(%4, %7) : (tensor<64x128xf32>, tensor<64x128xf32>) -> tensor<64x128xf32>
  return %8 : tensor<64x128xf32>
}

// Two results of one kernel.
// CHECK-LABEL: func.func @siblings(
// CHECK-NEXT: %[[R:.*]]:2 = call @fused_{{.*}}(%arg0)
// CHECK-NEXT: return %[[R]]#{{[01]}}, %[[R]]#{{[01]}} :
func.func @siblings(%x: tensor<64x128xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %0 = "smelt.reduce_sum"(%x) {axes = array<i64: 1>} : (tensor<64x128xf32>) -> tensor<64xf32>
  %1 = "smelt.reduce_max"(%x) {axes = array<i64: 1>} : (tensor<64x128xf32>) -> tensor<64xf32>
  return %0, %1 : tensor<64xf32>, tensor<64xf32>
}

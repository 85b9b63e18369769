// RUN: smelt-opt %s | smelt-opt - | filecheck %s

// CHECK-LABEL: func.func @gather(
// CHECK: "smelt.gather"(%{{.*}}, %{{.*}}) {axes = array<i64: 0>, slice_sizes = array<i64: 1, 3>} : (tensor<5x3xf32>, tensor<4xi32>) -> tensor<4x1x3xf32>
func.func @gather(%x: tensor<5x3xf32>, %i: tensor<4xi32>) -> (tensor<4x1x3xf32>) {
  %r = "smelt.gather"(%x, %i) {axes = array<i64: 0>, slice_sizes = array<i64: 1, 3>} : (tensor<5x3xf32>, tensor<4xi32>) -> tensor<4x1x3xf32>
  return %r : tensor<4x1x3xf32>
}

// CHECK-LABEL: func.func @scatter(
// CHECK: "smelt.scatter"(%{{.*}}, %{{.*}}, %{{.*}}) {axes = array<i64: 0>, mode = "add"} : (tensor<5x3xf32>, tensor<4x1x3xf32>, tensor<4xi32>) -> tensor<5x3xf32>
func.func @scatter(%x: tensor<5x3xf32>, %u: tensor<4x1x3xf32>, %i: tensor<4xi32>) -> (tensor<5x3xf32>) {
  %r = "smelt.scatter"(%x, %u, %i) {axes = array<i64: 0>, mode = "add"} : (tensor<5x3xf32>, tensor<4x1x3xf32>, tensor<4xi32>) -> tensor<5x3xf32>
  return %r : tensor<5x3xf32>
}

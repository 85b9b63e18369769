// Of ten elements of a long sort each tile keeps ten; a sort that is read whole stays.
// RUN: smelt-opt %s --select | filecheck %s
// RUN: smelt-opt %s --pass-pipeline='select{most=4}' | filecheck %s --check-prefix=FEW

// CHECK-LABEL: func.func @main
// CHECK-NOT: "smelt.sort"(%{{.*}}) {{.*}} : (tensor<100000xf32>)
// CHECK: "smelt.sort"(%{{.*}}) {axis = 1 : i64} : (tensor<50x2000xf32>)
// CHECK: "smelt.sort"(%{{.*}}) {axis = 0 : i64} : (tensor<500xf32>)
// CHECK: "smelt.argsort"(%{{.*}}) {axis = 0 : i64} : (tensor<100000xf32>)
// FEW: "smelt.sort"(%{{.*}}) {axis = 0 : i64} : (tensor<100000xf32>)

func.func @main(%x: tensor<100000xf32>) -> (tensor<10xf32>, tensor<100000xui32>) {
  %0 = "smelt.sort"(%x) {axis = 0 : i64} : (tensor<100000xf32>) -> tensor<100000xf32>
  %1 = "smelt.slice"(%0) {start = array<i64: 99990>, stop = array<i64: 100000>, stride = array<i64: 1>} : (tensor<100000xf32>) -> tensor<10xf32>
  %2 = "smelt.argsort"(%x) {axis = 0 : i64} : (tensor<100000xf32>) -> tensor<100000xui32>
  return %1, %2 : tensor<10xf32>, tensor<100000xui32>
}

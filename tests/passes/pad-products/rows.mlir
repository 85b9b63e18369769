// Products with 61 columns get 64; what goes over these finds nothing behind the last, and others read the first.
// RUN: smelt-opt %s --pass-pipeline='pad-products{work=0 reuse=16}' | filecheck %s
// RUN: smelt-opt %s --pass-pipeline='pad-products{work=0}' | filecheck %s --check-prefix=SMALL

// CHECK-LABEL: func.func @main
// CHECK: "smelt.pad"(%{{.*}}) {{.*}} -> tensor<16x64xbf16>
// CHECK: "smelt.dot_general"(%{{.*}}) {{.*}} -> tensor<80x64xbf16>
// CHECK: "smelt.slice"(%{{.*}}) {{.*}} -> tensor<80x61xbf16>
// CHECK: "smelt.select"(%{{.*}}) : {{.*}} -> tensor<80x64xf32>
// CHECK: "smelt.reduce_max"(%{{.*}}) {axes = array<i64: 1>} : (tensor<80x64xf32>) -> tensor<80xf32>
// CHECK: "smelt.exp"(%[[SHIFTED:.*]]) : (tensor<80x64xf32>) -> tensor<80x64xf32>
// CHECK-NOT: "smelt.select"
// CHECK: "smelt.reduce_sum"(%{{.*}}) {axes = array<i64: 1>} : (tensor<80x64xf32>) -> tensor<80xf32>
// CHECK: "smelt.pad"(%{{.*}}) {{.*}} -> tensor<64x16xbf16>
// CHECK: "smelt.dot_general"(%{{.*}}) {{.*}} : (tensor<80x64xbf16>, tensor<64x16xbf16>) -> tensor<80x16xbf16>
// SMALL-NOT: tensor<80x64xbf16>

func.func @main(%x: tensor<80x16xbf16>, %w: tensor<16x61xbf16>, %v: tensor<61x16xbf16>) -> (tensor<80x61xbf16>, tensor<80xf32>, tensor<80x16xbf16>) {
  %0 = "smelt.dot_general"(%x, %w) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<80x16xbf16>, tensor<16x61xbf16>) -> tensor<80x61xbf16>
  %1 = "smelt.convert"(%0) {dtype = f32} : (tensor<80x61xbf16>) -> tensor<80x61xf32>
  %2 = "smelt.reduce_max"(%1) {axes = array<i64: 1>} : (tensor<80x61xf32>) -> tensor<80xf32>
  %3 = "smelt.reshape"(%2) {shape = array<i64: 80, 1>} : (tensor<80xf32>) -> tensor<80x1xf32>
  %4 = "smelt.broadcast"(%3) {shape = array<i64: 80, 61>} : (tensor<80x1xf32>) -> tensor<80x61xf32>
  %5 = "smelt.sub"(%1, %4) : (tensor<80x61xf32>, tensor<80x61xf32>) -> tensor<80x61xf32>
  %6 = "smelt.exp"(%5) : (tensor<80x61xf32>) -> tensor<80x61xf32>
  %7 = "smelt.reduce_sum"(%6) {axes = array<i64: 1>} : (tensor<80x61xf32>) -> tensor<80xf32>
  %8 = "smelt.convert"(%6) {dtype = bf16} : (tensor<80x61xf32>) -> tensor<80x61xbf16>
  %9 = "smelt.dot_general"(%8, %v) {lhs_batch = array<i64>, lhs_contracting = array<i64: 1>, rhs_batch = array<i64>, rhs_contracting = array<i64: 0>} : (tensor<80x61xbf16>, tensor<61x16xbf16>) -> tensor<80x16xbf16>
  return %0, %7, %9 : tensor<80x61xbf16>, tensor<80xf32>, tensor<80x16xbf16>
}

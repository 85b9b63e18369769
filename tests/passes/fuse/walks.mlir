// Reductions stay apart where joining would make a kernel walk its largest arrays in a worse order.
// RUN: smelt-opt %s --fuse | filecheck %s

// The squares of a few centres, for every row of distances: rows of %c are contiguous, columns of %d are not.
// CHECK-LABEL: func.func @centres(
// CHECK-NEXT: %[[S:.*]] = call @[[A:.*]](%arg1) : (tensor<256x64xf32>) -> tensor<256xf32>
// CHECK-NEXT: call @{{.*}}(%[[S]], %arg0) : (tensor<256xf32>, tensor<50000x256xf32>) -> tensor<50000x256xf32>
func.func @centres(%d: tensor<50000x256xf32>, %c: tensor<256x64xf32>) -> tensor<50000x256xf32> {
  %0 = "smelt.mul"(%c, %c) : (tensor<256x64xf32>, tensor<256x64xf32>) -> tensor<256x64xf32>
  %1 = "smelt.reduce_sum"(%0) {axes = array<i64: 1>} : (tensor<256x64xf32>) -> tensor<256xf32>
  %2 = "smelt.broadcast"(%1) {shape = array<i64: 50000, 256>} : (tensor<256xf32>) -> tensor<50000x256xf32>
  %3 = "smelt.add"(%d, %2) : (tensor<50000x256xf32>, tensor<50000x256xf32>) -> tensor<50000x256xf32>
  return %3 : tensor<50000x256xf32>
}

// The other way round: columns are contiguous, and the rows of the result are not.
// CHECK-LABEL: func.func @columns_of_rows(
// CHECK-NEXT: call @{{.*}}(%arg1) : (tensor<64x50000xf32>) -> tensor<50000xf32>
func.func @columns_of_rows(%d: tensor<50000x256xf32>, %c: tensor<64x50000xf32>) -> tensor<50000x256xf32> {
  %0 = "smelt.reduce_max"(%c) {axes = array<i64: 0>} : (tensor<64x50000xf32>) -> tensor<50000xf32>
  %1 = "smelt.reshape"(%0) {shape = array<i64: 50000, 1>} : (tensor<50000xf32>) -> tensor<50000x1xf32>
  %2 = "smelt.broadcast"(%1) {shape = array<i64: 50000, 256>} : (tensor<50000x1xf32>) -> tensor<50000x256xf32>
  %3 = "smelt.add"(%d, %2) : (tensor<50000x256xf32>, tensor<50000x256xf32>) -> tensor<50000x256xf32>
  return %3 : tensor<50000x256xf32>
}

// A few lines reduced for all columns: the large array is no longer walked line by line.
// CHECK-LABEL: func.func @few_lines(
// CHECK-NEXT: call @{{.*}}(%arg1) : (tensor<64x256xf32>) -> tensor<256xf32>
func.func @few_lines(%d: tensor<50000x256xf32>, %c: tensor<64x256xf32>) -> tensor<50000x256xf32> {
  %0 = "smelt.reduce_sum"(%c) {axes = array<i64: 0>} : (tensor<64x256xf32>) -> tensor<256xf32>
  %1 = "smelt.broadcast"(%0) {shape = array<i64: 50000, 256>} : (tensor<256xf32>) -> tensor<50000x256xf32>
  %2 = "smelt.add"(%d, %1) : (tensor<50000x256xf32>, tensor<50000x256xf32>) -> tensor<50000x256xf32>
  return %2 : tensor<50000x256xf32>
}

// Columns whose elements are read again are one kernel: that saves reading them from memory.
// CHECK-LABEL: func.func @standardized_columns(
// CHECK-NEXT: %[[R:.*]] = call @{{.*}}(%arg0) : (tensor<5000x4096xf32>) -> tensor<5000x4096xf32>
// CHECK-NEXT: return %[[R]]
func.func @standardized_columns(%d: tensor<5000x4096xf32>) -> tensor<5000x4096xf32> {
  %0 = "smelt.reduce_max"(%d) {axes = array<i64: 0>} : (tensor<5000x4096xf32>) -> tensor<4096xf32>
  %1 = "smelt.broadcast"(%0) {shape = array<i64: 5000, 4096>} : (tensor<4096xf32>) -> tensor<5000x4096xf32>
  %2 = "smelt.sub"(%d, %1) : (tensor<5000x4096xf32>, tensor<5000x4096xf32>) -> tensor<5000x4096xf32>
  return %2 : tensor<5000x4096xf32>
}

// Rows of both are contiguous.
// CHECK-LABEL: func.func @rows(
// CHECK-NEXT: %[[R:.*]] = call @{{.*}}(%arg{{[01]}}, %arg{{[01]}}) : {{.*}} -> tensor<50000x256xf32>
// CHECK-NEXT: return %[[R]]
func.func @rows(%d: tensor<50000x256xf32>, %c: tensor<50000x64xf32>) -> tensor<50000x256xf32> {
  %0 = "smelt.reduce_sum"(%c) {axes = array<i64: 1>} : (tensor<50000x64xf32>) -> tensor<50000xf32>
  %1 = "smelt.reshape"(%0) {shape = array<i64: 50000, 1>} : (tensor<50000xf32>) -> tensor<50000x1xf32>
  %2 = "smelt.broadcast"(%1) {shape = array<i64: 50000, 256>} : (tensor<50000x1xf32>) -> tensor<50000x256xf32>
  %3 = "smelt.add"(%d, %2) : (tensor<50000x256xf32>, tensor<50000x256xf32>) -> tensor<50000x256xf32>
  return %3 : tensor<50000x256xf32>
}

// So are those of an array that the kernel will be found to read only when more has joined.
// CHECK-LABEL: func.func @read_later(
// CHECK-NEXT: %[[R:.*]] = call @{{.*}}(%arg{{[01]}}, %arg{{[01]}}) : {{.*}} -> tensor<5000x4096xf32>
// CHECK-NEXT: return %[[R]]
func.func @read_later(%d: tensor<5000x4096xf32>, %e: tensor<5000x4096xf32>) -> tensor<5000x4096xf32> {
  %0 = "smelt.mul"(%d, %e) : (tensor<5000x4096xf32>, tensor<5000x4096xf32>) -> tensor<5000x4096xf32>
  %1 = "smelt.add"(%0, %e) : (tensor<5000x4096xf32>, tensor<5000x4096xf32>) -> tensor<5000x4096xf32>
  %2 = "smelt.reduce_sum"(%d) {axes = array<i64: 0>} : (tensor<5000x4096xf32>) -> tensor<4096xf32>
  %3 = "smelt.broadcast"(%2) {shape = array<i64: 5000, 4096>} : (tensor<4096xf32>) -> tensor<5000x4096xf32>
  %4 = "smelt.sub"(%1, %3) : (tensor<5000x4096xf32>, tensor<5000x4096xf32>) -> tensor<5000x4096xf32>
  return %4 : tensor<5000x4096xf32>
}

// Branches and loops over a batch axis.
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,batch),canonicalize,cse,dce' | filecheck %s

func.func private @double(%x: tensor<f32>) -> tensor<f32> {
  %0 = "smelt.add"(%x, %x) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
func.func private @square(%x: tensor<f32>) -> tensor<f32> {
  %0 = "smelt.mul"(%x, %x) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
func.func private @either(%p: tensor<i1>, %x: tensor<f32>) -> tensor<f32> {
  %c = tensor.extract %p[] : tensor<i1>
  %0 = scf.if %c -> (tensor<f32>) {
    %1 = func.call @double(%x) : (tensor<f32>) -> tensor<f32>
    scf.yield %1 : tensor<f32>
  } else {
    %1 = func.call @square(%x) : (tensor<f32>) -> tensor<f32>
    scf.yield %1 : tensor<f32>
  }
  return %0 : tensor<f32>
}

// Doubles x until it is above a limit.
func.func private @below(%limit: tensor<f32>, %x: tensor<f32>) -> tensor<i1> {
  %0 = "smelt.less"(%x, %limit) : (tensor<f32>, tensor<f32>) -> tensor<i1>
  return %0 : tensor<i1>
}
func.func private @next(%limit: tensor<f32>, %x: tensor<f32>) -> tensor<f32> {
  %0 = "smelt.add"(%x, %x) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
// Carried is also which elements still run: those that are done keep their value.
// CHECK-LABEL: func.func private @below_batch(
// CHECK-NEXT: %[[V0:.*]] = "smelt.reduce_any"(%arg1) {axes = array<i64: 0>} : (tensor<8xi1>) -> tensor<i1>
// CHECK-NEXT: return %[[V0]] : tensor<i1>
// CHECK-LABEL: func.func private @next_batch(
// CHECK-NEXT: %[[V0:.*]] = "smelt.add"(%arg2, %arg2) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.select"(%arg1, %[[V0]], %arg2) : (tensor<8xi1>, tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT: %[[V2:.*]] = "smelt.broadcast"(%arg0) {shape = array<i64: 8>} : (tensor<f32>) -> tensor<8xf32>
// CHECK-NEXT: %[[V3:.*]] = "smelt.less"(%[[V1]], %[[V2]]) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1>
// CHECK-NEXT: %[[V4:.*]] = "smelt.logical_and"(%arg1, %[[V3]]) : (tensor<8xi1>, tensor<8xi1>) -> tensor<8xi1>
// CHECK-NEXT: return %[[V4]], %[[V1]] : tensor<8xi1>, tensor<8xf32>
func.func private @grow(%limit: tensor<f32>, %x: tensor<f32>) -> tensor<f32> {
  %0 = scf.while (%s = %x) : (tensor<f32>) -> tensor<f32> {
    %1 = func.call @below(%limit, %s) : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %2 = tensor.extract %1[] : tensor<i1>
    scf.condition(%2) %s : tensor<f32>
  } do {
  ^bb0(%s: tensor<f32>):
    %1 = func.call @next(%limit, %s) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    scf.yield %1 : tensor<f32>
  }
  return %0 : tensor<f32>
}

// The product so far: a scan of 5 steps.
func.func private @times(%c: tensor<f32>, %x: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  %0 = "smelt.mul"(%c, %x) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %0, %0 : tensor<f32>, tensor<f32>
}
// CHECK-LABEL: func.func private @times_batch(
// CHECK-NEXT: %[[V0:.*]] = "smelt.mul"(%arg0, %arg1) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT: return %[[V0]], %[[V0]] : tensor<8xf32>, tensor<8xf32>
func.func private @products(%c: tensor<f32>, %xs: tensor<5xf32>) -> tensor<5xf32> {
  %c0 = arith.constant 0 : index
  %c5 = arith.constant 5 : index
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<5xf32>
  %r:2 = scf.for %i = %c0 to %c5 step %c1 iter_args(%s = %c, %ys = %e) -> (tensor<f32>, tensor<5xf32>) {
    %x = tensor.extract_slice %xs[%i] [1] [1] : tensor<5xf32> to tensor<f32>
    %1:2 = func.call @times(%s, %x) : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
    %2 = tensor.insert_slice %1#1 into %ys[%i] [1] [1] : tensor<f32> into tensor<5xf32>
    scf.yield %1#0, %2 : tensor<f32>, tensor<5xf32>
  } {smelt.carries = 1 : i64, smelt.constants = 0 : i64}
  return %r#1 : tensor<5xf32>
}

// One condition for all stays a branch.
// CHECK-LABEL: func.func @one_index(
// CHECK-NEXT: %[[VEXTRACTED:.*]] = tensor.extract %arg0[] : tensor<i1>
// CHECK-NEXT: %[[V0:.*]] = scf.if %[[VEXTRACTED]] -> (tensor<8xf32>) {
// CHECK-NEXT: %[[V1:.*]] = func.call @double_batch(%arg1) : (tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT: scf.yield %[[V1]] : tensor<8xf32>
// CHECK-NEXT: } else {
// CHECK-NEXT: %[[V1:.*]] = func.call @square_batch(%arg1) : (tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT: scf.yield %[[V1]] : tensor<8xf32>
// CHECK-NEXT: }
// CHECK-NEXT: return %[[V0]] : tensor<8xf32>
func.func @one_index(%p: tensor<i1>, %x: tensor<8xf32>) -> tensor<8xf32> {
  %f = func.constant @either : (tensor<i1>, tensor<f32>) -> tensor<f32>
  %v = "smelt.batch"(%f) {size = 8 : i64, in_axes = array<i64: -1, 0>, out_axes = array<i64: 0>} : ((tensor<i1>, tensor<f32>) -> tensor<f32>) -> ((tensor<i1>, tensor<8xf32>) -> tensor<8xf32>)
  %r = func.call_indirect %v(%p, %x) : (tensor<i1>, tensor<8xf32>) -> tensor<8xf32>
  return %r : tensor<8xf32>
}

// With a condition each, both branches run.
// CHECK-LABEL: func.func @each_index(
// CHECK-NEXT: %[[V0:.*]] = "smelt.add"(%arg1, %arg1) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.mul"(%arg1, %arg1) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT: %[[V2:.*]] = "smelt.select"(%arg0, %[[V0]], %[[V1]]) : (tensor<8xi1>, tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT: return %[[V2]] : tensor<8xf32>
func.func @each_index(%p: tensor<8xi1>, %x: tensor<8xf32>) -> tensor<8xf32> {
  %f = func.constant @either : (tensor<i1>, tensor<f32>) -> tensor<f32>
  %v = "smelt.batch"(%f) {size = 8 : i64, in_axes = array<i64: 0, 0>, out_axes = array<i64: 0>} : ((tensor<i1>, tensor<f32>) -> tensor<f32>) -> ((tensor<8xi1>, tensor<8xf32>) -> tensor<8xf32>)
  %r = func.call_indirect %v(%p, %x) : (tensor<8xi1>, tensor<8xf32>) -> tensor<8xf32>
  return %r : tensor<8xf32>
}

// The loop runs as long as any element needs it.
// CHECK-LABEL: func.func @loop(
// CHECK-NEXT: %[[V0:.*]] = "smelt.broadcast"(%arg0) {shape = array<i64: 8>} : (tensor<f32>) -> tensor<8xf32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.less"(%arg1, %[[V0]]) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1>
// CHECK-NEXT: %[[V2:.*]]:2 = scf.while (%arg2 = %[[V1]], %arg3 = %arg1) : (tensor<8xi1>, tensor<8xf32>) -> (tensor<8xi1>, tensor<8xf32>) {
// CHECK-NEXT: %[[V3:.*]] = func.call @below_batch(%arg0, %arg2, %arg3) : (tensor<f32>, tensor<8xi1>, tensor<8xf32>) -> tensor<i1>
// CHECK-NEXT: %[[VEXTRACTED:.*]] = tensor.extract %[[V3]]{{\[\]}} : tensor<i1>
// CHECK-NEXT: scf.condition(%[[VEXTRACTED]]) %arg2, %arg3 : tensor<8xi1>, tensor<8xf32>
// CHECK-NEXT: } do {
// CHECK-NEXT: ^bb0(%arg2: tensor<8xi1>, %arg3: tensor<8xf32>):
// CHECK-NEXT: %[[V3:.*]]:2 = func.call @next_batch(%arg0, %arg2, %arg3) : (tensor<f32>, tensor<8xi1>, tensor<8xf32>) -> (tensor<8xi1>, tensor<8xf32>)
// CHECK-NEXT: scf.yield %[[V3]]#0, %[[V3]]#1 : tensor<8xi1>, tensor<8xf32>
// CHECK-NEXT: }
// CHECK-NEXT: return %[[V2]]#1 : tensor<8xf32>
func.func @loop(%limit: tensor<f32>, %x: tensor<8xf32>) -> tensor<8xf32> {
  %f = func.constant @grow : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %v = "smelt.batch"(%f) {size = 8 : i64, in_axes = array<i64: -1, 0>, out_axes = array<i64: 0>} : ((tensor<f32>, tensor<f32>) -> tensor<f32>) -> ((tensor<f32>, tensor<8xf32>) -> tensor<8xf32>)
  %r = func.call_indirect %v(%limit, %x) : (tensor<f32>, tensor<8xf32>) -> tensor<8xf32>
  return %r : tensor<8xf32>
}

// The step stays in front, the batch axis comes next; the carry gets one because the xs have one.
// CHECK-LABEL: func.func @scan(
// CHECK-NEXT: %[[V0:.*]] = "smelt.broadcast"(%arg0) {shape = array<i64: 8>} : (tensor<f32>) -> tensor<8xf32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.transpose"(%arg1) {permutation = array<i64: 1, 0>} : (tensor<8x5xf32>) -> tensor<5x8xf32>
// CHECK-NEXT: %[[VC0:.*]] = arith.constant 0 : index
// CHECK-NEXT: %[[VC5:.*]] = arith.constant 5 : index
// CHECK-NEXT: %[[VC1:.*]] = arith.constant 1 : index
// CHECK-NEXT: %[[V2:.*]] = tensor.empty() : tensor<5x8xf32>
// CHECK-NEXT: %[[V3:.*]]:2 = scf.for %arg2 = %[[VC0]] to %[[VC5]] step %[[VC1]] iter_args(%arg3 = %[[V0]], %arg4 = %[[V2]]) -> (tensor<8xf32>, tensor<5x8xf32>) {
// CHECK-NEXT: %[[VEXTRACTED_SLICE:.*]] = tensor.extract_slice %[[V1]]{{\[}}%arg2, 0] [1, 8] [1, 1] : tensor<5x8xf32> to tensor<8xf32>
// CHECK-NEXT: %[[V5:.*]]:2 = func.call @times_batch(%arg3, %[[VEXTRACTED_SLICE]]) : (tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
// CHECK-NEXT: %[[VINSERTED_SLICE:.*]] = tensor.insert_slice %[[V5]]#1 into %arg4[%arg2, 0] [1, 8] [1, 1] : tensor<8xf32> into tensor<5x8xf32>
// CHECK-NEXT: scf.yield %[[V5]]#0, %[[VINSERTED_SLICE]] : tensor<8xf32>, tensor<5x8xf32>
// CHECK-NEXT: } {smelt.carries = 1 : i64, smelt.constants = 0 : i64}
// CHECK-NEXT: %[[V4:.*]] = "smelt.transpose"(%[[V3]]#1) {permutation = array<i64: 1, 0>} : (tensor<5x8xf32>) -> tensor<8x5xf32>
// CHECK-NEXT: return %[[V4]] : tensor<8x5xf32>
func.func @scan(%c: tensor<f32>, %xs: tensor<8x5xf32>) -> tensor<8x5xf32> {
  %f = func.constant @products : (tensor<f32>, tensor<5xf32>) -> tensor<5xf32>
  %v = "smelt.batch"(%f) {size = 8 : i64, in_axes = array<i64: -1, 0>, out_axes = array<i64: 0>} : ((tensor<f32>, tensor<5xf32>) -> tensor<5xf32>) -> ((tensor<f32>, tensor<8x5xf32>) -> tensor<8x5xf32>)
  %r = func.call_indirect %v(%c, %xs) : (tensor<f32>, tensor<8x5xf32>) -> tensor<8x5xf32>
  return %r : tensor<8x5xf32>
}

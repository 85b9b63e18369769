// Scan (scf.for with smelt.carries): forward mode, reverse mode, and the values of both (checked by finite differences).
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,jvp,linearize,transpose),canonicalize,cse,dce' | filecheck %s
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,jvp,linearize,transpose)' --execute | filecheck %s --check-prefix=VALUE

// c, y = sin(c) * w + x, c * x. Both modes differentiate in w, c and xs.
func.func private @body(%w: tensor<f64>, %c: tensor<f64>, %x: tensor<f64>) -> (tensor<f64>, tensor<f64>) {
  %0 = "smelt.sin"(%c) : (tensor<f64>) -> tensor<f64>
  %1 = "smelt.mul"(%0, %w) : (tensor<f64>, tensor<f64>) -> tensor<f64>
  %2 = "smelt.add"(%1, %x) : (tensor<f64>, tensor<f64>) -> tensor<f64>
  %3 = "smelt.mul"(%c, %x) : (tensor<f64>, tensor<f64>) -> tensor<f64>
  return %2, %3 : tensor<f64>, tensor<f64>
}
func.func private @f(%w: tensor<f64>, %c: tensor<f64>, %xs: tensor<4xf64>) -> (tensor<f64>, tensor<4xf64>) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c1 = arith.constant 1 : index
  %empty = tensor.empty() : tensor<4xf64>
  %0:2 = scf.for %i = %c0 to %c4 step %c1 iter_args(%carry = %c, %ys = %empty) -> (tensor<f64>, tensor<4xf64>) {
    %x = tensor.extract_slice %xs[%i] [1] [1] : tensor<4xf64> to tensor<f64>
    %1:2 = func.call @body(%w, %carry, %x) : (tensor<f64>, tensor<f64>, tensor<f64>) -> (tensor<f64>, tensor<f64>)
    %put = tensor.insert_slice %1#1 into %ys[%i] [1] [1] : tensor<f64> into tensor<4xf64>
    scf.yield %1#0, %put : tensor<f64>, tensor<4xf64>
  } {smelt.carries = 1 : i64, smelt.constants = 1 : i64}
  return %0#0, %0#1 : tensor<f64>, tensor<4xf64>
}

// One loop carries the pair.
// CHECK-LABEL: func.func private @body_jvp(
// CHECK-NEXT: %[[V0:.*]] = "smelt.sin"(%arg2) : (tensor<f64>) -> tensor<f64>
// CHECK-NEXT: %[[V1:.*]] = "smelt.cos"(%arg2) : (tensor<f64>) -> tensor<f64>
// CHECK-NEXT: %[[V2:.*]] = "smelt.mul"(%arg3, %[[V1]]) : (tensor<f64>, tensor<f64>) -> tensor<f64>
// CHECK-NEXT: %[[V3:.*]] = "smelt.mul"(%[[V0]], %arg0) : (tensor<f64>, tensor<f64>) -> tensor<f64>
// CHECK-NEXT: %[[V4:.*]] = "smelt.mul"(%[[V2]], %arg0) : (tensor<f64>, tensor<f64>) -> tensor<f64>
// CHECK-NEXT: %[[V5:.*]] = "smelt.mul"(%[[V0]], %arg1) : (tensor<f64>, tensor<f64>) -> tensor<f64>
// CHECK-NEXT: %[[V6:.*]] = "smelt.add"(%[[V4]], %[[V5]]) : (tensor<f64>, tensor<f64>) -> tensor<f64>
// CHECK-NEXT: %[[V7:.*]] = "smelt.add"(%[[V3]], %arg4) : (tensor<f64>, tensor<f64>) -> tensor<f64>
// CHECK-NEXT: %[[V8:.*]] = "smelt.add"(%[[V6]], %arg5) : (tensor<f64>, tensor<f64>) -> tensor<f64>
// CHECK-NEXT: %[[V9:.*]] = "smelt.mul"(%arg3, %arg4) : (tensor<f64>, tensor<f64>) -> tensor<f64>
// CHECK-NEXT: %[[V10:.*]] = "smelt.mul"(%arg2, %arg5) : (tensor<f64>, tensor<f64>) -> tensor<f64>
// CHECK-NEXT: %[[V11:.*]] = "smelt.add"(%[[V9]], %[[V10]]) : (tensor<f64>, tensor<f64>) -> tensor<f64>
// CHECK-NEXT: return %[[V7]], %[[V8]], %[[V11]] : tensor<f64>, tensor<f64>, tensor<f64>

// The primal loop keeps sin(c), cos(c) and c of each step; x is there anyway.
// CHECK-LABEL: func.func private @body_primal(
// CHECK-NEXT: %[[V0:.*]] = "smelt.sin"(%arg1) : (tensor<f64>) -> tensor<f64>
// CHECK-NEXT: %[[V1:.*]] = "smelt.cos"(%arg1) : (tensor<f64>) -> tensor<f64>
// CHECK-NEXT: %[[V2:.*]] = "smelt.mul"(%[[V0]], %arg0) : (tensor<f64>, tensor<f64>) -> tensor<f64>
// CHECK-NEXT: %[[V3:.*]] = "smelt.add"(%[[V2]], %arg2) : (tensor<f64>, tensor<f64>) -> tensor<f64>
// CHECK-NEXT: return %[[V3]], %[[V1]], %[[V0]], %arg1 : tensor<f64>, tensor<f64>, tensor<f64>, tensor<f64>

// The cotangent of w is summed up in a carry.
// CHECK-LABEL: func.func private @body_tangent_transpose(
// CHECK-NEXT: %[[V0:.*]] = "smelt.mul"(%arg7, %arg6) : (tensor<f64>, tensor<f64>) -> tensor<f64>
// CHECK-NEXT: %[[V1:.*]] = "smelt.mul"(%arg7, %arg5) : (tensor<f64>, tensor<f64>) -> tensor<f64>
// CHECK-NEXT: %[[V2:.*]] = "smelt.add"(%[[V0]], %arg2) : (tensor<f64>, tensor<f64>) -> tensor<f64>
// CHECK-NEXT: %[[V3:.*]] = "smelt.mul"(%arg2, %arg4) : (tensor<f64>, tensor<f64>) -> tensor<f64>
// CHECK-NEXT: %[[V4:.*]] = "smelt.mul"(%arg2, %arg0) : (tensor<f64>, tensor<f64>) -> tensor<f64>
// CHECK-NEXT: %[[V5:.*]] = "smelt.mul"(%[[V4]], %arg3) : (tensor<f64>, tensor<f64>) -> tensor<f64>
// CHECK-NEXT: %[[V6:.*]] = "smelt.add"(%[[V1]], %[[V5]]) : (tensor<f64>, tensor<f64>) -> tensor<f64>
// CHECK-NEXT: %[[V7:.*]] = "smelt.add"(%arg1, %[[V3]]) : (tensor<f64>, tensor<f64>) -> tensor<f64>
// CHECK-NEXT: return %[[V7]], %[[V6]], %[[V2]] : tensor<f64>, tensor<f64>, tensor<f64>

// CHECK-LABEL: func.func @forward(
// CHECK-NEXT: %[[VC0:.*]] = arith.constant 0 : index
// CHECK-NEXT: %[[VC4:.*]] = arith.constant 4 : index
// CHECK-NEXT: %[[VC1:.*]] = arith.constant 1 : index
// CHECK-NEXT: %[[V0:.*]] = tensor.empty() : tensor<4xf64>
// CHECK-NEXT: %[[V1:.*]]:3 = scf.for %arg6 = %[[VC0]] to %[[VC4]] step %[[VC1]] iter_args(%arg7 = %arg1, %arg8 = %arg4, %arg9 = %[[V0]]) -> (tensor<f64>, tensor<f64>, tensor<4xf64>) {
// CHECK-NEXT: %[[VEXTRACTED_SLICE:.*]] = tensor.extract_slice %arg2[%arg6] [1] [1] : tensor<4xf64> to tensor<f64>
// CHECK-NEXT: %[[VEXTRACTED_SLICE_0:.*]] = tensor.extract_slice %arg5[%arg6] [1] [1] : tensor<4xf64> to tensor<f64>
// CHECK-NEXT: %[[V2:.*]]:3 = func.call @body_jvp(%arg0, %arg3, %arg7, %arg8, %[[VEXTRACTED_SLICE]], %[[VEXTRACTED_SLICE_0]]) : (tensor<f64>, tensor<f64>, tensor<f64>, tensor<f64>, tensor<f64>, tensor<f64>) -> (tensor<f64>, tensor<f64>, tensor<f64>)
// CHECK-NEXT: %[[VINSERTED_SLICE:.*]] = tensor.insert_slice %[[V2]]#2 into %arg9[%arg6] [1] [1] : tensor<f64> into tensor<4xf64>
// CHECK-NEXT: scf.yield %[[V2]]#0, %[[V2]]#1, %[[VINSERTED_SLICE]] : tensor<f64>, tensor<f64>, tensor<4xf64>
// CHECK-NEXT: } {smelt.carries = 2 : i64, smelt.constants = 2 : i64}
// CHECK-NEXT: return %[[V1]]#1, %[[V1]]#2 : tensor<f64>, tensor<4xf64>
func.func @forward(%w: tensor<f64>, %c: tensor<f64>, %xs: tensor<4xf64>, %tw: tensor<f64>, %tc: tensor<f64>, %txs: tensor<4xf64>) -> (tensor<f64>, tensor<4xf64>) {
  %f = constant @f : (tensor<f64>, tensor<f64>, tensor<4xf64>) -> (tensor<f64>, tensor<4xf64>)
  %0 = "smelt.jvp"(%f) {wrt = array<i64: 0, 1, 2>} : ((tensor<f64>, tensor<f64>, tensor<4xf64>) -> (tensor<f64>, tensor<4xf64>)) -> ((tensor<f64>, tensor<f64>, tensor<4xf64>, tensor<f64>, tensor<f64>, tensor<4xf64>) -> (tensor<f64>, tensor<4xf64>, tensor<f64>, tensor<4xf64>))
  %1:4 = call_indirect %0(%w, %c, %xs, %tw, %tc, %txs) : (tensor<f64>, tensor<f64>, tensor<4xf64>, tensor<f64>, tensor<f64>, tensor<4xf64>) -> (tensor<f64>, tensor<4xf64>, tensor<f64>, tensor<4xf64>)
  return %1#2, %1#3 : tensor<f64>, tensor<4xf64>
}

// CHECK-LABEL: func.func @reverse(
// CHECK-NEXT: %[[VC0:.*]] = arith.constant 0 : index
// CHECK-NEXT: %[[VC4:.*]] = arith.constant 4 : index
// CHECK-NEXT: %[[VC1:.*]] = arith.constant 1 : index
// CHECK-NEXT: %[[V0:.*]] = tensor.empty() : tensor<4xf64>
// CHECK-NEXT: %[[V1:.*]] = tensor.empty() : tensor<4xf64>
// CHECK-NEXT: %[[V2:.*]] = tensor.empty() : tensor<4xf64>
// CHECK-NEXT: %[[V3:.*]]:4 = scf.for %arg5 = %[[VC0]] to %[[VC4]] step %[[VC1]] iter_args(%arg6 = %arg1, %arg7 = %[[V0]], %arg8 = %[[V1]], %arg9 = %[[V2]]) -> (tensor<f64>, tensor<4xf64>, tensor<4xf64>, tensor<4xf64>) {
// CHECK-NEXT: %[[VEXTRACTED_SLICE:.*]] = tensor.extract_slice %arg2[%arg5] [1] [1] : tensor<4xf64> to tensor<f64>
// CHECK-NEXT: %[[V7:.*]]:4 = func.call @body_primal(%arg0, %arg6, %[[VEXTRACTED_SLICE]]) : (tensor<f64>, tensor<f64>, tensor<f64>) -> (tensor<f64>, tensor<f64>, tensor<f64>, tensor<f64>)
// CHECK-NEXT: %[[VINSERTED_SLICE:.*]] = tensor.insert_slice %[[V7]]#1 into %arg7[%arg5] [1] [1] : tensor<f64> into tensor<4xf64>
// CHECK-NEXT: %[[VINSERTED_SLICE_3:.*]] = tensor.insert_slice %[[V7]]#2 into %arg8[%arg5] [1] [1] : tensor<f64> into tensor<4xf64>
// CHECK-NEXT: %[[VINSERTED_SLICE_4:.*]] = tensor.insert_slice %[[V7]]#3 into %arg9[%arg5] [1] [1] : tensor<f64> into tensor<4xf64>
// CHECK-NEXT: scf.yield %[[V7]]#0, %[[VINSERTED_SLICE]], %[[VINSERTED_SLICE_3]], %[[VINSERTED_SLICE_4]] : tensor<f64>, tensor<4xf64>, tensor<4xf64>, tensor<4xf64>
// CHECK-NEXT: } {smelt.carries = 1 : i64, smelt.constants = 1 : i64}
// CHECK-NEXT: %[[V4:.*]] = "smelt.constant"() {dtype = f64, value = 0 : i64} : () -> tensor<f64>
// CHECK-NEXT: %[[VC0_0:.*]] = arith.constant 0 : index
// CHECK-NEXT: %[[VC4_1:.*]] = arith.constant 4 : index
// CHECK-NEXT: %[[VC1_2:.*]] = arith.constant 1 : index
// CHECK-NEXT: %[[VC3:.*]] = arith.constant 3 : index
// CHECK-NEXT: %[[V5:.*]] = tensor.empty() : tensor<4xf64>
// CHECK-NEXT: %[[V6:.*]]:3 = scf.for %arg5 = %[[VC0_0]] to %[[VC4_1]] step %[[VC1_2]] iter_args(%arg6 = %[[V4]], %arg7 = %arg3, %arg8 = %[[V5]]) -> (tensor<f64>, tensor<f64>, tensor<4xf64>) {
// CHECK-NEXT: %[[V7:.*]] = arith.subi %[[VC3]], %arg5 : index
// CHECK-NEXT: %[[VEXTRACTED_SLICE:.*]] = tensor.extract_slice %[[V3]]#1[%[[V7]]] [1] [1] : tensor<4xf64> to tensor<f64>
// CHECK-NEXT: %[[VEXTRACTED_SLICE_3:.*]] = tensor.extract_slice %[[V3]]#2[%[[V7]]] [1] [1] : tensor<4xf64> to tensor<f64>
// CHECK-NEXT: %[[VEXTRACTED_SLICE_4:.*]] = tensor.extract_slice %arg2[%[[V7]]] [1] [1] : tensor<4xf64> to tensor<f64>
// CHECK-NEXT: %[[VEXTRACTED_SLICE_5:.*]] = tensor.extract_slice %[[V3]]#3[%[[V7]]] [1] [1] : tensor<4xf64> to tensor<f64>
// CHECK-NEXT: %[[VEXTRACTED_SLICE_6:.*]] = tensor.extract_slice %arg4[%[[V7]]] [1] [1] : tensor<4xf64> to tensor<f64>
// CHECK-NEXT: %[[V8:.*]]:3 = func.call @body_tangent_transpose(%arg0, %arg6, %arg7, %[[VEXTRACTED_SLICE]], %[[VEXTRACTED_SLICE_3]], %[[VEXTRACTED_SLICE_4]], %[[VEXTRACTED_SLICE_5]], %[[VEXTRACTED_SLICE_6]]) : (tensor<f64>, tensor<f64>, tensor<f64>, tensor<f64>, tensor<f64>, tensor<f64>, tensor<f64>, tensor<f64>) -> (tensor<f64>, tensor<f64>, tensor<f64>)
// CHECK-NEXT: %[[VINSERTED_SLICE:.*]] = tensor.insert_slice %[[V8]]#2 into %arg8[%[[V7]]] [1] [1] : tensor<f64> into tensor<4xf64>
// CHECK-NEXT: scf.yield %[[V8]]#0, %[[V8]]#1, %[[VINSERTED_SLICE]] : tensor<f64>, tensor<f64>, tensor<4xf64>
// CHECK-NEXT: } {smelt.carries = 2 : i64, smelt.constants = 1 : i64}
// CHECK-NEXT: return %[[V6]]#0, %[[V6]]#1, %[[V6]]#2 : tensor<f64>, tensor<f64>, tensor<4xf64>
func.func @reverse(%w: tensor<f64>, %c: tensor<f64>, %xs: tensor<4xf64>, %cc: tensor<f64>, %cys: tensor<4xf64>) -> (tensor<f64>, tensor<f64>, tensor<4xf64>) {
  %f = constant @f : (tensor<f64>, tensor<f64>, tensor<4xf64>) -> (tensor<f64>, tensor<4xf64>)
  %0 = "smelt.vjp"(%f) {seeds = array<i64: 0, 1>, wrt = array<i64: 0, 1, 2>} : ((tensor<f64>, tensor<f64>, tensor<4xf64>) -> (tensor<f64>, tensor<4xf64>)) -> ((tensor<f64>, tensor<f64>, tensor<4xf64>, tensor<f64>, tensor<4xf64>) -> (tensor<f64>, tensor<4xf64>, tensor<f64>, tensor<f64>, tensor<4xf64>))
  %1:5 = call_indirect %0(%w, %c, %xs, %cc, %cys) : (tensor<f64>, tensor<f64>, tensor<4xf64>, tensor<f64>, tensor<4xf64>) -> (tensor<f64>, tensor<4xf64>, tensor<f64>, tensor<f64>, tensor<4xf64>)
  return %1#2, %1#3, %1#4 : tensor<f64>, tensor<f64>, tensor<4xf64>
}

// VALUE: dense<2.68306> : tensor<f64>
// VALUE-NEXT: dense<[1.09, 0.0200344, 0.336571, 3.3079]> : tensor<4xf64>
// VALUE-NEXT: dense<0.92866> : tensor<f64>
// VALUE-NEXT: dense<0.00201513> : tensor<f64>
// VALUE-NEXT: dense<[0.400305, 0.202896, -0.794631, 4.45908]> : tensor<4xf64>
func.func @main() -> (tensor<f64>, tensor<4xf64>, tensor<f64>, tensor<f64>, tensor<4xf64>) {
  %w = "smelt.constant"() {value = 1.3 : f64, dtype = f64} : () -> tensor<f64>
  %c = "smelt.constant"() {value = 0.7 : f64, dtype = f64} : () -> tensor<f64>
  %xs = "smelt.literal"() {value = dense<[0.3, -0.2, 0.5, 0.1]> : tensor<4xf64>} : () -> tensor<4xf64>
  %ts = "smelt.literal"() {value = dense<[1.0, 0.5, -1.0, 2.0]> : tensor<4xf64>} : () -> tensor<4xf64>
  %0:2 = call @forward(%w, %c, %xs, %c, %w, %ts) : (tensor<f64>, tensor<f64>, tensor<4xf64>, tensor<f64>, tensor<f64>, tensor<4xf64>) -> (tensor<f64>, tensor<4xf64>)
  %1:3 = call @reverse(%w, %c, %xs, %w, %ts) : (tensor<f64>, tensor<f64>, tensor<4xf64>, tensor<f64>, tensor<4xf64>) -> (tensor<f64>, tensor<f64>, tensor<4xf64>)
  return %0#0, %0#1, %1#0, %1#1, %1#2 : tensor<f64>, tensor<4xf64>, tensor<f64>, tensor<f64>, tensor<4xf64>
}

// Cond (scf.if, scf.index_switch): forward mode, reverse mode, and the values of both (checked by finite differences).
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,jvp,linearize,transpose),canonicalize,cse,dce' | filecheck %s
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,jvp,linearize,transpose)' --execute | filecheck %s --check-prefix=VALUE

// One branch keeps cos(x) for reverse mode, the other exp(x); no more than one of them runs, so one place will do.
func.func private @no(%x: tensor<3xf64>, %w: tensor<3xf64>) -> tensor<3xf64> {
  %0 = "smelt.sin"(%x) : (tensor<3xf64>) -> tensor<3xf64>
  return %0 : tensor<3xf64>
}
func.func private @yes(%x: tensor<3xf64>, %w: tensor<3xf64>) -> tensor<3xf64> {
  %0 = "smelt.exp"(%x) : (tensor<3xf64>) -> tensor<3xf64>
  %1 = "smelt.mul"(%0, %w) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  return %1 : tensor<3xf64>
}
func.func private @f(%p: tensor<i1>, %x: tensor<3xf64>, %w: tensor<3xf64>) -> tensor<3xf64> {
  %c = tensor.extract %p[] : tensor<i1>
  %0 = scf.if %c -> (tensor<3xf64>) {
    %1 = func.call @yes(%x, %w) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    scf.yield %1 : tensor<3xf64>
  } else {
    %1 = func.call @no(%x, %w) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    scf.yield %1 : tensor<3xf64>
  }
  return %0 : tensor<3xf64>
}

// CHECK-LABEL: func.func private @no_jvp(
// CHECK-NEXT: %[[V0:.*]] = "smelt.cos"(%arg0) : (tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V1:.*]] = "smelt.mul"(%arg2, %[[V0]]) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: return %[[V1]] : tensor<3xf64>

// CHECK-LABEL: func.func private @no_primal(
// CHECK-NEXT: %[[V0:.*]] = "smelt.cos"(%arg0) : (tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: return %[[V0]] : tensor<3xf64>

// CHECK-LABEL: func.func private @no_tangent_transpose(
// CHECK-NEXT: %[[V0:.*]] = "smelt.mul"(%arg2, %arg0) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V1:.*]] = "smelt.constant"() {dtype = f64, value = 0 : i64} : () -> tensor<f64>
// CHECK-NEXT: %[[V2:.*]] = "smelt.broadcast"(%[[V1]]) {shape = array<i64: 3>} : (tensor<f64>) -> tensor<3xf64>
// CHECK-NEXT: return %[[V0]], %[[V2]] : tensor<3xf64>, tensor<3xf64>

// CHECK-LABEL: func.func private @yes_jvp(
// CHECK-NEXT: %[[V0:.*]] = "smelt.exp"(%arg0) : (tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V1:.*]] = "smelt.mul"(%arg2, %[[V0]]) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V2:.*]] = "smelt.mul"(%[[V1]], %arg1) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V3:.*]] = "smelt.mul"(%[[V0]], %arg0) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V4:.*]] = "smelt.add"(%[[V2]], %[[V3]]) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: return %[[V4]] : tensor<3xf64>

// CHECK-LABEL: func.func private @yes_primal(
// CHECK-NEXT: %[[V0:.*]] = "smelt.exp"(%arg0) : (tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: return %[[V0]] : tensor<3xf64>

// CHECK-LABEL: func.func private @yes_tangent_transpose(
// CHECK-NEXT: %[[V0:.*]] = "smelt.mul"(%arg2, %arg0) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V1:.*]] = "smelt.mul"(%arg2, %arg1) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: %[[V2:.*]] = "smelt.mul"(%[[V1]], %arg0) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: return %[[V2]], %[[V0]] : tensor<3xf64>, tensor<3xf64>

// CHECK-LABEL: func.func @forward(
// CHECK-NEXT: %[[VEXTRACTED:.*]] = tensor.extract %arg0[] : tensor<i1>
// CHECK-NEXT: %[[V0:.*]] = scf.if %[[VEXTRACTED]] -> (tensor<3xf64>) {
// CHECK-NEXT: %[[V1:.*]] = func.call @yes_jvp_part(%arg1, %arg2, %arg3, %arg4) : (tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: scf.yield %[[V1]] : tensor<3xf64>
// CHECK-NEXT: } else {
// CHECK-NEXT: %[[V1:.*]] = func.call @no_jvp_part(%arg1, %arg2, %arg3, %arg4) : (tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: scf.yield %[[V1]] : tensor<3xf64>
// CHECK-NEXT: }
// CHECK-NEXT: return %[[V0]] : tensor<3xf64>
func.func @forward(%p: tensor<i1>, %x: tensor<3xf64>, %w: tensor<3xf64>, %tx: tensor<3xf64>, %tw: tensor<3xf64>) -> tensor<3xf64> {
  %f = constant @f : (tensor<i1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  %0 = "smelt.jvp"(%f) {wrt = array<i64: 1, 2>} : ((tensor<i1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>) -> ((tensor<i1>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>))
  %1:2 = call_indirect %0(%p, %x, %w, %tx, %tw) : (tensor<i1>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>)
  return %1#1 : tensor<3xf64>
}

// CHECK-LABEL: func.func @reverse(
// CHECK-NEXT: %[[VEXTRACTED:.*]] = tensor.extract %arg0[] : tensor<i1>
// CHECK-NEXT: %[[V0:.*]] = scf.if %[[VEXTRACTED]] -> (tensor<3xf64>) {
// CHECK-NEXT: %[[V2:.*]] = func.call @yes_primal(%arg1) : (tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: scf.yield %[[V2]] : tensor<3xf64>
// CHECK-NEXT: } else {
// CHECK-NEXT: %[[V2:.*]] = func.call @no_primal(%arg1) : (tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT: scf.yield %[[V2]] : tensor<3xf64>
// CHECK-NEXT: }
// CHECK-NEXT: %[[VEXTRACTED_0:.*]] = tensor.extract %arg0[] : tensor<i1>
// CHECK-NEXT: %[[V1:.*]]:2 = scf.if %[[VEXTRACTED_0]] -> (tensor<3xf64>, tensor<3xf64>) {
// CHECK-NEXT: %[[V2:.*]]:2 = func.call @yes_tangent_transpose(%[[V0]], %arg2, %arg3) : (tensor<3xf64>, tensor<3xf64>, tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>)
// CHECK-NEXT: scf.yield %[[V2]]#0, %[[V2]]#1 : tensor<3xf64>, tensor<3xf64>
// CHECK-NEXT: } else {
// CHECK-NEXT: %[[V2:.*]]:2 = func.call @no_tangent_transpose(%[[V0]], %arg2, %arg3) : (tensor<3xf64>, tensor<3xf64>, tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>)
// CHECK-NEXT: scf.yield %[[V2]]#0, %[[V2]]#1 : tensor<3xf64>, tensor<3xf64>
// CHECK-NEXT: }
// CHECK-NEXT: return %[[V1]]#0, %[[V1]]#1 : tensor<3xf64>, tensor<3xf64>
func.func @reverse(%p: tensor<i1>, %x: tensor<3xf64>, %w: tensor<3xf64>, %ct: tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>) {
  %f = constant @f : (tensor<i1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  %0 = "smelt.vjp"(%f) {seeds = array<i64: 0>, wrt = array<i64: 1, 2>} : ((tensor<i1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>) -> ((tensor<i1>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>, tensor<3xf64>))
  %1:3 = call_indirect %0(%p, %x, %w, %ct) : (tensor<i1>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>, tensor<3xf64>)
  return %1#1, %1#2 : tensor<3xf64>, tensor<3xf64>
}

// VALUE: dense<[0.955336, 0.490033, -0.877583]> : tensor<3xf64>
// VALUE-NEXT: dense<[2.42975, 0.0409365, 4.1218]> : tensor<3xf64>
// VALUE-NEXT: dense<[0.955336, 0.490033, -0.877583]> : tensor<3xf64>
// VALUE-NEXT: dense<[0.0, 0.0, 0.0]> : tensor<3xf64>
// VALUE-NEXT: dense<[2.02479, 0.204683, 3.29744]> : tensor<3xf64>
// VALUE-NEXT: dense<[1.34986, 0.409365, -1.64872]> : tensor<3xf64>
func.func @main() -> (tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>) {
  %no = "smelt.constant"() {value = false, dtype = i1} : () -> tensor<i1>
  %yes = "smelt.constant"() {value = true, dtype = i1} : () -> tensor<i1>
  %x = "smelt.literal"() {value = dense<[0.3, -0.2, 0.5]> : tensor<3xf64>} : () -> tensor<3xf64>
  %w = "smelt.literal"() {value = dense<[1.5, 0.5, -2.0]> : tensor<3xf64>} : () -> tensor<3xf64>
  %t = "smelt.literal"() {value = dense<[1.0, 0.5, -1.0]> : tensor<3xf64>} : () -> tensor<3xf64>
  %0 = call @forward(%no, %x, %w, %t, %x) : (tensor<i1>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  %1 = call @forward(%yes, %x, %w, %t, %x) : (tensor<i1>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  %2:2 = call @reverse(%no, %x, %w, %t) : (tensor<i1>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>)
  %3:2 = call @reverse(%yes, %x, %w, %t) : (tensor<i1>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>)
  return %0, %1, %2#0, %2#1, %3#0, %3#1 : tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>
}

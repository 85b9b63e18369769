// While (scf.while): forward mode, reverse mode, and the values of both (checked by finite differences). Reverse mode
// passes a loop whose tangents nobody needs; it refuses any other.
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,jvp,linearize,transpose),canonicalize,cse,dce' | filecheck %s
// RUN: smelt-opt %s --pass-pipeline='fixpoint(inline,jvp,linearize,transpose)' --execute | filecheck %s --check-prefix=VALUE

// while c < 10: c, n = c * w, n + 1
func.func private @below(%w: tensor<f64>, %c: tensor<f64>, %n: tensor<i32>) -> tensor<i1> {
  %0 = "smelt.constant"() {value = 10.0 : f64, dtype = f64} : () -> tensor<f64>
  %1 = "smelt.less"(%c, %0) : (tensor<f64>, tensor<f64>) -> tensor<i1>
  return %1 : tensor<i1>
}
func.func private @step(%w: tensor<f64>, %c: tensor<f64>, %n: tensor<i32>) -> (tensor<f64>, tensor<i32>) {
  %0 = "smelt.mul"(%c, %w) : (tensor<f64>, tensor<f64>) -> tensor<f64>
  %1 = "smelt.constant"() {value = 1 : i64, dtype = i32} : () -> tensor<i32>
  %2 = "smelt.add"(%n, %1) : (tensor<i32>, tensor<i32>) -> tensor<i32>
  return %0, %2 : tensor<f64>, tensor<i32>
}
func.func private @f(%w: tensor<f64>, %c: tensor<f64>) -> (tensor<f64>, tensor<i32>) {
  %zero = "smelt.constant"() {value = 0 : i64, dtype = i32} : () -> tensor<i32>
  %0:2 = scf.while (%a = %c, %n = %zero) : (tensor<f64>, tensor<i32>) -> (tensor<f64>, tensor<i32>) {
    %1 = func.call @below(%w, %a, %n) : (tensor<f64>, tensor<f64>, tensor<i32>) -> tensor<i1>
    %2 = tensor.extract %1[] : tensor<i1>
    scf.condition(%2) %a, %n : tensor<f64>, tensor<i32>
  } do {
  ^bb0(%a: tensor<f64>, %n: tensor<i32>):
    %1:2 = func.call @step(%w, %a, %n) : (tensor<f64>, tensor<f64>, tensor<i32>) -> (tensor<f64>, tensor<i32>)
    scf.yield %1#0, %1#1 : tensor<f64>, tensor<i32>
  }
  return %0#0, %0#1 : tensor<f64>, tensor<i32>
}
// w times the number of steps: the loop is no more than a residual.
func.func private @g(%w: tensor<f64>, %c: tensor<f64>) -> tensor<f64> {
  %0:2 = func.call @f(%w, %c) : (tensor<f64>, tensor<f64>) -> (tensor<f64>, tensor<i32>)
  %1 = "smelt.convert"(%0#1) {dtype = f64} : (tensor<i32>) -> tensor<f64>
  %2 = "smelt.mul"(%w, %1) : (tensor<f64>, tensor<f64>) -> tensor<f64>
  return %2 : tensor<f64>
}

// CHECK-LABEL: func.func private @below_jvp(
// CHECK-NEXT: %[[V0:.*]] = "smelt.constant"() {dtype = f64, value = 1.000000e+01 : f64} : () -> tensor<f64>
// CHECK-NEXT: %[[V1:.*]] = "smelt.less"(%arg2, %[[V0]]) : (tensor<f64>, tensor<f64>) -> tensor<i1>
// CHECK-NEXT: return %[[V1]] : tensor<i1>

// CHECK-LABEL: func.func private @step_jvp(
// CHECK-NEXT: %[[V0:.*]] = "smelt.mul"(%arg2, %arg0) : (tensor<f64>, tensor<f64>) -> tensor<f64>
// CHECK-NEXT: %[[V1:.*]] = "smelt.mul"(%arg3, %arg0) : (tensor<f64>, tensor<f64>) -> tensor<f64>
// CHECK-NEXT: %[[V2:.*]] = "smelt.mul"(%arg2, %arg1) : (tensor<f64>, tensor<f64>) -> tensor<f64>
// CHECK-NEXT: %[[V3:.*]] = "smelt.add"(%[[V1]], %[[V2]]) : (tensor<f64>, tensor<f64>) -> tensor<f64>
// CHECK-NEXT: return %[[V0]], %[[V3]] : tensor<f64>, tensor<f64>

// CHECK-LABEL: func.func @forward(
// CHECK-NEXT: %[[V0:.*]]:2 = scf.while (%arg4 = %arg1, %arg5 = %arg3) : (tensor<f64>, tensor<f64>) -> (tensor<f64>, tensor<f64>) {
// CHECK-NEXT: %[[V1:.*]] = func.call @below_jvp(%arg0, %arg2, %arg4, %arg5) : (tensor<f64>, tensor<f64>, tensor<f64>, tensor<f64>) -> tensor<i1>
// CHECK-NEXT: %[[VEXTRACTED:.*]] = tensor.extract %[[V1]][] : tensor<i1>
// CHECK-NEXT: scf.condition(%[[VEXTRACTED]]) %arg4, %arg5 : tensor<f64>, tensor<f64>
// CHECK-NEXT: } do {
// CHECK-NEXT: ^bb0(%arg4: tensor<f64>, %arg5: tensor<f64>):
// CHECK-NEXT: %[[V1:.*]]:2 = func.call @step_jvp(%arg0, %arg2, %arg4, %arg5) : (tensor<f64>, tensor<f64>, tensor<f64>, tensor<f64>) -> (tensor<f64>, tensor<f64>)
// CHECK-NEXT: scf.yield %[[V1]]#0, %[[V1]]#1 : tensor<f64>, tensor<f64>
// CHECK-NEXT: }
// CHECK-NEXT: return %[[V0]]#1 : tensor<f64>
func.func @forward(%w: tensor<f64>, %c: tensor<f64>, %tw: tensor<f64>, %tc: tensor<f64>) -> tensor<f64> {
  %f = constant @f : (tensor<f64>, tensor<f64>) -> (tensor<f64>, tensor<i32>)
  %0 = "smelt.jvp"(%f) {wrt = array<i64: 0, 1>} : ((tensor<f64>, tensor<f64>) -> (tensor<f64>, tensor<i32>)) -> ((tensor<f64>, tensor<f64>, tensor<f64>, tensor<f64>) -> (tensor<f64>, tensor<i32>, tensor<f64>, tensor<i32>))
  %1:4 = call_indirect %0(%w, %c, %tw, %tc) : (tensor<f64>, tensor<f64>, tensor<f64>, tensor<f64>) -> (tensor<f64>, tensor<i32>, tensor<f64>, tensor<i32>)
  return %1#2 : tensor<f64>
}

// CHECK-LABEL: func.func @reverse(
// CHECK-NEXT: %[[V0:.*]] = "smelt.constant"() {dtype = i32, value = 0 : i64} : () -> tensor<i32>
// CHECK-NEXT: %[[V1:.*]]:2 = scf.while (%arg3 = %arg1, %arg4 = %[[V0]]) : (tensor<f64>, tensor<i32>) -> (tensor<f64>, tensor<i32>) {
// CHECK-NEXT: %[[V5:.*]] = func.call @below_primal(%arg0, %arg3, %arg4) : (tensor<f64>, tensor<f64>, tensor<i32>) -> tensor<i1>
// CHECK-NEXT: %[[VEXTRACTED:.*]] = tensor.extract %[[V5]][] : tensor<i1>
// CHECK-NEXT: scf.condition(%[[VEXTRACTED]]) %arg3, %arg4 : tensor<f64>, tensor<i32>
// CHECK-NEXT: } do {
// CHECK-NEXT: ^bb0(%arg3: tensor<f64>, %arg4: tensor<i32>):
// CHECK-NEXT: %[[V5:.*]]:2 = func.call @step_primal(%arg0, %arg3, %arg4) : (tensor<f64>, tensor<f64>, tensor<i32>) -> (tensor<f64>, tensor<i32>)
// CHECK-NEXT: scf.yield %[[V5]]#0, %[[V5]]#1 : tensor<f64>, tensor<i32>
// CHECK-NEXT: }
// CHECK-NEXT: %[[V2:.*]] = "smelt.convert"(%[[V1]]#1) {dtype = f64} : (tensor<i32>) -> tensor<f64>
// CHECK-NEXT: %[[V3:.*]] = "smelt.mul"(%arg2, %[[V2]]) : (tensor<f64>, tensor<f64>) -> tensor<f64>
// CHECK-NEXT: %[[V4:.*]] = "smelt.constant"() {dtype = f64, value = 0 : i64} : () -> tensor<f64>
// CHECK-NEXT: return %[[V3]], %[[V4]] : tensor<f64>, tensor<f64>
func.func @reverse(%w: tensor<f64>, %c: tensor<f64>, %ct: tensor<f64>) -> (tensor<f64>, tensor<f64>) {
  %g = constant @g : (tensor<f64>, tensor<f64>) -> tensor<f64>
  %0 = "smelt.vjp"(%g) {seeds = array<i64: 0>, wrt = array<i64: 0, 1>} : ((tensor<f64>, tensor<f64>) -> tensor<f64>) -> ((tensor<f64>, tensor<f64>, tensor<f64>) -> (tensor<f64>, tensor<f64>, tensor<f64>))
  %1:3 = call_indirect %0(%w, %c, %ct) : (tensor<f64>, tensor<f64>, tensor<f64>) -> (tensor<f64>, tensor<f64>, tensor<f64>)
  return %1#1, %1#2 : tensor<f64>, tensor<f64>
}

// VALUE: dense<57.9636> : tensor<f64>
// VALUE-NEXT: dense<8.5> : tensor<f64>
// VALUE-NEXT: dense<0.0> : tensor<f64>
func.func @main() -> (tensor<f64>, tensor<f64>, tensor<f64>) {
  %w = "smelt.constant"() {value = 1.7 : f64, dtype = f64} : () -> tensor<f64>
  %c = "smelt.constant"() {value = 0.9 : f64, dtype = f64} : () -> tensor<f64>
  %0 = call @forward(%w, %c, %c, %w) : (tensor<f64>, tensor<f64>, tensor<f64>, tensor<f64>) -> tensor<f64>
  %1:2 = call @reverse(%w, %c, %w) : (tensor<f64>, tensor<f64>, tensor<f64>) -> (tensor<f64>, tensor<f64>)
  return %0, %1#0, %1#1 : tensor<f64>, tensor<f64>, tensor<f64>
}

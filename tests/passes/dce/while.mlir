// Carries that neither the condition nor a result reads go; one that never changes becomes a constant.
// RUN: smelt-opt %s --dce | filecheck %s

// CHECK-LABEL: func.func @main(
// CHECK-NEXT: %[[V0:.*]] = "smelt.constant"() {dtype = i32, value = 0 : i64} : () -> tensor<i32>
// CHECK-NEXT: %[[V1:.*]]:2 = scf.while (%arg2 = %arg0, %arg3 = %[[V0]]) : (tensor<4xf32>, tensor<i32>) -> (tensor<4xf32>, tensor<i32>) {
// CHECK-NEXT: %[[V2:.*]] = func.call @below(%arg1, %arg2, %arg3) : (tensor<i32>, tensor<4xf32>, tensor<i32>) -> tensor<i1>
// CHECK-NEXT: %[[VEXTRACTED:.*]] = tensor.extract %[[V2]][] : tensor<i1>
// CHECK-NEXT: scf.condition(%[[VEXTRACTED]]) %arg2, %arg3 : tensor<4xf32>, tensor<i32>
// CHECK-NEXT: } do {
// CHECK-NEXT: ^bb0(%arg2: tensor<4xf32>, %arg3: tensor<i32>):
// CHECK-NEXT: %[[V2:.*]]:2 = func.call @step(%arg1, %arg2, %arg3) : (tensor<i32>, tensor<4xf32>, tensor<i32>) -> (tensor<4xf32>, tensor<i32>)
// CHECK-NEXT: scf.yield %[[V2]]#0, %[[V2]]#1 : tensor<4xf32>, tensor<i32>
// CHECK-NEXT: }
// CHECK-NEXT: return %[[V1]]#0, %arg1 : tensor<4xf32>, tensor<i32>
func.func @main(%x: tensor<4xf32>, %limit: tensor<i32>) -> (tensor<4xf32>, tensor<i32>) {
  %zero = "smelt.constant"() {dtype = i32, value = 0 : i64} : () -> tensor<i32>
  %r:4 = scf.while (%a = %x, %n = %zero, %m = %limit, %p = %x) : (tensor<4xf32>, tensor<i32>, tensor<i32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<i32>, tensor<i32>, tensor<4xf32>) {
    %0 = func.call @below(%a, %n, %m, %p) : (tensor<4xf32>, tensor<i32>, tensor<i32>, tensor<4xf32>) -> tensor<i1>
    %again = tensor.extract %0[] : tensor<i1>
    scf.condition(%again) %a, %n, %m, %p : tensor<4xf32>, tensor<i32>, tensor<i32>, tensor<4xf32>
  } do {
  ^bb0(%a: tensor<4xf32>, %n: tensor<i32>, %m: tensor<i32>, %p: tensor<4xf32>):
    %0:4 = func.call @step(%a, %n, %m, %p) : (tensor<4xf32>, tensor<i32>, tensor<i32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<i32>, tensor<i32>, tensor<4xf32>)
    scf.yield %0#0, %0#1, %0#2, %0#3 : tensor<4xf32>, tensor<i32>, tensor<i32>, tensor<4xf32>
  }
  return %r#0, %r#2 : tensor<4xf32>, tensor<i32>
}

// CHECK-LABEL: func.func private @below(
// CHECK-NEXT: %[[V0:.*]] = "smelt.less"(%arg2, %arg0) : (tensor<i32>, tensor<i32>) -> tensor<i1>
// CHECK-NEXT: return %[[V0]] : tensor<i1>
func.func private @below(%a: tensor<4xf32>, %n: tensor<i32>, %m: tensor<i32>, %p: tensor<4xf32>) -> tensor<i1> {
  %0 = "smelt.less"(%n, %m) : (tensor<i32>, tensor<i32>) -> tensor<i1>
  return %0 : tensor<i1>
}

// CHECK-LABEL: func.func private @step(
// CHECK-NEXT: %[[V0:.*]] = "smelt.sin"(%arg1) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V1:.*]] = "smelt.constant"() {dtype = i32, value = 1 : i64} : () -> tensor<i32>
// CHECK-NEXT: %[[V2:.*]] = "smelt.add"(%arg2, %[[V1]]) : (tensor<i32>, tensor<i32>) -> tensor<i32>
// CHECK-NEXT: return %[[V0]], %[[V2]] : tensor<4xf32>, tensor<i32>
func.func private @step(%a: tensor<4xf32>, %n: tensor<i32>, %m: tensor<i32>, %p: tensor<4xf32>) -> (tensor<4xf32>, tensor<i32>, tensor<i32>, tensor<4xf32>) {
  %0 = "smelt.sin"(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "smelt.constant"() {dtype = i32, value = 1 : i64} : () -> tensor<i32>
  %2 = "smelt.add"(%n, %1) : (tensor<i32>, tensor<i32>) -> tensor<i32>
  %3 = "smelt.mul"(%p, %a) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0, %2, %m, %3 : tensor<4xf32>, tensor<i32>, tensor<i32>, tensor<4xf32>
}

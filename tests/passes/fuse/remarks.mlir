// What became one kernel, and why what touches did not: with the lines of the file, or those that it names.
// RUN: smelt-opt %s --fuse --remarks -o /dev/null 2>&1 | filecheck %s
// RUN: smelt-opt %s --fuse --remarks-output-file=- -o /dev/null | filecheck %s --check-prefix=YAML
// RUN: not smelt-opt %s --fuse='heuristic=nobodys' 2>&1 | filecheck %s --check-prefix=UNKNOWN

// UNKNOWN: error: fuse: there is no heuristic 'nobodys'; there are fewest-bytes

// exp costs too much to be computed in both.
// CHECK: remarks.mlir:[[#]]: remark: @kernel_reduce_sum is one kernel of 1 op: reduce_sum [fuse: passed, kernel]
// CHECK: model.py:7: remark: @kernel_reduce_sum reads exp from memory: {{.*}} [fuse: missed,
// YAML: --- !Missed
// YAML-NEXT: Pass: fuse
// YAML-NEXT: Name:
// YAML-NEXT: DebugLoc: { File: 'model.py', Line: 7, Column: 0 }
// YAML-NEXT: Function: 'sums'
// YAML-NEXT: Args:
// YAML-NEXT: - String: '@kernel_reduce_sum reads exp from memory: 2 kernels would each compute it, at 12 additions an element'
func.func @sums(%x: tensor<64x64xf32>, %y: tensor<64x64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %0 = "smelt.exp"(%x) : (tensor<64x64xf32>) -> tensor<64x64xf32> loc("model.py":7:1)
  %1 = "smelt.reduce_sum"(%0) {axes = array<i64: 0>} : (tensor<64x64xf32>) -> tensor<64xf32>
  %2 = "smelt.mul"(%0, %y) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %3 = "smelt.reduce_sum"(%2) {axes = array<i64: 1>} : (tensor<64x64xf32>) -> tensor<64xf32>
  return %1, %3 : tensor<64xf32>, tensor<64xf32>
}

// Too few ops may be in a kernel.
// RUN: smelt-opt %s --fuse='max-ops=2' --remarks -o /dev/null 2>&1 | filecheck %s --check-prefix=SMALL
// SMALL: @fused_sin_exp reads tanh from memory: the kernel has 2 ops, of 2 [fuse: missed, max-ops]
func.func @chain(%x: tensor<64xf32>) -> tensor<64xf32> {
  %0 = "smelt.tanh"(%x) : (tensor<64xf32>) -> tensor<64xf32>
  %1 = "smelt.sin"(%0) : (tensor<64xf32>) -> tensor<64xf32>
  %2 = "smelt.exp"(%1) : (tensor<64xf32>) -> tensor<64xf32>
  return %2 : tensor<64xf32>
}

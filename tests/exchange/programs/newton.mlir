module @newton attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<f32>) -> (tensor<f32> {jax.result_info = "result[0]"}) {
    %0:3 = stablehlo.while(%iterArg = %arg0, %iterArg_0 = %arg0, %iterArg_1 = %arg0) : tensor<f32>, tensor<f32>, tensor<f32>
    cond {
      %1 = stablehlo.multiply %iterArg_1, %iterArg_1 : tensor<f32>
      %2 = stablehlo.subtract %1, %iterArg : tensor<f32>
      %3 = stablehlo.abs %2 : tensor<f32>
      %cst = stablehlo.constant dense<9.99999974E-5> : tensor<f32>
      %4 = stablehlo.compare GT, %3, %cst, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %4 : tensor<i1>
    } do {
      %1 = stablehlo.divide %iterArg_0, %iterArg_1 : tensor<f32>
      %2 = stablehlo.add %iterArg_1, %1 : tensor<f32>
      %cst = stablehlo.constant dense<5.000000e-01> : tensor<f32>
      %3 = stablehlo.multiply %cst, %2 : tensor<f32>
      stablehlo.return %iterArg, %iterArg_0, %3 : tensor<f32>, tensor<f32>, tensor<f32>
    }
    return %0#2 : tensor<f32>
  }
}

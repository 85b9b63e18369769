module @conversions attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<6xf32>) -> (tensor<6xi32> {jax.result_info = "result[0]"}, tensor<6xui8> {jax.result_info = "result[1]"}, tensor<6xf16> {jax.result_info = "result[2]"}, tensor<6xi32> {jax.result_info = "result[3]"}, tensor<6xi1> {jax.result_info = "result[4]"}, tensor<6xf32> {jax.result_info = "result[5]"}) {
    %0 = stablehlo.convert %arg0 : (tensor<6xf32>) -> tensor<6xi32>
    %1 = stablehlo.convert %arg0 : (tensor<6xf32>) -> tensor<6xui8>
    %2 = stablehlo.convert %arg0 : (tensor<6xf32>) -> tensor<6xf16>
    %3 = stablehlo.bitcast_convert %arg0 : (tensor<6xf32>) -> tensor<6xi32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %4 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<6xf32>
    %5 = stablehlo.compare GT, %arg0, %4, FLOAT : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xi1>
    %6 = stablehlo.reduce_precision %arg0, format = e5m10 : tensor<6xf32>
    return %0, %1, %2, %3, %5, %6 : tensor<6xi32>, tensor<6xui8>, tensor<6xf16>, tensor<6xi32>, tensor<6xi1>, tensor<6xf32>
  }
}

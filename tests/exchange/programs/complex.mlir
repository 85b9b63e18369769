module @complex attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3x3xcomplex<f32>>, %arg1: tensor<3x3xcomplex<f32>>) -> (tensor<3x3xcomplex<f32>> {jax.result_info = "result[0]"}, tensor<3x3xcomplex<f32>> {jax.result_info = "result[1]"}, tensor<3x3xcomplex<f32>> {jax.result_info = "result[2]"}, tensor<3x3xf32> {jax.result_info = "result[3]"}, tensor<3x3xf32> {jax.result_info = "result[4]"}, tensor<3x3xcomplex<f32>> {jax.result_info = "result[5]"}) {
    %0 = stablehlo.multiply %arg0, %arg1 : tensor<3x3xcomplex<f32>>
    %1 = stablehlo.divide %arg0, %arg1 : tensor<3x3xcomplex<f32>>
    %2 = stablehlo.exponential %arg0 : tensor<3x3xcomplex<f32>>
    %3 = stablehlo.abs %arg0 : (tensor<3x3xcomplex<f32>>) -> tensor<3x3xf32>
    %4 = call @angle(%arg1) : (tensor<3x3xcomplex<f32>>) -> tensor<3x3xf32>
    %5 = stablehlo.transpose %arg1, dims = [1, 0] : (tensor<3x3xcomplex<f32>>) -> tensor<3x3xcomplex<f32>>
    %6 = stablehlo.dot_general %arg0, %5, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<3x3xcomplex<f32>>, tensor<3x3xcomplex<f32>>) -> tensor<3x3xcomplex<f32>>
    return %0, %1, %2, %3, %4, %6 : tensor<3x3xcomplex<f32>>, tensor<3x3xcomplex<f32>>, tensor<3x3xcomplex<f32>>, tensor<3x3xf32>, tensor<3x3xf32>, tensor<3x3xcomplex<f32>>
  }
  func.func private @angle(%arg0: tensor<3x3xcomplex<f32>>) -> tensor<3x3xf32> {
    %0 = stablehlo.real %arg0 : (tensor<3x3xcomplex<f32>>) -> tensor<3x3xf32>
    %1 = stablehlo.imag %arg0 : (tensor<3x3xcomplex<f32>>) -> tensor<3x3xf32>
    %2 = stablehlo.atan2 %1, %0 : tensor<3x3xf32>
    return %2 : tensor<3x3xf32>
  }
}

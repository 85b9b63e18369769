module @recurrent_grad attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x3xf32>, %arg1: tensor<6x2x4xf32>, %arg2: tensor<3x3xf32>, %arg3: tensor<4x3xf32>) -> (tensor<2x3xf32> {jax.result_info = "result[0]"}, tensor<3x3xf32> {jax.result_info = "result[1]"}) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<6xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<6x2x3xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<6x2x3xf32>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %3 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<6x2x3xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %4:9 = stablehlo.while(%iterArg = %arg1, %iterArg_8 = %arg2, %iterArg_9 = %arg3, %iterArg_10 = %c, %iterArg_11 = %arg0, %iterArg_12 = %0, %iterArg_13 = %1, %iterArg_14 = %2, %iterArg_15 = %3) : tensor<6x2x4xf32>, tensor<3x3xf32>, tensor<4x3xf32>, tensor<i32>, tensor<2x3xf32>, tensor<6xf32>, tensor<6x2x3xf32>, tensor<6x2x3xf32>, tensor<6x2x3xf32>
    cond {
      %c_16 = stablehlo.constant dense<6> : tensor<i32>
      %10 = stablehlo.compare LT, %iterArg_10, %c_16, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %10 : tensor<i1>
    } do {
      %10 = func.call @dynamic_index_in_dim(%iterArg, %iterArg_10) : (tensor<6x2x4xf32>, tensor<i32>) -> tensor<2x4xf32>
      %11:5 = func.call @closed_call(%iterArg_8, %iterArg_9, %iterArg_11, %10) : (tensor<3x3xf32>, tensor<4x3xf32>, tensor<2x3xf32>, tensor<2x4xf32>) -> (tensor<2x3xf32>, tensor<f32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>)
      %12 = func.call @dynamic_update_index_in_dim(%iterArg_12, %11#1, %iterArg_10) : (tensor<6xf32>, tensor<f32>, tensor<i32>) -> tensor<6xf32>
      %13 = func.call @dynamic_update_index_in_dim_0(%iterArg_13, %11#2, %iterArg_10) : (tensor<6x2x3xf32>, tensor<2x3xf32>, tensor<i32>) -> tensor<6x2x3xf32>
      %14 = func.call @dynamic_update_index_in_dim_0(%iterArg_14, %11#3, %iterArg_10) : (tensor<6x2x3xf32>, tensor<2x3xf32>, tensor<i32>) -> tensor<6x2x3xf32>
      %15 = func.call @dynamic_update_index_in_dim_0(%iterArg_15, %11#4, %iterArg_10) : (tensor<6x2x3xf32>, tensor<2x3xf32>, tensor<i32>) -> tensor<6x2x3xf32>
      %c_16 = stablehlo.constant dense<1> : tensor<i32>
      %16 = stablehlo.add %iterArg_10, %c_16 : tensor<i32>
      stablehlo.return %iterArg, %iterArg_8, %iterArg_9, %16, %11#0, %12, %13, %14, %15 : tensor<6x2x4xf32>, tensor<3x3xf32>, tensor<4x3xf32>, tensor<i32>, tensor<2x3xf32>, tensor<6xf32>, tensor<6x2x3xf32>, tensor<6x2x3xf32>, tensor<6x2x3xf32>
    }
    %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %5 = stablehlo.reduce(%4#5 init: %cst_3) applies stablehlo.add across dimensions = [0] : (tensor<6xf32>, tensor<f32>) -> tensor<f32>
    %cst_4 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %6 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<6xf32>
    %cst_5 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %7 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
    %cst_6 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %8 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<3x3xf32>
    %c_7 = stablehlo.constant dense<0> : tensor<i32>
    %9:8 = stablehlo.while(%iterArg = %6, %iterArg_8 = %4#6, %iterArg_9 = %4#7, %iterArg_10 = %4#8, %iterArg_11 = %arg2, %iterArg_12 = %c_7, %iterArg_13 = %8, %iterArg_14 = %7) : tensor<6xf32>, tensor<6x2x3xf32>, tensor<6x2x3xf32>, tensor<6x2x3xf32>, tensor<3x3xf32>, tensor<i32>, tensor<3x3xf32>, tensor<2x3xf32>
    cond {
      %c_15 = stablehlo.constant dense<6> : tensor<i32>
      %10 = stablehlo.compare LT, %iterArg_12, %c_15, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %10 : tensor<i1>
    } do {
      %c_15 = stablehlo.constant dense<6> : tensor<i32>
      %10 = stablehlo.subtract %c_15, %iterArg_12 : tensor<i32>
      %c_16 = stablehlo.constant dense<1> : tensor<i32>
      %11 = stablehlo.subtract %10, %c_16 : tensor<i32>
      %12 = func.call @dynamic_index_in_dim_1(%iterArg, %11) : (tensor<6xf32>, tensor<i32>) -> tensor<f32>
      %13 = func.call @dynamic_index_in_dim_2(%iterArg_8, %11) : (tensor<6x2x3xf32>, tensor<i32>) -> tensor<2x3xf32>
      %14 = func.call @dynamic_index_in_dim_2(%iterArg_9, %11) : (tensor<6x2x3xf32>, tensor<i32>) -> tensor<2x3xf32>
      %15 = func.call @dynamic_index_in_dim_2(%iterArg_10, %11) : (tensor<6x2x3xf32>, tensor<i32>) -> tensor<2x3xf32>
      %16:2 = func.call @closed_call_3(%iterArg_11, %iterArg_13, %iterArg_14, %12, %13, %14, %15) : (tensor<3x3xf32>, tensor<3x3xf32>, tensor<2x3xf32>, tensor<f32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) -> (tensor<3x3xf32>, tensor<2x3xf32>)
      %c_17 = stablehlo.constant dense<1> : tensor<i32>
      %17 = stablehlo.add %iterArg_12, %c_17 : tensor<i32>
      stablehlo.return %iterArg, %iterArg_8, %iterArg_9, %iterArg_10, %iterArg_11, %17, %16#0, %16#1 : tensor<6xf32>, tensor<6x2x3xf32>, tensor<6x2x3xf32>, tensor<6x2x3xf32>, tensor<3x3xf32>, tensor<i32>, tensor<3x3xf32>, tensor<2x3xf32>
    }
    return %9#7, %9#6 : tensor<2x3xf32>, tensor<3x3xf32>
  }
  func.func private @dynamic_index_in_dim(%arg0: tensor<6x2x4xf32>, %arg1: tensor<i32>) -> tensor<2x4xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, sizes = [1, 2, 4] : (tensor<6x2x4xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x2x4xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x2x4xf32>) -> tensor<2x4xf32>
    return %1 : tensor<2x4xf32>
  }
  func.func private @closed_call(%arg0: tensor<3x3xf32>, %arg1: tensor<4x3xf32>, %arg2: tensor<2x3xf32>, %arg3: tensor<2x4xf32>) -> (tensor<2x3xf32>, tensor<f32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) {
    %0 = stablehlo.dot_general %arg2, %arg0, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x3xf32>, tensor<3x3xf32>) -> tensor<2x3xf32>
    %1 = stablehlo.dot_general %arg3, %arg1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
    %2 = stablehlo.add %0, %1 : tensor<2x3xf32>
    %3 = stablehlo.tanh %2 : tensor<2x3xf32>
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %4 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
    %5 = stablehlo.subtract %4, %3 : tensor<2x3xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %6 = stablehlo.reduce(%arg2 init: %cst_0) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<f32>
    return %3, %6, %arg2, %3, %5 : tensor<2x3xf32>, tensor<f32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>
  }
  func.func private @dynamic_update_index_in_dim(%arg0: tensor<6xf32>, %arg1: tensor<f32>, %arg2: tensor<i32>) -> tensor<6xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<1xf32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2 : (tensor<6xf32>, tensor<1xf32>, tensor<i32>) -> tensor<6xf32>
    return %1 : tensor<6xf32>
  }
  func.func private @dynamic_update_index_in_dim_0(%arg0: tensor<6x2x3xf32>, %arg1: tensor<2x3xf32>, %arg2: tensor<i32>) -> tensor<6x2x3xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2] : (tensor<2x3xf32>) -> tensor<1x2x3xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c_0 : (tensor<6x2x3xf32>, tensor<1x2x3xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<6x2x3xf32>
    return %1 : tensor<6x2x3xf32>
  }
  func.func private @dynamic_index_in_dim_1(%arg0: tensor<6xf32>, %arg1: tensor<i32>) -> tensor<f32> {
    %0 = stablehlo.dynamic_slice %arg0, %arg1, sizes = [1] : (tensor<6xf32>, tensor<i32>) -> tensor<1xf32>
    %1 = stablehlo.reshape %0 : (tensor<1xf32>) -> tensor<f32>
    return %1 : tensor<f32>
  }
  func.func private @dynamic_index_in_dim_2(%arg0: tensor<6x2x3xf32>, %arg1: tensor<i32>) -> tensor<2x3xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, sizes = [1, 2, 3] : (tensor<6x2x3xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x2x3xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x2x3xf32>) -> tensor<2x3xf32>
    return %1 : tensor<2x3xf32>
  }
  func.func private @closed_call_3(%arg0: tensor<3x3xf32>, %arg1: tensor<3x3xf32>, %arg2: tensor<2x3xf32>, %arg3: tensor<f32>, %arg4: tensor<2x3xf32>, %arg5: tensor<2x3xf32>, %arg6: tensor<2x3xf32>) -> (tensor<3x3xf32>, tensor<2x3xf32>) {
    %0 = stablehlo.broadcast_in_dim %arg3, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
    %1 = stablehlo.multiply %arg2, %arg6 : tensor<2x3xf32>
    %2 = stablehlo.multiply %1, %arg5 : tensor<2x3xf32>
    %3 = stablehlo.add %1, %2 : tensor<2x3xf32>
    %4 = stablehlo.dot_general %3, %arg4, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<3x3xf32>
    %5 = stablehlo.transpose %4, dims = [1, 0] : (tensor<3x3xf32>) -> tensor<3x3xf32>
    %6 = stablehlo.add %arg1, %5 : tensor<3x3xf32>
    %7 = stablehlo.dot_general %3, %arg0, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<2x3xf32>, tensor<3x3xf32>) -> tensor<2x3xf32>
    %8 = stablehlo.add %0, %7 : tensor<2x3xf32>
    return %6, %8 : tensor<3x3xf32>, tensor<2x3xf32>
  }
}

module @mlp_step attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<5x3xf32>, %arg1: tensor<5x2xf32>, %arg2: tensor<3x4xf32>, %arg3: tensor<4xf32>, %arg4: tensor<4x2xf32>) -> (tensor<f32> {jax.result_info = "result[0]"}, tensor<3x4xf32> {jax.result_info = "result[1]"}, tensor<4xf32> {jax.result_info = "result[2]"}, tensor<4x2xf32> {jax.result_info = "result[3]"}) {
    %0 = stablehlo.dot_general %arg0, %arg2, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<5x3xf32>, tensor<3x4xf32>) -> tensor<5x4xf32>
    %1 = stablehlo.broadcast_in_dim %arg3, dims = [1] : (tensor<4xf32>) -> tensor<1x4xf32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [0, 1] : (tensor<1x4xf32>) -> tensor<5x4xf32>
    %3 = stablehlo.add %0, %2 : tensor<5x4xf32>
    %cst = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %4 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<5x4xf32>
    %5 = stablehlo.multiply %4, %3 : tensor<5x4xf32>
    %6 = stablehlo.negate %3 : tensor<5x4xf32>
    %cst_0 = stablehlo.constant dense<0.707106769> : tensor<f32>
    %7 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<5x4xf32>
    %8 = stablehlo.multiply %6, %7 : tensor<5x4xf32>
    %9 = chlo.erfc %8 : tensor<5x4xf32> -> tensor<5x4xf32>
    %10 = chlo.square %8 : tensor<5x4xf32> -> tensor<5x4xf32>
    %11 = stablehlo.negate %10 : tensor<5x4xf32>
    %12 = stablehlo.exponential %11 : tensor<5x4xf32>
    %13 = stablehlo.multiply %5, %9 : tensor<5x4xf32>
    %14 = stablehlo.dot_general %13, %arg4, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<5x4xf32>, tensor<4x2xf32>) -> tensor<5x2xf32>
    %15 = stablehlo.subtract %14, %arg1 : tensor<5x2xf32>
    %16 = stablehlo.multiply %15, %15 : tensor<5x2xf32>
    %cst_1 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %17 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<5x2xf32>
    %18 = stablehlo.multiply %17, %15 : tensor<5x2xf32>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %19 = stablehlo.reduce(%16 init: %cst_2) applies stablehlo.add across dimensions = [0, 1] : (tensor<5x2xf32>, tensor<f32>) -> tensor<f32>
    %cst_3 = stablehlo.constant dense<1.000000e+01> : tensor<f32>
    %20 = stablehlo.divide %19, %cst_3 : tensor<f32>
    %cst_4 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %cst_5 = stablehlo.constant dense<1.000000e+01> : tensor<f32>
    %21 = stablehlo.divide %cst_4, %cst_5 : tensor<f32>
    %22 = stablehlo.broadcast_in_dim %21, dims = [] : (tensor<f32>) -> tensor<5x2xf32>
    %23 = stablehlo.multiply %22, %18 : tensor<5x2xf32>
    %24 = stablehlo.dot_general %23, %13, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<5x2xf32>, tensor<5x4xf32>) -> tensor<2x4xf32>
    %25 = stablehlo.transpose %24, dims = [1, 0] : (tensor<2x4xf32>) -> tensor<4x2xf32>
    %26 = stablehlo.dot_general %23, %arg4, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<5x2xf32>, tensor<4x2xf32>) -> tensor<5x4xf32>
    %27 = stablehlo.multiply %5, %26 : tensor<5x4xf32>
    %28 = stablehlo.multiply %26, %9 : tensor<5x4xf32>
    %cst_6 = stablehlo.constant dense<-1.12837923> : tensor<f32>
    %29 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<5x4xf32>
    %30 = stablehlo.multiply %29, %27 : tensor<5x4xf32>
    %31 = stablehlo.multiply %30, %12 : tensor<5x4xf32>
    %cst_7 = stablehlo.constant dense<0.707106769> : tensor<f32>
    %32 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<5x4xf32>
    %33 = stablehlo.multiply %31, %32 : tensor<5x4xf32>
    %34 = stablehlo.negate %33 : tensor<5x4xf32>
    %cst_8 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %35 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<5x4xf32>
    %36 = stablehlo.multiply %35, %28 : tensor<5x4xf32>
    %37 = stablehlo.add %34, %36 : tensor<5x4xf32>
    %cst_9 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %38 = stablehlo.reduce(%37 init: %cst_9) applies stablehlo.add across dimensions = [0] : (tensor<5x4xf32>, tensor<f32>) -> tensor<4xf32>
    %39 = stablehlo.reshape %38 : (tensor<4xf32>) -> tensor<1x4xf32>
    %cst_10 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %40 = stablehlo.reduce(%39 init: %cst_10) applies stablehlo.add across dimensions = [0] : (tensor<1x4xf32>, tensor<f32>) -> tensor<4xf32>
    %41 = stablehlo.dot_general %37, %arg0, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<5x4xf32>, tensor<5x3xf32>) -> tensor<4x3xf32>
    %42 = stablehlo.transpose %41, dims = [1, 0] : (tensor<4x3xf32>) -> tensor<3x4xf32>
    %cst_11 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %43 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<3x4xf32>
    %44 = stablehlo.multiply %43, %42 : tensor<3x4xf32>
    %45 = stablehlo.subtract %arg2, %44 : tensor<3x4xf32>
    %cst_12 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %46 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %47 = stablehlo.multiply %46, %40 : tensor<4xf32>
    %48 = stablehlo.subtract %arg3, %47 : tensor<4xf32>
    %cst_13 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %49 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<4x2xf32>
    %50 = stablehlo.multiply %49, %25 : tensor<4x2xf32>
    %51 = stablehlo.subtract %arg4, %50 : tensor<4x2xf32>
    return %20, %45, %48, %51 : tensor<f32>, tensor<3x4xf32>, tensor<4xf32>, tensor<4x2xf32>
  }
}

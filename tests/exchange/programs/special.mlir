module @special attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3x4xf32>) -> (tensor<3x4xf32> {jax.result_info = "result[0]"}, tensor<3x4xf32> {jax.result_info = "result[1]"}, tensor<3x4xf32> {jax.result_info = "result[2]"}, tensor<3x4xf32> {jax.result_info = "result[3]"}, tensor<3x4xf32> {jax.result_info = "result[4]"}, tensor<3x4xf32> {jax.result_info = "result[5]"}, tensor<3x4xf32> {jax.result_info = "result[6]"}) {
    %0 = chlo.lgamma %arg0 : tensor<3x4xf32> -> tensor<3x4xf32>
    %1 = chlo.digamma %arg0 : tensor<3x4xf32> -> tensor<3x4xf32>
    %cst = stablehlo.constant dense<4.000000e+00> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x4xf32>
    %3 = stablehlo.divide %arg0, %2 : tensor<3x4xf32>
    %4 = chlo.erf_inv %3 : tensor<3x4xf32> -> tensor<3x4xf32>
    %5 = stablehlo.abs %arg0 : tensor<3x4xf32>
    %cst_0 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %6 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<3x4xf32>
    %cst_1 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %7 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<3x4xf32>
    %cst_2 = stablehlo.constant dense<3.200000e+01> : tensor<f32>
    %8 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<3x4xf32>
    %9 = stablehlo.multiply %6, %5 : tensor<3x4xf32>
    %10 = stablehlo.subtract %9, %7 : tensor<3x4xf32>
    %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %11 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<3x4xf32>
    %cst_4 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %12 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<3x4xf32>
    %cst_5 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %13 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<3x4xf32>
    %14 = stablehlo.multiply %10, %11 : tensor<3x4xf32>
    %15 = stablehlo.subtract %14, %12 : tensor<3x4xf32>
    %cst_6 = stablehlo.constant dense<-1.30002498E-8> : tensor<f32>
    %16 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<3x4xf32>
    %17 = stablehlo.add %15, %16 : tensor<3x4xf32>
    %18 = stablehlo.multiply %10, %17 : tensor<3x4xf32>
    %19 = stablehlo.subtract %18, %11 : tensor<3x4xf32>
    %cst_7 = stablehlo.constant dense<6.04699508E-8> : tensor<f32>
    %20 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<3x4xf32>
    %21 = stablehlo.add %19, %20 : tensor<3x4xf32>
    %22 = stablehlo.multiply %10, %21 : tensor<3x4xf32>
    %23 = stablehlo.subtract %22, %17 : tensor<3x4xf32>
    %cst_8 = stablehlo.constant dense<-2.67079372E-7> : tensor<f32>
    %24 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<3x4xf32>
    %25 = stablehlo.add %23, %24 : tensor<3x4xf32>
    %26 = stablehlo.multiply %10, %25 : tensor<3x4xf32>
    %27 = stablehlo.subtract %26, %21 : tensor<3x4xf32>
    %cst_9 = stablehlo.constant dense<1.11738757E-6> : tensor<f32>
    %28 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<3x4xf32>
    %29 = stablehlo.add %27, %28 : tensor<3x4xf32>
    %30 = stablehlo.multiply %10, %29 : tensor<3x4xf32>
    %31 = stablehlo.subtract %30, %25 : tensor<3x4xf32>
    %cst_10 = stablehlo.constant dense<-4.41673819E-6> : tensor<f32>
    %32 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<3x4xf32>
    %33 = stablehlo.add %31, %32 : tensor<3x4xf32>
    %34 = stablehlo.multiply %10, %33 : tensor<3x4xf32>
    %35 = stablehlo.subtract %34, %29 : tensor<3x4xf32>
    %cst_11 = stablehlo.constant dense<1.64484482E-5> : tensor<f32>
    %36 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<3x4xf32>
    %37 = stablehlo.add %35, %36 : tensor<3x4xf32>
    %38 = stablehlo.multiply %10, %37 : tensor<3x4xf32>
    %39 = stablehlo.subtract %38, %33 : tensor<3x4xf32>
    %cst_12 = stablehlo.constant dense<-5.75419508E-5> : tensor<f32>
    %40 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<3x4xf32>
    %41 = stablehlo.add %39, %40 : tensor<3x4xf32>
    %42 = stablehlo.multiply %10, %41 : tensor<3x4xf32>
    %43 = stablehlo.subtract %42, %37 : tensor<3x4xf32>
    %cst_13 = stablehlo.constant dense<1.88502891E-4> : tensor<f32>
    %44 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<3x4xf32>
    %45 = stablehlo.add %43, %44 : tensor<3x4xf32>
    %46 = stablehlo.multiply %10, %45 : tensor<3x4xf32>
    %47 = stablehlo.subtract %46, %41 : tensor<3x4xf32>
    %cst_14 = stablehlo.constant dense<-5.76375576E-4> : tensor<f32>
    %48 = stablehlo.broadcast_in_dim %cst_14, dims = [] : (tensor<f32>) -> tensor<3x4xf32>
    %49 = stablehlo.add %47, %48 : tensor<3x4xf32>
    %50 = stablehlo.multiply %10, %49 : tensor<3x4xf32>
    %51 = stablehlo.subtract %50, %45 : tensor<3x4xf32>
    %cst_15 = stablehlo.constant dense<0.00163947558> : tensor<f32>
    %52 = stablehlo.broadcast_in_dim %cst_15, dims = [] : (tensor<f32>) -> tensor<3x4xf32>
    %53 = stablehlo.add %51, %52 : tensor<3x4xf32>
    %54 = stablehlo.multiply %10, %53 : tensor<3x4xf32>
    %55 = stablehlo.subtract %54, %49 : tensor<3x4xf32>
    %cst_16 = stablehlo.constant dense<-4.324310e-03> : tensor<f32>
    %56 = stablehlo.broadcast_in_dim %cst_16, dims = [] : (tensor<f32>) -> tensor<3x4xf32>
    %57 = stablehlo.add %55, %56 : tensor<3x4xf32>
    %58 = stablehlo.multiply %10, %57 : tensor<3x4xf32>
    %59 = stablehlo.subtract %58, %53 : tensor<3x4xf32>
    %cst_17 = stablehlo.constant dense<0.0105464607> : tensor<f32>
    %60 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<f32>) -> tensor<3x4xf32>
    %61 = stablehlo.add %59, %60 : tensor<3x4xf32>
    %62 = stablehlo.multiply %10, %61 : tensor<3x4xf32>
    %63 = stablehlo.subtract %62, %57 : tensor<3x4xf32>
    %cst_18 = stablehlo.constant dense<-0.0237374157> : tensor<f32>
    %64 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<3x4xf32>
    %65 = stablehlo.add %63, %64 : tensor<3x4xf32>
    %66 = stablehlo.multiply %10, %65 : tensor<3x4xf32>
    %67 = stablehlo.subtract %66, %61 : tensor<3x4xf32>
    %cst_19 = stablehlo.constant dense<0.0493052825> : tensor<f32>
    %68 = stablehlo.broadcast_in_dim %cst_19, dims = [] : (tensor<f32>) -> tensor<3x4xf32>
    %69 = stablehlo.add %67, %68 : tensor<3x4xf32>
    %70 = stablehlo.multiply %10, %69 : tensor<3x4xf32>
    %71 = stablehlo.subtract %70, %65 : tensor<3x4xf32>
    %cst_20 = stablehlo.constant dense<-9.490110e-02> : tensor<f32>
    %72 = stablehlo.broadcast_in_dim %cst_20, dims = [] : (tensor<f32>) -> tensor<3x4xf32>
    %73 = stablehlo.add %71, %72 : tensor<3x4xf32>
    %74 = stablehlo.multiply %10, %73 : tensor<3x4xf32>
    %75 = stablehlo.subtract %74, %69 : tensor<3x4xf32>
    %cst_21 = stablehlo.constant dense<0.171620905> : tensor<f32>
    %76 = stablehlo.broadcast_in_dim %cst_21, dims = [] : (tensor<f32>) -> tensor<3x4xf32>
    %77 = stablehlo.add %75, %76 : tensor<3x4xf32>
    %78 = stablehlo.multiply %10, %77 : tensor<3x4xf32>
    %79 = stablehlo.subtract %78, %73 : tensor<3x4xf32>
    %cst_22 = stablehlo.constant dense<-0.304682672> : tensor<f32>
    %80 = stablehlo.broadcast_in_dim %cst_22, dims = [] : (tensor<f32>) -> tensor<3x4xf32>
    %81 = stablehlo.add %79, %80 : tensor<3x4xf32>
    %82 = stablehlo.multiply %10, %81 : tensor<3x4xf32>
    %83 = stablehlo.subtract %82, %77 : tensor<3x4xf32>
    %cst_23 = stablehlo.constant dense<0.676795303> : tensor<f32>
    %84 = stablehlo.broadcast_in_dim %cst_23, dims = [] : (tensor<f32>) -> tensor<3x4xf32>
    %85 = stablehlo.add %83, %84 : tensor<3x4xf32>
    %86 = stablehlo.subtract %85, %77 : tensor<3x4xf32>
    %cst_24 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %87 = stablehlo.broadcast_in_dim %cst_24, dims = [] : (tensor<f32>) -> tensor<3x4xf32>
    %88 = stablehlo.multiply %87, %86 : tensor<3x4xf32>
    %89 = stablehlo.divide %8, %5 : tensor<3x4xf32>
    %90 = stablehlo.subtract %89, %7 : tensor<3x4xf32>
    %cst_25 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %91 = stablehlo.broadcast_in_dim %cst_25, dims = [] : (tensor<f32>) -> tensor<3x4xf32>
    %cst_26 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %92 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f32>) -> tensor<3x4xf32>
    %cst_27 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %93 = stablehlo.broadcast_in_dim %cst_27, dims = [] : (tensor<f32>) -> tensor<3x4xf32>
    %94 = stablehlo.multiply %90, %91 : tensor<3x4xf32>
    %95 = stablehlo.subtract %94, %92 : tensor<3x4xf32>
    %cst_28 = stablehlo.constant dense<3.39623196E-9> : tensor<f32>
    %96 = stablehlo.broadcast_in_dim %cst_28, dims = [] : (tensor<f32>) -> tensor<3x4xf32>
    %97 = stablehlo.add %95, %96 : tensor<3x4xf32>
    %98 = stablehlo.multiply %90, %97 : tensor<3x4xf32>
    %99 = stablehlo.subtract %98, %91 : tensor<3x4xf32>
    %cst_29 = stablehlo.constant dense<2.26666899E-8> : tensor<f32>
    %100 = stablehlo.broadcast_in_dim %cst_29, dims = [] : (tensor<f32>) -> tensor<3x4xf32>
    %101 = stablehlo.add %99, %100 : tensor<3x4xf32>
    %102 = stablehlo.multiply %90, %101 : tensor<3x4xf32>
    %103 = stablehlo.subtract %102, %97 : tensor<3x4xf32>
    %cst_30 = stablehlo.constant dense<2.04891862E-7> : tensor<f32>
    %104 = stablehlo.broadcast_in_dim %cst_30, dims = [] : (tensor<f32>) -> tensor<3x4xf32>
    %105 = stablehlo.add %103, %104 : tensor<3x4xf32>
    %106 = stablehlo.multiply %90, %105 : tensor<3x4xf32>
    %107 = stablehlo.subtract %106, %101 : tensor<3x4xf32>
    %cst_31 = stablehlo.constant dense<2.89137051E-6> : tensor<f32>
    %108 = stablehlo.broadcast_in_dim %cst_31, dims = [] : (tensor<f32>) -> tensor<3x4xf32>
    %109 = stablehlo.add %107, %108 : tensor<3x4xf32>
    %110 = stablehlo.multiply %90, %109 : tensor<3x4xf32>
    %111 = stablehlo.subtract %110, %105 : tensor<3x4xf32>
    %cst_32 = stablehlo.constant dense<6.88975852E-5> : tensor<f32>
    %112 = stablehlo.broadcast_in_dim %cst_32, dims = [] : (tensor<f32>) -> tensor<3x4xf32>
    %113 = stablehlo.add %111, %112 : tensor<3x4xf32>
    %114 = stablehlo.multiply %90, %113 : tensor<3x4xf32>
    %115 = stablehlo.subtract %114, %109 : tensor<3x4xf32>
    %cst_33 = stablehlo.constant dense<0.00336911646> : tensor<f32>
    %116 = stablehlo.broadcast_in_dim %cst_33, dims = [] : (tensor<f32>) -> tensor<3x4xf32>
    %117 = stablehlo.add %115, %116 : tensor<3x4xf32>
    %118 = stablehlo.multiply %90, %117 : tensor<3x4xf32>
    %119 = stablehlo.subtract %118, %113 : tensor<3x4xf32>
    %cst_34 = stablehlo.constant dense<0.804490387> : tensor<f32>
    %120 = stablehlo.broadcast_in_dim %cst_34, dims = [] : (tensor<f32>) -> tensor<3x4xf32>
    %121 = stablehlo.add %119, %120 : tensor<3x4xf32>
    %122 = stablehlo.subtract %121, %113 : tensor<3x4xf32>
    %cst_35 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %123 = stablehlo.broadcast_in_dim %cst_35, dims = [] : (tensor<f32>) -> tensor<3x4xf32>
    %124 = stablehlo.multiply %123, %122 : tensor<3x4xf32>
    %125 = stablehlo.sqrt %5 : tensor<3x4xf32>
    %126 = stablehlo.divide %124, %125 : tensor<3x4xf32>
    %cst_36 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %127 = stablehlo.broadcast_in_dim %cst_36, dims = [] : (tensor<f32>) -> tensor<3x4xf32>
    %128 = stablehlo.compare LE, %5, %127, FLOAT : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xi1>
    %129 = stablehlo.select %128, %88, %126 : tensor<3x4xi1>, tensor<3x4xf32>
    %130 = stablehlo.cbrt %arg0 : tensor<3x4xf32>
    %131 = chlo.sinh %arg0 : tensor<3x4xf32> -> tensor<3x4xf32>
    %cst_37 = stablehlo.constant dense<4.000000e+00> : tensor<f32>
    %132 = stablehlo.broadcast_in_dim %cst_37, dims = [] : (tensor<f32>) -> tensor<3x4xf32>
    %133 = stablehlo.divide %arg0, %132 : tensor<3x4xf32>
    %134 = chlo.atanh %133 : tensor<3x4xf32> -> tensor<3x4xf32>
    return %0, %1, %4, %129, %130, %131, %134 : tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>
  }
}

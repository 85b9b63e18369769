module @hessian attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4xf32>) -> (tensor<4x4xf32> {jax.result_info = "result[0]"}) {
    %0 = stablehlo.iota dim = 0 : tensor<4x4xi32>
    %1 = stablehlo.iota dim = 1 : tensor<4x4xi32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %2 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<4x4xi32>
    %3 = stablehlo.add %0, %2 : tensor<4x4xi32>
    %4 = stablehlo.compare EQ, %3, %1, SIGNED : (tensor<4x4xi32>, tensor<4x4xi32>) -> tensor<4x4xi1>
    %5 = stablehlo.convert %4 : (tensor<4x4xi1>) -> tensor<4x4xf32>
    %6 = stablehlo.slice %5 [0:4, 0:4] : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %7 = stablehlo.convert %6 : tensor<4x4xf32>
    %8 = stablehlo.multiply %arg0, %arg0 : tensor<4xf32>
    %9 = stablehlo.broadcast_in_dim %arg0, dims = [1] : (tensor<4xf32>) -> tensor<1x4xf32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [0, 1] : (tensor<1x4xf32>) -> tensor<4x4xf32>
    %11 = stablehlo.multiply %7, %10 : tensor<4x4xf32>
    %12 = stablehlo.broadcast_in_dim %arg0, dims = [1] : (tensor<4xf32>) -> tensor<1x4xf32>
    %13 = stablehlo.broadcast_in_dim %12, dims = [0, 1] : (tensor<1x4xf32>) -> tensor<4x4xf32>
    %14 = stablehlo.multiply %13, %7 : tensor<4x4xf32>
    %15 = stablehlo.add %11, %14 : tensor<4x4xf32>
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %16 = stablehlo.reduce(%8 init: %cst) applies stablehlo.maximum across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    %17 = stablehlo.reshape %16 : (tensor<f32>) -> tensor<1xf32>
    %18 = stablehlo.broadcast_in_dim %17, dims = [0] : (tensor<1xf32>) -> tensor<4xf32>
    %19 = stablehlo.compare EQ, %8, %18, FLOAT : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %20 = stablehlo.convert %19 : (tensor<4xi1>) -> tensor<4xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %21 = stablehlo.reduce(%20 init: %cst_0) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    %22 = stablehlo.broadcast_in_dim %20, dims = [1] : (tensor<4xf32>) -> tensor<1x4xf32>
    %23 = stablehlo.broadcast_in_dim %22, dims = [0, 1] : (tensor<1x4xf32>) -> tensor<4x4xf32>
    %24 = stablehlo.multiply %15, %23 : tensor<4x4xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %25 = stablehlo.reduce(%24 init: %cst_1) applies stablehlo.add across dimensions = [1] : (tensor<4x4xf32>, tensor<f32>) -> tensor<4xf32>
    %26 = stablehlo.broadcast_in_dim %21, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %27 = stablehlo.divide %25, %26 : tensor<4xf32>
    %28 = stablehlo.reshape %16 : (tensor<f32>) -> tensor<1xf32>
    %29 = stablehlo.reshape %27 : (tensor<4xf32>) -> tensor<4x1xf32>
    %30 = stablehlo.broadcast_in_dim %28, dims = [0] : (tensor<1xf32>) -> tensor<4xf32>
    %31 = stablehlo.compare EQ, %8, %30, FLOAT : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %32 = stablehlo.convert %31 : (tensor<4xi1>) -> tensor<4xf32>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %33 = stablehlo.reduce(%32 init: %cst_2) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    %cst_3 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %34 = stablehlo.maximum %cst_3, %16 : tensor<f32>
    %35 = stablehlo.compare EQ, %16, %34, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %cst_4 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %cst_5 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %36 = stablehlo.select %35, %cst_5, %cst_4 : tensor<i1>, tensor<f32>
    %cst_6 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %37 = stablehlo.compare EQ, %cst_6, %34, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %cst_7 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %cst_8 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %38 = stablehlo.select %37, %cst_8, %cst_7 : tensor<i1>, tensor<f32>
    %39 = stablehlo.divide %36, %38 : tensor<f32>
    %40 = stablehlo.broadcast_in_dim %39, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %41 = stablehlo.multiply %27, %40 : tensor<4xf32>
    %42 = stablehlo.compare EQ, %16, %34, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %cst_9 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %cst_10 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %43 = stablehlo.select %42, %cst_10, %cst_9 : tensor<i1>, tensor<f32>
    %cst_11 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %44 = stablehlo.compare EQ, %cst_11, %34, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %cst_12 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %cst_13 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %45 = stablehlo.select %44, %cst_13, %cst_12 : tensor<i1>, tensor<f32>
    %46 = stablehlo.divide %43, %45 : tensor<f32>
    %47 = stablehlo.is_finite %34 : (tensor<f32>) -> tensor<i1>
    %cst_14 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %48 = stablehlo.select %47, %34, %cst_14 : tensor<i1>, tensor<f32>
    %cst_15 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %49 = stablehlo.broadcast_in_dim %cst_15, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %50 = stablehlo.select %47, %41, %49 : tensor<i1>, tensor<4xf32>
    %51 = stablehlo.broadcast_in_dim %48, dims = [] : (tensor<f32>) -> tensor<1xf32>
    %52 = stablehlo.broadcast_in_dim %51, dims = [0] : (tensor<1xf32>) -> tensor<4xf32>
    %53 = stablehlo.subtract %8, %52 : tensor<4xf32>
    %54 = stablehlo.exponential %53 : tensor<4xf32>
    %55 = stablehlo.broadcast_in_dim %54, dims = [1] : (tensor<4xf32>) -> tensor<1x4xf32>
    %56 = stablehlo.broadcast_in_dim %55, dims = [0, 1] : (tensor<1x4xf32>) -> tensor<4x4xf32>
    %57 = stablehlo.multiply %15, %56 : tensor<4x4xf32>
    %cst_16 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %58 = stablehlo.reduce(%54 init: %cst_16) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    %cst_17 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %59 = stablehlo.reduce(%57 init: %cst_17) applies stablehlo.add across dimensions = [1] : (tensor<4x4xf32>, tensor<f32>) -> tensor<4xf32>
    %60 = stablehlo.sign %58 : tensor<f32>
    %61 = stablehlo.abs %58 : tensor<f32>
    %cst_18 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %62 = stablehlo.compare GE, %58, %cst_18, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %63 = stablehlo.negate %59 : tensor<4xf32>
    %64 = stablehlo.select %62, %59, %63 : tensor<i1>, tensor<4xf32>
    %cst_19 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %65 = stablehlo.compare GE, %58, %cst_19, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %66 = stablehlo.log %61 : tensor<f32>
    %67 = stablehlo.broadcast_in_dim %61, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %68 = stablehlo.divide %64, %67 : tensor<4xf32>
    %69 = stablehlo.add %66, %48 : tensor<f32>
    %70 = stablehlo.iota dim = 0 : tensor<1x1xi32>
    %71 = stablehlo.iota dim = 1 : tensor<1x1xi32>
    %c_20 = stablehlo.constant dense<0> : tensor<i32>
    %72 = stablehlo.broadcast_in_dim %c_20, dims = [] : (tensor<i32>) -> tensor<1x1xi32>
    %73 = stablehlo.add %70, %72 : tensor<1x1xi32>
    %74 = stablehlo.compare EQ, %73, %71, SIGNED : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi1>
    %75 = stablehlo.convert %74 : (tensor<1x1xi1>) -> tensor<1x1xf32>
    %76 = stablehlo.slice %75 [0:1, 0:1] : (tensor<1x1xf32>) -> tensor<1x1xf32>
    %77 = stablehlo.reshape %76 : (tensor<1x1xf32>) -> tensor<1xf32>
    %78 = stablehlo.convert %77 : tensor<1xf32>
    %79 = stablehlo.broadcast_in_dim %61, dims = [] : (tensor<f32>) -> tensor<1xf32>
    %80 = stablehlo.divide %78, %79 : tensor<1xf32>
    %81 = stablehlo.negate %64 : tensor<4xf32>
    %82 = stablehlo.broadcast_in_dim %78, dims = [1] : (tensor<1xf32>) -> tensor<1x1xf32>
    %83 = stablehlo.broadcast_in_dim %81, dims = [0] : (tensor<4xf32>) -> tensor<4x1xf32>
    %84 = stablehlo.broadcast_in_dim %82, dims = [0, 1] : (tensor<1x1xf32>) -> tensor<4x1xf32>
    %85 = stablehlo.multiply %83, %84 : tensor<4x1xf32>
    %86 = stablehlo.multiply %61, %61 : tensor<f32>
    %cst_21 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %87 = stablehlo.divide %cst_21, %86 : tensor<f32>
    %88 = stablehlo.broadcast_in_dim %87, dims = [] : (tensor<f32>) -> tensor<4x1xf32>
    %89 = stablehlo.multiply %85, %88 : tensor<4x1xf32>
    %cst_22 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %90 = stablehlo.broadcast_in_dim %cst_22, dims = [] : (tensor<f32>) -> tensor<1xf32>
    %91 = stablehlo.select %65, %90, %80 : tensor<i1>, tensor<1xf32>
    %cst_23 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %92 = stablehlo.broadcast_in_dim %cst_23, dims = [] : (tensor<f32>) -> tensor<1xf32>
    %93 = stablehlo.broadcast_in_dim %92, dims = [1] : (tensor<1xf32>) -> tensor<4x1xf32>
    %94 = stablehlo.select %65, %93, %89 : tensor<i1>, tensor<4x1xf32>
    %cst_24 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %95 = stablehlo.broadcast_in_dim %cst_24, dims = [] : (tensor<f32>) -> tensor<1xf32>
    %96 = stablehlo.select %65, %80, %95 : tensor<i1>, tensor<1xf32>
    %cst_25 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %97 = stablehlo.broadcast_in_dim %cst_25, dims = [] : (tensor<f32>) -> tensor<1xf32>
    %98 = stablehlo.broadcast_in_dim %97, dims = [1] : (tensor<1xf32>) -> tensor<4x1xf32>
    %99 = stablehlo.select %65, %89, %98 : tensor<i1>, tensor<4x1xf32>
    %100 = stablehlo.negate %91 : tensor<1xf32>
    %101 = stablehlo.negate %94 : tensor<4x1xf32>
    %102 = stablehlo.add %96, %100 : tensor<1xf32>
    %103 = stablehlo.add %99, %101 : tensor<4x1xf32>
    %104 = stablehlo.broadcast_in_dim %102, dims = [0] : (tensor<1xf32>) -> tensor<1x4xf32>
    %105 = stablehlo.broadcast_in_dim %103, dims = [0, 1] : (tensor<4x1xf32>) -> tensor<4x1x4xf32>
    %106 = stablehlo.broadcast_in_dim %54, dims = [1] : (tensor<4xf32>) -> tensor<1x4xf32>
    %107 = stablehlo.broadcast_in_dim %57, dims = [0, 2] : (tensor<4x4xf32>) -> tensor<4x1x4xf32>
    %108 = stablehlo.multiply %104, %106 : tensor<1x4xf32>
    %109 = stablehlo.broadcast_in_dim %106, dims = [1, 2] : (tensor<1x4xf32>) -> tensor<1x1x4xf32>
    %110 = stablehlo.broadcast_in_dim %109, dims = [0, 1, 2] : (tensor<1x1x4xf32>) -> tensor<4x1x4xf32>
    %111 = stablehlo.multiply %105, %110 : tensor<4x1x4xf32>
    %112 = stablehlo.broadcast_in_dim %104, dims = [1, 2] : (tensor<1x4xf32>) -> tensor<1x1x4xf32>
    %113 = stablehlo.broadcast_in_dim %112, dims = [0, 1, 2] : (tensor<1x1x4xf32>) -> tensor<4x1x4xf32>
    %114 = stablehlo.multiply %113, %107 : tensor<4x1x4xf32>
    %115 = stablehlo.add %111, %114 : tensor<4x1x4xf32>
    %116 = stablehlo.broadcast_in_dim %arg0, dims = [1] : (tensor<4xf32>) -> tensor<1x4xf32>
    %117 = stablehlo.broadcast_in_dim %7, dims = [0, 2] : (tensor<4x4xf32>) -> tensor<4x1x4xf32>
    %118 = stablehlo.multiply %116, %108 : tensor<1x4xf32>
    %119 = stablehlo.broadcast_in_dim %108, dims = [1, 2] : (tensor<1x4xf32>) -> tensor<1x1x4xf32>
    %120 = stablehlo.broadcast_in_dim %119, dims = [0, 1, 2] : (tensor<1x1x4xf32>) -> tensor<4x1x4xf32>
    %121 = stablehlo.multiply %117, %120 : tensor<4x1x4xf32>
    %122 = stablehlo.broadcast_in_dim %116, dims = [1, 2] : (tensor<1x4xf32>) -> tensor<1x1x4xf32>
    %123 = stablehlo.broadcast_in_dim %122, dims = [0, 1, 2] : (tensor<1x1x4xf32>) -> tensor<4x1x4xf32>
    %124 = stablehlo.multiply %123, %115 : tensor<4x1x4xf32>
    %125 = stablehlo.add %121, %124 : tensor<4x1x4xf32>
    %126 = stablehlo.broadcast_in_dim %arg0, dims = [1] : (tensor<4xf32>) -> tensor<1x4xf32>
    %127 = stablehlo.broadcast_in_dim %7, dims = [0, 2] : (tensor<4x4xf32>) -> tensor<4x1x4xf32>
    %128 = stablehlo.multiply %108, %126 : tensor<1x4xf32>
    %129 = stablehlo.broadcast_in_dim %126, dims = [1, 2] : (tensor<1x4xf32>) -> tensor<1x1x4xf32>
    %130 = stablehlo.broadcast_in_dim %129, dims = [0, 1, 2] : (tensor<1x1x4xf32>) -> tensor<4x1x4xf32>
    %131 = stablehlo.multiply %115, %130 : tensor<4x1x4xf32>
    %132 = stablehlo.broadcast_in_dim %108, dims = [1, 2] : (tensor<1x4xf32>) -> tensor<1x1x4xf32>
    %133 = stablehlo.broadcast_in_dim %132, dims = [0, 1, 2] : (tensor<1x1x4xf32>) -> tensor<4x1x4xf32>
    %134 = stablehlo.multiply %133, %127 : tensor<4x1x4xf32>
    %135 = stablehlo.add %131, %134 : tensor<4x1x4xf32>
    %136 = stablehlo.add %118, %128 : tensor<1x4xf32>
    %137 = stablehlo.add %125, %135 : tensor<4x1x4xf32>
    %138 = stablehlo.slice %136 [0:1, 0:4] : (tensor<1x4xf32>) -> tensor<1x4xf32>
    %139 = stablehlo.slice %137 [0:4, 0:1, 0:4] : (tensor<4x1x4xf32>) -> tensor<4x1x4xf32>
    %140 = stablehlo.reshape %138 : (tensor<1x4xf32>) -> tensor<4xf32>
    %141 = stablehlo.reshape %139 : (tensor<4x1x4xf32>) -> tensor<4x4xf32>
    %142 = stablehlo.transpose %141, dims = [1, 0] : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %143 = stablehlo.slice %142 [0:4, 0:4] : (tensor<4x4xf32>) -> tensor<4x4xf32>
    return %143 : tensor<4x4xf32>
  }
}

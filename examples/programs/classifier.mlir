module {
  func.func @main(%arg0: tensor<2x1x16x16xf32>) -> tensor<2x10xf32> {
    %cst = stablehlo.constant dense_resource<torch_tensor_10_torch.float32> : tensor<10xf32>
    %cst_0 = stablehlo.constant dense_resource<torch_tensor_10_8_torch.float32> : tensor<10x8xf32>
    %cst_1 = stablehlo.constant dense_resource<torch_tensor_8_torch.float32_2> : tensor<8xf32>
    %cst_2 = stablehlo.constant dense_resource<torch_tensor_8_torch.float32_1> : tensor<8xf32>
    %cst_3 = stablehlo.constant dense_resource<torch_tensor_8_torch.float32> : tensor<8xf32>
    %cst_4 = stablehlo.constant dense_resource<torch_tensor_8_4_3_3_torch.float32> : tensor<8x4x3x3xf32>
    %cst_5 = stablehlo.constant dense_resource<torch_tensor_4_1_3_3_torch.float32> : tensor<4x1x3x3xf32>
    %cst_6 = stablehlo.constant dense_resource<torch_tensor_4_torch.float32> : tensor<4xf32>
    %cst_7 = stablehlo.constant dense<1.000000e+00> : tensor<2x4x16x16xf32>
    %cst_8 = stablehlo.constant dense<2.000000e+00> : tensor<2x4x16x16xf32>
    %cst_9 = stablehlo.constant dense<5.000000e-01> : tensor<2x4x16x16xf32>
    %cst_10 = stablehlo.constant dense<-4.000000e+00> : tensor<2x4x16x16xf32>
    %cst_11 = stablehlo.constant dense<4.000000e+00> : tensor<2x4x16x16xf32>
    %cst_12 = stablehlo.constant dense<-2.72614237E-10> : tensor<2x4x16x16xf32>
    %cst_13 = stablehlo.constant dense<2.77068146E-8> : tensor<2x4x16x16xf32>
    %cst_14 = stablehlo.constant dense<-2.10102394E-6> : tensor<2x4x16x16xf32>
    %cst_15 = stablehlo.constant dense<-5.69250624E-5> : tensor<2x4x16x16xf32>
    %cst_16 = stablehlo.constant dense<-7.34990637E-4> : tensor<2x4x16x16xf32>
    %cst_17 = stablehlo.constant dense<-2.954600e-03> : tensor<2x4x16x16xf32>
    %cst_18 = stablehlo.constant dense<-0.0160960332> : tensor<2x4x16x16xf32>
    %cst_19 = stablehlo.constant dense<-1.45660715E-5> : tensor<2x4x16x16xf32>
    %cst_20 = stablehlo.constant dense<-2.13374049E-4> : tensor<2x4x16x16xf32>
    %cst_21 = stablehlo.constant dense<-0.00168282702> : tensor<2x4x16x16xf32>
    %cst_22 = stablehlo.constant dense<-0.00737332925> : tensor<2x4x16x16xf32>
    %cst_23 = stablehlo.constant dense<-0.0142647391> : tensor<2x4x16x16xf32>
    %cst_24 = stablehlo.constant dense<-1.000000e+00> : tensor<2x4x16x16xf32>
    %cst_25 = stablehlo.constant dense<0.000000e+00> : tensor<2x8x8x8xf32>
    %cst_26 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %cst_27 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %cst_28 = stablehlo.constant dense<0.000000e+00> : tensor<f64>
    %cst_29 = arith.constant dense<16> : tensor<1xi64>
    %cst_30 = arith.constant dense<8> : tensor<1xi64>
    %cst_31 = arith.constant dense<1.000000e-05> : tensor<1xf64>
    %cst_32 = arith.constant dense<1> : tensor<1xi64>
    %0 = stablehlo.convolution(%arg0, %cst_5) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], rhs_dilate = [1, 1]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x1x16x16xf32>, tensor<4x1x3x3xf32>) -> tensor<2x4x16x16xf32>
    %1 = stablehlo.reshape %cst_6 : (tensor<4xf32>) -> tensor<4x1x1xf32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [1, 2, 3] : (tensor<4x1x1xf32>) -> tensor<2x4x16x16xf32>
    %3 = stablehlo.add %0, %2 : tensor<2x4x16x16xf32>
    %4 = stablehlo.multiply %3, %cst_9 : tensor<2x4x16x16xf32>
    %5 = stablehlo.rsqrt %cst_8 : tensor<2x4x16x16xf32>
    %6 = stablehlo.multiply %3, %5 : tensor<2x4x16x16xf32>
    %7 = stablehlo.clamp %cst_10, %6, %cst_11 : tensor<2x4x16x16xf32>
    %8 = stablehlo.multiply %7, %7 : tensor<2x4x16x16xf32>
    %9 = stablehlo.multiply %cst_12, %8 : tensor<2x4x16x16xf32>
    %10 = stablehlo.add %9, %cst_13 : tensor<2x4x16x16xf32>
    %11 = stablehlo.multiply %10, %8 : tensor<2x4x16x16xf32>
    %12 = stablehlo.add %11, %cst_14 : tensor<2x4x16x16xf32>
    %13 = stablehlo.multiply %12, %8 : tensor<2x4x16x16xf32>
    %14 = stablehlo.add %13, %cst_15 : tensor<2x4x16x16xf32>
    %15 = stablehlo.multiply %14, %8 : tensor<2x4x16x16xf32>
    %16 = stablehlo.add %15, %cst_16 : tensor<2x4x16x16xf32>
    %17 = stablehlo.multiply %16, %8 : tensor<2x4x16x16xf32>
    %18 = stablehlo.add %17, %cst_17 : tensor<2x4x16x16xf32>
    %19 = stablehlo.multiply %18, %8 : tensor<2x4x16x16xf32>
    %20 = stablehlo.add %19, %cst_18 : tensor<2x4x16x16xf32>
    %21 = stablehlo.multiply %cst_19, %8 : tensor<2x4x16x16xf32>
    %22 = stablehlo.add %21, %cst_20 : tensor<2x4x16x16xf32>
    %23 = stablehlo.multiply %22, %8 : tensor<2x4x16x16xf32>
    %24 = stablehlo.add %23, %cst_21 : tensor<2x4x16x16xf32>
    %25 = stablehlo.multiply %24, %8 : tensor<2x4x16x16xf32>
    %26 = stablehlo.add %25, %cst_22 : tensor<2x4x16x16xf32>
    %27 = stablehlo.multiply %26, %8 : tensor<2x4x16x16xf32>
    %28 = stablehlo.add %27, %cst_23 : tensor<2x4x16x16xf32>
    %29 = stablehlo.multiply %7, %20 : tensor<2x4x16x16xf32>
    %30 = stablehlo.divide %29, %28 : tensor<2x4x16x16xf32>
    %31 = stablehlo.clamp %cst_24, %30, %cst_7 : tensor<2x4x16x16xf32>
    %32 = stablehlo.add %31, %cst_7 : tensor<2x4x16x16xf32>
    %33 = stablehlo.multiply %32, %4 : tensor<2x4x16x16xf32>
    %34 = stablehlo.convolution(%33, %cst_4) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [2, 2], pad = [[1, 1], [1, 1]], rhs_dilate = [1, 1]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x4x16x16xf32>, tensor<8x4x3x3xf32>) -> tensor<2x8x8x8xf32>
    %35 = stablehlo.reshape %cst_3 : (tensor<8xf32>) -> tensor<8x1x1xf32>
    %36 = stablehlo.broadcast_in_dim %35, dims = [1, 2, 3] : (tensor<8x1x1xf32>) -> tensor<2x8x8x8xf32>
    %37 = stablehlo.add %34, %36 : tensor<2x8x8x8xf32>
    %38 = stablehlo.maximum %37, %cst_25 : tensor<2x8x8x8xf32>
    %39 = "stablehlo.reduce_window"(%38, %cst_26) <{padding = dense<0> : tensor<4x2xi64>, window_dilations = array<i64: 1, 1, 1, 1>, window_dimensions = array<i64: 1, 1, 2, 2>, window_strides = array<i64: 1, 1, 2, 2>}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %98 = stablehlo.maximum %arg1, %arg2 : tensor<f32>
      stablehlo.return %98 : tensor<f32>
    }) : (tensor<2x8x8x8xf32>, tensor<f32>) -> tensor<2x8x4x4xf32>
    %40 = stablehlo.reduce(%39 init: %cst_27) applies stablehlo.add across dimensions = [2, 3] : (tensor<2x8x4x4xf32>, tensor<f32>) -> tensor<2x8xf32>
    %41 = stablehlo.convert %cst_29 : (tensor<1xi64>) -> tensor<1xf32>
    %42 = stablehlo.reshape %41 : (tensor<1xf32>) -> tensor<f32>
    %43 = stablehlo.broadcast_in_dim %42, dims = [] : (tensor<f32>) -> tensor<2x8xf32>
    %44 = stablehlo.divide %40, %43 : tensor<2x8xf32>
    %45 = stablehlo.convert %44 : (tensor<2x8xf32>) -> tensor<2x8xf64>
    %46 = stablehlo.reduce(%45 init: %cst_28) applies stablehlo.add across dimensions = [1] : (tensor<2x8xf64>, tensor<f64>) -> tensor<2xf64>
    %47 = stablehlo.reshape %46 : (tensor<2xf64>) -> tensor<2x1xf64>
    %48 = stablehlo.convert %cst_30 : (tensor<1xi64>) -> tensor<1xf64>
    %49 = stablehlo.reshape %48 : (tensor<1xf64>) -> tensor<f64>
    %50 = stablehlo.broadcast_in_dim %49, dims = [] : (tensor<f64>) -> tensor<2x1xf64>
    %51 = stablehlo.divide %47, %50 : tensor<2x1xf64>
    %52 = stablehlo.broadcast_in_dim %51, dims = [0, 1] : (tensor<2x1xf64>) -> tensor<2x8xf64>
    %53 = stablehlo.subtract %45, %52 : tensor<2x8xf64>
    %54 = stablehlo.multiply %53, %53 : tensor<2x8xf64>
    %55 = stablehlo.reduce(%54 init: %cst_28) applies stablehlo.add across dimensions = [1] : (tensor<2x8xf64>, tensor<f64>) -> tensor<2xf64>
    %56 = stablehlo.reshape %55 : (tensor<2xf64>) -> tensor<2x1xf64>
    %57 = stablehlo.divide %56, %50 : tensor<2x1xf64>
    %58 = stablehlo.convert %57 : (tensor<2x1xf64>) -> tensor<2x1xf32>
    %59 = stablehlo.reduce(%44 init: %cst_27) applies stablehlo.add across dimensions = [1] : (tensor<2x8xf32>, tensor<f32>) -> tensor<2xf32>
    %60 = stablehlo.reshape %59 : (tensor<2xf32>) -> tensor<2x1xf32>
    %61 = stablehlo.convert %cst_30 : (tensor<1xi64>) -> tensor<1xf32>
    %62 = stablehlo.reshape %61 : (tensor<1xf32>) -> tensor<f32>
    %63 = stablehlo.broadcast_in_dim %62, dims = [] : (tensor<f32>) -> tensor<2x1xf32>
    %64 = stablehlo.divide %60, %63 : tensor<2x1xf32>
    %65 = stablehlo.convert %cst_31 : (tensor<1xf64>) -> tensor<1xf32>
    %66 = stablehlo.reshape %65 : (tensor<1xf32>) -> tensor<f32>
    %67 = stablehlo.broadcast_in_dim %66, dims = [] : (tensor<f32>) -> tensor<2x1xf32>
    %68 = stablehlo.add %58, %67 : tensor<2x1xf32>
    %69 = stablehlo.rsqrt %68 : tensor<2x1xf32>
    %70 = stablehlo.broadcast_in_dim %64, dims = [0, 1] : (tensor<2x1xf32>) -> tensor<2x8xf32>
    %71 = stablehlo.subtract %44, %70 : tensor<2x8xf32>
    %72 = stablehlo.broadcast_in_dim %69, dims = [0, 1] : (tensor<2x1xf32>) -> tensor<2x8xf32>
    %73 = stablehlo.multiply %71, %72 : tensor<2x8xf32>
    %74 = stablehlo.broadcast_in_dim %cst_2, dims = [1] : (tensor<8xf32>) -> tensor<2x8xf32>
    %75 = stablehlo.multiply %73, %74 : tensor<2x8xf32>
    %76 = stablehlo.broadcast_in_dim %cst_1, dims = [1] : (tensor<8xf32>) -> tensor<2x8xf32>
    %77 = stablehlo.add %75, %76 : tensor<2x8xf32>
    %78 = stablehlo.transpose %cst_0, dims = [1, 0] : (tensor<10x8xf32>) -> tensor<8x10xf32>
    %79 = stablehlo.dot_general %77, %78, contracting_dims = [1] x [0] : (tensor<2x8xf32>, tensor<8x10xf32>) -> tensor<2x10xf32>
    %80 = stablehlo.convert %cst_32 : (tensor<1xi64>) -> tensor<1xf32>
    %81 = stablehlo.reshape %80 : (tensor<1xf32>) -> tensor<f32>
    %82 = stablehlo.broadcast_in_dim %81, dims = [] : (tensor<f32>) -> tensor<2x10xf32>
    %83 = stablehlo.multiply %79, %82 : tensor<2x10xf32>
    %84 = stablehlo.broadcast_in_dim %81, dims = [] : (tensor<f32>) -> tensor<10xf32>
    %85 = stablehlo.multiply %84, %cst : tensor<10xf32>
    %86 = stablehlo.broadcast_in_dim %85, dims = [1] : (tensor<10xf32>) -> tensor<2x10xf32>
    %87 = stablehlo.add %83, %86 : tensor<2x10xf32>
    %88 = stablehlo.reduce(%87 init: %cst_26) applies stablehlo.maximum across dimensions = [1] : (tensor<2x10xf32>, tensor<f32>) -> tensor<2xf32>
    %89 = stablehlo.reshape %88 : (tensor<2xf32>) -> tensor<2x1xf32>
    %90 = stablehlo.broadcast_in_dim %89, dims = [0, 1] : (tensor<2x1xf32>) -> tensor<2x10xf32>
    %91 = stablehlo.subtract %87, %90 : tensor<2x10xf32>
    %92 = stablehlo.exponential %91 : tensor<2x10xf32>
    %93 = stablehlo.reduce(%92 init: %cst_27) applies stablehlo.add across dimensions = [1] : (tensor<2x10xf32>, tensor<f32>) -> tensor<2xf32>
    %94 = stablehlo.reshape %93 : (tensor<2xf32>) -> tensor<2x1xf32>
    %95 = stablehlo.log %94 : tensor<2x1xf32>
    %96 = stablehlo.broadcast_in_dim %95, dims = [0, 1] : (tensor<2x1xf32>) -> tensor<2x10xf32>
    %97 = stablehlo.subtract %91, %96 : tensor<2x10xf32>
    return %97 : tensor<2x10xf32>
  }
}

{-#
  dialect_resources: {
    builtin: {
      torch_tensor_10_torch.float32: "0x040000001B8CC4BD03B28BBDDC960A3D7B69A73EC5119B3C83895FBEBF72943CC8972D3EF395333EC770A5BE",
      torch_tensor_10_8_torch.float32: "0x040000002FB3883E1AF3B43E4A489E3ED43E8C3E5E00A6BDE11BFEBD2FA0943E0CE14A3E05DE59BE50BDA23E0EEC2E3E315C453ED2EA62BED6BCCF3D96D5FDBDCE708D3E784A82BD39F20C3EA99C803D33091A3EB90FF6BD0A85303E9DDF7CBE5789A33DD2F374BE1695B2BE5E5E91BECBE88E3E36E0433ECFD5A93EB804913E93A8A1BE031177BE20FF69BD9E1E6BBEFC657B3E1EDA88BEA2A330BE98E1AEBEBD8B4DBE63E2943E1E36943E9994813E1CC58B3EBFF5A03ECF68B9BD3A4C1F3E9046A13ED389EF3DF3F5B43EAAC63B3E8C0F613EE06BFDBD53B72D3E0767263D16ECACBDB3154CBE59254BBE794A8BBE2B0C733E3AB1803E81D124BDB88151BE2CE98B3E0C85673E594BD73C65EE2ABE8D5DA63E660D143E846B89BE2140AD3E1A76893EB5F503BE8D854B3ED6B44DBE53F262BD28B4993E92586F3C290580BEAF02F2BD",
      torch_tensor_8_torch.float32_2: "0x040000000000000000000000000000000000000000000000000000000000000000000000",
      torch_tensor_8_torch.float32_1: "0x040000000000803F0000803F0000803F0000803F0000803F0000803F0000803F0000803F",
      torch_tensor_8_torch.float32: "0x0400000053689F3D3E0DA6BDF36D0DBE87C212BE3C422A3EBEACD83DEEF0EBBD4E8B853D",
      torch_tensor_8_4_3_3_torch.float32: "0x040000002B9C0F3CF8FEAEBD56FEE63CBF591FBECEA2F6BDB3F7AFBD335CD73D8821C83D306197BDD60EC5BBAB4DDA3D57AA293E1878873D6072B83CFEDBE43D56FAC8BDF66BFE3C9E5104BECB92ECBDC353B0BDB3719A3D5045893D8E30CABD0B3D4E3DE861BB3D2B54ACBCAB85D03B562D1E3D56C1D33D86DF233E0F8503BE3B2D7ABDBB25863DE0670D3EF083143EC296163E50DC073DA66814BE6B337B3C3B8AD5BDB30D1FBED4A2173EA0C4013EAA3E2ABE608DFF3C0B01E6BC4BAEE0BC683F9CBD0843833D462CCABD7B427A3D739DAC3DD059F43DB6417F3D32EA28BE006CDDBDD06EAA3D10E20E3D642205BEE08BC4BDF78D203E1BFFE53D76D494BD1BD12BBDA69322BE565344BBA68500BE17A503BE6B7516BC80FFCC3C4EC98BBD208ACA3DF6B6CFBD9BDB1A3E6BEAE93D98EB0FBEB0E729BD006EF63B2034C73C36E9213DE8F2853D4091233CDE8BA6BDE383A13D3AB623BE804FCABD50E42ABD9E44A6BDD0D16EBDD2E10BBEAB3611BDA6EC113DF35DDEBDD6220CBC0058F43D4B5B8CBC56C8973B56926BBCB6280A3D8008D93DD2A9213E08C4D83D8308223E807C45BC445019BE80D1A1BD686AE83DAB9C8DBA93A8A9BDACC802BE00B81FBE480B10BE4B780ABD7330BB3DF089B83DAC9824BEE8EAD43D5C8C05BEA05210BDBE668ABDF67D03BD600906BDD22519BE2E5C13BE8BA5D5BC00410D3B260F9BBD7B94803D279C19BE004938BC6C16163E263A8BBDCF1C1A3EF63A773D1F051ABEF0F5D73D4B8D9DBCA05F98BD6379083E38EA09BECB81923CD6ED0EBD1EC0F33D0B903E3D3303A43D0017713D002A24BD8B910FBDABA40CBE10F3B83D6F81073E7B8CE93DE6C4F0BD2B93F33B169EF0BD0BE6BBBD96E5C6BD464C693DB067CBBD564D6EBB80BFE53B0608DC3DA70201BE5B54EABDFB32C6BD1EE9EE3D106575BD96F40F3E80DB763D00E3AC3C009EA2BA5BF306BDAB4DAB3C20E21BBDAB7E99BA0035AE3C107F05BE4EE7B2BDE6CF093E04810ABE2B1444BC80D4283EC09A763D80A09A3BC4E613BEC816A93D0B20F3BDE0C841BDBB0B65BD4B30CABC56F3EE3A64C40C3E5672AA3C6BDD183E40CCD03DB3CBD7BDE316993D8649F1BD68AA90BDABC9483D4069613DF709003EE0C25BBDABE28B39F8B9AF3DE70C25BE03C7F63DCB200DBEAB8A163B2B21E8BC63C5B3BD2075B43CA2200D3E8B8E47BDC8A5CABD067A7CBDEF2729BE68139A3D16EEA3BD16C9E3BD83A4C4BD6E40C43DDBC2B43D8BFD023E769E773DB0FB63BD1BC53EBD20AE493D3F4B0C3E9B9C393D1380A1BDFE73A0BD2C5C21BE207D133DE08CBFBD8B2918BE52A7153E6BAADDBD8B529BBC6094433D2BFDAD3B4EADE5BD1EF409BE1009083E4054DE3CDA960D3E8BDB64BD4B15493D101C1CBD2BDFF2BB18E3CFBDE6E0663D00D6573DAB5161BB808819BD7668D2BD1B0CEC3DC618FEBD1ED58B3D908C65BDB3AEA4BD8046F53CD84EB1BD2B4A1D3D0B10063DB86FFDBD7653E33C4362913D3E1C873DCBDDABBC12E90BBEC078D2BC6B186D3DE61679BD4E90813DB350E33D4E3AB2BD566FD73A18248D3D1606563CC018643CA07BAA3C522B06BE2B99563CF05CEC3D43CA193E769EC83D76F5B63C",
      torch_tensor_4_1_3_3_torch.float32: "0x04000000568D23BB281B373E64778CBE56337BBE4E7703BEE60FB73DAB69D8BBDF51873E9654F2BC66A4B43D904FCEBD4B3086BDD00BA3BE180F62BE9BB40CBEAB4E4A3CEBF0063ECBCE4C3E666767BE53A314BECBF4F73D34B88D3E307E8CBD7B6C7F3EAB115CBDB678103DDC889A3E8A529EBEDEE156BED6D3ACBD3E0D05BEC674933ECE3E5DBE80201DBE23786EBEFAD69FBE",
      torch_tensor_4_torch.float32: "0x04000000064047BE6AB4923E284F183E566F253E"
    }
  }
#-}

//// a tensor by its elements {metal=4.0}
kernel void k(tensor<device float, dextents<int, 2>> x [[buffer(0)]], device float* out [[buffer(1)]],
              uint2 i [[thread_position_in_grid]]) {
    if (int(i.x) < x.get_extent(0) && int(i.y) < x.get_extent(1)) out[i.x] = x.get(int(i.x), int(i.y)) * float(x.get_rank());
}

//// numbered by Metal {metal=4.0}
kernel void k(tensor<device half, dextents<int, 2>> x, tensor<device half, dextents<int, 2>, tensor_handle> y) {}  // remark: Metal numbers it

//// a tensor of a pointer {metal=4.0}
kernel void k(device half* a [[buffer(0)]], constant int& n [[buffer(1)]], uint2 i [[threadgroup_position_in_grid]]) {
    auto x = tensor<device half, dextents<int, 2>, tensor_inline>(a, dextents<int, 2>(n, 128));
    auto row = x.slice(0, int(i.y) * 64);
    auto part = x.slice<32, dynamic_extent>(int(i.x) * 32, 0);
    row.get(0, 1) = part.get(1, 0);
}

//// a product of matrices {metal=4.0}
#include <metal_tensor>
#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>
using namespace mpp::tensor_ops;
kernel void k(tensor<device half, dextents<int, 2>> a [[buffer(0)]], tensor<device half, dextents<int, 2>> b [[buffer(1)]],
              tensor<device float, dextents<int, 2>> c [[buffer(2)]], uint2 group [[threadgroup_position_in_grid]]) {
    constexpr auto what = matmul2d_descriptor(64, 32, dynamic_length_v<int>, false, true, false,
                                              matmul2d_descriptor::mode::multiply_accumulate);
    matmul2d<what, execution_simdgroups<4>> product;
    auto rows = a.slice(0, int(group.y) * 64);
    auto columns = b.slice(int(group.x) * 32, 0);
    auto tile = c.slice(int(group.x) * 32, int(group.y) * 64);
    product.run(rows, columns, tile);
}

//// a cooperative tensor {metal=4.0}
#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>
using namespace mpp::tensor_ops;
kernel void k(tensor<device half, dextents<int, 2>> a [[buffer(0)]], tensor<device half, dextents<int, 2>> b [[buffer(1)]],
              tensor<device float, dextents<int, 2>> c [[buffer(2)]], uint2 group [[threadgroup_position_in_grid]]) {
    constexpr auto what = matmul2d_descriptor(64, 32);
    matmul2d<what, execution_simdgroups<4>> product;
    auto rows = a.slice(0, int(group.y) * 64);
    auto columns = b.slice(int(group.x) * 32, 0);
    auto tile = c.slice(int(group.x) * 32, int(group.y) * 64);
    auto sums = product.get_destination_cooperative_tensor<decltype(rows), decltype(columns), float>();
    for (uint16_t i = 0; i < sums.get_capacity(); i++)
        if (sums.is_valid_element(i)) sums[i] = 0.0f;
    product.run(rows, columns, sums);
    for (uint16_t i = 0; i < sums.get_capacity(); i++)
        if (sums.is_valid_element(i)) sums[i] = max(sums[i], float(sums.get_multidimensional_index(i)[0]));
    sums.store(tile);
}

//// elements without an address space {metal=4.0}
kernel void k(tensor<half, dextents<int, 2>> x [[buffer(0)]]) {}  // error: the elements of a tensor have an address space

//// too few indices {metal=4.0}
kernel void k(tensor<device half, dextents<int, 2>> x [[buffer(0)]]) {
    auto row = x.slice(0);  // error: as many indices as the tensor has axes
}

//// a number taken twice {metal=4.0}
kernel void k(tensor<device half, dextents<int, 2>> x [[buffer(0)]], device half* y [[buffer(0)]]) {}  // error: buffer index 0 is used twice

//// an inline tensor as a parameter {metal=4.0}
kernel void k(tensor<device half, dextents<int, 2>, tensor_inline> x) {}  // error: has no attribute

//// a product on nothing {metal=4.0}
#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>
using namespace mpp::tensor_ops;
kernel void k(tensor<device half, dextents<int, 2>> a [[buffer(0)]]) {
    constexpr auto what = matmul2d_descriptor(8, 8);
    matmul2d<what, float> product;  // error: a product runs on execution_thread
    product.run(a, a, a);
}

//// a product of numbers {metal=4.0}
#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>
using namespace mpp::tensor_ops;
kernel void k(tensor<device half, dextents<int, 2>> a [[buffer(0)]]) {
    constexpr auto what = matmul2d_descriptor(8, 8);
    matmul2d<what, execution_simdgroup> product;
    float b = 1.0f;
    product.run(a, b, a);  // error: a product is of tensors
}

//// a product of what goes away {metal=4.0}
#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>
using namespace mpp::tensor_ops;
kernel void k(tensor<device half, dextents<int, 2>> a [[buffer(0)]]) {
    constexpr auto what = matmul2d_descriptor(8, 8);
    matmul2d<what, execution_simdgroup> product;
    product.run(a.slice(0, 0), a, a);  // error: no matching member function
}

//// tensors of an earlier version
kernel void k(tensor<device half, dextents<int, 2>> x [[buffer(0)]]) {}  // error: since Metal 4.0

//// a store to const elements {metal=4.0}
#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>
using namespace mpp::tensor_ops;
kernel void k(tensor<device half, dextents<int, 2>> a [[buffer(0)]], tensor<device const half, dextents<int, 2>> b [[buffer(1)]]) {
    constexpr auto what = matmul2d_descriptor(8, 8);
    matmul2d<what, execution_simdgroup> product;
    auto sums = product.get_destination_cooperative_tensor<decltype(a), decltype(a), half>();
    sums.load(b);
    sums.store(b);  // error: a tensor of const elements is not stored to
}

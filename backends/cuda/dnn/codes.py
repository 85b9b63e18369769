"""Numbers of ``cudnn_graph.h``: types of elements and of attributes, and what engines note about themselves."""

#: cudnnDataType_t.
TYPES = {"float32": 0, "float64": 1, "float16": 2, "int32": 4, "bfloat16": 9, "bool": 11}
#: cudnnBackendAttributeType_t.
HANDLE, DATA_TYPE, BOOLEAN, INT64, FLOAT, DOUBLE, POINTER, CONVOLUTION_MODE, HEURISTIC = range(9)
NUMERICS, POINTWISE_MODE, DESCRIPTOR, REDUCTION_OPERATOR, BEHAVIOR = 11, 14, 15, 18, 19
#: cudnnBackendNumericalNote_t.
TENSOR_CORES, ROUNDS_INPUTS, ROUNDS_SUMS, FOURIER, CHANGES, WINOGRAD = 0, 1, 2, 3, 4, (5, 6, 7, 8)
#: cudnnBackendBehaviorNote_t: an engine that is compiled for its operation, which takes long.
COMPILES = 0

"""smelt: an array framework with a compiler inside.

>>> import smelt
>>> smelt.exp(smelt.array([0.0, 1.0]))
array([1, 2.71828], dtype=float32)
"""

import math as _math
import os as _os
from typing import TYPE_CHECKING

# An editable installation is a folder of links. Files made since then are found where the links lead.
__path__ = list(dict.fromkeys([*__path__, _os.path.dirname(_os.path.realpath(__file__))]))

from smelt.ir import collector as _collector
from smelt.ir.listing import listed as _listed

with _collector.lasting():
    import smelt.ir.ops as _ops  # fills the registry
    from smelt.ir import locks as _locks
    from smelt.ir.dtypes import DType as Dtype
    from smelt.ir.dtypes import (
        bfloat16,
        bool_,
        complex64,
        complex128,
        float16,
        float32,
        float64,
        int8,
        int16,
        int32,
        int64,
        uint8,
        uint16,
        uint32,
        uint64,
    )
    from smelt.ir.errors import SmeltError
    from smelt.ir.settings import settings as _settings
    from smelt.runtime.device import Device, DeviceType, cpu, default_device, gpu, reference, set_default_device
    from smelt.runtime.explain import explain
    from smelt.runtime.pipelines import default_pipeline

    from .functions import methods as _methods  # attaches the operators to array
    from .functions import namespace as _namespace
    from .functions.arithmetic import *
    from .functions.arrangement import *
    from .functions.at import ArrayAt
    from .functions.complex_numbers import *
    from .functions.compositions import *
    from .functions.creation import *
    from .functions.diagonals import *
    from .functions.dtypes import *
    from .functions.elementary import *
    from .functions.floats import *
    from .functions.index_functions import *
    from .functions.joining import *
    from .functions.linear import *
    from .functions.logic import *
    from .functions.moments import *
    from .functions.ranges import *
    from .functions.reductions import *
    from .functions.rounding import *
    from .functions.searching import *
    from .functions.shaping import *
    from .functions.sorting import *
    from .functions.stacking import *
    from .functions.transcendental import *
    from .functions.views import *
    from .functions.windows import *
    from .lazy.arrays import ArrayIterator, array
    from .lazy.eval import async_eval, eval, synchronize
    from .lazy.printing import PrintOptions, get_printoptions, printoptions, set_printoptions
    from .lazy.shape_dtype import ShapeDtype
    from .lazy.signatures import ArrayLike
    from .lazy.streams import *

bool = bool_  # the array API's name
e, pi, inf, nan, newaxis = _math.e, _math.pi, _math.inf, _math.nan, None
euler_gamma = 0.5772156649015329

__version__ = "0.1.0"
__array_api_version__ = _namespace.VERSION
__array_namespace_info__ = _namespace.array_namespace_info

__all__ = [
    "ArrayAt", "ArrayIterator", "ArrayLike", "Device", "DeviceType", "Dtype", "DtypeCategory", "FunctionExporter",
    "PrintOptions", "ShapeDtype", "SmeltError", "Stream", "StreamContext", "ThreadLocalStream", "__version__",
    "abs", "acos", "acosh", "add", "addmm", "all", "allclose", "angle", "any", "append", "arange", "arccos",
    "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh", "argmax", "argmin", "argpartition", "argsort",
    "argwhere", "array", "array_equal", "array_split", "as_strided", "asarray", "asin", "asinh", "associative_scan",
    "astype", "async_eval", "atan", "atan2", "atanh", "atleast_1d", "atleast_2d", "atleast_3d", "average",
    "bartlett", "beta", "betainc", "betaln", "bfloat16", "bincount", "bitwise_and", "bitwise_count", "bitwise_invert",
    "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "blackman", "block",
    "block_masked_mm", "bool", "bool_", "broadcast_arrays", "broadcast_shapes", "broadcast_to", "can_cast", "cbrt",
    "ceil", "checkpoint", "clear_cache", "clear_streams", "clip", "column_stack", "compat", "compile", "complex64",
    "complex128", "complexfloating", "compress", "concat", "concatenate", "cond", "conj", "conjugate", "contiguous",
    "conv1d", "conv2d", "conv3d", "conv_general", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
    "convolve", "copysign", "corrcoef", "correlate", "cos", "cosh", "count_nonzero", "cov", "cpu", "cuda", "cummax",
    "cummin", "cumprod", "cumsum", "cumulative_prod", "cumulative_sum", "cumulative_trapezoid", "custom_call",
    "custom_function", "custom_jvp", "custom_vjp", "default_device", "default_pipeline", "default_stream",
    "degrees", "delete", "depends", "dequantize", "device_count", "device_info", "diag", "diag_indices", "diagonal",
    "diff", "digamma", "digitize", "disable_compile", "distributed", "divide", "divmod", "dsplit", "dstack", "e",
    "ediff1d", "einsum", "einsum_path", "ellipe", "ellipk", "empty", "empty_like", "enable_compile", "entr", "equal",
    "erf", "erfc",
    "erfcinv", "erfcx", "erfinv", "errors", "euler_gamma", "eval", "exchange", "exp", "exp1", "exp2", "expand_dims",
    "expi", "explain", "expm1", "expn", "export_function", "export_to_dot", "exporter", "extract", "eye",
    "factorial", "fast", "fft",
    "fill_diagonal", "finfo", "flatnonzero", "flatten", "flip", "fliplr", "flipud", "float16", "float32", "float64",
    "floating", "floor", "floor_divide", "fmax", "fmin", "fmod", "fori_loop", "fresnel", "frexp", "from_dlpack",
    "from_fp8", "from_onnx", "from_stablehlo", "from_torch", "full", "full_like",
    "gamma", "gammainc", "gammaincc", "gammasgn", "gather_mm", "gather_qmm",
    "gather_qqmm", "gcd", "generic", "geomspace", "get_active_memory", "get_array_buffer_size", "get_cache_memory",
    "get_memory_limit", "get_peak_memory", "get_printoptions", "gpu", "grad", "gradient", "greater",
    "greater_equal", "hadamard_transform", "hamming", "hanning", "heaviside", "hessian", "histogram", "histogram2d",
    "histogram_bin_edges", "histogramdd", "hsplit", "hstack", "hypot", "i0", "i0e", "i1", "i1e", "identity",
    "iinfo", "imag", "import_function", "indices", "inexact", "inf", "inner", "insert", "int8", "int16", "int32",
    "int64", "integer", "interp", "intersect1d", "is_available", "isclose", "isdtype", "isfinite", "isin", "isinf",
    "isnan", "isneginf", "isposinf", "issubdtype", "j0", "j1", "jacfwd", "jacrev", "jvp", "k0", "k0e", "k1", "k1e",
    "kl_div", "kron", "lcm", "ldexp", "left_shift", "less", "less_equal", "lexsort", "lgamma", "linalg",
    "linear_transpose", "linearize", "linspace", "load", "log", "log1p", "log2", "log10", "log_ndtr", "logaddexp",
    "logaddexp2", "logcumsumexp", "logical_and", "logical_not", "logical_or", "logical_xor", "logit", "logspace",
    "logsumexp", "make_ir", "map", "matmul", "matrix_norm", "matrix_transpose", "max", "maximum", "mean", "median",
    "meshgrid", "metal", "min", "minimum", "minmax", "modf", "moveaxis", "multigammaln", "multiply", "nan",
    "nan_to_num", "nanargmax", "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmedian", "nanmin",
    "nanpercentile", "nanprod", "nanquantile", "nanstd", "nansum", "nanvar", "ndtr", "ndtri", "negative",
    "new_stream", "new_thread_local_stream", "new_thread_unsafe_stream", "newaxis", "nextafter", "nn", "nonzero",
    "not_equal", "number", "ones", "ones_like", "optimizers", "outer", "pad", "partition", "percentile",
    "permute_dims", "pi", "poly", "polyder", "polyfit", "polygamma", "polyint", "polymul", "polyval", "positive",
    "pow", "power", "printoptions", "prod", "profile", "ptp", "put_along_axis", "qqmm", "quantile", "quantize",
    "quantized_matmul", "radians", "random", "ravel", "ravel_multi_index", "real", "reciprocal", "reference",
    "rel_entr", "remainder", "repeat", "reset_peak_memory", "reshape", "resize", "result_type", "right_shift",
    "roll", "roots", "rot90", "round", "rsqrt", "save", "save_gguf", "save_safetensors", "savez",
    "savez_compressed", "scan", "searchsorted", "segmented_mm", "set_cache_limit", "set_default_device",
    "set_default_stream", "set_flush_subnormals", "set_memory_limit", "set_printoptions", "set_wired_limit",
    "setdiff1d", "setxor1d", "sici", "sigmoid", "sign", "signbit", "signedinteger", "sin", "sinc", "sinh", "slice",
    "slice_update", "softmax", "sort", "spence", "split", "sqrt", "square", "squeeze", "stack", "std", "stop_gradient",
    "stream", "subtract", "sum", "swapaxes", "switch", "synchronize", "take", "take_along_axis", "tan", "tanh",
    "tensordot", "tile", "to_fp8", "to_linalg", "to_stablehlo", "topk", "trace", "transpose", "trapezoid", "tri",
    "tril", "tril_indices", "triu", "triu_indices", "trunc", "uint8", "uint16", "uint32", "uint64", "unflatten",
    "union1d", "unique", "unique_all", "unique_counts", "unique_inverse", "unique_values", "unravel_index",
    "unsignedinteger", "unstack", "unwrap", "utils", "value_and_grad", "vander", "var", "vecdot", "view", "vjp",
    "vmap", "vsplit", "vstack", "where", "while_loop", "xlog1py", "xlogy", "y0", "y1", "zeros", "zeros_like",
    "zeta",
]  # fmt: skip

if TYPE_CHECKING:
    from . import compat, cuda, distributed, errors, exchange, fast, fft, linalg, metal, nn, optimizers, random, utils
    from .exchange.exported import to_linalg, to_stablehlo
    from .exchange.imported import from_stablehlo
    from .exchange.onnx.imported import from_onnx
    from .exchange.torch.imported import from_torch
    from .late import *
else:
    from .late import HOMES as _homes

    # Modules that the first use loads.
    _LAZY = (
        "compat", "cuda", "distributed", "errors", "exchange", "fast", "fft", "linalg", "metal", "nn", "optimizers",
        "random", "utils",
    )  # fmt: skip
    _OF_EXCHANGE = ("from_onnx", "from_stablehlo", "from_torch", "to_linalg", "to_stablehlo")

    def _missing(name: str) -> AttributeError:
        return _locks.loaded(f"{__name__}.foreign").missing(name, __all__)

    def __getattr__(name):
        if name in _LAZY:
            return _locks.loaded(f"{__name__}.{name}")
        if name in _OF_EXCHANGE:
            return getattr(_locks.loaded(f"{__name__}.exchange"), name)
        if name[:2] == "__":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        if name in _homes:
            module, attribute = _homes[name]
            found = getattr(_locks.loaded(f"{__name__}.{module}"), attribute)
            return globals().setdefault(name, found)  # another thread was quicker, or a program has put its own there
        raise _missing(name)


if _settings.profile:
    from smelt.runtime.profile import profile_process as _profile_process

    _profile_process(_settings.profile)

__dir__ = _listed(globals())

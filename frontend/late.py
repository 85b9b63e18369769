"""What `import smelt` does not load: the first use of a name loads the module that has it.

A program seldom uses many of these names, and to load them all would take longer than the import. A new one stands in
both lists: that of type checkers, and that of modules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from smelt.runtime.profile import profile as profile

    from .divisors import *
    from .functions.convolution import *
    from .functions.custom_calls import *
    from .functions.gamma_functions import *
    from .functions.histograms import *
    from .functions.incomplete import *
    from .functions.integrals import *
    from .functions.mixtures import *
    from .functions.nans import *
    from .functions.numerics import *
    from .functions.padding import *
    from .functions.polynomials import *
    from .functions.probabilities import *
    from .functions.quantiles import *
    from .functions.quantization import *
    from .functions.quantized_products import *
    from .functions.second_kind import *
    from .functions.sets import *
    from .functions.special import *
    from .functions.statistics import *
    from .functions.structured_products import *
    from .io import *
    from .lazy.depends import *
    from .lazy.dot import *
    from .linalg.norms import norm as matrix_norm
    from .linalg.polynomials import *
    from .memory import *
    from .subnormals import *
    from .transforms.compile import compile as compile
    from .transforms.compile import disable_compile as disable_compile
    from .transforms.compile import enable_compile as enable_compile
    from .transforms.compile import make_ir as make_ir
    from .transforms.control import *
    from .transforms.custom import checkpoint as checkpoint
    from .transforms.custom import custom_function as custom_function
    from .transforms.custom import custom_jvp as custom_jvp
    from .transforms.custom import custom_vjp as custom_vjp
    from .transforms.export import *
    from .transforms.grad import grad as grad
    from .transforms.grad import jvp as jvp
    from .transforms.grad import stop_gradient as stop_gradient
    from .transforms.grad import value_and_grad as value_and_grad
    from .transforms.grad import vjp as vjp
    from .transforms.imported import *
    from .transforms.jacobians import hessian as hessian
    from .transforms.jacobians import jacfwd as jacfwd
    from .transforms.jacobians import jacrev as jacrev
    from .transforms.linearize import linear_transpose as linear_transpose
    from .transforms.linearize import linearize as linearize
    from .transforms.vmap import vmap as vmap
else:
    NAMES = {
        "divisors": "gcd lcm",
        "functions.convolution": (
            "conv1d conv2d conv3d conv_general conv_transpose1d conv_transpose2d conv_transpose3d convolve "
            "correlate"
        ),
        "functions.custom_calls": "custom_call",
        "functions.gamma_functions": "beta factorial gamma gammasgn",
        "functions.histograms": "histogram histogram2d histogram_bin_edges histogramdd",
        "functions.incomplete": "betainc gammainc gammaincc",
        "functions.integrals": "ellipe ellipk expn fresnel sici spence",
        "functions.mixtures": "gather_mm",
        "functions.nans": (
            "nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmedian nanmin nanpercentile nanprod "
            "nanquantile nanstd nansum nanvar"
        ),
        "functions.numerics": "cumulative_trapezoid geomspace gradient interp lexsort logspace trapezoid",
        "functions.padding": "pad",
        "functions.polynomials": "polyder polyint polymul polyval vander",
        "functions.probabilities": (
            "betaln entr erfcinv erfcx kl_div log_ndtr multigammaln ndtr ndtri rel_entr xlog1py xlogy"
        ),
        "functions.quantiles": "percentile quantile",
        "functions.quantization": "dequantize from_fp8 quantize to_fp8",
        "functions.quantized_products": "gather_qmm gather_qqmm qqmm quantized_matmul",
        "functions.second_kind": "exp1 expi k0 k0e k1 k1e y0 y1",
        "functions.sets": (
            "intersect1d isin setdiff1d setxor1d union1d unique unique_all unique_counts unique_inverse "
            "unique_values"
        ),
        "functions.special": "digamma i0 i0e i1 i1e j0 j1 lgamma logit polygamma zeta",
        "functions.statistics": "average bincount corrcoef cov digitize ptp",
        "functions.structured_products": "block_masked_mm hadamard_transform segmented_mm",
        "io": "load save save_gguf save_safetensors savez savez_compressed",
        "lazy.depends": "depends",
        "lazy.dot": "export_to_dot",
        "linalg.polynomials": "poly polyfit roots",
        "memory": (
            "clear_cache get_active_memory get_array_buffer_size get_cache_memory get_memory_limit "
            "get_peak_memory reset_peak_memory set_cache_limit set_memory_limit set_wired_limit"
        ),
        "runtime.profile": "profile",
        "subnormals": "set_flush_subnormals",
        "transforms.compile": "compile disable_compile enable_compile make_ir",
        "transforms.control": "associative_scan cond fori_loop map scan switch while_loop",
        "transforms.custom": "checkpoint custom_function custom_jvp custom_vjp",
        "transforms.export": "export_function exporter FunctionExporter",
        "transforms.grad": "grad jvp stop_gradient value_and_grad vjp",
        "transforms.imported": "import_function",
        "transforms.jacobians": "hessian jacfwd jacrev",
        "transforms.linearize": "linear_transpose linearize",
        "transforms.vmap": "vmap",
    }
    #: Of each name its module, relative to smelt, and what it is called there.
    HOMES = {name: (module, name) for module, names in NAMES.items() for name in names.split()}
    HOMES["matrix_norm"] = ("linalg.norms", "norm")

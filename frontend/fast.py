"""Kernels of one's own, and functions of rows and attention, under the names of `mlx.core.fast`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from smelt.ir import locks
from smelt.ir.errors import DeviceError, at_user_line
from smelt.ir.listing import listed

from .functions.attention import rope, scaled_dot_product_attention
from .functions.normalization import cross_entropy, layer_norm, rms_norm
from .recurrences import gated_delta_update

if TYPE_CHECKING:
    from .own_kernels import GpuKernel

__all__ = [
    "cross_entropy",
    "cuda_kernel",
    "gated_delta_update",
    "layer_norm",
    "metal_kernel",
    "precompiled_cuda_kernel",
    "rms_norm",
    "rope",
    "scaled_dot_product_attention",
]

__dir__ = listed(globals())


def metal_kernel(
    name: str,
    input_names: Sequence[str],
    output_names: Sequence[str],
    source: str,
    header: str = "",
    ensure_row_contiguous: bool = True,
    atomic_outputs: bool = False,
    compile_options: Any = None,
) -> GpuKernel:
    """A kernel written in Metal Shading Language, as a function of arrays.

    `source` is the body of the kernel; its signature is made for each call. The parameters are

    - each input by its name: ``const device T*`` (a 0-d input is a value: ``const constant T&``), and where
      these names occur in `source`, ``NAME_shape`` (int), ``NAME_strides`` (long, in elements) and
      ``NAME_ndim`` (int);
    - each output by its name: ``device T*``;
    - each of Metal's attributes that occurs in `source`: ``thread_position_in_grid`` and its kind are uint3,
      indices and counts like ``thread_index_in_simdgroup`` are uint.

    complex64 is float2. ``ceildiv(n, d)``, ``elem_to_loc(elem, NAME_shape, NAME_strides, NAME_ndim)`` and the
    names float16_t and bfloat16_t are defined.

    A call is lazy, and part of the program under `smelt.compile`, `smelt.vmap` (a launch for each element), in loops
    and branches. On the devices ``metal`` and ``metal:sim`` it is a launch like others; a program of any other device
    has it done by one of these, in between; ``metal:sim`` needs a C++ compiler. It has no derivative of its own: give
    a function that calls it one by `smelt.custom_function`.

    Args:
        name: of the kernel, an identifier.
        input_names, output_names: of the parameters, in order.
        source: the body.
        header: text before the kernel: functions, constants.
        ensure_row_contiguous: accepted for MLX's sake and ignored: smelt's arrays are row-major.
        atomic_outputs: outputs are ``device atomic<T>*``; T is float, int or uint.
        compile_options: accepted for MLX's sake and ignored: kernels are compiled in safe math mode.

    Raises:
        AttributeValueError: a name that is no identifier, that Metal reserves or that occurs twice; a parameter
            named like a function that `source` calls; an empty source, no outputs.

    >>> import smelt
    >>> body = "uint i = thread_position_in_grid.x; out[i] = x[i] * x[i];"
    >>> kernel = smelt.fast.metal_kernel("square", ["x"], ["out"], body)
    >>> x = smelt.array([1.0, 2.0, 3.0])
    >>> kernel(
    ...     inputs=[x], grid=(3, 1, 1), threadgroup=(32, 1, 1), output_shapes=[x.shape], output_dtypes=[x.dtype]
    ... )
    [array([1, 4, 9], dtype=float32)]
    """
    kernels = locks.loaded("smelt.own_kernels")
    return kernels.GpuKernel(name, input_names, output_names, source, header, bool(atomic_outputs))


def cuda_kernel(name: str, *args: Any, **kwargs: Any) -> NoReturn:
    """MLX's kernels in CUDA, which smelt does not run. It has `metal_kernel`, whose text runs on Apple's and
    NVIDIA's GPUs, and simulated on a CPU; `smelt.custom_call` calls any other code.

    Args:
        name, args, kwargs: whatever.

    Raises:
        DeviceError: always.

    >>> import smelt
    >>> try:
    ...     smelt.fast.cuda_kernel("myexp", ["x"], ["y"], "y[0] = exp(x[0]);")
    ... except smelt.SmeltError as error:
    ...     print(str(error).partition(";")[0])
    smelt.fast.cuda_kernel: smelt runs no kernels in CUDA
    """
    raise _no_cuda("cuda_kernel")


def precompiled_cuda_kernel(*args: Any, **kwargs: Any) -> NoReturn:
    """MLX's compiled kernels for NVIDIA GPUs, which smelt does not run; see `cuda_kernel`.

    Args:
        args, kwargs: whatever.

    Raises:
        DeviceError: always.

    >>> import smelt
    >>> try:
    ...     smelt.fast.precompiled_cuda_kernel(name="f", compiled_source=b"")
    ... except smelt.SmeltError as error:
    ...     print(type(error).__name__)
    DeviceError
    """
    raise _no_cuda("precompiled_cuda_kernel")


def _no_cuda(name: str) -> DeviceError:
    instead = "write smelt.fast.metal_kernel, or call code of your own by smelt.custom_call"
    return DeviceError(at_user_line(f"smelt.fast.{name}: smelt runs no kernels in CUDA; {instead}"))

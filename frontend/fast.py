"""Kernels of one's own, and functions of rows and attention, under the names of `mlx.core.fast`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from smelt.backends.gpu.devices import METAL
from smelt.backends.metal.custom.source import NAME, KernelSource, error_of, identifier, parameters
from smelt.ir.aval import Aval
from smelt.ir.dtypes import DType
from smelt.ir.errors import DeviceError, ShapeError, at_user_line
from smelt.ir.symbolic import index

from .functions.attention import rope, scaled_dot_product_attention
from .functions.custom_calls import custom_call_of
from .functions.normalization import cross_entropy, layer_norm, rms_norm
from .lazy.arguments import aval_of, dtype_of
from .lazy.arrays import ArrayLike, Scalar, StreamOrDevice, array, as_array
from .lazy.streams import check_stream
from .recurrences import gated_delta_update

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


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})


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
    return GpuKernel(KernelSource(name, input_names, output_names, source, header, bool(atomic_outputs)))


class GpuKernel:
    """What `metal_kernel` makes; call it."""

    def __init__(self, source: KernelSource):
        self._kernel = source

    @property
    def name(self) -> str:
        return self._kernel.name

    def __repr__(self) -> str:
        kernel = self._kernel
        return f"<{kernel.who}: {', '.join(kernel.inputs)} -> {', '.join(kernel.outputs)}>"

    def __call__(
        self,
        *,
        inputs: Sequence[ArrayLike],
        output_shapes: Sequence[Sequence[int]],
        output_dtypes: Sequence[DType | Any],
        grid: tuple[int, int, int],
        threadgroup: tuple[int, int, int],
        template: Sequence[tuple[str, DType | int | bool]] | None = None,
        init_value: Scalar | None = None,
        verbose: bool = False,
        stream: StreamOrDevice = None,
    ) -> list[array]:
        """The results of the kernel.

        Args:
            inputs: arrays or Python scalars, as many as there are input names.
            output_shapes, output_dtypes: one for each output.
            grid: threads (not threadgroups) along x, y, z.
            threadgroup: threads in a threadgroup, at most 1024 in all; no longer along an axis than the grid.
            template: names that the source may use: a dtype is a type, an int or bool a constant.
            init_value: what the outputs hold before; without, what was in their memory.
            verbose: print the text.
            stream: accepted for MLX's sake: a kernel runs where the class says.

        Returns:
            The outputs.

        Raises:
            AttributeValueError: counts do not match, an impossible grid or template.
            DTypeError: an element type that Metal does not have. ShapeError: an impossible output shape.
            SmeltError: when evaluated, the text does not compile; the message is the compiler's.
            NotDifferentiableError: when evaluated, an input is differentiated.
        """
        check_stream(stream)
        operands = self._check_inputs(inputs)
        results = self._check_outputs(output_shapes, output_dtypes)
        sizes = self._size(grid, "grid", 0), self._size(threadgroup, "threadgroup", 1)
        x, y, z = (max(1, min(g, t)) for g, t in zip(*sizes))
        if (threads := x * y * z) > METAL.max_threads:
            raise error_of(self._kernel, f"{threads} threads in a threadgroup, Metal allows {METAL.max_threads}")
        pairs = self._template(template or ())
        text = self._kernel.text([x.aval for x in operands], results, pairs).text
        if verbose:
            print(text)
        given = parameters(self._kernel, sizes[0], (x, y, z), pairs, init_value)
        return list(custom_call_of(NAME, operands, results, given))

    # What a call is given

    def _check_inputs(self, inputs: Sequence[ArrayLike]) -> list[array]:
        names = self._kernel.inputs
        if len(inputs) != len(names):
            raise error_of(self._kernel, f"takes {len(names)} inputs ({', '.join(names)}), got {len(inputs)}")
        return [as_array(x) for x in inputs]

    def _check_outputs(self, shapes: Sequence[Sequence[int]], types: Sequence[DType | Any]) -> list[Aval]:
        names = self._kernel.outputs
        for what, found in (("output_shapes", shapes), ("output_dtypes", types)):
            if isinstance(found, (str, DType)) or len(found) != len(names):
                count = 1 if isinstance(found, (str, DType)) else len(found)
                raise error_of(self._kernel, f"has {len(names)} outputs ({', '.join(names)}), {what} has {count}")
        results = []
        for name, shape, type_ in zip(names, shapes, types):
            try:
                extents = tuple(index(n) for n in shape)
            except TypeError:
                extents = (-1,)
            if any(n < 0 for n in extents):
                raise ShapeError(at_user_line(f"{self._kernel.who}: {shape!r} is no shape for output {name}"))
            results.append(aval_of("fast.metal_kernel", extents, dtype_of("fast.metal_kernel", type_)))
        return results

    def _size(self, size: Sequence[int], what: str, least: int) -> tuple[int, int, int]:
        try:
            x, y, z = (index(n) for n in size)
        except (TypeError, ValueError):
            raise error_of(self._kernel, f"{what} must be three integers, is {size!r}") from None
        if min(x, y, z) < least:
            raise error_of(self._kernel, f"{what} must be at least {least} along each axis, is {(x, y, z)}")
        return x, y, z

    def _template(self, template: Sequence[tuple[str, Any]]) -> list[tuple[str, DType | int | bool]]:
        """The template's names with dtypes, integers and bools."""
        found: list[tuple[str, DType | int | bool]] = []
        for item in template:
            if not isinstance(item, (tuple, list)) or len(item) != 2:
                raise error_of(
                    self._kernel, f"template holds pairs of a name and a dtype, int or bool; it has {item!r}"
                )
            name, value = item
            identifier(name, self._kernel.who, "a template parameter")
            if isinstance(value, (bool, np.bool_)):
                value = bool(value)
            elif isinstance(value, (int, np.integer)):
                if not -(2**63) <= value < 2**63:
                    raise error_of(self._kernel, f"the template parameter {name} must fit int64, is {value}")
                value = int(value)
            elif isinstance(value, (str, float)):
                message = f"the template parameter {name} must be a dtype, an int or a bool, is {value!r}"
                raise error_of(self._kernel, message)
            else:
                value = dtype_of("fast.metal_kernel", value)
            found.append((name, value))
        return found


def cuda_kernel(name: str, *args: Any, **kwargs: Any) -> NoReturn:
    """MLX's kernels in CUDA, which smelt does not run. It has `metal_kernel`, whose text runs on Apple's and
    NVIDIA's GPUs, and simulated on a CPU; `smelt.custom_call` calls any other code.

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

"""Kernels that a user writes in Metal Shading Language, for `smelt.fast.metal_kernel`, which loads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from smelt.backends.gpu.devices import METAL
from smelt.backends.metal.custom.source import NAME, KernelSource, error_of, identifier, parameters
from smelt.ir.aval import Aval
from smelt.ir.dtypes import DType
from smelt.ir.errors import ShapeError, at_user_line, shown
from smelt.ir.symbolic import index

from .functions.custom_calls import custom_call_of
from .lazy.arguments import aval_of, dtype_of, listed
from .lazy.arrays import ArrayLike, Scalar, StreamOrDevice, array, as_array
from .lazy.streams import check_stream


class GpuKernel:
    """What `metal_kernel` makes; call it."""

    def __init__(
        self, name: str, inputs: Sequence[str], outputs: Sequence[str], source: str, header: str, atomic: bool
    ):
        if not isinstance(inputs, str):  # of which the error says how names come
            inputs = listed("fast.metal_kernel", "input_names", inputs)
        if not isinstance(outputs, str):
            outputs = listed("fast.metal_kernel", "output_names", outputs)
        self._kernel = KernelSource(name, inputs, outputs, source, header, atomic)

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
                raise ShapeError(at_user_line(f"{self._kernel.who}: {shown(shape)} is no shape for output {name}"))
            results.append(aval_of("fast.metal_kernel", extents, dtype_of("fast.metal_kernel", type_)))
        return results

    def _size(self, size: Sequence[int], what: str, least: int) -> tuple[int, int, int]:
        try:
            x, y, z = (index(n) for n in size)
        except (TypeError, ValueError):
            raise error_of(self._kernel, f"{what} must be three integers, is {shown(size)}") from None
        if min(x, y, z) < least:
            raise error_of(self._kernel, f"{what} must be at least {least} along each axis, is {shown((x, y, z))}")
        return x, y, z

    def _template(self, template: Sequence[tuple[str, Any]]) -> list[tuple[str, DType | int | bool]]:
        """The template's names with dtypes, integers and bools."""
        found: list[tuple[str, DType | int | bool]] = []
        for item in template:
            if not isinstance(item, (tuple, list)) or len(item) != 2:
                raise error_of(
                    self._kernel, f"template holds pairs of a name and a dtype, int or bool; it has {shown(item)}"
                )
            name, value = item
            identifier(name, self._kernel.who, "a template parameter")
            if isinstance(value, (bool, np.bool_)):
                value = bool(value)
            elif isinstance(value, (int, np.integer)):
                if not -(2**63) <= value < 2**63:
                    raise error_of(self._kernel, f"the template parameter {name} must fit int64, is {shown(value)}")
                value = int(value)
            elif isinstance(value, (str, float)):
                message = f"the template parameter {name} must be a dtype, an int or a bool, is {shown(value)}"
                raise error_of(self._kernel, message)
            else:
                value = dtype_of("fast.metal_kernel", value)
            found.append((name, value))
        return found

"""The target of custom calls that run a user's kernel. All that the kernel is stands in the parameters of a call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from smelt.ir.custom_call import Call
from smelt.ir.errors import AttributeValueError, SmeltError

from ...buffer import Buffer
from ...device import best, launcher
from ...gpu.custom import CustomKernel
from ...gpu.manifest import OwnText, Size
from .source import NAME, KernelSource, KernelText, Template, error_of


def kernel(call: Call) -> CustomKernel:
    """The launch that a call is on Metal.

    Raises:
        AttributeValueError: parameters that `source.parameters` does not make.
    """
    text, grid, threads, initial = _read(call)
    own = OwnText(text.text, text.function, grid, text.constants)
    return CustomKernel(text.function, own, threads, text.buffers, initial)


def host(call: Call, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    """The call from the CPU: on a GPU where one is here, else simulated."""
    text, grid, threads, initial = _read(call)
    launch = launcher("msl", best())
    inputs: dict[int, Buffer | bytes] = {constant.index: constant.bytes for constant in text.constants}
    for buffer, x, aval in zip(text.buffers, arrays, call.operands):
        inputs[buffer.index] = Buffer.of(x, aval) if aval.ndim else np.ascontiguousarray(x).tobytes()
    listed = [inputs[i] for i in sorted(inputs)]
    return tuple([b.array for b in launch(text.text, text.function, listed, call.results, initial, grid, threads)])


def _read(call: Call) -> tuple[KernelText, Size, Size, Any]:
    """Text, grid, threads and initial value of a call, whatever text its parameters come from."""
    p = dict(call.parameters)
    initial = p.pop("initial", None)
    try:
        grid, threads, template = _size(p.pop("grid"), 0), _size(p.pop("threads"), 1), _pairs(p.pop("template"))
        source = KernelSource(**p)
    except SmeltError:
        raise
    except (KeyError, TypeError, ValueError) as error:
        raise _wrong(f"{type(error).__name__}: {error}") from None
    if (len(source.inputs), len(source.outputs)) != (len(call.operands), len(call.results)):
        raise error_of(source, f"has {len(call.operands)} operands and {len(call.results)} results; it names others")
    return source.text(call.operands, call.results, template), grid, threads, initial


def _size(value: Sequence[int], least: int) -> Size:
    x, y, z = value
    if not all(isinstance(n, int) and n >= least for n in value):
        raise _wrong(f"{value} is no size")
    return x, y, z


def _wrong(reason: str) -> AttributeValueError:
    return AttributeValueError(f"smelt.custom_call of {NAME}: its parameters are not those of a kernel: {reason}")


def _pairs(value: Any) -> Template:
    return [(name, item) for name, item in value]

"""What processes do together, whatever they talk over: targets of `smelt.custom_call`, and how these are batched.

Of n processes ``all_gather`` makes [n, …] of […], and ``sum_scatter`` […] of [n, …]; the others keep the shape.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from smelt.ir.builder import Builder, Value
from smelt.ir.custom_call import Call

#: By name: what is done, and of what reduces, how.
CALLS = {
    "all_sum": ("reduce", "sum"), "all_max": ("reduce", "max"), "all_min": ("reduce", "min"),
    "all_gather": ("gather", "sum"), "sum_scatter": ("scatter", "sum"), "send": ("send", "sum"),
    "recv": ("recv", "sum"),
}  # fmt: skip


def _gathered(b: Builder, operands: Sequence[Value], dims: Sequence[int | None], call: Call) -> Any:
    """The processes stay in front of the batch."""
    x = _moved(b, operands, dims, 0)
    return _again(b, call, x, (call.results[0].shape[0], *x.shape)), [1]


def _scattered(b: Builder, operands: Sequence[Value], dims: Sequence[int | None], call: Call) -> Any:
    x = _moved(b, operands, dims, 1)
    return _again(b, call, x, x.shape[1:]), [0]


def _moved(b: Builder, operands: Sequence[Value], dims: Sequence[int | None], axis: int) -> Value:
    (x,), (dim,) = operands, dims
    assert dim is not None, "the one operand has the batch"
    return b.move_axis(x, dim, axis)


def _again(b: Builder, call: Call, x: Value, shape: Sequence[int]) -> list[Value]:
    types = (call.results[0].with_shape(tuple(shape)),)
    return [b.custom_call(x, target=call.target, parameters=call.parameters, types=types)]


#: Rules of those whose batch does not simply go in front.
BATCH: dict[str, Callable[..., Any]] = {"all_gather": _gathered, "sum_scatter": _scattered}

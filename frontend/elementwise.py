"""Elementwise functions under MLX's names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from smelt.ir import dtypes
from smelt.ir.op import registry as ops

from .arrays import (
    ArrayLike,
    array,
    as_array,
    convert,
    emit_elementwise,
    promote_operands,
)

StreamOrDevice = Any  #: accepted for MLX's sake and ignored: arrays run on the default device


def _doc(text: str, example: str = "") -> str:
    return text + (f"\n\n    {example}\n    " if example else "")


def _unary(name: str, op_name: str, doc: str, floating: bool = False, example: str = "") -> Callable:
    """A function of one array; `floating`: integers and bools are converted to float32 first."""
    op = ops[op_name]

    def function(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
        a = as_array(a)
        if floating:
            a = convert(a, dtypes.to_float(a.dtype))
        return emit_elementwise(op, a)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = _doc(doc, example)
    return function


def _binary(name: str, op_name: str, doc: str, floating: bool = False, example: str = "") -> Callable:
    """A function of two arrays that broadcast and promote."""
    op = ops[op_name]

    def function(a: ArrayLike, b: ArrayLike, stream: StreamOrDevice = None) -> array:
        x, y = promote_operands(name, a, b, floating)
        return emit_elementwise(op, x, y)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = _doc(doc, example)
    return function


add = _binary("add", "add", "Elementwise sum, with broadcasting.")
subtract = _binary("subtract", "sub", "Elementwise difference, with broadcasting.")
multiply = _binary("multiply", "mul", "Elementwise product, with broadcasting.")
divide = _binary("divide", "div", "Elementwise quotient; integers are divided as float32.", floating=True)
maximum = _binary("maximum", "maximum", "Elementwise larger of two; NaN if either is NaN.")
minimum = _binary("minimum", "minimum", "Elementwise smaller of two; NaN if either is NaN.")
floor_divide = _binary("floor_divide", "floor_divide", "Elementwise quotient rounded towards minus infinity.")
remainder = _binary("remainder", "remainder", "Elementwise remainder with the sign of the divisor.")

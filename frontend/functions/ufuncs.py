"""NumPy's universal functions on smelt arrays: ``np.sin(x)`` is `smelt.sin`, ``host @ x`` is `smelt.matmul`.

So such a result is lazy, has a derivative, and may be part of a trace. What smelt has no function for (other ufuncs, an
`out` of NumPy's, `where`, …) NumPy computes on copies of the elements, and it returns what it returns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from smelt.ir.errors import ArgumentTypeError, at_user_line

from ..lazy.arrays import array
from ..lazy.host import ARRAY_PROTOCOLS
from . import (
    arithmetic,
    complex_numbers,
    compositions,
    floats,
    linear,
    logic,
    reductions,
    rounding,
    shaping,
    sorting,
    transcendental,
)

__all__: list[str] = []

#: Names of ufuncs whose function is called otherwise here.
_RENAMED = {
    "absolute": "abs", "invert": "bitwise_invert", "bitwise_not": "bitwise_invert", "true_divide": "divide",
    "rint": "round", "deg2rad": "radians", "rad2deg": "degrees", "fabs": "abs", "mod": "remainder",
}  # fmt: skip
_MODULES = (arithmetic, logic, transcendental, rounding, compositions, complex_numbers, floats, linear)
_REDUCED: dict[str, Callable[..., array]] = {
    "add": reductions.sum, "multiply": reductions.prod, "maximum": reductions.max, "minimum": reductions.min,
    "logical_and": reductions.all, "logical_or": reductions.any,
}  # fmt: skip
#: What is handed on to functions of smelt.
_KEYWORDS = frozenset(("axis", "keepdims", "dtype"))
_OF_REDUCTIONS = frozenset(("initial", "where"))
_ACCUMULATED: dict[str, Callable[..., array]] = {"add": sorting.cumsum, "multiply": sorting.cumprod}


def _functions() -> dict[np.ufunc, Callable[..., Any]]:
    found: dict[np.ufunc, Callable[..., Any]] = {}
    for ufunc in vars(np).values():
        if isinstance(ufunc, np.ufunc):
            name = _RENAMED.get(ufunc.__name__, ufunc.__name__)
            for module in _MODULES:
                if name in module.__all__:
                    found[ufunc] = getattr(module, name)
    return found


_FUNCTIONS = _functions()


def array_ufunc(self: array, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
    """What NumPy's universal functions do with an array; see `smelt.functions.ufuncs`."""
    if not all(map(_is_operand, inputs)):
        return NotImplemented
    outs = options.get("out") or ()
    if method == "at" or any(isinstance(out, array) for out in outs):
        rule = "x = x.at[indices].add(values)" if method == "at" else "assign the result, out[...] = result"
        message = f"numpy.{ufunc.__name__}: NumPy would write to a copy of a smelt array; {rule}"
        raise ArgumentTypeError(at_user_line(message))
    known = _KEYWORDS | _OF_REDUCTIONS if method == "reduce" else _KEYWORDS
    others = [name for name in options if name not in known and options[name] is not None]
    if not others and not any(hasattr(x, "mask") for x in inputs):  # masks are NumPy's
        found = _by_smelt(ufunc, method, inputs, options)
        if found is not None:
            return found
    hosts = [_on_host(x) for x in inputs]
    return getattr(ufunc, method)(*hosts, **{name: _on_host(value) for name, value in options.items()})


def _on_host(x: Any) -> Any:
    return x._host() if isinstance(x, array) else x


def _is_operand(x: Any) -> bool:
    """Whether smelt makes an array of it; a type with ufuncs of its own is asked first."""
    if isinstance(x, (array, np.ndarray, np.generic, bool, int, float, complex, list, tuple)):
        return True
    kind = type(x)
    return not hasattr(kind, "__array_ufunc__") and any(hasattr(kind, name) for name in ARRAY_PROTOCOLS)


def _by_smelt(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """The result by a function of smelt; None if there is none for it."""
    name, function = ufunc.__name__, _FUNCTIONS.get(ufunc)
    given = {key: value for key, value in options.items() if key in ("axis", "keepdims", "dtype")}
    if method == "__call__":
        return None if function is None or given else function(*inputs)
    if method == "outer" and function is not None and not given and not ufunc.signature:
        x, y = (v if isinstance(v, array) else array(v) for v in inputs)
        return function(shaping.reshape(x, (*x.shape, *[1] * y.ndim)), y)
    if len(inputs) != 1:
        return None
    if method == "accumulate" and name in _ACCUMULATED:
        return _ACCUMULATED[name](inputs[0], **{"axis": 0, **given})
    if method == "reduce" and name in _REDUCED:
        if given.get("dtype") is None:
            given.pop("dtype", None)
        elif name not in ("add", "multiply"):
            return None
        given.update({key: options[key] for key in _OF_REDUCTIONS if options.get(key) is not None})
        if "initial" in given and name.startswith("logical"):
            return None
        return _REDUCED[name](inputs[0], **{"axis": 0, **given})
    return None

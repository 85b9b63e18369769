"""How arrays print: NumPy's layout, with the dtype always shown; to programs written for MLX, MLX's layout."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from smelt.ir import dtypes
from smelt.ir.errors import AttributeValueError, at_user_line

from .arguments import integer
from .graph import state


@dataclass(frozen=True)
class PrintOptions:
    """How floating-point numbers print. Attributes: precision (digits after the point; -1: six significant ones).

    >>> import smelt
    >>> smelt.get_printoptions().precision
    -1
    """

    precision: int = -1

    def __post_init__(self) -> None:
        integer("PrintOptions", "precision", self.precision)


class _Local(threading.local):
    """The options of the block that this thread is in."""

    options: PrintOptions | None = None


class Layout:
    """How elements are laid out, for all threads. Attributes: of_mlx: not padded, and axes beyond six shortened."""

    of_mlx = False


_options = PrintOptions()
_local = _Local()
#: Digits after the point of the smallest float64: no number has more.
_MOST = 1074


def get_printoptions() -> PrintOptions:
    """How floating-point numbers print now.

    >>> import smelt
    >>> smelt.get_printoptions()
    PrintOptions(precision=-1)
    """
    return _local.options or _options


def set_printoptions(precision: int = -1) -> None:
    """Print floating-point numbers with so many digits after the point; -1 gives six significant digits.

    Inside of `printoptions` this holds for the rest of the block, elsewhere for all threads.

    Raises:
        AttributeValueError: less than -1, or more than 1074, which no number needs. ArgumentTypeError: not an int.

    >>> import smelt
    >>> smelt.set_printoptions(precision=2)
    >>> smelt.array(3.14159)
    array(3.14, dtype=float32)
    >>> smelt.set_printoptions()
    """
    global _options
    found = _checked(precision)
    if _local.options is None:
        _options = found
    else:
        _local.options = found


def _checked(precision: int) -> PrintOptions:
    digits = integer("set_printoptions", "precision", precision, -1)
    if digits > _MOST:
        raise AttributeValueError(at_user_line(f"smelt.set_printoptions: precision is {_MOST} at most, not {digits}"))
    return PrintOptions(digits)


@contextmanager
def printoptions(precision: int = -1) -> Iterator[PrintOptions]:
    """`set_printoptions` inside a with block, for this thread.

    >>> import smelt
    >>> with smelt.printoptions(precision=2):
    ...     print(smelt.array([1 / 3, 1.0]))
    array([0.33, 1.00], dtype=float32)
    """
    saved, _local.options = _local.options, _checked(precision)
    try:
        yield _local.options
    finally:
        _local.options = saved


def format_array(x: Any) -> str:
    """``array([1, 2], dtype=int32)``; a traced array prints its type."""
    node, _ = x._ref
    if node.values is None and state.compiling:
        return f"<traced array {x.aval}>"
    host = x._host()
    if x.dtype is dtypes.bfloat16:
        host = host.astype(np.float32)
    if Layout.of_mlx:
        body = _listed(host, next(iter((_formatter(host) or {}).values()), str), len("array("))
    elif host.size == 0:
        body = "[]" if host.shape == (0,) else f"[], shape={host.shape}"
    else:
        body = np.array2string(
            host, separator=", ", prefix="array(", suffix=")", threshold=1000, edgeitems=3, floatmode="maxprec",
            precision=6, formatter=_formatter(host),
        )  # fmt: skip
    return f"array({body}, dtype={x.dtype.name})"


def _listed(host: np.ndarray, shown: Callable[[Any], str], column: int) -> str:
    """Nested lists that begin at a column, of axes longer than six the three elements at either end."""
    if not host.ndim:
        return shown(host[()])
    n = len(host)
    parts = [_listed(host[i], shown, column + 1) for i in (range(n) if n <= 6 else (0, 1, 2, -3, -2, -1))]
    if n > 6:
        parts.insert(3, "...")
    return f"[{(', ' if host.ndim == 1 else ',' + chr(10) + ' ' * (column + 1)).join(parts)}]"


def _formatter(host: np.ndarray) -> Any:
    """Floats print with six significant digits, like ``%g``, unless a precision is set."""
    precision = get_printoptions().precision
    spec = "g" if precision < 0 else f".{precision}f"
    if host.dtype.kind == "f":
        return {"float_kind": lambda v: f"{v:{spec}}"}
    if host.dtype.kind == "c":
        return {"complex_kind": lambda v: f"{v.real:{spec}}{v.imag:+{spec}}j"}
    return None

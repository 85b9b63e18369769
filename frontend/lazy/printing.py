"""How arrays print: NumPy's layout, with the dtype always shown; to programs written for MLX, MLX's layout."""

from __future__ import annotations

import reprlib
import sys
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
    """How arrays print.

    Attributes:
        precision: digits after the point of floating-point numbers; -1: six significant ones.
        threshold: elements from which on more are left out, but for `edgeitems` at either end of an axis.
        edgeitems: how many those are.
        linewidth: characters of a line, at most.

    >>> import smelt
    >>> smelt.get_printoptions().precision
    -1
    """

    precision: int = -1
    threshold: int = 1000
    edgeitems: int = 3
    linewidth: int = 75

    def __post_init__(self) -> None:
        for name in ("precision", "threshold", "edgeitems", "linewidth"):
            integer("PrintOptions", name, getattr(self, name))


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
    """How arrays print now.

    >>> import smelt
    >>> smelt.get_printoptions()
    PrintOptions(precision=-1, threshold=1000, edgeitems=3, linewidth=75)
    """
    return _local.options or _options


def set_printoptions(
    precision: int = -1, *, threshold: int | None = None, edgeitems: int | None = None, linewidth: int | None = None
) -> None:
    """Print floating-point numbers with so many digits after the point; -1 gives six significant digits.

    Inside of `printoptions` this holds for the rest of the block, elsewhere for all threads.

    Args:
        precision: digits after the point.
        threshold: how many elements are printed at most: of larger arrays the elements at the ends of each axis are.
        edgeitems: how many elements these are. linewidth: characters of a line. What is left out stays as it is.

    Raises:
        AttributeValueError: a precision less than -1, or more than 1074, which no number needs; others below 0, or a
        line of no character. ArgumentTypeError: not an int.

    >>> import smelt
    >>> smelt.set_printoptions(precision=2)
    >>> smelt.array(3.14159)
    array(3.14, dtype=float32)
    >>> smelt.set_printoptions()
    """
    global _options
    found = _checked(precision, threshold, edgeitems, linewidth)
    if _local.options is None:
        _options = found
    else:
        _local.options = found


def _checked(
    precision: int, threshold: int | None, edgeitems: int | None, linewidth: int | None
) -> PrintOptions:
    digits = integer("set_printoptions", "precision", precision, -1)
    if digits > _MOST:
        raise AttributeValueError(at_user_line(f"smelt.set_printoptions: precision is {_MOST} at most, not {digits}"))
    now = get_printoptions()
    return PrintOptions(
        digits,
        now.threshold if threshold is None else integer("set_printoptions", "threshold", threshold, 0),
        now.edgeitems if edgeitems is None else integer("set_printoptions", "edgeitems", edgeitems, 0),
        now.linewidth if linewidth is None else integer("set_printoptions", "linewidth", linewidth, 1),
    )


@contextmanager
def printoptions(
    precision: int = -1, *, threshold: int | None = None, edgeitems: int | None = None, linewidth: int | None = None
) -> Iterator[PrintOptions]:
    """`set_printoptions` inside a with block, for this thread.

    Args:
        precision, threshold, edgeitems, linewidth: as of `set_printoptions`.

    >>> import smelt
    >>> with smelt.printoptions(precision=2):
    ...     print(smelt.array([1 / 3, 1.0]))
    array([0.33, 1.00], dtype=float32)
    """
    saved, _local.options = _local.options, _checked(precision, threshold, edgeitems, linewidth)
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
        options = get_printoptions()
        body = np.array2string(
            host, separator=", ", prefix="array(", suffix=")", threshold=options.threshold,
            edgeitems=options.edgeitems, max_line_width=options.linewidth, floatmode="maxprec", precision=6,
            formatter=_formatter(host),
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


def _shown_by_name(self: reprlib.Repr, x: Any, level: int) -> str:
    """In place of `reprlib.Repr.repr_array`, whose choice is by the name of the type alone until Python 3.12."""
    return _standard_array(self, x, level) if type(x).__module__ == "array" else self.repr_instance(x, level)


if sys.version_info < (3, 12):  # else what pytest and debuggers show of an array is an error
    _standard_array = reprlib.Repr.repr_array
    reprlib.Repr.repr_array = _shown_by_name  # type: ignore[method-assign]

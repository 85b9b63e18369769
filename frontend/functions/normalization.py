"""Normalization and loss of rows, under the names of `mlx.core.fast`: compositions that fusion makes one kernel of.

Half precision is computed in float32. Results have the common dtype of the arrays given.
"""

from __future__ import annotations

from collections.abc import Sequence

from smelt.ir import dtypes
from smelt.ir.errors import DTypeError, ShapeError, at_user_line
from smelt.ir.op import registry as ops

from ..lazy.arguments import number
from ..lazy.arrays import ArrayLike, StreamOrDevice, array, as_array, convert, emit_elementwise
from ..lazy.core import remembered
from ..lazy.operands import as_floating
from ..lazy.streams import check_stream
from .arithmetic import rsqrt, square
from .index_functions import take_along_axis
from .moments import mean
from .reductions import max, sum, widened
from .shaping import expand_dims, squeeze
from .transcendental import exp, log

__all__ = ["cross_entropy", "layer_norm", "rms_norm"]


def _rows(name: str, x: ArrayLike, **parameters: ArrayLike | None) -> tuple[array, dict[str, array]]:
    """Rows to normalize, as they are given, and the vectors that scale or shift them."""
    rows = as_array(x)
    if not rows.ndim:
        raise ShapeError(at_user_line(f"smelt.fast.{name}: x must have at least one axis; x {rows.aval}"))
    found = {key: as_array(value) for key, value in parameters.items() if value is not None}
    for key, value in {"x": rows, **found}.items():
        if value.dtype.is_complex:
            raise DTypeError(at_user_line(f"smelt.fast.{name}: {key} must hold real numbers; {key} {value.aval}"))
    for key, value in found.items():
        if value.shape not in ((), rows.shape[-1:]):
            raise ShapeError(
                at_user_line(
                    f"smelt.fast.{name}: {key} must have one element for each of the last axis of x; {key} "
                    f"{value.aval}, x {rows.aval}"
                )
            )
    return rows, found


def _epsilon(name: str, eps: float | array) -> float | array:
    """A number, or an array of no axes, which may be traced."""
    if isinstance(eps, array) and not eps.ndim and not eps.dtype.is_complex:
        return eps
    return number(f"fast.{name}", "eps", eps)


def _scaled(rows: array, normal: array, parameters: dict[str, array]) -> array:
    """The result in the common dtype, for which a bias without a weight does not count, as in MLX."""
    dtype = rows.dtype
    for value in parameters.values() if "weight" in parameters else ():
        dtype = dtypes.promote(dtype, value.dtype)
    if "weight" in parameters:
        normal = normal * parameters["weight"]
    if "bias" in parameters:
        normal = normal + parameters["bias"]
    return convert(normal, dtype if dtype.is_float else dtypes.float32)


@remembered
def rms_norm(x: ArrayLike, weight: ArrayLike | None, eps: float, *, stream: StreamOrDevice = None) -> array:
    """x / √(mean(x²) + eps) · weight, over the last axis.

    Args:
        x: [..., n], floating point; integers are taken as float32. weight: [n], a number or None.
        eps: keeps rows of zeros finite.

    Returns:
        An array of the shape of `x`.

    Raises:
        ShapeError: `weight` does not fit the last axis. DTypeError: an operand is complex.
        ArgumentTypeError: `eps` is no number.

    >>> import smelt
    >>> smelt.fast.rms_norm(smelt.array([3.0, 4.0]), smelt.array([1.0, 10.0]), 0.0)
    array([0.848528, 11.3137], dtype=float32)
    """
    check_stream(stream)
    rows, parameters = _rows("rms_norm", x, weight=weight)
    wide, added = widened(as_floating(rows)), _epsilon("rms_norm", eps)
    return _scaled(rows, wide * rsqrt(mean(square(wide), -1, True) + added), parameters)


@remembered
def layer_norm(
    x: ArrayLike, weight: ArrayLike | None, bias: ArrayLike | None, eps: float, *, stream: StreamOrDevice = None
) -> array:
    """(x - mean(x)) / √(var(x) + eps) · weight + bias, over the last axis.

    Args:
        x: [..., n], floating point; integers are taken as float32. weight, bias: [n], a number or
            None.
        eps: keeps constant rows finite.

    Returns:
        An array of the shape of `x`, in the common dtype of all; without a weight in that of `x`.

    Raises:
        ShapeError: `weight` or `bias` does not fit the last axis. DTypeError: an operand is complex.
        ArgumentTypeError: `eps` is no number.

    >>> import smelt
    >>> smelt.fast.layer_norm(smelt.array([1.0, 3.0]), None, smelt.array([0.5, 0.5]), 0.0)
    array([-0.5, 1.5], dtype=float32)
    """
    check_stream(stream)
    rows, parameters = _rows("layer_norm", x, weight=weight, bias=bias)
    wide, added = widened(as_floating(rows)), _epsilon("layer_norm", eps)
    centered = wide - mean(wide, -1, True)
    return _scaled(rows, centered * rsqrt(mean(square(centered), -1, True) + added), parameters)


@remembered
def cross_entropy(logits: ArrayLike, targets: ArrayLike, *, stream: StreamOrDevice = None) -> array:
    """-log softmax(logits)[targets], over the last axis, without overflow.

    Args:
        logits: [..., n], floating point. targets: [...], integers between 0 and n - 1; those outside
            are not found out.

    Returns:
        The losses, [...], as float32 (float64 for logits of that).

    Raises:
        ShapeError: shapes that do not fit. DTypeError: targets that are no integers, complex logits.

    >>> import smelt
    >>> smelt.fast.cross_entropy(smelt.array([[0.0, 0.0], [0.0, 100.0]]), smelt.array([0, 1]))
    array([0.693147, 0], dtype=float32)
    """
    check_stream(stream)
    x, labels = as_floating(logits), as_array(targets)
    _check_targets(x.shape, x, labels)
    wide = widened(x)
    # The largest is taken off first: no loss depends on it, and beside a large one it would have no digits.
    top = emit_elementwise(ops["stop_gradient"], max(wide, -1, True))
    chosen = widened(take_along_axis(x, expand_dims(labels, -1), -1)) - top
    return squeeze(log(sum(exp(wide - top), -1, True)) - chosen, -1)


def _check_targets(shape: Sequence[int], x: array, labels: array) -> None:
    if not labels.dtype.is_integer or x.dtype.is_complex:
        raise DTypeError(
            at_user_line(
                f"smelt.fast.cross_entropy: needs real logits and integer targets; logits {x.aval}, targets "
                f"{labels.aval}"
            )
        )
    if shape and not shape[-1] and labels.size:
        raise ShapeError(at_user_line(f"smelt.fast.cross_entropy: there are no classes; logits {x.aval}"))
    if not shape or labels.shape != tuple(shape[:-1]):
        raise ShapeError(
            at_user_line(
                f"smelt.fast.cross_entropy: targets need the shape of the logits without the last axis; logits "
                f"{x.aval}, targets {labels.aval}"
            )
        )

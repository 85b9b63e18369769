"""Convolutions, all on one primitive: `smelt.conv_general`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from smelt.ir.errors import ShapeError, at_user_line
from smelt.ir.op import registry as ops

from ..lazy.arguments import integer
from ..lazy.arrays import ArrayLike, StreamOrDevice, array, emit
from ..lazy.core import remembered
from ..lazy.movement import reversed_along
from ..lazy.streams import check_stream
from .linear import product_operands

__all__ = ["conv1d", "conv_general"]


@remembered
def conv1d(
    input: ArrayLike,
    weight: ArrayLike,
    /,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    groups: int = 1,
    *,
    stream: StreamOrDevice = None,
) -> array:
    """The convolution (without flipping the weight) along one axis.

    Args:
        input: shape [N, L, C_in].
        weight: shape [C_out, K, C_in / groups].
        stride: how far the window moves.
        padding: how many zeros stand before and behind the axis.
        dilation: how far apart the elements of the window are.
        groups: the i-th part of the output channels sees only the i-th part of the input channels.

    Returns:
        Shape [N, (L + 2·padding - dilation·(K - 1) - 1) // stride + 1, C_out], in the common dtype.

    Raises:
        ShapeError: arrays without three axes, channels that do not fit, or a window longer than the padded axis.
        ArgumentTypeError: an option that is no int. AttributeValueError: one that is too small.

    >>> import smelt
    >>> x = smelt.array([[[1.0], [2.0], [4.0], [8.0]]])
    >>> smelt.conv1d(x, smelt.array([[[1.0], [-1.0]]]), stride=2).tolist()
    [[[-1.0], [-4.0]]]
    """
    check_stream(stream)
    return _convolution("conv1d", input, weight, 1, (padding, padding), stride, dilation, 1, groups, False)


@remembered
def conv_general(
    input: ArrayLike,
    weight: ArrayLike,
    /,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] | tuple[Sequence[int], Sequence[int]] = 0,
    kernel_dilation: int | Sequence[int] = 1,
    input_dilation: int | Sequence[int] = 1,
    groups: int = 1,
    flip: bool = False,
    *,
    stream: StreamOrDevice = None,
) -> array:
    """The convolution along any number of axes.

    Each option is an int for all spatial axes, or a sequence with one for each.

    Args:
        input: shape [N, spatial axes, C_in].
        weight: shape [C_out, spatial axes, C_in / groups].
        stride: how far the window moves.
        padding: how many zeros stand before and behind an axis; or a pair of sequences: before, and behind.
        kernel_dilation: how far apart the elements of the window are.
        input_dilation: how far apart the elements of the input are, with zeros between them.
        groups: the i-th part of the output channels sees only the i-th part of the input channels.
        flip: whether the weight is flipped along the spatial axes, which is a convolution in the strict sense.

    Raises:
        ShapeError: arrays whose axes or channels do not fit, or a window longer than the padded input.
        ArgumentTypeError: an option that is no int. AttributeValueError: one that is too small.

    >>> import smelt
    >>> x = smelt.array([[[1.0], [2.0]]])
    >>> smelt.conv_general(x, smelt.ones((1, 2, 1)), padding=([1], [0]), input_dilation=2).tolist()
    [[[1.0], [1.0], [2.0]]]
    """
    check_stream(stream)
    sides: tuple[Any, Any] = (padding, padding)
    if isinstance(padding, (tuple, list)) and len(padding) == 2 and all(isinstance(p, (tuple, list)) for p in padding):
        sides = (padding[0], padding[1])
    dilations = kernel_dilation, input_dilation
    return _convolution("conv_general", input, weight, None, sides, stride, *dilations, groups, flip)


def _convolution(
    name: str,
    input: ArrayLike,
    weight: ArrayLike,
    spatial: int | None,
    padding: tuple[Any, Any],
    stride: Any,
    kernel_dilation: Any,
    input_dilation: Any,
    groups: int,
    flip: bool,
) -> array:
    x, w = product_operands(name, input, weight)
    wanted = x.ndim if spatial is None else spatial + 2
    operands = f"input {x.aval}, weight {w.aval}"
    if x.ndim < 2 or x.ndim != wanted or w.ndim != wanted:
        rule = f"input and weight must have {wanted if spatial else 'equally many, at least two,'} axes"
        raise ShapeError(at_user_line(f"smelt.{name}: {rule}; {operands}"))

    def each(what: str, value: Any, least: int) -> tuple[int, ...]:
        values = value if isinstance(value, (tuple, list)) else (value,) * (wanted - 2)
        return tuple(integer(name, what, v, least) for v in values)

    attrs: dict[str, Any] = {
        "window_strides": each("stride", stride, 1),
        "padding_low": each("padding", padding[0], 0),
        "padding_high": each("padding", padding[1], 0),
        "kernel_dilation": each("dilation" if spatial else "kernel_dilation", kernel_dilation, 1),
        "input_dilation": each("input_dilation", input_dilation, 1),
        "feature_groups": integer(name, "groups", groups, 1),
    }
    channels, each_group, groups = x.shape[-1], w.shape[-1], attrs["feature_groups"]
    if channels != each_group * groups or w.shape[0] % groups:
        rule = (
            f"input has {channels} channels, weight has {each_group} for each of {groups} groups"
            if channels != each_group * groups
            else f"the {w.shape[0]} output channels of weight are not {groups} equal groups"
        )
        raise ShapeError(at_user_line(f"smelt.{name}: {rule}; {operands}"))
    if flip:
        w = reversed_along(w, tuple(range(1, wanted - 1)))
    found = emit(ops["conv_general"], (x, w), attrs)
    if not all(found.shape[1:-1]):
        rule = f"the window does not fit on axis {found.shape[1:].index(0) + 1} of input, padding included"
        raise ShapeError(at_user_line(f"smelt.{name}: {rule}; {operands}"))
    return found

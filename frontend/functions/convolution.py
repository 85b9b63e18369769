"""Convolutions, all on one primitive: `smelt.conv_general`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from smelt.ir.errors import AttributeValueError, ShapeError, at_user_line, shown
from smelt.ir.op import registry as ops

from ..lazy.arguments import MOST, integer, word
from ..lazy.arrays import ArrayLike, StreamOrDevice, array, as_array, convert, emit
from ..lazy.core import remembered
from ..lazy.movement import checked_shape, reversed_along, to_shape
from ..lazy.streams import check_stream
from .complex_numbers import conjugate
from .linear import product_operands

__all__ = [
    "conv1d", "conv2d", "conv3d", "conv_general", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
    "convolve", "correlate",
]  # fmt: skip


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
def conv2d(
    input: ArrayLike,
    weight: ArrayLike,
    /,
    stride: int | tuple[int, int] = 1,
    padding: int | tuple[int, int] = 0,
    dilation: int | tuple[int, int] = 1,
    groups: int = 1,
    *,
    stream: StreamOrDevice = None,
) -> array:
    """The convolution (without flipping the weight) along two axes.

    Each option but `groups` is an int for all of these, or a tuple with one for each.

    Args:
        input: shape [N, H, W, C_in].
        weight: shape [C_out, KH, KW, C_in / groups].
        stride: how far the window moves.
        padding: how many zeros stand before and behind an axis; what is negative cuts elements off.
        dilation: how far apart the elements of the window are.
        groups: the i-th part of the output channels sees only the i-th part of the input channels.

    Returns:
        Shape [N, H, W, C_out], in the common dtype, with (d + 2·padding - dilation·(k - 1) - 1) // stride + 1
        elements along an axis of d.

    Raises:
        ShapeError: arrays without 4 axes, channels that do not fit, or a window longer than a padded axis.
        ArgumentTypeError: an option that is no int. AttributeValueError: one that is too small, or has another
        number of entries.

    >>> import smelt
    >>> smelt.conv2d(smelt.ones((1, 4, 4, 2)), smelt.ones((3, 3, 3, 2)), padding=1).shape
    (1, 4, 4, 3)
    """
    check_stream(stream)
    return _convolution("conv2d", input, weight, 2, (padding, padding), stride, dilation, 1, groups, False)


@remembered
def conv3d(
    input: ArrayLike,
    weight: ArrayLike,
    /,
    stride: int | tuple[int, int, int] = 1,
    padding: int | tuple[int, int, int] = 0,
    dilation: int | tuple[int, int, int] = 1,
    groups: int = 1,
    *,
    stream: StreamOrDevice = None,
) -> array:
    """The convolution (without flipping the weight) along three axes.

    Each option but `groups` is an int for all of these, or a tuple with one for each.

    Args:
        input: shape [N, D, H, W, C_in].
        weight: shape [C_out, KD, KH, KW, C_in / groups].
        stride: how far the window moves.
        padding: how many zeros stand before and behind an axis; what is negative cuts elements off.
        dilation: how far apart the elements of the window are.
        groups: the i-th part of the output channels sees only the i-th part of the input channels.

    Returns:
        Shape [N, D, H, W, C_out], in the common dtype, with (d + 2·padding - dilation·(k - 1) - 1) // stride + 1
        elements along an axis of d.

    Raises:
        ShapeError: arrays without 5 axes, channels that do not fit, or a window longer than a padded axis.
        ArgumentTypeError: an option that is no int. AttributeValueError: one that is too small, or has another
        number of entries.

    >>> import smelt
    >>> smelt.conv3d(smelt.ones((1, 4, 4, 4, 2)), smelt.ones((3, 2, 2, 2, 2)), stride=2).shape
    (1, 2, 2, 2, 3)
    """
    check_stream(stream)
    return _convolution("conv3d", input, weight, 3, (padding, padding), stride, dilation, 1, groups, False)


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

    Each option is an int for all spatial axes, or a sequence with one for each, or with one for all.

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


@remembered
def conv_transpose1d(
    input: ArrayLike,
    weight: ArrayLike,
    /,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    output_padding: int = 0,
    groups: int = 1,
    *,
    stream: StreamOrDevice = None,
) -> array:
    """The transpose of a convolution along one axis: each element of the input is spread by the weight.

    Args:
        input: shape [N, L, C_in].
        weight: shape [C_out, K, C_in / groups].
        stride: how far apart the elements of the input stand in the result.
        padding: how many elements of the result are cut off at both ends of an axis.
        dilation: how far apart the elements of the window are.
        output_padding: how many elements are added at the end of an axis.
        groups: the i-th part of the output channels sees only the i-th part of the input channels.

    Returns:
        Shape [N, L, C_out], in the common dtype, with
        (d - 1)·stride - 2·padding + dilation·(k - 1) + 1 + output_padding elements along an axis of d.

    Raises:
        ShapeError: arrays without 3 axes, channels that do not fit, results without elements.
        ArgumentTypeError: an option that is no int. AttributeValueError: one that is too small.

    >>> import smelt
    >>> smelt.conv_transpose1d(smelt.array([[[1.0], [2.0]]]), smelt.ones((1, 3, 1)), stride=2).tolist()
    [[[1.0], [1.0], [3.0], [2.0], [2.0]]]
    """
    check_stream(stream)
    name = "conv_transpose1d"
    return _transposed(name, input, weight, 1, stride, padding, dilation, output_padding, groups)


@remembered
def conv_transpose2d(
    input: ArrayLike,
    weight: ArrayLike,
    /,
    stride: int | tuple[int, int] = 1,
    padding: int | tuple[int, int] = 0,
    dilation: int | tuple[int, int] = 1,
    output_padding: int | tuple[int, int] = 0,
    groups: int = 1,
    *,
    stream: StreamOrDevice = None,
) -> array:
    """The transpose of a convolution along two axes: each element of the input is spread by the weight.

    Each option but `groups` is an int for all of these, or a tuple with one for each.

    Args:
        input: shape [N, H, W, C_in].
        weight: shape [C_out, KH, KW, C_in / groups].
        stride: how far apart the elements of the input stand in the result.
        padding: how many elements of the result are cut off at both ends of an axis.
        dilation: how far apart the elements of the window are.
        output_padding: how many elements are added at the end of an axis.
        groups: the i-th part of the output channels sees only the i-th part of the input channels.

    Returns:
        Shape [N, H, W, C_out], in the common dtype, with
        (d - 1)·stride - 2·padding + dilation·(k - 1) + 1 + output_padding elements along an axis of d.

    Raises:
        ShapeError: arrays without 4 axes, channels that do not fit, results without elements.
        ArgumentTypeError: an option that is no int. AttributeValueError: one that is too small, or has another
        number of entries.

    >>> import smelt
    >>> smelt.conv_transpose2d(smelt.ones((1, 4, 4, 2)), smelt.ones((3, 2, 2, 2)), stride=2).shape
    (1, 8, 8, 3)
    """
    check_stream(stream)
    name = "conv_transpose2d"
    return _transposed(name, input, weight, 2, stride, padding, dilation, output_padding, groups)


@remembered
def conv_transpose3d(
    input: ArrayLike,
    weight: ArrayLike,
    /,
    stride: int | tuple[int, int, int] = 1,
    padding: int | tuple[int, int, int] = 0,
    dilation: int | tuple[int, int, int] = 1,
    output_padding: int | tuple[int, int, int] = 0,
    groups: int = 1,
    *,
    stream: StreamOrDevice = None,
) -> array:
    """The transpose of a convolution along three axes: each element of the input is spread by the weight.

    Each option but `groups` is an int for all of these, or a tuple with one for each.

    Args:
        input: shape [N, D, H, W, C_in].
        weight: shape [C_out, KD, KH, KW, C_in / groups].
        stride: how far apart the elements of the input stand in the result.
        padding: how many elements of the result are cut off at both ends of an axis.
        dilation: how far apart the elements of the window are.
        output_padding: how many elements are added at the end of an axis.
        groups: the i-th part of the output channels sees only the i-th part of the input channels.

    Returns:
        Shape [N, D, H, W, C_out], in the common dtype, with
        (d - 1)·stride - 2·padding + dilation·(k - 1) + 1 + output_padding elements along an axis of d.

    Raises:
        ShapeError: arrays without 5 axes, channels that do not fit, results without elements.
        ArgumentTypeError: an option that is no int. AttributeValueError: one that is too small, or has another
        number of entries.

    >>> import smelt
    >>> smelt.conv_transpose3d(smelt.ones((1, 4, 4, 4, 2)), smelt.ones((3, 2, 2, 2, 2)), stride=2).shape
    (1, 8, 8, 8, 3)
    """
    check_stream(stream)
    name = "conv_transpose3d"
    return _transposed(name, input, weight, 3, stride, padding, dilation, output_padding, groups)


@remembered
def convolve(a: ArrayLike, v: ArrayLike, /, mode: str = "full", *, stream: StreamOrDevice = None) -> array:
    """The convolution of two vectors: result[n] = Σₘ a[m] · v[n - m].

    Args:
        a, v: vectors; the shorter one is the window.
        mode: "full", all n for which the vectors meet; "same", as many as the longer one has elements, from the middle;
            "valid", those for which the whole window meets it.

    Returns:
        A vector in the common dtype.

    Raises:
        ShapeError: no vectors, or empty ones. AttributeValueError: another mode.

    >>> import smelt
    >>> smelt.convolve(smelt.array([1.0, 2.0, 3.0]), smelt.array([0.0, 1.0, 0.5]))
    array([0, 1, 2.5, 4, 1.5], dtype=float32)
    """
    check_stream(stream)
    dtype, (x, w) = product_operands(a, v)
    word("convolve", "mode", mode, "full", "same", "valid")
    if x.ndim != 1 or w.ndim != 1 or not x.size or not w.size:
        raise ShapeError(at_user_line(f"smelt.convolve: needs vectors with elements; a {x.aval}, v {w.aval}"))
    if x.size < w.size:
        x, w = w, x
    n = w.size
    low, high = {"full": (n - 1, n - 1), "same": (n // 2, n - 1 - n // 2), "valid": (0, 0)}[mode]
    x, w = to_shape(x, (1, x.size, 1)), to_shape(w, (1, n, 1))
    found = _convolution("convolve", x, w, 1, (low, high), 1, 1, 1, 1, True)
    return convert(to_shape(found, (found.size,)), dtype)


@remembered
def correlate(a: ArrayLike, v: ArrayLike, /, mode: str = "valid", *, stream: StreamOrDevice = None) -> array:
    """The correlation of two vectors: result[k] = Σₙ a[n + k] · conj(v[n]). See `convolve` for the modes.

    Raises:
        ShapeError: no vectors, or empty ones. AttributeValueError: another mode.

    >>> import smelt
    >>> smelt.correlate(smelt.array([1.0, 2.0, 3.0]), smelt.array([0.0, 1.0, 0.5]))
    array([3.5], dtype=float32)
    """
    check_stream(stream)
    x, w = as_array(a), as_array(v)
    word("correlate", "mode", mode, "full", "same", "valid")
    if x.ndim != 1 or w.ndim != 1 or not x.size or not w.size:
        raise ShapeError(at_user_line(f"smelt.correlate: needs vectors with elements; a {x.aval}, v {w.aval}"))
    if mode == "same" and x.size < w.size:  # as many as v has, from the middle of v
        return reversed_along(conjugate(convolve(w, reversed_along(conjugate(x), (0,)), mode)), (0,))
    return convolve(x, reversed_along(conjugate(w), (0,)), mode)


def _transposed(
    name: str, input: ArrayLike, weight: ArrayLike, spatial: int, stride: Any, padding: Any, dilation: Any,
    output_padding: Any, groups: int,
) -> array:  # fmt: skip
    """A convolution with the flipped weight, of the input with zeros between its elements and around it."""
    _, (x, w) = product_operands(input, weight)
    given = {"padding": padding, "dilation": dilation, "output_padding": output_padding}
    least = {"padding": -MOST, "dilation": 1, "output_padding": 0}
    each = {what: _each(name, what, value, spatial, least[what]) for what, value in given.items()}
    reach = [d * (k - 1) for d, k in zip(each["dilation"], w.shape[1:-1])]
    low = [r - p for r, p in zip(reach, each["padding"])]
    high = [p + more for p, more in zip(low, each["output_padding"])]
    return _convolution(name, x, w, spatial, (low, high), 1, each["dilation"], stride, groups, True, True)


#: Steps beyond any axis, which are all alike, and of which some in bytes fit int64.
_FAR = 1 << 40


def _each(name: str, what: str, value: Any, spatial: int, least: int) -> tuple[int, ...]:
    """An option for each of the spatial axes; as in MLX a sequence of one entry is for all of them.

    Raises:
        AttributeValueError: a sequence of another length.
    """
    values = value if isinstance(value, (tuple, list)) else (value,)
    values = values * spatial if len(values) == 1 else values
    if len(values) != spatial:
        message = f"smelt.{name}: {what} needs one entry for each of {spatial} spatial axes, is {shown(value)}"
        raise AttributeValueError(at_user_line(message))
    return tuple([integer(name, what, v, least) for v in values])


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
    transposed: bool = False,
) -> array:
    """All of the convolutions. Padding that is negative cuts the input."""
    _, (x, w) = product_operands(input, weight)
    wanted = x.ndim if spatial is None else spatial + 2
    operands = f"input {x.aval}, weight {w.aval}"
    if x.ndim < 2 or x.ndim != wanted or w.ndim != wanted:
        rule = f"input and weight must have {wanted if spatial else 'equally many, at least two,'} axes"
        raise ShapeError(at_user_line(f"smelt.{name}: {rule}; {operands}"))

    def each(what: str, value: Any, least: int) -> tuple[int, ...]:
        return _each(name, what, value, wanted - 2, least)

    dilated = "dilation" if spatial else "kernel_dilation"
    attrs: dict[str, Any] = {
        "window_strides": tuple([min(n, _FAR) for n in each("stride", stride, 1)]),
        "padding_low": each("padding", padding[0], -MOST),
        "padding_high": each("padding", padding[1], -MOST),
        "kernel_dilation": tuple([min(n, _FAR) for n in each(dilated, kernel_dilation, 1)]),
        "input_dilation": each("stride" if transposed else "input_dilation", input_dilation, 1),
        "feature_groups": integer(name, "groups", groups, 1),
    }
    channels, each_group, groups = x.shape[-1], w.shape[-1], attrs["feature_groups"]
    if channels != each_group * groups or w.shape[0] % groups:
        rule = (
            f"input has {channels} channels, weight has {each_group} for each of {groups} groups"
            if channels != each_group * groups
            else f"the {w.shape[0]} output channels of weight are not {groups} equal groups"
        )
        if channels != each_group * groups == x.shape[1]:
            rule += "; channels are the last axis: smelt.moveaxis(input, 1, -1)"
        raise ShapeError(at_user_line(f"smelt.{name}: {rule}; {operands}"))
    if flip:
        w = reversed_along(w, tuple(range(1, wanted - 1)))
    found = emit(ops["conv_general"], (x, w), attrs)
    checked_shape(name, found.shape)
    if not all(found.shape[1:-1]):
        rule = f"the window does not fit on axis {found.shape[1:].index(0) + 1} of input, padding included"
        raise ShapeError(at_user_line(f"smelt.{name}: {rule}; {operands}"))
    return found

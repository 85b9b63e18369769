"""Products with quantized matrices, which kernels read packed as they lie: `dequantize` and `matmul`.

The formats are described in `quantization`.
"""

from __future__ import annotations

from functools import partial

from smelt.ir import dtypes
from smelt.ir.errors import AttributeValueError, DTypeError, ShapeError, at_user_line, shown

from ..lazy.arrays import ArrayLike, StreamOrDevice, array, as_array, convert
from ..lazy.core import remembered
from ..lazy.streams import check_stream
from .linear import matmul
from .mixtures import check_chosen, chosen, chosen_products
from .quantization import Format, dequantized, format_of, quantize
from .shaping import swapaxes

__all__ = ["gather_qmm", "gather_qqmm", "qqmm", "quantized_matmul"]


@remembered
def quantized_matmul(
    x: ArrayLike,
    w: ArrayLike,
    /,
    scales: ArrayLike,
    biases: ArrayLike | None = None,
    transpose: bool = True,
    group_size: int | None = None,
    bits: int | None = None,
    mode: str = "affine",
    *,
    stream: StreamOrDevice = None,
) -> array:
    """``x @ w.T`` for a matrix that `quantize` has packed, or ``x @ w``.

    Args:
        x: [..., rows, columns of w], floating point; without `transpose` [..., rows, rows of w].
        w, scales, biases, group_size, bits, mode: as in `dequantize`; leading axes broadcast with those of `x`.

    Returns:
        The product, in the dtype of `x`, or the wider one of the scales. It has derivatives with respect to `x`, scales
        and biases.

    Raises:
        ShapeError, DTypeError, AttributeValueError: as `dequantize` and `matmul`.

    >>> import smelt
    >>> packed = smelt.quantize(smelt.eye(64), bits=8)
    >>> smelt.quantized_matmul(smelt.ones((1, 64)), *packed, bits=8).sum().item()
    64.0
    """
    check_stream(stream)
    form = format_of("quantized_matmul", group_size, bits, mode)
    left = _floating("quantized_matmul", "x", as_array(x))
    dtype, kind = _product_dtypes(form, left, scales)
    right = dequantized("quantized_matmul", form, w, scales, biases, None, kind, True)
    return convert(matmul(left, swapaxes(right, -1, -2) if transpose else right), dtype)


@partial(remembered, check=check_chosen("gather_qmm", 4))
def gather_qmm(
    x: ArrayLike,
    w: ArrayLike,
    /,
    scales: ArrayLike,
    biases: ArrayLike | None = None,
    lhs_indices: ArrayLike | None = None,
    rhs_indices: ArrayLike | None = None,
    transpose: bool = True,
    group_size: int | None = None,
    bits: int | None = None,
    mode: str = "affine",
    global_scale: ArrayLike | None = None,
    *,
    sorted_indices: bool = False,
    stream: StreamOrDevice = None,
) -> array:
    """`gather_mm` with quantized matrices on the right, as in mixtures of experts.

    Args:
        x: [..., rows, columns]. w, scales, biases: a stack of quantized matrices. lhs_indices, rhs_indices: integers
            that count the matrices of `x` and of `w`; they broadcast against each other. None takes them as they stand.
        transpose: multiply by the transposed matrices. sorted_indices: as of `gather_mm`.
        group_size, bits, mode, global_scale: as of `quantize`.

    Returns:
        [indices..., rows, n].

    Raises:
        ShapeError, DTypeError, AttributeValueError: as `dequantize` and `gather_mm`.

    >>> import smelt
    >>> experts = smelt.quantize(smelt.stack([smelt.eye(64), 2 * smelt.eye(64)]), bits=8)
    >>> x = smelt.ones((1, 1, 64))
    >>> smelt.gather_qmm(x, *experts, rhs_indices=smelt.array([1, 0]), bits=8)[..., 0].tolist()
    [[2.0], [1.0]]
    """
    check_stream(stream)
    form = format_of("gather_qmm", group_size, bits, mode)
    left = _floating("gather_qmm", "x", as_array(x))
    words, scale, bias = as_array(w), as_array(scales), None if biases is None else as_array(biases)
    if rhs_indices is not None and words.ndim >= 2 and scale.shape[:-1] == words.shape[:-1]:
        # What is chosen is chosen packed.
        pick = partial(chosen, "gather_qmm", "rhs_indices", indices=as_array(rhs_indices))
        bias = bias if bias is None or bias.shape[:-2] != scale.shape[:-2] else pick(bias)
        words, scale = pick(words), pick(scale)
    dtype, kind = _product_dtypes(form, left, scale)
    right = dequantized("gather_qmm", form, words, scale, bias, global_scale, kind, True)
    right = swapaxes(right, -1, -2) if transpose else right
    return convert(chosen_products("gather_qmm", left, right, lhs_indices), dtype)


@remembered
def qqmm(
    x: ArrayLike,
    w: ArrayLike,
    scales: ArrayLike | None = None,
    group_size: int | None = None,
    bits: int | None = None,
    mode: str = "nvfp4",
    global_scale_x: ArrayLike | None = None,
    global_scale_w: ArrayLike | None = None,
    *,
    stream: StreamOrDevice = None,
) -> array:
    """``x @ w.T`` with both sides quantized: `x` here, and `w` here unless its scales are given.

    Args:
        x: [..., rows, columns], floating point. w: [n, columns], floating point, or packed with `scales`.
        mode: "nvfp4" or "mxfp8". global_scale_x, global_scale_w: of "nvfp4", as in `quantize`.

    Returns:
        [..., rows, n] in the dtype of `x`.

    Raises:
        ShapeError, DTypeError, AttributeValueError: as `quantize`, `dequantize` and `matmul`.

    >>> import smelt
    >>> smelt.qqmm(smelt.ones((1, 32)), smelt.ones((2, 32)), mode="mxfp8")
    array([[32, 32]], dtype=float32)
    """
    check_stream(stream)
    form = _of_both("qqmm", group_size, bits, mode)
    left, right = _both("qqmm", form, x, w, scales, global_scale_x, global_scale_w)
    return matmul(left, swapaxes(right, -1, -2))


@partial(remembered, check=check_chosen("gather_qqmm", 3))
def gather_qqmm(
    x: ArrayLike,
    w: ArrayLike,
    /,
    scales: ArrayLike | None = None,
    lhs_indices: ArrayLike | None = None,
    rhs_indices: ArrayLike | None = None,
    group_size: int | None = None,
    bits: int | None = None,
    mode: str = "nvfp4",
    global_scale_x: ArrayLike | None = None,
    global_scale_w: ArrayLike | None = None,
    *,
    sorted_indices: bool = False,
    stream: StreamOrDevice = None,
) -> array:
    """`gather_mm` of `x` and the transposed matrices of `w`, with both sides quantized as in `qqmm`.

    Args:
        lhs_indices, rhs_indices, sorted_indices: as of `gather_qmm`.

    >>> import smelt
    >>> x, w = smelt.ones((1, 1, 32)), smelt.stack([smelt.ones((2, 32)), smelt.zeros((2, 32))])
    >>> smelt.gather_qqmm(x, w, rhs_indices=smelt.array([1, 0]), mode="mxfp8").tolist()
    [[[0.0, 0.0]], [[32.0, 32.0]]]
    """
    check_stream(stream)
    form = _of_both("gather_qqmm", group_size, bits, mode)
    left, right = _both("gather_qqmm", form, x, w, scales, global_scale_x, global_scale_w)
    return chosen_products("gather_qqmm", left, swapaxes(right, -1, -2), lhs_indices, rhs_indices)


def _of_both(name: str, group_size: int | None, bits: int | None, mode: str) -> Format:
    form = format_of(name, group_size, bits, mode)
    if mode not in ("nvfp4", "mxfp8"):
        raise AttributeValueError(at_user_line(f'smelt.{name}: mode must be "nvfp4" or "mxfp8", is {shown(mode)}'))
    return form


def _both(
    name: str, form: Format, x: ArrayLike, w: ArrayLike, scales: ArrayLike | None,
    scale_x: ArrayLike | None, scale_w: ArrayLike | None,
) -> tuple[array, array]:  # fmt: skip
    """What is left of both sides, in the dtype of the first."""
    left = _floating(name, "x", as_array(x))
    codes, found = quantize(left, *form[1:], form.mode, global_scale=scale_x)
    first = dequantized(name, form, codes, found, None, scale_x, left.dtype)
    if scales is None:
        w, scales = quantize(_floating(name, "w", as_array(w)), *form[1:], form.mode, global_scale=scale_w)
    second = dequantized(name, form, w, scales, None, scale_w, left.dtype)
    if first.shape[-1] != second.shape[-1]:
        message = f"x and w have rows of {first.shape[-1]} and {second.shape[-1]} elements; x {left.aval}"
        raise ShapeError(at_user_line(f"smelt.{name}: {message}"))
    return first, second


def _floating(name: str, what: str, x: array) -> array:
    if not x.dtype.is_float:
        raise DTypeError(at_user_line(f"smelt.{name}: {what} must be floating point, is {x.aval}"))
    return x


def _product_dtypes(form: Format, x: array, scales: ArrayLike) -> tuple[dtypes.DType, dtypes.DType]:
    """Of a product with `x`, and of the dequantized matrix in it: powers of two may be too large for float16."""
    if not form.has_biases:
        return x.dtype, dtypes.float32 if x.dtype is dtypes.float16 else x.dtype
    found = as_array(scales).dtype
    dtype = dtypes.promote(x.dtype, found) if found.is_float else x.dtype
    return dtype, dtype

"""Matrices in few bits: packed numbers, with a scale for each group of neighbours in a row.

The formats are MLX's, bit for bit, so its checkpoints are read as they are. Numbers of b bits follow each other in
words of 32 bits, the first in the lowest bits; where b does not divide 32 they continue in the next word.

- affine: x = scale·q + bias for whole q from 0 to 2ᵇ - 1.
- mxfp4, mxfp8: OCP's microscaling formats (MX specification 1.0, 2023): floats of 4 or 8 bits (e2m1, e4m3) times a
  power of two (e8m0), in groups of 32.
- nvfp4: floats of 4 bits times one of 8 (e4m3), in groups of 16.

All of it is made of other functions. So a product reads packed weights where they lie, and never unpacks them into
memory (`quantized_products`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from smelt.ir import dtypes
from smelt.ir.dtypes import DType
from smelt.ir.errors import AttributeValueError, DTypeError, ShapeError, at_user_line

from ..lazy.arguments import dtype_of, integer, word
from ..lazy.arrays import ArrayLike, StreamOrDevice, array, as_array, convert, from_host
from ..lazy.core import remembered
from ..lazy.streams import check_stream
from .arithmetic import abs, clip, divide, maximum, minimum
from .logic import isnan, where
from .ranges import arange
from .reductions import max, min, sum
from .rounding import round
from .shaping import reshape
from .views import view

__all__ = ["dequantize", "from_fp8", "quantize", "to_fp8"]


class Format(NamedTuple):
    """How a matrix is quantized."""

    mode: str
    group_size: int
    bits: int

    @property
    def has_biases(self) -> bool:
        return self.mode == "affine"

    @property
    def scale_dtype(self) -> DType | None:
        """None: that of the matrix."""
        return None if self.mode == "affine" else dtypes.uint8


#: Group sizes and bits that a mode takes, the default first.
MODES = {
    "affine": ((64, 32, 128), (4, 1, 2, 3, 5, 6, 8)),
    "mxfp4": ((32,), (4,)),
    "mxfp8": ((32,), (8,)),
    "nvfp4": ((16,), (4,)),
}

_LARGEST_E2M1, _LARGEST_E4M3 = 6.0, 448.0
#: Of "affine", for groups of equal elements.
_LEAST_SCALE = 1e-7


def format_of(name: str, group_size: int | None, bits: int | None, mode: str) -> Format:
    """The format that arguments of `name` say.

    Raises:
        AttributeValueError: there is no such mode, or not with this group size or these bits.
    """
    word(name, "mode", mode, *MODES)
    chosen = []
    for what, given, known in zip(("group_size", "bits"), (group_size, bits), MODES[mode]):
        value = known[0] if given is None else integer(name, what, given)
        if value not in known:
            listed = ", ".join(map(str, sorted(known)))
            raise AttributeValueError(at_user_line(f"smelt.{name}: {what} of mode {mode!r} is {listed}, not {value}"))
        chosen.append(value)
    return Format(mode, *chosen)


# Eight and four bits


@remembered
def to_fp8(x: ArrayLike, *, stream: StreamOrDevice = None) -> array:
    """The nearest floats of 8 bits (e4m3 of OCP's FP8 specification), as uint8. What is larger than 448 becomes 448.

    Args:
        x: floating point, of up to 32 bits.

    Raises:
        DTypeError: another dtype.

    >>> import smelt
    >>> smelt.to_fp8(smelt.array([1.0, -0.5, 1000.0]))
    array([ 56, 176, 126], dtype=uint8)
    """
    check_stream(stream)
    return _to_fp8(_numbers("to_fp8", as_array(x)))


def _to_fp8(x: array) -> array:
    """`to_fp8` of float32: bits are rounded to three of the mantissa; below 2⁻⁶ all floats are multiples of 2⁻⁹."""
    size = minimum(abs(x), _LARGEST_E4M3)
    bits = view(size, dtypes.uint32)
    normal = ((bits + 0x7FFFF + ((bits >> 20) & 1)) >> 20) - (120 << 3)
    found = where(size < 2.0**-6, convert(round(size * 512.0), dtypes.uint32), normal)
    found = where(isnan(x), 0x7F, found) | ((view(x, dtypes.uint32) >> 24) & 0x80)
    return convert(found, dtypes.uint8)


@remembered
def from_fp8(x: ArrayLike, dtype: DType = dtypes.bfloat16, *, stream: StreamOrDevice = None) -> array:
    """The numbers that floats of 8 bits (e4m3), given as uint8, stand for.

    Raises:
        DTypeError: `x` is no uint8, or `dtype` no floating point.

    >>> import smelt
    >>> smelt.from_fp8(smelt.array([56, 176, 126], dtype=smelt.uint8), smelt.float32)
    array([1, -0.5, 448], dtype=float32)
    """
    check_stream(stream)
    codes = as_array(x)
    if codes.dtype is not dtypes.uint8:
        raise DTypeError(at_user_line(f"smelt.from_fp8: x must be uint8, is {codes.aval}"))
    return _from_fp8(codes, _floating_dtype("from_fp8", dtype))


def _from_fp8(codes: array, dtype: DType) -> array:
    """Bits of float16, whose exponent has one bit more, but for 2⁸; its small numbers are multiples, too."""
    wide = convert(codes, dtypes.uint32)
    spread = view(view(wide << 24, dtypes.int32) >> 17, dtypes.uint32)  # the sign, again, and the others behind it
    bits = convert(spread & 0xBF80, dtypes.uint16)
    bits = where((bits & 0x3F80) == 0x3F80, 0x7E00, bits)
    return convert(view(bits, dtypes.float16), dtype) * 256.0


def _multiples(count: array, exponent: int) -> array:
    """count · 2^exponent of small counts: as the last bits of a number whose last bit is worth that."""
    start = exponent + 23
    return view(count | ((127 + start) << 23), dtypes.float32) - 2.0**start


def _to_fp4(x: array) -> array:
    """float32 as the nearest floats of 4 bits (e2m1): 0, ±½, ±1, ±1½, ±2, ±3, ±4, ±6; as uint32. 0 has no sign."""
    size = minimum(abs(x), _LARGEST_E2M1)
    step = where(size < 2.0, 2.0, where(size < 4.0, 1.0, 0.5))  # over the distance of neighbours
    below = where(size < 2.0, 0.0, where(size < 4.0, 2.0, 4.0))  # codes of what has wider neighbours
    codes = convert(round(size * step) + below, dtypes.uint32)
    return where(codes == 0, codes, codes | ((view(x, dtypes.uint32) >> 28) & 8))


def _from_fp4(codes: array, dtype: DType) -> array:
    """Bits of float32, as `_from_fp8`; the two least are 0 and ½."""
    wide = convert(codes, dtypes.uint32)
    place = wide & 7
    size = where(place < 2, _multiples(place, -1), view((place << 22) + (126 << 23), dtypes.float32))
    return convert(where(wide >= 8, -size, size), dtype)


def _power_of_two(exponents: array, dtype: DType) -> array:
    """2^(e - 127) of uint8 (e8m0); 2⁻¹²⁷ is no normal float32, and 255 stands for NaN."""
    wide = convert(exponents, dtypes.uint32)
    found = view(where(wide == 0, 1 << 22, where(wide == 255, 0x7FC00000, wide << 23)), dtypes.float32)
    return convert(found, dtype)


# Packing


def _places(bits: int) -> tuple[np.ndarray, ...]:
    """Where 32 numbers lie in their words, as uint32 [bits, 32]: by how many bits of a word a number is shifted that
    begins in it, and a mask that is zero for others; the same for numbers that begin in the word before."""
    starts = np.arange(32) * bits - 32 * np.arange(bits)[:, None]
    found = []
    for there, shifts in (((starts >= 0) & (starts < 32), starts), ((starts < 0) & (starts > -bits), -starts)):
        found += [np.where(there, shifts, 0).astype(np.uint32), np.where(there, 0xFFFFFFFF, 0).astype(np.uint32)]
    return tuple(found)


def packed(codes: array, bits: int) -> array:
    """uint32 numbers [..., n] of so many bits as words [..., n · bits / 32]; n is a multiple of 32."""
    *lead, n = codes.shape
    if 32 % bits == 0:
        each = 32 // bits
        shifts = from_host(np.arange(0, 32, bits, dtype=np.uint32))
        return sum(reshape(codes, (*lead, n // each, each)) << shifts, axis=-1)
    shift, inside, back, before = map(from_host, _places(bits))
    blocks = reshape(codes, (*lead, n // 32, 1, 32))
    words = ((blocks << shift) & inside) | ((blocks >> back) & before)
    return reshape(sum(words, axis=-1), (*lead, n * bits // 32))


def unpacked(words: array, bits: int) -> array:
    """The reverse of `packed`."""
    *lead, count = words.shape
    if 32 % bits == 0:
        found = reshape(words, (*lead, count, 1)) >> arange(32 // bits, dtype=dtypes.uint32) * bits
    else:  # numbers that fill whole bytes: eight, or four of six bits
        together = 4 if bits == 6 else 8
        each = bits * together // 8
        octets = convert(reshape(view(words, dtypes.uint8), (*lead, count * 4 // each, each, 1)), dtypes.uint32)
        shifts = arange(together, dtype=dtypes.uint32) * bits
        if each <= 4:
            found = _joined(octets, 0, each) >> shifts
        else:  # a number of the first half ends in the first four bytes, others begin in the last four
            early = shifts < 4 * bits
            late = where(early, 0, shifts - 8 * (each - 4))
            first, last = _joined(octets, 0, 4), _joined(octets, each - 4, each)
            found = where(early, first >> where(early, shifts, 0), last >> late)
    return reshape(found & ((1 << bits) - 1), (*lead, count * 32 // bits))


def _joined(octets: array, first: int, last: int) -> array:
    """uint32 numbers [..., 1] of so many of the bytes [..., n, 1], the first being the lowest."""
    found = octets[..., first, :]
    for i in range(first + 1, last):
        found = found | (octets[..., i, :] << 8 * (i - first))
    return found


# Matrices


@remembered
def quantize(
    w: ArrayLike,
    /,
    group_size: int | None = None,
    bits: int | None = None,
    mode: str = "affine",
    *,
    global_scale: ArrayLike | None = None,
    stream: StreamOrDevice = None,
) -> tuple[array, ...]:
    """A matrix in few bits.

    Args:
        w: [..., rows, columns], floating point of up to 32 bits; groups divide the columns.
        group_size: elements of a row that share a scale: 32, 64 (the default) or 128 for "affine", 32 for "mxfp4" and
            "mxfp8", 16 for "nvfp4".
        bits: of an element: 1, 2, 3, 4 (the default), 5, 6 or 8 for "affine"; else what the name says.
        mode: "affine", "mxfp4", "mxfp8" or "nvfp4".
        global_scale: a number, for "nvfp4": what the largest element may be. Scales are then meant in 448 · 6 parts of
            it, so that they use the range of their 8 bits.

    Returns:
        Packed numbers, uint32 [..., rows, columns · bits / 32]; scales [..., rows, columns / group_size], of `w`'s
        dtype for "affine", else uint8; and for "affine" biases, like the scales.

    Raises:
        ShapeError: less than two axes, or groups that do not divide the last one. DTypeError: `w` is no floating point.
        AttributeValueError: a mode, group size or number of bits that there is not, a global scale in another mode.

    >>> import smelt
    >>> q, scales, biases = smelt.quantize(smelt.ones((2, 64)) * smelt.arange(64))
    >>> q.shape, scales.shape, smelt.dequantize(q, scales, biases)[0, -1].item()
    ((2, 8), (2, 1), 63.0)
    """
    check_stream(stream)
    form = format_of("quantize", group_size, bits, mode)
    x = as_array(w)
    matrix = _numbers("quantize", x)
    if x.ndim < 2 or x.shape[-1] % form.group_size:
        message = f"needs a matrix whose rows are made of groups of {form.group_size}; w {x.aval}"
        raise ShapeError(at_user_line(f"smelt.quantize: {message}"))
    unit = _unit("quantize", form, global_scale)
    groups = reshape(matrix, (*x.shape[:-1], x.shape[-1] // form.group_size, form.group_size))
    if form.mode == "affine":
        codes, scales, biases = _affine(groups, form.bits)
    else:
        codes, scales = _floats(groups, form, unit)
    found = packed(reshape(codes, x.shape), form.bits)
    return (found, convert(scales, x.dtype), convert(biases, x.dtype)) if form.mode == "affine" else (found, scales)


def _affine(groups: array, bits: int) -> tuple[array, array, array]:
    """Codes, scales and biases. The end of a group's range that is farther from zero is a multiple of the scale, so
    that it, and zero, are hit; with one bit both ends are."""
    low, high = min(groups, axis=-1), max(groups, axis=-1)
    if bits == 1:
        scale = maximum(high - low, _LEAST_SCALE)
        codes = clip(round(divide(groups - low[..., None], scale[..., None])), 0.0, 1.0)
        return convert(codes, dtypes.uint32), scale, low
    down = abs(low) > abs(high)
    steps = float(2**bits - 1)
    scale = maximum(divide(high - low, steps), _LEAST_SCALE)
    scale = where(down, scale, -scale)
    edge = where(down, low, high)
    whole = round(divide(edge, scale))
    hit = whole != 0
    scale = where(hit, divide(edge, where(hit, whole, 1.0)), scale)
    bias = where(hit, edge, 0.0)
    codes = clip(round(divide(groups - bias[..., None], scale[..., None])), 0.0, steps)
    return convert(codes, dtypes.uint32), scale, bias


def _floats(groups: array, form: Format, unit: array | None) -> tuple[array, array]:
    """Codes, and scales as uint8, in units: a group's largest element is about the largest float."""
    largest = _LARGEST_E4M3 if form.bits == 8 else _LARGEST_E2M1
    wanted = divide(max(abs(groups), axis=-1), largest)
    if form.mode == "nvfp4":
        codes = _to_fp8(wanted if unit is None else divide(wanted, unit))
        scale = _from_fp8(codes, dtypes.float32)
        scale = scale if unit is None else scale * unit
    else:
        bits = view(wanted, dtypes.uint32)
        codes = minimum((bits + 0x7FFFFF) >> 23, 254)
        codes = convert(where(wanted == 0, 127, codes), dtypes.uint8)
        scale = _power_of_two(codes, dtypes.float32)
    lost = (scale == 0)[..., None]  # too small for the scales
    elements = where(lost, 0.0, divide(groups, where(lost, 1.0, scale[..., None])))
    return convert(_to_fp8(elements), dtypes.uint32) if form.bits == 8 else _to_fp4(elements), codes


@remembered
def dequantize(
    w: ArrayLike,
    /,
    scales: ArrayLike,
    biases: ArrayLike | None = None,
    group_size: int | None = None,
    bits: int | None = None,
    mode: str = "affine",
    global_scale: ArrayLike | None = None,
    dtype: DType | None = None,
    *,
    stream: StreamOrDevice = None,
) -> array:
    """The matrix that `quantize` has packed, or what is left of it.

    Args:
        w, scales, biases: what `quantize` returned. The others: what it was told.
        dtype: of the result. None: that of the scales for "affine", else bfloat16; float32 with a global scale.
        group_size, bits, mode, global_scale: as of `quantize`.

    Raises:
        ShapeError: shapes that do not belong together. DTypeError: `w` is no uint32, scales of another dtype.
        AttributeValueError: a mode, group size or number of bits that there is not; biases are missing, or too many.

    >>> import smelt
    >>> smelt.dequantize(*smelt.quantize(smelt.ones((1, 32)), mode="mxfp4"), mode="mxfp4").shape
    (1, 32)
    """
    check_stream(stream)
    form = format_of("dequantize", group_size, bits, mode)
    return dequantized("dequantize", form, w, scales, biases, global_scale, dtype)


def dequantized(
    name: str, form: Format, w: ArrayLike, scales: ArrayLike, biases: ArrayLike | None,
    global_scale: ArrayLike | None = None, dtype: DType | None = None, wide: bool = False,
) -> array:  # fmt: skip
    """`dequantize` for the function `name`, whose arguments it checks; `wide`: nothing is rounded to the dtype of the
    scales, as in products."""
    words, scale, bias = _parts(name, form, w, scales, biases)
    unit = _unit(name, form, global_scale)
    if dtype is None:
        dtype = scale.dtype if form.has_biases else dtypes.bfloat16 if unit is None else dtypes.float32
    else:
        dtype = _floating_dtype(name, dtype)
    codes = unpacked(words, form.bits)
    shape = codes.shape
    codes = reshape(codes, (*scale.shape, form.group_size))
    if bias is not None:
        if wide:
            scale, bias = convert(scale, dtype), convert(bias, dtype)
        return reshape(convert(convert(codes, scale.dtype) * scale[..., None] + bias[..., None], dtype), shape)
    factors = _from_fp8(scale, dtypes.float32) if form.mode == "nvfp4" else _power_of_two(scale, dtypes.float32)
    if unit is not None:
        factors = factors * unit
    # In bfloat16 they are exact, and so is the product: what is rounded last is seen in words.
    exact = dtypes.bfloat16 if dtype is dtypes.bfloat16 and unit is None else dtypes.float32
    elements, factors = (_from_fp8 if form.bits == 8 else _from_fp4)(codes, exact), convert(factors, exact)
    return reshape(convert(elements * factors[..., None], dtype), shape)


def _parts(
    name: str, form: Format, w: ArrayLike, scales: ArrayLike, biases: ArrayLike | None
) -> tuple[array, array, array | None]:  # fmt: skip
    words, scale = as_array(w), as_array(scales)
    bias = None if biases is None else as_array(biases)
    shown = f"w {words.aval}, scales {scale.aval}" + (f", biases {bias.aval}" if bias is not None else "")
    if (bias is None) is form.has_biases:
        need = "needs biases" if form.has_biases else "has no biases"
        raise AttributeValueError(at_user_line(f"smelt.{name}: mode {form.mode!r} {need}; {shown}"))
    if words.dtype is not dtypes.uint32:
        raise DTypeError(at_user_line(f"smelt.{name}: packed numbers are uint32; {shown}"))
    if not (scale.dtype is form.scale_dtype or (form.has_biases and scale.dtype.is_float)):
        kind = "floating point" if form.has_biases else "uint8"
        raise DTypeError(at_user_line(f"smelt.{name}: scales of mode {form.mode!r} are {kind}; {shown}"))
    if bias is not None and (bias.dtype is not scale.dtype or bias.shape != scale.shape):
        raise ShapeError(at_user_line(f"smelt.{name}: biases must be like the scales; {shown}"))
    fits = (
        words.ndim >= 2
        and scale.shape[:-1] == words.shape[:-1]
        and words.shape[-1] * 32 == scale.shape[-1] * form.group_size * form.bits
    )
    if not fits:
        rule = f"{form.bits} bits an element and a scale for {form.group_size} of them"
        raise ShapeError(at_user_line(f"smelt.{name}: w and scales do not belong together with {rule}; {shown}"))
    return words, scale, bias


def _numbers(name: str, x: array) -> array:
    if not x.dtype.is_float or x.dtype.size > 4:
        message = f"needs float32, float16 or bfloat16, got {x.aval}"
        raise DTypeError(at_user_line(f"smelt.{name}: {message}"))
    return convert(x, dtypes.float32)


def _floating_dtype(name: str, dtype: DType) -> DType:
    found = dtype_of(name, dtype)
    if not found.is_float:
        raise DTypeError(at_user_line(f"smelt.{name}: dtype must be floating point, is {found.name}"))
    return found


def _unit(name: str, form: Format, global_scale: ArrayLike | None) -> array | None:
    """What the scales of a matrix count, if it is not 1."""
    if global_scale is None:
        return None
    found = convert(as_array(global_scale), dtypes.float32)
    if form.mode != "nvfp4":
        raise AttributeValueError(at_user_line(f"smelt.{name}: a global scale is for mode 'nvfp4', not {form.mode!r}"))
    if found.size != 1:
        raise ShapeError(at_user_line(f"smelt.{name}: global_scale must be one number, is {found.aval}"))
    return divide(reshape(found, ()), _LARGEST_E4M3 * _LARGEST_E2M1)

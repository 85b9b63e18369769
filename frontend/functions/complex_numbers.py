"""Parts of complex numbers."""

from __future__ import annotations

from smelt.ir.op import registry as ops

from ..lazy.arrays import ArrayLike, StreamOrDevice, array, as_array, emit_elementwise, wrap
from ..lazy.core import remembered
from ..lazy.operands import constant
from ..lazy.streams import check_stream

__all__ = ["conj", "conjugate", "imag", "real"]

_REAL, _IMAG, _COMPLEX, _NEG = ops["real"], ops["imag"], ops["complex"], ops["neg"]


@remembered
def real(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """Real part: float32 of complex numbers; other arrays are returned as they are.

    >>> import smelt
    >>> smelt.real(smelt.array([1 + 2j]))
    array([1], dtype=float32)
    """
    check_stream(stream)
    x = as_array(a)
    return emit_elementwise(_REAL, x) if x.dtype.is_complex else wrap(x._ref)


@remembered
def imag(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """Imaginary part: float32 of complex numbers; zeros for other arrays.

    >>> import smelt
    >>> smelt.imag(smelt.array([1 + 2j]))
    array([2], dtype=float32)
    """
    check_stream(stream)
    x = as_array(a)
    return emit_elementwise(_IMAG, x) if x.dtype.is_complex else constant(0, x.dtype, x.shape)


@remembered
def conjugate(a: ArrayLike, *, stream: StreamOrDevice = None) -> array:
    """Complex conjugate; other arrays are returned as they are.

    >>> import smelt
    >>> smelt.conjugate(smelt.array([1 + 2j]))
    array([1-2j], dtype=complex64)
    """
    check_stream(stream)
    x = as_array(a)
    if not x.dtype.is_complex:
        return wrap(x._ref)
    flipped = emit_elementwise(_NEG, emit_elementwise(_IMAG, x))
    return emit_elementwise(_COMPLEX, emit_elementwise(_REAL, x), flipped)


conj = conjugate

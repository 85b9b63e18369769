"""Arrays made of what others hold: Python scalars in lists, NumPy arrays, buffers, other libraries' arrays."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from smelt.backends.buffer import SMALL, pool
from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.dtypes import DType
from smelt.ir.errors import AttributeValueError, DTypeError, ShapeError, SmeltError, at_user_line, shown
from smelt.ir.ops.conversion import convert_array
from smelt.runtime import Buffer

from .dlpack import imported
from .graph import Handle

_MOST_AXES = 32  #: of arrays made from lists
#: What NumPy computes in by default is here what smelt computes in by default, unless a dtype is named.
_TARGETS = {d.numpy: d for d in dtypes.ALL} | {
    np.dtype(np.float64): dtypes.float32, np.dtype(np.complex128): dtypes.complex64
}  # fmt: skip


def buffer_of(val: Any, dtype: DType | None = None) -> Buffer:
    """A copy of host data: of anything but lists that hold arrays or nest too deeply."""
    if type(val) is np.ndarray and (target := _TARGETS.get(val.dtype)) is not None:
        return _copied(val, target if dtype is None else dtype)
    if isinstance(val, range):
        val = list(val)
    elif isinstance(val, bytes):
        val = np.frombuffer(val, np.uint8)
    if not isinstance(val, (np.ndarray, np.generic)):
        inferred = _inferred_dtype(val) if dtype is None else None
        host = _host_of(val)
        if inferred is not None and host.dtype != object:
            host = host.astype(inferred.numpy)
    elif np.any(getattr(val, "mask", False)):
        raise AttributeValueError(
            at_user_line("smelt.array: a NumPy array has masked elements, which smelt has not; fill them: x.filled(0)")
        )
    else:
        host = np.asarray(val)
    if host.dtype == object or (host.dtype.kind in "SUVMm" and host.dtype.name != "bfloat16"):
        raise DTypeError(at_user_line(f"smelt.array: cannot make an array of {shown(val)}"))
    target = _TARGETS.get(host.dtype) if dtype is None else dtype
    if target is None:
        try:
            target = dtypes.of(host.dtype)
        except DTypeError as error:
            raise DTypeError(at_user_line(f"smelt.array: {error}")) from None
    return _copied(host, target)


def _copied(data: np.ndarray, target: DType) -> Buffer:
    """A copy in another dtype, or the same."""
    if data.dtype != target.numpy:
        with np.errstate(all="ignore"):
            data = convert_array(data, target)
    if pool.limit and data.nbytes <= SMALL:
        pool.expect(data.nbytes)
    buffer = Buffer.empty(Aval(data.shape, target))
    buffer.array[...] = data
    return buffer


def _host_of(val: Any) -> np.ndarray:
    """What NumPy makes of something that is no array of its own."""
    try:
        return np.asarray(val) if hasattr(val, "__array__") or not hasattr(val, "__dlpack__") else imported(val)
    except SmeltError:
        raise
    except Exception as error:  # an object may do anything when NumPy asks for its elements
        if hasattr(val, "__dlpack__") and type(error) is TypeError:  # PyTorch's bfloat16, which is none of NumPy's
            with contextlib.suppress(Exception):
                return imported(val)
        kind: Any = ShapeError if isinstance(error, ValueError) and isinstance(val, (list, tuple)) else DTypeError
        what = "nested lists of uneven lengths" if kind is ShapeError else f"cannot make an array of {shown(val)}"
        raise kind(at_user_line(f"smelt.array: {what} ({error})")) from None


def of_numbers(val: list[Any] | tuple[Any, ...]) -> Buffer | None:
    """A buffer of a list of floats, or of ints of 32 bits; None for anything else."""
    kinds = set(map(type, val))
    if kinds == _FLOATS:
        target = dtypes.float32
    elif kinds == _INTEGERS and min(val) >= -(2**31) and max(val) < 2**31:
        target = dtypes.int32
    else:
        return None
    return _copied(np.array(val, target.numpy), target)


_FLOATS, _INTEGERS = {float}, {int}


def check_depth(val: Any) -> None:
    """Lists nest no deeper than NumPy's arrays have axes, so none contains itself."""
    level = [val]
    for _ in range(_MOST_AXES):
        level = [v for part in level for v in part if isinstance(v, (list, tuple))]
        if not level:
            return
        if len({id(v) for v in level}) < len(level):
            level = list({id(v): v for v in level}.values())
    raise ShapeError(at_user_line(f"smelt.array: lists nest deeper than {_MOST_AXES} axes"))


def holds_arrays(val: Any) -> bool:
    """Whether `val` is an array, or nested lists with one in them."""
    if isinstance(val, Handle):
        return True
    return isinstance(val, (list, tuple)) and any(holds_arrays(v) for v in val)


def _inferred_dtype(val: Any) -> DType | None:
    """The dtype of Python scalars in nested lists; None where NumPy's own answer counts."""
    kinds: set[type] = set()
    pending = [val]
    large = False
    while pending:
        v = pending.pop()
        if isinstance(v, (list, tuple)):
            pending.extend(v)
        elif type(v) in (bool, int, float, complex):
            kinds.add(type(v))
            large = large or (type(v) is int and not -(2**31) <= v < 2**31)
        else:
            return None
    if complex in kinds:
        return dtypes.complex64
    if float in kinds or not kinds:
        return dtypes.float32
    if int in kinds:
        if not large:
            return dtypes.int32
        return dtypes.int64 if _fits_int64(val) else dtypes.uint64
    return dtypes.bool_


def _fits_int64(val: Any) -> bool:
    return int(np.max(np.array(val, dtype=object))) < 2**63

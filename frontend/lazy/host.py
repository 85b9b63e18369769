"""Arrays made of what others hold: Python scalars in lists, NumPy arrays, buffers, other libraries' arrays."""

from __future__ import annotations

import contextlib
import itertools
import operator
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from smelt.backends.buffer import SMALL, pool
from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.dtypes import DType
from smelt.ir.errors import (
    ArgumentTypeError,
    AttributeValueError,
    DTypeError,
    OutOfMemoryError,
    ShapeError,
    SmeltError,
    at_user_line,
    public_call,
    shown,
)
from smelt.ir.ops.conversion import convert_array
from smelt.runtime import Buffer

from .arguments import sequence
from .dlpack import imported, producer
from .graph import Handle
from .silent import silently
from .weak import exact_number

#: What an object has that stands for an array.
ARRAY_PROTOCOLS = ("__mlx_array__", "__array__", "__dlpack__")
_MOST_AXES = 32  #: of arrays made from lists
_WIDE: dict[DType | None, DType] = {dtypes.float32: dtypes.float64, dtypes.complex64: dtypes.complex128}
#: What NumPy computes in by default is here what smelt computes in by default, unless a dtype is named.
_TARGETS = {d.numpy: d for d in dtypes.ALL} | {
    np.dtype(np.float64): dtypes.float32, np.dtype(np.complex128): dtypes.complex64
}  # fmt: skip


def buffer_of(val: Any, dtype: DType | None = None) -> Buffer:
    """A copy of host data: of anything but lists that hold arrays or nest too deeply."""
    if type(val) is np.ndarray and (target := _TARGETS.get(val.dtype)) is not None:
        return _copied(val, target if dtype is None else dtype)
    if type(val) is range:
        return _of_range(val, dtype)
    if isinstance(val, bytes):
        val = np.frombuffer(val, np.uint8)
    if not _is_a(val, _HOST):
        given, val = val, plain(producer(val))
        inferred = _inferred_dtype(val) if dtype is None else None
        host = _host_of(given, val, inferred)
        if dtype is not None and (host.dtype == object or (dtype.kind in "iu" and host.dtype.kind == "f")):
            inferred = _inferred_dtype(val)  # to NumPy 0 and 2**64 - 1 are floats, 1.5 and 2**64 objects
            host = _host_of(given, val, _WIDE.get(inferred, inferred))
    else:
        given, host = val, np.asarray(_unmasked(val))
    if host.dtype == object or (host.dtype.kind in "SUVMm" and host.dtype.name != "bfloat16"):
        if given is not host and host.ndim and hasattr(type(given), "__array__"):  # a table with columns of text
            raise _no_array(given, f"of type {type(given).__name__}, which NumPy reads as dtype {host.dtype}")
        raise _no_array(given, f"of dtype {host.dtype}" if given is host else "")
    target = _TARGETS.get(host.dtype) if dtype is None else dtype
    if target is None:
        try:
            target = dtypes.of(host.dtype)
        except DTypeError as error:
            raise DTypeError(at_user_line(f"smelt.{public_call() or 'array'}: {error}")) from None
    return _copied(host, target)


def own_array(val: Any) -> Any:
    """The array that an object stands for: what its ``__mlx_array__()`` gives."""
    try:
        found = val.__mlx_array__()
    except SmeltError:
        raise
    except Exception as error:  # an object may do anything
        raise _no_array(val, f"of type {type(val).__name__} ({type(error).__name__}: {error})") from None
    if not _is_a(found, Handle):
        raise _no_array(val, f"of type {type(val).__name__}: its __mlx_array__ gives a {type(found).__name__}")
    return found


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


def _of_range(val: range, dtype: DType | None) -> Buffer:
    """The numbers of a range, which nobody makes a list of."""
    if not val:
        return _copied(np.empty(0, np.float32), dtypes.float32 if dtype is None else dtype)
    least, most = sorted((val[0], val[-1]))
    kind = dtypes.int32 if least >= -(2**31) and most < 2**31 else dtypes.int64 if most < 2**63 else dtypes.uint64
    if least < -(2**63) or most >= 2**64 or (least < 0 and most >= 2**63):
        raise _no_array(val, _NO_INTEGERS)
    count = (val[-1] - val[0]) // val.step + 1
    if count >= 2**63:
        message = f"smelt.{public_call() or 'array'}: {shown(val)} has more elements than can be addressed"
        raise OutOfMemoryError(at_user_line(message))
    buffer = Buffer.empty(Aval((count,), kind))
    for i in range(0, len(val), _BLOCK):
        buffer.array[i : i + _BLOCK] = np.array(val[i : i + _BLOCK], kind.numpy)
    return buffer if dtype in (None, kind) else _copied(buffer.array, dtype)  # type: ignore[arg-type]


def _is_a(val: Any, kinds: type | tuple[type, ...]) -> bool:
    """`isinstance` by what an object is, not by what it says: stand-ins of tests claim to be arrays or lists."""
    return issubclass(type(val), kinds)


def _no_array(val: Any, why: str = "") -> DTypeError:
    if not why and _is_a(val, (int, list, tuple)):
        entries = _entries_of(val)
        if all(_is_a(v, (int, float, complex)) for v in entries):
            why = _NO_INTEGERS if any(_is_a(v, int) for v in entries) else ""
        else:
            kinds = dict.fromkeys(type(v).__name__ for v in entries if not _is_a(v, (int, float, complex, np.number)))
            why = f"with {', '.join(list(kinds)[:3])} in it" if kinds else ""
    elif not why:
        why = f"of type {type(val).__name__}"
        if hasattr(type(val), "__iter__") and not _is_a(val, (str, bytes, Mapping)):
            why += "; make a list of it first: list(…)"
    name = public_call() or "array"
    return DTypeError(at_user_line(f"smelt.{name}: cannot make an array of {shown(val)}{why and ', '}{why}"))


_NO_INTEGERS = "whose integers fit neither int64 nor uint64; write them as floats"


def _entries_of(val: Any) -> list[Any]:
    """What lies in nested lists."""
    found, pending = [], [val]
    while pending:
        v = pending.pop()
        if _is_a(v, (list, tuple)):
            pending.extend(_read(v))
        else:
            found.append(v)
    return found


def _read(val: Any) -> Any:
    """`sequence` of what is given for an array.

    Raises:
        DTypeError: a list of another class, which fails or does not end.
    """
    try:
        return sequence(val)
    except ArgumentTypeError as error:
        raise _no_array(val, f"of type {type(val).__name__}: {error}") from None


def _unmasked(val: Any) -> Any:
    if type(val) is np.ndarray or not isinstance(val, np.ndarray):  # `np.ma` is loaded by its first use
        return val
    if isinstance(val, np.ma.MaskedArray) and np.any(np.ma.getmaskarray(val)):
        message = "a NumPy array has masked elements, which smelt has not; fill them: x.filled(0)"
        raise AttributeValueError(at_user_line(f"smelt.{public_call() or 'array'}: {message}"))
    return val


def plain(val: Any, axes: int = _MOST_AXES) -> Any:
    """`val` with lists in place of sequences that are no lists, so that NumPy asks no object how long it is.

    Raises:
        DTypeError: something that has a length, but is no sequence. AttributeValueError: masked elements.

    What follows no protocol of arrays and is no sequence stays: NumPy makes an object of it, which is an error.
    """
    kind = type(val)
    if issubclass(kind, (list, tuple)):
        if kind not in (list, tuple):
            val = _read(val)
        if set(map(type, val)) <= _NUMBERS:
            return val
        found = [plain(v, axes - 1) for v in val]
        return val if all(map(operator.is_, found, val)) else found
    if issubclass(kind, (int, float, complex, str, bytes, np.ndarray, np.generic)):
        return exact_number(val) if not issubclass(kind, (str, np.ndarray, np.generic)) else _unmasked(val)
    if any(_has(val, name) for name in _PROTOCOLS) or _is_buffer(val):
        return val
    if _has(val, "__dlpack__"):
        return val if axes == _MOST_AXES else _host_of(val, val)
    members = {name for c in kind.__mro__ for name in vars(c)}
    if not {"__len__", "__getitem__"} <= members:
        return val
    if isinstance(val, Mapping):
        raise _no_array(val)
    try:
        size = len(val)
        entries = list(itertools.islice(iter(val), size + 1))
    except Exception as error:  # an object may do anything
        raise _no_array(val, f"of type {kind.__name__}: {type(error).__name__}: {error}") from None
    if len(entries) != size:
        raise _no_array(val, f"of type {kind.__name__}: its length is {size}, and it has other entries")
    if not size and not issubclass(kind, Sequence):  # a stand-in of tests has a length, 0, and no elements to look at
        raise _no_array(val, f"of type {kind.__name__}, which is no sequence")
    if not axes:
        raise _no_array(val, f"of type {kind.__name__}: sequences in it nest deeper than {_MOST_AXES} axes")
    return plain(entries, axes)


_HOST = (np.ndarray, np.generic)
_BLOCK = 1 << 16
_NUMBERS = {bool, int, float, complex}
_PROTOCOLS = ("__array__", "__array_interface__", "__array_struct__")


def _has(val: Any, name: str) -> bool:
    """`hasattr`, of what may fail otherwise when it is asked."""
    try:
        return hasattr(val, name)
    except Exception:
        return False


def _is_buffer(val: Any) -> bool:
    try:
        memoryview(val)
    except Exception:  # it is none, or refuses: NumPy hears why
        return False
    return True


def _host_of(given: Any, val: Any, dtype: DType | None = None) -> np.ndarray:
    """What NumPy makes of something that is no array of its own; `given` is what the user has for it."""
    try:
        if dtype is not None:
            with np.errstate(all="ignore"):
                return np.asarray(val, dtype.numpy)
        return np.asarray(val) if _has(val, "__array__") or not _has(val, "__dlpack__") else imported(val)
    except SmeltError:
        raise
    except Exception as error:  # an object may do anything when NumPy asks for its elements
        if _has(val, "__dlpack__") and type(error) is TypeError:  # PyTorch's bfloat16, which is none of NumPy's
            with contextlib.suppress(Exception):
                return imported(val)
        if not isinstance(error, ValueError) or not _is_a(given, (list, tuple)):
            raise _no_array(given, f"of type {type(given).__name__} ({error})") from None
        message = f"smelt.{public_call() or 'array'}: nested lists of uneven lengths ({error})"
        raise ShapeError(at_user_line(message)) from None


def of_numbers(val: list[Any] | tuple[Any, ...]) -> Buffer | None:
    """A buffer of a list of floats, or of ints of 32 bits; None for anything else."""
    kinds = set(map(type, val))
    if kinds == _FLOATS:
        target = dtypes.float32
    elif kinds == _INTEGERS and min(val) >= -(2**31) and max(val) < 2**31:
        target = dtypes.int32
    else:
        return None
    return _copied(silently(np.array, val, target.numpy), target)


_FLOATS, _INTEGERS = {float}, {int}


def check_depth(val: Any) -> None:
    """Lists nest no deeper than NumPy's arrays have axes, so none contains itself."""
    level = [val]
    for _ in range(_MOST_AXES):
        try:
            level = [v for part in level for v in _read(part) if _is_a(v, (list, tuple))]
        except Exception as error:  # a list of another kind may do anything
            raise _no_array(val, f"of type {type(val).__name__} ({type(error).__name__}: {error})") from None
        if not level:
            return
        if len({id(v) for v in level}) < len(level):
            level = list({id(v): v for v in level}.values())
    raise ShapeError(at_user_line(f"smelt.{public_call() or 'array'}: lists nest deeper than {_MOST_AXES} axes"))


def holds_arrays(val: Any) -> bool:
    """Whether `val` is an array, or nested lists with one in them."""
    if _is_a(val, Handle):
        return True
    return _is_a(val, (list, tuple)) and any(holds_arrays(v) for v in _read(val))


def _inferred_dtype(val: Any) -> DType | None:
    """The dtype of Python scalars in nested lists; None where NumPy's own answer counts."""
    kinds: set[type] = set()
    pending = [val]
    large = False
    while pending:
        v = pending.pop()
        if _is_a(v, (list, tuple)):
            pending.extend(v)
            continue
        kind = next((k for k in (bool, int, float, complex) if _is_a(v, k)), None)  # such as a member of an IntEnum
        if kind is None or _is_a(v, np.generic):
            return None
        kinds.add(kind)
        large = large or (kind is int and not -(2**31) <= v < 2**31)
    if complex in kinds:
        return dtypes.complex64
    if float in kinds or not kinds:
        return dtypes.float32
    if int in kinds:
        if not large:
            return dtypes.int32
        least, most = _bounds(val)
        if least < -(2**63) or most >= 2**64 or (least < 0 and most >= 2**63):
            raise _no_array(val, _NO_INTEGERS)
        return dtypes.int64 if most < 2**63 else dtypes.uint64
    return dtypes.bool_


def _bounds(val: Any) -> tuple[int, int]:
    entries = _entries_of(val)
    return min(entries), max(entries)

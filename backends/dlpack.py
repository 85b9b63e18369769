"""DLPack capsules of memory that NumPy cannot read: made and taken field by field.

What is handed out is marked read-only, in capsules that can say so: arrays do not change.
"""

from __future__ import annotations

import ctypes
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.errors import BufferExportError, DTypeError

from .device import Lazy

#: Kinds of devices: the host, and NVIDIA's GPUs.
CPU, CUDA = 1, 2
#: What makes a buffer of another library's memory (`Tensor`), by the kind of its device.
takers: dict[int, Lazy] = {}

_READ_ONLY, _IS_COPIED = 1, 2
_NAMES = {False: b"dltensor", True: b"dltensor_versioned"}
_USED = {False: b"used_dltensor", True: b"used_dltensor_versioned"}  # capsules keep the address
_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
#: The kind of bfloat16, which NumPy lacks.
BFLOAT = 4


class _Tensor(ctypes.Structure):
    """DLTensor."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Managed(ctypes.Structure):
    """DLManagedTensor."""

    _fields_ = [("tensor", _Tensor), ("manager", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class _Versioned(ctypes.Structure):
    """DLManagedTensorVersioned."""

    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    ]


def _function(name: str, result: Any, *arguments: Any) -> Any:
    function = ctypes.PYFUNCTYPE(result, *arguments)
    return function((name, ctypes.pythonapi))


_new = _function("PyCapsule_New", ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
_is_valid = _function("PyCapsule_IsValid", ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)
_pointer = _function("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)
_rename = _function("PyCapsule_SetName", ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)
_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)

#: What is handed out, by its number, until it is given back: the structures, the memory, and what is to be done then.
_lent: dict[int, tuple[Any, Callable[[], None]]] = {}
_numbers = itertools.count(1)


def _give_back(managed: Any) -> None:
    _, done = _lent.pop(managed.manager, (None, None))
    if done is not None:
        done()


def _dropped(capsule: int) -> None:
    """The end of a capsule; of one that nobody took, that of its tensor too."""
    for versioned, name in _NAMES.items():
        if _is_valid(capsule, name):
            _give_back((_Versioned if versioned else _Managed).from_address(_pointer(capsule, name)))


_deleters = {
    False: _Deleter(lambda address: _give_back(_Managed.from_address(address))),
    True: _Deleter(lambda address: _give_back(_Versioned.from_address(address))),
}
_end = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(_dropped)
for _kept in (*_deleters.values(), _end, _give_back, _dropped):
    # Others may call them after this module has been emptied, at the end of the process.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(_kept))


def capsule_of(
    aval: Aval, address: int, device: tuple[int, int], held: Any, done: Callable[[], None], *,
    versioned: bool, copied: bool,
) -> Any:  # fmt: skip
    """A capsule of a C-contiguous array.

    Args:
        address: of the elements, on `device`.
        held: what keeps them alive, let go of when the array is given back, after a call of `done`.
        versioned: whether the capsule has a version; one that has none cannot say that its memory is read-only.
        copied: whether the memory is the consumer's own.
    """
    n = len(aval.shape)
    numbers = ctypes.c_int64 * max(n, 1)
    sizes = numbers(*aval.shape), numbers(*_steps(aval.shape))
    code = BFLOAT if aval.dtype is dtypes.bfloat16 else _CODES[aval.dtype.kind]
    tensor = _Tensor(address, *device, n, code, 8 * aval.dtype.size, 1, *sizes, 0)
    number = next(_numbers)
    deleter = ctypes.cast(_deleters[versioned], ctypes.c_void_p).value
    flags = _IS_COPIED if copied else _READ_ONLY
    managed: Any = _Managed(tensor, number, deleter)
    if versioned:
        managed = _Versioned(1, 0, number, deleter, flags, tensor)
    _lent[number] = (managed, sizes, held), done
    return _new(ctypes.addressof(managed), _NAMES[versioned], ctypes.cast(_end, ctypes.c_void_p))


def _steps(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of a contiguous array."""
    return tuple(math.prod(max(n, 1) for n in shape[i + 1 :]) for i in range(len(shape)))


class Tensor(NamedTuple):
    """What a capsule held.

    Attributes:
        aval: of the array.
        strides: in elements.
        address: of the first element.
        device: its kind and number.
        owner: keeps the memory; it is given back when this object is gone.
    """

    aval: Aval
    strides: tuple[int, ...]
    address: int
    device: tuple[int, int]
    owner: Any


class _Owner:
    """Gives a tensor back to the library that it is from."""

    def __init__(self, managed: Any):
        self._managed = managed

    def __del__(self) -> None:
        if self._managed.deleter:
            _Deleter(self._managed.deleter)(ctypes.addressof(self._managed))


def _managed_in(capsule: Any) -> Any:
    """What a capsule holds that nobody has taken yet; None where there is no such thing, or none that is known."""
    at = id(capsule)
    for versioned, name in _NAMES.items():
        if _is_valid(at, name):
            managed: Any = (_Versioned if versioned else _Managed).from_address(_pointer(at, name))
            return managed if not versioned or managed.major == 1 else None  # the next version may look otherwise
    return None


def tensor_in(capsule: Any) -> Any:
    """The DLTensor in a capsule that nobody has taken yet, which can be changed; None as for `_managed_in`."""
    managed = _managed_in(capsule)
    return None if managed is None else managed.tensor


def taken(capsule: Any) -> Tensor:
    """The array in a capsule, which is used from then on.

    Raises:
        BufferExportError: it is no capsule that nobody has taken. DTypeError: smelt has no such elements.
    """
    managed = _managed_in(capsule)
    if managed is None:
        raise BufferExportError(f"smelt: a {type(capsule).__name__} is no DLPack capsule that can be taken")
    tensor = managed.tensor
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    aval = Aval(shape, _dtype_of(tensor))
    strides = tuple(tensor.strides[i] for i in range(tensor.ndim)) if tensor.strides else _steps(shape)
    _rename(id(capsule), _USED[isinstance(managed, _Versioned)])
    where = tensor.device_type, tensor.device_id
    return Tensor(aval, strides, (tensor.data or 0) + tensor.byte_offset, where, _Owner(managed))


def _dtype_of(tensor: _Tensor) -> Any:
    for dtype in dtypes.ALL:
        code = BFLOAT if dtype is dtypes.bfloat16 else _CODES[dtype.kind]
        if (code, 8 * dtype.size, 1) == (tensor.code, tensor.bits, tensor.lanes):
            return dtype
    raise DTypeError(f"smelt has no elements of DLPack's kind {tensor.code} and {tensor.bits} bits")


def is_contiguous(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether elements are contiguous, in the order of their indices."""
    step = 1
    for extent, stride in zip(reversed(shape), reversed(strides)):
        if extent != 1 and stride != step and 0 not in shape:
            return False
        step *= extent
    return True

"""Arrays handed to other libraries, and taken from them, by DLPack.

NumPy makes and reads the capsules. It knows no bfloat16, so those travel as uint16 and the capsule's element type is
changed on the way.

What others get is memory that they may write to (`exports`), unless they ask for a copy.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np

from smelt.ir import dtypes
from smelt.ir.errors import ArgumentTypeError, BufferExportError, at_user_line, shown

#: The device of all that is exported: memory of the CPU.
CPU = (1, 0)
#: From here on capsules have a version.
_VERSIONED = (1, 0)

_UINT, _BFLOAT = 1, 4  # kDLUInt, kDLBfloat


class _Tensor(ctypes.Structure):
    """DLTensor, up to its element type."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
    ]


class _Versioned(ctypes.Structure):
    """DLManagedTensorVersioned, up to the element type. The earlier DLManagedTensor starts with the tensor."""

    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    ]


def _tensor_in(capsule: Any) -> _Tensor | None:
    """The tensor in a capsule that nobody has taken yet."""
    is_valid, pointer = ctypes.pythonapi.PyCapsule_IsValid, ctypes.pythonapi.PyCapsule_GetPointer
    is_valid.argtypes, is_valid.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_int
    pointer.argtypes, pointer.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p
    if is_valid(capsule, b"dltensor_versioned"):
        found = _Versioned.from_address(pointer(capsule, b"dltensor_versioned"))
        return found.tensor if found.major == 1 else None  # the next one may look otherwise
    if is_valid(capsule, b"dltensor"):
        return _Tensor.from_address(pointer(capsule, b"dltensor"))
    return None


def exported(host: np.ndarray, stream: Any, max_version: Any, dl_device: Any, copy: Any) -> Any:
    """A capsule with the elements of an array, or a copy of them; see `array.__dlpack__`."""
    if stream is not None:
        raise BufferExportError(at_user_line(f"smelt: arrays lie in the CPU's memory, without stream {shown(stream)}"))
    if dl_device is not None and _pair(dl_device) != CPU:
        message = f"smelt: DLPack device {shown(dl_device)} was asked for; arrays are exported on the CPU, (1, 0)"
        raise BufferExportError(at_user_line(message))
    version = None if max_version is None else _pair(max_version)
    if max_version is not None and version is None:
        raise ArgumentTypeError(at_user_line(f"smelt: max_version must be a pair of ints, is {shown(max_version)}"))
    if version is not None and not (version >= _VERSIONED and _numpy_has_versions()):
        version = None
    memory = host.copy() if copy else host
    bits = memory.view(np.uint16) if memory.dtype == dtypes.bfloat16.numpy else memory
    capsule = bits.__dlpack__() if version is None else bits.__dlpack__(max_version=version)
    if bits is not memory and (tensor := _tensor_in(capsule)):
        tensor.code = _BFLOAT
    return capsule


def _pair(given: Any) -> tuple[int, int] | None:
    try:
        first, second = map(int, given)
    except (TypeError, ValueError):
        return None
    return first, second


@functools.cache
def _numpy_has_versions() -> bool:
    """Whether NumPy's capsules have a version."""
    return np.lib.NumpyVersion(np.__version__) >= "2.1.0"


class _Taken:
    """A capsule in the place of what it was got from."""

    def __init__(self, capsule: Any):
        self._capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return CPU


def imported(x: Any) -> np.ndarray:
    """The elements of an object with ``__dlpack__``, in its own memory: its owner may change them.

    Raises whatever the object raises, and what NumPy does not like about its capsule.
    """
    if isinstance(x, np.ndarray):  # which may have a dtype that NumPy does not export
        return x
    try:
        capsule = x.__dlpack__(max_version=_VERSIONED) if _numpy_has_versions() else x.__dlpack__()
    except TypeError:  # from before there were versions
        capsule = x.__dlpack__()
    tensor = _tensor_in(capsule)
    is_bfloat16 = tensor is not None and (tensor.code, tensor.bits) == (_BFLOAT, 16)
    if tensor is not None and is_bfloat16:
        tensor.code = _UINT
    found = np.from_dlpack(_Taken(capsule))
    return found.view(dtypes.bfloat16.numpy) if is_bfloat16 else found

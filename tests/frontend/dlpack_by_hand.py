"""DLPack without a library: capsules read and made field by field, in both layouts of the protocol."""

from __future__ import annotations

import ctypes
from typing import Any

import ml_dtypes
import numpy as np

READ_ONLY, IS_COPIED = 1, 2

_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}


class Tensor(ctypes.Structure):
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


class Managed(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("manager_ctx", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    ]


_LAYOUTS: dict[bytes, Any] = {b"dltensor": Managed, b"dltensor_versioned": Versioned}
_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def _function(name: str, result: Any, *arguments: Any) -> Any:
    function = getattr(ctypes.pythonapi, name)
    function.restype, function.argtypes = result, arguments
    return function


_is_valid = _function("PyCapsule_IsValid", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
_pointer = _function("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
_rename = _function("PyCapsule_SetName", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
_new = _function("PyCapsule_New", ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)


def dtype_of(tensor: Tensor) -> np.dtype:
    if (tensor.code, tensor.bits) == (4, 16):
        return np.dtype(ml_dtypes.bfloat16)
    kind = {code: kind for kind, code in _CODES.items()}[tensor.code]
    return np.dtype(bool) if kind == "b" else np.dtype(f"{kind}{tensor.bits // 8}")


class Consumed:
    """The tensor of a capsule, taken as a consumer takes it. The memory lives as long as this object.

    Attributes:
        version: that of the capsule, None before 1.0.
        flags: of the capsule; 0 before 1.0.
        memory: the elements, for reading and writing whatever the flags say.
    """

    used: Any = (b"used_dltensor", b"used_dltensor_versioned")  # capsules keep the address of their name

    def __init__(self, capsule: Any):
        (name,) = [name for name in _LAYOUTS if _is_valid(capsule, name)]
        self._managed = _LAYOUTS[name].from_address(_pointer(capsule, name))
        _rename(capsule, self.used[name == b"dltensor_versioned"])
        versioned = isinstance(self._managed, Versioned)
        self.version = (self._managed.major, self._managed.minor) if versioned else None
        self.flags = self._managed.flags if versioned else 0
        tensor = self._managed.tensor
        assert (tensor.device_type, tensor.device_id, tensor.lanes) == (1, 0, 1)
        shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
        dtype = dtype_of(tensor)
        nbytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        raw = (ctypes.c_uint8 * nbytes).from_address((tensor.data or 0) + tensor.byte_offset) if nbytes else b""
        self.memory = np.ndarray(shape, dtype, raw)

    def __del__(self) -> None:
        if self._managed.deleter:
            _Deleter(self._managed.deleter)(ctypes.addressof(self._managed))


class Producer:
    """A NumPy array offered by DLPack, before 1.0 or from then on.

    Attributes:
        deleted: how often a consumer has given a capsule back.
    """

    def __init__(self, host: np.ndarray, versioned: bool, device: int = 1, read_only: bool = False):
        self.host, self.versioned, self.deleted, self._kept = host, versioned, 0, []
        self._device, self._flags = device, READ_ONLY if read_only else 0

    def __dlpack_device__(self) -> tuple[int, int]:
        return (self._device, 0)

    def __dlpack__(self, **options: Any) -> Any:
        if not self.versioned and options.keys() - {"stream"}:
            raise TypeError("__dlpack__() got an unexpected keyword argument")
        host, n = self.host, self.host.ndim
        is_bfloat16 = host.dtype == ml_dtypes.bfloat16
        shape, strides = (ctypes.c_int64 * n)(*host.shape), (ctypes.c_int64 * n)(
            *[s // host.itemsize for s in host.strides]
        )  # fmt: skip
        tensor = Tensor(
            host.__array_interface__["data"][0],
            self._device, 0, n, 4 if is_bfloat16 else _CODES[host.dtype.kind], 8 * host.itemsize, 1, shape, strides, 0,
        )  # fmt: skip

        def delete(_: int) -> None:
            self.deleted += 1

        deleter = _Deleter(delete)
        address = ctypes.cast(deleter, ctypes.c_void_p).value
        managed: Any = Versioned(1, 0, None, address, self._flags, tensor) if self.versioned else (
            Managed(tensor, None, address)
        )  # fmt: skip
        self._kept.append((shape, strides, deleter, managed))
        name = b"dltensor_versioned" if self.versioned else b"dltensor"
        self._kept.append(name)
        return _new(ctypes.addressof(managed), name, None)

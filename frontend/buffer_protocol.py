"""The buffer protocol for Python objects, on every supported Python.

Python code can export buffers only from 3.12 on, by ``__buffer__``. Before, the C-level slot is
filled through ctypes: a heap type whose ``bf_getbuffer`` asks the object's ``_export()`` for a NumPy
array and hands out that array's buffer (an exporter may name another one in ``view->obj``: PEP 3118).
A ctypes callback cannot raise, so there a failing export surfaces as a SystemError.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any


class _Slot(ctypes.Structure):
    _fields_ = [("slot", ctypes.c_int), ("pfunc", ctypes.c_void_p)]


class _Spec(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("basicsize", ctypes.c_int),
        ("itemsize", ctypes.c_int),
        ("flags", ctypes.c_uint),
        ("slots", ctypes.POINTER(_Slot)),
    ]


_BF_GETBUFFER = 1  # Py_bf_getbuffer, part of the stable ABI
_DEFAULT_BASETYPE = (1 << 10) | (1 << 18)  # Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_VERSION_TAG

_get_buffer = ctypes.pythonapi.PyObject_GetBuffer
_get_buffer.argtypes = [ctypes.py_object, ctypes.c_void_p, ctypes.c_int]
_get_buffer.restype = ctypes.c_int

_Getter = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p, ctypes.c_int)


_WRITABLE = 1  # PyBUF_WRITABLE


@_Getter
def _export_buffer(self: Any, view: int, flags: int) -> int:
    if flags & _WRITABLE:
        return -1
    try:
        return _get_buffer(self._export(), view, flags)
    except Exception:
        return -1


_slots = (_Slot * 2)(_Slot(_BF_GETBUFFER, ctypes.cast(_export_buffer, ctypes.c_void_p).value), _Slot(0, None))
_spec = _Spec(b"smelt.BufferExporter", 0, 0, _DEFAULT_BASETYPE, _slots)
_from_spec = ctypes.pythonapi.PyType_FromSpec
_from_spec.argtypes = [ctypes.c_void_p]
_from_spec.restype = ctypes.py_object


class _Exporter:
    """Base class of objects with ``_export() -> np.ndarray``."""

    __slots__ = ()

    def __buffer__(self, flags: int) -> memoryview:
        if flags & _WRITABLE:
            raise BufferError("smelt arrays are read-only buffers")
        return memoryview(self._export())  # type: ignore[attr-defined]


#: Base class of objects with ``_export() -> np.ndarray``.
BufferExporter: Any = (
    _Exporter if sys.version_info >= (3, 12) else _from_spec(ctypes.addressof(_spec))
)

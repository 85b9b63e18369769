"""The buffer protocol for Python objects, on every supported Python.

Python code can export buffers only from 3.12 on, by ``__buffer__``. Before, the C-level slot is
filled through ctypes: a heap type whose ``bf_getbuffer`` asks the object's ``_export()`` for a NumPy
array and hands out that array's buffer (an exporter may name another one in ``view->obj``: PEP 3118).

A ctypes callback cannot leave an exception behind: what is raised in it is printed and lost. So a failing
export returns a -1 of its own kind, which ctypes drops when it has read the number, and the finalizer of
that number, the C function PyObject_Hash, calls its ``__hash__``, which raises.
"""

from __future__ import annotations

import ctypes
import sys
from typing import TYPE_CHECKING, Any

from smelt.ir.errors import BufferExportError, SmeltError, at_user_line


def _exported(x: Any) -> Any:
    """The NumPy array whose buffer stands for `x`. Raises BufferExportError."""
    try:
        found = x._export()
        memoryview(found)
        return found
    except (SmeltError, BufferError, ValueError) as error:
        reason = str(error) if isinstance(error, SmeltError) else at_user_line(
            f"Python's buffers have no element type {x.dtype.name}; numpy.asarray(x) has one, or convert it"
        )  # fmt: skip
        raise BufferExportError(f"smelt: {x.aval} cannot be exported as a buffer: {reason}") from None


class _Exporter:
    """Base class of objects with ``_export() -> np.ndarray``."""

    __slots__ = ()

    def __buffer__(self, flags: int) -> memoryview:
        return memoryview(_exported(self))


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


# Numbers of the stable ABI: Py_bf_getbuffer and Py_tp_finalize, flags of types.
_BF_GETBUFFER, _TP_FINALIZE = 1, 80
_BASETYPE, _HAVE_FINALIZE, _HAVE_VERSION_TAG = 1 << 10, 1 << 0, 1 << 18

_kept: list[Any] = []  # what C code refers to


def _heap_type(name: bytes, flags: int, slot: int, function: Any, bases: tuple[type, ...]) -> Any:
    """A type with one slot filled by a C function."""
    address = ctypes.cast(function, ctypes.c_void_p).value
    slots = (_Slot * 2)(_Slot(slot, address), _Slot(0, None))
    spec = _Spec(name, 0, 0, flags | _BASETYPE | _HAVE_VERSION_TAG, slots)
    _kept.extend((function, slots, spec))
    make = ctypes.pythonapi.PyType_FromSpecWithBases
    make.argtypes, make.restype = [ctypes.c_void_p, ctypes.py_object], ctypes.py_object
    return make(ctypes.addressof(spec), bases)


def _exporter_before_3_12() -> Any:
    get_buffer = ctypes.pythonapi.PyObject_GetBuffer
    get_buffer.argtypes, get_buffer.restype = [ctypes.py_object, ctypes.c_void_p, ctypes.c_int], ctypes.c_int
    raising = _heap_type(b"smelt.Raising", _HAVE_FINALIZE, _TP_FINALIZE, ctypes.pythonapi.PyObject_Hash, (int,))

    class Failure(raising):  # type: ignore[misc, valid-type]
        """The -1 of a failing export, whose end raises its error."""

        def __hash__(self) -> int:
            raise self.error

    def failed(error: BaseException) -> int:
        found = Failure(-1)
        found.error = error.with_traceback(None)  # the callback's frame must not keep it alive
        return found

    @ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p, ctypes.c_int)
    def export(self: Any, view: int, flags: int) -> int:
        try:
            return get_buffer(_exported(self), view, flags)
        except BaseException as error:  # Ctrl-C among them
            return failed(error)

    return _heap_type(b"smelt.BufferExporter", 0, _BF_GETBUFFER, export, (object,))


if TYPE_CHECKING or sys.version_info >= (3, 12):
    BufferExporter = _Exporter
else:
    BufferExporter = _exporter_before_3_12()

"""The function that programs with long loops call, and the exception that Ctrl-C has raised in one; see `polling`."""

from __future__ import annotations

import ctypes
import threading

from . import entry

#: Memory for the exception of a handler: what programs call it.
RAISED = "smelt_raised"

_PYTHON = ("PyGILState_Ensure", "PyGILState_Release", "PyErr_CheckSignals", "PyErr_Occurred", "PyErr_Fetch")
#: The exception of a handler: type, value, traceback. Handlers run in the main thread only.
_raised = (ctypes.c_void_p * 3)()


def symbols() -> dict[str, int]:
    """The addresses of what machine code calls, and of what it writes."""
    found = {name: ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value for name in _PYTHON}
    # Handlers, and threads that they make, have the caller's mode of the processor: see `subnormals`.
    found["PyErr_CheckSignals"] = entry.check_signals() or found["PyErr_CheckSignals"]
    known = {name: address for name, address in found.items() if address is not None}
    return {**known, RAISED: ctypes.addressof(_raised)}


def raise_pending() -> None:
    """Raise what ended a loop of this thread, if anything did."""
    if _raised[0] is not None and threading.current_thread() is threading.main_thread():
        kind, value, traceback = _raised
        _raised[:] = [None] * 3
        restore = ctypes.pythonapi.PyErr_Restore
        restore.argtypes, restore.restype = [ctypes.c_void_p] * 3, None
        restore(kind, value, traceback)  # ctypes raises what it finds after a call of Python's own functions

"""Exceptions that smelt raises, and the user's line that they name.

Each class also derives from the builtin that a NumPy user would catch, so
``except ValueError`` keeps working for a shape error.
"""

from __future__ import annotations

import os
import reprlib
import sys
from types import CodeType
from typing import NamedTuple


class SmeltError(Exception):
    """Base class of all errors raised by smelt.

    Its subclasses are also the builtin errors that Python programs expect, and ValueError where MLX raises that.
    """


class ShapeError(SmeltError, ValueError):
    """Shapes, axes or sizes that do not fit."""


class DTypeError(SmeltError, TypeError, ValueError):
    """Element types that an op does not take."""


class ArgumentTypeError(SmeltError, TypeError):
    """An argument of a Python type that a function does not take."""


class AttributeValueError(SmeltError, ValueError):
    """A parameter of an op (axis, permutation, mode, ...) has an impossible value."""


class IndexOutOfRangeError(SmeltError, IndexError, ValueError):
    """An index known on the host lies outside its axis."""


class TraceError(SmeltError, RuntimeError, ValueError):
    """The value of a traced array was asked for, or a trace was used after its end."""


class TreeError(SmeltError, TypeError, ValueError):
    """A tree of arrays has the wrong structure or a leaf of the wrong type."""


class IRError(SmeltError, ValueError):
    """Text or a module that is not valid smelt IR."""


class PipelineError(SmeltError, ValueError):
    """An unknown pass, an unknown option, or a pipeline that does not parse."""


class NotDifferentiableError(SmeltError, TypeError, ValueError):
    """A derivative was asked of an op that has none."""


class DeviceError(SmeltError, RuntimeError):
    """A device does not exist, or cannot run what it was given."""


class OutOfMemoryError(SmeltError, MemoryError):
    """Memory ran out, a limit was reached, or an array has more elements than can be addressed."""


class BufferExportError(SmeltError, BufferError):
    """An array that Python's buffer protocol cannot hand out."""


class FileFormatError(SmeltError, ValueError):
    """A file that is damaged or in another format."""


class SettingError(SmeltError, ValueError):
    """A setting, in a SMELT_* variable or in a program, has an impossible value."""


class MetalCheckError(SmeltError, ValueError):
    """Metal source text that the strict check refuses."""


class SourceLine(NamedTuple):
    """A place in the user's program."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


_ROOMS = tuple(
    os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), room) + os.sep
    for room in ("frontend", "ir", "passes", "backends", "runtime", "tools")
)
# An installed (not editable) package keeps all rooms below one folder called smelt.
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_INSTALLED = os.path.basename(os.path.dirname(_PACKAGE)) == "smelt"
#: Code between smelt and its user: context managers and decorators, trees.
_BETWEEN = (f"{os.sep}optree{os.sep}", f"{os.sep}contextlib.py", f"{os.sep}functools.py")
#: The commands that smelt installs.
_SCRIPTS = ("smelt", "smelt-opt")
#: By file name, which hashes much faster than a code object: every node asks.
_internal_files: dict[str, bool] = {}


def is_internal(code: CodeType) -> bool:
    """Whether code belongs to smelt itself, not to its user."""
    name = code.co_filename
    known = _internal_files.get(name)
    if known is None:
        known = name.startswith(_PACKAGE) if _INSTALLED else name.startswith(_ROOMS)
        known = known or any(part in name for part in _BETWEEN) or name == "<string>" or name.startswith("<frozen")
        known = known or os.path.basename(name) in _SCRIPTS
        if len(_internal_files) > 10_000:  # file names made up in a loop must not pile up
            _internal_files.clear()
        _internal_files[name] = known
    return known


def user_line(depth: int = 1) -> SourceLine | None:
    """The innermost frame that does not belong to smelt, or None when there is none."""
    frame = sys._getframe(depth)
    while frame is not None:
        code = frame.f_code
        if not is_internal(code):
            return SourceLine(code.co_filename, frame.f_lineno, code.co_name)
        frame = frame.f_back  # type: ignore[assignment]
    return None


def at_user_line(message: str) -> str:
    """`message` with the user's line appended, where there is one."""
    line = user_line(2)
    return f"{message}; at {line}" if line else message


_shortened = reprlib.Repr()
_shortened.maxother = _shortened.maxstring = _shortened.maxlong = 120


def shown(value: object) -> str:
    """A value in a message: short, whatever it is; an array by its shape and dtype, which evaluates nothing.

    >>> shown([1, 2]), shown("x")
    ('[1, 2]', "'x'")
    """
    aval = getattr(type(value), "aval", None)
    if aval is not None:
        return f"an array {value.aval}"  # type: ignore[attr-defined]
    try:
        return _shortened.repr(value)
    except Exception:
        return f"an object of type {type(value).__name__}"

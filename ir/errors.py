"""Exceptions that smelt raises, and the user's line that they name.

Each class also derives from the builtin that a NumPy user would catch, so
``except ValueError`` keeps working for a shape error.
"""

from __future__ import annotations

import contextlib
import functools
import os
import reprlib
import sys
from collections.abc import Callable, Iterable
from types import CodeType, FrameType
from typing import Any, NamedTuple

import numpy as np

from . import locks


class SmeltError(Exception):
    """Base class of all errors raised by smelt.

    Its subclasses are also the builtin errors that Python programs expect, and ValueError where MLX raises that.

    >>> import smelt
    >>> try:
    ...     smelt.zeros(2) + smelt.zeros(3)
    ... except smelt.SmeltError as error:
    ...     print(type(error).__name__, isinstance(error, ValueError))
    ShapeError True
    """


class InternalError(SmeltError):
    """Base class of errors that smelt itself catches: what raises one is asked in another way then."""


class ShapeError(SmeltError, ValueError):
    """Shapes, axes or sizes that do not fit."""


class AxisError(ShapeError, IndexError):
    """An axis that an array does not have. MLX raises an IndexError, NumPy both."""


class IndexShapeError(ShapeError, IndexError):
    """A mask, or arrays of indices, whose shapes do not fit to the array or to each other: an IndexError to NumPy."""


class DTypeError(SmeltError, TypeError, ValueError):
    """Element types that an op does not take."""


class ArgumentTypeError(SmeltError, TypeError, ValueError):
    """An argument of a Python type that a function does not take."""


class MissingNameError(SmeltError, AttributeError):
    """A module has no such name.

    What may be meant is looked for when the message is read: many only ask whether there is the name.
    """

    def __init__(self, message: str = "", meant: Callable[[], str] = str, place: str = "") -> None:
        super().__init__(message)
        self._meant, self._place = meant, place

    def __str__(self) -> str:
        return f"{super().__str__()}{self._meant()}{self._place}"

    def __reduce__(self) -> tuple[type[MissingNameError], tuple[str]]:
        return type(self), (str(self),)


class AttributeValueError(SmeltError, ValueError):
    """A parameter of an op (axis, permutation, mode, ...) has an impossible value."""


class IndexOutOfRangeError(SmeltError, IndexError, ValueError):
    """An index known on the host lies outside its axis."""


class TraceError(SmeltError, RuntimeError, ValueError):
    """The value of a traced array was asked for, or a trace was used after its end."""


class MissingMemberError(SmeltError, KeyError, ValueError):
    """A module has no member of a name that it must have."""

    __str__ = Exception.__str__  # not the message in quotes, as of a KeyError


class UndefinedMethodError(SmeltError, NotImplementedError):
    """A class of the user lacks a method that it has to define."""


class DonatedError(SmeltError, RuntimeError):
    """An array was used after its memory had been given to a compiled function (``donate=``)."""


class TreeError(SmeltError, TypeError, ValueError):
    """A tree of arrays has the wrong structure or a leaf of the wrong type."""


class IRError(SmeltError, ValueError):
    """Text or a module that is not valid smelt IR."""


class RuleError(SmeltError, RuntimeError):
    """A rule of an op of another package that raised, or gave what it may not."""


class PipelineError(SmeltError, ValueError):
    """An unknown pass, an unknown option, or a pipeline that does not parse."""


class PassError(SmeltError, RuntimeError):
    """A pass failed: its own code raised something."""


class NotDifferentiableError(SmeltError, TypeError, ValueError):
    """A derivative was asked of an op that has none."""


class CustomCallError(SmeltError, RuntimeError):
    """What the target of a `smelt.custom_call` returned is not what the call states."""


class MissingPackageError(SmeltError, ImportError):
    """A package that is not installed is needed for this."""


class DistributedError(SmeltError, RuntimeError):
    """Processes that should compute together cannot."""


class KernelError(SmeltError, RuntimeError):
    """A checked kernel (SMELT_CHECK=1) would have read or written outside of an array."""


class DeviceError(SmeltError, RuntimeError, ValueError):
    """A device does not exist, or cannot run what it was given."""


class LibraryError(SmeltError, np.linalg.LinAlgError, RuntimeError):
    """A library has no result for these operands: a matrix that is singular, or not positive definite."""


class OutOfMemoryError(SmeltError, MemoryError):
    """Memory ran out, a limit was reached, or an array has more elements than can be addressed."""


class BufferExportError(SmeltError, BufferError):
    """An array that Python's buffer protocol cannot hand out."""


class FileFormatError(SmeltError, ValueError, RuntimeError):
    """A file that is damaged or in another format."""


class SettingError(SmeltError, ValueError):
    """A setting, in a SMELT_* variable or in a program, has an impossible value."""


class ProfileError(SmeltError, RuntimeError):
    """A profile that cannot be taken: another one is."""


class MetalCheckError(SmeltError, ValueError):
    """Metal source text that the strict check refuses."""


class SourceLine(NamedTuple):
    """A place in the user's program."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{_place_name(self.file)}:{self.line}"


def _place_name(file: str) -> str:
    """A file as messages show it: the cell of a notebook, whose code lies in a file of no meaning, as "cell In[3]"."""
    if (shell := sys.modules.get("IPython")) is None:
        return file
    with contextlib.suppress(Exception):  # of another version
        if found := shell.get_ipython().compile.format_code_name(file):
            kind, name = found
            return f"{kind.lower()} {name}"
    return file


#: The rooms beside `frontend/`; in an installed package they lie inside it.
_ROOMS = ("ir", "passes", "backends", "runtime", "tools")
#: By file name, which hashes much faster than a code object: every node asks.
internal_files: dict[str, bool] = {}


@functools.cache
def _own_folders() -> tuple[str, ...]:
    """Where smelt's files lie: as they are imported, and where the links of an editable installation lead."""
    beside = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    package = sys.modules[__name__.partition(".")[0]]
    folders = [*package.__path__, *(os.path.join(beside, room) for room in _ROOMS)]
    if package.__file__ is not None:
        folders.append(os.path.dirname(os.path.realpath(package.__file__)))
    return tuple({path + os.sep for folder in folders for path in (folder, os.path.realpath(folder))})


def _packages_between() -> tuple[str, ...]:
    """Packages whose code runs between smelt and its user, as far as they are loaded."""
    return _folders_of(tuple([name for name in ("numpy", "optree") if name in sys.modules]))


@functools.cache
def _folders_of(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sys.modules[name].__path__[0] + os.sep for name in names)


@functools.cache
def _library() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Where Python's own library lies, and folders inside it that hold other packages."""
    folders = {os.path.dirname(os.__file__), os.path.dirname(contextlib.contextmanager.__code__.co_filename)}
    others = [os.path.join(folder, name) for folder in folders for name in ("site-packages", "dist-packages")]
    return tuple(path + os.sep for path in folders), tuple(path + os.sep for path in others)


@functools.cache
def _command_folders() -> frozenset[str]:
    """Where an installation puts the commands `smelt` and `smelt-opt`."""
    import sysconfig  # seldom needed

    # An interrupt inside leaves `sysconfig` unusable.
    schemes = sysconfig.get_scheme_names
    return locks.whole(lambda: frozenset(os.path.realpath(sysconfig.get_path("scripts", s)) for s in schemes()))


def innermost_line(error: BaseException) -> str:
    """The innermost line that an error passed through outside of smelt, as ``file:line``; empty if there is none."""
    found = ""
    step = error.__traceback__
    while step is not None:
        if not is_internal(step.tb_frame):
            found = f"{_place_name(step.tb_frame.f_code.co_filename)}:{step.tb_lineno}"
        step = step.tb_next
    return found


def _is_internal_file(name: str) -> bool:
    if name.startswith("<"):
        return name.startswith("<frozen ")  # the importer's; else exec, eval, a notebook
    if name.startswith((*_own_folders(), *_packages_between())):
        return True
    library, others = _library()
    if name.startswith(library) and not name.startswith(others):
        return True
    folder, base = os.path.split(name)
    return base in ("smelt", "smelt-opt") and os.path.realpath(folder) in _command_folders()


def is_internal(frame: FrameType) -> bool:
    """Whether a frame belongs to smelt itself, not to its user.

    That goes by where its file lies, not by what anything is called. Code without a file, as of `python -c`, is
    the user's, except for what Python generates for a class of smelt: the methods of dataclasses.
    """
    name = frame.f_code.co_filename
    if name == "<string>":
        name = str(frame.f_globals.get("__file__", ""))
    known = internal_files.get(name)
    if known is None:
        known = _is_internal_file(name)
        if len(internal_files) > 10_000:  # file names made up in a loop must not pile up
            internal_files.clear()
        internal_files[name] = known
    return known


def user_line(depth: int = 1) -> SourceLine | None:
    """The innermost frame that does not belong to smelt, or None when there is none."""
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None:
        if not is_internal(frame):
            return SourceLine(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)
        frame = frame.f_back
    return None


#: The name of a function that calls another one and explains its errors; see `keywords.keywords_explained`.
_EXPLAINING = "called"


def user_call(depth: int = 1) -> str:
    """The name of the function of smelt that the user's innermost frame has called; "" where there is no such frame.
    Functions that only explain the errors of another one are passed over."""
    frame: FrameType | None = sys._getframe(depth)
    called = ""
    while frame is not None:
        if not is_internal(frame):
            return called
        name = frame.f_code.co_name
        called, frame = called if name == _EXPLAINING else name, frame.f_back
    return ""


def public_call() -> str:
    """The public function of smelt that the user's innermost frame has called, as "linalg.inv"; "" for none."""
    frame: FrameType | None = sys._getframe(1)
    found = ""
    while frame is not None and is_internal(frame):
        name, module = frame.f_code.co_name, frame.f_globals
        if name in module.get("__all__", ()):
            part = str(module.get("__name__", "")).partition(".")[2].partition(".")[0]
            found = f"{part}.{name}" if part in ("fft", "linalg", "nn", "optimizers", "random") else name
        frame = frame.f_back
    return found


def called() -> str:
    """What the message of an error begins with: "smelt.linalg.inv", by `public_call`; "smelt" for none."""
    name = public_call()
    return f"smelt.{name}" if name else "smelt"


def line_of(code: CodeType, place: int) -> int:
    """The line of an instruction of code, by its offset (`FrameType.f_lasti`, which costs less than the line)."""
    for start, end, line in code.co_lines():
        if start <= place < end and line is not None:
            return line
    return code.co_firstlineno


def file_line(code: CodeType, place: int) -> str:
    """Where an instruction of code stands, as ``model.py:17``; see `line_of`."""
    return f"{_place_name(code.co_filename)}:{line_of(code, place)}"


#: What says of a frame in which part of a program it runs, such as a layer of a model; "" where it knows none.
places_in_programs: list[Callable[[FrameType], str]] = []


#: Characters of a message that are shown whole.
_LONGEST = 1200


def at_user_line(message: str) -> str:
    """`message` with the part of the program and the user's line appended, where there are such.

    Of a very long one, as shapes of thousands of axes make it, the middle is left out.
    """
    if len(message) > _LONGEST:
        message = f"{message[: _LONGEST // 2]} … {message[-_LONGEST // 4 :]}"
    frame, line = sys._getframe(1), user_line(2)
    for name_of in places_in_programs:
        if place := name_of(frame):
            message = f"{message}; in {place}"
    return f"{message}; at {line}" if line else message


class _Shortened(reprlib.Repr):
    def repr_array(self, x: Any, level: int) -> str:
        """Of a class called array, Python's or smelt's, whose text would evaluate it."""
        return f"an array {x.aval}" if hasattr(type(x), "aval") else super().repr_array(x, level)


_shortened = _Shortened()
_shortened.maxother = _shortened.maxstring = _shortened.maxlong = 120


def did_you_mean(name: str, known: Iterable[str], before: str = "") -> str:
    """The end of a message about a name that nothing has: the known one that looks most like it, if one does.

    >>> did_you_mean("sofmax", ["softmax", "sum"], "smelt.")
    '; did you mean smelt.softmax?'
    """
    from difflib import get_close_matches  # nobody needs it otherwise

    written = {other.lower(): other for other in known}
    near = get_close_matches(name.lower(), list(written), n=1)
    return f"; did you mean {before}{written[near[0]]}?" if near else ""


def shown(value: object) -> str:
    """A value in a message: short, whatever it is; an array by its shape and dtype, which evaluates nothing.

    >>> shown([1, 2]), shown("x")
    ('[1, 2]', "'x'")
    """
    aval = getattr(type(value), "aval", None)
    if aval is not None:
        return f"an array {value.aval}"  # type: ignore[attr-defined]
    try:
        found = _shortened.repr(value)
        return " ".join(found.split()) if "\n" in found else found  # a table
    except Exception:
        return f"an object of type {type(value).__name__}"

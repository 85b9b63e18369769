"""Files of exported functions; docs/files.md describes them.

Text first: a mark, a header in JSON, and a module of the smelt dialect, all of which MLIR reads, for the first two are
comments. Arrays that the functions have captured follow behind a zero byte, as a .safetensors file.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import IO, Any, NamedTuple

import numpy as np

from smelt.ir.aval import Aval
from smelt.ir.dtypes import DType
from smelt.ir.errors import FileFormatError, SmeltError, shown
from smelt.ir.plain import aval_of, plain_aval
from smelt.ir.text import MAX_BYTES

from . import safetensors
from .reading import MAX_AXES, Later, left_in, take

MARK = b"// smelt exported function 1\n"
#: Containers in trees of arguments and results nest no deeper.
MOST_DEEP = 50
_CHUNK = 1 << 16
_ALIGNMENT = 8


class Trace(NamedTuple):
    """A function for arguments of certain types.

    Attributes:
        function: its name in the module.
        arguments, results: forms of trees (see `leaves`): of [positional, named] arguments, and of the results.
        captured: names of the arrays that follow the arguments.
        sizes: for other sizes, or None; see `smelt.ir.written_sizes.written_program`.
    """

    function: str
    arguments: Any
    results: Any
    captured: tuple[str, ...]
    sizes: Any = None


class Exported(NamedTuple):
    """What a file holds."""

    name: str
    metadata: str | None
    traces: Sequence[Trace]
    text: str
    arrays: Mapping[str, tuple[np.ndarray, DType]]


# Forms of trees: {"array": ["f32", 2, 3]}, {"list": [...]}, {"tuple": [...]}, {"dict": {...}}, {"value": 0.5}


def leaves(form: Any) -> list[Aval]:
    """The types of the arrays of a form, in their order.

    Raises:
        FileFormatError: it is none.
    """
    found: list[Aval] = []
    _walk(form, found, 0)
    return found


def _walk(form: Any, found: list[Aval], depth: int) -> None:
    if depth > MOST_DEEP:
        raise FileFormatError(f"its trees nest deeper than {MOST_DEEP}")
    if not isinstance(form, dict) or len(form) != 1:
        raise FileFormatError(f"{shown(form)} is no form of a tree")
    ((kind, content),) = form.items()
    if kind == "array":
        found.append(_aval(content))
    elif kind in ("list", "tuple") and isinstance(content, list):
        for part in content:
            _walk(part, found, depth + 1)
    elif kind == "dict" and isinstance(content, dict):
        for key in content:
            _walk(content[key], found, depth + 1)
    elif kind != "value" or isinstance(content, (list, dict)):
        raise FileFormatError(f"{shown(form)} is no form of a tree")


def _aval(content: Any) -> Aval:
    try:
        shape = content[1:]
        if len(shape) <= MAX_AXES and all(type(n) is int and n >= 0 for n in shape) and math.prod(shape) < 1 << 60:
            return aval_of(content)
    except (SmeltError, ValueError, TypeError, KeyError):
        pass
    raise FileFormatError(f"{shown(content)} is no type of an array")


def sizes_of(avals: Sequence[Aval]) -> tuple[int, ...]:
    """The sizes of arguments, an axis after the other: what a trace for other sizes is computed from."""
    return tuple([d for aval in avals for d in aval.shape])


def array_form(aval: Aval) -> Any:
    """The form of an array."""
    return {"array": plain_aval(aval)}


# Files


def write_exported(out: IO[bytes], exported: Exported) -> None:
    """Write a file."""
    import json  # as in safetensors

    header = {
        "name": exported.name,
        "metadata": exported.metadata,
        "traces": [trace._asdict() for trace in exported.traces],
    }
    text = MARK + b"// " + json.dumps(header).encode() + b"\n" + exported.text.encode()
    out.write(text)
    if not exported.arrays:
        return
    out.write(bytes(_ALIGNMENT - len(text) % _ALIGNMENT))  # at least one
    safetensors.write_safetensors(out, exported.arrays)


def read_exported(source: IO[bytes]) -> Exported:
    """What a file holds; arrays are mapped. The module is not looked at.

    Raises:
        FileFormatError: it is none.
    """
    text, ended = _text(source)
    if not text.startswith(MARK):
        raise FileFormatError("it does not begin as an exported function")
    line, _, code = text[len(MARK) :].partition(b"\n")
    if not line.startswith(b"// "):
        raise FileFormatError("it has no header")
    header = safetensors.parse_json(line[3:])
    try:
        module = code.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FileFormatError(f"its module is no text: {error}") from None
    if set(header) != {"name", "metadata", "traces"} or not isinstance(header["name"], str):
        raise FileFormatError("its header must have a name, metadata and traces")
    if not isinstance(header["metadata"], str) and header["metadata"] is not None:
        raise FileFormatError("its metadata must be a text")
    if not isinstance(header["traces"], list):
        raise FileFormatError("its traces must be a list")
    read = safetensors.read_safetensors(source)[0] if ended else {}
    arrays = {name: (x.read() if isinstance(x, Later) else x, dtype) for name, (x, dtype) in read.items()}
    traces = [_trace(found, arrays) for found in header["traces"]]
    return Exported(header["name"], header["metadata"], traces, module, arrays)


def _text(source: IO[bytes]) -> tuple[bytes, bool]:
    """The text up to a zero byte, and whether there was one: the file then stands behind the zeros."""
    parts, size, start = [], 0, source.tell()
    while left := left_in(source):
        part = take(source, min(left, _CHUNK), "its text")
        end = part.find(0)
        if end >= 0:
            parts.append(part[:end])
            size += end
            source.seek(start + size + _ALIGNMENT - size % _ALIGNMENT)
            return b"".join(parts), True
        parts.append(part)
        size += len(part)
        if size > 2 * MAX_BYTES:
            raise FileFormatError(f"its text is longer than {2 * MAX_BYTES} bytes")
    return b"".join(parts), False


def _trace(found: Any, arrays: Mapping[str, Any]) -> Trace:
    if not isinstance(found, dict) or set(found) != set(Trace._fields):
        raise FileFormatError(f"a trace is {shown(found)}")
    trace = Trace(**found)
    captured = trace.captured
    if not isinstance(trace.function, str) or not isinstance(captured, list):
        raise FileFormatError(f"a trace is {shown(found)}")
    for name in captured:
        if not isinstance(name, str) or name not in arrays:
            raise FileFormatError(f"it has no array {shown(name)}")
    forms = trace.arguments
    if not isinstance(forms, list) or len(forms) != 2 or "tuple" not in forms[0] or "dict" not in forms[1]:
        raise FileFormatError(f"arguments are {shown(forms)}")
    for form in (*forms, trace.results):
        leaves(form)
    return trace._replace(captured=tuple(captured))

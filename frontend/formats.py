"""Bytes of .npy, .npz and .safetensors files into NumPy arrays, trusting nothing that a file says of itself.

Memory is taken for elements that the file has, not for those that a header announces; headers are matched against
what NumPy and safetensors write, not evaluated. What is wrong with a file is a FileFormatError without its name.
"""

from __future__ import annotations

import math
import os
import re
from typing import IO, Any

import numpy as np

from smelt.ir import dtypes
from smelt.ir.dtypes import DType
from smelt.ir.errors import DTypeError, FileFormatError, OutOfMemoryError, shown

MAGIC = b"\x93NUMPY"
#: Longer ones are refused: NumPy writes some hundred bytes, safetensors allows so many.
MAX_NPY_HEADER, MAX_SAFE_HEADER = 1 << 16, 100_000_000
#: Deflate makes no more of a byte.
MAX_RATIO = 1032
_CHUNK = 1 << 20
_EMPTY_ZIP = 22

SAFE_NAMES = {
    "BOOL": dtypes.bool_, "U8": dtypes.uint8, "U16": dtypes.uint16, "U32": dtypes.uint32, "U64": dtypes.uint64,
    "I8": dtypes.int8, "I16": dtypes.int16, "I32": dtypes.int32, "I64": dtypes.int64, "F16": dtypes.float16,
    "BF16": dtypes.bfloat16, "F32": dtypes.float32, "F64": dtypes.float64, "C64": dtypes.complex64,
}  # fmt: skip


def left_in(source: IO[bytes]) -> int:
    """Bytes from here to the end of a file that can seek."""
    here = source.tell()
    end = source.seek(0, os.SEEK_END)
    source.seek(here)
    return max(0, end - here)


def take(source: IO[bytes], count: int, what: str) -> bytes:
    """`count` bytes. Raises FileFormatError where the file has less, before memory is taken for them."""
    parts: list[bytes] = []
    missing = count
    while missing:
        part = source.read(min(missing, _CHUNK))
        if not isinstance(part, bytes):
            raise FileFormatError(f"it must be open for reading bytes, reading gives {shown(part)}")
        if not part or len(part) > missing:
            raise FileFormatError(f"it ends {missing} bytes before the end of {what}")
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)


def elements(source: IO[bytes], dtype: np.dtype, shape: tuple[int, ...], have: int, what: str) -> np.ndarray:
    """An array of `shape` from the next bytes of a file, which says that it has `have` more.

    Raises FileFormatError where they are too few for the shape; OutOfMemoryError where memory is.
    """
    size = math.prod(shape) * dtype.itemsize
    if size > have:
        raise FileFormatError(f"{what} has {have} bytes, {dtype.name}{list(shape)} needs {size}")
    try:
        found = np.empty(size, np.uint8)
    except MemoryError:
        raise OutOfMemoryError(f"no memory for the {size} bytes of {what}") from None
    at = 0
    while at < size:
        part = take(source, min(size - at, _CHUNK), what)
        found[at : at + len(part)] = np.frombuffer(part, np.uint8)
        at += len(part)
    if dtype == np.bool_:
        found = (found != 0).view(np.uint8)  # any other byte would be no bool
    return found.view(dtype).reshape(shape) if size else np.empty(shape, dtype)


# .npy

_DESCR = re.compile(r"\s*'descr'\s*:\s*'([^'\\]*)'\s*")
_ORDER = re.compile(r"\s*'fortran_order'\s*:\s*(True|False)\s*")
_SHAPE = re.compile(r"\s*'shape'\s*:\s*\(\s*((?:\d{1,19}L?\s*,\s*){0,65}(?:\d{1,19}L?\s*)?)\)\s*")
_KIND = re.compile(r"([<>|=]?)(b1|[iu][1248]|f[248]|c8|c16|V2)")


def read_npy(source: IO[bytes], have: int | None = None, what: str = "the array") -> np.ndarray:
    """The array of a .npy file; bfloat16 is what is stored as two bytes of no type.

    Args:
        have: the bytes that the file has from here; by default those up to its end.

    Raises:
        FileFormatError: it is none, or less than its header says. DTypeError: its elements have no dtype here.
    """
    have = left_in(source) if have is None else have
    start = take(source, 8, "its header")
    if start[:6] != MAGIC:
        raise FileFormatError("it does not begin as a .npy file")
    wide = {1: 2, 2: 4, 3: 4}.get(start[6])
    if wide is None:
        raise FileFormatError(f"it has version {start[6]}.{start[7]} of the format; known are 1, 2 and 3")
    length = int.from_bytes(take(source, wide, "its header"), "little")
    if length > min(MAX_NPY_HEADER, have):
        raise FileFormatError(f"its header would be {length} bytes long")
    header = take(source, length, "its header")
    dtype, shape, reverse = _npy_header(header)
    array = elements(source, dtype, shape[::-1] if reverse else shape, have - 8 - wide - length, what)
    return array.T if reverse else array


def _npy_header(header: bytes) -> tuple[np.dtype, tuple[int, ...], bool]:
    """(dtype, shape, whether the first axis runs fastest) of what NumPy writes as a dict."""
    text = header.decode("latin-1").strip()
    if not (text.startswith("{") and text.endswith("}")):
        raise FileFormatError(f"its header is {shown(text)}")
    structured = re.search(r"'descr'\s*:\s*[\[(]", text)
    if structured:
        raise DTypeError("its elements are structures, for which smelt has no dtype")
    found: dict[str, str] = {}
    rest = text[1:-1]
    for _ in range(3):
        for name, pattern in (("descr", _DESCR), ("order", _ORDER), ("shape", _SHAPE)):
            if match := pattern.match(rest):
                found[name], rest = match[1], rest[match.end() :].removeprefix(",")
                break
    if len(found) < 3 or rest.strip():
        raise FileFormatError(f"its header is {shown(text)}")
    kind = _KIND.fullmatch(found["descr"])
    if kind is None:
        raise DTypeError(f"its elements are {shown(found['descr'])}, for which smelt has no dtype")
    shape = tuple(int(n.strip().rstrip("L")) for n in found["shape"].split(",") if n.strip())
    if len(shape) > 64:
        raise FileFormatError(f"it has {len(shape)} axes; there are at most 64")
    return np.dtype(kind[1] + kind[2]), shape, found["order"] == "True"


# .npz


def read_npz(source: IO[bytes]) -> dict[str, np.ndarray]:
    """The arrays of a .npz file by name.

    Raises:
        FileFormatError: it is none, or an entry is no array. DTypeError: one whose elements have no dtype here.
    """
    import zipfile

    size = source.tell() + left_in(source)
    if size < _EMPTY_ZIP:  # also what has no end, of which zipfile would read all
        raise FileFormatError(f"it has {size} bytes")
    found: dict[str, np.ndarray] = {}
    try:
        with zipfile.ZipFile(source) as archive:
            infos = archive.infolist()
            if sum(max(0, info.compress_size) for info in infos) > size:
                raise FileFormatError("its entries overlap")
            for info in infos:
                if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                    method = f"method {info.compress_type}"
                    raise FileFormatError(f"{info.filename} is compressed by {method}, which is none of .npz")
                most = info.compress_size * (MAX_RATIO if info.compress_type == zipfile.ZIP_DEFLATED else 1)
                if info.file_size > most + 64:
                    raise FileFormatError(f"{info.filename} says that it has {info.file_size} bytes in {most}")
                name = info.filename.removesuffix(".npy")
                with archive.open(info) as member:
                    found[name] = read_npy(member, info.file_size, name)
                    if member.read(1):
                        raise FileFormatError(f"{name} has bytes behind its elements")
    except (FileFormatError, DTypeError, OutOfMemoryError):
        raise
    except MemoryError:
        raise OutOfMemoryError("no memory for its arrays") from None
    except OSError as error:
        if error.errno is None or error.errno == 22:  # a place before the start of the file
            raise FileFormatError(str(error)) from None
        raise
    except Exception as error:  # zipfile's and zlib's own, and what else a damaged directory brings about
        raise FileFormatError(f"{type(error).__name__}: {error}") from None
    return found


# .safetensors


def read_safetensors(source: IO[bytes]) -> tuple[dict[str, tuple[np.ndarray, DType]], dict[str, str]]:
    """({name: (array, dtype)}, metadata) of a .safetensors file.

    Raises:
        FileFormatError: it is none; also for arrays that overlap or leave gaps, which the format rules out. DTypeError:
        elements that have no dtype here.
    """
    have = left_in(source)
    length = int.from_bytes(take(source, 8, "the length of its header"), "little")
    if length > min(MAX_SAFE_HEADER, have):
        raise FileFormatError(f"its header would be {length} bytes long")
    header = _safe_header(take(source, length, "its header"))
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise FileFormatError("its metadata must be a dict of texts")
    entries = sorted(((*_safe_entry(name, entry), name) for name, entry in header.items()), key=lambda e: e[:2])
    at = 0
    arrays: dict[str, Any] = dict.fromkeys(header)  # in their order
    for start, end, dtype, shape, name in entries:
        if start != at:
            raise FileFormatError(f"{shown(name)} lies at byte {start}, what is before it ends at {at}")
        arrays[name] = (elements(source, dtype.numpy, shape, have - 8 - length - at, shown(name)), dtype)
        at = end
    if at != have - 8 - length:
        raise FileFormatError(f"its arrays have {at} bytes, the file {have - 8 - length}")
    return arrays, metadata


def _integer(text: str) -> int:
    if len(text) > 20:
        raise FileFormatError(f"the number {text[:20]}... is too large")
    return int(text)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise FileFormatError("a name stands twice in one object")
    return found


def _safe_header(data: bytes) -> dict[str, Any]:
    import json  # here, as zipfile: the import of smelt loads only what most programs use

    try:
        header = json.loads(data.decode("utf-8"), parse_int=_integer, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"its header is no JSON: {error}") from None
    if not isinstance(header, dict):
        raise FileFormatError("its header is no JSON object")
    return header


def _safe_entry(name: str, entry: Any) -> tuple[int, int, DType, tuple[int, ...]]:
    """(start, end, dtype, shape) of an array."""
    what = shown(name)
    if not isinstance(entry, dict) or not {"dtype", "shape", "data_offsets"} <= set(entry):
        raise FileFormatError(f"{what} must have a dtype, a shape and data_offsets")
    kind, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(kind, str) or kind not in SAFE_NAMES:
        raise DTypeError(f"{what}: smelt has no dtype {shown(kind)}")
    for what_, values in (("shape", shape), ("data_offsets", offsets)):
        if not isinstance(values, list) or not all(type(n) is int and n >= 0 for n in values):
            raise FileFormatError(f"{what}: its {what_} must be integers, are {shown(values)}")
    if len(shape) > 64:
        raise FileFormatError(f"{what} has {len(shape)} axes; there are at most 64")
    dtype = SAFE_NAMES[kind]
    if len(offsets) != 2 or offsets[1] - offsets[0] != math.prod(shape) * dtype.size:
        raise FileFormatError(f"{what} lies at bytes {shown(offsets)}, its shape is {shown(shape)}")
    return offsets[0], offsets[1], dtype, tuple(shape)

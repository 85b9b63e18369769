"""NumPy's .npy and .npz."""

from __future__ import annotations

import re
from typing import IO, Any

import numpy as np

from smelt.ir.errors import DTypeError, FileFormatError, OutOfMemoryError, shown

from .reading import MAX_AXES, elements, left_in, take

MAGIC = b"\x93NUMPY"
#: Longer ones are refused: NumPy writes some hundred bytes.
MAX_HEADER = 1 << 16
#: Deflate makes no more of a byte.
MAX_RATIO = 1032
_EMPTY_ZIP = 22

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
    if length > min(MAX_HEADER, have):
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
    if len(shape) > MAX_AXES:
        raise FileFormatError(f"it has {len(shape)} axes; there are at most {MAX_AXES}")
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
    try:
        with zipfile.ZipFile(source) as archive:
            if sum(max(0, info.compress_size) for info in archive.infolist()) > size:
                raise FileFormatError("its entries overlap")
            return dict(_entry(archive, info) for info in archive.infolist())
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


def _entry(archive: Any, info: Any) -> tuple[str, np.ndarray]:
    """The name and the array of an entry of an archive, which does not grow beyond what its bytes can hold."""
    from zipfile import ZIP_DEFLATED, ZIP_STORED

    if info.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
        method = f"method {info.compress_type}"
        raise FileFormatError(f"{info.filename} is compressed by {method}, which is none of .npz")
    most = info.compress_size * (MAX_RATIO if info.compress_type == ZIP_DEFLATED else 1)
    if info.file_size > most + 64:
        raise FileFormatError(f"{info.filename} says that it has {info.file_size} bytes in {most}")
    name = info.filename.removesuffix(".npy")
    with archive.open(info) as member:
        found = read_npy(member, info.file_size, name)
        if member.read(1):
            raise FileFormatError(f"{name} has bytes behind its elements")
    return name, found

"""Arrays in files: NumPy's .npy and .npz, and .safetensors.

bfloat16, which NumPy's format has no name for, is stored there as raw two-byte elements (``|V2``), as
MLX does, and is read back as bfloat16.
"""

from __future__ import annotations

import os
from contextlib import nullcontext
from types import ModuleType
from typing import Any

import numpy as np

from smelt.ir import dtypes
from smelt.ir.errors import (
    ArgumentTypeError,
    AttributeValueError,
    DTypeError,
    FileFormatError,
    OutOfMemoryError,
    SmeltError,
    TreeError,
    at_user_line,
    shown,
)

from . import formats
from .formats import SAFE_NAMES
from .lazy.arguments import word
from .lazy.arrays import ArrayLike, StreamOrDevice, array, as_array
from .lazy.signatures import File
from .lazy.streams import check_stream

__all__ = ["load", "save", "save_safetensors", "savez", "savez_compressed"]


def _stored(x: ArrayLike) -> np.ndarray:
    """The elements as NumPy stores them."""
    found = as_array(x)
    host = found._host()
    return host.view(np.dtype("V2")) if found.dtype is dtypes.bfloat16 else host


def _restored(host: np.ndarray, where: str) -> array:
    if host.dtype == np.dtype("V2"):
        host = host.view(dtypes.bfloat16.numpy)
    try:
        exact = None if host.dtype == np.complex128 else host.dtype
        return array(np.ascontiguousarray(host).reshape(host.shape), exact)
    except DTypeError as error:
        raise DTypeError(f"{where}: {error}") from None


def _named(file: File, suffix: str) -> Any:
    """`file` as a path that ends in `suffix`, or the open file itself."""
    if hasattr(file, "write") and not isinstance(file, (type, ModuleType)):
        return file
    path = _path("a file", file)
    return path if path.endswith(suffix) else path + suffix


def _path(name: str, file: Any) -> str:
    try:
        return os.fsdecode(file)
    except TypeError:
        raise ArgumentTypeError(
            at_user_line(f"smelt: {name} must be a path or an open binary file, is {shown(file)}")
        ) from None


def save(file: File, arr: ArrayLike) -> None:
    """Write an array in NumPy's .npy format.

    Args:
        file: a path, to which ``.npy`` is added where it is missing, or an open binary file.

    >>> import smelt, io
    >>> file = io.BytesIO()
    >>> smelt.save(file, smelt.array([1, 2]))
    >>> _ = file.seek(0)
    >>> smelt.load(file)
    array([1, 2], dtype=int32)
    """
    np.save(_named(file, ".npy"), _stored(arr), allow_pickle=False)


def savez(file: File, *args: ArrayLike, **kwargs: ArrayLike) -> None:
    """Write several arrays in NumPy's .npz format: keywords under their names, others as arr_0, arr_1, …

    Args:
        file: a path, to which ``.npz`` is added where it is missing, or an open binary file.

    Raises:
        AttributeValueError: a keyword arr_0, arr_1, … that a positional array has already.

    >>> import smelt, io
    >>> file = io.BytesIO()
    >>> smelt.savez(file, w=smelt.array([1, 2]))
    >>> _ = file.seek(0)
    >>> smelt.load(file)
    {'w': array([1, 2], dtype=int32)}
    """
    _write_npz("savez", file, args, kwargs)


def savez_compressed(file: File, *args: ArrayLike, **kwargs: ArrayLike) -> None:
    """`savez`, with the arrays compressed.

    >>> import smelt, io
    >>> smelt.savez_compressed(io.BytesIO(), smelt.array([1, 2]))
    """
    _write_npz("savez_compressed", file, args, kwargs, compressed=True)


def _write_npz(name: str, file: File, args: Any, kwargs: Any, compressed: bool = False) -> None:
    import zipfile  # here and below: the import of smelt loads only what most programs use

    arrays = dict(kwargs)
    for i, x in enumerate(args):
        if f"arr_{i}" in arrays:
            raise AttributeValueError(at_user_line(f"smelt.{name}: arr_{i} names a positional and a keyword array"))
        arrays[f"arr_{i}"] = x
    stored = {k: _stored(x) for k, x in arrays.items()}
    compression = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    # Not np.savez: its own parameters (file, allow_pickle) would be lost as names.
    with zipfile.ZipFile(_named(file, ".npz"), "w", compression, allowZip64=True) as archive:
        for k, host in stored.items():
            with archive.open(f"{k}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, host, allow_pickle=False)


def save_safetensors(file: File, arrays: dict[str, ArrayLike], metadata: dict[str, str] | None = None) -> None:
    """Write named arrays in the .safetensors format.

    Args:
        file: a path, to which ``.safetensors`` is added where it is missing, or an open binary file.
        metadata: texts to store beside them.

    >>> import smelt, io
    >>> file = io.BytesIO()
    >>> smelt.save_safetensors(file, {"w": smelt.array([1, 2])})
    >>> _ = file.seek(0)
    >>> smelt.load(file)
    {'w': array([1, 2], dtype=int32)}
    """
    import json

    names = {d: name for name, d in SAFE_NAMES.items()}
    if not isinstance(arrays, dict) or not all(isinstance(k, str) and k != "__metadata__" for k in arrays):
        raise TreeError(
            at_user_line(f"smelt.save_safetensors: needs a dict of arrays by name, got {shown(arrays)}")
        )
    header: dict[str, Any] = {}
    if metadata is not None:
        if not isinstance(metadata, dict) or not all(isinstance(t, str) for pair in metadata.items() for t in pair):
            raise TreeError(
                at_user_line(f"smelt.save_safetensors: metadata must be a dict of texts, is {shown(metadata)}")
            )
        header["__metadata__"] = metadata
    hosts, end = [], 0
    for name, x in arrays.items():
        found = as_array(x)
        start, end = end, end + found.nbytes
        header[name] = {"dtype": names[found.dtype], "shape": list(found.shape), "data_offsets": [start, end]}
        hosts.append(found._host())
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    target = _named(file, ".safetensors")
    with nullcontext(target) if hasattr(target, "write") else open(target, "wb") as out:
        out.write(len(text).to_bytes(8, "little") + text)
        for host in hosts:
            out.write(np.ascontiguousarray(host).tobytes())


def load(
    file: File,
    /,
    format: str | None = None,
    return_metadata: bool = False,
    *,
    stream: StreamOrDevice = None,
) -> Any:
    """Read what `save`, `savez` or `save_safetensors` wrote.

    Args:
        file: a path, or an open binary file that can seek.
        format: ``"npy"``, ``"npz"`` or ``"safetensors"``; by default what the file looks like.
        return_metadata: return ``(arrays, metadata)``; for .safetensors.

    Returns:
        An array (.npy) or a dict of arrays by name.

    Raises:
        FileFormatError: a file that is damaged or of another format. DTypeError: elements that smelt has no
        dtype for. OutOfMemoryError: the file holds more than there is memory for. OSError: the file cannot be read.

    >>> import smelt, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     smelt.save(f"{folder}/x", smelt.array([1.5]))
    ...     smelt.load(f"{folder}/x.npy")
    array([1.5], dtype=float32)
    """
    check_stream(stream)
    if format is not None:
        word("load", "format", format, "npy", "npz", "safetensors")
    if hasattr(file, "read"):
        name = getattr(file, "name", "the open file")
        name = os.fspath(name) if isinstance(name, (str, os.PathLike)) else "the open file"
    else:
        name = _path("a file", file)
    where = f"smelt.load: {name}"
    found = format
    try:
        with nullcontext(file) if hasattr(file, "read") else open(name, "rb") as opened:
            source: Any = opened
            found = format or _format_of(source, name)
            if found is None:
                raise FileFormatError(at_user_line(f"{where} is none of .npy, .npz, .safetensors"))
            if return_metadata and found != "safetensors":
                raise AttributeValueError(at_user_line(f"{where}: only .safetensors has metadata"))
            if found == "npy":
                return _restored(formats.read_npy(source), where)
            if found == "npz":
                return {k: _restored(x, f"{where}, {k}") for k, x in formats.read_npz(source).items()}
            read, metadata = formats.read_safetensors(source)
            arrays = {k: array(x, dtype) for k, (x, dtype) in read.items()}
            return (arrays, metadata) if return_metadata else arrays
    except (FileFormatError, OutOfMemoryError, DTypeError) as error:
        if str(error).startswith("smelt.load"):
            raise
        raise type(error)(at_user_line(f"{where} cannot be read as .{found}: {error}")) from None
    except MemoryError:
        raise OutOfMemoryError(at_user_line(f"{where}: no memory for what it holds")) from None
    except ValueError as problem:
        # Of the file itself: it is closed, or its name cannot be one.
        if isinstance(problem, (OSError, SmeltError)):
            raise
        raise FileFormatError(at_user_line(f"{where}: {problem}")) from None


def _format_of(source: Any, name: str) -> str | None:
    start = source.read(9)
    if not isinstance(start, bytes):
        raise FileFormatError(f"it must be open for reading bytes, reading gives {shown(start)}")
    source.seek(-len(start), os.SEEK_CUR)
    if start[:6] == formats.MAGIC:
        return "npy"
    if start[:2] == b"PK":
        return "npz"
    if name.endswith(".safetensors") or start[8:] == b"{":
        return "safetensors"
    return None

"""Arrays in files: NumPy's .npy and .npz, .safetensors and .gguf.

bfloat16, which NumPy's format has no name for, is stored there as raw two-byte elements (``|V2``), as
MLX does, and is read back as bfloat16.

Files are written aside and moved into place: what was there before stays whole until then.
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from types import ModuleType
from typing import IO, Any

import numpy as np

from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.dtypes import DType
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
from smelt.ir.flags import flags_checked
from smelt.runtime import Buffer

from . import gguf_files
from .formats import npy, safetensors
from .formats.reading import Elements, Later
from .formats.writing import octets_of, replacing
from .lazy.arguments import word
from .lazy.arrays import ArrayLike, StreamOrDevice, array, as_array, wrap
from .lazy.explained import explained
from .lazy.graph import leaf
from .lazy.signatures import File
from .lazy.streams import check_stream

__all__ = ["load", "save", "save_gguf", "save_safetensors", "savez", "savez_compressed"]


def _stored(x: ArrayLike) -> np.ndarray:
    """The elements as NumPy stores them."""
    found = as_array(x)
    host = found._host()
    return host.view(np.dtype("V2")) if found.dtype is dtypes.bfloat16 else host


def _buffer(elements: Elements, dtype: DType) -> Buffer:
    aval = Aval(elements.shape, dtype)
    return Buffer.later(aval, elements.read) if isinstance(elements, Later) else Buffer.of(elements, aval)


def _restored(host: np.ndarray, where: str) -> array:
    if host.dtype == np.dtype("V2"):
        host = host.view(dtypes.bfloat16.numpy)
    try:
        return array(np.ascontiguousarray(host).reshape(host.shape), host.dtype)
    except DTypeError as error:
        raise DTypeError(f"{where}: {error}") from None


def _opened(file: File, suffix: str = "") -> AbstractContextManager[IO[bytes]]:
    """What to write to: the open file itself, or a new one of this path, with `suffix` if it has none."""
    if hasattr(file, "write") and not isinstance(file, (type, ModuleType)):
        return nullcontext(file)  # type: ignore[arg-type]
    path = _path("a file", file)
    return replacing(path if path.endswith(suffix) else path + suffix)


def _path(name: str, file: Any) -> str:
    try:
        return os.fsdecode(file)
    except Exception:  # also of a class that fails to say which one
        raise ArgumentTypeError(
            at_user_line(f"smelt: {name} must be a path or an open binary file, is {shown(file)}")
        ) from None


@explained
def save(file: File, arr: ArrayLike) -> None:
    """Write an array in NumPy's .npy format.

    Args:
        file: a path, to which ``.npy`` is added where it is missing, or an open binary file.
        arr: what becomes an array.

    >>> import smelt, io
    >>> file = io.BytesIO()
    >>> smelt.save(file, smelt.array([1, 2]))
    >>> _ = file.seek(0)
    >>> smelt.load(file)
    array([1, 2], dtype=int32)
    """
    stored = _stored(_no_dict("save", arr))
    with _opened(file, ".npy") as out:
        _write_npy(out, stored)


@explained
def savez(file: File, *args: ArrayLike, **kwargs: ArrayLike) -> None:
    """Write several arrays in NumPy's .npz format: keywords under their names, others as arr_0, arr_1, …

    Args:
        file: a path, to which ``.npz`` is added where it is missing, or an open binary file.
        args, kwargs: arrays.

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


@explained
def savez_compressed(file: File, *args: ArrayLike, **kwargs: ArrayLike) -> None:
    """`savez`, with the arrays compressed.

    Args:
        file, args, kwargs: as of `savez`.

    >>> import smelt, io
    >>> smelt.savez_compressed(io.BytesIO(), smelt.array([1, 2]))
    """
    _write_npz("savez_compressed", file, args, kwargs, compressed=True)


def _no_dict(name: str, x: ArrayLike) -> ArrayLike:
    if not isinstance(x, Mapping):
        return x
    flat = "dict(smelt.utils.tree_flatten(x))"
    instead = f"save_safetensors(file, {flat})" if name == "save_safetensors" else f"savez(file, **{flat})"
    message = f"needs arrays, got {shown(x)}; smelt.{instead} writes the arrays in a dict x"
    raise DTypeError(at_user_line(f"smelt.{name}: {message}"))


def _write_npz(name: str, file: File, args: Any, kwargs: Any, compressed: bool = False) -> None:
    import zipfile  # here and below: the import of smelt loads only what most programs use

    arrays = dict(kwargs)
    for i, x in enumerate(args):
        if f"arr_{i}" in arrays:
            raise AttributeValueError(at_user_line(f"smelt.{name}: arr_{i} names a positional and a keyword array"))
        arrays[f"arr_{i}"] = x
    stored = {k: _stored(_no_dict(name, x)) for k, x in arrays.items()}
    compression = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    # Not np.savez: its own parameters (file, allow_pickle) would be lost as names.
    with _opened(file, ".npz") as out, zipfile.ZipFile(out, "w", compression, allowZip64=True) as archive:
        for k, host in stored.items():
            with archive.open(f"{k}.npy", "w", force_zip64=True) as member:
                _write_npy(member, host)


def _write_npy(out: IO[bytes], host: np.ndarray) -> None:
    np.lib.format.write_array_header_1_0(out, np.lib.format.header_data_from_array_1_0(host))
    out.write(octets_of(host))  # NumPy's own needs a file that knows its position


@explained
def save_safetensors(file: File, arrays: Mapping[str, ArrayLike], metadata: Mapping[str, str] | None = None) -> None:
    """Write named arrays in the .safetensors format.

    Args:
        file: a path, to which ``.safetensors`` is added where it is missing, or an open binary file.
        metadata: texts to store beside them.

    Raises:
        TreeError: no dict of names and arrays, or metadata that are no texts. DTypeError: elements that the format
        has not.

    >>> import smelt, io
    >>> file = io.BytesIO()
    >>> smelt.save_safetensors(file, {"w": smelt.array([1, 2])})
    >>> _ = file.seek(0)
    >>> smelt.load(file)
    {'w': array([1, 2], dtype=int32)}
    """
    if not isinstance(arrays, Mapping) or not all(isinstance(k, str) and k != "__metadata__" for k in arrays):
        raise TreeError(
            at_user_line(f"smelt.save_safetensors: needs a dict of arrays by name, got {shown(arrays)}")
        )
    if metadata is not None and (
        not isinstance(metadata, Mapping) or not all(isinstance(t, str) for pair in metadata.items() for t in pair)
    ):
        message = f"metadata must be a dict of texts, is {shown(metadata)}"
        raise TreeError(at_user_line(f"smelt.save_safetensors: {message}"))
    found = {name: as_array(_no_dict("save_safetensors", x)) for name, x in arrays.items()}
    for name, x in found.items():
        if x.dtype not in safetensors.NAMES.values():
            message = f"the format has no elements of {shown(name)}, {x.aval}"
            raise DTypeError(at_user_line(f"smelt.save_safetensors: {message}"))
    hosts = {name: (x._host(), x.dtype) for name, x in found.items()}
    with _opened(file, ".safetensors") as out:
        safetensors.write_safetensors(out, hosts, metadata)


@explained
def save_gguf(
    file: File,
    arrays: Mapping[str, ArrayLike],
    metadata: Mapping[str, ArrayLike | str | list[str]] | None = None,
    *,
    types: Mapping[str, str] | None = None,
) -> None:
    """Write named arrays and metadata in the .gguf format.

    Args:
        file: a path, to which ``.gguf`` is added if it has no such end, or an open binary file.
        arrays: float16, bfloat16, float32, float64, or signed integers, of up to eight axes.
        metadata: texts, lists of texts, and numbers: scalars or arrays of one axis.
        types: how packed weights are written, by their name ``x.weight``: as "Q4_0", "Q4_1" or "Q8_0" with ``x.scales``
            and ``x.biases`` in float16, for groups of 32 as `quantize` makes them with ``mode="affine"``, or as "MXFP4"
            or "NVFP4" with ``x.scales``. "Q4_0" has biases that are -8 times the scales, "Q8_0" -128 times; those of
            `load` are.

    Raises:
        TreeError: no dict of arrays by name, or metadata of another kind. DTypeError: a dtype that the format does not
        have. ShapeError: too many axes, or parts of packed weights that do not belong together. AttributeValueError: a
        type that there is not, or one that cannot hold these biases.

    >>> import smelt, io
    >>> file = io.BytesIO()
    >>> smelt.save_gguf(file, {"w": smelt.array([1, 2])}, {"general.name": "small"})
    >>> _ = file.seek(0)
    >>> smelt.load(file, return_metadata=True)
    ({'w': array([1, 2], dtype=int32)}, {'general.name': 'small'})
    """
    gguf_files.save(_opened, file, arrays, {} if metadata is None else metadata, {} if types is None else types)


@explained
@flags_checked
def load(
    file: File,
    /,
    format: str | None = None,
    return_metadata: bool = False,
    *,
    stream: StreamOrDevice = None,
) -> Any:
    """Read what `save`, `savez`, `save_safetensors` or `save_gguf` wrote.

    Elements of .safetensors files, and those of .gguf files that are not quantized, are mapped into memory: what is not
    used is not read. Those that the header of a .safetensors file leaves at odd places, as MLX's mostly do, are copied
    when they are used. Such a file may be deleted or replaced, but not be made shorter, while arrays of it are in use.

    Args:
        file: a path, or an open binary file that can seek.
        format: ``"npy"``, ``"npz"``, ``"safetensors"`` or ``"gguf"``; by default what the file looks like.
        return_metadata: return ``(arrays, metadata)``; for .safetensors and .gguf.

    Returns:
        An array (.npy) or a dict of arrays by name. Floats of 8 bits in .safetensors are uint8 for `from_fp8` (e4m3),
        or float16 (e5m2). Quantized tensors of .gguf, "x.weight", become what `quantized_matmul` takes with
        ``group_size=32``: "x.weight", "x.scales" and "x.biases" for Q4_0 and Q4_1 (4 bits) and Q8_0 (8 bits); without
        biases for MXFP4 (``mode="mxfp4"``) and, in groups of 16, NVFP4 (``mode="nvfp4"``); other kinds become float16.
        Metadata of .gguf are texts, lists of texts, and arrays.

    Raises:
        FileFormatError: a file that is damaged or of another format. DTypeError: elements that smelt has no
        dtype for. OutOfMemoryError: the file holds more than there is memory for. OSError: the file cannot be read.
        AttributeValueError: `return_metadata` of a format that has none.

    >>> import smelt, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     smelt.save(f"{folder}/x", smelt.array([1.5]))
    ...     smelt.load(f"{folder}/x.npy")
    array([1.5], dtype=float32)
    """
    check_stream(stream)
    if format is not None:
        word("load", "format", format, "npy", "npz", "safetensors", "gguf")
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
                raise FileFormatError(
                    at_user_line(
                        f"{where} does not begin as a .npy, .npz, .safetensors or .gguf file does; text is read by "
                        "numpy.loadtxt"
                    )
                )
            if return_metadata and found not in ("safetensors", "gguf"):
                raise AttributeValueError(at_user_line(f"{where}: only .safetensors and .gguf have metadata"))
            if found == "npy":
                return _restored(npy.read_npy(source), where)
            if found == "npz":
                return {k: _restored(x, f"{where}, {k}") for k, x in npy.read_npz(source).items()}
            metadata: Any
            read: Mapping[str, tuple[Elements, DType]]
            if found == "safetensors":
                read, metadata = safetensors.read_safetensors(source)
            else:
                read, metadata = gguf_files.read(source)
            arrays = {name: wrap((leaf(_buffer(*found)), 0)) for name, found in read.items()}
            return (arrays, metadata) if return_metadata else arrays
    except (FileFormatError, OutOfMemoryError, DTypeError) as error:
        if str(error).startswith("smelt.load"):
            raise
        why = textwrap.shorten(str(error), 400)  # zipfile quotes as much of a file as that says
        raise type(error)(at_user_line(f"{where} cannot be read as .{found}: {why}")) from None
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
    if start[:6] == npy.MAGIC:
        return "npy"
    if start[:2] == b"PK":
        return "npz"
    if start[:4] == b"GGUF":
        return "gguf"
    if name.endswith(".safetensors") or start[8:] == b"{":
        return "safetensors"
    return None

"""The .safetensors format: a header in JSON, then the elements."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import IO, Any

import numpy as np

from smelt.ir import dtypes
from smelt.ir.dtypes import DType
from smelt.ir.errors import DTypeError, FileFormatError, shown

from .reading import MAX_AXES, Data, Elements, left_in, take
from .writing import octets_of

#: Longer headers are refused, by those who define the format as well.
MAX_HEADER = 100_000_000

NAMES = {
    "BOOL": dtypes.bool_, "U8": dtypes.uint8, "U16": dtypes.uint16, "U32": dtypes.uint32, "U64": dtypes.uint64,
    "I8": dtypes.int8, "I16": dtypes.int16, "I32": dtypes.int32, "I64": dtypes.int64, "F16": dtypes.float16,
    "BF16": dtypes.bfloat16, "F32": dtypes.float32, "F64": dtypes.float64, "C64": dtypes.complex64,
}  # fmt: skip
#: What is read besides, and as what. The first two are bits, for `smelt.from_fp8` and as scales of "mxfp8" matrices;
#: the last is the upper half of a float16.
_EIGHT_BITS = {"F8_E4M3": dtypes.uint8, "F8_E8M0": dtypes.uint8, "F8_E5M2": dtypes.float16}


def read_safetensors(source: IO[bytes]) -> tuple[dict[str, tuple[Elements, DType]], dict[str, str]]:
    """({name: (elements, dtype)}, metadata) of a .safetensors file. What cannot stay where it is in the file is
    `Later`.

    Raises:
        FileFormatError: it is none; also for arrays that overlap or leave gaps, which the format rules out. DTypeError:
        elements that have no dtype here.
    """
    length = int.from_bytes(take(source, 8, "the length of its header"), "little")
    if length > min(MAX_HEADER, left_in(source)):
        raise FileFormatError(f"its header would be {length} bytes long")
    header = parse_json(take(source, length, "its header"))
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise FileFormatError("its metadata must be a dict of texts")
    data = Data(source)
    entries = sorted(((*_entry(name, entry), name) for name, entry in header.items()), key=lambda e: e[:2])
    end = 0
    for start, stop, *_, name in entries:
        if start != end:
            raise FileFormatError(f"{shown(name)} lies at byte {start}, what is before it ends at {end}")
        end = stop
    if end != data.size:
        raise FileFormatError(f"its arrays have {end} bytes, the file {data.size}")
    arrays: dict[str, Any] = dict.fromkeys(header)  # in their order
    for start, _, kind, shape, name in entries:
        dtype = _dtype(kind)
        stored, restore = (np.dtype(np.uint8), _upper_halves) if kind == "F8_E5M2" else (dtype.numpy, None)
        arrays[name] = (data.later(start, stored, shape, shown(name), restore), dtype)
    data.close()
    return arrays, metadata


def _upper_halves(octets: np.ndarray) -> np.ndarray:
    return (octets.astype(np.uint16) << 8).view(np.float16)


def _dtype(kind: str) -> DType:
    return _EIGHT_BITS.get(kind) or NAMES[kind]


def _integer(text: str) -> int:
    if len(text) > 20:
        raise FileFormatError(f"the number {text[:20]}... is too large")
    return int(text)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise FileFormatError("a name stands twice in one object")
    return found


def parse_json(data: bytes) -> dict[str, Any]:
    """The object of a header. Raises FileFormatError."""
    import json  # here, as zipfile: the import of smelt loads only what most programs use

    try:
        header = json.loads(data.decode("utf-8"), parse_int=_integer, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"its header is no JSON: {error}") from None
    if not isinstance(header, dict):
        raise FileFormatError("its header is no JSON object")
    return header


def _entry(name: str, entry: Any) -> tuple[int, int, str, tuple[int, ...]]:
    """(start, end, name of the dtype, shape) of an array."""
    what = shown(name)
    if not isinstance(entry, dict) or not {"dtype", "shape", "data_offsets"} <= set(entry):
        raise FileFormatError(f"{what} must have a dtype, a shape and data_offsets")
    kind, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(kind, str) or (kind not in NAMES and kind not in _EIGHT_BITS):
        raise DTypeError(f"{what}: smelt has no dtype {shown(kind)}")
    for what_, values in (("shape", shape), ("data_offsets", offsets)):
        if not isinstance(values, list) or not all(type(n) is int and n >= 0 for n in values):
            raise FileFormatError(f"{what}: its {what_} must be integers, are {shown(values)}")
    if len(shape) > MAX_AXES:
        raise FileFormatError(f"{what} has {len(shape)} axes; there are at most {MAX_AXES}")
    size = 1 if kind in _EIGHT_BITS else NAMES[kind].size
    if len(offsets) != 2 or offsets[1] - offsets[0] != math.prod(shape) * size:
        raise FileFormatError(f"{what} lies at bytes {shown(offsets)}, its shape is {shown(shape)}")
    return offsets[0], offsets[1], kind, tuple(shape)


def write_safetensors(
    out: IO[bytes], arrays: Mapping[str, tuple[np.ndarray, DType]], metadata: Mapping[str, str] | None = None
) -> None:
    """Write arrays, of dtypes that `NAMES` has."""
    import json

    names = {d: name for name, d in NAMES.items()}
    header: dict[str, Any] = {} if metadata is None else {"__metadata__": metadata}
    end = 0
    for name, (host, dtype) in arrays.items():
        start, end = end, end + host.nbytes
        header[name] = {"dtype": names[dtype], "shape": list(host.shape), "data_offsets": [start, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    out.write(len(text).to_bytes(8, "little") + text)
    for host, _ in arrays.values():
        out.write(octets_of(host))

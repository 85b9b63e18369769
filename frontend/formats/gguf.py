"""The .gguf format: metadata, a table of tensors, their elements; https://github.com/ggml-org/ggml docs/gguf.md."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from typing import IO, Any, NamedTuple

import numpy as np

from smelt.ir import dtypes
from smelt.ir.dtypes import DType
from smelt.ir.errors import DTypeError, FileFormatError, shown

from .gguf_blocks import OF_BYTES, PACKED, decoded
from .reading import Data, left_in, take
from .writing import octets_of

MAGIC = b"GGUF"
VERSION = 3
#: Of tensors, as those who read and write the format have it.
MAX_DIMENSIONS = 8
_ALIGNMENT, _ALIGNMENT_KEY = 32, "general.alignment"


class Kind(NamedTuple):
    """How elements of a tensor lie: in blocks of so many elements and bytes; `dtype` is None for quantized ones."""

    number: int
    name: str
    each: int
    nbytes: int
    dtype: DType | None = None


KINDS = {kind.number: kind for kind in (
    Kind(0, "F32", 1, 4, dtypes.float32), Kind(1, "F16", 1, 2, dtypes.float16), Kind(30, "BF16", 1, 2, dtypes.bfloat16),
    Kind(28, "F64", 1, 8, dtypes.float64), Kind(24, "I8", 1, 1, dtypes.int8), Kind(25, "I16", 1, 2, dtypes.int16),
    Kind(26, "I32", 1, 4, dtypes.int32), Kind(27, "I64", 1, 8, dtypes.int64),
    Kind(2, "Q4_0", 32, 18), Kind(3, "Q4_1", 32, 20), Kind(6, "Q5_0", 32, 22), Kind(7, "Q5_1", 32, 24),
    Kind(8, "Q8_0", 32, 34), Kind(9, "Q8_1", 32, 36), Kind(10, "Q2_K", 256, 84), Kind(11, "Q3_K", 256, 110),
    Kind(12, "Q4_K", 256, 144), Kind(13, "Q5_K", 256, 176), Kind(14, "Q6_K", 256, 210), Kind(15, "Q8_K", 256, 292),
    Kind(20, "IQ4_NL", 32, 18), Kind(23, "IQ4_XS", 256, 136), Kind(34, "TQ1_0", 256, 54), Kind(35, "TQ2_0", 256, 66),
    Kind(39, "MXFP4", 32, 17), Kind(40, "NVFP4", 64, 36),
    Kind(16, "IQ2_XXS", 256, 66), Kind(17, "IQ2_XS", 256, 74), Kind(22, "IQ2_S", 256, 82), Kind(18, "IQ3_XXS", 256, 98),
    Kind(21, "IQ3_S", 256, 110), Kind(19, "IQ1_S", 256, 50), Kind(29, "IQ1_M", 256, 56),
)}  # fmt: skip
BY_DTYPE = {kind.dtype: kind for kind in KINDS.values() if kind.dtype is not None}
BY_NAME = {kind.name: kind for kind in KINDS.values()}

_STRING, _ARRAY, _BOOL = 8, 9, 7
#: Numbers in metadata.
_NUMBERS: dict[int, tuple[DType, str]] = {
    0: (dtypes.uint8, "<u1"), 1: (dtypes.int8, "<i1"), 2: (dtypes.uint16, "<u2"), 3: (dtypes.int16, "<i2"),
    4: (dtypes.uint32, "<u4"), 5: (dtypes.int32, "<i4"), 6: (dtypes.float32, "<f4"), _BOOL: (dtypes.bool_, "<u1"),
    10: (dtypes.uint64, "<u8"), 11: (dtypes.int64, "<i8"), 12: (dtypes.float64, "<f8"),
}  # fmt: skip
_NUMBER_OF = {dtype: number for number, (dtype, _) in _NUMBERS.items()}

#: Of metadata: texts, lists of texts, numbers as arrays of no or one axis.
Value = str | list[str] | np.ndarray


class _Header:
    """What stands before the elements, read piece by piece."""

    def __init__(self, source: IO[bytes]):
        self._source = source
        self.size = self.left = left_in(source)

    def octets(self, count: int, what: str) -> bytes:
        if count > self.left:
            raise FileFormatError(f"{what} would have {count} bytes, the file has {self.left} more")
        self.left -= count
        return take(self._source, count, what)

    def number(self, what: str, nbytes: int = 4) -> int:
        return int.from_bytes(self.octets(nbytes, what), "little")

    def count(self, what: str, least: int) -> int:
        """How many of what takes at least so many bytes each."""
        found = self.number(what, 8)
        if found * least > self.left:
            raise FileFormatError(f"it would have {found} {what}")
        return found

    def text(self, what: str) -> str:
        # Vocabularies hold parts of characters; they are texts that can be written again.
        return self.octets(self.number(what, 8), what).decode("utf-8", "surrogateescape")

    def name(self, what: str, others: Mapping[str, Any]) -> str:
        found = self.text(what)
        if found in others:
            raise FileFormatError(f"the name {shown(found)} stands twice")
        return found

    def value(self, what: str) -> Value:
        kind = self.number(what)
        if kind == _STRING:
            return self.text(what)
        if kind != _ARRAY:
            return self._numbers(kind, 1, what).reshape(())
        kind = self.number(what)
        if kind == _ARRAY:
            raise FileFormatError(f"{what} is an array of arrays, which smelt does not read")
        if kind == _STRING:
            return [self.text(what) for _ in range(self.count(f"texts in {what}", 8))]
        return self._numbers(kind, self.count(f"numbers in {what}", 1), what)

    def _numbers(self, kind: int, count: int, what: str) -> np.ndarray:
        if kind not in _NUMBERS:
            raise FileFormatError(f"{what} is of the kind {kind}, which there is not")
        dtype, stored = _NUMBERS[kind]
        found = np.frombuffer(self.octets(count * dtype.size, what), stored)
        return found != 0 if kind == _BOOL else found.astype(dtype.numpy)


def read_gguf(source: IO[bytes]) -> tuple[dict[str, tuple[np.ndarray, DType]], dict[str, Value]]:
    """({name: (array, dtype)}, metadata) of a .gguf file.

    Quantized tensors of kinds that `smelt.quantize` has are three arrays: `x.weight`, `x.scales`, `x.biases` (MXFP4 and
    NVFP4 have no biases); others are float16.

    Raises:
        FileFormatError: it is none; also for tensors that overlap. DTypeError: kinds of elements that smelt does not
        read. MissingPackageError: kinds that the package gguf reads, which is not installed.
    """
    header = _Header(source)
    start = header.octets(4, "its header")
    if start != MAGIC:
        raise FileFormatError("it does not begin as a .gguf file")
    version = header.number("its version")
    if version not in (2, VERSION):
        big = version and version & 0xFFFF == 0
        raise FileFormatError("its numbers are big-endian" if big else f"it has version {version}; known are 2 and 3")
    tensors, pairs = header.count("tensors", 24), header.count("metadata", 13)
    metadata: dict[str, Value] = {}
    for _ in range(pairs):
        name = header.name("a name in its metadata", metadata)
        metadata[name] = header.value(shown(name))
    names: dict[str, tuple[Kind, tuple[int, ...], int]] = {}
    for _ in range(tensors):
        name = header.name("a name of a tensor", names)
        names[name] = _tensor(header, name)
    alignment = _alignment(metadata)
    padding = -(header.size - header.left) % alignment
    if names or header.left >= padding:
        header.octets(padding if names else min(padding, header.left), "what is before its tensors")
    data = Data(source)
    _check_places(names, alignment, data.size)
    arrays: dict[str, tuple[np.ndarray, DType]] = {}
    for name, (kind, shape, at) in names.items():
        for part, array, dtype in _parts(data, name, kind, shape, at):
            if part in arrays:
                raise FileFormatError(f"the name {shown(part)} stands twice")
            arrays[part] = (array, dtype)
    data.close()
    return arrays, metadata


def _tensor(header: _Header, name: str) -> tuple[Kind, tuple[int, ...], int]:
    """(kind, shape, offset) from the table. The first of the extents there is that of the last axis."""
    what = shown(name)
    count = header.number(what)
    if count > MAX_DIMENSIONS:
        raise FileFormatError(f"{what} has {count} axes; there are at most {MAX_DIMENSIONS}")
    shape = tuple(header.number(what, 8) for _ in range(count))[::-1]
    number, at = header.number(what), header.number(what, 8)
    kind = KINDS.get(number)
    if kind is None:
        raise DTypeError(f"{what} is of the kind {number}, which smelt does not read")
    if kind.each > 1 and (not shape or shape[-1] % kind.each):
        raise FileFormatError(f"{what}: rows of {kind.name} are made of blocks of {kind.each}, its shape is {shape}")
    return kind, shape, at


def _alignment(metadata: Mapping[str, Any]) -> int:
    found = metadata.get(_ALIGNMENT_KEY, np.asarray(_ALIGNMENT))
    if not isinstance(found, np.ndarray) or found.shape or found.dtype.kind not in "iu":
        raise FileFormatError(f"{_ALIGNMENT_KEY} is {shown(found)}, must be an integer")
    number = int(found)
    if not 0 < number <= 1 << 20 or number & (number - 1):
        raise FileFormatError(f"{_ALIGNMENT_KEY} is {number}, must be a power of two")
    return number


def _check_places(names: Mapping[str, tuple[Kind, tuple[int, ...], int]], alignment: int, size: int) -> None:
    """Each tensor lies in the file, and in no other: together they take no more memory than the file."""
    end, before = 0, ""
    for name, (kind, shape, at) in sorted(names.items(), key=lambda item: item[1][2]):
        nbytes = math.prod(shape) // kind.each * kind.nbytes
        if at % alignment:
            raise FileFormatError(f"{shown(name)} lies at byte {at}, no multiple of {alignment}")
        if at + nbytes > size:
            raise FileFormatError(f"{shown(name)} ends at byte {at + nbytes} of {size}")
        if nbytes and at < end:
            raise FileFormatError(f"{shown(name)} lies at byte {at}, {shown(before)} ends at {end}")
        if nbytes:
            end, before = at + nbytes, name


def _parts(
    data: Data, name: str, kind: Kind, shape: tuple[int, ...], at: int
) -> list[tuple[str, np.ndarray, DType]]:
    """The arrays that a tensor becomes."""
    if kind.dtype is not None:
        return [(name, data.elements(at, kind.dtype.numpy, shape, shown(name)), kind.dtype)]
    octets = np.dtype(np.uint8)
    blocks = data.elements(at, octets, (*shape[:-1], shape[-1] // kind.each, kind.nbytes), shown(name))
    if kind.name not in PACKED:
        return [(name, decoded(kind.name, blocks, kind.each), dtypes.float16)]
    with np.errstate(all="ignore"):  # scales may be anything
        words, scales, biases = PACKED[kind.name](blocks)
    prefix = name.removesuffix(".weight")
    found = [(name, words, dtypes.uint32)]
    found.append((f"{prefix}.scales", scales, dtypes.uint8 if kind.name in OF_BYTES else dtypes.float16))
    if biases is not None:
        found.append((f"{prefix}.biases", biases, dtypes.float16))
    return found


class Tensor(NamedTuple):
    """What is written: elements, or blocks, and the shape that they stand for."""

    name: str
    kind: Kind
    shape: tuple[int, ...]
    elements: np.ndarray


def _text(text: str) -> bytes:
    found = text.encode("utf-8", "surrogateescape")
    return struct.pack("<Q", len(found)) + found


def _value(value: Value) -> bytes:
    if isinstance(value, str):
        return struct.pack("<I", _STRING) + _text(value)
    if isinstance(value, list):
        return struct.pack("<IIQ", _ARRAY, _STRING, len(value)) + b"".join(map(_text, value))
    number = _NUMBER_OF[dtypes.of(value.dtype)]
    head = struct.pack("<IIQ", _ARRAY, number, len(value)) if value.ndim else struct.pack("<I", number)
    return head + value.astype(_NUMBERS[number][1]).tobytes()


def is_number(dtype: DType) -> bool:
    """Whether metadata may hold such numbers."""
    return dtype in _NUMBER_OF


def write_gguf(out: IO[bytes], tensors: Sequence[Tensor], metadata: Mapping[str, Value]) -> None:
    """Write a .gguf file. Raises FileFormatError for an alignment that is none."""
    alignment = _alignment(metadata)
    head = [MAGIC, struct.pack("<IQQ", VERSION, len(tensors), len(metadata))]
    head += [_text(name) + _value(value) for name, value in metadata.items()]
    at, places = 0, []
    for tensor in tensors:
        places.append(at)
        shape = struct.pack(f"<I{len(tensor.shape)}Q", len(tensor.shape), *tensor.shape[::-1])
        head.append(_text(tensor.name) + shape + struct.pack("<IQ", tensor.kind.number, at))
        at = -(-(at + tensor.elements.nbytes) // alignment) * alignment
    written = b"".join(head)
    out.write(written + bytes(-len(written) % alignment))
    end = 0
    for tensor, at in zip(tensors, places):
        out.write(bytes(at - end))
        out.write(octets_of(tensor.elements))
        end = at + tensor.elements.nbytes
    out.write(bytes(-end % alignment))

"""MLIR bytecode, as far as it takes to leave out attributes of a dialect that the bindings do not have.

MLIR reads ops of dialects that it does not know, and attributes that are written as text, but no attribute in a
dialect's own encoding. JAX writes such ones of the dialect sdy, which say how to divide a call among devices, on each
call of LAPACK. They mean nothing here. In place of each a text of the same length is written, so nothing else moves.

The format is that of mlir.llvm.org/docs/BytecodeFormat.
"""

from __future__ import annotations

from collections.abc import Iterator

_STRINGS, _DIALECTS, _ATTRIBUTES, _OFFSETS = 0, 1, 2, 3
_HEADER = 4


class _Reader:
    """Reads numbers and texts of a part of some bytes. Raises IndexError or ValueError where there is no more."""

    def __init__(self, data: bytes | bytearray, at: int, end: int):
        self.data, self.at, self.end = data, at, end

    def byte(self) -> int:
        if self.at >= self.end:
            raise IndexError(self.at)
        self.at += 1
        return self.data[self.at - 1]

    def number(self) -> int:
        """Zeros at the low end of the first byte say how many bytes follow."""
        first = self.byte()
        if first == 0:
            more, shift = 8, 0
        else:
            more = (first & -first).bit_length() - 1
            shift = more + 1
        value = first
        for i in range(more):
            value |= self.byte() << (8 * (i + 1))
        return value >> (shift if first else 8)

    def section(self) -> tuple[int, int, int]:
        """The kind of a section, and where its bytes begin and end."""
        kind, length = self.byte(), self.number()
        if kind & 0x80:
            alignment = self.number()
            if alignment < 1 or alignment & (alignment - 1):
                raise ValueError(alignment)
            self.at += -self.at % alignment
        start = self.at
        self.at += length
        if self.at > self.end:
            raise IndexError(self.at)
        return kind & 0x7F, start, self.at


def without_attributes(data: bytes, dialect: str) -> bytes:
    """Bytecode whose attributes of a dialect, where they are in its own encoding, are texts; bytes that are no bytecode
    as they are.

    >>> without_attributes(b"no bytecode", "sdy")
    b'no bytecode'
    """
    if dialect.encode() not in data:
        return data
    changed = bytearray(data)
    try:
        for flag, start, size in _found(data, dialect):
            if size > 2:
                changed[flag] &= ~_flag_bit(data[flag])
                changed[start : start + size] = b'"' + b" " * (size - 3) + b'"\0'
    except (IndexError, ValueError):  # damaged: the reader says so
        return data
    return bytes(changed)


def _flag_bit(first: int) -> int:
    """Where the lowest bit of a number stands in its first byte."""
    return (first & -first) << 1


def _found(data: bytes, dialect: str) -> Iterator[tuple[int, int, int]]:
    """Of each attribute of a dialect in its own encoding: where a number says so; its beginning and length."""
    whole = _Reader(data, _HEADER, len(data))
    whole.number()
    whole.at = data.index(b"\0", whole.at) + 1  # who wrote it
    sections: dict[int, tuple[int, int]] = {}
    while whole.at < whole.end:
        kind, start, end = whole.section()
        sections[kind] = (start, end)
    if not {_STRINGS, _DIALECTS, _ATTRIBUTES, _OFFSETS} <= set(sections):
        return
    texts = _texts(data, *sections[_STRINGS])
    names = _dialects(data, *sections[_DIALECTS], texts)
    offsets = _Reader(data, *sections[_OFFSETS])
    left = offsets.number()
    offsets.number()  # of types, which follow
    at, end = sections[_ATTRIBUTES]
    while left > 0:
        name, count = names[offsets.number()], offsets.number()
        left -= count
        for _ in range(count):
            flag = offsets.at
            size, own = divmod(offsets.number(), 2)
            if size > end - at:
                raise IndexError(size)
            if own and name == dialect and data[flag] and _flag_bit(data[flag]) < 256:
                yield flag, at, size
            at += size


def _texts(data: bytes, start: int, end: int) -> list[str]:
    reader = _Reader(data, start, end)
    sizes = [reader.number() for _ in range(min(reader.number(), end - start))]
    found = []
    for size in sizes:  # the last text first
        end -= size
        found.append(data[end : end + size - 1].decode(errors="replace"))
    return found[::-1]


def _dialects(data: bytes, start: int, end: int, texts: list[str]) -> list[str]:
    reader = _Reader(data, start, end)
    names = []
    for _ in range(min(reader.number(), end - start)):
        name, versioned = divmod(reader.number(), 2)
        if versioned:
            reader.section()
        names.append(texts[name])
    return names

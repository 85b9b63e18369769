"""Machine code from an object file: relocatable ELF for x86-64 and aarch64, as LLVM writes it.

`load` puts the sections of an object into memory of their own, resolves its symbols, and applies its relocations.
Memory is written first and made executable afterwards, never both at once. Whatever is not understood — another
format or machine, an unknown relocation, symbol or section, numbers that do not fit, a system that forbids executable
memory — is an `ObjectError`; the caller then has the program compiled by MLIR's engine.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import mmap
import platform
import struct
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from smelt.ir.errors import InternalError

from .relocations import ARM64, X86_64, Patch, RelocationError

#: Header of the file, of a section, a symbol, a relocation with addend: the 64-bit forms of the ELF specification.
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELA = struct.Struct("<QQq")
_PROGBITS, _SYMTAB, _RELA_TYPE, _NOBITS = 1, 2, 4, 8
_WRITE, _ALLOC, _EXECUTE = 1, 2, 4
_UNDEFINED, _ABSOLUTE, _RESERVED = 0, 0xFFF1, 0xFF00
_RELOCATABLE = 1
#: What unwinders and linkers read; programs do not.
_UNUSED = (".eh_frame", ".note", ".comment", ".llvm", ".debug")
#: What several objects begin with, which no object does, and how many there are at most.
_JOINED, MOST_PARTS = b"\0parts\0\0", 64
#: An object is no larger.
MOST_BYTES = 1 << 30

_MACHINES = {
    "x86_64": (62, X86_64), "amd64": (62, X86_64), "aarch64": (183, ARM64), "arm64": (183, ARM64),
}  # fmt: skip


class ObjectError(InternalError, ValueError):
    """An object that cannot be loaded here."""


def supported() -> bool:
    """Whether objects of this machine can be loaded at all."""
    return (
        sys.platform.startswith("linux")
        and sys.byteorder == "little"
        and struct.calcsize("P") == 8
        and platform.machine().lower() in _MACHINES
    )


class _Part(NamedTuple):
    """A section of an object."""

    name: str
    kind: int
    flags: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int


class Code:
    """Machine code in memory. It stays there as long as this object lives.

    Args:
        others: what it calls.

    Attributes:
        addresses: of its functions.
        nbytes: of memory.
    """

    def __init__(self, memory: mmap.mmap, addresses: dict[str, int], others: Sequence[Code] = ()):
        self._memory, self.addresses, self._others = memory, addresses, others
        self.nbytes: int = len(memory) + sum(code.nbytes for code in others)

    def raw_lookup(self, name: str) -> int:
        """The address of a function as MLIR's engine gives it: its form that takes one table of pointers.

        Raises:
            ObjectError: there is none.
        """
        found = self.addresses.get(f"_mlir_{name}")
        if found is None:
            raise ObjectError(f"the object has no function {name}")
        return found


def join(objects: Sequence[bytes]) -> bytes:
    """Several objects as one, the first of which calls functions of the others."""
    sizes = [len(data) for data in objects]
    return b"".join([_JOINED, struct.pack(f"<{len(sizes) + 1}Q", len(sizes), *sizes), *objects])


def _separate(data: bytes) -> list[bytes]:
    """The objects that `data` consists of."""
    if not data.startswith(_JOINED):
        return [data]
    at = len(_JOINED) + 8
    (count,) = struct.unpack_from("<Q", data, at - 8)
    if not 0 < count <= MOST_PARTS:
        raise ObjectError(f"{count} objects in one")
    sizes = struct.unpack_from(f"<{count}Q", data, at)
    ends = list(itertools.accumulate(sizes, initial=at + 8 * count))
    if ends[-1] != len(data):
        raise ObjectError(f"objects of {ends[-1]} bytes in {len(data)}")
    return [data[start:end] for start, end in itertools.pairwise(ends)]


def load(data: bytes, find: Callable[[str], int]) -> Code:
    """The machine code of an object, or of several that were joined.

    Args:
        find: the address of what it calls or reads, by name; 0 for what is not known. Functions of the C library
            are found besides.

    Raises:
        ObjectError: it is damaged, for another machine, or needs what is not here.
    """
    if not supported():
        raise ObjectError(f"objects of {platform.machine()} on {sys.platform} are not loaded")
    try:
        first, *others = _separate(data)
        codes = [_Linker(other, find).link() for other in others]
        near = {name: address for code in codes for name, address in code.addresses.items()}
        return _Linker(first, lambda name: near.get(name) or find(name)).link(codes)
    except (struct.error, IndexError, UnicodeDecodeError, ValueError, OverflowError) as error:
        if isinstance(error, ObjectError):
            raise
        raise ObjectError(f"the object is damaged: {error}") from None
    except (OSError, MemoryError) as error:
        raise ObjectError(f"there is no memory for the object: {error}") from None


class _Linker:
    def __init__(self, data: bytes, find: Callable[[str], int]):
        if len(data) > MOST_BYTES:
            raise ObjectError(f"an object of {len(data)} bytes")
        self.data, self.find = data, find
        machine, self.patches = _MACHINES[platform.machine().lower()]
        header = _HEADER.unpack_from(data)
        identity, kind, self.machine = header[0], header[1], header[2]
        if identity[:7] != b"\x7fELF\x02\x01\x01" or kind != _RELOCATABLE or self.machine != machine:
            raise ObjectError("this is no relocatable object of this machine")
        first, count, names = header[6], header[12], header[13]
        raw = [_SECTION.unpack_from(data, first + i * _SECTION.size) for i in range(count)]
        texts = self._bytes(raw[names][4], raw[names][5])
        self.parts = [_Part(_text(texts, s[0]), s[1], s[2], s[4], s[5], s[6], s[7], s[8]) for s in raw]

    def _bytes(self, offset: int, size: int) -> bytes:
        if offset + size > len(self.data):
            raise ObjectError("a section ends behind the object")
        return self.data[offset : offset + size]

    def link(self, others: Sequence[Code] = ()) -> Code:
        """The code. `others`: what it calls."""
        kept = {i: part for i, part in enumerate(self.parts) if _is_kept(part)}
        offsets, ends = self._places(kept)
        jumps = self._count_jumps(kept)
        page = mmap.PAGESIZE
        # Code first, with room for jumps to what is too far; then what is read only, then what is written.
        jumps_at = -(-ends[0] // 16) * 16
        starts = [0, 0, 0]
        starts[1] = -(-(jumps_at + 16 * jumps) // page) * page
        starts[2] = starts[1] + -(-ends[1] // page) * page
        size = max(page, starts[2] + -(-ends[2] // page) * page)
        memory = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ | mmap.PROT_WRITE)
        base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        places = {i: starts[_kind(part)] + offsets[i] for i, part in kept.items()}
        for i, part in kept.items():
            if part.kind != _NOBITS:
                memory[places[i] : places[i] + part.size] = self._bytes(part.offset, part.size)
        defined = self._relocate(memory, base, places, jumps_at)
        _protect(base, starts)
        return Code(memory, defined, others)

    @staticmethod
    def _places(kept: Mapping[int, _Part]) -> tuple[dict[int, int], list[int]]:
        """Where sections lie among those of their kind, and where each kind ends."""
        offsets, ends = {}, [0, 0, 0]
        for i, part in kept.items():
            kind, alignment = _kind(part), max(1, part.alignment)
            if alignment & (alignment - 1) or alignment > mmap.PAGESIZE:
                raise ObjectError(f"section {part.name} is aligned to {part.alignment} bytes")
            offsets[i] = -(-ends[kind] // alignment) * alignment
            ends[kind] = offsets[i] + part.size
            if ends[kind] > MOST_BYTES:
                raise ObjectError(f"section {part.name} has {part.size} bytes")
        return offsets, ends

    def _relocations(self, kept: Mapping[int, _Part]) -> list[tuple[int, _Part]]:
        """The sections of relocations that matter, each with the number of that which it is for."""
        found = []
        for part in self.parts:
            if part.info in kept and part.kind == _RELA_TYPE:
                found.append((part.info, part))
            elif part.info in kept and part.kind == 9:
                raise ObjectError("relocations without addends are not read")
        return found

    def _count_jumps(self, kept: Mapping[int, _Part]) -> int:
        """How many jumps to far functions there may be at most."""
        return sum(part.size // _RELA.size for _, part in self._relocations(kept)) if self.patches.jump else 0

    def _symbols(self, places: Mapping[int, int], base: int) -> tuple[list[int | str], dict[str, int]]:
        """Values of symbols by number (of those that are undefined: the name), and of global ones by name."""
        tables = [part for part in self.parts if part.kind == _SYMTAB]
        if len(tables) != 1:
            raise ObjectError(f"the object has {len(tables)} tables of symbols")
        names = self.parts[tables[0].link]
        texts, raw = self._bytes(names.offset, names.size), self._bytes(tables[0].offset, tables[0].size)
        values: list[int | str] = []
        defined = {}
        for name, _, _, section, value, _ in _SYMBOL.iter_unpack(raw):
            if section == _UNDEFINED:
                values.append(_text(texts, name))
            elif section == _ABSOLUTE:
                values.append(value)
            elif section in places:
                if value > self.parts[section].size:
                    raise ObjectError("a symbol lies behind its section")
                values.append(base + places[section] + value)
                defined[_text(texts, name)] = base + places[section] + value
            elif section >= _RESERVED:
                raise ObjectError(f"a symbol of the kind {section:#x}")
            else:
                values.append("")  # of a section that is not kept
        return values, defined

    def _relocate(self, memory: mmap.mmap, base: int, places: Mapping[int, int], jumps_at: int) -> dict[str, int]:
        values, defined = self._symbols(places, base)
        external: dict[str, int] = {}
        jumps: dict[int, int] = {}

        def jump_to(target: int) -> int:
            """The address of a jump to a function that is too far away."""
            if target not in jumps:
                assert self.patches.jump is not None
                at = jumps_at + 16 * len(jumps)
                memory[at : at + 16] = self.patches.jump(target)
                jumps[target] = base + at
            return jumps[target]

        for number, part in self._relocations({i: self.parts[i] for i in places}):
            start, size = places[number], self.parts[number].size
            for offset, info, addend in _RELA.iter_unpack(self._bytes(part.offset, part.size)):
                value = values[info >> 32]
                if isinstance(value, str):
                    if value not in external:
                        external[value] = self._find(value)
                    value = external[value]
                patch = self.patches.kinds.get(info & 0xFFFFFFFF)
                if patch is None:
                    raise ObjectError(f"relocation {info & 0xFFFFFFFF} of machine {self.machine} is not known")
                if offset + patch.size > size:
                    raise ObjectError("a relocation lies behind its section")
                _apply(patch, memory, base, start + offset, value, addend, jump_to)
        return defined

    def _find(self, name: str) -> int:
        found = self.find(name) or _of_the_c_library(name)
        if not found:
            raise ObjectError(f"the object needs {name or 'a section that is not loaded'}")
        return found


def _apply(
    patch: Patch, memory: mmap.mmap, base: int, at: int, value: int, addend: int, jump_to: Callable[[int], int]
) -> None:  # fmt: skip
    old = int.from_bytes(memory[at : at + patch.size], "little")
    try:
        new = patch.apply(old, value + addend, base + at)
    except RelocationError as error:
        if not patch.is_call or addend:
            raise ObjectError(str(error)) from None
        try:
            new = patch.apply(old, jump_to(value), base + at)
        except RelocationError as again:
            raise ObjectError(str(again)) from None
    memory[at : at + patch.size] = new.to_bytes(patch.size, "little")


def _is_kept(part: _Part) -> bool:
    if not part.flags & _ALLOC or not part.size or part.name.startswith(_UNUSED):
        return False
    if part.kind not in (_PROGBITS, _NOBITS):
        raise ObjectError(f"section {part.name} is of the kind {part.kind}")
    if part.flags & _WRITE and part.flags & _EXECUTE:
        raise ObjectError(f"section {part.name} is to be written and executed")
    if part.flags & 0x400:
        raise ObjectError("memory of threads of their own is not made")
    return True


def _kind(part: _Part) -> int:
    """0: code, 1: read only, 2: written."""
    return 0 if part.flags & _EXECUTE else 2 if part.flags & _WRITE else 1


def _text(table: bytes, at: int) -> str:
    return table[at : table.index(b"\0", at)].decode()


@functools.cache
def _libraries() -> tuple[ctypes.CDLL, ...]:
    """Where functions are that code may call without having been told: the C library's, and its mathematics."""
    found = [ctypes.CDLL(None)]
    for name in ("libm.so.6", "libgcc_s.so.1"):
        try:
            found.append(ctypes.CDLL(name))
        except OSError:
            continue
    return tuple(found)


def _of_the_c_library(name: str) -> int:
    if not name.isidentifier():
        return 0
    for library in _libraries():
        try:
            return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
        except AttributeError:
            continue
    return 0


def _protect(base: int, starts: list[int]) -> None:
    """Make code executable and what is read only so; neither can be written any more.

    Raises:
        ObjectError: the system forbids it.
    """
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    protect.argtypes, protect.restype = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int], ctypes.c_int
    ends = [starts[1], starts[2]]
    for start, end, flags in ((0, ends[0], mmap.PROT_READ | mmap.PROT_EXEC), (ends[0], ends[1], mmap.PROT_READ)):
        if end > start:
            _flush(base + start, base + end)
            if protect(base + start, end - start, flags):
                raise ObjectError(f"the system refuses executable memory (error {ctypes.get_errno()})")


def _flush(start: int, end: int) -> None:
    """Let the processor see instructions that were written as data, where it does not by itself."""
    if platform.machine().lower() in ("aarch64", "arm64"):
        address = _of_the_c_library("__clear_cache")
        if address:
            ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(address)(start, end)

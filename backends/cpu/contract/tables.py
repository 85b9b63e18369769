"""Functions of numbers of few bits, looked up in tables that registers hold.

A float of four bits is one of sixteen numbers. To make it takes a dozen instructions, to choose it from a register one.
Of eight bits there are 128 and their negatives, each two bytes of a float32: two registers hold the upper bytes of all,
two the lower ones, and what is looked up is all bytes of a vector of words at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from smelt.backends.contraction import only_moves
from smelt.ir import dtypes, mlir
from smelt.ir.builder import Function, OpView, Value
from smelt.ir.dtypes import DType
from smelt.ir.index import Coordinates, Index
from smelt.ir.kinds import Elementwise
from smelt.ir.scalar import Scalar, compute_dtype
from smelt.ir.scalar_emitter import made_from
from smelt.passes.kernels.analysis import collect_reads

from ..kernel import CpuKernel
from .shifts import part_of
from .tiles import has_feature, has_wide_registers

#: Entries of a table in one register, bytes of each, and entries at most.
ENTRIES, ENTRY_BYTES, MOST_ENTRIES = 16, 4, 256
#: Bytes of a register, and bits of a word and of half of one.
REGISTER, WORD, HALF = 64, 32, 16


@dataclass(frozen=True)
class Table:
    """What a value is for each of the numbers that it may be made of.

    Attributes:
        code: whose element at `place` chooses the entry; it may turn out to be larger than there are entries.
    """

    code: Value
    place: Coordinates
    entries: np.ndarray

    def look_up(self, k: CpuKernel, dtype: DType) -> Scalar | None:
        """A vector of entries, as numbers of a dtype; None where the code may be too large, or vectors are short."""
        code = k.value(self.code, self.place)
        kind = k.type(dtype)
        if code.dtype is not dtypes.uint32 or code.most is None or not 0 <= code.most < MOST_ENTRIES:
            return None
        if (self.entries[: code.most + 1] == np.arange(code.most + 1)).all():
            return None  # it is its own number
        if not isinstance(kind, mlir.ir.VectorType) or kind.shape[0] != ENTRIES:
            return None
        is_wide = has_wide_registers()
        if code.most >= ENTRIES:
            return self._by_bytes(k, code.mlir, kind, dtype) if is_wide else None
        if not is_wide and not has_feature("AVX2"):
            return None
        # The instruction looks at as many bits as it needs. Where the others were masked, they need not be.
        entries, at = self.entries[:ENTRIES], code.mlir
        period = code.most + 1
        if ENTRIES % period == 0:
            entries, at = np.resize(entries[:period], ENTRIES), made_from(at, "arith.andi", at.type) or at
        if not is_wide:
            return self._by_halves(k, entries, Scalar(k, at, code.dtype), dtype)
        table = held(k, entries.astype(dtype.numpy), kind)
        return Scalar(k, called(k, "avx512.permvar.sf.512", kind, table, at), dtype)

    def _by_halves(self, k: CpuKernel, entries: np.ndarray, at: Scalar, dtype: DType) -> Scalar:
        """The same with registers of half as many lanes and entries."""
        half = ENTRIES // 2
        kind = mlir.ir.VectorType.get([half], k.type(dtype).element_type, loc=k.location)
        lanes = [k.shuffled(at.mlir, at.mlir, range(i, i + half)) for i in (0, half)]
        found = []
        for part in np.split(entries.astype(dtype.numpy), 2):
            table = held(k, part, kind)
            low, high = (called(k, "avx2.permps", kind, table, x) for x in lanes)
            found.append(Scalar(k, k.shuffled(low, high, range(ENTRIES)), dtype))
        is_second = k.bits((at << (WORD - half.bit_length())).mlir, dtypes.int32)
        return k.select(is_second < 0, found[1], found[0])

    def _by_bytes(self, k: CpuKernel, code: Any, kind: Any, dtype: DType) -> Scalar | None:
        """The same for codes that are bytes of words, of entries that are two bytes and a sign."""
        part = part_of(k, code)
        if part is None or not self.has_halves(part[2], part[1]):
            return None
        word, places, _ = part
        bits = self.halves_of(k, word, places)
        return k.bitcast(bits & 0xFFFF0000 if places >= HALF else bits << HALF, dtype)

    def has_halves(self, mask: int, places: int) -> bool:
        """Whether entries are halves of words that bytes of words choose, from these places on."""
        return mask == 0xFF and places % 8 == 0 and self._halves is not None and has_feature("AVX512VBMI")

    def halves_of(self, k: CpuKernel, word: Scalar, places: int) -> Scalar:
        """The entries of two bytes of words, the one at some places in its half of them, and that in the other half."""
        halves = self._halves
        assert halves is not None
        octets = mlir.ir.VectorType.get([REGISTER], mlir.ir.IntegerType.get_signless(8, k.context), loc=k.location)
        at = k.emit("vector.bitcast", [word.mlir], [octets]).result
        tables = [[held(k, x, octets) for x in np.split(half, 2)] for half in halves]
        low, high = (called(k, "avx512.vpermi2var.qi.512", octets, first, at, second) for first, second in tables)
        with k.vectors(REGISTER // 2):  # an entry is half a word: of even bytes, or of odd ones
            at, low, high = (k.bits(x, dtypes.uint16) for x in (at, low, high))
            high = high | (at & 0x8080)
            both = (high & 0xFF00) | (low >> 8) if places // 8 % 2 else (high << 8) | (low & 0x00FF)
        return k.bits(both.mlir, dtypes.uint32)

    @property
    def _halves(self) -> tuple[np.ndarray, np.ndarray] | None:
        """The lower and the upper byte of the first half of the entries, if the others are their negatives, and the
        bytes below are zero."""
        with np.errstate(invalid="ignore"):
            first, second = np.split(self.entries.astype(np.float32), 2)
        words = first.view(np.uint32)
        words = np.where(np.isnan(first), np.uint32(0x7FC00000), words)
        negative = np.where(np.isnan(second), np.uint32(0xFFC00000), second.view(np.uint32))
        if (words & 0x8000FFFF).any() or (words | np.uint32(0x80000000) != negative).any():
            return None
        return (words >> 16 & 0xFF).astype(np.uint8), (words >> 24).astype(np.uint8)


def held(k: CpuKernel, numbers: np.ndarray, kind: Any) -> Any:
    """A vector of numbers, made once."""
    dense = mlir.ir.DenseElementsAttr.get(numbers, type=kind, context=k.context)
    saved, k.ip = k.ip, mlir.ir.InsertionPoint.at_block_begin(k.entry)
    found = k.emit("arith.constant", (), [kind], value=dense).result
    k.ip = saved
    return found


def called(k: CpuKernel, name: str, kind: Any, *operands: Any) -> Any:
    """What an instruction of x86 makes of some vectors."""
    k.context.get_dialect_descriptor("llvm")  # loads it
    return k.emit(
        "llvm.call_intrinsic", list(operands), [kind],
        intrin=mlir.ir.StringAttr.get(f"llvm.x86.{name}", k.context),
        op_bundle_sizes=mlir.ir.DenseI32ArrayAttr.get([], k.context),
        operandSegmentSizes=mlir.ir.DenseI32ArrayAttr.get([len(operands), 0], k.context),
    ).result  # fmt: skip


def tables_of(body: Function, value: Value, place: Coordinates) -> Iterator[Table]:
    """By what an element of a value might be looked up: integers on which alone it depends, the earliest first."""
    if not value.dtype.is_float or compute_dtype(value.dtype).size != ENTRY_BYTES:
        return
    reads = collect_reads(body.ops, [(value, place)])
    for op in body.ops:
        code = op.results[0]
        if code.dtype is not dtypes.uint32 or code not in reads or not isinstance(op.op, Elementwise):
            continue
        behind = _between(body, code, value, place)
        if any(v in behind for v in body.arguments) or len(behind.get(code, ())) != 1:
            continue
        entries = _evaluate([op for op in body.ops if op.results[0] in behind], code, value)
        if entries is not None:
            yield Table(code, next(iter(behind[code])), entries)


def _between(body: Function, code: Value, value: Value, place: Coordinates) -> dict[Value, dict[Coordinates, None]]:
    """What is read for an element of a value, down to that of a code; nothing where positions count besides."""
    numbers: list[Index] = []
    found = collect_reads(body.ops, [(value, place)], numbers, stop=lambda v: v is code)
    return {} if numbers else found


def _evaluate(ops: list[OpView], code: Value, value: Value) -> np.ndarray | None:
    """A value for each number that is a code; None where that cannot be told."""
    found: dict[Value, np.ndarray] = {code: np.arange(MOST_ENTRIES, dtype=np.uint32)}
    for op in ops:
        result = op.results[0]
        if result is code:
            continue
        if not op.operands and op.op.kind == "constant":
            found[result] = np.broadcast_to(op.op.reference(**op.attrs), (MOST_ENTRIES,))
        elif all(v in found for v in op.operands) and only_moves(op):
            found[result] = found[op.operands[0]]
        elif all(v in found for v in op.operands) and isinstance(op.op, Elementwise):
            found[result] = np.asarray(op.op.reference(*(found[v] for v in op.operands), **op.attrs))
        else:
            return None
    return np.asarray(found[value], np.float32) if value in found else None

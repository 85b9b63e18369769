"""Functions of numbers of few bits, looked up in a table that a register holds.

A float of four bits is one of sixteen numbers. To make it takes a dozen instructions, to choose it from a register one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

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
from .tiles import has_wide_registers

#: Entries of a table, and bytes of each.
ENTRIES, ENTRY_BYTES = 16, 4


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
        wide = isinstance(kind, mlir.ir.VectorType) and kind.shape[0] == ENTRIES and has_wide_registers()
        if not wide or code.dtype is not dtypes.uint32 or code.most is None or not 0 <= code.most < ENTRIES:
            return None
        # The instruction looks at as many bits as it needs. Where the others were masked, they need not be.
        entries, at = self.entries, code.mlir
        period = code.most + 1
        if ENTRIES % period == 0:
            entries, at = np.resize(entries[:period], ENTRIES), made_from(at, "arith.andi", at.type) or at
        dense = mlir.ir.DenseElementsAttr.get(entries.astype(dtype.numpy), type=kind, context=k.context)
        saved, k.ip = k.ip, mlir.ir.InsertionPoint.at_block_begin(k.entry)
        table = k.op("arith.constant", (), dtype, value=dense)
        k.ip = saved
        k.context.get_dialect_descriptor("llvm")  # loads it
        found = k.emit(
            "llvm.call_intrinsic", [table, at], [kind],
            intrin=mlir.ir.StringAttr.get("llvm.x86.avx512.permvar.sf.512", k.context),
            op_bundle_sizes=mlir.ir.DenseI32ArrayAttr.get([], k.context),
            operandSegmentSizes=mlir.ir.DenseI32ArrayAttr.get([2, 0], k.context),
        )  # fmt: skip
        return Scalar(k, found.result, dtype)


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
        if entries is not None and (entries != np.arange(ENTRIES)).any():  # else it is its own number
            yield Table(code, next(iter(behind[code])), entries)


def _between(body: Function, code: Value, value: Value, place: Coordinates) -> dict[Value, dict[Coordinates, None]]:
    """What is read for an element of a value, down to that of a code; nothing where positions count besides."""
    numbers: list[Index] = []
    found = collect_reads(body.ops, [(value, place)], numbers, stop=lambda v: v is code)
    return {} if numbers else found


def _evaluate(ops: list[OpView], code: Value, value: Value) -> np.ndarray | None:
    """A value for each number that is a code; None where that cannot be told."""
    found: dict[Value, np.ndarray] = {code: np.arange(ENTRIES, dtype=np.uint32)}
    for op in ops:
        result = op.results[0]
        if result is code:
            continue
        if not op.operands and op.op.kind == "constant":
            found[result] = np.broadcast_to(op.op.reference(**op.attrs), (ENTRIES,))
        elif all(v in found for v in op.operands) and only_moves(op):
            found[result] = found[op.operands[0]]
        elif all(v in found for v in op.operands) and isinstance(op.op, Elementwise):
            found[result] = np.asarray(op.op.reference(*(found[v] for v in op.operands), **op.attrs))
        else:
            return None
    return np.asarray(found[value], np.float32) if value in found else None

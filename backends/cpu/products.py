"""Dense matrix products by a BLAS, called from the compiled program.

The BLAS runs on one thread; the program's threads each take rows (or columns, or matrices of a
batch) of the result, so a product needs no other pool of threads and no call of its own.

How a BLAS adds up an element depends on where in the product it stands. So products are cut at the same places
however many threads there are when the program runs: into a part for each processor. The parts are rectangles, because
each call rearranges all that it reads of both operands.

The product of a matrix with its own transpose is symmetric: of that the upper triangle is computed, and copied.
"""

from __future__ import annotations

import functools
import math
from typing import Any

from smelt.backends.memory import Memory
from smelt.ir import dtypes, mlir
from smelt.ir.builder import Function, OpView
from smelt.ir.dialect import context
from smelt.ir.dtypes import DType
from smelt.ir.forms import MatmulForm
from smelt.ir.host_threads import processors
from smelt.ir.kinds import Contraction
from smelt.ir.scalar import INDEX, Scalar

from . import blas
from .kernel import CpuKernel, KernelModule, buffer_type
from .loops import Split, share
from .schedules import ScheduledKernel

_LETTER = {dtypes.float32: "s", dtypes.float64: "d", dtypes.complex64: "c", dtypes.complex128: "z"}
_ROW_MAJOR, _PLAIN, _TRANSPOSED, _UPPER = 101, 111, 112, 121
#: Rows and depth from which on half of a symmetric product is computed.
_LEAST_SYMMETRIC = 32
#: Columns that are copied to rows at a time: as many lines of the cache are written in turns.
_TOGETHER = 16


def can_build(op: OpView) -> bool:
    """Whether the BLAS computes this contraction where its operands lie."""
    if not isinstance(op.op, Contraction) or op.operands[0].dtype not in _LETTER or blas.library() is None:
        return False
    form = op.op.matmul_form(*(v.aval for v in op.operands), **op.attrs)
    return form is not None and form.in_place and all((form.batch, form.m, form.n, form.k))


def build(module: KernelModule, name: str, op: OpView, main: Function) -> ScheduledKernel:
    """The kernel of one contraction; see `can_build`."""
    assert isinstance(op.op, Contraction)
    lhs, rhs = (v.aval for v in op.operands)
    form = op.op.matmul_form(lhs, rhs, **op.attrs)
    assert form is not None
    values = [*op.operands, *op.results]
    index = mlir.ir.IndexType.get(context())
    entry = module.function(name, [*(buffer_type(v.aval) for v in values), index, index], op.location)
    k = CpuKernel(module, entry, op.location, main)
    *memrefs, lo, hi = entry.arguments
    call = _Caller(module, k, lhs.dtype)
    a, b, c = (call.k.address_of(m) for m in memrefs)
    lo, hi = Scalar(k, lo, INDEX), Scalar(k, hi, INDEX)
    m, n, kk = form.m, form.n, form.k
    for v, size in zip(values, (m * kk, kk * n, m * n)):
        if v.aval.size != form.batch * size:
            raise AssertionError(f"smelt.{op.name}: {form} does not describe {v.aval}")
    over_batch = form.batch >= 8 or (form.batch > 1 and m * n < 64 * 64)
    grains = 16 if m > 64 or n > m else 1, 16
    is_symmetric = _is_symmetric(op, form)
    down, across = _grid(-(-m // grains[0]), -(-n // grains[1]), m / n, processors())
    strips = min(processors(), -(-n // grains[1]))
    split = Split(form.batch if over_batch else strips if is_symmetric else down * across)

    if k.checks is not None:  # what the library is told to do is in the range lo … hi
        hi = k.at_most(hi, split.extent)

    def matrices(at: Scalar) -> list[Scalar]:
        return [call.shift(p, at * size) for p, size in ((a, m * kk), (b, kk * n), (c, m * n))]

    def whole(at: Scalar) -> None:
        call.product(form, k.const(m, INDEX), k.const(n, INDEX), *matrices(at))

    def symmetric_part(number: Scalar) -> None:
        first, last = (_bound(k, at, strips, n, grains[1]) for at in (number, number + 1))
        call.upper_rows(form, first, last, a, c)
        _mirror(k, Memory(memrefs[2], op.results[0].aval), n, first, last)

    def part(number: Scalar) -> None:
        row, column = (k.op(f"arith.{name}", [number, k.const(across, INDEX)], INDEX) for name in ("divui", "remui"))
        first, last = share(k, row, k.const(down, INDEX), m, grains[0])
        left, right = share(k, column, k.const(across, INDEX), n, grains[1])

        def product(at: Scalar) -> None:
            pa, pb, pc = matrices(at)
            pa = call.shift(pa, first if form.lhs_layout == "transposed" else first * kk)
            pb = call.shift(pb, left * kk if form.rhs_layout == "transposed" else left)
            call.product(form, last - first, right - left, pa, pb, call.shift(pc, first * n + left))

        k.loop(None, k.const(0, INDEX), k.const(form.batch, INDEX), product)

    k.loop(None, lo, hi, whole if over_batch else symmetric_part if is_symmetric else part)
    k.emit("func.return", [], [])
    return ScheduledKernel(name, None, split, values)


@functools.lru_cache(maxsize=256)
def _grid(rows: int, columns: int, shape: float, parts: int) -> tuple[int, int]:
    """How many parts a matrix is cut into, down and across: as many as wanted, if there are units enough, and of those
    with as many the grid whose parts have the shortest edges.

    Args:
        rows, columns: how many units there are. shape: rows of the matrix for each column.
    """
    found = [(d, min(parts // d, columns)) for d in range(1, min(parts, rows) + 1)]
    return max(found, key=lambda grid: (grid[0] * grid[1], -(shape / grid[0] + 1 / grid[1]), grid[0]))


def _is_symmetric(op: OpView, form: MatmulForm) -> bool:
    """Whether this is a matrix times its transpose, and large enough."""
    same = op.operands[0] is op.operands[1] and form.lhs_layout != form.rhs_layout
    return same and form.batch == 1 and form.m == form.n and min(form.n, form.k) >= _LEAST_SYMMETRIC


def _bound(k: CpuKernel, number: Scalar, parts: int, n: int, grain: int) -> Scalar:
    """Where a part of the rows of a symmetric matrix begins: all have as much right of the diagonal."""
    found = k.const(0, INDEX)
    for i in range(1, parts + 1):
        at = min(n, round(n * (1 - math.sqrt(1 - i / parts)) / grain) * grain)
        found = k.select(number >= i, k.const(n if i == parts else at, INDEX), found)
    return found


def _mirror(k: CpuKernel, result: Memory, n: int, first: Scalar, last: Scalar) -> None:
    """Copy what is right of the diagonal in some rows of a matrix to the columns below it."""

    def block(column: Scalar) -> None:
        end = k.op("arith.minui", [column + _TOGETHER, k.const(n, INDEX)], INDEX)

        def line(i: Scalar) -> None:
            begin = k.op("arith.maxui", [column, i + 1], INDEX)
            k.loop(None, begin, end, lambda j: k.write(k.read(result, i * n + j), result, j * n + i))

        k.loop(None, first, k.op("arith.minui", [last, end], INDEX), line)

    k.loop(None, first, k.const(n, INDEX), block, step=_TOGETHER)


class _Caller:
    """Calls into the BLAS: sizes and addresses are i64."""

    def __init__(self, module: KernelModule, k: CpuKernel, dtype: DType):
        self.module, self.k, self.dtype = module, k, dtype
        found = blas.library()
        assert found is not None
        self.library = found

    def shift(self, address: Scalar, elements: Scalar) -> Scalar:
        return address + elements * self.dtype.size

    def _call(self, name: str, arguments: list[Any]) -> None:
        k, ir = self.k, mlir.ir
        converted = [
            k.op("arith.index_cast", [x], dtypes.int64) if isinstance(x, Scalar) and x.dtype is INDEX else x
            for x in arguments
        ]
        symbol = self.library.symbol(_LETTER[self.dtype] + name)
        if symbol not in self.module.declared:
            self.module.declared.add(symbol)
            self.module.declare(symbol, [x.mlir.type for x in converted])
        k.emit("func.call", converted, [], callee=ir.FlatSymbolRefAttr.get(symbol, context()))

    def _factor(self, value: float) -> Scalar:
        """alpha or beta: a number, or for complex the address of one."""
        k = self.k
        if self.dtype.kind != "c":
            return k.const(value, self.dtype)
        memory = k.scratch(2, self.dtype.real)
        for i, part in enumerate((value, 0.0)):
            k.write(k.const(part, self.dtype.real), memory, k.const(i, INDEX))
        return self.k.address_of(memory.memref)

    def product(self, form: MatmulForm, rows: Scalar, columns: Scalar, a: Scalar, b: Scalar, c: Scalar) -> None:
        k = self.k

        def word(x: int) -> Scalar:
            return k.const(x, dtypes.int32)

        def size(x: int) -> Scalar:
            return k.const(x, INDEX)

        left, right = form.lhs_layout == "transposed", form.rhs_layout == "transposed"
        one, zero = self._factor(1.0), self._factor(0.0)
        if form.n == 1:  # A · x; a transposed A lies as [K, M]
            stored = (size(form.k), rows) if left else (rows, size(form.k))
            lda = size(form.m if left else form.k)
            flag = word(_TRANSPOSED if left else _PLAIN)
            tail = [b, size(1), zero, c, size(1)]
            self._call("gemv", [word(_ROW_MAJOR), flag, *stored, one, a, lda, *tail])
            return
        if form.m == 1:  # Bᵀ · y
            stored = (columns, size(form.k)) if right else (size(form.k), columns)
            ldb = size(form.k if right else form.n)
            flag = word(_PLAIN if right else _TRANSPOSED)
            self._call("gemv", [word(_ROW_MAJOR), flag, *stored, one, b, ldb, a, size(1), zero, c, size(1)])
            return
        flags = [word(_TRANSPOSED if t else _PLAIN) for t in (left, right)]
        lda, ldb = size(form.m if left else form.k), size(form.k if right else form.n)
        shape = [rows, columns, size(form.k)]
        self._call("gemm", [word(_ROW_MAJOR), *flags, *shape, one, a, lda, b, ldb, zero, c, size(form.n)])

    def upper_rows(self, form: MatmulForm, first: Scalar, last: Scalar, a: Scalar, c: Scalar) -> None:
        """Some rows of a matrix times its transpose, from the diagonal on."""
        k, turned = self.k, form.lhs_layout == "transposed"
        n, depth, order = k.const(form.n, INDEX), k.const(form.k, INDEX), k.const(_ROW_MAJOR, dtypes.int32)
        apart, pitch = (1, n) if turned else (form.k, depth)  # rows, and lines of memory
        flags = [k.const(_TRANSPOSED if t else _PLAIN, dtypes.int32) for t in (turned, not turned)]
        one, zero = self._factor(1.0), self._factor(0.0)
        own, square = self.shift(a, first * apart), self.shift(c, first * form.n + first)
        shape = [last - first, depth, one, own, pitch, zero, square, n]
        self._call("syrk", [order, k.const(_UPPER, dtypes.int32), flags[0], *shape])
        others, beside = self.shift(a, last * apart), self.shift(c, first * form.n + last)
        shape = [last - first, n - last, depth, one, own, pitch, others, pitch, zero, beside, n]
        self._call("gemm", [order, *flags, *shape])

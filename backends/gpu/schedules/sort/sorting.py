"""What sorts read and write, and the order of keys; rows that one threadgroup sorts by a network.

A block of pairs (key, position) is sorted by a bitonic network; the position breaks ties, so the order of equal keys is
kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from smelt.backends.lowering import divide
from smelt.backends.memory import Memory
from smelt.ir import dtypes
from smelt.ir.builder import Value
from smelt.ir.dtypes import DType
from smelt.ir.ops.reduce import highest
from smelt.ir.scalar import INDEX, Scalar

from ...kernel import GpuKernel, GpuModule
from ..parts import each_group, plus, power_of_two, split, times
from ..schedule import ScheduledKernel, Scratch

#: Elements of rows that share a threadgroup; a thread compares two.
SHARED_BLOCK = 512

Buffer = Value | Scratch


@dataclass(frozen=True)
class Layout:
    """Rows in an array: element i of row r is at ``(r // inner) * length * inner + i * inner + r % inner``."""

    rows: int
    length: int
    inner: int = 1

    @property
    def size(self) -> int:
        return self.rows * self.length

    def offset(self, k: GpuKernel, row: Scalar, i: Scalar) -> Scalar:
        if self.inner == 1:
            return plus(times(row, self.length), i)
        outer, column = divide(k, row, self.inner, self.rows > self.inner)
        return plus(times(outer, self.length), i) * self.inner + column


@dataclass(frozen=True)
class Sorted:
    """What a sort reads and which of its results are wanted.

    Attributes:
        name: of the kernels.
        keys: the array to sort, in `layout`.
        keys_out, order_out: sorted keys; where they came from, as uint32.
        bits: the lowest of unsigned keys, in which they all differ; None is all bits.
    """

    name: str
    location: Any
    source: Sequence[str]
    keys: Buffer
    layout: Layout
    keys_out: Buffer | None = None
    order_out: Buffer | None = None
    bits: int | None = None

    @property
    def dtype(self) -> DType:
        return self.keys.aval.dtype

    @property
    def nbytes(self) -> int:
        """Of a key, and of where it came from where that is wanted."""
        return self.dtype.size + (4 if self.order_out is not None else 0)


def comes_before(k: GpuKernel, a: Scalar, b: Scalar) -> Scalar:
    """Whether `a` belongs before `b`: ascending, NaN last. Equal elements belong nowhere before each other."""
    if a.dtype.kind == "b":
        return k.logical_and(~a, b)
    if a.dtype.kind == "c":
        return complex_before(k, a, b)
    less = a < b
    if a.dtype.kind == "f":
        less = k.logical_or(less, k.logical_and(k.isnan(b), a.eq(a)))
    return less


def complex_before(k: GpuKernel, a: Scalar, b: Scalar) -> Scalar:
    """The order of complex numbers: those with a NaN in the imaginary part, in the real part, in both come last."""

    def less(x: Scalar, y: Scalar) -> Scalar:
        return k.logical_or(x < y, k.logical_and(k.isnan(y), x.eq(x)))

    (ar, ai), (br, bi) = (k.real(a), k.imag(a)), (k.real(b), k.imag(b))
    same = k.logical_or(ar.eq(br), k.logical_and(k.isnan(ar), k.isnan(br)))
    one_last = k.isnan(ai) ^ k.isnan(bi)  # of two numbers with real parts: the one without an imaginary part
    numbers = k.logical_and(ar.eq(ar), br.eq(br))
    by_parts = k.logical_or(less(ar, br), k.logical_and(same, less(ai, bi)))
    return k.select(k.logical_and(numbers, one_last), k.isnan(bi), by_parts)


def last_key(k: GpuKernel, dtype: DType) -> Scalar:
    """A key that comes before no other."""
    if dtype.kind == "c":
        return k.const(complex(float("nan"), float("nan")), dtype)
    return k.const(float("nan") if dtype.kind == "f" else highest(dtype), dtype)


@dataclass(frozen=True)
class Pair:
    """Keys and where they came from."""

    keys: Buffer | None
    order: Buffer | None

    def buffers(self, prefix: str) -> list[tuple[str, Buffer]]:
        named = [(f"{prefix}keys", self.keys), (f"{prefix}order", self.order)]
        return [(name, buffer) for name, buffer in named if buffer is not None]


class Buffers:
    """The buffers of a kernel under construction, by name."""

    def __init__(self, module: GpuModule, what: Sorted, suffix: str, buffers: Sequence[tuple[str, Buffer]]):
        self.what = what
        self.operands = [b for _, b in buffers]
        avals = [b.aval for b in self.operands]
        self.k, memories = module.start(what.name + suffix, avals, [n for n, _ in buffers], what.location)
        self.memory: dict[str, Memory] = dict(zip((n for n, _ in buffers), memories))

    def write(self, name: str, x: Scalar, offset: Scalar) -> None:
        """Where there is such a buffer."""
        if name in self.memory:
            self.k.write(x, self.memory[name], offset)

    def finish(self, schedule: str, groups: int, threads: int, comparisons: int) -> ScheduledKernel:
        read = sum(m.aval.nbytes for n, m in self.memory.items() if not n.startswith("out_"))
        written = sum(m.aval.nbytes for n, m in self.memory.items() if n.startswith("out_"))
        self.k.finish(schedule, (groups, 1, 1), (threads, 1, 1), read, written, comparisons, self.what.source)
        return ScheduledKernel(self.k.name, self.operands)


def block_kernel(module: GpuModule, what: Sorted, block: int, target: Pair, out: Layout) -> ScheduledKernel:
    """Sort rows of at most `block` elements, a threadgroup to several of them."""
    return _BlockKernel(module, what, block, target, out).build()


class _BlockKernel:
    """A kernel whose threadgroups sort blocks in their memory.

    Attributes:
        rows: that share a threadgroup. elements: of all of them.
        keys, tags: in threadgroup memory: keys, and where they came from.
    """

    def __init__(self, module: GpuModule, what: Sorted, block: int, target: Pair, out: Layout):
        self.what, self.layout, self.block, self.out = what, what.layout, block, out
        self.buffers = Buffers(module, what, "_blocks", [("keys", what.keys), *target.buffers("out_")])
        self.k = k = self.buffers.k
        self.rows = max(1, min(SHARED_BLOCK // block, power_of_two(what.layout.rows)))
        self.elements = self.rows * block
        self.threads = max(k.gpu.simd, self.elements // 2)
        # Equal integers are the same: where only the keys are wanted, nothing has to say which came first.
        tagged = what.dtype.is_inexact or target.order is not None
        self.keys = k.shared(self.elements, what.dtype, stored=True, name="block_keys")
        self.tags = k.shared(self.elements, dtypes.uint32, name="block_order") if tagged else None

    def build(self) -> ScheduledKernel:
        k, layout, block = self.k, self.layout, self.block
        thread, runs = k.thread(), -(-layout.length // block)
        blocks = -(-layout.rows // self.rows) * runs
        groups = max(1, min(k.gpu.groups, blocks))
        halves = range(2) if self.elements // 2 >= k.gpu.simd else range(1)

        def each(at: Scalar) -> None:
            first_row, run = split(k, at, runs, "row", "run", layout.rows > self.rows)
            with k.named("row"):
                first_row = times(first_row, self.rows)
            with k.named("start"):
                start = times(run, block)
            for half in halves:
                self._in_memory(half, first_row, start, self._load)
            k.barrier()
            _network(k, thread, self.elements, block, self.keys, self.tags)
            for half in halves:
                self._in_memory(half, first_row, start, self._store)
            if groups < blocks:
                k.barrier()  # before threadgroup memory is filled again

        each_group(k, blocks, groups, each)
        steps = block.bit_length() * (block.bit_length() - 1) // 2
        return self.buffers.finish("sort", groups, self.threads, layout.size * steps)

    def _in_memory(
        self, half: int, first_row: Scalar, start: Scalar, body: Callable[[Scalar, Scalar, Scalar], None]
    ) -> None:
        """Run ``body(slot, row, i)`` for the thread's first or second element, if it has one."""
        k = self.k
        slot, row, i = self._place(half, first_row, start)
        if self.elements < k.gpu.simd:  # more threads than elements
            k.when(k.below(k.thread(), self.elements), lambda: body(slot, row, i))
        else:
            body(slot, row, i)

    def _place(self, half: int, first_row: Scalar, start: Scalar) -> tuple[Scalar, Scalar, Scalar]:
        """Of the thread's first or second element: where it is in threadgroup memory, its row, its position."""
        k, rows, block = self.k, self.rows, self.block
        with k.named("slot"):
            e = k.thread() + half * self.threads if half else k.thread()
        if rows == 1:
            return e, first_row, plus(start, e)
        if self.layout.inner > 1:  # neighbouring threads take neighbouring rows, which lie side by side
            i, row = split(k, e, rows, "i", "row")
            return row * block + i, first_row + row, plus(start, i)
        row, i = split(k, e, block, "row", "i")
        return e, first_row + row, plus(start, i)

    def _inside(self, row: Scalar, i: Scalar) -> Scalar:
        k, layout = self.k, self.layout
        found = k.below(i, layout.length)
        if layout.rows % self.rows:
            found = k.logical_and(found, k.below(row, layout.rows))
        return found

    def _load(self, slot: Scalar, row: Scalar, i: Scalar) -> None:
        k, dtype = self.k, self.what.dtype
        with k.named("key"):
            key = k.if_(
                self._inside(row, i),
                lambda: k.read(self.buffers.memory["keys"], self.layout.offset(k, row, i)),
                lambda: last_key(k, dtype),
                dtype,
            )
        k.write(key, self.keys, slot)
        if self.tags is not None:
            k.write(k.convert(i, dtypes.uint32), self.tags, slot)

    def _store(self, slot: Scalar, row: Scalar, i: Scalar) -> None:
        k = self.k

        def put() -> None:
            with k.named("at"):
                offset = self.out.offset(k, row, i)
            self.buffers.write("out_keys", k.read(self.keys, slot), offset)
            if self.tags is not None:
                self.buffers.write("out_order", k.read(self.tags, slot), offset)

        k.when(self._inside(row, i), put)


def _network(k: GpuKernel, thread: Scalar, elements: int, block: int, keys: Memory, tags: Memory | None) -> None:
    """Sort each `block` of `elements` pairs in threadgroup memory."""
    zero, one = k.const(0, INDEX), k.const(1, INDEX)

    def stage(p: Scalar) -> None:
        """Sorted runs of 2ᵖ, every second one descending, become runs of 2ᵖ⁺¹."""
        k.for_(zero, p + 1, lambda q: compare(p, stride_of(p, q)))

    def stride_of(p: Scalar, q: Scalar) -> Scalar:
        with k.named("stride"):
            return one << (p - q)

    def compare(p: Scalar, stride: Scalar) -> None:
        def pairs() -> None:
            with k.named("low"):
                low = thread & (stride - 1)
            with k.named("a"):
                a = (thread - low) * 2 + low
            with k.named("b"):
                b = a + stride
            within = (a & (block - 1)) if elements > block else a
            descending = (within & (k.const(2, INDEX) << p)).ne(0)
            with k.named("key_a"):
                x = k.read(keys, a)
            with k.named("key_b"):
                y = k.read(keys, b)
            with k.named("before"):
                swap = comes_before(k, y, x)
            with k.named("after"):
                other = comes_before(k, x, y)
            if tags is not None:
                with k.named("from_a"):
                    i = k.read(tags, a)
                with k.named("from_b"):
                    j = k.read(tags, b)
                with k.named("before"):
                    swap = k.logical_or(swap, k.logical_and(~k.logical_or(swap, other), j < i))
                other = ~swap

            def exchange() -> None:
                k.write(y, keys, a)
                k.write(x, keys, b)
                if tags is not None:
                    k.write(j, tags, a)
                    k.write(i, tags, b)

            k.when(k.select(descending, other, swap), exchange)

        if elements // 2 < k.gpu.simd:
            k.when(k.below(thread, elements // 2), pairs)
        else:
            pairs()
        k.barrier()

    k.for_(zero, k.const(block.bit_length() - 1, INDEX), stage)

"""Streaming: results too large for the caches go to memory past them, operands are fetched ahead.

An ordinary store first reads the line that it overwrites. Here a piece of the result is computed
into L1 by plain scalar loops, which LLVM vectorizes, and leaves from there by non-temporal vector
stores; that saves a third of the traffic of a kernel that reads as much as it writes. Meanwhile the
operands of later pieces are prefetched: the hardware alone does not look far enough ahead past a
long computation. `python -m benchmarks gelu-compiled` shows the effect beside a copy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from smelt.backends.lowering import Coordinates, Fused
from smelt.backends.plan import is_static
from smelt.ir import mlir
from smelt.ir.aval import Aval
from smelt.ir.builder import Value
from smelt.ir.dtypes import DType
from smelt.ir.index import Atom, Index, linearize
from smelt.ir.scalar import INDEX, Scalar

from . import usual
from .kernel import CpuKernel, Memory

#: Arrays of at least this many bytes are streamed: more than the caches of a core hold.
STREAM_BYTES = 16 << 20
#: Bytes of L1 for the piece under way, all outputs together: short, so that computing the next piece
#: overlaps with the stores of this one.
PIECE_BYTES = 256
#: The same where lines stay in the caches, and are computed in pieces for their rare elements.
USUAL_BYTES = 4096
#: How many pieces ahead operands are fetched.
AHEAD = 4
#: How many steps ahead operands are fetched where a line goes over them: each step reads a piece far from that of the
#: last one, which the hardware does not foresee.
STEPS_AHEAD = 4
#: Pieces of a line, at least, that leaves past the caches though it begins anywhere in a line of memory: too much of a
#: shorter one lies before and behind whole pieces.
FEWEST_PIECES = 8
#: Bytes of a non-temporal store; buffers are aligned to it.
LINE_BYTES = 64


class Read(NamedTuple):
    """An operand to fetch ahead: `ahead` elements after where `place` is now; None: AHEAD pieces.

    `soon`: into L1, and not only into L2.
    """

    memory: Memory
    place: Coordinates
    ahead: int | None = None
    soon: bool = True


def follows(index: Index, loop: Fused) -> bool:
    """Whether an address moves with `loop` one element a step."""
    return all(index.step(name) == loop.strides[name] for name, extent in loop.variables if extent > 1)


def is_large(aval: Aval) -> bool:
    """Whether an array is more than the caches hold."""
    return aval.nbytes >= STREAM_BYTES


def can_stream(loop: Fused, outputs: Sequence[tuple[Memory, Coordinates]]) -> bool:
    """Whether every output is large, contiguous along `loop`, and aligned where the others are."""
    if not outputs or not loop.variables:
        return False
    for memory, place in outputs:
        index = linearize(place, memory.aval.shape)
        if not is_large(memory.aval) or memory.aval.dtype.is_complex or not follows(index, loop):
            return False
        if any(atom.kind != "var" for atom, _ in index.terms):
            return False
    places = {(linearize(at, memory.aval.shape), memory.aval.dtype.size) for memory, at in outputs}
    return len(places) == 1 or is_aligned(loop, outputs)


def is_aligned(loop: Fused, outputs: Sequence[tuple[Memory, Coordinates]]) -> bool:
    """Whether what can stream is aligned wherever the loop starts."""
    for memory, place in outputs:
        lanes, index = LINE_BYTES // memory.aval.dtype.size, linearize(place, memory.aval.shape)
        others = [coefficient for atom, coefficient in index.terms if atom.args[0] not in loop.strides]
        if any(n % lanes for n in (index.const, *others)):
            return False
    return True


def is_worth_streaming(
    loop: Fused, outputs: Sequence[tuple[Memory, Coordinates]], width: int, fewest: int = FEWEST_PIECES
) -> bool:
    """Whether lines of `width` elements, far apart, are to be written past the caches, if possible."""
    return width >= fewest * piece_length([m.aval.dtype for m, _ in outputs]) or is_aligned(loop, outputs)


def far_apart(
    k: CpuKernel, reads: Mapping[Value, Iterable[Coordinates]], lane: Fused, steps: Fused, width: int,
    ahead: int = STEPS_AHEAD,
) -> list[Read]:  # fmt: skip
    """Of what a line of `width` reads, that which lies along `lane` and far apart from step to step; to be fetched so
    many steps ahead."""
    name, extent = steps.variables[-1]
    step = Atom("var", (name,), 0, extent - 1)
    found = []
    for v, places in reads.items():
        memory = k.memory.get(v)
        if v.owner is not None or memory is None or not is_large(v.aval):
            continue
        for place in places:
            index = linearize(place, v.shape)
            stride = index.coefficient(step)
            if is_static(place) and follows(index, lane) and abs(stride) > width:
                found.append(Read(memory, place, ahead * stride))
    return found


def fetch_line(k: CpuKernel, lane: Fused, first: Scalar, reads: Sequence[Read], width: int) -> None:
    """Fetch for a line that starts at `first` what steps to come read."""
    with k.at_position(lane, first):
        for memory, place, ahead, soon in reads:
            prefetch(k, memory, k.index(linearize(place, memory.aval.shape)), ahead or 0, width, soon)


def piece_length(results: Sequence[DType]) -> int:
    """Elements of a piece: only whole pieces stream."""
    return max(LINE_BYTES, PIECE_BYTES // max(d.size for d in results) // len(results) // LINE_BYTES * LINE_BYTES)


def emit_streaming(
    k: CpuKernel,
    loop: Fused,
    first: Scalar,
    last: Scalar,
    outputs: Sequence[tuple[Memory, Coordinates]],
    element: Callable[[], Sequence[Scalar]],
    reads: Sequence[Read] = (),
    tried: bool = True,
) -> None:
    """Run `loop` over first … last; `element` gives the outputs' values at the current position.

    `first` must be a multiple of LINE_BYTES elements, as the parallel ranges of kernels are. Lines that begin anywhere
    have some elements before the first whole piece. Where `element` does more than compute, nothing may be `tried`.
    """
    if not is_aligned(loop, outputs):
        begin = _first_aligned(k, loop, first, last, outputs[0])
        _store_each(k, loop, first, begin, outputs, element)
        first = begin
    length = piece_length([m.aval.dtype for m, _ in outputs])
    pieces = [k.scratch(length, m.aval.dtype) for m, _ in outputs]
    size = k.const(length, INDEX)
    whole = first + k.op("arith.muli", [k.op("arith.divui", [last - first, size], INDEX), size], INDEX)
    fetched = [
        r for r in reads
        if is_large(r.memory.aval)
        and is_static(r.place)
        and follows(linearize(r.place, r.memory.aval.shape), loop)
    ]  # fmt: skip

    def piece(start: Scalar, *waits: Scalar) -> list[Scalar]:
        with k.at_position(loop, start):
            for r in fetched:
                now = k.index(linearize(r.place, r.memory.aval.shape))
                prefetch(k, r.memory, now, r.ahead or AHEAD * length, length, r.soon)
            targets = [(m, k.index(linearize(place, m.aval.shape))) for m, place in outputs]

        found = _compute(k, loop, start, size, pieces, element, waits)
        for (memory, offset), scratch in zip(targets, pieces):
            copy_out(k, scratch, memory, offset, length)
        return found

    k.loop(None, first, whole, piece, [k.const(0, INDEX)] if tried and usual.is_tried(k) else [], step=length)
    _store_each(k, loop, whole, last, outputs, element)


def _first_aligned(
    k: CpuKernel, loop: Fused, first: Scalar, last: Scalar, output: tuple[Memory, Coordinates]
) -> Scalar:  # fmt: skip
    """From where on a line of memory begins with the loop, or the end of the loop."""
    memory, place = output
    with k.at_position(loop, first):
        at = k.index(linearize(place, memory.aval.shape))
    before = (k.const(0, INDEX) - at) & (LINE_BYTES // memory.aval.dtype.size - 1)
    return k.op("arith.minui", [first + before, last], INDEX)


def _compute(
    k: CpuKernel, loop: Fused, start: Scalar, size: Scalar, pieces: Sequence[Memory],
    element: Callable[[], Sequence[Scalar]], waits: Sequence[Scalar],
) -> list[Scalar]:  # fmt: skip
    """Compute the outputs' values from `start` on into L1; with `waits`, as `usual.fill` does."""

    def compute(at: Scalar) -> None:
        with k.at_position(loop, start + at):
            for memory, x in zip(pieces, element()):
                k.write(x, memory, at)

    if waits:
        return [usual.fill(k, size, compute, *waits)]
    k.loop(None, k.const(0, INDEX), size, compute)
    return []


def _emit_usual(
    k: CpuKernel, loop: Fused, first: Scalar, last: Scalar, outputs: Sequence[tuple[Memory, Coordinates]],
    element: Callable[[], Sequence[Scalar]],
) -> None:  # fmt: skip
    """Run `loop` over first … last in pieces, each of which is computed into L1 and copied from there: its operands
    may lie where it goes."""
    length = max(LINE_BYTES, USUAL_BYTES // sum(m.aval.dtype.size for m, _ in outputs) // LINE_BYTES * LINE_BYTES)
    pieces = [k.scratch(length, m.aval.dtype) for m, _ in outputs]

    def piece(start: Scalar, *waits: Scalar) -> list[Scalar]:
        end = k.op("arith.minui", [start + length, last], INDEX)
        found = _compute(k, loop, start, end - start, pieces, element, waits)
        k.loop(loop, start, end, lambda at: copy(at - start))
        return found

    def copy(at: Scalar) -> None:
        for (memory, place), scratch in zip(outputs, pieces):
            raw = k.emit("memref.load", [scratch.memref, at], [k.storage(memory.aval.dtype)]).result
            k.emit("memref.store", [raw, memory.memref, k.index(linearize(place, memory.aval.shape))], [])

    k.loop(loop, first, last, piece, [k.const(0, INDEX)], step=length)


def emit_line(
    k: CpuKernel,
    loop: Fused,
    first: Scalar,
    last: Scalar,
    outputs: Sequence[tuple[Memory, Coordinates]],
    element: Callable[[], Sequence[Scalar]],
    reads: Sequence[Read] = (),
    width: int = 0,
    tried: bool = True,
    past: bool = True,
) -> None:
    """As `emit_streaming` where the outputs can stream, else with a store for each element.

    Args:
        width: of a line whose `reads` are far apart (`far_apart`): they are fetched either way.
        tried: the quicker way of usual elements, after which `element` may run again.
        past: that outputs which can stream do.
    """
    if past and can_stream(loop, outputs):
        emit_streaming(k, loop, first, last, outputs, element, reads, tried)
        return
    if width:
        fetch_line(k, loop, first, reads, width)
    run = _emit_usual if tried and usual.is_tried(k) else _store_each
    run(k, loop, first, last, outputs, element)


def _store_each(
    k: CpuKernel,
    loop: Fused,
    first: Scalar,
    last: Scalar,
    outputs: Sequence[tuple[Memory, Coordinates]],
    element: Callable[[], Sequence[Scalar]],
) -> None:
    """Run `loop` over first … last, with a store for each element."""

    def store(_: Scalar) -> None:
        for x, (memory, place) in zip(element(), outputs):
            k.store(x, memory, place)

    k.loop(loop, first, last, store)


def prefetch(
    k: CpuKernel, memory: Memory, offset: Scalar, ahead: int | Scalar, count: int, soon: bool = True
) -> None:  # fmt: skip
    """Ask for `count` elements, `ahead` elements after `offset`; at the end of the operand, for its last.

    Args:
        soon: whether into L1, and not only into L2.
    """
    last = k.const(max(memory.aval.size - count, 0), INDEX)
    first = k.op("arith.minui", [offset + ahead, last], INDEX)
    k.loop(
        None, k.const(0, INDEX), k.const(min(count, memory.aval.size), INDEX),
        lambda j: _ask_for(k, memory, first + j, soon), step=LINE_BYTES // memory.aval.dtype.size,
    )  # fmt: skip


def prefetch_line(k: CpuKernel, memory: Memory, offset: Scalar, soon: bool = True) -> None:
    """Prefetch the cache line of an element; past the end of the operand, that of its last element.

    Args:
        soon: whether into L1, and not only into L2.
    """
    _ask_for(k, memory, k.op("arith.minui", [offset, k.const(memory.aval.size - 1, INDEX)], INDEX), soon)


def _ask_for(k: CpuKernel, memory: Memory, at: Scalar, soon: bool = True) -> None:
    """Prefetch the cache line of an element, which must exist."""
    ir = mlir.ir
    hint = ir.IntegerAttr.get(ir.IntegerType.get_signless(32, k.context), 3 if soon else 2)
    no, yes = (ir.BoolAttr.get(b, k.context) for b in (False, True))
    k.emit("memref.prefetch", [memory.memref, at], [], isWrite=no, localityHint=hint, isDataCache=yes)


def copy_out(k: CpuKernel, source: Memory, target: Memory, offset: Scalar, count: int) -> None:
    """`count` elements from L1 to `offset`, past the caches."""
    ir = mlir.ir
    size = source.aval.dtype.size
    lanes = LINE_BYTES // size
    vector = ir.VectorType.get([lanes], k.storage(source.aval.dtype), loc=k.location)
    alignment = ir.IntegerAttr.get(ir.IntegerType.get_signless(64, k.context), LINE_BYTES)
    past = ir.BoolAttr.get(True, k.context)

    def line(j: Scalar) -> None:
        x = k.emit("vector.load", [source.memref, j], [vector], alignment=alignment).result
        k.emit("vector.store", [x, target.memref, offset + j], [], nontemporal=past, alignment=alignment)

    k.loop(None, k.const(0, INDEX), k.const(count, INDEX), line, step=lanes)

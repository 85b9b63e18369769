"""Streaming stores: results too large for the caches go to memory past them.

An ordinary store first reads the line that it overwrites. Here a piece of the result is computed
into L1 by plain scalar loops, which LLVM vectorizes, and leaves from there by non-temporal vector
stores; that saves a third of the traffic of a kernel that reads as much as it writes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from smelt.backends.lowering import Fused, Place
from smelt.ir import mlir
from smelt.ir.index import Atom, linearize
from smelt.ir.scalar import INDEX, Scalar

from .kernel import CpuKernel, Memory

#: Outputs of at least this many bytes are streamed: more than the caches of a core hold.
STREAM_BYTES = 16 << 20
#: Bytes of L1 for the piece under way, all outputs together: short, so that computing the next piece
#: overlaps with the stores of this one.
PIECE_BYTES = 1 << 10
#: Bytes of a non-temporal store; buffers are aligned to it.
LINE_BYTES = 64


def can_stream(loop: Fused, outputs: Sequence[tuple[Memory, Place]]) -> bool:
    """Whether every output is large, contiguous along `loop`, and aligned wherever the loop starts."""
    if not outputs or not loop.variables:
        return False
    inner = dict(loop.strides)
    for memory, place in outputs:
        aval = memory.aval
        if aval.nbytes < STREAM_BYTES or aval.dtype.is_complex:
            return False
        lanes = LINE_BYTES // aval.dtype.size
        index = linearize(place, aval.shape)
        if index.const % lanes:
            return False
        for name, extent in loop.variables:
            if extent > 1 and index.coefficient(Atom("var", (name,), 0, extent - 1)) != inner[name]:
                return False
        for atom, coefficient in index.terms:
            if atom.kind != "var" or (atom.args[0] not in inner and coefficient % lanes):
                return False
    return True


def emit_streaming(
    k: CpuKernel,
    loop: Fused,
    first: Scalar,
    last: Scalar,
    outputs: Sequence[tuple[Memory, Place]],
    element: Callable[[], Sequence[Scalar]],
) -> None:
    """Run `loop` over first … last; `element` gives the outputs' values at the current position.

    `first` must be a multiple of LINE_BYTES elements, as the parallel ranges of kernels are.
    """
    widest = max(m.aval.dtype.size for m, _ in outputs)
    length = max(LINE_BYTES, PIECE_BYTES // widest // len(outputs) // LINE_BYTES * LINE_BYTES)
    pieces = [k.scratch(length, m.aval.dtype) for m, _ in outputs]

    def piece(start: Scalar) -> None:
        end = k.op("arith.minui", [start + length, last], INDEX)

        def compute(at: Scalar) -> None:
            offset = at - start
            for memory, x in zip(pieces, element()):
                k.write(x, memory, offset)

        k.loop(loop, start, end, compute)
        k.bind(loop, start)
        count = end - start
        for (memory, place), scratch in zip(outputs, pieces):
            _copy_out(k, scratch, memory, k.index(linearize(place, memory.aval.shape)), count)

    k.loop(None, first, last, piece, step=length)


def _copy_out(k: CpuKernel, source: Memory, target: Memory, offset: Scalar, count: Scalar) -> None:
    """`count` elements from L1 to `offset`, whole lines past the caches, the rest by ordinary stores."""
    ir = mlir.ir
    size = source.aval.dtype.size
    lanes = LINE_BYTES // size
    element = k.storage(source.aval.dtype)
    vector = ir.VectorType.get([lanes], element, loc=k.location)
    alignment = ir.IntegerAttr.get(ir.IntegerType.get_signless(64, k.context), LINE_BYTES)
    whole = k.op("arith.muli", [k.op("arith.divui", [count, k.const(lanes, INDEX)], INDEX), k.const(lanes, INDEX)], INDEX)

    def line(j: Scalar) -> None:
        x = k.emit("vector.load", [source.memref, j], [vector], alignment=alignment).result
        past = ir.BoolAttr.get(True, k.context)
        k.emit("vector.store", [x, target.memref, offset + j], [], nontemporal=past, alignment=alignment)

    def rest(j: Scalar) -> None:
        raw = k.emit("memref.load", [source.memref, j], [element]).result
        k.emit("memref.store", [raw, target.memref, offset + j], [])

    k.loop(None, k.const(0, INDEX), whole, line, step=lanes)
    k.loop(None, whole, count, rest)

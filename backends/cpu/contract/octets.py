"""Numbers that are put together from bytes, as of weights in three, five or six bits: a vector of them takes two loads,
and one step that brings all bytes to their places.

::

    b[3 i] | b[3 i + 1] << 8 | b[3 i + 2] << 16

where byte n of an array of words is itself ``w[n / 4] >> 8 (n % 4)``.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from smelt.backends.contraction import Operand, Product, only_moves
from smelt.ir import dtypes, mlir
from smelt.ir.aval import Aval
from smelt.ir.builder import Value
from smelt.ir.errors import KernelError
from smelt.ir.index import Atom, Coordinates, Index, linearize
from smelt.ir.ops.compare import BitwiseOr, LeftShift, RightShift
from smelt.ir.ops.conversion import Convert
from smelt.ir.scalar import Scalar
from smelt.passes.kernels.analysis import collect_reads, operand_reads
from smelt.passes.kernels.attention_masks import position

from ..kernel import CpuKernel, Memory

#: Bytes of a number, and of those that a vector of numbers is made of, at most.
WIDTH, MOST_BYTES = 4, 128
#: Ops between a number and its bytes, at most.
MOST_OPS = 64


class Octet(NamedTuple):
    """A byte of an array."""

    array: Value
    offset: Index


#: The bytes of a number, the lowest first. None: zero.
Octets = tuple["Octet | None", ...]


class _UnknownError(Exception):
    """A number is no row of bytes."""


def provide_octets(k: CpuKernel, product: Product, operand: Operand) -> None:
    """Let a kernel that reads an operand in vectors alone take numbers of neighbouring bytes by one load."""
    if k.checks is not None:
        return
    bytes_of: dict[Value, Memory] = {}
    for v, places in collect_reads(product.body.ops, [(operand.value, operand.access.place)]).items():
        if v.owner is not None and isinstance(v.owner.op, BitwiseOr) and all(neighbours(v, at) for at in places):
            k.provided[v] = functools.partial(_loaded, k, v, bytes_of)


def neighbours(v: Value, place: Coordinates) -> tuple[Octet, int] | None:
    """The lowest byte of an element and how many follow each other, the others being zero; None of another element."""
    try:
        found = octets(v, place, iter(range(MOST_OPS)))
    except _UnknownError:
        return None
    count = next((i for i, octet in enumerate(found) if octet is None), WIDTH)
    if count < 2 or any(found[count:]):
        return None
    first = found[0]
    assert first is not None
    follow = (found[i] == Octet(first.array, first.offset + i) for i in range(count))
    return (first, count) if all(follow) else None


def octets(v: Value, place: Coordinates, steps: Iterator[int]) -> Octets:
    """The bytes of an unsigned integer, of eight or 32 bits. Raises _UnknownError."""
    if next(steps, None) is None or v.dtype not in (dtypes.uint8, dtypes.uint32):
        raise _UnknownError
    nothing, size, op = (None,) * WIDTH, v.dtype.size, v.owner
    if op is None:
        offset = linearize(place, v.shape) * size
        return tuple(Octet(v, offset + i) for i in range(size)) + nothing[size:]
    if only_moves(op):
        [(u, at)] = operand_reads(op, place)
        return octets(u, at, steps)
    if isinstance(op.op, Convert):
        return octets(op.operands[0], place, steps)[:size] + nothing[size:]
    if not isinstance(op.op, (BitwiseOr, LeftShift, RightShift)) or size != WIDTH:
        raise _UnknownError
    x, y = op.operands
    found = octets(x, place, steps)
    if isinstance(op.op, BitwiseOr):
        pairs = list(zip(found, octets(y, place, steps)))
        if any(a is not None and b is not None for a, b in pairs):
            raise _UnknownError
        return tuple(a or b for a, b in pairs)
    return _shifted(found, position(y, place), isinstance(op.op, LeftShift))


def _shifted(found: Octets, by: Index | None, left: bool) -> Octets:
    """The bytes of a number that is shifted by `by` bits."""
    if by is None or by.const % 8 or any(c % 8 for _, c in by.terms) or by.lo < 0 or by.hi >= 8 * WIDTH:
        raise _UnknownError
    count, nothing = Index(by.const // 8, [(a, c // 8) for a, c in by.terms]), (None,) * WIDTH
    if count.is_constant:
        n = count.const
        return (nothing[:n] + found[: WIDTH - n]) if left else found[n:] + nothing[:n]
    first = found[0]
    whole = first is not None and all(o == Octet(first.array, first.offset + i) for i, o in enumerate(found))
    if left or first is None or not whole:
        raise _UnknownError
    return (Octet(first.array, _rejoined(first.offset + count)), *found[1:])


def _rejoined(index: Index) -> Index:
    """An index with n (x / n) + x % n as x."""
    found = index
    for atom, step in index.terms:
        if atom.kind == "mod":
            inner, n = atom.args
            if index.coefficient(other := Atom("div", (inner, n), 0, 0)) == step * n:
                found = found - Index(0, [(atom, step), (other, step * n)]) + inner * step
    return found


def _loaded(k: CpuKernel, v: Value, bytes_of: dict[Value, Memory], place: Coordinates) -> Scalar:
    """A vector of numbers that are neighbouring bytes."""
    if not k.reads_lanes:  # the same number in all of them
        without = k.provided.pop(v)
        try:
            return k.value(v, place)
        finally:
            k.provided[v] = without
    found = neighbours(v, place)
    assert found is not None
    (array, offset), width = found
    steps = k.steps_of(offset)
    first, count = int(steps.min()), int(np.ptp(steps)) + width
    if count > MOST_BYTES:
        raise KernelError(f"lanes {count} bytes apart")
    if array not in bytes_of:
        bytes_of[array] = _as_bytes(k, k.memory[array])
    lanes = [[step - first + min(i, width - 1) for i in range(WIDTH)] for step in steps.tolist()]
    # All of them lie in two loads, the second of which ends where they do.
    size = 1 << (min(count, MOST_BYTES // 2).bit_length() - 1)
    byte = mlir.ir.IntegerType.get_signless(8, k.context)
    line = mlir.ir.VectorType.get([size], byte, loc=k.location)
    start, end = (k.load_stored(bytes_of[array], k.index(offset + at), line) for at in (first, first + count - size))
    chosen = k.shuffled(start, end, [i if i < size else i + 2 * size - count for lane in lanes for i in lane])
    kind = k.type(dtypes.uint32)
    result = Scalar(k, k.emit("vector.bitcast", [chosen], [kind]).result, dtypes.uint32)
    return result & (256**width - 1) if width < WIDTH else result


def _as_bytes(k: CpuKernel, memory: Memory) -> Memory:
    """An array's bytes."""
    aval = Aval((memory.aval.nbytes,), dtypes.uint8)
    saved, k.ip = k.ip, mlir.ir.InsertionPoint.at_block_begin(k.entry)
    with k.vectors(0):
        address = k.convert(k.address_of(memory.memref), dtypes.int64)
        found = Memory(k.at_address(address, k.buffer_type(aval)), aval)
    k.ip = saved
    return found

"""Which tiles of keys the rows of a threadgroup see, where positions decide that alone; or which rows see its keys.

What is hidden from all of them is not read: keys and values there that are not finite leave no trace.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from smelt.backends.lowering import Fused
from smelt.ir.index import Index
from smelt.ir.scalar import INDEX, Scalar

from ...kernel import GpuKernel
from .positions import summed


@dataclass(frozen=True)
class KeyRange:
    """The tiles of keys from `first` to before `end`; None: from the beginning, to the end.

    Attributes:
        heads: so many times, one behind the other, `tiles` of them each.
    """

    first: Scalar | None = None
    end: Scalar | None = None
    heads: int = 1
    tiles: int = 0


def hides_later(bounds: Sequence[Index], key: str) -> bool:
    """Whether there are later keys that only later rows see, as a causal mask has it."""
    return any(c < 0 for i in bounds for a, c in i.terms if a.args == (key,))


def key_range(
    k: GpuKernel, bounds: Sequence[Index], rows: Fused, depth: Fused, row: Scalar, size: int, tile: int
) -> KeyRange:
    """The tiles that rows from `row` on see.

    Args:
        bounds: none of these indices is negative where a row sees a key. depth: the loop of the keys, behind those of
            heads, perhaps. size: rows of a threadgroup. tile: keys of a tile.
    """
    name, keys = depth.variables[-1]
    heads = depth.extent // keys
    if heads > 1 and keys % tile:  # a tile is of two heads
        return KeyRange()
    first: Scalar | None = None
    end: Scalar | None = None
    for bound in bounds:
        (sign,) = (c for a, c in bound.terms if a.args == (name,))
        rest = Index(bound.const, [(a, c) for a, c in bound.terms if a.args != (name,)])
        shift = max(0, -rest.lo)
        most = _most(k, rest + shift, rows, row, size)
        if most is None:
            continue
        if sign < 0:  # keys up to `most - shift` are seen
            with k.named("seen_keys"):
                count = k.op("arith.maxui", [most + 1, k.const(shift, INDEX)], INDEX) - shift if shift else most + 1
                count = k.op("arith.minui", [count, k.const(keys, INDEX)], INDEX)
            with k.named("end"):
                tiles = k.op("arith.divui", [count + (tile - 1), k.const(tile, INDEX)], INDEX)
                end = tiles if end is None else k.op("arith.minui", [end, tiles], INDEX)
        elif shift:  # keys from `shift - most` on are
            with k.named("first_key"):
                hidden = k.const(shift, INDEX) - k.op("arith.minui", [most, k.const(shift, INDEX)], INDEX)
            with k.named("first"):
                tiles = k.op("arith.divui", [hidden, k.const(tile, INDEX)], INDEX)
                first = tiles if first is None else k.op("arith.maxui", [first, tiles], INDEX)
    return KeyRange(first, end, heads, keys // tile)


def _most(k: GpuKernel, index: Index, rows: Fused, row: Scalar, size: int) -> Scalar | None:
    """The largest value of an index, which is not negative, among `size` rows; None where it is not known."""
    names = {a.args[0] for a in index.atoms()} & set(rows.names)
    if not names:
        return k.index(index)
    inner, extent = rows.variables[-1]
    if names != {inner}:
        return None
    with k.named("last_row"):
        last = summed(k, row, size - 1)
        if rows.extent % size:
            last = k.op("arith.minui", [last, k.const(rows.extent - 1, INDEX)], INDEX)
    (rising,) = (c > 0 for a, c in index.terms if a.args == (inner,))
    with k.named("most"), k.at_position(rows, last if rising else row):
        most = k.index(index)
    if extent == rows.extent or extent % size == 0:
        return most
    # Where rows of two heads meet, some row is anywhere.
    with k.named("heads"):
        heads = [k.op("arith.divui", [x, k.const(extent, INDEX)], INDEX) for x in (row, last)]
    with k.named("most"):
        return k.select(heads[0].eq(heads[1]), most, k.const(index.hi, INDEX))

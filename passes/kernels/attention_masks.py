"""Which keys a mask leaves to a query, where positions alone decide: so that a kernel need not look at the others.

A mask is a `select` on comparisons of positions, or a sum with one::

    %seen = "smelt.greater_equal"(%queries, %keys)         // iotas, moved and shifted
    %x = "smelt.select"(%seen, %scores, %hidden)           // %hidden: a constant, -inf or about as little

Here a key is seen only if queries - keys ≥ 0. What is hidden has the weight 0 then, if its row has anything to be seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from smelt.ir.builder import OpView, Value
from smelt.ir.index import Atom, Coordinates, Index
from smelt.ir.kinds import Comparison
from smelt.ir.ops.compare import BitwiseAnd, BitwiseInvert, BitwiseOr, LogicalAnd, LogicalNot, LogicalOr, Select
from smelt.ir.ops.constants import Constant
from smelt.ir.ops.conversion import Convert
from smelt.ir.ops.movement import Iota

from .analysis import is_pointwise, operand_reads

#: What is added to scores, or stands in their place, hides them from here on: exp(least - maximum) is 0.
HIDES = -1e30
#: Index arithmetic of a kernel has 32 bits.
MOST = 2**30
#: Ops that are looked through for a condition, or for a position, at most. What several ops read is met once for each.
MOST_OPS = 64


@dataclass(frozen=True)
class Seen:
    """What holds wherever a key is seen.

    Attributes:
        bounds: none of these indices is negative there.
        is_all: whether a key is seen wherever none is negative.
    """

    bounds: tuple[Index, ...] = ()
    is_all: bool = False

    def __and__(self, other: Seen) -> Seen:
        return Seen((*self.bounds, *other.bounds), self.is_all and other.is_all)


def seen_keys(logits: Value, place: Coordinates, scores: Value, key: Atom) -> tuple[Index, ...]:
    """Indices none of which is negative where a key can have a weight other than 0.

    Args:
        logits, place: of which the softmax over the keys is taken, and where they are read.
        scores: of which they are made. key: the variable of the keys, with the coefficient 1 or -1 in each index.
    """
    found, value, is_finite = Seen((), True), logits, False
    while value.owner is not None and is_pointwise(value.owner):
        hidden, onwards = hides(value.owner, place), _moved(value.owner, place)
        if hidden is not None:
            seen, value, least = hidden
            found, is_finite = found & seen, is_finite or least != float("-inf")
        elif onwards is not None:
            value, place = onwards
        else:
            break
    if is_finite and not (found.is_all and sees_something(found.bounds, key) and is_made_of(value, scores)):
        return ()
    return _useful(found.bounds, key)


def _moved(op: OpView, place: Coordinates) -> tuple[Value, Coordinates] | None:
    """What an op moves or converts, and from where."""
    if len(op.operands) != 1 or (op.op.flops and not isinstance(op.op, Convert)):
        return None
    reads = operand_reads(op, place)
    return reads[0] if len(reads) == 1 else None


def is_made_of(value: Value, scores: Value) -> bool:
    """Whether scores and numbers alone make a value, so that nothing else in it hides keys."""
    pending, seen = [value], {value, scores}
    while pending:
        v = pending.pop()
        number = constant_of(v)
        if v == scores or (number is not None and abs(number) < -HIDES):
            continue
        if number is not None or v.owner is None or not is_pointwise(v.owner):
            return False
        pending += [x for x in v.owner.operands if x not in seen]
        seen.update(v.owner.operands)
    return True


def hides(op: OpView, place: Coordinates) -> tuple[Seen, Value, float] | None:
    """What is seen through a mask, where the mask stands; and the least number that it has."""
    if isinstance(op.op, Select):
        condition, *both = op.operands
        for at, value in enumerate(both):
            least = constant_of(value)
            if least is not None and least <= HIDES:
                return seen_where(condition, place, at == 1), both[1 - at], least
    if op.op.formula == "x + y":
        for at, value in enumerate(op.operands):
            mask = _mask(value, place)
            if mask is not None:
                return mask[0], op.operands[1 - at], mask[1]
    return None


def _mask(value: Value, place: Coordinates) -> tuple[Seen, float] | None:
    """A select of a number that hides and one that does not, to be added."""
    owner = value.owner
    while owner is not None and is_pointwise(owner) and not isinstance(owner.op, Select):
        onwards = _moved(owner, place)
        if onwards is None:
            return None
        value, place = onwards
        owner = value.owner
    if owner is None or not isinstance(owner.op, Select):
        return None
    numbers = [constant_of(v) for v in owner.operands[1:]]
    for at, least in enumerate(numbers):
        other = numbers[1 - at]
        if least is not None and least <= HIDES and other is not None and abs(other) < -HIDES:
            return seen_where(owner.operands[0], place, at == 1), least
    return None


def constant_of(value: Value) -> float | None:
    """The number that every element of a value is."""
    while value.owner is not None and is_pointwise(value.owner) and len(value.owner.operands) == 1:
        if value.owner.op.flops and not isinstance(value.owner.op, Convert):
            return None
        value = value.owner.operands[0]
    if value.owner is None or not isinstance(value.owner.op, Constant):
        return None
    number = value.owner.attrs["value"]
    return float(number) if isinstance(number, (int, float)) else None


def seen_where(condition: Value, place: Coordinates, holds: bool = True, steps: Iterator[int] | None = None) -> Seen:
    """What is known wherever a condition at a place is as `holds` says.

    Args:
        steps: one for each op that may still be looked through.
    """
    steps = iter(range(MOST_OPS)) if steps is None else steps
    owner = condition.owner
    if next(steps, None) is None or owner is None or not is_pointwise(owner):
        return Seen()
    kind, operands = type(owner.op), owner.operands
    if kind in (LogicalNot, BitwiseInvert):
        return seen_where(operands[0], place, not holds, steps)
    if kind in ((LogicalAnd, BitwiseAnd) if holds else (LogicalOr, BitwiseOr)):
        return seen_where(operands[0], place, holds, steps) & seen_where(operands[1], place, holds, steps)
    if isinstance(owner.op, Comparison):
        x, y = (position(v, place) for v in operands)
        margin = None if x is None or y is None else owner.op.margin(x, y)
        if margin is None:
            return Seen()
        return Seen((margin if holds else -1 - margin,), True)
    if len(operands) == 1 and not owner.op.flops:
        reads = operand_reads(owner, place)
        if len(reads) == 1:
            return seen_where(*reads[0], holds, steps)
    return Seen()


def position(value: Value, place: Coordinates, steps: Iterator[int] | None = None) -> Index | None:
    """An integer made of positions and constants, as an index; None where it is anything else, or might wrap.

    Args:
        steps: one for each op that may still be looked through.
    """
    steps = iter(range(MOST_OPS)) if steps is None else steps
    found = None if next(steps, None) is None else _position(value, place, steps)
    if found is None or value.dtype.kind not in "iu":
        return None
    least, most = (0, 2**value.dtype.bits) if value.dtype.kind == "u" else (
        -(2 ** (value.dtype.bits - 1)), 2 ** (value.dtype.bits - 1)
    )  # fmt: skip
    return found if least <= found.lo and found.hi < most else None


def _position(value: Value, place: Coordinates, steps: Iterator[int]) -> Index | None:
    owner = value.owner
    if owner is None or not is_pointwise(owner):
        return None
    operands = owner.operands
    if isinstance(owner.op, Iota):
        return place[owner.attrs["axis"]]
    if isinstance(owner.op, Constant):
        number = owner.attrs["value"]
        return Index(number) if isinstance(number, int) else None
    if owner.op.formula in ("x + y", "x - y"):
        x, y = (position(v, place, steps) for v in operands)
        if x is None or y is None:
            return None
        return x + y if owner.op.formula == "x + y" else x - y
    if owner.op.formula == "x * y":
        x, y = sorted((position(v, place, steps) for v in operands), key=lambda i: i is None or not i.is_constant)
        return None if x is None or y is None or not x.is_constant else y * x.const
    if owner.op.formula == "-x":
        x = position(operands[0], place, steps)
        return None if x is None else -x
    if len(operands) == 1 and (isinstance(owner.op, Convert) or not owner.op.flops):
        reads = operand_reads(owner, place)
        return position(*reads[0], steps) if len(reads) == 1 else None
    return None


def _useful(bounds: Sequence[Index], key: Atom) -> tuple[Index, ...]:
    """Those that say something about keys, and can be computed."""
    return tuple(
        dict.fromkeys(
            i for i in bounds
            if abs(i.coefficient(key)) == 1
            and all(atom.kind == "var" for atom in i.atoms())
            and max(abs(i.lo), abs(i.hi)) < MOST
        )
    )  # fmt: skip


def sees_something(bounds: Sequence[Index], key: Atom) -> bool:
    """Whether some key satisfies all bounds, wherever the other variables stand."""
    alone = Index(0, [(key, 1)])
    first, last = [Index(0)], [Index(key.hi)]
    for bound in bounds:
        coefficient = bound.coefficient(key)
        if coefficient == 1:  # key >= alone - bound
            first.append(alone - bound)
        elif coefficient == -1:
            last.append(bound + alone)
        elif coefficient or bound.lo < 0:
            return False
    return all((b - a).lo >= 0 for a in first for b in last)

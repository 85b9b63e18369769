"""Operands of contractions that are expressions: what a kernel computes while it reads them.

A contraction reads each element of its operands many times, so these usually lie in memory. But if an
operand is made from fewer bytes than it has itself, reading those bytes is cheaper, and the operand needs
no memory: a cast from a narrower dtype, a look-up, weights that are unpacked from words of four-bit
numbers, scaled and shifted. Such operands are computed where the contraction reads them::

    %0 = "smelt.convert"(%w) {dtype = f32} : (tensor<512x512xi8>) -> tensor<512x512xf32>
    %1 = "smelt.mul"(%0, %scales) : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
    %2 = "smelt.dot_general"(%x, %1) ...

reads a byte and not four for each element, if %scales is a broadcast of few numbers.
"""

from __future__ import annotations

from collections.abc import Callable

from smelt.ir.builder import Function, OpView, Value

from .analysis import is_pointwise, users_of

#: Additions that an element may cost, as a kernel computes it once for each tile of the result.
MOST_FLOPS = 20.0
#: What costs more than this for fewer elements than the operand has is computed once, and read.
CHEAP = 4.0
#: Part of an operand's bytes that places to look up may add.
PLACES = 1 / 8
#: Reading so small a part of an operand's bytes more is no reason for a kernel of its own.
FEW = 1 / 16
#: Additions for each element of an operand that are no reason to leave what others read, too, in memory.
AGAIN = 1 / 256


def computed_operands(function: Function, is_kernel: Callable[[OpView], bool]) -> set[Value]:
    """The values of a function that contractions compute while they read them, and which need no memory.

    Args:
        is_kernel: whether an op is a contraction that is a kernel, and not left to a library.
    """
    search = _Search(function, is_kernel)
    found: set[Value] = set()
    for op in function.ops:
        if is_kernel(op):
            for operand in op.operands:
                found |= search.expression(behind_movement(operand))
    return found


def _is_free(op: OpView) -> bool:
    return is_pointwise(op) and op.op.flops == 0


def behind_movement(v: Value) -> Value:
    """The value that has an operand's elements, perhaps in other places."""
    while v.owner is not None and _is_free(v.owner) and len(v.owner.operands) == 1:
        v = v.owner.operands[0]
    return v


def _only_finds(v: Value) -> bool:
    """Whether the elements of a value are elements of another one."""
    return v.owner is not None and v.owner.op.kind in ("movement", "gather")


class _Search:
    """Looks for operands that are worth computing again."""

    def __init__(self, function: Function, is_kernel: Callable[[OpView], bool]):
        self.position = {op: i for i, op in enumerate(function.ops)}
        self.users = users_of(function)
        self.returned = set(function.returns)
        #: values that not only contractions read, if need be through movement
        self.read_otherwise: set[Value] = set(function.returns)
        for op in reversed(function.ops):
            contracts = is_kernel(op) or (_is_free(op) and op.results[0] not in self.read_otherwise)
            if not contracts:
                self.read_otherwise.update(op.operands)

    def expression(self, root: Value) -> set[Value]:
        """The values that are computed where `root` is read; none if it had better lie in memory."""
        if root.owner is None or not is_pointwise(root.owner):
            return set()
        sources, computed = self._sources(root)
        if root in self.read_otherwise:
            return computed if self._is_next_to_nothing(root, sources, computed) else set()
        looked_up = all(_only_finds(v) for v in computed if v.aval.size == root.aval.size)
        most = root.aval.nbytes * (1 + PLACES) if looked_up else root.aval.nbytes - 1
        # What groups of elements share is computed outside of the innermost loop.
        flops = sum(v.owner.op.flops * _part(v, root) for v in computed if v.owner is not None)
        return computed if sum(sources.values()) <= most and flops <= MOST_FLOPS else set()

    def _is_next_to_nothing(self, root: Value, sources: dict[Value, int], computed: set[Value]) -> bool:
        """Whether all that read `root` had better compute it, as the product of two vectors: it is made of far fewer
        elements, by next to no additions."""
        flops = sum(v.owner.op.flops * _part(v, root) for v in computed if v.owner is not None)
        return flops <= CHEAP and sum(sources.values()) <= root.aval.nbytes * FEW and root not in self.returned

    def _cone(self, root: Value) -> list[Value]:
        """`root` and the elementwise values that only it is made of, in the order of the function; others may read what
        takes nothing, or next to nothing, to compute again."""
        inside, pending = {root}, [root]
        while pending:
            owner = pending.pop().owner
            assert owner is not None
            for v in owner.operands:
                made = v.owner is not None and is_pointwise(v.owner) and len(v.owner.results) == 1
                if v in inside or not made or v.owner is None:
                    continue
                again = v.owner.op.flops * v.aval.size <= root.aval.size * AGAIN
                if again or all(op is not None and op.results[0] in inside for op in self.users[v]):
                    inside.add(v)
                    pending.append(v)
        return sorted(inside, key=lambda v: self.position[v.owner])  # type: ignore[index]

    def _sources(self, root: Value) -> tuple[dict[Value, int], set[Value]]:
        """The values read to compute `root`, with the most bytes of each; and the intermediate values."""
        sources: dict[Value, dict[Value, int]] = {}
        computed: dict[Value, set[Value]] = {}
        for v in self._cone(root):
            owner = v.owner
            assert owner is not None
            below: dict[Value, int] = {}
            for x in owner.operands:
                below |= sources[x] if x in sources else {x: _read(x, root)}
            cheap = owner.op.flops <= CHEAP or v.aval.size >= root.aval.size
            most = _read(v, root) + root.aval.nbytes * FEW
            if v is root or owner.op.flops == 0 or (cheap and sum(below.values()) <= most):
                sources[v] = below
                computed[v] = {v}.union(*(computed.get(x, ()) for x in owner.operands))
            else:
                sources[v], computed[v] = {v: _read(v, root)}, set()
        return sources[root], computed[root]


def _part(v: Value, root: Value) -> float:
    """The elements of a value for each of the root's, one at most."""
    return min(1.0, v.aval.size / max(1, root.aval.size))


def _read(v: Value, root: Value) -> int:
    """The bytes of a value that are read, at most, for one element of each of the root's."""
    return min(v.aval.nbytes, root.aval.size * v.aval.dtype.size)

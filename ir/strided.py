"""Kernels without sizes: which ops of a program are one, and such a kernel as a text and as a module.

A *strided group* is a set of elementwise ops on arrays of one shape, its space, with reductions over its last axes, the
elementwise ops on what these give, and the broadcasts of that back to the space. Nothing in it depends on extents: a
kernel runs over rows, and in a row over columns, and is told where each operand lies by strides. So one kernel serves
all shapes and ranks; views (transposes, slices, broadcasts of what comes from outside) are made before it is called.

Values of a group are *full*, with an element at each row and column, or *row* values, with one for each row.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from json import dumps, loads
from typing import Any, NamedTuple

from . import dtypes, mlir
from .aval import Aval
from .builder import Value, function_type, new_function
from .dialect import context
from .kinds import Elementwise, Reduction
from .op import Op, get
from .plain import PlainError, attrs_of, plain_attrs

#: Of the text.
VERSION = 1
#: The attribute of ``@main`` that makes a module a strided kernel: how each operand lies in a row, a letter each.
ATTRIBUTE = "smelt.strided"
#: One after the other in memory; the same for all columns; a row value.
CONTIGUOUS, REPEATED, ROW = "c", "b", "r"
#: The shapes of full and of row values in a module, which stand for all.
FULL_SHAPE, ROW_SHAPE = (3, 5), (3, 1)
#: What makes a module of a text.
READER = "smelt.ir.strided:module_of"
#: Ops of one group; its operands and results together.
MOST_OPS, MOST_ARRAYS = 256, 64
#: Cost of an op (`Op.rule_cost`) from which on it is worth a kernel of its own.
WORTH = 8.0
_DTYPES = frozenset((dtypes.bool_, *dtypes.REAL))


class Item(NamedTuple):
    """An op of a program on numbered slots, with one result. `joins`: whether it may be in a group."""

    op: Op
    attrs: Mapping[str, Any]
    read: tuple[int, ...]
    slot: int
    joins: bool = True


class StridedGroup:
    """Ops of a program that are one kernel.

    Attributes:
        members: the numbers of its items, in order.
        space: the shape of its full values.
        axes: how many of the last ones are reduced; 0: it has no reductions.
        levels: whether its values are full, by slot.
        operands: slots that it reads, and whether these are full. results: slots that others read of it.
        gives: whether these are full.
        has_kernel: whether its kernel has run.
        text: the kernel, but for how its operands lie in a row. Equal for groups that have the same kernel.
    """

    def __init__(self, space: tuple[int, ...]) -> None:
        self.space, self.axes = space, 0
        self.members: list[int] = []
        self.levels: dict[int, bool] = {}
        self.operands: dict[int, bool] = {}
        self.results: list[int] = []
        self.gives: list[bool] = []
        self.text, self.has_kernel = "", False
        self.ops, self.worth = 0, 0.0

    @property
    def row_shapes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The shapes that row values have: without the reduced axes, and with extents of 1 in their place."""
        kept = self.space[: len(self.space) - self.axes]
        return kept, kept + (1,) * self.axes

    def fits(self, other: StridedGroup) -> bool:
        """Whether the two can be one."""
        few = self.ops + other.ops < MOST_OPS
        return few and self.space == other.space and (self.axes == other.axes or not (self.axes and other.axes))

    def take(self, other: StridedGroup) -> None:
        """Become one with a group that fits."""
        self.axes = self.axes or other.axes
        self.members = sorted([*self.members, *other.members])
        self.levels.update(other.levels)
        self.ops, self.worth = self.ops + other.ops, max(self.worth, other.worth)

    def add(self, i: int, item: Item, full: bool) -> None:
        self.members.append(i)
        self.levels[item.slot] = full
        if item.op.kind != "movement":
            self.ops += 1
            self.worth = max(self.worth, item.op.rule_cost)

    def settle(
        self, items: Sequence[Item], avals: Mapping[int, Aval], readers: Mapping[int, Sequence[int]], single: bool
    ) -> bool:  # fmt: skip
        """Find what it reads and gives, and its text; whether it is worth a kernel.

        Args:
            readers: the items that read a slot; -1 stands for the program's results.
            single: whether any op by itself is.
        """
        if self.ops < 2 and self.worth < WORTH and not single:
            return False
        for i in self.members:
            item = items[i]
            for slot in item.read:
                if slot not in self.levels:
                    self.operands[slot] = item.op.kind == "reduction" or self.levels[item.slot]
        members = set(self.members)
        self.results = [s for s in self.levels if any(i not in members for i in readers.get(s, ()))]
        self.gives = [self.levels[slot] for slot in self.results]
        if not self.results or len(self.operands) + len(self.results) > MOST_ARRAYS:
            return False
        numbers = {slot: n for n, slot in enumerate(self.operands)}
        steps: list[Any] = []
        try:
            for i in self.members:
                item = items[i]
                if item.op.kind == "movement":  # the same elements, read at another level
                    numbers[item.slot] = numbers[item.read[0]]
                    continue
                attrs = {k: v for k, v in item.attrs.items() if k != "axes" or item.op.kind != "reduction"}
                numbers[item.slot] = len(self.operands) + len(steps)
                steps.append(
                    [
                        f"smelt.{item.op.name}",
                        plain_attrs(attrs),
                        [numbers[s] for s in item.read],
                        self.levels[item.slot],
                    ]
                )
        except PlainError:
            return False
        taken = [[avals[slot].dtype.mlir, full] for slot, full in self.operands.items()]
        given = [[numbers[slot], self.levels[slot]] for slot in self.results]
        self.text = dumps([VERSION, taken, steps, given], separators=(",", ":"))
        return True


def strided_groups(
    items: Sequence[Item], avals: Mapping[int, Aval], returned: Collection[int], single: bool = False
) -> list[StridedGroup | int]:  # fmt: skip
    """A program as groups and the numbers of other items, in an order in which it can run.

    Args:
        avals: of all slots.
        returned: the slots that the program returns.
        single: whether an op by itself is worth a kernel, whatever it costs.
    """
    readers: dict[int, list[int]] = {slot: [-1] for slot in returned}
    grouping = _Grouping(items, avals)
    for i, item in enumerate(items):
        for slot in item.read:
            readers.setdefault(slot, []).append(i)
        grouping.place(i)
    found: list[StridedGroup | int] = []
    for part in grouping.finish():
        if isinstance(part, StridedGroup) and not part.settle(items, avals, readers, single):
            found += part.members
        else:
            found.append(part)
    return found


class _Grouping:
    """Groups in the making. Each is open until something outside of it reads one of its values, which has to run
    after the whole group. So groups never wait for each other in a circle."""

    def __init__(self, items: Sequence[Item], avals: Mapping[int, Aval]):
        self._items, self._avals = items, avals
        self._open: dict[int, StridedGroup] = {}  #: by the slots of their values
        self._order: list[StridedGroup | int] = []

    def place(self, i: int) -> None:
        """Let an op join groups, begin one, or stand by itself."""
        item = self._items[i]
        group, full = self._group_of(item)
        for slot in item.read:
            other = self._open.get(slot)
            if other is not None and other is not group:
                self._close(other)
        if group is None:
            self._order.append(i)
        else:
            group.add(i, item, full)
            self._open[item.slot] = group

    def finish(self) -> list[StridedGroup | int]:
        for group in list(dict.fromkeys(self._open.values())):
            self._close(group)
        return self._order

    def _close(self, group: StridedGroup) -> None:
        """Nothing joins it any more: it runs before what comes next."""
        for slot in group.levels:
            del self._open[slot]
        self._order.append(group)

    def _group_of(self, item: Item) -> tuple[StridedGroup | None, bool]:
        """The group of an op, and whether its result is a full value there."""
        op = item.op
        if not item.joins:
            return None, False
        if op.kind == "movement" and item.read:
            return self._group_of_view(item)
        known = [self._avals.get(slot) for slot in (*item.read, item.slot)]
        if not item.read or any(a is None or a.dtype not in _DTYPES or not a.size for a in known):
            return None, False
        if isinstance(op, Elementwise) and not op.sizes:
            return self._group_of_elementwise(item)
        if isinstance(op, Reduction):
            return self._group_of_reduction(item)
        return None, False

    def _group_of_elementwise(self, item: Item) -> tuple[StridedGroup | None, bool]:
        shape = self._avals[item.slot].shape
        found: StridedGroup | None = None
        found_full = True
        for group in dict.fromkeys([self._open[slot] for slot in item.read if slot in self._open]):
            if group.ops >= MOST_OPS:
                continue
            levels = {group.levels[slot] for slot in item.read if slot in group.levels}
            full = shape == group.space
            if levels != {full} or not (full or shape in group.row_shapes):
                continue
            if found is None:
                found, found_full = group, full
            elif full is found_full and found.fits(group):
                found.take(group)
                self._open.update(dict.fromkeys(group.levels, found))
        return found or StridedGroup(shape), found_full

    def _group_of_reduction(self, item: Item) -> tuple[StridedGroup | None, bool]:
        (slot,) = item.read
        shape, axes = self._avals[slot].shape, sorted(item.attrs["axes"])
        kept = len(shape) - len(axes)
        if axes != list(range(kept, len(shape))) or math.prod(shape[kept:]) <= 1:
            return None, False
        group = self._open.get(slot)
        if (
            group is None or group.ops >= MOST_OPS or not group.levels[slot] or group.axes not in (0, len(axes))
        ):  # fmt: skip
            group = StridedGroup(shape)
        group.axes = len(axes)
        return group, False

    def _group_of_view(self, item: Item) -> tuple[StridedGroup | None, bool]:
        """Row values in their other shape, and repeated for all columns, are no work."""
        group = self._open.get(item.read[0])
        if group is None or group.levels[item.read[0]]:
            return None, False
        shape, given = self._avals[item.slot].shape, self._avals[item.read[0]].shape
        if item.op.name == "reshape" and shape in group.row_shapes:
            return group, False
        spread = (1,) * (len(group.space) - len(given)) + given
        if item.op.name == "broadcast" and shape == group.space and spread == group.row_shapes[1]:
            return group, True
        return None, False


def module_of(text: str) -> Any:
    """The module of a kernel: of a group's text, completed by `with_layout`."""
    version, taken, steps, given, layout = loads(text)
    if version != VERSION:
        raise PlainError(f"a strided kernel of version {version}")

    def aval(mlir_name: str, full: bool) -> Aval:
        return Aval(FULL_SHAPE if full else ROW_SHAPE, dtypes.by_mlir(mlir_name))

    with mlir.lock:
        ir = mlir.ir
        module = ir.Module.create(ir.Location.unknown(context()))
        main, arguments, b = new_function(module, "main", [aval(*a) for a in taken], [], public=True)

        def at(v: Value, full: bool) -> Value:
            return b.broadcast_to(v, FULL_SHAPE) if full else v

        values = list(arguments)
        for name, attrs, read, full in steps:
            op = get(name)
            if isinstance(op, Reduction):
                (found,) = b.emit(op, [at(values[read[0]], True)], {**attrs_of(attrs), "axes": (1,)})
                values.append(b.reshape_to(found, ROW_SHAPE))
            else:
                values += b.emit(op, [at(values[i], full) for i in read], attrs_of(attrs))
        results = [at(values[i], full) for i, full in given]
        b.return_(results)
        kind = function_type([v.aval for v in arguments], [v.aval for v in results])
        main.attributes["function_type"] = ir.TypeAttr.get(kind, context())
        main.attributes[ATTRIBUTE] = ir.StringAttr.get(layout, context())
        return module


def with_layout(text: str, layout: str) -> str:
    """A group's text as that of a kernel for operands that lie in a row like this."""
    return f"{text[:-1]},{dumps(layout)}]"

"""A group of ops that one kernel computes: what it reads, and when an op may join it.

A `Group` has loop variables: those of its largest output, and inner ones where it reduces. For each
value that it reads it knows the index expressions. When an op joins, what the op reads is added to these.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Collection, Hashable, Iterable, Sequence

from smelt.ir.builder import OpView, Value
from smelt.ir.index import Atom, Index
from smelt.ir.index import variables as new_variables

from ..extract import inputs_of
from .analysis import Coordinates, is_pointwise, is_row_reduction, operand_reads, plain_variable, reduced_axes
from .contraction_places import contraction_reads, inverse_place, is_contraction
from .heuristics import Reason

#: With fewer rows than this, a large reduction is done in chunks, in a kernel of its own.
FEW_ROWS = 16
#: So many rows that lie beside each other are one unit for a thread.
LINE_ROWS = 128
#: A reduction of fewer elements than this is done by one thread.
SMALL = 32768
#: Bytes that stay in the cache of a core, in whatever order they are walked.
CACHED = 1 << 18
#: A reduction turns lines into columns for no less than one part in so many of the bytes that are walked so.
COLUMNS = 8
_NO_ROW = Reason("rows", "the kernel does not read each of its elements once, at the place of its own loops")

#: Loop variables of a shape: the same ones for all groups, so that most places are compared by identity.
variables = functools.lru_cache(maxsize=4096)(new_variables)


class Group:
    """Ops that one kernel computes. The first output is the one its loops are made for.

    `shared_rows`: threads share rows, however few, and compute once what depends on a row alone; `flops_per_byte`: what
    a byte less to move is worth (see `fuse`).
    """

    def __init__(self, root: OpView, shared_rows: bool = False, flops_per_byte: float = 0.0):
        self.primary, self.shared_rows, self.flops_per_byte = root, shared_rows, flops_per_byte
        self.ops: dict[OpView, None] = {root: None}
        self.reduced: dict[OpView, None] = {}  #: those of `ops` that are reductions
        self.outputs: list[Value] = list(root.results)
        self.reads: dict[Value, dict[Coordinates, None]] = {}
        self.kept: Coordinates | None = None  #: the loop variables that say which row; None before a reduction
        self.feeds: set[Value] = set()  #: values that a reduction of the group depends on
        self.searched: set[Value] = set()  #: values that are computed again to find where an extremum is
        self.factors: set[Value] = set()  #: values that a contraction of the group multiplies
        self.recomputed = 0.0  #: additions that are done more than once
        self.schedule = "map"
        self.output_places: list[Coordinates] = []
        self.ordered_ops: list[OpView] = []  #: this and `inputs` once the group is finished
        self.inputs: list[Value] = []  #: values computed elsewhere, in a stable order
        self._cost: tuple[OpView, float] | None = None  #: the last answer of `recompute_cost`, until something joins
        result = root.results[0]
        if is_row_reduction(root):
            at = variables(result.shape, "i")
            self.output_places = [at]
            self._add_reduction(root, at)
        elif is_pointwise(root):
            at = variables(result.shape, "i")
            self.output_places = [at]
            self._read_operands(root, at)
        elif root.op.kind == "scan":
            self.schedule = "scan"
            self.output_places = [variables(result.shape, "i")]
            self._read(root.operands[0], self.output_places[0])
        elif is_contraction(root):
            at = variables(result.shape, "i")
            self.output_places = [at]
            self._add_contraction(root, at)
        else:
            self.schedule = "scatter"
            x, updates, *indices = root.operands
            self.output_places = [variables(x.shape, "i")]
            self._read(x, self.output_places[0])
            at = variables(updates.shape, "u")
            self._read(updates, at)
            for index in indices:
                self._read(index, at[: index.ndim])

    # What is read

    def _read(self, value: Value, place: Coordinates) -> None:
        self.reads.setdefault(value, {})[place] = None

    def _read_operands(self, op: OpView, place: Coordinates) -> None:
        for operand, at in operand_reads(op, place):
            self._read(operand, at)
        for v in op.operands:  # one that is not looked at must still exist
            if v not in self.reads:
                self._read(v, (Index(0),) * v.ndim)

    def finish(self, position: dict[OpView, int]) -> None:
        """Nothing joins any more: put the ops in order."""
        self.ordered_ops = sorted(self.ops, key=position.__getitem__)
        self.inputs = inputs_of(self.ordered_ops)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.outputs[0].shape

    @property
    def elements(self) -> int:
        """How many its loops run over."""
        return max([math.prod(self.shape), *(op.operands[0].aval.size for op in self.reductions())])

    def arrays(self, ops: Sequence[OpView], weightless: Collection[Value]) -> int:
        """How many arrays the group reads and writes once `ops` are part of it.

        `weightless` values take no memory: every group that reads them computes them.
        """
        inside = {v for op in (*self.ops, *ops) for v in op.results}
        read = {v for op in (*self.ops, *ops) for v in op.operands if v not in inside and v not in weightless}
        return len(read) + len(self.outputs)

    # Joining

    def admits(self, op: OpView) -> bool:
        """Whether the group takes the op: contractions multiply elements that lie in memory, unless these are
        made from fewer bytes than they have (see `operands`)."""
        return op.op.flops == 0 or op.results[0] not in self.factors

    def refuses(self, op: OpView) -> Reason | None:
        """Why an op that combines elements cannot join; None where it can."""
        if is_contraction(op):
            return None if self.accepts_contraction(op) else _NO_ROW
        row = self.row_of(op)
        if row is None or (op.results[0].aval.size == 0 and op.operands[0].aval.size > 0):
            return _NO_ROW
        return None

    def add(self, op: OpView) -> None:
        """Let an op join whose result the group reads. Ops that combine elements must be accepted."""
        if is_row_reduction(op):
            self.add_reduction(op)
        elif is_contraction(op):
            (place,) = self.reads[op.results[0]]
            self._add_contraction(op, place)
        else:
            known = self._cost
            self.recomputed += known[1] if known is not None and known[0] is op else self.recompute_cost(op)
            self.add_pointwise(op)
        self._cost = None

    def add_pointwise(self, op: OpView) -> None:
        value = op.results[0]
        self.ops[op] = None
        for place in list(self.reads[value]):
            self._read_operands(op, place)
        if value in self.feeds:
            self.feeds.update(op.operands)
        if value in self.searched:
            self.searched.update(op.operands)
        if value in self.factors:
            self.factors.update(op.operands)

    def _add_contraction(self, op: OpView, place: Coordinates) -> None:
        """`place`: where its result is read."""
        self.ops[op] = None
        self.schedule = "contract"
        for value, at in contraction_reads(op, place):
            self._read(value, at)
            self.factors.add(value)

    def accepts_contraction(self, op: OpView) -> bool:
        """Whether each element of the contraction is read once, so that its loops can be the group's."""
        value = op.results[0]
        places = self.reads[value]
        if len(places) != 1 or self.schedule != "map":
            return False
        (place,) = places
        return inverse_place(place, value.shape, self.output_places[0]) is not None

    def _add_reduction(self, op: OpView, row: Coordinates) -> None:
        """`row`: where its result is read, in the group's variables."""
        x = op.operands[0]
        self.ops[op] = self.reduced[op] = None
        if self.kept is None:
            self.kept, self.schedule = row, "row"
        self._read(x, self.reduction_place(op))
        self.feeds.add(x)
        if op.op.kind == "arg_reduction" and reduced_axes(op)[0] == innermost_axis(x.shape):
            self.searched.add(x)

    def reduction_place(self, op: OpView) -> Coordinates:
        """Where a reduction reads its operand: the row's variables, and inner ones along its axes."""
        shape, axes = op.operands[0].shape, reduced_axes(op)
        assert self.kept is not None
        kept = iter(self.kept)
        inner = iter(self.inner_variables([shape[a] for a in axes]))
        order = sorted(axes)
        rest = dict(zip(order, inner))
        return tuple(rest[a] if a in rest else next(kept) for a in range(len(shape)))

    def inner_variables(self, extents: Sequence[int]) -> Sequence[Index]:
        """Inner loop variables: those of the output where it has the same inner shape."""
        assert self.kept is not None
        own = [i for i, d in zip(self.output_places[0], self.shape) if i not in self.kept and d != 1]
        wanted = [d for d in extents if d != 1]
        if [i.hi + 1 for i in own] == wanted and own:
            left = iter(own)
            return [next(left) if d != 1 else Index(0) for d in extents]
        return _inner_variables(tuple(extents))

    def row_of(self, op: OpView) -> Coordinates | None:
        """The row at which the group reads a reduction's result, if there is just one that fits."""
        value = op.results[0]
        places = self.reads[value]
        if len(places) != 1 or self.schedule not in ("map", "row"):
            return None
        (place,) = places
        atoms = [plain_variable(i) for i in place if not (i.is_constant and i.const == 0)]
        if any(a is None for a in atoms) or len(set(atoms)) != len(atoms) or not _is_whole(place, value.shape):
            return None
        if self.kept is not None:
            return place if place == self.kept else None
        loops = [i for i in self.output_places[0] if not i.is_constant]
        order = [loops.index(i) for i in place if i in loops]
        if len(order) != len(atoms) or order != sorted(order):
            return None
        if any(not _covers(place, p) for p in self.output_places):
            return None
        return place

    def reduction_loses(self, op: OpView) -> Reason | None:
        """Why a reduction that could join had better not; None where it had."""
        row = self.row_of(op)
        if row is None:
            return _NO_ROW
        x, value = op.operands[0], op.results[0]
        alone = value not in self.feeds and all(
            len([i for i in p if not i.is_constant]) == len([i for i in row if not i.is_constant])
            for p in self.output_places
        )
        if alone:
            return None
        size = max(x.aval.size, math.prod(self.shape))
        if not self.shared_rows and size > SMALL and parallel_rows(op) < FEW_ROWS:
            return Reason("few-rows", "{rows} rows of {size} elements in all give threads too little: under {least} "
                          "rows a reduction is done in chunks, by itself", rows=parallel_rows(op), size=size,
                          least=FEW_ROWS)  # fmt: skip
        return self._walks_worse(op, row)

    def _walks_worse(self, op: OpView, row: Coordinates) -> Reason | None:
        """Why not, if with the reduction the kernel would walk memory in a worse order, for little less to move.

        Rows of some arrays are contiguous, those of others lie beside each other: no order of loops suits both. And
        where all lie beside each other, columns are walked that were lines before.
        """
        x, value = op.operands[0], op.results[0]
        if all(v.aval.nbytes <= CACHED for v in (x, *self.reads, *self.outputs)):
            return None
        kept = {atom for i in row for atom in i.atoms()}
        beside, along = (0, x.aval.nbytes) if innermost_axis(x.shape) in reduced_axes(op) else (x.aval.nbytes, 0)
        memory = [(v, p) for v, places in self.reads.items() if v is not value for p in places]
        most = x.aval.nbytes
        for v, place in [*memory, *zip(self.outputs, self.output_places)]:
            loops = [plain_variable(i) for i in place if not i.is_constant]
            if not loops or kept.issuperset(loops) or kept.isdisjoint(loops):
                continue  # an element a row, or one row for all
            if loops[-1] in kept:
                beside += v.aval.nbytes
            elif loops[-1] is not None:
                along += v.aval.nbytes
            most = max(most, v.aval.nbytes)
        shared = x in self.reads or (not self.shared_rows and _made_of(x, self.reads))
        saved = 2 * value.aval.nbytes + (x.aval.nbytes if shared else 0)
        turns = not self.shared_rows and beside > COLUMNS * saved and self._turns_lines(x, value)
        if most <= CACHED or (min(beside, along) <= saved and not turns):
            return None
        return Reason("walks", "{beside} bytes would be walked across lines of memory and {along} along them, to save "
                      "{saved}", beside=beside, along=along, saved=saved)  # fmt: skip

    def _turns_lines(self, x: Value, value: Value) -> bool:
        """Whether lines would be columns for little that is read once instead of twice, by what there is in memory:
        what several values are made of counts once, also where it is not known yet that the kernel computes them."""
        others, own = (_sources(values) for values in ([v for v in self.reads if v is not value], [x]))
        beside = sum(v.aval.nbytes for v in {*others, *own, *self.outputs})
        saved = 2 * value.aval.nbytes + sum(v.aval.nbytes for v in own & others)
        return beside > COLUMNS * saved

    def add_reduction(self, op: OpView) -> None:
        row = self.row_of(op)
        assert row is not None
        self._add_reduction(op, row)

    def place_as_output(self, value: Value) -> Coordinates | None:
        """Where `value` is read, if the kernel can also write it: every element once."""
        places = self.reads.get(value, {})
        if len(places) != 1 or self.schedule not in ("map", "row"):
            return None
        (place,) = places
        if self.kept is None and value.owner is not None and is_row_reduction(value.owner):
            return self.row_of(value.owner)
        if self.kept is None:
            return place if place == self.output_places[0] and value.shape == self.shape else None
        atoms = [plain_variable(i) for i in place if not i.is_constant]
        if any(a is None for a in atoms) or len(set(atoms)) != len(atoms) or not _is_whole(place, value.shape):
            return None
        return place if _covers(self.kept, place) else None

    def add_output(self, value: Value, place: Coordinates) -> None:
        self.outputs.append(value)
        self.output_places.append(place)

    # Cost

    def evaluations(self, place: Coordinates) -> int:
        """How often a value read at `place` is computed: loop-invariant ones not in inner loops."""
        loops: list[Index] = [i for i in self.output_places[0] if not i.is_constant]
        names = [plain_variable(i) for i in loops]
        used: set[Atom] = set()
        for i in place:
            used |= i.atoms()
        if any(a.kind == "dynamic" for a in used):
            return math.prod(self.shape)
        inner = math.prod(a.hi + 1 for a in used if a.kind == "var" and a not in names)
        last = max((n for n, a in enumerate(names) if a in used), default=-1)
        if inner > 1 and self.kept is not None:
            last = max(last, *(n for n, i in enumerate(loops) if i in self.kept), -1)
            return inner * math.prod(i.hi + 1 for i in loops[: last + 1] if i in self.kept)
        return math.prod(i.hi + 1 for i in loops[: last + 1])

    def recompute_cost(self, op: OpView) -> float:
        """Additions more than computing each element of the op's result once."""
        cost = self._recompute_cost(op)
        self._cost = op, cost
        return cost

    def _recompute_cost(self, op: OpView) -> float:
        value = op.results[0]
        places = self.reads[value]
        combines = self.schedule in ("scan", "scatter")
        if value in self.factors or not (op.op.flops or combines):
            return 0.0
        if len(places) == 1 and self.schedule == "map" and self.output_places[0] in places:
            return 0.0  # once where the result is written, which is most often so
        if self.shared_rows and value.aval.size < math.prod(self.shape) and _reduction_behind(op):
            return 0.0
        if combines:
            return 0.0 if len(places) == 1 else math.inf
        if len(places) == 1 and not self.shared_rows and self._once_a_row(op, next(iter(places))):
            return 0.0
        total = sum(self.evaluations(p) for p in places) * (2 if value in self.searched else 1)
        return op.op.flops * max(0, total - value.aval.size)

    def _once_a_row(self, op: OpView, place: Coordinates) -> bool:
        """Whether the op makes a value of each row where rows lie beside each other: a line of them keeps it."""
        loops = [plain_variable(i) for i in self.output_places[0] if not i.is_constant]
        used = [plain_variable(i) for i in place if not i.is_constant]
        if not loops or loops[-1] not in used or len(set(used)) != len(used) or not set(used) < set(loops):
            return False
        if self.kept is not None:
            return {plain_variable(i) for i in self.kept if not i.is_constant} == set(used)
        made = _reduction_behind(op) if self.schedule == "map" else None
        whole = made is not None and made.operands[0].aval.size == math.prod(self.shape)
        return whole and made is not None and parallel_rows(made) >= FEW_ROWS

    # What is made of it

    def name(self) -> str:
        ordered = [op for op in self.ordered_ops if op.op.flops > 0 or len(self.ops) == 1]
        chosen = sorted(ordered, key=lambda op: (_combines(op), op.op.flops), reverse=True)[:4]
        heavy = [op.name for op in ordered if op in chosen]
        heavy = [n for i, n in enumerate(heavy) if i == 0 or n != heavy[i - 1]]
        prefix = "fused_" if len(self.ops) > 1 else "kernel_"
        return prefix + ("_".join(heavy) or self.primary.name)

    def attributes(self) -> dict[str, str]:
        schedule = self.schedule
        found = {}
        if schedule == "row":
            schedule = "split" if self.splits() else "row"
            kept = ", ".join(_kept_axes(self.kept, p) for p in self.output_places)
            found["kept"] = f"[{kept}]"
            if schedule == "split":
                found["chunks"] = f"{chunks_for(self.reductions()[0])} : i64"
        return {"fusion": f'"{schedule}"', **found}

    def reductions(self) -> list[OpView]:
        return list(self.reduced)

    def splits(self) -> bool:
        """Whether the reductions are done in chunks: few rows, many elements, and nothing in between."""
        reductions = self.reductions()
        shapes = {(op.operands[0].shape, tuple(sorted(reduced_axes(op)))) for op in reductions}
        if len(shapes) != 1:
            return False
        op = reductions[0]
        inner = [p for p in self.output_places if not _covers(p, self.kept or ())]
        chained = any(r.results[0] in self.feeds for r in reductions)
        large = op.operands[0].aval.size > SMALL and op.results[0].aval.size > 0
        return large and not inner and not chained and parallel_rows(op) < FEW_ROWS


@functools.lru_cache(maxsize=4096)
def _inner_variables(extents: tuple[int, ...]) -> tuple[Index, ...]:
    """Loop variables of a reduction that are none of its group's output."""
    return tuple(Index.variable(f"r{i}_{'x'.join(map(str, extents))}", d) for i, d in enumerate(extents))


def _reduction_behind(op: OpView) -> OpView | None:
    """The row reduction from whose results an op is computed, such as the square root of a mean."""
    pending, seen = [op], {op}
    while pending:
        for v in pending.pop().operands:
            made = v.owner
            if made is None or made in seen or v.aval.size > op.results[0].aval.size:
                continue
            if is_row_reduction(made):
                return made
            if is_pointwise(made):
                seen.add(made)
                pending.append(made)
    return None


def _made_of(x: Value, known: Collection[Value]) -> bool:
    """Whether a value is one of the known, or computed element by element from one of as many elements."""
    pending, seen = [x], {x}
    while pending:
        v = pending.pop()
        if v in known:
            return True
        for u in v.owner.operands if v.owner is not None and is_pointwise(v.owner) else ():
            if u not in seen and u.aval.size == x.aval.size:
                seen.add(u)
                pending.append(u)
    return False


def _sources(values: Iterable[Value]) -> set[Value]:
    """What lies in memory, or has to be combined, before some values can be computed element by element."""
    pending, found, seen = list(values), set[Value](), set[Value]()
    while pending:
        v = pending.pop()
        if v in seen:
            continue
        seen.add(v)
        if v.owner is not None and is_pointwise(v.owner):
            pending += v.owner.operands
        else:
            found.add(v)
    return found


def _combines(op: OpView) -> bool:
    return is_row_reduction(op) or is_contraction(op)


def parallel_rows(op: OpView) -> int:
    """How many units a reduction's rows give to threads: lines of neighbouring rows count as one."""
    shape, axes = op.operands[0].shape, reduced_axes(op)
    rows = op.results[0].aval.size
    kept = itertools.takewhile(lambda a: a not in axes or shape[a] == 1, reversed(range(len(shape))))
    beside = math.prod(shape[a] for a in kept)
    return rows // min(beside, LINE_ROWS) if rows else 0


def innermost_axis(shape: Sequence[int]) -> int | None:
    """The last axis that is longer than one."""
    return next((a for a in reversed(range(len(shape))) if shape[a] != 1), None)


def chunks_for(op: OpView) -> int:
    """Chunks of a reduction done in two steps. Depends on the shape only, so results are repeatable."""
    shape, axes = op.operands[0].shape, reduced_axes(op)
    return max(1, min(64, op.operands[0].aval.size // 16384, max(shape[a] for a in axes)))


def _is_whole(place: Coordinates, shape: Sequence[int]) -> bool:
    """Whether each index runs over its whole axis, and no further: padding reads beyond, slices only a part."""
    return all(i.lo == 0 and i.hi == d - 1 for i, d in zip(place, shape))


def _covers(row: Coordinates, place: Coordinates) -> bool:
    """Whether `place` runs over every variable of `row`, so that each row writes its own elements."""
    return all(i.is_constant or i in place for i in row)


def _kept_axes(kept: Coordinates | None, place: Coordinates) -> str:
    """For each row variable, the axis of an output that runs over it; -1 for an axis of one element."""
    used: set[int] = set()
    axes = []
    for i in kept or ():
        if i.is_constant:
            axes.append(-1)
            continue
        axis = next(a for a, p in enumerate(place) if p == i and a not in used)
        used.add(axis)
        axes.append(axis)
    return f"array<i64: {', '.join(map(str, axes))}>" if axes else "array<i64>"


def sibling_key(group: Group) -> Hashable:
    """Equal for groups whose loops are the same, variable for variable."""
    if group.schedule == "map":
        return "map", group.shape
    if group.schedule != "row":
        return None
    reductions = {(op.operands[0].shape, tuple(sorted(reduced_axes(op)))) for op in group.reductions()}
    if len(reductions) != 1:
        return None
    return "row", group.shape, group.kept, next(iter(reductions))

"""The rules of branches.

========================  ==============================================================================
over a batch, one index   the same branch over batched functions
an index each             every branch runs on the whole batch; `select` takes each element's result
forward mode              a branch over functions that compute values and tangents
reverse mode              two branches: the first passes residuals as more results, zeros in the place of those
                          that another branch makes
transposed                a branch over transposed functions
========================  ==============================================================================

If only some elements of the batch take a branch, loops inside run for those alone (the mask of `Batching`), so a
batched program terminates if the program does for each element. Other ops compute something for all elements, and the
results of elements that do not take part are dropped. To keep derivatives finite, such elements read the operands of
one that does take part (`rows`). Ops that may refuse their operands, as LAPACK does, always read these, and run only
if some element takes part.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.builder import Builder, Function, OpView, Value, function_named
from smelt.ir.control import COND

from ...extract import cut, erase
from ...rules import Attrs, Dims, Flags, Maybe, Values, register_rules
from ...simplify.reads import ModuleReads, Needs
from ..partition import BOTH, drop_separated, linear_values, merge, pick, residuals_of, separate, stem_of
from ..transpose import make_transpose
from .common import ControlRules, Pushed, choose_rows, in_front, interleave, reached
from .rows import of_rows, read_by_rows

if TYPE_CHECKING:
    from ..batch import Batching


#: Where a linear branch finds a residual: ("operand", i), ("result", i) or ("slot", i).
_Place: TypeAlias = tuple[str, int]


class _Residuals:
    """Where linear branches find the values that they need of the branches without the linear part.

    These are operands and results, and else *slots*: further results. Only one branch runs, so slots of one type serve
    all branches.

    Attributes:
        places: all places that some branch reads, with their types.
        slots: the types of the slots.
        values: for each branch, by name, the value at each place that it reads.
    """

    def __init__(self) -> None:
        self.places: dict[_Place, Aval] = {}
        self.slots: list[Aval] = []
        self.values: dict[str, dict[_Place, Value]] = {}

    def add(self, name: str, branch: Function, plain: Sequence[int], needed: Sequence[Value]) -> None:
        """Find places for what the linear part of a branch needs. `plain`: the results that are not linear."""
        own = self.values[name] = {}
        free = list(range(len(self.slots)))
        for value in needed:
            result = next((i for i in plain if branch.returns[i] is value), None)
            if value.owner is None:
                place = "operand", branch.arguments.index(value)
            elif result is not None:
                place = "result", result
            else:
                place = "slot", self._slot(value.aval, free)
            own[place] = value
            self.places[place] = value.aval

    def _slot(self, aval: Aval, free: list[int]) -> int:
        """One of the slots in `free`, which it is taken from, or a new one."""
        for i in free:
            if self.slots[i] == aval:
                free.remove(i)
                return i
        self.slots.append(aval)
        return len(self.slots) - 1


@register_rules("cond")
class CondRules(ControlRules):
    """One of several functions, chosen by an index."""

    op = COND

    # Batching

    def varying(self, t: Batching, op: OpView, flags: Flags) -> list[bool]:
        if flags[0]:
            return [True] * len(op.results)
        each = [t.depends(name, flags[1:]) for name in op.attrs["branches"]]
        return [any(found) for found in zip(*each)]

    def batch(
        self, t: Batching, b: Builder, op: OpView, operands: Values, dims: Dims, mask: Value | None
    ) -> tuple[Values, Dims]:
        if dims[0] is not None:
            return _batch_each(t, b, op, operands, dims, mask)
        branches = op.attrs["branches"]
        flags = [d is not None for d in dims[1:]]
        arguments = t.settle(b, operands[1:], dims[1:], flags)
        outs = self.varying(t, op, [False, *flags])
        masked = mask is not None and any(t.loops(name) for name in branches)
        names = tuple(t.function(name, flags, outs, masked) for name in branches)
        avals = t.batched([r.aval for r in op.results], outs)
        extra = [mask] if masked and mask is not None else []
        return b.control(COND, [operands[0], *extra, *arguments], {"branches": names}, avals), in_front(outs)

    # Derivatives

    def jvp(
        self, module: Any, b: Builder, op: OpView, operands: Values, tangents: Maybe, linearize: bool
    ) -> tuple[Values, Maybe]:
        index, *primals = operands
        given = tangents[1:]
        active = [t is not None for t in given]
        inputs, outputs = [range(len(primals))], [range(len(op.results))]
        names = list(dict.fromkeys(op.attrs["branches"]))
        suffix = BOTH if linearize else "jvp"
        pushed = {
            name: Pushed(module, function_named(module, name), active, inputs, linearize, suffix) for name in names
        }
        wanted = [any(flags) for flags in zip(*(p.active for p in pushed.values()))]
        if not any(wanted):
            for p in reversed(pushed.values()):
                p.discard()
            return b.clone(op, operands), [None] * len(op.results)
        fused = {name: p.close(wanted, outputs) for name, p in pushed.items()}
        attrs = {**op.attrs, "branches": tuple(fused[name] for name in op.attrs["branches"])}
        taken = [(index, False), *interleave(primals, given, active, inputs)]
        avals = [r.aval for r in op.results]
        made = list(fused.values())
        return self.emit_pushed(module, b, attrs, taken, wanted, avals, outputs, linearize, made)

    def dependent(self, module: Any, attrs: Attrs, flags: Flags) -> list[bool]:
        found: list[bool] = []
        for name in dict.fromkeys(attrs["branches"]):
            branch = function_named(module, name)
            linear = linear_values(module, branch, flags[1:])
            outs = [v in linear for v in branch.returns]
            found = [a or b for a, b in zip(found, outs)] if found else outs
        return found

    def partition(
        self, module: Any, b: Builder, attrs: Attrs, operands: Values, flags: Flags, avals: Sequence[Aval]
    ) -> list[Value]:
        index, *arguments = operands
        marks = flags[1:]
        outs = self.dependent(module, attrs, flags)
        plain = [i for i, out in enumerate(outs) if not out]
        originals = {name: function_named(module, name) for name in dict.fromkeys(attrs["branches"])}
        branches = {name: separate(module, branch, marks) for name, branch in originals.items()}

        residuals = _Residuals()
        for name, branch in branches.items():
            linear = linear_values(module, branch, marks)
            needed = residuals_of(branch, pick(branch.returns, outs), linear, False)
            residuals.add(name, branch, plain, needed)
        places, slots = residuals.places, residuals.slots

        primal: dict[str, str] = {}
        tangent: dict[str, str] = {}
        for name, branch in branches.items():
            own = residuals.values[name]
            kept = [own.get(("slot", i), aval) for i, aval in enumerate(slots)]
            returns = [*pick(branch.returns, outs, False), *kept]
            plain_arguments = pick(branch.arguments, marks, False)
            stem = stem_of(name)
            primal[name] = cut(module, f"{stem}_primal", branch, plain_arguments, returns, effects=True).name
            taken = [*(own.get(place, aval) for place, aval in places.items()), *pick(branch.arguments, marks)]
            tangent[name] = cut(module, f"{stem}_tangent", branch, taken, pick(branch.returns, outs)).name

        drop_separated(module, originals.values(), branches.values())

        def emit(names: dict[str, str], values: Values, results: Sequence[Aval]) -> Values:
            if not results:
                return ()
            renamed = {**attrs, "branches": tuple(names[name] for name in attrs["branches"])}
            return b.control(COND, [index, *values], renamed, results)

        results = emit(primal, pick(arguments, marks, False), [*pick(avals, outs, False), *slots])
        where: dict[_Place, Value] = {("operand", i): v for i, v in enumerate(arguments)}
        where |= {("result", i): v for i, v in zip(plain, results)}
        where |= {("slot", i): v for i, v in enumerate(results[len(plain) :])}
        pushed = emit(tangent, [*(where[place] for place in places), *pick(arguments, marks)], pick(avals, outs))
        return merge(outs, results[: len(plain)], pushed)

    def transpose(
        self, module: Any, b: Builder, op: OpView, cotangents: Maybe, operands: Values, linear: Flags
    ) -> Maybe:
        index, *arguments = operands
        live = [ct is not None for ct in cotangents]
        names = dict.fromkeys(op.attrs["branches"])
        branches = {name: function_named(module, name) for name in names}
        read = [reached(branch.arguments, pick(branch.returns, live)) for branch in branches.values()]
        needed = [i for i, flags in enumerate(zip(*read)) if any(flags)]
        wrt = [i for i in needed if linear[1 + i]]
        if not wrt:
            return [None] * len(operands)
        pulled: dict[str, str] = {}
        for name, branch in branches.items():
            taken = [branch.arguments[i] for i in needed]
            part = cut(module, f"{name}_part", branch, taken, pick(branch.returns, live))
            positions = tuple(needed.index(i) for i in wrt)
            pulled[name] = make_transpose(module, part, {"wrt": positions}, f"{name}_transpose")
            erase(module, [part.name])
        attrs = {**op.attrs, "branches": tuple(pulled[name] for name in op.attrs["branches"])}
        given = [ct for ct in cotangents if ct is not None]
        values = [index, *(arguments[i] for i in needed if i not in wrt), *given]
        found = dict(zip(wrt, b.control(COND, values, attrs, [arguments[i].aval for i in wrt])))
        return [None, *(found.get(i) for i in range(len(arguments)))]

    # Simplification

    def needs(self, reads: ModuleReads, op: OpView) -> Needs:
        return reads.one_of(op.attrs["branches"], 1)


def _batch_each(
    t: Batching, b: Builder, op: OpView, operands: Values, dims: Dims, mask: Value | None
) -> tuple[Values, Dims]:
    """An index for each element: all branches run, and each element takes the results of its own."""
    branches = op.attrs["branches"]
    (index,) = t.settle(b, operands[:1], dims[:1], [True])
    chosen = _chosen(b, index, len(branches))
    everywhere = [True] * len(op.results)
    results: list[Value] = []
    # From the last branch, which also stands for an index out of range, to the first.
    for name, own in reversed(list(zip(branches, chosen))):
        inside = None
        if t.loops(name):
            inside = own if mask is None else b.logical_and(own, mask)
        if t.may_fail(name) and t.size:
            found = _where_taken(t, b, op, name, own, inside, operands[1:], dims[1:])
        else:
            arguments = of_rows(t, b, name, own, operands[1:], dims[1:])
            found, places = t.emit(b, t.read(name), arguments, dims[1:], inside)
            found = t.settle(b, found, places, everywhere)
        results = [choose_rows(b, own, f, r) for f, r in zip(found, results)] if results else found
    return results, [0] * len(results)


def _where_taken(
    t: Batching, b: Builder, op: OpView, branch: str, rows: Value, inside: Value | None, values: Values, dims: Dims
) -> list[Value]:
    """What a branch that may refuse its operands makes of those of `rows` alone; nothing where `rows` are none."""
    given = [rows, *([] if inside is None else [inside]), *values]
    arguments = [v.aval for v in given]
    avals = t.batched([r.aval for r in op.results], [True] * len(op.results))

    def taken(to: Builder, given: list[Value]) -> Values:
        operands = read_by_rows(to, given[0], given[len(given) - len(values) :], dims)
        found, places = t.emit(to, t.read(branch), operands, dims, None if inside is None else given[1])
        return t.settle(to, found, places, [True] * len(found))

    def none(to: Builder, _: list[Value]) -> Values:
        return [to.zeros(aval) for aval in avals]

    key = (branch, *arguments, *dims)
    names = (
        t.build(branch, f"{branch}_none", ("none", *key), arguments, avals, none),
        t.build(branch, f"{branch}_some", ("some", *key), arguments, avals, taken),
    )
    return list(b.control(COND, [b.reduce_any(rows, axes=(0,)), *given], {"branches": names}, avals))


def _chosen(b: Builder, index: Value, count: int) -> list[Value]:
    """For each of `count` branches, which elements of the batch take it."""
    if index.dtype is dtypes.bool_:
        if count == 2:
            return [b.logical_not(index), index]
        index = b.convert_to(index, dtypes.int32)
    reach = 2 ** (8 * index.dtype.size - (index.dtype.kind == "i"))
    first = [b.equal(index, b.full(index.shape, i, index.dtype)) for i in range(min(count - 1, reach))]
    first += [b.full(index.shape, False, dtypes.bool_)] * (count - 1 - len(first))
    last = b.full(index.shape, True, dtypes.bool_)
    for own in first:
        last = b.logical_and(last, b.logical_not(own))
    return [*first, last]

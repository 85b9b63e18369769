"""Chains as loops: batches, rows, what is summed, and features of each product.

As in `contraction`, addresses are index expressions of the loops' variables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from smelt.ir.builder import Function, OpView, Value
from smelt.ir.errors import SmeltError
from smelt.ir.index import Access, Index, names_of
from smelt.ir.ops.compare import Select
from smelt.ir.ops.conversion import Convert
from smelt.passes.kernels.analysis import Coordinates, collect_reads, is_moved, is_pointwise
from smelt.passes.kernels.attention_chains import ChainPlan, End, chain_plan
from smelt.passes.kernels.attention_masks import constant_of, seen_keys

from .contraction import Operand, Product, argument_reads, operand_of
from .lowering import Fused

Load = tuple[Value, Coordinates]


@dataclass(frozen=True)
class ChainScore:
    """A contraction whose results are in no memory: what it sums over, and its operands of rows and of depth."""

    value: Value
    features: Fused
    left: Operand
    right: Operand


@dataclass(frozen=True)
class ChainEnd:
    """A contraction of what is made of scores: of `weights` at `place`, and `product.rhs`."""

    weights: Value
    place: Coordinates
    product: Product


@dataclass(frozen=True)
class Chain:
    """A fusion body that is a chain.

    Attributes:
        rows, depth: of all results, and what all of these sum over. batch: what they have in common.
        loads: what is read of arguments to make weights. is_placed: whether they depend on where they stand otherwise.
        exponentials: those of scores and numbers of rows.
        bounds: indices, of the loops, none of which is negative where weights can be other than 0.
    """

    body: Function
    batch: Fused
    rows: Fused
    depth: Fused
    scores: tuple[ChainScore, ...]
    ends: tuple[ChainEnd, ...]
    loads: tuple[Load, ...]
    is_placed: bool
    exponentials: tuple[OpView, ...]
    bounds: tuple[Index, ...]


def analyse_chain(body: Function) -> Chain:
    """The loops and addresses of a body that is a chain.

    Raises:
        SmeltError: it is none.
    """
    plan = chain_plan(body)
    if isinstance(plan, str):
        raise SmeltError(f"@{body.name} is no chain: {plan}")
    batch, rows, depth = (Fused(v) for v in (plan.batch, plan.rows, plan.depth))
    scores = []
    for score in plan.scores:
        operands = [operand_of(body, v, access) for v, access in zip(score.op.operands, score.accesses)]
        features = Fused([(f"f{i}", index.hi + 1) for i, index in enumerate(score.features)])
        scores.append(ChainScore(score.op.results[0], features, operands[score.side], operands[1 - score.side]))
    numbers: list[Index] = []
    roots = [(end.op.operands[end.side], end.place) for end in plan.ends]
    collect_reads(body.ops, roots, numbers)
    exponentials = tuple(op for op in body.ops if op.op.formula == "exp(x)")
    ends = [_end(body, end, output, (batch, rows, depth)) for end, output in zip(plan.ends, plan.outputs)]
    return Chain(
        body, batch, rows, depth, tuple(scores), tuple(ends), tuple(argument_reads(body, roots)), bool(numbers),
        exponentials, _bounds(plan, body, roots, exponentials),
    )  # fmt: skip


def _end(body: Function, end: End, output: tuple[Value, Coordinates], loops: tuple[Fused, Fused, Fused]) -> ChainEnd:
    batch, rows, depth = loops
    weights, other = end.op.operands[end.side], end.op.operands[1 - end.side]
    columns = Fused([(f"f{i}", n) for i, n in _columns(end)])
    lhs = Operand(weights, Access(end.place), None, argument_reads(body, [(weights, end.place)]))
    product = Product(
        body, end.op, batch, rows, columns, depth, lhs, operand_of(body, other, end.access), end.at, [output],
        argument_reads(body, [output]),
    )  # fmt: skip
    return ChainEnd(weights, end.place, product)


def _columns(end: End) -> list[tuple[int, int]]:
    """Of each variable of features: its number, and how far it runs."""
    atoms = {a.args[0]: a for i in end.at for a in i.atoms() if a.kind == "var" and a.args[0].startswith("f")}
    return [(int(name[1:]), atom.hi + 1) for name, atom in sorted(atoms.items())]


def _bounds(
    plan: ChainPlan, body: Function, roots: Sequence[Load], exponentials: Sequence[OpView]
) -> tuple[Index, ...]:
    """What holds wherever weights are not 0, as far as one exponential says."""
    if len(exponentials) != 1 or not plan.depth:
        return ()
    (exponential,) = exponentials
    value, difference = exponential.results[0], exponential.operands[0].owner
    places = list(collect_reads(body.ops, roots).get(value, {}))
    if difference is None or difference.op.formula != "x - y" or len(places) != 1:
        return ()
    if not all(_vanishes(v, value) for v, _ in roots):
        return ()
    of_rows = argument_reads(body, [(difference.operands[1], places[0])])
    keys = names_of(places[0]) - {name for _, place in of_rows for name in names_of(place)}
    atoms = {a for i in places[0] for a in i.atoms() if a.kind == "var" and a.args[0] in keys}
    scores = [s.op.results[0] for s in plan.scores if s.op.results[0] in collect_reads(
        body.ops, [(difference.operands[0], places[0])])]  # fmt: skip
    if len(atoms) != 1 or len(scores) != 1:
        return ()
    found = seen_keys(difference.operands[0], places[0], scores[0], next(iter(atoms)))
    *heads, (name, _) = plan.depth
    return tuple(
        i for i in found
        if any(a.args == (name,) and abs(c) == 1 for a, c in i.terms) and not names_of([i]) & {v for v, _ in heads}
    )  # fmt: skip


def _vanishes(value: Value, factor: Value) -> bool:
    """Whether a value is 0 wherever another one, of which it is made, is."""
    if value == factor:
        return True
    owner = value.owner
    if owner is None or not is_pointwise(owner):
        return False
    operands = owner.operands
    if owner.op.formula == "x * y":
        return any(_vanishes(v, factor) for v in operands)
    if owner.op.formula in ("x + y", "x - y"):
        return all(_vanishes(v, factor) for v in operands)
    if isinstance(owner.op, Select):
        return all(constant_of(v) == 0 or _vanishes(v, factor) for v in operands[1:])
    if owner.op.formula in ("x / y", "-x") or isinstance(owner.op, Convert) or is_moved(owner):
        return _vanishes(operands[0], factor)
    return False

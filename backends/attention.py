"""Attention as loops: batches, rows of queries, keys, and features of queries and values.

As in `contraction`, addresses are index expressions of the loops' variables. Heads that share keys are rows beside
each other, since neither keys nor values depend on them.
"""

from __future__ import annotations

from dataclasses import dataclass

from smelt.ir.builder import Function, Value
from smelt.ir.errors import SmeltError
from smelt.ir.index import Access, Index, names_of, variables
from smelt.passes.kernels.analysis import Coordinates, collect_reads, plain_variable
from smelt.passes.kernels.attention import Softmax, attention_plan
from smelt.passes.kernels.attention_masks import seen_keys

from .contraction import Operand, Product, argument_reads, operand_of
from .lowering import Fused


@dataclass(frozen=True)
class Attention:
    """A fusion body that is attention.

    Attributes:
        product: the second contraction; its depth is the keys, and its rows those of the weights.
        features: what the first contraction sums over.
        queries, keys: its operands. values: that of the second one.
        place: where the logits are, at the position of batch, rows and keys.
        is_placed: whether the logits are made of more than the scores, or of the place where they stand.
        bounds: indices, of the loops and of the key k0, none of which is negative where a row sees a key.
        row_outputs: outputs that are made of maximum and total, and where they are.
    """

    softmax: Softmax
    product: Product
    features: Fused
    queries: Operand
    keys: Operand
    values: Operand
    place: Coordinates
    is_placed: bool
    bounds: tuple[Index, ...]
    row_outputs: tuple[tuple[Value, Coordinates], ...]

    @property
    def scores(self) -> Value:
        return self.softmax.scores.results[0]


def analyse_attention(body: Function) -> Attention:
    """The loops and addresses of a body that is attention.

    Raises:
        SmeltError: it is none.
    """
    plan = attention_plan(body)
    if isinstance(plan, str):
        raise SmeltError(f"@{body.name} is no attention: {plan}")
    softmax, value = plan.softmax, plan.softmax.product.results[0]
    extents = [(f"c{i}", n) for i, n in enumerate(value.shape)]
    of_values, of_keys = names_of(plan.values.place), names_of(plan.scores[1 - plan.side].place)
    of_logits = names_of(plan.logits_place) | names_of(plan.scores[plan.side].place) | of_keys
    numbers: list[Index] = []
    roots = [(softmax.logits, plan.logits_place)]
    collect_reads(body.ops, roots, numbers)
    of_logits |= names_of(numbers)
    columns = [v for v in extents if v[0] in of_values and v[0] not in of_logits]
    rows = [v for v in extents if v[0] in of_logits and v[0] not in of_values | of_keys]
    batch = [v for v in extents if v not in columns and v not in rows]
    keys = Fused([("k0", plan.key.hi + 1)])
    operands = softmax.scores.operands
    queries = operand_of(body, operands[plan.side], plan.scores[plan.side])
    keyed = operand_of(body, operands[1 - plan.side], plan.scores[1 - plan.side])
    values = operand_of(body, softmax.product.operands[1 - softmax.side], plan.values)
    weights = softmax.product.operands[softmax.side]
    of_arguments = argument_reads(body, roots)
    of_rows = {v for v, _ in plan.rows}
    outputs = [(v, plan.output) for v in body.returns if v not in of_rows]
    lhs = Operand(weights, Access(plan.logits_place), None, [*queries.loads, *keyed.loads, *of_arguments])
    product = Product(
        body, softmax.product, Fused(batch), Fused(rows), Fused(columns), keys, lhs, values,
        variables(value.shape, "c"), outputs, argument_reads(body, outputs),
    )  # fmt: skip
    depth = Fused([(f"d{i}", i_.hi + 1) for i, i_ in enumerate(plan.depth)])
    is_placed = bool(of_arguments) or bool(numbers)
    bounds: tuple[Index, ...] = ()
    if (key := plain_variable(plan.key)) is not None:
        bounds = seen_keys(softmax.logits, plan.logits_place, softmax.scores.results[0], key)
    return Attention(
        softmax, product, depth, queries, keyed, values, plan.logits_place, is_placed, bounds, plan.rows
    )

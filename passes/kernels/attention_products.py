"""The product of a softmax of which a function computes the gradient alone: see `recompute_attention`.

Where nobody reads the result of attention, its second contraction is gone::

    %w = %e / %t                                        // weights
    %dw = "smelt.dot_general"(%do, %v) ...              // their cotangents

The weights, as a cotangent of what makes %dw of %do, give it again: it lies as %do does. It is made as soon as the
weights are, as if somebody had asked for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from smelt.ir.builder import Builder, Function, OpView, Value, functions, read_function
from smelt.ir.index import variables
from smelt.ir.ops.conversion import Convert
from smelt.ir.ops.movement import Reshape, Transpose

from ..extract import reassemble
from .analysis import collect_reads, plain_variable, reduced_axes
from .attention import behind_conversion
from .attention_gradient import parts_of, softmaxes_of
from .contraction_places import depth_of, is_contraction, operand_accesses
from .operands import behind_movement


@dataclass(frozen=True, eq=False)
class _Missing:
    """A product that is not there.

    Attributes:
        weights: the op that divides the exponentials. scores: the contraction that makes their cotangents.
        side: which of its operands is the cotangent of the product. between: what makes of its result the cotangents.
    """

    weights: OpView
    scores: OpView
    side: int
    between: list[OpView]


def with_products(module: Any, function: Function, features: int) -> Function:
    """A function, or the one that takes its place, with the products of all softmaxes whose gradient it computes."""
    missing = list(_missing(function, features))
    if not missing:
        return function
    position = {op: i for i, op in enumerate(function.ops)}
    behind: dict[OpView, list[_Missing]] = {}
    for x in missing:
        origin = behind_movement(x.scores.operands[1 - x.side]).owner
        made = [x.weights] if origin is None else [x.weights, origin]
        behind.setdefault(max(made, key=position.__getitem__), []).append(x)

    def emit(b: Builder, item: tuple[OpView], env: dict[Value, Value]) -> None:
        (op,) = item
        with b.at(op.location):
            env.update(zip(op.results, b.clone(op, [env[v] for v in op.operands])))
            for x in behind.get(op, ()):
                _emit_product(b, x, env)

    name = function.name
    reassemble(module, function, [(op,) for op in function.ops], emit)
    return read_function(functions(module)[name])


def _emit_product(b: Builder, x: _Missing, env: dict[Value, Value]) -> None:
    found = undone(b, env[x.weights.results[0]], x.between)
    operands = [v if i == x.side else _moved(b, v, env) for i, v in enumerate(x.scores.operands)]
    x.scores.op.transpose(b, [found], operands, [i == x.side for i in range(2)], **x.scores.attrs)


def undone(b: Builder, x: Value, ops: Sequence[OpView]) -> Value:
    """The value of which reshapes, transposes and conversions, one after the other, make another one."""
    for op in reversed(ops):
        (v,) = op.operands
        if isinstance(op.op, Transpose):
            order = op.attrs["permutation"]
            x = b.transpose(x, permutation=tuple(order.index(i) for i in range(len(order))))
        elif isinstance(op.op, Reshape):
            x = b.reshape_to(x, v.shape)
        else:
            x = b.convert_to(x, v.dtype)
    return x


def _moved(b: Builder, v: Value, env: dict[Value, Value]) -> Value:
    """A value, of which what moves it is perhaps not there yet."""
    if v in env or v.owner is None:
        return env[v]
    return b.clone(v.owner, [_moved(b, x, env) for x in v.owner.operands])[0]


def _missing(function: Function, features: int) -> Iterator[_Missing]:
    softmaxes: dict[OpView, Any] | None = None
    seen: set[OpView] = set()
    for op in function.ops:
        for exponentials, cotangent, total, _ in parts_of(op):
            softmaxes = softmaxes_of(function, features) if softmaxes is None else softmaxes
            if exponentials in softmaxes or exponentials in seen:
                continue
            found = _product_of(function, exponentials, cotangent, total)
            if found is not None:
                seen.add(exponentials)
                yield found


def _product_of(function: Function, exponentials: OpView, cotangent: Value, total: Value) -> _Missing | None:
    """The product that makes these cotangents; None where it is not known how."""
    made = exponentials.results[0]
    weights = next(
        (op for op in function.ops if op.op.formula == "x / y" and op.operands[0] is made
         and behind_conversion(op.operands[1]) is total), None,
    )  # fmt: skip
    between: list[OpView] = []
    value = cotangent
    while value.owner is not None and isinstance(value.owner.op, (Reshape, Transpose, Convert)):
        between.insert(0, value.owner)
        (value,) = value.owner.operands
    scores = value.owner
    if weights is None or total.owner is None or total.owner.op.formula != "sum(x)" or scores is None:
        return None
    axes = reduced_axes(total.owner)
    if not is_contraction(scores) or len(scores.operands) != 2 or len(axes) != 1 or cotangent.shape != made.shape:
        return None
    at = variables(made.shape)
    (place,) = collect_reads(function.ops, [(cotangent, at)])[value]
    key = plain_variable(at[axes[0]])
    accesses = operand_accesses(scores, place, variables(depth_of(scores), "d"))
    of_keys = [key in {a for i in access.place for a in i.atoms()} for access in accesses]
    return _Missing(weights, scores, of_keys.index(False), between) if of_keys.count(True) == 1 else None

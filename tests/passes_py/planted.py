"""Wrong rewrites, each with an expression in which it applies, and programs around the expression."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import smelt
from smelt.ir import text
from smelt.ir.builder import Builder, OpView, Value, functions, read_function
from smelt.passes import Pass, register_pass
from smelt.passes.rewrite import rebuild
from smelt.passes.rewrites import number_of

#: The op that becomes other values, the rule, and an expression of x, f32[4,6].
Planted = tuple[str, Callable[[Builder, OpView, Sequence[Value]], Any], Callable[[Any], Any]]


def _full(b: Builder, x: Value, value: float) -> Value:
    return b.broadcast_to(b.full((), value, x.dtype), x.shape)


def _product_with_zero(b: Builder, op: OpView, x: Sequence[Value]) -> Value | None:
    product = x[0].defined_by("mul")
    zero = product is not None and product.operands[0] == x[1] and number_of(product.operands[1]) == 0
    return b.neg(x[1]) if zero else None


def _root_of_square(b: Builder, op: OpView, x: Sequence[Value]) -> Value | None:
    square = x[0].defined_by("mul")
    return b.abs(square.operands[0]) if square and square.operands[0] == square.operands[1] else None


def _no_epsilon(b: Builder, op: OpView, x: Sequence[Value]) -> Value | None:
    added = x[0].defined_by("add")
    return b.rsqrt(added.operands[0]) if added and number_of(added.operands[1]) else None


def _last_of_equals(b: Builder, op: OpView, x: Sequence[Value]) -> Value:
    axis = op.attrs["axis"]
    found = b.emit(op.op, [b.reverse(x[0], axes=(axis,))], op.attrs)[0]
    return _full(b, found, x[0].shape[axis] - 1) - found


def _wrong_column(b: Builder, op: OpView, x: Sequence[Value]) -> Value | None:
    if op.attrs["axes"] != (1,) or x[0].shape != (4, 6):
        return None
    first = b.slice(x[0], start=(0, 0), stop=(4, 5), stride=(1, 1))
    again = b.slice(x[0], start=(0, 0), stop=(4, 1), stride=(1, 1))
    return b.reduce_sum(b.concatenate(first, again, axis=1), axes=(1,))


def _by_exponentials(b: Builder, op: OpView, x: Sequence[Value]) -> Value:
    e = b.exp(x[0] + x[0])
    return (e - 1) / (e + 1)


def _transposes(b: Builder, op: OpView, x: Sequence[Value]) -> Value | None:
    inner = x[0].defined_by("transpose")
    if inner is None:
        return None
    first, second = inner.attrs["permutation"], op.attrs["permutation"]
    found = b.transpose(inner.operands[0], permutation=tuple(second[axis] for axis in first))
    return found if found.shape == op.results[0].shape else None


def _sides(b: Builder, op: OpView, x: Sequence[Value]) -> Value:
    return b.emit(op.op, x, {**op.attrs, "low": op.attrs["high"], "high": op.attrs["low"]})[0]


def _through_half(b: Builder, op: OpView, x: Sequence[Value]) -> Value | None:
    inner = x[0].defined_by("convert")
    return inner.operands[0] if inner and inner.operands[0].dtype == op.results[0].dtype else None


def _same_but_for_attributes(b: Builder, op: OpView, x: Sequence[Value]) -> Value | None:
    for reader in x[0].users:
        if reader.name == op.name and reader.attrs != op.attrs:
            return reader.results[0]
    return None


def _of_square_matrices(b: Builder, op: OpView, x: Sequence[Value]) -> Value | None:
    axes = op.attrs["rhs_contracting"]
    if len(set(x[1].shape)) > 1 or x[1].ndim != 2 or len(axes) != 1:
        return None
    return b.emit(op.op, x, {**op.attrs, "rhs_contracting": (1 - axes[0],)})[0]


def _overwritten(b: Builder, op: OpView, x: Sequence[Value]) -> Value | None:
    return b.emit(op.op, x, {**op.attrs, "mode": "set"})[0] if op.attrs["mode"] == "add" else None


def _branches(b: Builder, op: OpView, x: Sequence[Value]) -> Sequence[Value]:
    return b.clone(op, [b.logical_not(x[0]), *x[1:]])


def _times_and_by(b: Builder, op: OpView, x: Sequence[Value]) -> Value | None:
    product = x[0].defined_by("mul")
    same = product is not None and number_of(product.operands[1]) == number_of(x[1]) is not None
    return product.operands[0] if product and same else None


def _truncated(b: Builder, op: OpView, x: Sequence[Value]) -> Value:
    quotient = b.convert(x[0], dtype=smelt.float32) / b.convert(x[1], dtype=smelt.float32)
    return b.convert(quotient, dtype=x[0].dtype)


PLANTED: dict[str, Planted] = {
    "the sign of zero": ("sub", _product_with_zero, lambda x: x * 0 - x),
    "infinities": ("sub", lambda b, op, x: b.zeros_like(x[0]) if x[0] == x[1] else None, lambda x: x - x),
    "zero plus": ("add", lambda b, op, x: x[0] if number_of(x[1]) == 0 else None, lambda x: x + 0.0),
    "NaN of one side": (
        "maximum", lambda b, op, x: b.select(b.greater(x[0], x[1]), x[0], x[1]), lambda x: smelt.maximum(x, x[::-1])
    ),
    "equals": (
        "greater", lambda b, op, x: b.greater_equal(*x), lambda x: smelt.where(x > x[::-1], x, 7.0)
    ),
    "ties": ("round", lambda b, op, x: b.floor(x[0] + 0.5), smelt.round),
    "overflow": ("sqrt", _root_of_square, lambda x: smelt.sqrt(x * x)),
    "underflow": ("exp", lambda b, op, x: b.exp(b.maximum(x[0], _full(b, x[0], -80.0))), smelt.exp),
    "large numbers": ("tanh", _by_exponentials, smelt.tanh),
    "tiny numbers": ("expm1", lambda b, op, x: b.exp(x[0]) - 1, smelt.expm1),
    "an epsilon": ("rsqrt", _no_epsilon, lambda x: x * smelt.rsqrt(x * x + 1e-6)),
    "the first of equals": ("argmax", _last_of_equals, lambda x: smelt.argmax(x, axis=1, keepdims=True) + x),
    "a column": ("reduce_sum", _wrong_column, lambda x: x.sum(axis=1, keepdims=True) + x),
    "the ends of integers": (
        "greater", lambda b, op, x: b.greater(x[0] - x[1], b.zeros_like(x[0])) if x[0].dtype.is_integer else None,
        lambda x: smelt.where(x.astype(smelt.int32) > x[::-1].astype(smelt.int32), x, 7.0),
    ),
    "the order of axes": (
        "transpose", _transposes,
        lambda x: x.reshape(2, 2, 3, 2).transpose(1, 0, 2, 3).transpose(0, 3, 2, 1).reshape(4, 6),
    ),
    "indices from the end": ("select", lambda b, op, x: x[2] if x[2].dtype.is_integer else None,
                             lambda x: x[smelt.arange(4) - 2]),
    "sides of a padding": ("pad", _sides, lambda x: smelt.pad(x, ((1, 0), (0, 2)))[:4, :6]),
    "a detour by fewer bits": ("convert", _through_half, lambda x: x.astype(smelt.float16).astype(smelt.float32)),
    "attributes": (
        "cumsum", _same_but_for_attributes, lambda x: smelt.cumsum(x, axis=0) - smelt.cumsum(x, axis=1)
    ),
    "the other axis": ("dot_general", _of_square_matrices, lambda x: x @ (x.T @ x + smelt.arange(6))),
    "duplicates": ("scatter", _overwritten, lambda x: x.at[smelt.arange(4) // 2].add(x)),
    "branches": (
        "cond", _branches, lambda x: smelt.cond(x.sum() > 0, lambda x: x * 2, lambda x: smelt.sin(x), x)
    ),
    "integers that wrap": (
        "floor_divide", _times_and_by, lambda x: (x.astype(smelt.int32) * 65536 // 65536).astype(smelt.float32)
    ),
    "the sign of a quotient": (
        "floor_divide", lambda b, op, x: _truncated(b, op, x) if x[0].dtype.is_integer else None,
        lambda x: ((x * 10).astype(smelt.int32) // 3).astype(smelt.float32),
    ),
}  # fmt: skip
_W = smelt.array(np.random.default_rng(0).standard_normal((6, 6)).astype(np.float32))


def _normal(x: Any) -> Any:
    return (x - x.mean(axis=-1, keepdims=True)) * smelt.rsqrt(x.var(axis=-1, keepdims=True) + 1e-5)


#: Where the expression stands: no argument reaches it as it is, or no result shows what it is.
AROUND: dict[str, Callable[[Callable[[Any], Any]], Callable[[Any], Any]]] = {
    "alone": lambda e: e,
    "before sums": lambda e: lambda x: (e(x) @ _W).sum(axis=-1),
    "between layers": lambda e: lambda x: smelt.softmax(e(_normal(x @ _W)) @ _W, axis=-1),
    "in a loop": lambda e: lambda x: smelt.scan(lambda c, y: (e(c @ _W) * 0.5, c.sum()), x, x)[0],
    "of bounded numbers": lambda e: lambda x: smelt.cos(e(smelt.tanh(x) * 3)).sum(axis=0),
    "with its derivative": lambda e: lambda x: smelt.value_and_grad(lambda x: e(x * (1 + smelt.erf(x)) / 2).sum())(x),
}


def source_of(name: str, around: str) -> str:
    """A program with the expression, as text, its transformations expanded."""
    from smelt.passes import Pipeline
    from smelt.passes.reduction import EXPANDED

    function = AROUND[around](PLANTED[name][2])
    module = text.parse(text.to_text(smelt.compile(function).trace(smelt.ones((4, 6))).lower().module))
    Pipeline.parse(EXPANDED).run(module)
    return text.to_text(module)


def pass_of(name: str) -> str:
    """The pass that has the rewrite."""
    return f"planted-{name.replace(' ', '-').lower()}"


def _register(name: str) -> None:
    wanted, rule, _ = PLANTED[name]

    @register_pass(pass_of(name))
    @dataclass(frozen=True)
    class PlantedPass(Pass):
        """A wrong rewrite."""

        def run(self, module: Any, statistics: Counter[str]) -> None:
            def visit(b: Builder, op: OpView, operands: Sequence[Value]) -> Sequence[Value]:
                found = rule(b, op, operands) if op.name == wanted else None
                if found is None:
                    return b.clone(op, operands)
                statistics["planted"] += 1
                return [found] if isinstance(found, Value) else found

            for operation in list(functions(module).values()):
                rebuild(module, read_function(operation), visit)


for _name in PLANTED:
    _register(_name)

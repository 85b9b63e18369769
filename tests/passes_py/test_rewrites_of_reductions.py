"""Declarative rewrites of reductions, broadcasts and casts: what is a number has the shape of what stands beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from typing import Any

import numpy as np
import pytest

from smelt.ir import dtypes, text
from smelt.ir.interpreter import Interpreter
from smelt.ir.short import to_short_text
from smelt.passes import Pipeline
from smelt.passes.rewrites import Attr, Const, RewriteSet, Term, computed, condition, number, number_of, ops, sets
from smelt.passes.rewrites.checking import check
from smelt.passes.rewrites.terms import Rule

#: Dtypes of programs: the checker takes as long for each.
AMONG = (dtypes.float32, dtypes.float64, dtypes.int32, dtypes.uint8)


@pytest.fixture
def trial() -> Iterator[RewriteSet]:
    yield RewriteSet("trial", "Rewrites of a test.")
    del sets._sets["trial"]


@computed
def count(x: Any, axes: Any) -> int:
    """How many elements are summed."""
    return prod(x.shape[axis] for axis in axes)


@computed
def without(s: Any, axes: Any) -> tuple[int, ...]:
    """A shape without some axes."""
    return tuple(extent for axis, extent in enumerate(s) if axis not in axes)


@computed
def joined(p: Any, q: Any) -> tuple[int, ...]:
    """The axes of two sums, one after the other, as those of one."""
    left = [axis for axis in range(8) if axis not in p]
    return tuple(sorted({*p, *(left[axis] for axis in q)}))


@condition
def is_scalar(c: Any) -> bool:
    return bool(c.ndim == 0)


@condition
def is_negative(c: Any) -> bool:
    return bool(number_of(c) < 0)


@condition
def is_moderate(c: Any) -> bool:
    return bool(1e-3 < abs(number_of(c)) < 1e3)


@condition
def is_wide(d: Any) -> bool:
    return bool(d.name == "float64")


@condition
def is_constant_along(y: Any, axes: Any) -> bool:
    return bool(all(y.shape[axis] == 1 for axis in axes))


def total(x: Term, axes: Attr) -> Term:
    return ops.reduce_sum(x, axes=axes)


def largest(x: Term, axes: Attr) -> Term:
    return ops.reduce_max(x, axes=axes)


S, D = Attr("s"), Attr("d")
X, Y, C, AXES, MORE = Const("x"), Const("y"), Const("c"), Attr("axes"), Attr("more")
#: How a rule is stated, what it promises, and shapes for the checker where few fit.
RIGHT: dict[str, tuple[Callable[..., Rule], dict[str, Any]]] = {
    "a factor": (
        lambda x, y, c, axes, more, s, d: (total(x * c, axes) >> total(x, axes) * c).when(x.is_float),
        {"reals": True},
    ),
    "a divisor, as a factor": (
        lambda x, y, c, axes, more, s, d: (
            (total(x / c, axes) >> total(x, axes) * (1 / c)).when(x.is_float & is_moderate(c))
        ),
        {"reals": True},
    ),
    "a summand": (
        lambda x, y, c, axes, more, s, d: (total(x + c, axes) >> total(x, axes) + c * count(x, axes)).when(x.is_float),
        {"reals": True},
    ),
    "a summand of integers": (
        lambda x, y, c, axes, more, s, d: (
            (total(x + c, axes) >> total(x, axes) + c * count(x, axes)).when(x.is_integer)
        ),
        {},
    ),
    "sums of sums": (
        lambda x, y, c, axes, more, s, d: (
            (total(total(x, axes), more) >> total(x, joined(axes, more))).when(x.is_float)
        ),
        {"reals": True},
    ),
    "the largest of what is shifted": (
        lambda x, y, c, axes, more, s, d: (largest(x + c, axes) >> largest(x, axes) + c).when(x.is_float),
        {},
    ),
    "the largest, scaled by less than nothing": (
        lambda x, y, c, axes, more, s, d: (
            (largest(x * c, axes) >> ops.reduce_min(x, axes=axes) * c).when(x.is_float & is_negative(c))
        ),
        {"reals": True},
    ),
    "the largest of what is rounded less": (
        lambda x, y, c, axes, more, s, d: (
            (largest(ops.convert(x, dtype=d), axes) >> ops.convert(largest(x, axes), dtype=d)).when(
                x.is_float & is_wide(d)
            )
        ),
        {},
    ),
    "the largest of one number": (
        lambda x, y, c, axes, more, s, d: (
            (largest(ops.maximum(x, c), axes) >> ops.maximum(largest(x, axes), c)).when(x.is_float & is_moderate(c))
        ),
        {},
    ),
    "a number that was made as large": (
        lambda x, y, c, axes, more, s, d: (
            (
                total(x * ops.broadcast(y, shape=s), axes)
                >> total(x, axes) * ops.broadcast(y, shape=without(s, axes))
            ).when(x.is_float & is_scalar(y))
        ),
        {"reals": True, "examples": [{"x": s, "y": (), "s": s, "axes": (1,)} for s in ((2, 3), (3, 4, 2))]},
    ),
    "a column that was made as wide": (
        lambda x, y, c, axes, more, s, d: (
            (
                total(x * ops.broadcast(y, shape=s), axes)
                >> total(x, axes) * ops.reshape(y, shape=without(s, axes))
            ).when(x.is_float & is_constant_along(y, axes))
        ),
        {"reals": True, "examples": [{"x": (3, 4), "y": (3, 1), "s": (3, 4), "axes": (1,)}]},
    ),
}  # fmt: skip
WRONG: dict[str, Callable[..., Rule]] = {
    "a summand, once": lambda x, y, c, axes, more, s, d: total(x + c, axes) >> total(x, axes) + c,
    "the largest, scaled": lambda x, y, c, axes, more, s, d: largest(x * c, axes) >> largest(x, axes) * c,
    "the largest of two": lambda x, y, c, axes, more, s, d: largest(x + y, axes) >> largest(x, axes) + largest(y, axes),
    "a sum of products": lambda x, y, c, axes, more, s, d: total(x * y, axes) >> total(x, axes) * total(y, axes),
    "the largest of half": lambda x, y, c, axes, more, s, d: (
        total(ops.convert(x, dtype=d), axes) >> ops.convert(total(x, axes), dtype=d)
    ),
}  # fmt: skip


def stated(trial: RewriteSet, rule: Callable[..., Rule], **claim: Any) -> Any:
    def on_trial(x: Term, y: Term, c: Const, axes: Attr, more: Attr, s: Attr, d: Attr) -> Rule:
        return rule(x, y, c, axes, more, s, d)

    return trial.rewrite(**claim)(on_trial)


@pytest.mark.parametrize("name", RIGHT)
def test_a_rewrite_of_reductions_holds(trial: RewriteSet, name: str) -> None:
    rule, claim = RIGHT[name]
    verdict = check(stated(trial, rule, **claim), among=AMONG)
    assert verdict.kept and verdict.instances > 1, str(verdict)
    if not claim.get("examples"):
        assert verdict.instances > 3, str(verdict)  # of several shapes, and of sums over some axes


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_rewrite_of_reductions_is_seen(trial: RewriteSet, name: str) -> None:
    verdict = check(stated(trial, WRONG[name], reals=True), among=AMONG)
    assert verdict.verdict == "wrong" and not verdict.kept, str(verdict)


PROGRAM = """
func.func @main(%x: tensor<4x3xf32>) -> (tensor<4xf32>, tensor<3xf32>, tensor<f32>) {
  %c = "smelt.constant"() {value = 2.000000e+00 : f64, dtype = f32} : () -> tensor<f32>
  %b = "smelt.broadcast"(%c) {shape = array<i64: 4, 3>} : (tensor<f32>) -> tensor<4x3xf32>
  %0 = "smelt.OP"(%x, %b) : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  %1 = "smelt.reduce_sum"(%0) {axes = array<i64: 1>} : (tensor<4x3xf32>) -> tensor<4xf32>
  %2 = "smelt.reduce_sum"(%0) {axes = array<i64: 0>} : (tensor<4x3xf32>) -> tensor<3xf32>
  %3 = "smelt.reduce_sum"(%0) {axes = array<i64: 0, 1>} : (tensor<4x3xf32>) -> tensor<f32>
  return %1, %2, %3 : tensor<4xf32>, tensor<3xf32>, tensor<f32>
}
"""


@pytest.mark.parametrize(
    ("name", "op", "shown"),
    [
        ("a factor", "mul", "%0 * 2.0"),
        ("a divisor, as a factor", "div", "%0 * 0.5"),
        ("a summand", "add", "%0 + 6.0"),
    ],
)
@pytest.mark.parametrize("way", ["rewrite", "saturate"])
def test_numbers_take_the_shape_of_what_is_beside_them(
    trial: RewriteSet, name: str, op: str, shown: str, way: str
) -> None:
    if way == "saturate" and op == "add":
        pytest.skip("not cheaper: one sum of all is read three times")
    rule, claim = RIGHT[name]
    stated(trial, rule, **claim)
    before, after = (text.parse(PROGRAM.replace("OP", op)) for _ in range(2))
    Pipeline.parse(f"{way}{{set=trial}},canonicalize,cse,dce").run(after)
    body = to_short_text(after)
    assert shown in body and "%arg0 * 2" not in body and "%arg0 + 2" not in body, body
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    for p, q in zip(*(Interpreter(m)("main", [x]) for m in (before, after))):
        np.testing.assert_array_equal(p, q)


def test_a_number_alone_has_the_type_of_what_it_replaces(trial: RewriteSet) -> None:
    @trial.rewrite
    def one(c: Const, axes: Attr) -> Rule:
        return largest(abs(c), axes) >> abs(c)

    @trial.rewrite
    def itself(c: Const, axes: Attr) -> Rule:
        return ops.reduce_min(c, axes=axes) >> c

    assert all(check(rewrite, among=AMONG).kept for rewrite in trial)
    source = PROGRAM.replace("OP", "mul").replace("reduce_sum", "reduce_min").replace("(%0) {axes", "(%b) {axes")
    module = text.parse(source)
    Pipeline.parse("rewrite{set=trial},dce").run(module)
    body = to_short_text(module)
    assert "reduce_min" not in body and "broadcast(2.0, shape=[4]), broadcast(2.0, shape=[3]), 2.0" in body, body


def test_computed_numbers(trial: RewriteSet) -> None:
    @trial.rewrite(reals=True)
    def of_zeros(x: Term, axes: Attr) -> Rule:
        return (total(x - x + 1, axes) >> number(count(x, axes), like=x)).when(x.is_float & is_scalar(x))

    assert "number(count(x, axes), like=x)" in str(trial)
    with pytest.raises(Exception, match="what is computed stands in replacements"):
        Rule(X + count(X, AXES), X)
    with pytest.raises(Exception, match="y does not stand in the pattern"):
        Rule(X + X, X * count(Y, AXES))

"""Integers and bools among the primals of vjp, jvp and linearize: constants, with derivatives of zero."""

from __future__ import annotations

import pytest

import smelt
from smelt.ir.errors import DTypeError, ShapeError

X, AT = smelt.array([1.0, 2.0]), smelt.array([1, 0, 1])
CT = smelt.array([1.0, 2.0, 3.0])


def chosen(x, at):
    return 2 * x[at]


def shown(arrays):
    return [(x.tolist(), x.dtype.name) for x in arrays]


GRADIENTS = [([4.0, 8.0], "float32"), ([0, 0, 0], "int32")]


@pytest.mark.parametrize("wrapped", [lambda f: f, smelt.compile], ids=["eager", "compiled"])
def test_vjp_with_indices(wrapped):
    found = wrapped(lambda x, at, ct: smelt.vjp(chosen, [x, at], [ct])[1])(X, AT, CT)
    assert shown(found) == GRADIENTS
    _, pull = smelt.vjp(chosen, [X, AT])
    assert shown(pull([CT])) == GRADIENTS


def test_jvp_and_linearize_pass_over_tangents_of_indices():
    tangents = [smelt.array([1.0, 5.0]), smelt.array([7, 7, 7])]
    values, found = smelt.jvp(chosen, [X, AT], tangents)
    assert shown([*values, *found]) == [([4.0, 2.0, 4.0], "float32"), ([10.0, 2.0, 10.0], "float32")]
    _, linear = smelt.linearize(chosen, X, AT)
    assert shown([linear(*tangents)]) == [([10.0, 2.0, 10.0], "float32")]


def test_masks_in_trees():
    tree = {"x": X, "mask": smelt.array([True, False])}
    tangent = {"x": smelt.array([3.0, 4.0]), "mask": smelt.zeros((2,), smelt.bool_)}
    _, found = smelt.jvp(lambda t: smelt.where(t["mask"], t["x"], 0), [tree], [tangent])
    assert shown(found) == [([3.0, 0.0], "float32")]
    _, (gradient,) = smelt.vjp(lambda t: smelt.where(t["mask"], t["x"], 0), [tree], [smelt.array([3.0, 4.0])])
    assert shown([gradient["x"], gradient["mask"]]) == [([3.0, 0.0], "float32"), ([False, False], "bool")]


def test_functions_of_integers_alone():
    a, b = smelt.array([3, 5]), smelt.array([1, 4])
    values, found = smelt.vjp(lambda a, b: a & b, [a, b], [smelt.array([1, 1])])
    assert shown([*values, *found]) == [([1, 4], "int32"), ([0, 0], "int32"), ([0, 0], "int32")]
    values, found = smelt.jvp(lambda a: a.astype(smelt.float32) * 2, [a], [a])
    assert shown([*values, *found]) == [([6.0, 10.0], "float32"), ([0.0, 0.0], "float32")]
    value, linear = smelt.linearize(lambda a: a * 2, a)
    assert shown([value, linear(a)]) == [([6, 10], "int32"), ([0, 0], "int32")]
    _, pull = smelt.vjp(lambda a: a.astype(smelt.float32), [a])
    assert shown(pull([smelt.array([1.0, 1.0])])) == [([0, 0], "int32")]


@pytest.mark.parametrize("dtype", [smelt.float32, smelt.int64, smelt.bool_, smelt.complex64], ids=str)
def test_what_is_ignored_may_have_any_dtype(dtype):
    """Cotangents of results that are integers, tangents of integers among the primals."""
    either = smelt.ones(3, dtype)
    _, found = smelt.vjp(lambda a, b: a & b, [AT, AT], [either])
    assert shown(found) == 2 * [([0, 0, 0], "int32")]
    _, pull = smelt.vjp(lambda x, at: (chosen(x, at), at + 1), [X, AT])
    assert shown(pull([CT, either])) == GRADIENTS
    _, found = smelt.jvp(chosen, [X, AT], [X, either])
    assert shown(found) == [([4.0, 2.0, 4.0], "float32")]
    _, linear = smelt.linearize(chosen, X, AT)
    assert shown([linear(X, either)]) == [([4.0, 2.0, 4.0], "float32")]
    with pytest.raises(ShapeError, match="cotangent of result"):
        smelt.vjp(lambda a: a + 1, [AT], [smelt.ones(2, dtype)])


def test_they_nest():
    mapped = smelt.vmap(lambda x, at: smelt.vjp(chosen, [x, at], [CT])[1])
    found = mapped(smelt.stack([X, 2 * X]), smelt.stack([AT, 1 - AT]))
    assert shown(found) == [([[4.0, 8.0], [8.0, 4.0]], "float32"), ([[0, 0, 0], [0, 0, 0]], "int32")]
    second = smelt.grad(lambda x: smelt.vjp(chosen, [x * x, AT], [CT])[0][0].sum())
    assert shown([second(X)]) == [([4.0, 16.0], "float32")]


def test_what_is_refused():
    with pytest.raises(ShapeError, match=r"primal 1 is f32\[2\], but primal 1 is i32\[3\]"):
        smelt.jvp(chosen, [X, AT], [X, X])
    with pytest.raises(DTypeError, match="floating-point arrays"):
        smelt.grad(lambda at: X[at].sum())(AT)
    with pytest.raises(DTypeError, match="floating-point arrays"):
        smelt.linear_transpose(lambda at: at + at, AT)

"""Derivatives of branches that some elements of a batch do not take: they are those of the elements one by one."""

from __future__ import annotations

import numpy as np
import pytest

import smelt
from smelt.ir.settings import override

from .checks import same


def array64(x):
    return smelt.array(np.asarray(x, np.float64), smelt.float64)


#: Smooth functions whose derivatives divide by something that they have computed.
_DIVIDING = {
    "twice": lambda x: x * 2,
    "softmax": smelt.softmax,
    "log1p": lambda x: smelt.log1p(x * x),
    "norm": lambda x: x / smelt.sqrt(1 + (x * x).sum()),
    "arctanh": lambda x: smelt.arctanh(0.9 * smelt.sin(x)),
}


@pytest.mark.parametrize("second", _DIVIDING)
@pytest.mark.parametrize("first", _DIVIDING)
def test_branches_that_an_element_does_not_take_leave_its_derivatives_alone(first, second) -> None:
    """Of second order, where what each element keeps is that of its own branch."""
    rows = smelt.array(np.random.default_rng(7).standard_normal((4, 3)), smelt.float64)
    weights = smelt.array([1.0, -2.0, 3.0], smelt.float64)
    branches = (_DIVIDING[first], _DIVIDING[second])

    def once(x):
        return smelt.grad(lambda x: (smelt.sin(smelt.cond(x[0] > 0, *branches, x)) * weights).sum())(x)

    def thrice(x):
        return smelt.grad(lambda x: smelt.switch((x > 0).sum(), (*branches, smelt.tanh), x).sum())(x)

    def repeated(x):
        def body(c, s):
            return smelt.cond(c[0] * s > 0, *branches, c), c.sum()

        return smelt.grad(lambda x: (smelt.sin(smelt.scan(body, x, weights)[0]) * weights).sum())(x)

    for f in (once, thrice, repeated):
        with override(tier="ops"):
            found = smelt.grad(lambda rows: (smelt.vmap(f)(rows) * weights).sum())(rows)  # noqa: B023
            want = [smelt.grad(lambda x: (f(x) * weights).sum())(x) for x in rows]  # noqa: B023
            same(found, np.array(smelt.stack(want)), 1e-10)


def test_what_an_element_does_not_take_has_no_infinite_derivative() -> None:
    def root(x):
        return smelt.cond(x >= 0, smelt.sqrt, lambda x: 0 * x, x)

    rows = array64([-9.0, 0.25, 4.0])
    for f in (root, lambda x: smelt.scan(lambda c, s: (root(c) * s, c), x, array64([1.0, -2.0]))[0]):
        want = [smelt.grad(f)(x) for x in rows]
        same(smelt.grad(lambda rows, f=f: smelt.vmap(f)(rows).sum())(rows), np.array(smelt.stack(want)), 1e-12)
        same(smelt.jvp(smelt.vmap(f), [rows], [smelt.ones_like(rows)])[1][0], np.array(smelt.stack(want)), 1e-12)


#: Functions whose derivatives are infinite or NaN for operands that a branch keeps from them, some in second order.
_SINGULAR = {
    "sqrt": lambda x, w: smelt.sqrt(x * w),
    "division": lambda x, w: w / x,
    "power": smelt.power,
    "norm": lambda x, w: smelt.linalg.norm(x * w) * x,
    "cholesky": lambda x, w: smelt.linalg.cholesky(smelt.outer(x, x) * w[0] + smelt.diag(x))[:, 0],
}


@pytest.mark.parametrize("taken", [True, False], ids=["taken", "not taken"])
@pytest.mark.parametrize("name", _SINGULAR)
def test_weights_that_all_share_get_nothing_from_a_branch_that_an_element_does_not_take(name, taken) -> None:
    """In all orders, in loops and in other branches; nor does LAPACK see what does not take the branch."""
    rows = array64([[1, 2, 0.5], [0, 0, 0], [-1, -0.5, 2], [0, 1, 2]])[0 if taken else 1 :]
    weights, scales = array64([0.5, 1.5, 0.8]), array64([1, -2, 0.5])

    def branch(x, w):
        return smelt.cond(x.min() > 0, _SINGULAR[name], lambda x, w: w * x * x, x, w)

    def nested(x, w):
        return smelt.cond(x.sum() > 0, lambda x, w: branch(x, w) * w, lambda x, w: x * w * w, x, w)

    def repeated(x, w):
        def step(c, s):
            y = branch(c, w)
            return x * s + 0.1 * smelt.tanh(y), y.sum()

        c, ys = smelt.scan(step, x, array64([1, 0.5]))
        return c * ys.sum()

    def in_turn(g):
        return lambda rows, w: smelt.stack([g(x, w) for x in rows])

    for f in (branch, nested, repeated):

        def first(x, w, f=f):
            return (smelt.sin(f(x, w)) * scales).sum()

        def second(x, w, first=first):
            return (smelt.grad(first, argnums=1)(x, w) * scales).sum()

        with override(tier="ops"):
            for g in (first, second):
                found, want = (
                    (smelt.grad(lambda rows, w, h=h: h(rows, w).sum(), argnums=(0, 1))(rows, weights),
                     smelt.jvp(h, [rows, weights], [smelt.ones_like(rows), scales])[1][0])
                    for h in (smelt.vmap(g, in_axes=(0, None)), in_turn(g))
                )  # fmt: skip
                for a, b in zip((*found[0], found[1]), (*want[0], want[1])):
                    same(a, np.array(b), 1e-9)


def test_batches_of_branches_compiled_and_without_elements() -> None:
    def f(x, w):
        return smelt.cond(x > 0, lambda x: smelt.sqrt(x * w), lambda x: x * w, x)

    rows, w = array64([0, 4, -1, 9]), array64(2.0)
    slope = smelt.grad(lambda rows, w: smelt.vmap(f, in_axes=(0, None))(rows, w).sum(), argnums=(0, 1))
    with override(tier="program"):
        for a, b in zip(smelt.compile(slope)(rows, w), ([2, 8**-0.5, 2, 18**-0.5], -1 + 2 / 8**0.5 + 4.5 / 18**0.5)):
            same(a, np.array(b), 1e-12)
        for n in (0, 1):
            same(slope(rows[:n], w)[1], np.array(0.0), 0)
    module = smelt.compile(smelt.vmap(f, in_axes=(0, None))).trace(rows, w).lower().module
    assert "argmax" not in str(module), "where no derivative is taken, nothing guards one"

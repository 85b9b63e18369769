"""Jacobians and Hessians against finite differences; transformations composed in every order."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import smelt

F64 = smelt.float64
RNG = np.random.default_rng(11)


def array(values: Any) -> smelt.array:
    return smelt.array(np.asarray(values, np.float64), F64)


def close(found: Any, expected: Any, tol: float = 1e-7) -> None:
    found, expected = np.array(found), np.array(expected)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=tol, atol=tol)


def numeric_jacobian(f: Callable[[np.ndarray], np.ndarray], x: np.ndarray, h: float = 1e-6) -> np.ndarray:
    """Of shape f(x).shape + x.shape, by central differences."""
    columns = []
    for i in range(x.size):
        step = np.zeros(x.size)
        step[i] = h
        step = step.reshape(x.shape)
        columns.append((f(x + step) - f(x - step)) / (2 * h))
    return np.stack(columns, -1).reshape(columns[0].shape + x.shape)


FUNCTIONS: dict[str, tuple[Callable, tuple[int, ...]]] = {
    "elementwise": (lambda x: smelt.sin(x) * smelt.exp(x), (3,)),
    "scalar": (lambda x: smelt.sum(x**3) * smelt.prod(x), (2, 2)),
    "of a scalar": (lambda x: smelt.stack([x, x * x, smelt.tanh(x)]), ()),
    "matrix product": (lambda x: x @ smelt.tanh(x).T, (2, 3)),
    "softmax": (lambda x: smelt.softmax(x * x, axis=-1), (2, 3)),
    "moved": (lambda x: smelt.concatenate([x[::-1], smelt.cumsum(x, axis=0)[1:]], axis=0).T, (3, 2)),
    "updated": (lambda x: x.at[smelt.array([0, 0])].multiply(x[1:]), (3,)),
    "vmap of grad": (smelt.vmap(smelt.grad(lambda r: smelt.logsumexp(r * r))), (2, 3)),
    "compiled": (smelt.compile(lambda x: smelt.tanh(x) ** 2), (4,)),
    "empty": (lambda x: x * 2, (0, 2)),
    "to nothing": (lambda x: x[:0], (2,)),
}
WAYS: dict[str, Callable] = {
    "jacfwd": smelt.jacfwd,
    "jacrev": smelt.jacrev,
    "compile jacfwd": lambda f: smelt.compile(smelt.jacfwd(f)),
    "compile jacrev": lambda f: smelt.compile(smelt.jacrev(f)),
    "vmap jacfwd": lambda f: lambda x: smelt.vmap(smelt.jacfwd(f))(x[None])[0],
    "vmap jacrev": lambda f: lambda x: smelt.vmap(smelt.jacrev(f))(x[None])[0],
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_jacobian(name):
    f, shape = FUNCTIONS[name]
    x = RNG.uniform(0.5, 1.5, shape)
    if x.size:
        want = numeric_jacobian(lambda a: np.array(f(array(a))), x)
    else:
        want = np.zeros(f(array(x)).shape + x.shape)
    for way, transform in WAYS.items():
        found = np.array(transform(f)(array(x)))
        assert found.shape == want.shape, way
        np.testing.assert_allclose(found, want, rtol=1e-6, atol=1e-7, err_msg=way)


@pytest.mark.parametrize("name", [n for n in FUNCTIONS if n not in ("empty", "to nothing")])
def test_hessian(name):
    f, shape = FUNCTIONS[name]
    x = RNG.uniform(0.5, 1.5, shape)
    want = numeric_jacobian(lambda a: np.array(smelt.jacrev(f)(array(a))), x)
    close(smelt.hessian(f)(array(x)), want, 1e-6)
    close(smelt.compile(smelt.jacrev(smelt.jacfwd(f)))(array(x)), want, 1e-6)


@pytest.mark.parametrize("jacobian", [smelt.jacfwd, smelt.jacrev], ids=["jacfwd", "jacrev"])
class TestTrees:
    """The tree of the result outside, the trees of the arguments inside."""

    def test_trees_of_both(self, jacobian):
        def f(p, x):
            return {"y": p["w"] @ x, "s": (p["w"].sum() * x[0], None)}

        w, x = RNG.standard_normal((2, 3)), RNG.standard_normal(3)
        found = jacobian(f, argnums=(0, 1))({"w": array(w), "k": "kept"}, array(x))
        dw, dx = found["y"]
        assert dw["k"] == "kept"
        close(dw["w"], numeric_jacobian(lambda a: a @ x, w))
        close(dx, w)
        dw, dx = found["s"][0]
        assert found["s"][1] is None
        close(dw["w"], np.full((2, 3), x[0]))
        close(dx, np.array([w.sum(), 0, 0]))

    def test_argnums_and_keywords(self, jacobian):
        def f(x, y, *, scale):
            return x * y * scale

        x, y = array([1.0, 2.0]), array([3.0, 4.0])
        close(jacobian(f, argnums=1)(x, y, scale=2), np.diag([2.0, 4.0]))
        (only,) = jacobian(f, argnums=[1])(x, y, scale=2)
        close(only, np.diag([2.0, 4.0]))

    def test_mixed_dtypes(self, jacobian):
        found = jacobian(lambda p: p[0].astype(F64) * p[1])([smelt.array([1.0, 2.0]), array([3.0, 4.0])])
        assert found[0].dtype is smelt.float32 or found[0].dtype is smelt.float64
        close(found[0], np.diag([3.0, 4.0]))
        close(found[1], np.diag([1.0, 2.0]))


def test_hessian_trees():
    def f(p):
        return (p["a"] ** 2).sum() * p["b"]

    a, b = np.array([1.0, 2.0]), 3.0
    h = smelt.hessian(f)({"a": array(a), "b": array(b)})
    close(h["a"]["a"], 2 * b * np.eye(2))
    close(h["a"]["b"], 2 * a)
    close(h["b"]["a"], 2 * a)
    close(h["b"]["b"], 0.0)


# Compositions


def energy(x: Any) -> Any:
    return smelt.sum(smelt.sin(x) * x[::-1] ** 2) + smelt.logsumexp(x)


def grad_twice(f: Callable) -> Callable:
    """The Hessian times a vector of ones, by grad of grad."""
    return smelt.grad(lambda x: smelt.grad(f)(x).sum())


def jvp_of_vjp(f: Callable) -> Callable:
    one = smelt.array(1.0, F64)

    def product(x):
        return smelt.jvp(lambda x: smelt.vjp(f, [x], [one])[1][0], [x], [smelt.ones_like(x)])[1][0]

    return product


def vjp_of_jvp(f: Callable) -> Callable:
    def product(x):
        def slope(x):
            return smelt.jvp(f, [x], [smelt.ones_like(x)])[1][0]

        return smelt.vjp(slope, [x], [smelt.array(1.0, F64)])[1][0]

    return product


def grad_of_linearized(f: Callable) -> Callable:
    return smelt.grad(lambda x: smelt.linearize(f, x)[1](smelt.ones_like(x)))


def linearized_grad(f: Callable) -> Callable:
    return lambda x: smelt.linearize(smelt.grad(f), x)[1](smelt.ones_like(x))


def grad_of_pullback(f: Callable) -> Callable:
    return smelt.grad(lambda x: smelt.vjp(f, [x])[1]([smelt.array(1.0, F64)])[0].sum())


def hessian_rows(f: Callable) -> Callable:
    return lambda x: smelt.hessian(f)(x).sum(0)


SECOND = [grad_twice, jvp_of_vjp, vjp_of_jvp, grad_of_linearized, linearized_grad, grad_of_pullback, hessian_rows]


def identity(f: Callable) -> Callable:
    return f


@pytest.mark.parametrize("inner, outer", list(itertools.product((identity, smelt.compile), repeat=2)),
                         ids=lambda f: f.__name__)  # fmt: skip
@pytest.mark.parametrize("second", SECOND, ids=lambda f: f.__name__)
def test_second_derivatives_in_every_order(second, inner, outer):
    x = RNG.standard_normal((3, 4))

    def gradient(a):
        return np.array(smelt.grad(energy)(array(a)))

    want = np.stack([numeric_jacobian(gradient, row).sum(1) for row in x])
    product = outer(second(inner(energy)))
    close(product(array(x[0])), want[0], 1e-6)
    close(smelt.vmap(product)(array(x)), want, 1e-6)
    close(smelt.vmap(product, in_axes=1, out_axes=-1)(array(x.T)), want.T, 1e-6)
    close(smelt.compile(smelt.vmap(product))(array(x)), want, 1e-6)


@pytest.mark.parametrize("wrap", [identity, smelt.compile], ids=["eager", "compile"])
def test_grad_of_vmap_and_vmap_of_grad(wrap):
    x = RNG.standard_normal((3, 4))
    each = np.stack([numeric_jacobian(lambda a: np.array(energy(array(a))), row) for row in x])
    close(wrap(smelt.vmap(smelt.grad(energy)))(array(x)), each, 1e-6)
    close(wrap(smelt.grad(lambda x: smelt.vmap(energy)(x).sum()))(array(x)), each, 1e-6)
    close(wrap(smelt.grad(lambda x: smelt.vmap(wrap(energy), in_axes=1)(x).sum()))(array(x.T)), each.T, 1e-6)
    close(wrap(smelt.vmap(wrap(smelt.grad(wrap(energy)))))(array(x)), each, 1e-6)


AXES = [(i, o, j, p) for i in (0, 2, -1) for o in (0, -1) for j in (0, 1) for p in (0, 1)]


@pytest.mark.parametrize("outer_in, outer_out, inner_in, inner_out", AXES)
def test_two_levels_with_different_axes(outer_in, outer_out, inner_in, inner_out):
    x = RNG.standard_normal((2, 3, 4))
    gradient = smelt.grad(lambda r, s: smelt.sum(smelt.sin(r) * s))
    weights = RNG.standard_normal(5)

    def f(r, s):
        return smelt.concatenate([gradient(r, s), smelt.array(weights[:1], F64)])

    mapped = smelt.vmap(
        smelt.vmap(f, in_axes=(inner_in, None), out_axes=inner_out), in_axes=(outer_in, 0), out_axes=outer_out
    )
    scales = RNG.standard_normal(x.shape[outer_in])
    slabs = []
    for i, scale in enumerate(scales):
        slab = np.take(x, i, outer_in)
        rows = [
            np.concatenate([np.cos(np.take(slab, j, inner_in)) * scale, weights[:1]])
            for j in range(slab.shape[inner_in])
        ]
        slabs.append(np.stack(rows, inner_out))
    want = np.stack(slabs, outer_out)
    close(mapped(array(x), array(scales)), want, 1e-12)
    close(smelt.compile(mapped)(array(x), array(scales)), want, 1e-12)


# Shared work


def count(text: str, *names: str) -> int:
    return sum(len(re.findall(rf'"smelt\.{name}"\(', text)) for name in names)


def after_cse(f: Callable, *arguments: Any) -> str:
    return smelt.compile(f).trace(*arguments).as_text("cse")


def forward(x: Any) -> Any:
    return smelt.sum(smelt.exp(smelt.tanh(x)) * smelt.erf(x))


SHARED: dict[str, Callable] = {
    "value and gradient": smelt.value_and_grad(forward),
    "value beside gradient": lambda x: (forward(x), smelt.grad(forward)(x)),
    "vjp": lambda x: smelt.vjp(forward, [x], [smelt.array(1.0, F64)]),
    "jvp": lambda x: smelt.jvp(forward, [x], [x]),
    "linearize twice": lambda x: (
        lambda y, push: (y, push(x), push(2 * x))
    )(*smelt.linearize(forward, x)),
    "pull twice": lambda x: (
        lambda outs, pull: (outs, pull([smelt.array(1.0, F64)]), pull([smelt.array(2.0, F64)]))
    )(*smelt.vjp(forward, [x])),
    "auxiliary values": smelt.value_and_grad(lambda x: (forward(x), {"t": smelt.tanh(x), "e": smelt.erf(x)})),
    "vmap": smelt.vmap(smelt.value_and_grad(forward)),
    "nested compiles": smelt.value_and_grad(smelt.compile(lambda x: smelt.compile(forward)(x))),
}  # fmt: skip


@pytest.mark.parametrize("name", SHARED)
def test_forward_work_is_computed_once(name):
    x = array(RNG.standard_normal((2, 3)))
    text = after_cse(SHARED[name], x)
    assert count(text, "tanh") == 1 and count(text, "erf") == 1, text
    # exp of the value, and exp(-x²) in the derivative of erf
    assert count(text, "exp") == 2, text


def test_jacobian_does_not_repeat_the_function():
    """The function runs on x alone; only what is linear has the axis of the basis."""
    x = array(RNG.standard_normal(5))
    for jacobian in (smelt.jacfwd, smelt.jacrev):
        text = after_cse(jacobian(lambda x: smelt.tanh(x) * smelt.sum(smelt.erf(x))), x)
        assert count(text, "tanh") == 1 and count(text, "erf") == 1
        assert not re.search(r'"smelt\.(tanh|erf|exp)"\([^)]*\)[^\n]*tensor<5x5', text), text


def test_eager_auxiliary_values_come_with_the_gradient():
    """Asking for a gradient and then for an auxiliary value evaluates the function once."""
    (value, aux), gradient = smelt.value_and_grad(lambda x: (forward(x), smelt.tanh(x)))(array([0.1, 0.2]))
    smelt.eval(gradient)
    assert aux._ref[0].values is not None and value._ref[0].values is not None

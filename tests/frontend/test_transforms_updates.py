"""In-place updates inside transformed functions: right derivatives, and nothing changes outside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import smelt

F64 = smelt.float64


def array(values: Any) -> smelt.array:
    return smelt.array(np.asarray(values, np.float64), F64)


UPDATES: dict[str, Callable[[Any, Any], Any]] = {}


def update(function: Callable) -> Callable:
    UPDATES[function.__name__] = function
    return function


@update
def set_item(x, v):
    x[1] = v[0] * x[0]
    return x


@update
def set_slice(x, v):
    x[1:3] = v[:2]
    return x


@update
def set_stepped(x, v):
    x[::-2] = v[:2]
    return x


@update
def set_by_indices(x, v):
    x[smelt.array([2, 0])] = v[:2] * 3
    return x


@update
def set_by_mask(x, v):
    x[x > 0] = v[0]
    return x


@update
def set_from_itself(x, v):
    x[1:] = x[:-1] * v[0]
    return x


@update
def set_in_matrix(x, v):
    m = smelt.stack([x, v])
    m[:, 1] = v[:2]
    m[0, smelt.array([0, 3])] *= x[2]
    return m[0] + m[1]


@update
def augmented(x, v):
    x += v
    x *= v
    x -= 2 * v
    x /= v * v + 1
    x **= 2
    return x


@update
def augmented_parts(x, v):
    x[1:] += v[1:]
    x[0] *= v[0]
    x = x.at[x > 0].subtract(v[1])
    return x


@update
def other_names_see_it(x, v):
    y, held = x, {"x": [x]}
    y[0] = v[0] * v[0]
    held["x"][0] *= v
    return x * y + held["x"][0]


@update
def copies_do_not_see_it(x, v):
    before, part = x * 1, x[1:]
    x += v
    return before * x + part.sum()


@update
def both_arguments(x, v):
    v += x
    x *= v
    return v + x


@update
def values_are_kept(x, v):
    v[0] = x[1]
    x[1] = v[1]
    return x * v


@update
def in_a_loop(x, v):
    for i in range(4):
        x[i] = x[i - 1] * v[i] + x[i]
    return x


for _mode in ("add", "subtract", "multiply", "divide", "maximum", "minimum"):
    for _what, _index, _take in (
        ("slice", slice(1, 3), slice(2, None)),
        ("row", 2, 1),
        ("indices", smelt.array([3, 1]), slice(2, None)),
        ("repeated", smelt.array([0, 0]), slice(2, None)),
    ):
        if _what == "repeated" and _mode in ("multiply", "divide"):
            continue  # below: the order of products is not ours to say, their derivative is
        UPDATES[f"at_{_mode}_{_what}"] = lambda x, v, m=_mode, i=_index, t=_take: getattr(x.at[i], m)(v[t])
    UPDATES[f"at_{_mode}_chained"] = lambda x, v, m=_mode: getattr((x * x).at[1:].add(v[1:]).at[2], m)(v[0])
UPDATES["at_multiply_repeated"] = lambda x, v: x.at[smelt.array([0, 0, 2])].multiply(v[1:])
UPDATES["at_divide_repeated"] = lambda x, v: x.at[smelt.array([0, 0, 2])].divide(v[1:])

X0 = np.array([0.3, -0.5, 0.7, 1.2])
V0 = np.array([1.5, 0.8, 0.6, -0.4])
RNG = np.random.default_rng(5)
DX, DV, W = RNG.standard_normal((3, 4))


def value(f: Callable, x: np.ndarray, v: np.ndarray) -> np.ndarray:
    return np.array(f(array(x), array(v)))


def loss_of(f: Callable) -> Callable:
    weights = array(W)
    return lambda x, v: (smelt.sin(f(x, v)) * weights).sum()


def slope_of(f: Callable) -> float:
    """The derivative of the loss in the direction (DX, DV), by central differences."""
    h = 1e-6
    ends = [W @ np.sin(value(f, X0 + s * DX, V0 + s * DV)) for s in (h, -h)]
    return float(ends[0] - ends[1]) / (2 * h)


def along(gx: Any, gv: Any) -> float:
    return float(np.array(gx) @ DX + np.array(gv) @ DV)


DERIVATIVES: dict[str, Callable[[Callable, Any, Any], float]] = {
    "grad": lambda loss, x, v: along(*smelt.grad(loss, (0, 1))(x, v)),
    "grad one by one": lambda loss, x, v: along(smelt.grad(loss, 0)(x, v), smelt.grad(loss, 1)(x, v)),
    "compile grad": lambda loss, x, v: along(*smelt.compile(smelt.grad(loss, (0, 1)))(x, v)),
    "grad compile": lambda loss, x, v: along(*smelt.grad(smelt.compile(loss), (0, 1))(x, v)),
    "vjp": lambda loss, x, v: along(*smelt.vjp(loss, [x, v], [smelt.array(1.0, F64)])[1]),
    "pullback": lambda loss, x, v: along(*smelt.vjp(loss, [x, v])[1](smelt.array(1.0, F64))),
    "jvp": lambda loss, x, v: smelt.jvp(loss, [x, v], [array(DX), array(DV)])[1][0].item(),
    "compile jvp": lambda loss, x, v: smelt.compile(
        lambda x, v: smelt.jvp(loss, [x, v], [array(DX), array(DV)])[1][0]
    )(x, v).item(),
    "linearize": lambda loss, x, v: smelt.linearize(loss, x, v)[1](array(DX), array(DV)).item(),
    "jacfwd": lambda loss, x, v: along(*smelt.jacfwd(loss, (0, 1))(x, v)),
    "vmap grad": lambda loss, x, v: along(
        *(g[1] for g in smelt.vmap(smelt.grad(loss, (0, 1)))(smelt.stack([2 * x, x]), smelt.stack([v, v])))
    ),
    "vmap jvp": lambda loss, x, v: smelt.vmap(
        lambda x: smelt.jvp(loss, [x, v], [array(DX), array(DV)])[1][0]
    )(smelt.stack([x, 2 * x]))[0].item(),
}  # fmt: skip


@pytest.mark.parametrize("name", UPDATES)
def test_derivatives(name):
    f = UPDATES[name]
    want = slope_of(f)
    for how, derivative in DERIVATIVES.items():
        x, v = array(X0), array(V0)
        got = derivative(loss_of(f), x, v)
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-7, err_msg=how)
        np.testing.assert_array_equal(np.array(x), X0, err_msg=f"{how} changed the caller's x")
        np.testing.assert_array_equal(np.array(v), V0, err_msg=f"{how} changed the caller's v")


VALUES: dict[str, Callable[[Callable, Any, Any], Any]] = {
    "compile": lambda f, x, v: smelt.compile(f)(x, v),
    "vmap x": lambda f, x, v: smelt.vmap(f, in_axes=(0, None))(smelt.stack([2 * x, x]), v)[1],
    "vmap v": lambda f, x, v: smelt.vmap(f, in_axes=(None, 1), out_axes=1)(x, smelt.stack([v, -v], axis=1))[:, 0],
    "compile vmap": lambda f, x, v: smelt.compile(smelt.vmap(f))(smelt.stack([x]), smelt.stack([v]))[0],
    "vmap compile": lambda f, x, v: smelt.vmap(smelt.compile(f))(smelt.stack([x]), smelt.stack([v]))[0],
    "jvp": lambda f, x, v: smelt.jvp(f, [x, v], [x, v])[0][0],
    "vjp": lambda f, x, v: smelt.vjp(f, [x, v], [x])[0][0],
}


@pytest.mark.parametrize("name", UPDATES)
def test_values(name):
    f = UPDATES[name]
    want = value(f, X0, V0)
    for how, run in VALUES.items():
        x, v = array(X0), array(V0)
        np.testing.assert_allclose(np.array(run(f, x, v)), want, rtol=1e-12, err_msg=how)
        np.testing.assert_array_equal(np.array(x), X0, err_msg=how)
        np.testing.assert_array_equal(np.array(v), V0, err_msg=how)


def test_arguments_that_are_not_differentiated_stay():
    def f(x, held):
        held["y"] += x
        return (x * held["y"]).sum(), held["y"]

    held = {"y": array([1.0, 2.0])}
    (_, y), gradient = smelt.value_and_grad(f)(array([3.0, 4.0]), held)
    assert held["y"].tolist() == [1.0, 2.0]
    assert y.tolist() == [4.0, 6.0]
    assert gradient.tolist() == [7.0, 10.0]


def test_a_function_may_update_what_it_closes_over():
    total = array(0.0)

    def f(x):
        nonlocal total
        loss = (x * x).sum()
        total += loss
        return loss

    for _ in range(3):
        smelt.grad(f)(array([1.0, 2.0]))
    assert total.item() == 15.0


def test_auxiliary_values_are_as_the_function_left_them():
    def f(x):
        start = x * 1
        x[0] = 5.0
        return (x * start).sum(), x

    (value, x), gradient = smelt.value_and_grad(f)(array([1.0, 2.0]))
    assert (value.item(), x.tolist(), gradient.tolist()) == (9.0, [5.0, 2.0], [5.0, 4.0])


def test_second_derivatives_through_updates():
    def f(x):
        x[0] = x[1] ** 3
        x[1:] *= x[0]
        return x.sum()

    # f = y³ + y⁴ + z y³ at (·, y, z)
    got = np.array(smelt.hessian(f)(array([9.0, 2.0, 3.0])))
    y, z = 2.0, 3.0
    want = np.zeros((3, 3))
    want[1, 1] = 6 * y + 12 * y**2 + 6 * z * y
    want[1, 2] = want[2, 1] = 3 * y**2
    np.testing.assert_allclose(got, want, rtol=1e-12)


def test_a_function_that_updates_the_arrays_it_was_called_with() -> None:
    """The caller's handles, by a closure: derivatives are taken where the function was called."""
    x, t = array([1.0, 2.0]), array([3.0, 4.0])

    def f(v):
        x[0] = 10.0
        t[0] = 20.0
        return (v * v).sum()

    def fresh() -> tuple[Any, Any]:
        x[:], t[:] = array([1.0, 2.0]), array([3.0, 4.0])
        return x, t

    value, gradient = smelt.value_and_grad(f)(fresh()[0])
    assert value.item() == 5 and gradient.tolist() == [2, 4] and x.tolist() == [1, 2]
    value, gradient = smelt.value_and_grad(lambda p: f(p["x"]))({"x": fresh()[0]})
    assert value.item() == 5 and gradient["x"].tolist() == [2, 4]
    assert smelt.jvp(f, [fresh()[0]], [t])[1][0].item() == 2 * (1 * 3 + 2 * 4)
    assert smelt.jvp(f, [fresh()[0]], [x])[1][0].item() == 2 * (1 * 1 + 2 * 2)
    cotangent = array(1.0)

    def g(v):
        cotangent[()] = 5.0
        return f(v)

    assert smelt.vjp(g, [fresh()[0]], [cotangent])[1][0].tolist() == [2, 4]
    assert smelt.vjp(f, [fresh()[0]])[1]([array(1.0)])[0].tolist() == [2, 4]
    assert smelt.linearize(f, fresh()[0])[0].item() == 5
    assert smelt.jacrev(lambda v: (f(v), v * v)[1])(fresh()[0]).tolist() == [[2, 0], [0, 4]]

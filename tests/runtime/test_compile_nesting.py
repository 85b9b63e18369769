"""`smelt.compile` around, inside and between other transformations."""

from __future__ import annotations

import numpy as np
import pytest

import smelt
from smelt.ir import text
from smelt.ir.settings import override


def f(x):
    return (smelt.tanh(x) * x + smelt.sin(x) ** 2).sum()


def slope(x):
    """f' in NumPy."""
    return np.tanh(x) + x / np.cosh(x) ** 2 + np.sin(2 * x)


def curvature(x):
    return 2 / np.cosh(x) ** 2 * (1 - x * np.tanh(x)) + 2 * np.cos(2 * x)


X = np.linspace(-1.0, 1.0, 6).reshape(2, 3)

NESTS = {
    "compile(vmap(grad))": lambda: smelt.compile(smelt.vmap(smelt.grad(f))),
    "vmap(compile(grad))": lambda: smelt.vmap(smelt.compile(smelt.grad(f))),
    "vmap(grad(compile))": lambda: smelt.vmap(smelt.grad(smelt.compile(f))),
    "compile(vmap(compile(grad(compile))))": lambda: smelt.compile(
        smelt.vmap(smelt.compile(smelt.grad(smelt.compile(f))))
    ),
    "compile(grad(vmap))": lambda: smelt.compile(smelt.grad(lambda x: smelt.vmap(f)(x).sum())),
    "grad(compile(vmap))": lambda: smelt.grad(lambda x: smelt.compile(smelt.vmap(f))(x).sum()),
    "grad(vmap(compile))": lambda: smelt.grad(lambda x: smelt.vmap(smelt.compile(f))(x).sum()),
    "vmap(compile(value_and_grad))": lambda: lambda x: smelt.vmap(smelt.compile(smelt.value_and_grad(f)))(x)[1],
    "compile(vjp(compile))": lambda: smelt.compile(
        lambda x: smelt.vjp(smelt.compile(f), [x], [smelt.array(1.0, smelt.float64)])[1][0]
    ),
    "checkpoint(compile)": lambda: smelt.grad(smelt.checkpoint(smelt.compile(f))),
    "compile(grad(checkpoint))": lambda: smelt.compile(smelt.grad(smelt.checkpoint(f))),
    "linearize(compile)": lambda: lambda x: smelt.vjp(smelt.compile(f), [x])[1]([smelt.array(1.0, smelt.float64)])[0],
}


@pytest.mark.parametrize("device", ["cpu", "reference"])
@pytest.mark.parametrize("name", NESTS)
def test_first_derivatives(name: str, device: str) -> None:
    with override(device=device):
        function = NESTS[name]()
        for scale in (1.0, 0.5):  # the second call finds what the first one compiled
            x = smelt.array(scale * X, smelt.float64)
            np.testing.assert_allclose(np.array(function(x)), slope(scale * X), rtol=1e-12, atol=1e-12)


SECOND = {
    "compile(grad(compile(grad)))": lambda: smelt.compile(smelt.grad(smelt.compile(lambda x: smelt.grad(f)(x).sum()))),
    "grad(compile(grad))": lambda: smelt.grad(lambda x: smelt.compile(smelt.grad(f))(x).sum()),
    "jvp(compile(grad(compile)))": lambda: lambda x: smelt.jvp(
        smelt.compile(smelt.grad(smelt.compile(f))), [x], [smelt.ones_like(x)]
    )[1][0],
    "vmap(vmap(grad(grad(compile))))": lambda: smelt.vmap(smelt.vmap(smelt.grad(smelt.grad(smelt.compile(f))))),
    "compile(vmap(vmap(compile(grad(grad)))))": lambda: smelt.compile(
        smelt.vmap(smelt.vmap(smelt.compile(smelt.grad(smelt.grad(f)))))
    ),
    "hessian(compile)": lambda: lambda x: smelt.diag(
        smelt.compile(smelt.hessian(smelt.compile(f)))(x.reshape(-1))
    ).reshape(x.shape),
}


@pytest.mark.parametrize("name", SECOND)
def test_second_derivatives(name: str) -> None:
    x = smelt.array(X, smelt.float64)
    np.testing.assert_allclose(np.array(SECOND[name]()(x)), curvature(X), rtol=1e-11, atol=1e-11)


def test_a_compiled_function_is_traced_once_for_each_kind_of_caller() -> None:
    traces = []

    @smelt.compile
    def inner(x):
        traces.append(x.shape)
        return smelt.exp(x)

    outer = smelt.compile(lambda x: inner(x) + inner(2 * x))
    for _ in range(3):
        outer(smelt.ones(3))
        inner(smelt.ones(3))
    assert len(traces) == 3  # twice inside of outer, once alone
    smelt.vmap(inner)(smelt.ones((2, 3)))
    assert len(traces) == 4


def test_a_value_and_its_gradient_share_the_forward_pass() -> None:
    step = smelt.compile(smelt.value_and_grad(lambda x: smelt.exp(smelt.sin(x)).sum()))
    stages = step.trace(smelt.ones(5)).lower().compile()
    assert stages.as_text("cse").count('"smelt.exp"') == 1
    assert stages.as_text("cse").count('"smelt.sin"') == 1


def test_state_flows_through_nested_compiles() -> None:
    state = {"n": smelt.array(0.0)}

    def count(x):
        state["n"] = state["n"] + 1
        return x * state["n"]

    inner = smelt.compile(count, inputs=state, outputs=state)
    outer = smelt.compile(lambda x: inner(x) + inner(x), inputs=state, outputs=state)
    assert outer(smelt.array(1.0)).item() == 3.0  # 1 + 2
    assert outer(smelt.array(1.0)).item() == 7.0  # 3 + 4
    assert state["n"].item() == 4.0
    assert inner(smelt.array(1.0)).item() == 5.0


def test_a_training_step_with_captured_state() -> None:
    state = {"w": smelt.array([0.5, -0.5]), "momentum": smelt.zeros(2)}
    x, y = smelt.array([[1.0, 2.0], [3.0, 4.0]]), smelt.array([0.0, 1.0])

    def step(x, y):
        loss, g = smelt.value_and_grad(lambda w: ((x @ w - y) ** 2).mean())(state["w"])
        state["momentum"] = 0.9 * state["momentum"] + g
        state["w"] = state["w"] - 0.01 * state["momentum"]
        return loss

    def numpy_step(w, m):
        r = np.array(x) @ w - np.array(y)
        m = 0.9 * m + 2 * np.array(x).T @ r / 2
        return (r**2).mean(), w - 0.01 * m, m

    compiled = smelt.compile(step, inputs=state, outputs=state)
    w, m = np.array([0.5, -0.5]), np.zeros(2)
    for _ in range(20):
        loss = compiled(x, y)
        want, w, m = numpy_step(w, m)
        np.testing.assert_allclose(loss.item(), want, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(np.array(state["w"]), w, rtol=1e-4)


def test_compiled_functions_as_arguments_and_results() -> None:
    square = smelt.compile(lambda x: x * x)
    twice = smelt.compile(lambda g, x: g(g(x)))
    assert twice(square, smelt.array(3.0)).item() == 81.0
    assert smelt.grad(lambda x: twice(square, x))(smelt.array(2.0)).item() == 32.0


def test_compile_inside_control_flow_and_the_reverse() -> None:
    inner = smelt.compile(lambda c: smelt.sin(c) + 1.0)
    loop = smelt.compile(lambda x: smelt.fori_loop(0, 5, lambda i, c: inner(c), x))
    want = x = 0.3
    for _ in range(5):
        want = np.sin(want) + 1.0
    assert loop(smelt.array(x)).item() == pytest.approx(want, rel=1e-6)
    batch = smelt.vmap(loop)(smelt.array([x, x]))
    np.testing.assert_allclose(np.array(batch), [want, want], rtol=1e-6)


def test_the_ir_of_a_nest_has_the_transformations_in_it() -> None:
    ir = smelt.make_ir(smelt.compile(smelt.vmap(smelt.grad(smelt.compile(f)))))(smelt.ones((2, 3)))
    assert '"smelt.vjp"' in ir and '"smelt.batch"' in ir
    text.parse(ir)

"""Arguments that are numbers to a function: a derivative by one is right or refused, never zero without a word."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir.errors import NotDifferentiableError, SmeltError

F64 = smelt.float64
MATRIX = smelt.array(np.linspace(0.5, 2.0, 9).reshape(3, 3) + 3 * np.eye(3), F64)
#: What other arguments are tried with.
OPERANDS = (MATRIX, MATRIX[0], smelt.array(1.5, F64))
GIVEN: dict[str, Any] = {"shape": (3,), "axis": 0, "dtype": F64, "num": 5, "n": 2, "x": 0.5}


def parameters() -> Iterator[Any]:
    for module, prefix in ((smelt, ""), (smelt.linalg, "linalg."), (smelt.fft, "fft."), (smelt.fast, "fast.")):
        for name in module.__all__:
            function = getattr(module, name)
            if not inspect.isfunction(function):
                continue
            for p in inspect.signature(function).parameters.values():
                if any(word in str(p.annotation) for word in ("float", "Scalar")):
                    yield pytest.param(function, p.name, id=f"{prefix}{name}-{p.name}")


def call(function: Callable[..., Any], name: str, value: Any, operand: smelt.array) -> smelt.array:
    """The sum of all that a function returns for `value` as the argument `name`."""
    args, kwargs = [], {}
    for p in inspect.signature(function).parameters.values():
        if p.name == name:
            given = value
        elif p.default is not p.empty or p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            continue
        elif "array" in str(p.annotation).lower():
            given = operand
        else:
            given = GIVEN.get(p.name, 1.5)
        by_name = p.default is not p.empty and p.kind is not p.POSITIONAL_ONLY
        if p.kind is p.KEYWORD_ONLY or kwargs or by_name:
            kwargs[p.name] = given
        else:
            args.append(given)
    leaves = smelt.utils.tree_flatten(function(*args, **kwargs), destination=[])
    found = [x for _, x in leaves if isinstance(x, smelt.array) and smelt.isdtype(x.dtype, ("real floating",))]
    return sum((x.astype(F64).sum() for x in found), smelt.array(0.0, F64))


@pytest.mark.parametrize(("function", "name"), list(parameters()))
def test_no_derivative_is_lost(function: Callable[..., Any], name: str) -> None:
    at, step = smelt.array(0.37, F64), 1e-4
    for operand in OPERANDS:
        try:
            values = [float(call(function, name, at + d, operand)) for d in (step, -step, step)]
            found = float(smelt.grad(lambda x: call(function, name, x, operand))(at))  # noqa: B023
        except SmeltError:
            continue
        slope = (values[0] - values[1]) / (2 * step)
        if values[0] == values[2] and math.isfinite(slope) and abs(slope) > 0.1:  # it is no random number
            assert found != 0


def test_what_is_constant_on_purpose() -> None:
    x = smelt.array(1.5)
    with pytest.raises(NotDifferentiableError, match=r"smelt\.arange: start .*stop_gradient.*test_lost_derivatives"):
        smelt.grad(lambda x: smelt.arange(x, 5.0).sum())(x)
    for constant in (smelt.stop_gradient, lambda v: v.item(), lambda v: (v > 1).astype(smelt.float32)):
        found = smelt.grad(lambda x: smelt.arange(constant(x), 5.0).sum() * x)(x)  # noqa: B023
        assert found.item() == float(np.arange(float(constant(x)), 5.0).sum())
    outside = smelt.array(1.0)
    assert smelt.grad(lambda x: (x * smelt.arange(outside, 5.0)).sum())(x).item() == 10


@pytest.mark.parametrize("transform", ["compile", "vmap"])
def test_ends_of_linspace_without_a_value(transform: str) -> None:
    f = smelt.compile(lambda x: smelt.linspace(x, 2, 3)) if transform == "compile" else smelt.linspace
    if transform == "vmap":
        f = smelt.vmap(lambda x: smelt.linspace(x, 2, 3))
    x = np.array(1.5 if transform == "compile" else [1.5, 1.0], np.float32)
    np.testing.assert_allclose(np.asarray(f(smelt.array(x))), np.linspace(x, 2, 3).T)


@pytest.mark.parametrize("num", [1, 2, 5])
@pytest.mark.parametrize("endpoint", [True, False])
def test_derivatives_by_the_ends_of_linspace(num: int, endpoint: bool) -> None:
    def f(ends: smelt.array) -> smelt.array:
        line = smelt.linspace(ends[0], ends[1:], num, endpoint, dtype=F64)
        return (line**2 * smelt.arange(1.0, num + 1)).sum()

    at = np.array([0.3, 1.7])
    rows = [(float(f(smelt.array(at + d, F64))) - float(f(smelt.array(at - d, F64)))) / 2e-6 for d in 1e-6 * np.eye(2)]
    np.testing.assert_allclose(np.asarray(smelt.grad(f)(smelt.array(at, F64))), rows, rtol=1e-6, atol=1e-6)


def _by_rule(v: smelt.array, n: smelt.array) -> smelt.array:
    @smelt.custom_function
    def scaled(v: smelt.array, n: smelt.array) -> smelt.array:
        return v * smelt.arange(0, n).sum()

    @scaled.vjp
    def rule(primals: tuple[smelt.array, smelt.array], cotangent: smelt.array, _: smelt.array) -> tuple:
        return cotangent * smelt.arange(0, primals[1]).sum(), smelt.zeros(())

    return scaled(v, n)


@pytest.mark.parametrize(
    "function",
    [
        _by_rule,
        smelt.checkpoint(lambda v, n: v * smelt.arange(0, n).sum()),
        lambda v, n: v * smelt.grad(lambda a, n: a * smelt.arange(0, n).sum())(smelt.array(2.0), n),
    ],
    ids=["custom_function", "checkpoint", "grad"],
)
def test_constants_are_numbers_within_functions_with_rules(function: Callable[..., smelt.array]) -> None:
    assert float(smelt.grad(lambda v: function(v, smelt.array(4.0)))(smelt.array(3.0))) == 6


def test_an_argument_is_no_constant_within_a_function_with_a_rule() -> None:
    function = smelt.checkpoint(lambda v: v * smelt.arange(0, v).sum())
    with pytest.raises(NotDifferentiableError, match=r"smelt\.arange"):
        smelt.grad(function)(smelt.array(3.0))


def test_what_another_derivative_left_is_constant() -> None:
    left = []

    def f(v: smelt.array) -> smelt.array:
        left.append(2 * v)
        return v * v

    smelt.grad(f)(smelt.array(2.0))
    assert float(smelt.grad(lambda v: v * smelt.arange(0, left[0]).sum())(smelt.array(3.0))) == 6

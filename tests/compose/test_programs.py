"""Random programs give the same numbers however they are run and transformed."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import smelt
from smelt.ir.settings import override

from ..examples import examples
from .programs import Program, arguments_for, programs

common = {"deadline": None, "suppress_health_check": list(HealthCheck), "print_blob": True}


def _arrays(program: Program, seed: int, dtype=np.float64) -> list:
    return [smelt.array(a, dtype) for a in arguments_for(program, seed, dtype)]


def _close(a, b, what: str, rtol: float = 1e-9) -> None:
    np.testing.assert_allclose(np.array(a), np.array(b), rtol=rtol, atol=rtol, err_msg=what)


@settings(max_examples=examples(60), **common)
@given(programs(), st.integers(0, 3))
def test_compiled_agrees_with_eager_and_reference(program, seed):
    arguments = _arrays(program, seed)
    eager = program.all_values(*arguments)
    smelt.eval(eager)
    compiled = smelt.compile(lambda *xs: program.all_values(*xs))(*arguments)
    with override(device="reference"):
        reference = smelt.compile(lambda *xs: program.all_values(*xs))(*arguments)
    for i, (a, b, c) in enumerate(zip(eager, compiled, reference)):
        assert a.shape == b.shape == c.shape
        _close(b, a, f"{program}\ncompiled v{i + len(arguments)}")
        _close(c, a, f"{program}\nreference v{i + len(arguments)}")


@settings(max_examples=examples(36), **common)
@given(programs(max_steps=8), st.integers(0, 3))
def test_float32_kernels_agree(program, seed):
    arguments = _arrays(program, seed, np.float32)
    eager = program.all_values(*arguments)
    smelt.eval(eager)
    compiled = smelt.compile(lambda *xs: program.all_values(*xs))(*arguments)
    for a, b in zip(eager, compiled):
        _close(b, a, str(program), 2e-4)


@settings(max_examples=examples(30), **common)
@given(programs(max_steps=7), st.integers(0, 3))
def test_gradient_agrees_with_finite_differences(program, seed):
    arguments = _arrays(program, seed)
    gradient = smelt.grad(lambda xs: program(*xs))
    gradients = gradient(arguments)
    compiled = smelt.compile(gradient)(arguments)
    rng = np.random.default_rng(seed + 10)
    directions = [rng.standard_normal(a.shape) for a in arguments]
    slope = sum(float(np.sum(np.array(g) * d)) for g, d in zip(gradients, directions))
    if any(text.startswith("stop") for text, _ in program.steps):
        h = None
    else:
        h = 1e-6
    for a, b in zip(gradients, compiled):
        _close(b, a, f"{program}\ncompiled gradient", 1e-7)
    if h is not None:
        ends = [
            program(*(smelt.array(np.array(a) + s * h * d, np.float64) for a, d in zip(arguments, directions))).item()
            for s in (1, -1)
        ]
        numeric = (ends[0] - ends[1]) / (2 * h)
        np.testing.assert_allclose(slope, numeric, rtol=2e-4, atol=2e-4, err_msg=str(program))


@settings(max_examples=examples(24), **common)
@given(programs(max_steps=6), st.integers(0, 3), st.sampled_from((0, -1)))
def test_vmap_agrees_with_a_loop(program, seed, axis):
    rows = [_arrays(program, seed * 10 + i) for i in range(3)]
    stacked = [smelt.stack(column, axis=axis) for column in zip(*rows)]
    want = smelt.stack([program(*row) for row in rows])
    _close(smelt.vmap(program, in_axes=axis)(*stacked), want, str(program))
    gradient = smelt.vmap(smelt.grad(program), in_axes=axis, out_axes=axis)(*stacked)
    loop = smelt.stack([smelt.grad(program)(*row) for row in rows], axis=axis)
    _close(gradient, loop, f"{program}\nvmap of grad", 1e-7)
    both = smelt.compile(smelt.vmap(smelt.grad(program), in_axes=axis, out_axes=axis))(*stacked)
    _close(both, loop, f"{program}\ncompiled vmap of grad", 1e-7)


@settings(max_examples=examples(15), **common)
@given(programs(max_steps=4), st.integers(0, 3))
def test_second_derivatives_agree_eager_and_compiled(program, seed):
    arguments = _arrays(program, seed)

    def inner(*xs):
        return sum((smelt.grad(program)(*xs) ** 2).sum() for _ in range(1))

    eager = smelt.grad(inner)(*arguments)
    compiled = smelt.compile(smelt.grad(inner))(*arguments)
    _close(compiled, eager, str(program), 1e-6)

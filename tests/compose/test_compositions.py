"""Random nests of transformations agree with plainer ways to say the same, however and wherever they run."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import smelt
from smelt.ir.settings import override

from ..examples import examples
from .compositions import Direct, Nest, Plain, nested_programs, operands
from .test_programs import _close, common

#: Transformations of which batches are taken.
BATCHED = ("grad", "jvp", "vjp", "hvp", "vmap", "compile")

seeds = st.integers(0, 3)


def _function(nest: Nest, way: Any = Direct) -> Any:
    return lambda v, w: nest.run(v, w, way)


@settings(max_examples=examples(30), **common)
@given(nested_programs(depth=3), seeds)
def test_eager_compiled_and_reference_agree(program: Any, seed: int) -> None:
    nest, shape = program
    v, w = operands(shape, seed)
    f = _function(nest)
    eager = f(v, w)
    assert eager.shape == shape
    assert eager.dtype == smelt.float64
    _close(smelt.compile(f)(v, w), eager, f"{nest}\ncompiled", 1e-8)
    with override(device="reference"):
        _close(smelt.compile(f)(v, w), eager, f"{nest}\nreference", 1e-8)


@settings(max_examples=examples(24), **common)
@given(nested_programs(depth=2, largest=4), seeds)
def test_loops_and_forward_mode_say_the_same(program: Any, seed: int) -> None:
    nest, shape = program
    v, w = operands(shape, seed)
    _close(_function(nest)(v, w), _function(nest, Plain)(v, w), str(nest), 1e-8)


@settings(max_examples=examples(18), **common)
@given(nested_programs(depth=2), seeds)
def test_derivatives_of_nests_are_limits_of_differences(program: Any, seed: int) -> None:
    nest, shape = program
    v, w = operands(shape, seed)
    if "stop" in str(nest):
        return
    f = lambda v, w: (_function(nest)(v, w) * (v + 2.0)).sum()  # noqa: E731
    directions = [np.random.default_rng(seed + 5).standard_normal(shape) for _ in range(2)]
    h = 1e-6
    ends = [
        f(*(smelt.array(np.array(x) + s * h * d, smelt.float64) for x, d in zip((v, w), directions))).item()
        for s in (1, -1)
    ]
    want = (ends[0] - ends[1]) / (2 * h)
    gradients = smelt.compile(smelt.grad(f, argnums=(0, 1)))(v, w)
    found = sum(float(np.sum(np.array(g) * d)) for g, d in zip(gradients, directions))
    np.testing.assert_allclose(found, want, rtol=2e-4, atol=2e-4, err_msg=str(nest))


@settings(max_examples=examples(18), **common)
@given(nested_programs(depth=2, coarse=True), seeds)
def test_other_dtypes_on_the_way_agree(program: Any, seed: int) -> None:
    nest, shape = program
    v, w = operands(shape, seed, np.float32)
    f = _function(nest)
    eager, compiled = f(v, w), smelt.compile(f)(v, w)
    assert eager.dtype == compiled.dtype == smelt.float32
    # Half precision is rounded where kernels begin and end, so that sizes of rounding errors differ.
    _close(compiled, eager, f"{nest}\ncompiled", 2e-2)
    with override(device="reference"):
        _close(smelt.compile(f)(v, w), eager, f"{nest}\nreference", 2e-2)


@settings(max_examples=examples(18), **common)
@given(nested_programs(depth=2, of=BATCHED), st.sampled_from([(0, 0), (-1, 0), (1, None)]), seeds)
def test_batches_of_nests_are_loops(program: Any, axes: tuple[int, int | None], seed: int) -> None:
    nest, shape = program
    if shape == ():
        axes = (0, None if axes[1] is None else 0)
    rows = [operands(shape, seed * 10 + i) for i in range(2)]
    rows = [[v, rows[0][1] if axes[1] is None else w] for v, w in rows]
    given = [smelt.stack([v for v, _ in rows], axis=axes[0])]
    given.append(rows[0][1] if axes[1] is None else smelt.stack([w for _, w in rows], axis=axes[1]))
    want = smelt.stack([_function(nest)(v, w) for v, w in rows], axis=-1)
    batched = smelt.vmap(_function(nest), in_axes=axes, out_axes=-1)
    _close(batched(*given), want, str(nest), 1e-8)
    _close(smelt.compile(batched)(*given), want, f"{nest}\ncompiled", 1e-8)

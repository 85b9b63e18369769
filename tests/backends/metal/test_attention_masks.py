"""Tiles of keys that a mask hides from all rows of a threadgroup are skipped, and nothing else is."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.backends.attention import analyse_attention
from smelt.backends.gpu.program import DeviceSegment
from smelt.ir import text
from smelt.ir.builder import functions, read_function
from smelt.ir.index import Index
from smelt.passes import Pipeline
from smelt.passes.kernels.attention import attention_plan

from . import harness
from .test_attention import masked, of, operands, right

LEAST = float(np.finfo(np.float32).min)


def attended(mask: Callable[[Any, Any], Any], hidden: float, added: bool = False) -> Callable[..., Any]:
    """Attention where ``mask(queries, keys)`` says what is seen."""

    def function(q: Any, k: Any, v: Any) -> Any:
        rows, keys = smelt.expand_dims(smelt.arange(q.shape[-2]), 1), smelt.arange(k.shape[-2])
        scores, seen = q @ smelt.swapaxes(k, -1, -2) * 0.25, mask(rows, keys)
        scores = scores + smelt.where(seen, 0.0, hidden) if added else smelt.where(seen, scores, hidden)
        return smelt.softmax(scores, axis=-1) @ v

    return function


MASKS: dict[str, Callable[[Any, Any], Any]] = {
    "causal": lambda i, j: j <= i,
    "strictly": lambda i, j: ~(j > i - 1),
    "later": lambda i, j: i <= j,
    "window": lambda i, j: (i >= j) & (i - j < 20),
    "around": lambda i, j: ~((i + 9 < j) | (j < i - 7)),
    "from a key on": lambda i, j: j >= 50,
    "reversed": lambda i, j: -i + 60 > j,
    "distant": lambda i, j: (j > i) & (j < i),
}
#: Those of which some row of 80 sees nothing.
EMPTY = ("strictly", "reversed", "distant")


def bounds_of(function: Callable[..., Any], shapes: Sequence[Any]) -> tuple[Index, ...]:
    module = text.parse(harness.graph_of(function, *shapes))
    Pipeline.parse(harness.metal.PIPELINE).run(module)
    bodies = map(read_function, functions(module).values())
    (body,) = (f for f in bodies if not isinstance(attention_plan(f), str))
    return analyse_attention(body).bounds


@pytest.mark.parametrize("name", MASKS)
def test_what_is_known(name: str) -> None:
    """Every key that a mask shows satisfies all bounds, and of the others as many are hidden as can be."""
    shapes = operands(1, 2, 2, 48, 96, 16)
    for hidden, added in ((float("-inf"), False), (LEAST, False), (LEAST, True), (float("-inf"), True)):
        bounds = bounds_of(attended(MASKS[name], hidden, added), shapes)
        i, j = np.arange(48)[:, None], np.arange(96)
        seen, shown = np.broadcast_to(MASKS[name](i, j), (48, 96)), np.ones((48, 96), bool)
        if hidden == LEAST and not seen.any(axis=1).all():
            assert not bounds  # rows of which everything is hidden get the mean of all values
            continue
        for bound in bounds:
            shown &= bound.const + sum(c * (j if a.args == ("k0",) else i) for a, c in bound.terms) >= 0
        np.testing.assert_array_equal(shown, seen)


def test_what_is_not_known() -> None:
    shapes = operands(1, 1, 1, 32, 64, 16)

    def biased(q: Any, k: Any, v: Any, bias: Any) -> Any:
        """What is seen may be hidden by numbers that are not known."""
        seen = smelt.expand_dims(smelt.arange(32), 1) >= smelt.arange(64)
        return smelt.softmax(smelt.where(seen, q @ smelt.swapaxes(k, -1, -2) + bias, LEAST), axis=-1) @ v

    assert not bounds_of(biased, [*shapes, of(32, 64)])
    assert not bounds_of(attended(lambda i, j: i * i >= j, float("-inf")), shapes)
    assert not bounds_of(attended(MASKS["causal"], -1e4), shapes)
    assert not bounds_of(attended(lambda i, j: (i >= j) | (j > 40), float("-inf")), shapes)
    byte = attended(lambda i, j: i.astype(smelt.uint8) * 1 - 40 >= j.astype(smelt.uint8), float("-inf"))
    assert not bounds_of(byte, shapes)  # it wraps


def test_values() -> None:
    shapes = operands(1, 1, 1, 80, 112, 8)
    right(*((attended(mask, float("-inf")), shapes) for name, mask in MASKS.items() if name not in EMPTY))
    right(*((attended(mask, LEAST, True), shapes) for name, mask in MASKS.items() if name not in EMPTY))


def test_heads_that_share_keys() -> None:
    """A threadgroup has rows of several heads: 40 queries are no multiple of its 64 rows."""
    right(
        (masked("causal"), operands(1, 4, 2, 40, 130, 8, dtype="bfloat16")),
        (masked("causal"), operands(2, 2, 1, 64, 96, 8)),
        (masked("causal"), operands(1, 3, 1, 70, 70, 5)),
    )


def test_rows_that_see_nothing() -> None:
    """-inf makes NaN of them, as in the reference; the least number the mean of all values."""
    shapes = operands(1, 1, 1, 80, 112, 8)
    calls = [(attended(MASKS[name], hidden), shapes) for name in EMPTY for hidden in (float("-inf"), LEAST)]
    calls.append((masked("causal"), operands(1, 2, 1, 90, 40, 8)))
    for function, given in calls:
        graph = harness.graph_of(function, *given)
        program = harness.program_of(graph)
        assert [kernel.schedule for kernel in program.kernels] == ["attention"]
        arrays = [harness.sample(a, seed=i) for i, a in enumerate(program.arguments)]
        for found, wanted in zip(harness.run(program, arrays), harness.expected(graph, arrays)):
            np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-5)


def test_tiles_are_skipped() -> None:
    """Values that are not numbers leave no trace where no row of a threadgroup sees them, and theirs where one does."""
    shapes = operands(1, 1, 1, 128, 128, 16)
    program = harness.program_of(harness.graph_of(attended(MASKS["window"], float("-inf")), *shapes))
    assert isinstance(program.segments[0], DeviceSegment)
    arrays = [harness.sample(a, seed=i) for i, a in enumerate(program.arguments)]
    arrays[2][0, 0, 127], arrays[2][0, 0, 0] = np.nan, np.inf
    (found,) = harness.run(program, arrays)
    assert np.isfinite(found[0, 0, 20:64]).sum() == 0 and np.isnan(found[0, 0, 64:]).all()
    arrays[2][0, 0, 0] = 1.0
    (found,) = harness.run(program, arrays)
    assert np.isfinite(found[0, 0, :64]).all() and np.isnan(found[0, 0, 127]).all()


def test_random_masks() -> None:
    rng = random.Random(1)
    calls = []
    for _ in range(4):
        low, high = rng.randint(-60, 60), rng.randint(0, 70)
        step, hidden = rng.choice([1, -1]), rng.choice([float("-inf"), LEAST])
        mask = lambda i, j, low=low, high=high, step=step: (j >= i * step + low) & (j - high < i * step)  # noqa: E731
        queries, keys, features = rng.randint(16, 140), rng.randint(33, 140), rng.randint(1, 20)
        if not mask(np.arange(queries)[:, None], np.arange(keys)).any(axis=1).all():
            hidden = LEAST  # such rows are tested above
        groups = rng.choice([1, 2])
        calls.append((attended(mask, hidden), operands(1, groups, groups, queries, keys, features)))
    right(*calls)

"""Attention as one kernel: values beside the reference in race mode, and what is no attention."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.backends.cuda.source import cuda_source
from smelt.backends.gpu.program import DeviceSegment, Program
from smelt.backends.metal.check import check as strict
from smelt.backends.metal.simulator import Options

from . import harness
from .test_contract import ORDERS, of

Call = tuple[Callable[..., Any], Sequence[smelt.ShapeDtype]]


def plain(q: Any, k: Any, v: Any) -> Any:
    return smelt.softmax(q @ smelt.swapaxes(k, -1, -2) * 0.25, axis=-1) @ v


def masked(mask: str | None) -> Callable[..., Any]:
    def function(q: Any, k: Any, v: Any, *given: Any) -> Any:
        return smelt.fast.scaled_dot_product_attention(q, k, v, scale=0.3, mask=given[0] if given else mask)

    return function


def heads_last(q: Any, k: Any, v: Any) -> Any:
    """Operands and result as models have them before and behind their projections."""
    q, k, v = (smelt.swapaxes(x, 1, 2) for x in (q, k, v))
    return smelt.swapaxes(smelt.fast.scaled_dot_product_attention(q, k, v, scale=0.3), 1, 2)


def by_columns(q: Any, k: Any, v: Any) -> Any:
    """Scores of which a column is a query's."""
    scores = k @ smelt.swapaxes(q, -1, -2)
    return smelt.swapaxes(smelt.softmax(scores, axis=-2), -1, -2) @ v


def biased(q: Any, k: Any, v: Any, table: Any) -> Any:
    """A number for each distance of a query and a key is looked up, and a window of keys is seen."""
    queries, keys = smelt.expand_dims(smelt.arange(20), 1), smelt.arange(36)
    scores = q @ smelt.swapaxes(k, -1, -2) + smelt.transpose(table[queries - keys + 35], (2, 0, 1))
    return smelt.tanh(smelt.softmax(smelt.where(keys <= queries + 9, scores, -smelt.inf), axis=-1) @ v)


def program_of(calls: Sequence[Call], gpu: str = "simulator") -> tuple[str, Program]:
    """One program that computes all of them: the simulator's compiler starts once."""
    counts = [len(arguments) for _, arguments in calls]

    def all_of_them(*arrays: Any) -> tuple[Any, ...]:
        rest = iter(arrays)
        return tuple(f(*(next(rest) for _ in range(n))) for (f, _), n in zip(calls, counts))

    graph = harness.graph_of(all_of_them, *(x for _, arguments in calls for x in arguments))
    return graph, harness.program_of(graph, gpu)


def right(*calls: Call, gpu: str = "simulator") -> None:
    """Each is one kernel, and maps; its text is strict Metal, its values are right whatever the order of threads."""
    graph, program = program_of(calls, gpu)
    assert [k.schedule for k in program.kernels if k.schedule != "map"] == ["attention"] * len(calls)
    (segment,) = program.segments
    assert isinstance(segment, DeviceSegment) and not strict(segment.text)
    assert all(k.threadgroup_bytes <= 32768 for k in segment.manifest.kernels)
    operands = [harness.sample(a, seed=i) for i, a in enumerate(program.arguments)]
    wanted = harness.expected(graph, operands)
    for options in (Options(order=order, poison=True, guard=True) for order in ORDERS[1:]):
        harness.close(harness.run(program, operands, options), wanted, program, 2e-5)


def operands(
    batch: int, heads: int, groups: int, queries: int, keys: int, features: int, values: int = 0, dtype: str = "float32"
) -> list[smelt.ShapeDtype]:
    """The avals of queries, keys and values."""
    return [
        of(batch, heads, queries, features, dtype=dtype),
        of(batch, groups, keys, features, dtype=dtype),
        of(batch, groups, keys, values or features, dtype=dtype),
    ]


def test_masks() -> None:
    small, half = (operands(2, 4, 2, 24, 40, 32, dtype=dtype) for dtype in ("float32", "bfloat16"))
    right(
        (plain, operands(1, 1, 1, 64, 96, 64, dtype="bfloat16")),
        (masked("causal"), operands(1, 4, 2, 40, 50, 24)),
        (masked(None), [*half, of(1, 1, 24, 40, dtype="bfloat16")]),
        (masked(None), [*small, of(2, 1, 24, 40, dtype="bool_")]),
        (biased, [*operands(1, 2, 2, 20, 36, 16), of(55, 2)]),
    )


def test_where_elements_of_matrices_are_known() -> None:
    """Lanes tell each other by shuffles what goes through memory where it is not specified which of them has what."""
    right(
        (plain, operands(1, 2, 1, 40, 50, 24)),
        (masked("causal"), operands(1, 2, 2, 40, 50, 64, dtype="float16")),
        (masked(None), [*operands(1, 2, 2, 24, 40, 32, dtype="bfloat16"), of(1, 1, 24, 40, dtype="bool_")]),
        # so many that simdgroups have more rows, and tiles come in turn
        (masked("causal"), operands(4, 64, 32, 70, 140, 16, dtype="bfloat16")),
        (plain, operands(4, 64, 64, 16, 192, 16, dtype="float16")),
        gpu="nvidia",
    )


def test_layouts_and_odd_lengths() -> None:
    right(
        (heads_last, [of(2, n, 2, 16, dtype="float16") for n in (33, 48, 48)]),
        (by_columns, operands(1, 2, 2, 20, 36, 16)),
        (masked(None), operands(1, 1, 1, 17, 19, 5, 7, dtype="float16")),
        (masked(None), operands(1, 1, 1, 20, 40, 100, 130, dtype="bfloat16")),
        (masked(None), operands(1, 8, 1, 4, 40, 80)),
    )


def gated(q: Any, k: Any, v: Any, gate: Any, bias: Any) -> Any:
    """Elementwise ops on the result, with an array and a number for each feature."""
    found = smelt.swapaxes(plain(q, k, v), 1, 2) * smelt.sigmoid(gate)
    return smelt.tanh(found) + smelt.arange(found.shape[-1]).astype(found.dtype) * 0.1 + bias * 2


def one_after_the_other(q: Any, k: Any, v: Any) -> Any:
    """The result of one is the queries of the next, moved and scaled; both are added in the end."""
    first = smelt.swapaxes(plain(q, k, v) * 3, 1, 2)
    return plain(smelt.swapaxes(first, 1, 2), v, k)


def added(q: Any, k: Any, v: Any) -> Any:
    """Of two sums one takes the other in."""
    return smelt.swapaxes(plain(q, k, v), 1, 2) + smelt.swapaxes(plain(k, q, v[..., ::-1, :]), 1, 2) * 2


def test_what_follows() -> None:
    small = operands(2, 3, 3, 20, 36, 16)
    right((gated, [*small, of(2, 20, 3, 16), of(16)]))
    half = operands(1, 2, 2, 33, 40, 24, 40, dtype="bfloat16")
    right((gated, [*half, of(1, 33, 2, 40, dtype="bfloat16"), of(40, dtype="bfloat16")]))
    for function in (one_after_the_other, added):
        shapes = operands(1, 2, 2, 24, 24, 16)
        graph, program = program_of([(function, shapes)])
        assert [k.schedule for k in program.kernels if k.schedule != "map"] == ["attention"] * 2
        given = [harness.sample(a, seed=i) for i, a in enumerate(program.arguments)]
        harness.close(harness.run(program, given), harness.expected(graph, given), program, 2e-5)


def test_many_features() -> None:
    right((masked(None), operands(1, 1, 1, 17, 40, 256)), (plain, operands(1, 1, 1, 16, 24, 256, dtype="float16")))


def drawn(rng: random.Random) -> Call:
    """An attention of random shapes, masks and layouts."""
    dtype = rng.choice(["float32", "float16", "bfloat16"])
    groups = rng.choice([1, 2])
    heads = groups * rng.choice([1, 2, 3])
    queries, keys = rng.randint(16, 70), rng.randint(16, 80)
    extents = [rng.choice([1, 2]), heads, queries, keys]
    features, values = rng.randint(1, 72), rng.randint(1, 72)
    shapes = operands(extents[0], heads, groups, queries, keys, features, values, dtype)
    mask = of(*(1 if rng.random() < 0.4 else n for n in extents), dtype=rng.choice(["bool_", "float32", dtype]))
    kind = rng.choice(["plain", "causal", "none", "mask", "mask"])
    if kind == "plain" and heads == groups:
        return plain, shapes
    if kind == "mask":
        return masked(None), [*shapes, mask]
    return masked("causal" if kind == "causal" else None), shapes


def test_random_programs() -> None:
    rng = random.Random(0)
    right(*(drawn(rng) for _ in range(4)))


def test_what_is_not_finite() -> None:
    """NaN and infinities in any operand, rows of which all is hidden, give what the reference gives."""
    shapes = operands(1, 2, 2, 16, 48, 16)
    graph, program = program_of([
        (plain, shapes), (masked(None), [*shapes, of(16, 48)]), (masked(None), [*shapes, of(16, 48, dtype="bool_")]),
    ])  # fmt: skip
    assert [k.schedule for k in program.kernels] == ["attention"] * 3
    arrays = [harness.sample(a, seed=i) for i, a in enumerate(program.arguments)]
    q, k, v, added, hidden = arrays[0], arrays[1], arrays[2], arrays[6], arrays[10]
    q[0, 0, 3, 2], q[0, 0, 5, 1], q[0, 1, 2, 2] = np.nan, np.inf, 1e30
    k[0, 1, 40, 3] = -np.inf
    v[0, 1, 7, 3], v[0, 1, 9, 4], v[0, 1, 10, 4] = np.nan, np.inf, -np.inf
    added[:] = np.where(added > 0, added, -np.inf)
    added[2] = -np.inf  # all is hidden
    added[3, :40] = -np.inf  # the first tiles are
    added[4, 33] = np.inf
    added[5, 1] = np.nan
    added[6, 40:] = 1e4
    hidden[:4] = False
    hidden[3, 47] = True
    wanted = harness.expected(graph, arrays)
    for found, want in zip(harness.run(program, arrays), wanted):
        for undefined in (np.isnan, np.isposinf, np.isneginf):
            np.testing.assert_array_equal(undefined(found), undefined(want))
        finite = np.isfinite(want)
        assert (finite.any() and not finite.all()) or want is wanted[2]
        np.testing.assert_allclose(found[finite], want[finite], rtol=2e-5, atol=2e-5)


def weights_too(q: Any, k: Any, v: Any) -> Any:
    weights = smelt.softmax(q @ smelt.swapaxes(k, -1, -2), axis=-1)
    return weights @ v, weights


def other_axis(q: Any, k: Any, v: Any) -> Any:
    return smelt.softmax(q @ smelt.swapaxes(k, -1, -2), axis=-2) @ v


def other_maximum(q: Any, k: Any, v: Any) -> Any:
    scores = q @ smelt.swapaxes(k, -1, -2)
    found = smelt.exp(scores - smelt.max(scores[..., ::-1, :], axis=-1, keepdims=True))
    return (found / smelt.sum(found, axis=-1, keepdims=True)) @ v


def other_total(q: Any, k: Any, v: Any) -> Any:
    scores = q @ smelt.swapaxes(k, -1, -2)
    found = smelt.exp(scores - smelt.max(scores, axis=-1, keepdims=True))
    return (found / smelt.sum(found[..., ::-1, :], axis=-1, keepdims=True)) @ v


def part_of_the_keys(q: Any, k: Any, v: Any) -> Any:
    scores = q @ smelt.swapaxes(k, -1, -2)
    return smelt.softmax(scores, axis=-1)[..., :32] @ v[..., :32, :]


def of_all_heads(q: Any, k: Any, v: Any) -> Any:
    scores = q @ smelt.swapaxes(k, -1, -2)
    return smelt.softmax(scores, axis=(1, 3)) @ v


def test_what_is_no_attention() -> None:
    shapes = operands(1, 2, 2, 40, 40, 16)
    several = [weights_too, other_axis, other_maximum, other_total, part_of_the_keys, of_all_heads]
    for function in several:
        graph = harness.graph_of(function, *shapes)
        assert "attention" not in [k.schedule for k in harness.program_of(graph).kernels], function.__name__


def test_texts_are_for_tensor_cores() -> None:
    """All products of 16-bit matrices go to tensor cores two by two, and their loads four by four."""
    for heads, products, loads in ((16, 32, 20), (64, 128, 40)):
        text = harness.metal_text(plain, *operands(4, heads, heads, 128, 128, 64, dtype="bfloat16"), gpu="nvidia")
        source, _ = cuda_source(text, {"fused_attention": (128, 1, 1)}, aligned=True)
        assert source.count("smelt::multiply_accumulate_pairs(") == products
        assert source.count("simdgroup_load_four(") == loads and "simdgroup_multiply_accumulate(" not in source


def test_half_precision_is_as_exact_as_three_kernels() -> None:
    shapes = operands(1, 1, 1, 32, 64, 32, dtype="bfloat16")
    _, program = program_of([(plain, shapes)])
    arrays = [harness.sample(a, seed=i) for i, a in enumerate(program.arguments)]
    (found,) = harness.run(program, arrays)
    q, k, v = (x.astype(np.float64) for x in arrays)
    scores = q @ np.swapaxes(k, -1, -2) * 0.25
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    exact = weights / weights.sum(-1, keepdims=True) @ v
    np.testing.assert_allclose(found.astype(np.float64), exact, atol=2.0**-7 * np.abs(v).max())


@pytest.mark.parametrize("gpu", ["simulator", "nvidia"])
def test_great_logits(gpu: str) -> None:
    """The largest one wins, however far apart neighbours are at its size; none but infinite ones give NaN."""
    shapes = operands(1, 1, 1, 5, 72, 16, dtype="bfloat16")
    _, program = program_of([(plain, shapes)], gpu)
    values = harness.sample(program.arguments[2], seed=0)
    for size in (1.0, 2.0**20, 2.0**28, 2.0**29, 2.0**33, 1e12, 1e35):
        signs = np.array([1, -1, 1, -1, 1])[:, None]
        q, k = (np.broadcast_to(x, a.shape).astype(a.dtype.numpy) for x, a in zip(
            (size * signs, np.linspace(-64, 64, 72)[:, None]), program.arguments
        ))  # fmt: skip
        (found,) = harness.run(program, [q, k, values])
        ends = np.where(signs > 0, values[0, 0, -1], values[0, 0, 0]).astype(np.float64)
        np.testing.assert_allclose(found[0, 0].astype(np.float64), ends, atol=2.0**-6 * np.abs(ends).max())


def with_bias(q: Any, k: Any, v: Any, bias: Any) -> Any:
    scores = (q @ smelt.swapaxes(k, -1, -2)).astype(smelt.float32) + bias
    return smelt.softmax(scores, axis=-1).astype(v.dtype) @ v


def rising(queries: int, keys: int) -> np.ndarray:
    """What is added to logits, which rise from one tile of keys to the next, little or much, or fall; half of the rows
    do not see the first tiles."""
    rises = np.resize([0, 1, 2, 3.9, 4.1, 7.5, 8, 8.5, 30, -1, -8, -30], queries // 2).repeat(2)
    bias = rises[:, None] * (np.arange(keys) // 16)
    bias[1::2, : keys // 2 - 10] = -np.inf
    return bias


@pytest.mark.parametrize("gpu", ["simulator", "nvidia"])
def test_logits_that_rise(gpu: str) -> None:
    """Sums are right whether or not they are scaled anew, also of rows that see nothing."""
    half = operands(1, 1, 1, 24, 160, 16, dtype="bfloat16")
    calls = [(with_bias, [*half, of(24, 160)]), (masked(None), [*half, of(24, 160, dtype="bfloat16")])]
    graph, program = program_of(calls, gpu)
    assert [k.schedule for k in program.kernels] == ["attention"] * 2
    arrays = [harness.sample(a, seed=i) for i, a in enumerate(program.arguments)]
    for i in (3, 7):
        arrays[i] = rising(24, 160).astype(arrays[i].dtype)
        arrays[i][5] = -np.inf
    harness.close(harness.run(program, arrays), harness.expected(graph, arrays), program, 2e-5)

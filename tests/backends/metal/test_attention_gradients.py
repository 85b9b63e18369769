"""The gradient of attention as kernels of chains: values beside the reference in race mode, and what stays apart."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.backends.chains import analyse_chain
from smelt.backends.cuda.source import cuda_source
from smelt.backends.gpu.program import DeviceSegment
from smelt.backends.metal.check import check as strict
from smelt.backends.metal.simulator import Options
from smelt.ir import text
from smelt.ir.builder import functions, read_function
from smelt.passes import Pipeline
from smelt.passes.kernels.attention_chains import chain_plan

from . import harness
from .test_attention import Call, by_columns, drawn, heads_last, masked, operands, plain, program_of, rising
from .test_attention_masks import LEAST, attended
from .test_contract import ORDERS, of


def gradient(function: Callable[..., Any], count: int = 3) -> Callable[..., Any]:
    """The result and its gradient with respect to the first operands, for a cotangent that is different everywhere."""

    def loss(*arrays: Any) -> tuple[Any, Any]:
        found = function(*arrays)
        cotangent = smelt.sin(smelt.arange(found.size, dtype=smelt.float32)).reshape(found.shape)
        return smelt.sum((found * cotangent.astype(found.dtype)).astype(smelt.float32)), found

    def both(*arrays: Any) -> tuple[Any, ...]:
        (_, found), gradients = smelt.value_and_grad(loss, argnums=tuple(range(count)))(*arrays)
        return (found, *gradients)

    return both


def alone(function: Callable[..., Any]) -> Callable[..., Any]:
    """Its gradient, and not its result."""

    def pulled(*arrays: Any) -> tuple[Any, ...]:
        _, *gradients = gradient(function)(*arrays)
        return tuple(gradients)

    return pulled


def right(
    *calls: Call, gpu: str = "simulator", chains: int = 2, of: Callable[..., Callable[..., Any]] = gradient
) -> None:
    """Each is a kernel of attention and so many chains; the text is strict Metal, and values right in any order."""
    graph, program = program_of([(of(function), shapes) for function, shapes in calls], gpu)
    found = [k.schedule for k in program.kernels]
    assert (found.count("attention"), found.count("chain")) == (len(calls), chains * len(calls))
    assert not any(name.startswith("contract") for name in found)
    (segment,) = program.segments
    assert isinstance(segment, DeviceSegment) and not strict(segment.text)
    assert all(k.threadgroup_bytes <= 32768 for k in segment.manifest.kernels)
    arrays = [harness.sample(a, seed=i) for i, a in enumerate(program.arguments)]
    wanted = harness.expected(graph, arrays)
    for options in (Options(order=order, poison=True, guard=True) for order in ORDERS[1:]):
        harness.close(harness.run(program, arrays, options), wanted, program, 2e-5)


def capped(q: Any, k: Any, v: Any) -> Any:
    """Scores between bounds, whose derivative needs them again."""
    return smelt.softmax(smelt.tanh(q @ smelt.swapaxes(k, -1, -2) / 5) * 5, axis=-1) @ v


def by_hand(q: Any, k: Any, v: Any) -> Any:
    """The gradient goes through the maximum, too."""
    scores = q @ smelt.swapaxes(k, -1, -2)
    found = smelt.exp(scores - smelt.max(scores, axis=-1, keepdims=True))
    return found / smelt.sum(found, axis=-1, keepdims=True) @ v


def test_masks() -> None:
    right(
        (masked("causal"), operands(1, 4, 2, 36, 50, 12)),
        (masked(None), [*operands(1, 2, 2, 20, 40, 16, dtype="bfloat16"), of(1, 1, 20, 40, dtype="bfloat16")]),
        (masked(None), [*operands(2, 2, 1, 20, 40, 8), of(2, 1, 20, 40, dtype="bool_")]),
    )


def test_layouts_and_forms() -> None:
    right(
        (heads_last, [of(2, n, 2, 16, dtype="float16") for n in (33, 48, 48)]),
        (by_columns, operands(1, 2, 2, 20, 36, 8)),
        (by_hand, operands(1, 2, 2, 17, 36, 8)),
    )


def test_where_elements_of_matrices_are_known() -> None:
    right(
        (masked("causal"), operands(1, 4, 2, 40, 50, 16, dtype="float16")),
        (capped, operands(1, 1, 1, 18, 40, 8)),
        (masked(None), operands(4, 64, 64, 20, 70, 16, dtype="bfloat16")),  # simdgroups have more rows
        gpu="nvidia",
    )


def test_logits_that_rise() -> None:
    """What is known of rows is exact where they keep what they are shifted by."""
    shapes = [*operands(1, 1, 1, 24, 160, 16, dtype="bfloat16"), of(24, 160, dtype="bfloat16")]
    graph, program = program_of([(gradient(masked(None)), shapes)], "nvidia")
    assert [k.schedule for k in program.kernels].count("attention") == 1
    arrays = [harness.sample(a, seed=i) for i, a in enumerate(program.arguments)]
    arrays[3] = rising(24, 160).astype(arrays[3].dtype)
    harness.close(harness.run(program, arrays), harness.expected(graph, arrays), program, 2e-5)


def test_many_features() -> None:
    right((masked(None), operands(1, 1, 1, 17, 19, 72, 128, dtype="bfloat16")))


def test_random_programs() -> None:
    rng = random.Random(3)
    right(*(drawn(rng) for _ in range(2)))


def test_rows_that_see_nothing() -> None:
    """Of the least number they get the mean of all values, and their cotangents go to all of these."""
    shapes = operands(1, 1, 1, 40, 48, 8)
    right((attended(lambda i, j: j <= i - 9, LEAST), shapes))


def test_tiles_are_skipped() -> None:
    """Queries read the keys up to theirs, and keys the queries from theirs on, as what is not finite shows."""
    program = harness.program_of(harness.graph_of(gradient(masked("causal")), *operands(1, 1, 1, 128, 128, 16)))
    arrays = [harness.sample(a, seed=i) for i, a in enumerate(program.arguments)]
    arrays[2][0, 0, 127] = np.nan  # a value that only the last rows may see
    _, queries, keys, values = harness.run(program, arrays)
    assert np.isfinite(queries[0, 0, :64]).all() and np.isnan(queries[0, 0, 127]).all()
    assert np.isnan(keys[0, 0]).all() or np.isfinite(values[0, 0]).all()


def test_where_nobody_reads_the_result() -> None:
    right(
        (masked("causal"), operands(1, 2, 2, 36, 36, 8)), (masked(None), operands(2, 4, 2, 24, 40, 8, 16)),
        (by_columns, operands(1, 1, 1, 40, 48, 8)), (heads_last, operands(1, 40, 40, 2, 2, 8)), of=alone,
    )  # fmt: skip
    right((masked("causal"), operands(2, 4, 1, 64, 64, 16, dtype="bfloat16")), gpu="nvidia", of=alone)


def test_the_result_is_made_as_it_would_be() -> None:
    """Also for the gradient in one operand, of a sum, and of what reads the result once more."""
    shapes = operands(1, 2, 2, 64, 64, 16)
    for made in (
        lambda q, k, v: smelt.grad(lambda x: smelt.sum(masked("causal")(x, k, v)))(q),
        lambda q, k, v: smelt.grad(lambda x: smelt.sum(smelt.sin(plain(q, x, v))))(k),
    ):
        graph = harness.graph_of(made, *shapes)
        program = harness.program_of(graph)
        found = [k.schedule for k in program.kernels]
        assert found.count("chain") == 1 and "attention" in found and "contract" not in found, found
        arrays = [harness.sample(a, seed=i) for i, a in enumerate(program.arguments)]
        harness.close(harness.run(program, arrays), harness.expected(graph, arrays), program, 2e-5)


def windowed(q: Any, k: Any, v: Any) -> Any:
    i, j = smelt.expand_dims(smelt.arange(q.shape[-2]), 1), smelt.arange(k.shape[-2])
    return smelt.fast.scaled_dot_product_attention(q, k, v, scale=0.3, mask=(i >= j) & (i - j < 20))


def later(q: Any, k: Any, v: Any) -> Any:
    """The first keys see no query: their threadgroups have no steps."""
    i, j = smelt.expand_dims(smelt.arange(q.shape[-2]), 1), smelt.arange(k.shape[-2])
    return smelt.fast.scaled_dot_product_attention(q, k, v, scale=0.3, mask=i + 96 <= j)


def test_tiles_of_several_heads_are_skipped() -> None:
    right(
        (masked("causal"), operands(1, 4, 2, 128, 128, 8)), (windowed, operands(2, 3, 1, 96, 96, 8)),
        (later, operands(1, 2, 1, 64, 192, 8)), (masked("causal"), operands(1, 4, 2, 72, 72, 8)),
    )  # fmt: skip
    right((masked("causal"), operands(1, 4, 1, 128, 128, 16, dtype="bfloat16")), gpu="nvidia")


BOUNDED = {
    "causal": (masked("causal"), 2),
    "window": (attended(lambda i, j: (i >= j) & (i - j < 20), float("-inf")), 4),
    "none": (plain, 0),
    "not in every row": (attended(lambda i, j: j <= i - 9, LEAST), 0),
}


@pytest.mark.parametrize("name", BOUNDED)
def test_what_is_known_of_masks(name: str) -> None:
    function, count = BOUNDED[name]
    for groups in (2, 1) if name == "causal" else (2,):
        _bounds_are(count, function, operands(1, 2, groups, 64, 64, 16))


def _bounds_are(count: int, function: Callable[..., Any], shapes: Any) -> None:
    module = text.parse(harness.graph_of(gradient(function), *shapes))
    Pipeline.parse(harness.metal.PIPELINE).run(module)
    bodies = [read_function(f) for f in functions(module).values() if f.regions[0].blocks]
    chains = [analyse_chain(f) for f in bodies if not isinstance(chain_plan(f), str)]
    assert [len(chain.ends) for chain in chains] in ([1, 2], [2, 1])
    assert sum(len(chain.bounds) for chain in chains) == count


def test_scores_are_in_no_memory() -> None:
    shapes = operands(2, 4, 4, 256, 256, 16, dtype="bfloat16")
    program = harness.program_of(harness.graph_of(gradient(masked("causal")), *shapes), "nvidia")
    assert program.arena_bytes < 2 * 4 * 256 * 256


def test_texts_are_for_tensor_cores() -> None:
    shapes = operands(2, 2, 2, 128, 128, 64, dtype="bfloat16")
    source, _ = cuda_source(harness.metal_text(gradient(plain), *shapes, gpu="nvidia"), aligned=True)
    assert source.count("simdgroup_load_four(") > 60 and "simdgroup_multiply_accumulate(" not in source


def test_half_precision_is_as_exact_as_its_operands() -> None:
    shapes = operands(1, 1, 1, 32, 64, 32, dtype="bfloat16")
    program = harness.program_of(harness.graph_of(gradient(plain), *shapes))
    arrays = [harness.sample(a, seed=i) for i, a in enumerate(program.arguments)]
    found = [x.astype(np.float64) for x in harness.run(program, arrays)]
    q, k, v = (x.astype(np.float64) for x in arrays)
    scores = q @ np.swapaxes(k, -1, -2) * 0.25
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    cotangent = np.sin(np.arange(32 * 32)).reshape(1, 1, 32, 32)
    of_weights = cotangent @ np.swapaxes(v, -1, -2)
    of_scores = weights * (of_weights - (weights * of_weights).sum(-1, keepdims=True)) * 0.25
    wanted = [weights @ v, of_scores @ k, np.swapaxes(of_scores, -1, -2) @ q, np.swapaxes(weights, -1, -2) @ cotangent]
    for x, exact in zip(found, wanted):
        np.testing.assert_allclose(x, exact, atol=2.0**-6 * np.abs(exact).max())


def with_weights(q: Any, k: Any, v: Any) -> Any:
    weights = smelt.softmax(q @ smelt.swapaxes(k, -1, -2), axis=-1)
    return weights @ v + smelt.sum(weights * weights, axis=-1, keepdims=True)


def test_what_is_no_chain() -> None:
    """The gradient of a mask is as large as the scores; weights that others read are in memory anyway."""
    shapes = operands(1, 2, 2, 40, 40, 16)
    for function, given, count in ((masked(None), [*shapes, of(1, 2, 40, 40)], 4), (with_weights, shapes, 3)):
        program = harness.check(gradient(function, count), *given)
        assert "chain" not in [k.schedule for k in program.kernels]


def test_gradients_of_gradients() -> None:
    def twice(q: Any, k: Any, v: Any) -> Any:
        def loss(q: Any) -> Any:
            return smelt.sum(smelt.square(plain(q, k, v)))

        return smelt.grad(lambda q: smelt.sum(smelt.sin(smelt.grad(loss)(q))))(q)

    harness.check(twice, *operands(1, 1, 1, 20, 24, 8), tolerance=1e-4)

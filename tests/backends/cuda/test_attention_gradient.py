"""The gradient of attention of the device ``cuda`` by cuDNN, over a library and a driver without a GPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.backends.cuda import dnn as cudnn
from smelt.backends.cuda.dnn import attention_gradient
from smelt.backends.gpu.library import AttentionGradient, Tensor, step_from, step_to
from smelt.backends.gpu.pipeline import gpu_pipeline
from smelt.ir.settings import override
from smelt.passes import Pipeline

from .fake_dnn import FakeDnn
from .fake_driver import FakeDriver
from .test_attention import attend, half, numbers
from .test_convolutions import dnn
from .test_device import fake, gpu

pytestmark = pytest.mark.usefixtures("small_heap")
assert dnn and fake and gpu  # fixtures
PIPELINE = Pipeline.parse(gpu_pipeline(("complex128",), half_gradients=True, joins_chains=True))
Q, K = (2, 4, 32, 16), (2, 4, 48, 16)
#: Ops on elements that the graph of attention has, and that of its gradient, without a mask and with one.
PLAIN, CAUSAL = [6, 8], [10, 12]


def causal(q: Any, k: Any, v: Any) -> Any:
    return attend(q, k, v, scale=0.25, mask="causal")


def plain(q: Any, k: Any, v: Any) -> Any:
    return attend(q, k, v, scale=0.25)


def from_primitives(q: Any, k: Any, v: Any) -> Any:
    scores = (q @ k.swapaxes(-1, -2)).astype(smelt.float32) * 0.25
    return smelt.softmax(scores, axis=-1).astype(q.dtype) @ v


def behind_positions(q: Any, k: Any, v: Any) -> Any:
    return causal(*(x.transpose(0, 2, 1, 3) for x in (q, k, v))).transpose(0, 2, 1, 3)


def of_one_array(q: Any, k: Any, v: Any) -> Any:
    q, k, v = (x.reshape(2, 32, 4, 16).transpose(0, 2, 1, 3) for x in (q, k, v))
    return causal(q, k, v).transpose(0, 2, 1, 3).reshape(2, 32, 64)


#: Functions of queries, keys and values, the shapes of these, and the ops on elements of both graphs.
TAKEN: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]], list[int]]] = {
    "plain": (plain, [Q, K, K], PLAIN),
    "causal": (causal, [Q, Q, Q], CAUSAL),
    "a scale that is no power of two": (lambda q, k, v: attend(q, k, v, scale=0.3, mask="causal"), [Q, Q, Q], CAUSAL),
    "heads that share keys": (plain, [Q, (2, 2, 48, 16), (2, 2, 48, 16)], PLAIN),
    "heads that share keys, causal": (causal, [Q, (2, 2, 32, 16), (2, 2, 32, 16)], CAUSAL),
    "one head of keys": (plain, [Q, (2, 1, 48, 16), (2, 1, 48, 16)], PLAIN),
    "one batch": (causal, [(1, 4, 32, 16)] * 3, CAUSAL),
    "one head": (causal, [(3, 1, 32, 16)] * 3, CAUSAL),
    "from primitives": (from_primitives, [Q, K, K], PLAIN),
    "heads behind positions": (behind_positions, [(2, 32, 4, 16)] * 3, CAUSAL),
    "heads in one axis with features": (of_one_array, [(2, 32, 64)] * 3, CAUSAL),
    "values of other features": (plain, [Q, K, (2, 4, 48, 24)], PLAIN),
    "operands that are computed": (lambda q, k, v: plain(q + 1, smelt.tanh(k), v), [Q, K, K], PLAIN),
    "something behind": (lambda q, k, v: plain(q, k, v) * 2 + q, [Q, K, K], PLAIN),
    "one array": (lambda q: causal(q, q, q), [Q], CAUSAL),
    "one array of queries and values": (lambda q, k: plain(q, k, q), [Q, Q], PLAIN),
    "some keys twice": (lambda q, k, v: causal(q, k, v) + causal(q, k + 1, v), [Q, Q, Q], CAUSAL * 2),
}  # fmt: skip


def gradients(
    function: Callable[..., Any], shapes: list[tuple[int, ...]], dtype: Any = smelt.bfloat16, pipeline: Any = PIPELINE
) -> None:
    """The cotangents of all operands on the device, beside those of the CPU in float32."""
    arrays = [half(numbers(*shape, seed=i), dtype) for i, shape in enumerate(shapes)]
    with smelt.stream("cpu"):
        host = [smelt.array(np.array(x.astype(smelt.float32))) for x in arrays]
        out = function(*host)
        given = np.array(half(numbers(*out.shape, seed=9), dtype).astype(smelt.float32))
        _, want = smelt.vjp(function, host, [smelt.array(given)])
    step = smelt.compile(lambda *x: smelt.vjp(function, list(x[:-1]), [x[-1]])[1], pipeline=pipeline)
    for found, expected in zip(step(*arrays, half(given, dtype)), want, strict=True):
        expected, size = np.array(expected), max(1.0, float(np.abs(np.array(expected)).max()))
        np.testing.assert_allclose(np.array(found.astype(smelt.float32)), expected, rtol=0.03, atol=0.02 * size)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("dtype", ("bfloat16", "float16"))
@pytest.mark.parametrize("name", TAKEN)
def test_the_library_makes_it(name: str, dtype: str, dnn: FakeDnn) -> None:
    function, shapes, modes = TAKEN[name]
    gradients(function, shapes, getattr(smelt, dtype))
    assert sorted(len(made["modes"]) for made in dnn.done) == sorted(modes)


#: Functions of the cotangents of queries, keys and values, which kernels behind the chains or of them compute.
FOLLOWED: dict[str, Callable[..., Any]] = {
    "a sum of one and what another is made into": lambda q, k, v: (q + 2 * k, 2 * k, v),
    "a sum of one and what another is made into, the other way": lambda q, k, v: (2 * q, k + 2 * q, v),
    "a sum of all": lambda q, k, v: (q + k + v,),
    "sums of rows between them": lambda q, k, v: (q, k * q.sum(-1, keepdims=True), v),
    "sums of rows between them, the other way": lambda q, k, v: (q * v.sum(-1, keepdims=True), k, v),
    "several times": lambda q, k, v: (q, k, v, q * 3, v.swapaxes(-1, -2), k),
}  # fmt: skip


@pytest.mark.parametrize("name", FOLLOWED)
def test_what_follows_reads_other_cotangents(name: str, dnn: FakeDnn) -> None:
    def function(*x: Any) -> Any:
        return FOLLOWED[name](*smelt.vjp(plain, list(x[:3]), [x[3]])[1])

    arrays = [half(numbers(*Q, seed=i)) for i in range(4)]
    with smelt.stream("cpu"):
        want = function(*(smelt.array(np.array(x.astype(smelt.float32))) for x in arrays))
        wanted = [np.array(x) for x in want]
    found = smelt.compile(function, pipeline=PIPELINE)(*arrays)
    for x, y in zip(found, wanted, strict=True):
        np.testing.assert_allclose(np.array(x.astype(smelt.float32)), y, rtol=0.03, atol=0.02 * float(abs(y).max()))
    assert [len(made["modes"]) for made in dnn.done] == PLAIN


def test_gradients_that_read_each_other(dnn: FakeDnn) -> None:
    """Of the same arrays, so that their chains could be one call too early."""
    def function(q: Any, k: Any, v: Any, given: Any) -> Any:
        first = smelt.vjp(plain, [q, k, v], [given])[1]
        second = smelt.vjp(plain, [q + first[0], k, v], [given])[1]
        third = smelt.vjp(plain, [q, k + first[1], v], [second[0]])[1]
        return [*first, second[1] + first[2], second[2] + third[0], *third]

    arrays = [half(numbers(*Q, seed=i)) for i in range(4)]
    with smelt.stream("cpu"):
        wanted = [np.array(x) for x in function(*(smelt.array(np.array(x.astype(smelt.float32))) for x in arrays))]
    found = smelt.compile(function, pipeline=PIPELINE)(*arrays)
    for x, y in zip(found, wanted, strict=True):
        np.testing.assert_allclose(np.array(x.astype(smelt.float32)), y, rtol=0.05, atol=0.04 * float(abs(y).max()))
    assert set(PLAIN) == {len(made["modes"]) for made in dnn.done}


#: What is left to smelt's own kernels, but for the attention itself where that is made: how often that is.
LEFT: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]], int]] = {
    "a bias": (
        lambda q, k, v: attend(q, k, v, scale=0.25, mask=smelt.arange(48).astype(q.dtype) / 64), [Q, K, K], 0,
    ),
    "one operand's alone": (lambda q: plain(q, smelt.tanh(smelt.stop_gradient(q)), q), [Q], 1),
    "a window": (
        lambda q, k, v: attend(
            q, k, v, scale=0.25, mask=((x := smelt.arange(32)[:, None] - smelt.arange(32)) >= 0) & (x < 8)
        ),
        [Q, Q, Q], 0,
    ),
    "keys from another position on": (lambda q, k, v: causal(q[:, :, :24], k, v), [Q, Q, Q], 0),
    "a function of scores": (
        lambda q, k, v: smelt.softmax(smelt.tanh(q @ k.swapaxes(-1, -2)), axis=-1) @ v, [Q, K, K], 0,
    ),
    "weights that are used besides": (
        lambda q, k, v: (w := smelt.softmax(q @ k.swapaxes(-1, -2), axis=-1)) @ v + w.sum() * 0, [Q, K, K], 0,
    ),
    "rows at no multiples of 16 bytes": (
        lambda q, k, v: plain(*(smelt.concatenate([x, x], -1)[..., 1:17] for x in (q, k, v))), [Q, K, K], 0,
    ),
    "rows of other lengths": (plain, [(2, 4, 32, 12), (2, 4, 48, 12), (2, 4, 48, 12)], 0),
}  # fmt: skip


@pytest.mark.parametrize("name", LEFT)
def test_what_is_left_to_kernels(name: str, dnn: FakeDnn) -> None:
    function, shapes, made = LEFT[name]
    gradients(function, shapes)
    assert len(dnn.done) == made


@pytest.mark.parametrize("change", ("version", "libraries", "pipeline"))
def test_where_it_may_not(change: str, dnn: FakeDnn) -> None:
    """An older library has no such engine for any number of keys; chains that are not joined run one by one."""
    if change == "version":
        dnn.version = attention_gradient.VERSION - 1
    pipeline = gpu_pipeline(("complex128",), half_gradients=True) if change == "pipeline" else PIPELINE
    with override(libraries=change != "libraries"):
        gradients(plain, [Q, K, K], pipeline=pipeline)
    assert [len(made["modes"]) for made in dnn.done] == ([] if change == "libraries" else PLAIN[:1])


@pytest.mark.parametrize(("count", "queries"), ((2, 32), (3, 32), (6, 32), (12, 32), (6, 33), (12, 33)))
def test_batches_and_heads_in_parts(
    count: int, queries: int, dnn: FakeDnn, fake: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which share the memory of the cotangents of scores; heads that share keys stay together. None are made in parts
    of which numbers of rows are at no multiples of 16 bytes, as the first one's are."""
    monkeypatch.setattr(attention_gradient, "PART_BYTES", 2 * 6 * 4 * queries * 48 // count + 4096)
    gradients(plain, [(6, 4, queries, 16), (6, 2, 48, 16), (6, 2, 48, 16)])
    times = 0 if (count, queries) == (12, 33) else count
    assert [len(made["modes"]) for made in dnn.done] == PLAIN[:1] + PLAIN[1:] * times


def test_layers_share_their_steps(dnn: FakeDnn) -> None:
    """And a loop over them has them, too."""
    def layers(q: Any, k: Any, v: Any) -> Any:
        for _ in range(3):
            q = causal(q, k, v)
        return q

    gradients(layers, [Q, Q, Q])
    assert sorted(len(made["modes"]) for made in dnn.done) == sorted(CAUSAL * 3)


def test_a_row_of_logits_without_an_end(dnn: FakeDnn) -> None:
    """Weights of keys with equal logits stay equal as long as the logarithm of their sum is not lost."""
    function = from_primitives
    q, k, v = (np.full(shape, x, np.float32) for shape, x in ((Q, 4.0), (K, 8.0), (K, 1.0)))
    arrays = [half(x) for x in (q, k, v)]
    step = smelt.compile(lambda *x: smelt.vjp(function, list(x), [smelt.ones(Q, smelt.bfloat16)])[1], pipeline=PIPELINE)
    dv = np.array(step(*arrays)[2].astype(smelt.float32))
    np.testing.assert_allclose(dv, 32 / 48, rtol=0.01)


def test_steps_are_plain_data(dnn: FakeDnn) -> None:
    rows = Tensor(5, "float32", 0, (1, 2, 32, 1), (64, 32, 1, 1))
    at = [Tensor(i, "bfloat16", 0, (1, 2, 32, 16), (1024, 512, 16, 1)) for i in range(10)]
    step = AttentionGradient(*at[:5], rows, replace(rows, buffer=6), *at[7:], scale=0.5, workspace=1 << 20)
    assert step_from(step_to(step)) == step and step.written == {6, 7, 8, 9, 10}
    library = cudnn.library()
    assert library is not None and library.find(step) is not None
    assert library.find(replace(step, workspace=0)) is library.find(step)

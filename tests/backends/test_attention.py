"""Attention as one kernel of the CPU: values in float64 of NumPy, and bits that do not depend on threads."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.backends.cpu.contract import attention
from smelt.backends.cpu.program import ATTENTION_ROWS, ATTENTION_WORK

Arrays = tuple[np.ndarray, ...]


def _pipeline() -> str:
    """With attention as one kernel however small it is."""
    assert f"attention-work={ATTENTION_WORK}" in smelt.cpu.pipeline
    return smelt.cpu.pipeline.replace(f"attention-work={ATTENTION_WORK}", "attention-work=0")


def _compiled(f: Callable[..., Any]) -> Any:
    return smelt.compile(f, pipeline=_pipeline())


def _softmax(x: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        e = np.exp(x - x.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)


def _plain(q: Any, k: Any, v: Any) -> Any:
    return smelt.softmax(q @ smelt.swapaxes(k, -1, -2) * 0.25, axis=-1) @ v


def _heads_last(q: Any, k: Any, v: Any) -> Any:
    q, k, v = (smelt.swapaxes(x, 1, 2) for x in (q, k, v))
    return smelt.swapaxes(smelt.fast.scaled_dot_product_attention(q, k, v, scale=0.25), 1, 2)


def _by_columns(q: Any, k: Any, v: Any) -> Any:
    scores = k @ smelt.swapaxes(q, -1, -2) * 0.25
    return smelt.swapaxes(smelt.softmax(scores, axis=-2), -1, -2) @ v


def _masked(mask: Callable[[int, int], Any]) -> Callable[..., Any]:
    def function(q: Any, k: Any, v: Any) -> Any:
        scores = q @ smelt.swapaxes(k, -1, -2) * 0.25
        hidden = mask(q.shape[-2], k.shape[-2])
        return smelt.tanh(smelt.softmax(smelt.where(hidden, -smelt.inf, scores), axis=-1) @ v) * 2

    return function


def _positions(queries: int, keys: int) -> tuple[Any, Any]:
    return smelt.expand_dims(smelt.arange(queries), 1), smelt.arange(keys)


def _causal(queries: int, keys: int) -> Any:
    i, j = _positions(queries, keys)
    return j > i + (keys - queries)


def _window(queries: int, keys: int) -> Any:
    i, j = _positions(queries, keys)
    return (j > i + 3) | (j < i - 40)


def _reference(q: np.ndarray, k: np.ndarray, v: np.ndarray, hidden: np.ndarray | None = None) -> np.ndarray:
    groups = q.shape[1] // k.shape[1] if q.ndim == 4 else 1
    k, v = (np.repeat(x, groups, 1) if groups > 1 else x for x in (k, v))
    scores = q @ np.swapaxes(k, -1, -2) * 0.25
    return _softmax(scores if hidden is None else np.where(hidden, -np.inf, scores)) @ v


def _draw(rng: np.random.Generator, *shapes: tuple[int, ...]) -> Arrays:
    return tuple(rng.standard_normal(shape).astype(np.float32) for shape in shapes)


#: Batch, heads of queries, of keys and values; queries, keys; features of queries, of values.
SIZES = {"even": (2, 2, 2, 64, 64, 32, 32), "odd": (1, 3, 3, 37, 301, 20, 7), "grouped": (2, 4, 2, 19, 430, 16, 33),
         "many": (1, 1, 1, 300, 300, 48, 40)}  # fmt: skip


def _arguments(name: str, rng: np.random.Generator) -> Arrays:
    b, h, shared, queries, keys, d, e = SIZES[name]
    return _draw(rng, (b, h, queries, d), (b, shared, keys, d), (b, shared, keys, e))


def _is_one_kernel(f: Any, arrays: Any, pipeline: str | None = None) -> bool:
    program = f.trace(*arrays).lower().compile(pipeline or _pipeline())
    return "fused_attention" in program.as_text("fuse")


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("size", SIZES)
def test_values(size: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if dtype == "float16":
        monkeypatch.setattr(attention, "MOST_KEYS", 32)
        monkeypatch.setattr(attention, "MOST_ROWS", 8)
        monkeypatch.setattr(attention, "LEAST_ROWS", 8)
    rng = np.random.default_rng(0)
    hosts = _arguments(size, rng)
    arrays = [smelt.array(x).astype(getattr(smelt, dtype)) for x in hosts]
    hosts = tuple(np.asarray(x.astype(smelt.float32)).astype(np.float64) for x in arrays)
    wanted = _reference(*hosts)
    loose = {"float32": 2e-5, "float16": 4e-3, "bfloat16": 3e-2}[dtype]

    def all_of_them(q: Any, k: Any, v: Any) -> Any:
        whole = smelt.fast.scaled_dot_product_attention(q, k, v, scale=0.25)
        if size == "grouped":
            return whole, whole
        last = (smelt.swapaxes(x, 1, 2) for x in (q, k, v))
        return whole, _plain(q, k, v), _by_columns(q, k, v), smelt.swapaxes(_heads_last(*last), 1, 2)

    f = _compiled(all_of_them)
    assert dtype != "float32" or _is_one_kernel(f, arrays)
    for found in f(*arrays):
        np.testing.assert_allclose(np.asarray(found.astype(smelt.float32)), wanted, rtol=loose, atol=loose)


@pytest.mark.parametrize("mask", [_causal, _window])
@pytest.mark.parametrize("queries,keys", [(300, 300), (70, 501), (301, 80)])
def test_masks_of_positions(mask: Callable[[int, int], Any], queries: int, keys: int) -> None:
    rng = np.random.default_rng(0)
    q, k, v = _draw(rng, (2, queries, 16), (2, keys, 16), (2, keys, 24))
    wanted = np.tanh(_reference(q.astype(np.float64), k, v, np.asarray(mask(queries, keys)))) * 2
    f = _compiled(_masked(mask))
    arrays = [smelt.array(x) for x in (q, k, v)]
    assert _is_one_kernel(f, arrays)
    np.testing.assert_allclose(np.asarray(f(*arrays)), wanted, rtol=1e-4, atol=1e-5)  # rows that see nothing: NaN
    for threads in (1, 3):
        with smelt.ir.settings.override(num_threads=threads):
            again = _compiled(lambda *x: _masked(mask)(*x))(*arrays)
        np.testing.assert_array_equal(np.asarray(again), np.asarray(f(*arrays)))


def test_masks_that_are_arrays() -> None:
    rng = np.random.default_rng(0)
    q, k, v, bias = _draw(rng, (2, 4, 40, 16), (2, 4, 300, 16), (2, 4, 300, 16), (4, 40, 300))
    hidden = rng.random((40, 300)) < 0.5
    hidden[3], hidden[5, :290] = True, True  # a row sees nothing, another the last tile alone
    bias[:, 7, :270] = -np.inf

    def sdpa(q: Any, k: Any, v: Any, hidden: Any, bias: Any) -> Any:
        give = smelt.fast.scaled_dot_product_attention
        return give(q, k, v, scale=0.25, mask=~hidden), give(q, k, v, scale=0.25, mask=bias)

    f = _compiled(sdpa)
    one, other = (np.asarray(x) for x in f(*map(smelt.array, (q, k, v, hidden, bias))))
    wanted = _reference(q.astype(np.float64), k, v, hidden)
    seen = np.arange(40) != 3
    np.testing.assert_allclose(one[:, :, seen], wanted[:, :, seen], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(one[:, :, 3], np.broadcast_to(v.mean(-2), (2, 4, 16)), rtol=1e-3, atol=1e-4)
    scores = q.astype(np.float64) @ np.swapaxes(k, -1, -2) * 0.25 + bias
    np.testing.assert_allclose(other, _softmax(scores) @ v, rtol=1e-4, atol=1e-5)


def test_numbers_that_are_none() -> None:
    rng = np.random.default_rng(0)
    q, k, v = _draw(rng, (1, 48, 16), (1, 300, 16), (1, 300, 16))
    q[0, 5] = np.nan
    q[0, 6], k[0, 290] = 0, 0
    q[0, 6, 0], k[0, 290, 0] = np.inf, 1  # the score is infinite, the weight no number
    with np.errstate(invalid="ignore"):
        wanted = _reference(q.astype(np.float64), k, v)
    found = np.asarray(_compiled(_plain)(*map(smelt.array, (q, k, v))))
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def test_checked_kernels_and_derivatives() -> None:
    rng = np.random.default_rng(0)
    arrays = [smelt.array(x) for x in _draw(rng, (2, 33, 16), (2, 290, 16), (2, 290, 20))]
    wanted = np.asarray(_compiled(_plain)(*arrays))
    with smelt.ir.settings.override(check=True):
        checked = _compiled(lambda *x: _plain(*x))(*arrays)  # loops with checks are no vectors: other sums
        np.testing.assert_allclose(np.asarray(checked), wanted, rtol=1e-5, atol=1e-6)
    loss = lambda *x: (_plain(*x) ** 2).sum()  # noqa: E731
    found = _compiled(smelt.grad(loss, argnums=(0, 1, 2)))(*arrays)
    with smelt.ir.settings.override(device="reference"):
        plain = smelt.compile(smelt.grad(loss, argnums=(0, 1, 2)))(*arrays)
        for a, b in zip(found, plain):
            np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-3, atol=1e-4)


def test_little_work_is_left_to_several_kernels() -> None:
    x = smelt.zeros((1, 2, 64, 32))
    f = _compiled(_plain)
    assert not _is_one_kernel(f, (x, x, x), smelt.cpu.pipeline) and _is_one_kernel(f, (x, x, x))


def test_rows_from_which_many_keys_are_one_kernel() -> None:
    x, few = smelt.zeros((1, 2, 1024, 32)), smelt.zeros((1, 2, 256, 32))
    f = _compiled(_plain)
    assert ATTENTION_ROWS == 1024 and _is_one_kernel(f, (x, x, x), smelt.cpu.pipeline)
    assert not _is_one_kernel(f, (few, x, x))


SMALL_STACK = """
import threading
import smelt
from smelt.ir.settings import override
done = []
def work(d):
    q = smelt.random.normal((2, 4, 512, d))
    f = smelt.compile(lambda q: smelt.fast.scaled_dot_product_attention(q, q, q, scale=0.1))
    with override(tier="program", num_threads=1):
        smelt.eval(f(q))  # compiled here: compilers want more
        before = threading.stack_size(256 * 1024)
        thread = threading.Thread(target=lambda: done.append(smelt.eval(f(q))))
        thread.start()
        thread.join()
        threading.stack_size(before)
for d in (64, 128, 256):
    work(d)
print(len(done))
"""


def test_threads_with_small_stacks_have_room_for_it() -> None:
    done = subprocess.run([sys.executable, "-c", SMALL_STACK], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "3\n"), done.stderr

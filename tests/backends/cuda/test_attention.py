"""Attention of the device ``cuda`` by cuDNN, over a library and a driver without a GPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.backends.cuda import dnn as cudnn
from smelt.backends.gpu.library import ScaledAttention, Tensor, step_from, step_to
from smelt.ir.settings import override

from .fake_dnn import FakeDnn
from .test_convolutions import dnn
from .test_device import fake, gpu

pytestmark = pytest.mark.usefixtures("small_heap")
assert dnn and fake and gpu  # fixtures
attend = smelt.fast.scaled_dot_product_attention
GREATER_EQUAL, ADD = 303, 0


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def oracle(q: np.ndarray, k: np.ndarray, v: np.ndarray, scale: float = 0.25, mask: Any = None) -> np.ndarray:
    """Attention in float64; a mask of booleans, or one that is added, or "causal"."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    k, v = (np.repeat(x, q.shape[1] // x.shape[1], axis=1) for x in (k, v))
    scores = scale * q @ k.swapaxes(-1, -2)
    if isinstance(mask, str):
        mask = np.arange(q.shape[2])[:, None] >= np.arange(k.shape[2])
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask.astype(np.float64)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


def half(x: np.ndarray, dtype: Any = smelt.bfloat16) -> smelt.array:
    return smelt.array(x).astype(dtype)


def agrees(found: smelt.array, want: np.ndarray) -> None:
    np.testing.assert_allclose(np.array(found.astype(smelt.float32)), want, rtol=0.04, atol=0.04)


Q, K = (2, 4, 32, 16), (2, 4, 48, 16)
#: Functions of queries, keys, values and a mask, what they compute by NumPy, the shapes, and ops on elements that cuDNN
#: makes of scores.
TAKEN: dict[str, tuple[Callable[..., Any], Callable[..., Any], list[tuple[int, ...]], set[int]]] = {
    "plain": (lambda q, k, v, m: attend(q, k, v, scale=0.25), lambda q, k, v, m: oracle(q, k, v), [Q, K, K], set()),
    "a scale that is no power of two": (
        lambda q, k, v, m: attend(q, k, v, scale=0.3), lambda q, k, v, m: oracle(q, k, v, 0.3), [Q, K, K], set(),
    ),
    "causal": (
        lambda q, k, v, m: attend(q, k, v, scale=0.25, mask="causal"),
        lambda q, k, v, m: oracle(q, k, v, mask="causal"), [Q, Q, Q], {GREATER_EQUAL},
    ),
    "bias of all heads": (
        lambda q, k, v, m: attend(q, k, v, scale=0.25, mask=m),
        lambda q, k, v, m: oracle(q, k, v, mask=m), [Q, K, K, (32, 48)], {ADD},
    ),
    "bias of heads": (
        lambda q, k, v, m: attend(q, k, v, scale=0.25, mask=m),
        lambda q, k, v, m: oracle(q, k, v, mask=m),
        [(4, 4, 32, 16), (4, 4, 48, 16), (4, 4, 48, 16), (4, 32, 48)], {ADD},
    ),
    "bias of keys": (
        lambda q, k, v, m: attend(q, k, v, scale=0.25, mask=m),
        lambda q, k, v, m: oracle(q, k, v, mask=m), [Q, K, K, (2, 1, 1, 48)], {ADD},
    ),
    "mask": (
        lambda q, k, v, m: attend(q, k, v, scale=0.25, mask=m > 0),
        lambda q, k, v, m: oracle(q, k, v, mask=m > 0), [Q, K, K, (32, 48)], {ADD},
    ),
    "mask of keys": (
        lambda q, k, v, m: attend(q, k, v, scale=0.25, mask=m > -1),
        lambda q, k, v, m: oracle(q, k, v, mask=m > -1), [Q, K, K, (2, 1, 1, 48)], {ADD},
    ),
    "bias that is computed": (
        lambda q, k, v, m: attend(
            q, k, v, scale=0.25, mask=-0.1 * abs(smelt.arange(32)[:, None] - smelt.arange(48)).astype(smelt.bfloat16)
        ),
        lambda q, k, v, m: oracle(q, k, v, mask=-0.1 * abs(np.arange(32)[:, None] - np.arange(48))), [Q, K, K], {ADD},
    ),
    "heads that share keys, a mask": (
        lambda q, k, v, m: attend(q, k, v, scale=0.25, mask=m > 0),
        lambda q, k, v, m: oracle(q, k, v, mask=m > 0), [Q, (2, 2, 48, 16), (2, 2, 48, 16), (2, 1, 32, 48)], {ADD},
    ),
    "operands that are computed": (
        lambda q, k, v, m: attend(q + 1, smelt.tanh(k), v, scale=0.25),
        lambda q, k, v, m: oracle(q + 1, np.tanh(k), v), [Q, K, K], set(),
    ),
    "heads that share keys": (
        lambda q, k, v, m: attend(q, k, v, scale=0.25), lambda q, k, v, m: oracle(q, k, v),
        [Q, (2, 2, 48, 16), (2, 2, 48, 16)], set(),
    ),
    "heads that share keys, causal": (
        lambda q, k, v, m: attend(q, k, v, scale=0.25, mask="causal"),
        lambda q, k, v, m: oracle(q, k, v, mask="causal"), [Q, (2, 2, 32, 16), (2, 2, 32, 16)], {GREATER_EQUAL},
    ),
    "heads that share keys, a bias": (
        lambda q, k, v, m: attend(q, k, v, scale=0.25, mask=m),
        lambda q, k, v, m: oracle(q, k, v, mask=m), [Q, (2, 2, 48, 16), (2, 2, 48, 16), (2, 1, 32, 48)], {ADD},
    ),
    "one head of keys": (
        lambda q, k, v, m: attend(q, k, v, scale=0.25), lambda q, k, v, m: oracle(q, k, v),
        [Q, (2, 1, 48, 16), (2, 1, 48, 16)], set(),
    ),
    "heads behind positions": (
        lambda q, k, v, m: attend(*(x.transpose(0, 2, 1, 3) for x in (q, k, v)), scale=0.25).transpose(0, 2, 1, 3),
        lambda q, k, v, m: oracle(*(x.swapaxes(1, 2) for x in (q, k, v))).swapaxes(1, 2),
        [(2, 32, 4, 16), (2, 48, 4, 16), (2, 48, 4, 16)], set(),
    ),
    "from primitives": (
        lambda q, k, v, m: smelt.softmax(
            (q @ k.swapaxes(-1, -2)).astype(smelt.float32) * 0.25, axis=-1
        ).astype(q.dtype) @ v,
        lambda q, k, v, m: oracle(q, k, v), [Q, K, K], set(),
    ),
    "values of other features": (
        lambda q, k, v, m: attend(q, k, v, scale=0.25), lambda q, k, v, m: oracle(q, k, v),
        [Q, K, (2, 4, 48, 24)], set(),
    ),
    "something behind": (
        lambda q, k, v, m: attend(q, k, v, scale=0.25) * 2 + q, lambda q, k, v, m: 2 * oracle(q, k, v) + q,
        [Q, K, K], set(),
    ),
    "one batch": (
        lambda q, k, v, m: attend(q, k, v, scale=0.25), lambda q, k, v, m: oracle(q, k, v),
        [(1, 4, 32, 16), (1, 4, 48, 16), (1, 4, 48, 16)], set(),
    ),
}  # fmt: skip


def ran(name: str, dtype: Any) -> None:
    """A function that the library makes, on the device, beside NumPy's."""
    function, by_numpy, shapes, _ = TAKEN[name]
    given = [numbers(*shape, seed=i) for i, shape in enumerate(shapes)]
    given += [numbers(1)] * (4 - len(given))
    arrays = [half(x, dtype) for x in given]
    rounded = [np.array(x.astype(smelt.float32)) for x in arrays]
    agrees(smelt.compile(function)(*arrays), by_numpy(*rounded))


@pytest.mark.parametrize("dtype", ("bfloat16", "float16"))
@pytest.mark.parametrize("name", TAKEN)
def test_the_library_makes_it(name: str, dtype: str, dnn: FakeDnn) -> None:
    ran(name, getattr(smelt, dtype))
    modes = TAKEN[name][-1]
    (made,) = dnn.done
    assert modes == {GREATER_EQUAL, ADD} & set(made["modes"][:-5]), made


#: Functions that are left to smelt's own kernels, and the shapes of their operands.
LEFT: dict[str, tuple[Callable[..., Any], Any]] = {
    "a window": (
        lambda q, k, v: attend(
            q, k, v, scale=0.25, mask=((x := smelt.arange(32)[:, None] - smelt.arange(32)) >= 0) & (x < 8)
        ),
        smelt.bfloat16,
    ),
    "of float32": (lambda q, k, v: attend(q, k, v, scale=0.25), smelt.float32),
    "rows at no multiples of 16 bytes": (
        lambda q, k, v: attend(*(smelt.concatenate([x, x], -1)[..., 1:17] for x in (q, k, v)), scale=0.25),
        smelt.bfloat16,
    ),
    "rows of other lengths": (
        lambda q, k, v: attend(*(x.reshape(2, 4, -1)[..., :480].reshape(2, 4, 32, 15) for x in (q, k, v)), scale=0.25),
        smelt.bfloat16,
    ),
    "keys from another position on": (
        lambda q, k, v: attend(q[:, :, :24], k, v, scale=0.25, mask="causal"), smelt.bfloat16,
    ),
    "a bias of each head": (
        lambda q, k, v: attend(q, k, v, scale=0.25, mask=q @ k.swapaxes(-1, -2)), smelt.bfloat16,
    ),
    "a function of scores": (
        lambda q, k, v: smelt.softmax(smelt.tanh(q @ k.swapaxes(-1, -2)), axis=-1) @ v, smelt.bfloat16,
    ),
    "a bias of each head that is computed": (
        lambda q, k, v: smelt.softmax(q @ k.swapaxes(-1, -2) + smelt.tanh(q @ k.swapaxes(-1, -2)), axis=-1) @ v,
        smelt.bfloat16,
    ),
    "with a bias, its gradient, too": (
        lambda q, k, v: smelt.value_and_grad(
            lambda x: attend(x, k, v, scale=0.25, mask=smelt.arange(32).astype(smelt.bfloat16) / 64).sum()
        )(q),
        smelt.bfloat16,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LEFT)
def test_other_bodies_are_left_to_kernels(name: str, dnn: FakeDnn) -> None:
    function, dtype = LEFT[name]
    arrays = [smelt.array(numbers(*Q, seed=i)).astype(dtype) for i in range(3)]
    found = smelt.compile(function)(*arrays)
    with smelt.stream("cpu"):
        want = smelt.compile(function)(*(smelt.array(np.array(x.astype(smelt.float32))).astype(dtype) for x in arrays))
        for x, y in zip(*(x if isinstance(x, tuple) else [x] for x in (found, want))):
            np.testing.assert_allclose(x.item() if not x.ndim else np.array(x.astype(smelt.float32)),
                                       np.array(y.astype(smelt.float32)), rtol=0.04, atol=0.04)  # fmt: skip
    assert not dnn.done


@pytest.mark.parametrize("mask", (np.False_, float(np.finfo(np.float32).min)))
def test_a_row_of_which_all_keys_are_hidden_sees_them_alike(dnn: FakeDnn, mask: Any) -> None:
    """As everywhere: cuDNN 9.19 gives zeros for rows in which all numbers are so large."""
    q, k, v = (half(numbers(*shape, seed=i)) for i, shape in enumerate((Q, K, K)))
    given = np.zeros((32, 48), np.float32) if isinstance(mask, float) else np.ones((32, 48), bool)
    given[3] = mask
    m = smelt.array(given) if given.dtype == bool else half(given)
    found = smelt.compile(lambda q, k, v, m: attend(q, k, v, scale=0.25, mask=m))(q, k, v, m)
    mean = np.array(v.astype(smelt.float32)).mean(axis=2)
    np.testing.assert_allclose(np.array(found.astype(smelt.float32))[:, :, 3], mean, atol=0.02)
    assert dnn.done


def test_it_may_be_turned_off(dnn: FakeDnn) -> None:
    q = half(numbers(*Q))
    with override(libraries=False):
        found = smelt.compile(lambda q: attend(q, q, q, scale=0.25))(q)
    agrees(found, oracle(*[np.array(q.astype(smelt.float32))] * 3))
    assert not dnn.done


def test_steps_are_plain_data(dnn: FakeDnn) -> None:
    at = Tensor(0, "bfloat16", 0, (1, 2, 32, 16), (1024, 512, 16, 1))
    for bias in (None, Tensor(3, "bfloat16", 8, (1, 1, 32, 32), (1024, 1024, 32, 1))):
        step = ScaledAttention(at, at, at, at, 0.5, True, bias, workspace=1 << 20)
        assert step_from(step_to(step)) == step
        library = cudnn.library()
        assert library is not None and library.find(step) is not None
        assert library.find(replace(step, workspace=0)) is library.find(step)  # what was compiled for it

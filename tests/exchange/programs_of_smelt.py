"""Programs of smelt that go out to others: functions and their arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import smelt
import smelt.nn as nn

rng = np.random.default_rng(3)


def normal(*shape: int) -> np.ndarray:
    return rng.normal(size=shape).astype(np.float32)


def positive(n: int) -> np.ndarray:
    a = normal(n, n)
    return (a @ a.T + n * np.eye(n)).astype(np.float32)


def mlp(x, w, b, v):
    return nn.gelu(x @ w + b) @ v


def train_step(x, y, w, b, v):
    def loss(w, b, v):
        return smelt.mean((mlp(x, w, b, v) - y) ** 2)

    value, gradients = smelt.value_and_grad(loss, argnums=(0, 1, 2))(w, b, v)
    return (value, *(p - 0.1 * g for p, g in zip((w, b, v), gradients)))


def attention(q, k, v):
    return smelt.fast.scaled_dot_product_attention(q, k, v, scale=0.5, mask="causal")


def recurrent(h, xs, w):
    return smelt.scan(lambda h, x: (smelt.tanh(h @ w + x), h.sum()), h, xs)


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    "mlp": (mlp, (normal(5, 3), normal(3, 4), normal(4), normal(4, 2))),
    "train_step": (train_step, (normal(5, 3), normal(5, 2), normal(3, 4), normal(4), normal(4, 2))),
    "attention": (attention, (normal(1, 2, 6, 4), normal(1, 2, 6, 4), normal(1, 2, 6, 4))),
    "layer_norm": (lambda x, w, b: smelt.fast.layer_norm(x, w, b, 1e-5), (normal(3, 8), normal(8), normal(8))),
    "rms_norm_grad": (
        smelt.grad(lambda x, w: (smelt.fast.rms_norm(x, w, 1e-5) ** 2).sum(), argnums=(0, 1)),
        (normal(3, 8), normal(8)),
    ),
    "convolution": (
        lambda x, w: smelt.conv2d(x, w, stride=2, padding=1, groups=2), (normal(2, 7, 8, 4), normal(6, 3, 3, 2))
    ),
    "convolution_grad": (
        smelt.grad(lambda x, w: (smelt.conv2d(x, w, stride=2, padding=1) ** 2).sum(), argnums=(0, 1)),
        (normal(2, 7, 8, 4), normal(6, 3, 3, 4)),
    ),
    "cross_entropy": (
        smelt.value_and_grad(lambda x, i: nn.losses.cross_entropy(x, i).mean()),
        (normal(6, 5), rng.integers(0, 5, 6).astype(np.int32)),
    ),
    "recurrent": (recurrent, (normal(2, 3), normal(5, 2, 3), normal(3, 3))),
    "recurrent_grad": (
        smelt.grad(lambda *a: recurrent(*a)[1].sum(), argnums=(0, 2)), (normal(2, 3), normal(5, 2, 3), normal(3, 3))
    ),
    "while": (
        lambda x: smelt.while_loop(lambda v: v.sum() < 50, lambda v: v * 2 + 1, x), (np.abs(normal(3)),)
    ),
    "branches": (
        lambda i, x: smelt.switch(
            i, [smelt.sin, smelt.cos, lambda v: smelt.cond(v.sum() > 0, smelt.tanh, smelt.exp, v)], x
        ),
        (np.int32(2), normal(4)),
    ),
    "sorts": (lambda x: (smelt.sort(x, axis=0), smelt.argsort(x), smelt.topk(x, 2)), (normal(5, 4),)),
    "gather_scatter": (
        lambda x, i, v: (x[i], x.at[i].add(v), smelt.take_along_axis(x, i[:, None], 0)),
        (normal(6, 3), np.array([1, 4, 1], np.int32), normal(3, 3)),
    ),
    "cumulative": (
        lambda x: (smelt.cumsum(x, 1), smelt.cumprod(x, 0), smelt.cummax(x, 1), smelt.logcumsumexp(x, 0)),
        (normal(4, 5),),
    ),
    "cholesky": (smelt.linalg.cholesky, (positive(4),)),
    "cholesky_grad": (smelt.grad(lambda a: smelt.linalg.cholesky(a).sum()), (positive(4),)),
    "linear_algebra": (
        lambda a, b: (
            smelt.linalg.solve(a, b), smelt.linalg.inv(a), smelt.linalg.eigvalsh(a), smelt.linalg.pinv(b),
            *smelt.linalg.slogdet(a), smelt.linalg.svd(b, compute_uv=False), smelt.linalg.qr(b)[1] ** 2,
        ),
        (positive(4), normal(4, 2)),
    ),
    "linear_algebra_grad": (
        smelt.grad(lambda a, b: smelt.linalg.solve(a, b).sum() + smelt.linalg.eigvalsh(a)[0], argnums=(0, 1)),
        (positive(4), normal(4, 2)),
    ),
    "fft": (lambda x: smelt.abs(smelt.fft.fft(smelt.fft.irfft(smelt.fft.rfft(x) * 2))), (normal(3, 8),)),
    "special": (
        lambda x: (
            *(f(x) for f in (smelt.erf, smelt.erfc, smelt.lgamma, smelt.log2)),
            *(f(x / 4) for f in (smelt.erfinv, smelt.arctanh)),
        ),
        (np.abs(normal(3, 4)) + 0.1,),
    ),
    "integers": (
        lambda x, y: (x // y, x % y, x << 3, x >> 1, x ^ y, x.astype(smelt.uint8)),
        (rng.integers(-99, 99, 8).astype(np.int32), rng.integers(1, 9, 8).astype(np.int32)),
    ),
    "random": (
        lambda k: (smelt.random.uniform(shape=(5,), key=k), smelt.random.normal(shape=(2, 3), key=k)),
        (np.array([3, 9], np.uint32),),
    ),
    "vmap_hessian": (smelt.vmap(smelt.hessian(lambda x: smelt.logsumexp(x * x))), (normal(2, 4),)),
    "quantized": (
        lambda x, w: smelt.quantized_matmul(x, *smelt.quantize(w, 32, 4), group_size=32, bits=4),
        (normal(2, 32), normal(8, 32)),
    ),
}  # fmt: skip


def flat(tree: Any) -> list[np.ndarray]:
    return [np.array(x) for _, x in smelt.utils.tree_flatten(tree)]

"""Makes the StableHLO programs of the tests where JAX is installed: ``python tests/exchange/make_programs.py``.

Each program is a function of ours, written to programs/NAME.mlir; arguments and results are in programs/values.npz.
What calls LAPACK is a portable artifact, too, as jax.export writes it: programs/NAME.bytecode.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import export, lax

FOLDER = Path(__file__).parent / "programs"
rng = np.random.default_rng(14)


def normal(*shape: int) -> np.ndarray:
    return rng.normal(size=shape).astype(np.float32)


def between(low: float, high: float, *shape: int) -> np.ndarray:
    return rng.uniform(low, high, shape).astype(np.float32)


def integers(low: int, high: int, *shape: int) -> np.ndarray:
    return rng.integers(low, high, shape).astype(np.int32)


def positive(n: int) -> np.ndarray:
    a = normal(n, n)
    return (a @ a.T + n * np.eye(n)).astype(np.float32)


def mlp(x, w1, b1, w2):
    return jax.nn.gelu(x @ w1 + b1, approximate=False) @ w2


def mlp_step(x, y, w1, b1, w2):
    def loss(w1, b1, w2):
        return jnp.mean((mlp(x, w1, b1, w2) - y) ** 2)

    value, gradients = jax.value_and_grad(loss, argnums=(0, 1, 2))(w1, b1, w2)
    return (value, *(w - 0.1 * g for w, g in zip((w1, b1, w2), gradients)))


def attention(q, k, v):
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.float32(np.sqrt(q.shape[-1]))
    mask = jnp.tril(jnp.ones(scores.shape[-2:], bool))
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(jnp.where(mask, scores, -jnp.inf), axis=-1), v)


def layer_norm(x, g, b):
    mean = x.mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) * g + b


def conv_net(x, w, v):
    x = jax.nn.relu(lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")))
    x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return x.reshape(x.shape[0], -1) @ v


def cross_entropy(logits, labels):
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1))


def recurrent(h, xs, w, u):
    return lax.scan(lambda h, x: (jnp.tanh(h @ w + x @ u), h.sum()), h, xs)


def key(k):
    return jax.random.wrap_key_data(k)


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "mlp": (mlp, (normal(5, 3), normal(3, 4), normal(4), normal(4, 2))),
    "mlp_step": (mlp_step, (normal(5, 3), normal(5, 2), normal(3, 4), normal(4), normal(4, 2))),
    "attention": (attention, (normal(2, 5, 2, 4), normal(2, 5, 2, 4), normal(2, 5, 2, 4))),
    "layer_norm": (layer_norm, (normal(3, 8), normal(8), normal(8))),
    "layer_norm_grad": (
        jax.grad(lambda *a: (layer_norm(*a) ** 3).sum(), argnums=(0, 1, 2)),
        (normal(3, 8), normal(8), normal(8)),
    ),
    "conv_net": (conv_net, (normal(2, 6, 6, 3), normal(3, 3, 3, 4), normal(36, 5))),
    "conv_net_grad": (
        jax.grad(lambda *a: (conv_net(*a) ** 2).sum(), argnums=(0, 1, 2)),
        (normal(2, 6, 6, 3), normal(3, 3, 3, 4), normal(36, 5)),
    ),
    "grouped_convolution": (
        lambda x, w: lax.conv_general_dilated(
            x, w, (2, 1), ((1, 2), (0, 1)), lhs_dilation=(1, 2), rhs_dilation=(2, 1), feature_group_count=2
        ),
        (normal(2, 4, 7, 8), normal(6, 2, 3, 2)),
    ),
    "average_pooling": (
        lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 3, 3, 1), (1, 2, 2, 1), "SAME") / 9,
        (normal(2, 6, 6, 3),),
    ),
    "cross_entropy": (jax.value_and_grad(cross_entropy), (normal(6, 5), integers(0, 5, 6))),
    "embedding": (lambda t, i: t[i].mean(1), (normal(9, 4), integers(0, 9, 3, 5))),
    "embedding_grad": (jax.grad(lambda t, i: (t[i] ** 2).sum()), (normal(9, 4), integers(0, 9, 3, 5))),
    "recurrent": (recurrent, (normal(2, 3), normal(6, 2, 4), normal(3, 3), normal(4, 3))),
    "recurrent_grad": (
        jax.grad(lambda *a: recurrent(*a)[1].sum(), argnums=(0, 2)),
        (normal(2, 3), normal(6, 2, 4), normal(3, 3), normal(4, 3)),
    ),
    "newton": (
        lambda x: lax.while_loop(lambda s: abs(s * s - x) > 1e-4, lambda s: 0.5 * (s + x / s), x),
        (np.float32(7),),
    ),
    "branches": (
        lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, lambda v: lax.cond(v.sum() > 0, jnp.tanh, jnp.exp, v)], x),
        (np.int32(2), normal(4)),
    ),
    "fori": (lambda n, x: lax.fori_loop(0, n, lambda i, v: v * 1.1 + i, x), (np.int32(5), normal(3))),
    "dynamic_slices": (
        lambda x, y, i: lax.dynamic_update_slice(x, lax.dynamic_slice(x, (i, 1), (2, 3)) + y, (i - 1, 9)),
        (normal(4, 6), normal(2, 3), np.int32(3)),
    ),
    "scatters": (
        lambda x, i, v: (x.at[i].add(v), x.at[i].max(v), x.at[:, 1].set(0.0), x.at[i].mul(v)),
        (normal(6, 3), np.array([1, 4, 1, 9], np.int32), normal(4, 3)),
    ),
    "gathers": (
        lambda x, i, j: (x[i, :, j], jnp.take(x, i, axis=1, mode="fill"), jnp.take_along_axis(x, i[:, None, None], 0)),
        (normal(5, 4, 3), np.array([0, 3, 1], np.int32), np.array([2, -1, 0], np.int32)),
    ),
    "sorts": (
        lambda x, y: (jnp.sort(x, axis=0), jnp.argsort(-x), *lax.sort((y, x), num_keys=2)),
        (np.round(normal(5, 4)), integers(0, 3, 5, 4)),
    ),
    "sort_special": (jnp.sort, (np.array([3, np.nan, -0.0, 0.0, 1, -np.inf, np.inf], np.float32),)),
    "top_k": (lambda x: lax.top_k(x, 3), (normal(4, 7),)),
    "arg_extrema": (lambda x: (x.argmax(), x.argmin(1), jnp.nanargmax(x, 0)), (normal(4, 5),)),
    "statistics": (
        lambda x: (x.std(0), jnp.median(x), jnp.quantile(x, 0.3, axis=1), jnp.histogram(x, bins=4)[0]),
        (normal(5, 4),),
    ),
    "cumulative": (
        lambda x: (jnp.cumsum(x, 1), jnp.cumprod(x, 0), lax.cummax(x, axis=1), lax.cumlogsumexp(x, axis=0)),
        (normal(4, 5),),
    ),
    "cholesky": (jnp.linalg.cholesky, (positive(4),)),
    "solve": (jnp.linalg.solve, (normal(4, 4), normal(4, 2))),
    "inverse_grad": (jax.grad(lambda a: jnp.linalg.inv(a).sum() + jnp.linalg.slogdet(a)[1]), (positive(3),)),
    "eigh": (lambda a: jnp.linalg.eigh(a)[0], (positive(4),)),
    "svd": (lambda a: jnp.linalg.svd(a, compute_uv=False), (normal(4, 3),)),
    "qr": (jnp.linalg.qr, (normal(4, 3),)),
    "expm": (jax.scipy.linalg.expm, (between(-0.3, 0.3, 4, 4),)),
    "fft": (lambda x: (jnp.fft.fft(x), jnp.fft.irfft(jnp.fft.rfft(x) * 2)), (normal(3, 8),)),
    "special": (
        lambda x: (
            jax.scipy.special.gammaln(x), jax.scipy.special.digamma(x), jax.scipy.special.erfinv(x / 4),
            jax.scipy.special.i0e(x), jnp.cbrt(x), jnp.sinh(x), jnp.arctanh(x / 4),
        ),
        (between(0.2, 3, 3, 4),),
    ),
    "integers": (
        lambda x, y: (x // y, x % y, lax.div(x, y), lax.rem(x, y), x << 3, lax.shift_right_logical(x, 2), x ^ y,
                      lax.population_count(x), lax.clz(x)),
        (integers(-99, 99, 8), integers(1, 9, 8)),
    ),
    "conversions": (
        lambda x: (x.astype(jnp.int32), x.astype(jnp.uint8), x.astype(jnp.float16), x.view(jnp.int32), x > 0,
                   lax.reduce_precision(x, 5, 10)),
        (np.array([1.5, -2.7, 300.0, 1e20, np.nan, -0.0], np.float32),),
    ),
    "random_uniform": (lambda k: jax.random.uniform(key(k), (5,)), (np.array([3, 9], np.uint32),)),
    "random_normal": (lambda k: jax.random.normal(key(k), (2, 3)), (np.array([3, 9], np.uint32),)),
    "random_choices": (
        lambda k: (jax.random.permutation(key(k), 7), jax.random.randint(key(k), (4,), 0, 50),
                   jax.random.gamma(key(k), 2.5, (3,))),
        (np.array([5, 1], np.uint32),),
    ),
    "complex": (lambda x, y: (x * y, x / y, jnp.exp(x), abs(x), jnp.angle(y), x @ y.T),
                (normal(3, 3) + 1j * normal(3, 3), normal(3, 3) + 1j * normal(3, 3))),
    "vmapped_loop": (
        jax.vmap(lambda v: lax.while_loop(lambda s: s < 100, lambda s: s * 2 + 1, v)), (between(0.1, 3, 5),)
    ),
    "hessian": (jax.hessian(lambda x: jax.nn.logsumexp(x * x)), (normal(4),)),
}  # fmt: skip


def artifact(name: str) -> bytes:
    """A program as jax.export writes it, without the places of its Python code."""
    function, arguments = PROGRAMS[name]
    jitted = jax.jit(lambda *a: jax.tree.leaves(function(*a)), keep_unused=True)
    jax.config.update("jax_traceback_in_locations_limit", 0)
    return bytes(export.export(jitted)(*arguments).mlir_module_serialized)


def write_artifacts() -> None:
    for name in PROGRAMS:
        if "lapack_" in (FOLDER / f"{name}.mlir").read_text(encoding="utf-8"):
            (FOLDER / f"{name}.bytecode").write_bytes(artifact(name))


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    values: dict[str, np.ndarray] = {}
    for name, (function, arguments) in PROGRAMS.items():
        given = [np.asarray(x, np.complex64) if np.iscomplexobj(x) else np.asarray(x) for x in arguments]
        jitted = jax.jit(lambda *a, f=function: jax.tree.leaves(f(*a)), keep_unused=True)
        text = jitted.lower(*given).as_text()
        (FOLDER / f"{name}.mlir").write_text(text.replace("jit__lambda", name), encoding="utf-8")
        for i, x in enumerate(given):
            values[f"{name}.argument{i}"] = x
        for i, x in enumerate(jitted(*given)):
            values[f"{name}.result{i}"] = np.asarray(x)
    np.savez_compressed(FOLDER / "values.npz", **values)
    write_artifacts()


if __name__ == "__main__":
    main()

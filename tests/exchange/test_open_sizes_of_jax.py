"""Programs that JAX exports with symbolic sizes run for each size of their arrays, where JAX is installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import smelt

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402
from jax import lax  # noqa: E402

Array = Any
#: A function, what its arguments are called with in place of numbers, and sizes for these.
Case = tuple[Callable[..., Any], list[str], list[dict[str, int]]]
N, NM = [{"n": 6}, {"n": 9}], [{"n": 5, "m": 4}, {"n": 3, "m": 7}]

CASES: dict[str, Case] = {
    "product": (lambda x, y: x @ y, ["n, 3", "3, m"], NM),
    "reshape": (lambda x: x.reshape(-1, 2).sum(0), ["2*n"], N),
    "broadcast": (lambda x: jnp.broadcast_to(x[:, None], (x.shape[0], 4)) * jnp.arange(x.shape[0])[:, None], ["n"], N),
    "parts": (lambda x: jnp.concatenate([x, x[::-1], jnp.zeros((x.shape[0] // 2,))])[x.shape[0] // 2 :], ["n"], N),
    "softmax": (lambda x: jax.nn.softmax(x, -1).mean(0), ["n, m"], NM),
    "scan": (lambda x: lax.scan(lambda c, y: (c + y, c * y), jnp.zeros(()), x), ["n"], N),
    "while": (lambda x: lax.while_loop(lambda c: c[1] < x.shape[0], lambda c: (c[0] + c[1], c[1] + 1), (0, 0)),
              ["n"], N),
    "branches": (lambda x: lax.cond(x.sum() > 0, lambda x: x * 2, lambda x: x - 1, x), ["n"], N),
    "sort": (lambda x: (jnp.sort(x), jnp.argsort(x), jnp.median(x)), ["n"], N),
    "running": (lambda x: (jnp.cumsum(x, 0), jnp.cumprod(x, 1), lax.cummax(x, 0, reverse=True)), ["n, m"], NM),
    "running of complex structure": (lambda x: lax.cumlogsumexp(x, 0), ["n, 2"], N),
    "windows": (lambda x: lax.reduce_window(x, 0.0, lax.add, (x.shape[0] // 2,), (2,), "SAME"), ["n"], N),
    "pooling": (lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 2), (1, 2), "VALID"), ["n, 2*m"], NM),
    "convolution": (lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME"), ["2, 1, n, m", "2, 1, 3, 3"], NM),
    "the largest": (lambda x: lax.top_k(x, 2), ["n"], N),
    "half of all": (lambda x: lax.top_k(x, x.shape[0] // 2)[0], ["n"], N),
    "a part": (lambda x: lax.dynamic_slice_in_dim(x, 1, x.shape[0] - 2), ["n"], N),
    "a written part": (lambda x: lax.dynamic_update_slice_in_dim(x, jnp.ones(2), 1, 0), ["n"], N),
    "padding": (lambda x: jnp.pad(x, (1, x.shape[0])), ["n"], N),
    "look-up": (lambda x, y: x[(y * 0).astype(int) + 1], ["n, 3", "m"], NM),
    "sums of segments": (lambda x: jax.ops.segment_sum(x, jnp.arange(x.shape[0]) // 2, x.shape[0]), ["n"], N),
    "gradient": (jax.grad(lambda x: (jax.nn.log_softmax(x) * jnp.cumsum(x, 1)).sum()), ["n, m"], NM),
    "batch": (jax.vmap(lambda x: jnp.dot(x, x)), ["n, m"], NM),
    "layers": (lambda x, w, b: jax.nn.gelu(x @ w + b).sum(), ["n, 3", "3, m", "m"], NM),
    "factor": (lambda x: jnp.linalg.cholesky(x @ x.T + 10 * jnp.eye(x.shape[0])), ["n, m"], NM),
    "fourier": (lambda x: jnp.abs(jnp.fft.fft(x)), ["n, 8"], N),
    "random": (lambda x: jax.random.normal(jax.random.key(0), x.shape) + x, ["n"], N),
    "moments": (lambda x: (x.mean(), x.var(0), x.shape[0] * 1.0), ["n, m"], NM),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_program(name: str) -> None:
    function, shapes, sizes = CASES[name]
    scope = jax.export.SymbolicScope(("n >= 3",))
    types = [jax.ShapeDtypeStruct(jax.export.symbolic_shape(s, scope=scope), "float32") for s in shapes]
    exported = jax.export.export(jax.jit(function))(*types)
    rng = np.random.default_rng(0)
    for form in (exported.mlir_module(), exported.mlir_module_serialized):
        f = smelt.from_stablehlo(form)
        for known in sizes:
            extents = [[eval(part.replace(" ", ""), {}, known) for part in s.split(",")] for s in shapes]
            arrays = [rng.normal(size=e).astype(np.float32) for e in extents]
            wanted = jax.tree.leaves(function(*arrays))
            for run in (f, smelt.compile(f)):
                found = run(*map(smelt.array, arrays))
                found = found if isinstance(found, tuple) else (found,)
                for ours, theirs in zip(found, wanted, strict=True):
                    np.testing.assert_allclose(np.array(ours), np.asarray(theirs), rtol=2e-4, atol=1e-5)

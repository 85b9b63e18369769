"""Writes attention.mlir and attention.npz, where JAX is installed: ``python make_jax.py``."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np


def attention(x, wq, wk, wv):
    """Causal self-attention of one head, and how far each place looks back on average."""
    q, k, v = x @ wq, x @ wk, x @ wv
    n = x.shape[0]
    scores = jnp.where(jnp.tril(jnp.ones((n, n), bool)), q @ k.T / np.float32(np.sqrt(k.shape[1])), -jnp.inf)
    weights = jax.nn.softmax(scores, axis=-1)
    distance = jnp.arange(n)[:, None] - jnp.arange(n)
    return weights @ v, (weights * distance).sum(-1)


rng = np.random.default_rng(0)
arguments = [rng.normal(size=s).astype(np.float32) for s in ((16, 32), (32, 8), (32, 8), (32, 8))]
here = Path(__file__).parent
(here / "attention.mlir").write_text(jax.jit(attention).lower(*arguments).as_text())
results = jax.jit(attention)(*arguments)
given = {f"argument{i}": a for i, a in enumerate(arguments)}
np.savez_compressed(here / "attention.npz", **given, **{f"result{i}": np.asarray(r) for i, r in enumerate(results)})

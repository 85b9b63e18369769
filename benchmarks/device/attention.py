"""Attention as models of language and of images have it: heads that share keys, masks, many features, one query."""

from __future__ import annotations

from typing import Any

import numpy as np

from .kernels import softmax_of
from .program import Program, check_close, numbers, wide


class SharedHeads(Program, name="attention-shared"):
    """causal attention, 2×32 heads of 128 that share 8, 2048 positions, bf16"""

    dtype = "bfloat16"
    causal = True
    masked = False
    #: batch, heads, heads of keys, queries, keys, features
    sizes = 2, 32, 8, 2048, 2048, 128

    @property
    def now(self) -> tuple[int, ...]:
        if not self.tiny:
            return self.sizes
        _, heads, shared, queries, _, features = self.sizes
        return 2, heads // shared * 2, 2, min(queries, 32), 32, min(features, 16)

    @property
    def flops(self) -> float:
        batch, heads, _, queries, keys, features = self.now
        return 4.0 * batch * heads * queries * keys * features / (2 if self.causal else 1)

    def arrays(self, rng: np.random.Generator) -> list[np.ndarray]:
        batch, heads, shared, queries, keys, features = self.now
        shapes = [(batch, heads, queries, features), *[(batch, shared, keys, features)] * 2]
        mask = [rng.random((queries, keys)) > 0.3] if self.masked else []
        return [*(numbers(rng, shape, self.dtype) for shape in shapes), *mask]

    def shown(self, result: Any) -> Any:
        return result[:1, :2]

    def check(self, result: Any, *arrays: np.ndarray) -> None:
        check_close(self, result, self.expected(*arrays))

    def expected(self, q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
        share = q.shape[1] // k.shape[1]
        k, v = (np.repeat(wide(x[:1, :2]), share, axis=1)[:, :2] for x in (k, v))
        scores = wide(q[:1, :2]) @ k.swapaxes(-1, -2) * q.shape[-1] ** -0.5
        if self.causal:
            scores += np.triu(np.full(scores.shape[-2:], -1e30), 1)
        if mask is not None:
            scores = np.where(mask, scores, -1e30)
        found: np.ndarray = softmax_of(scores) @ v
        return found

    def smelt(self, smelt: Any) -> Any:
        def attention(q: Any, k: Any, v: Any, mask: Any = "causal" if self.causal else None) -> Any:
            return smelt.fast.scaled_dot_product_attention(q, k, v, scale=q.shape[-1] ** -0.5, mask=mask)

        return smelt.compile(attention)

    def torch(self, torch: Any) -> Any:
        def attention(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
            return torch.nn.functional.scaled_dot_product_attention(
                q, k, v, attn_mask=mask, is_causal=self.causal, enable_gqa=q.shape[1] != k.shape[1]
            )

        return attention

    def torch_compile(self, torch: Any) -> Any:
        return torch.compile(self.torch(torch), dynamic=False)

    def jax(self, jax: Any) -> Any:
        on_gpu = jax.default_backend() == "gpu" and not self.masked and self.now[3] > 1
        how = "cudnn" if on_gpu else "xla"

        def attention(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
            q, k, v = (jax.numpy.swapaxes(x, 1, 2) for x in (q, k, v))
            found = jax.nn.dot_product_attention(q, k, v, mask=mask, is_causal=self.causal, implementation=how)
            return jax.numpy.swapaxes(found, 1, 2)

        return jax.jit(attention)


class ManyFeatures(SharedHeads, name="attention-256"):
    """attention, 2×8 heads of 256, 1024 positions, bf16"""

    causal = False
    sizes = 2, 8, 8, 1024, 1024, 256


class Masked(SharedHeads, name="attention-mask"):
    """attention, 4×16 heads of 64, 1024 positions, a mask of booleans, bf16"""

    causal = False
    masked = True
    sizes = 4, 16, 16, 1024, 1024, 64


class Long(SharedHeads, name="attention-long"):
    """causal attention, 16 heads of 64, 8192 positions, bf16"""

    sizes = 1, 16, 16, 8192, 8192, 64


class Decoding(SharedHeads, name="attention-decoding"):
    """attention of one query, 8×32 heads of 128 that share 8, 4096 keys, bf16"""

    causal = False
    sizes = 8, 32, 8, 1, 4096, 128


class SharedHeadsGradient(SharedHeads, name="attention-shared-gradient"):
    """its gradients in queries, keys and values (2×32 heads of 128 that share 8, causal), bf16"""

    @property
    def flops(self) -> float:
        return 3.5 * super().flops

    def arrays(self, rng: np.random.Generator) -> list[np.ndarray]:
        arrays = super().arrays(rng)
        return [*arrays, numbers(rng, arrays[0].shape, self.dtype)]

    def expected(self, q: np.ndarray, k: np.ndarray, v: np.ndarray, given: np.ndarray | None = None) -> np.ndarray:
        """The cotangents of the first queries."""
        assert given is not None
        share, scale = q.shape[1] // k.shape[1], q.shape[-1] ** -0.5
        queries, cotangent = wide(q[:1, :2]), wide(given[:1, :2])
        keys, values = (np.repeat(wide(x[:1, :2]), share, axis=1)[:, :2] for x in (k, v))
        scores = queries @ keys.swapaxes(-1, -2) * scale
        weights = softmax_of(scores + np.triu(np.full(scores.shape[-2:], -1e30), 1))
        inner = cotangent @ values.swapaxes(-1, -2)
        found: np.ndarray = weights * (inner - (weights * inner).sum(-1, keepdims=True)) @ keys * scale
        return found

    def smelt(self, smelt: Any) -> Any:
        attention = super().smelt(smelt)

        def gradients(q: Any, k: Any, v: Any, given: Any) -> Any:
            found, pulled = smelt.vjp(lambda *x: attention(*x), [q, k, v], [given])
            return pulled[0], pulled[1], pulled[2], found[0]

        whole = smelt.compile(gradients)
        return lambda *arrays: whole(*arrays)[0]

    def torch(self, torch: Any) -> Any:
        attention = super().torch(torch)

        def gradients(q: Any, k: Any, v: Any, given: Any) -> Any:
            with torch.enable_grad():
                leaves = [x.detach().requires_grad_() for x in (q, k, v)]
                return torch.autograd.grad(attention(*leaves), leaves, given)[0]

        return gradients

    def torch_compile(self, torch: Any) -> Any:
        return self.torch(torch)

    def jax(self, jax: Any) -> Any:
        attention = super().jax(jax)

        def gradients(q: Any, k: Any, v: Any, given: Any) -> Any:
            found, pull = jax.vjp(attention, q, k, v)
            return *pull(given), found

        whole = jax.jit(gradients)
        return lambda *arrays: whole(*arrays)[0]

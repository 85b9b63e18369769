"""Tokens that examples/llama.py writes, one after the other, each the likeliest: with a cache of keys and values of one
size, and with one that grows. A run has the prompt, too; the first one of a process compiles what it needs."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import functions
from .models import Llama
from .steps import _double, _OfFramework

PROMPT, TOKENS = 64, 64


class _Tokens(_OfFramework):
    """The tokens that are written after a prompt, [TOKENS]."""

    model = Llama()
    unit, count, is_rate = "s", TOKENS, True
    growing = False

    def arrays(self, rng):
        prompt = rng.integers(0, self.model.VOCABULARY, (1, PROMPT)).astype(np.int32)
        return [prompt, *self.model.weights(rng).values()]

    def advanced(self, f: Any, tokens: Any, position: Any, caches: Any, weights: Any) -> tuple[Any, Any]:
        """The next token, [1, 1], and the caches with these."""
        p, kept = dict(zip(self.model.shapes(), weights)), []

        def cached(i: int, q: Any, k: Any, v: Any) -> Any:
            q, k, length = f.rope(q, position), f.rope(k, position), q.shape[2]
            if self.growing:
                keys, values = (f.concatenate([old, new], 2) for old, new in zip(caches[i], (k, v)))
            else:
                keys, values = (f.written(old, new, position) for old, new in zip(caches[i], (k, v)))
            kept.append((keys, values))
            if length == 1 and self.growing:
                return f.attention(q, keys, values)
            mask = f.places(keys.shape[2])[None, :] <= position + f.places(length)[:, None]
            return f.attention(q, keys, values, mask)

        logits = f.linear(self.model.hidden(f, p, tokens, cached)[:, -1], p["embed_tokens.weight"])
        return logits.argmax(-1)[:, None], kept

    def made(self, f):
        model, places = self.model, 0 if self.growing else PROMPT + TOKENS
        empty = np.zeros((1, model.KV_HEADS, places, model.DIMS // model.HEADS), np.float32)
        advance = self.program(f)

        def write(prompt: Any, *weights: Any) -> Any:
            caches = [(f.array(empty.copy()), f.array(empty.copy())) for _ in range(model.LAYERS)]
            tokens, written = prompt, []
            for i in range(TOKENS):
                position = f.array(np.array(PROMPT + i - 1 if i else 0))
                tokens, caches = advance(tokens, position, caches, list(weights))
                f.wait(tokens, caches)
                written.append(tokens)
            return f.concatenate(written, 1)[0]

        return write

    def program(self, f: Any) -> Any:
        """`advanced`, compiled as this framework does it for such a cache."""
        return f.compile(lambda *arguments: self.advanced(f, *arguments))

    def jax(self, jax):
        f = functions.Jax(jax)
        f.compile = lambda function: jax.jit(function, donate_argnums=2)
        return self.made(f)

    def expected(self, prompt, *weights):
        f = functions.Reference()
        f.compile, f.wait = (lambda function: function), (lambda *_: None)
        return self.made(f)(prompt, *_double(weights))  # once: NumPy would convert weights for each product

    def check(self, result, *arrays):
        assert result.tolist() == self.expected(*arrays).tolist()


class TokensFixed(_Tokens, name="llama-tokens-fixed"):
    """Llama-style decoder, cache of one size"""


class TokensGrowing(_Tokens, name="llama-tokens-growing"):
    """Llama-style decoder, growing cache"""

    growing = True

    def program(self, f):
        if isinstance(f, functions.MlxNamed) and hasattr(f.np, "scan"):  # smelt: one trace for all lengths
            return f.np.compile(lambda *arguments: self.advanced(f, *arguments), shapeless=True)
        if isinstance(f, functions.MlxNamed):  # MLX compiles for each shape
            return lambda *arguments: self.advanced(f, *arguments)
        return super().program(f)

    def jax(self, jax):
        return None  # a program for each length


class FirstTokensFixed(TokensFixed, name="llama-first-tokens-fixed"):
    """the same, the first ones of a process, compilation included"""

    fresh_process = True


class FirstTokensGrowing(TokensGrowing, name="llama-first-tokens-growing"):
    """the first ones of a process with a growing cache, compilation included"""

    fresh_process = True

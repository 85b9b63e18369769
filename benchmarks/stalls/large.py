"""Programs whose weights do not fit into a cache, at sizes that change: run by default on a GPU only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .generation import NOT_ASSIGNABLE, Sizes, concatenated, generate, viewed, zeros
from .models import generator, large_matrix, sgd, transformer_logits, transformer_loss
from .program import Run, program

#: 109 million parameters.
LARGE = Sizes(layers=8, width=1024, heads=16, vocabulary=8192, tokens=512)


@program("large-concatenated", 100, of="token", large=True)
def large_concatenated(mx: Any, run: Run) -> Iterator[Any]:
    """100 tokens, 8 layers of 1024, cache growing by concatenation"""
    yield from generate(mx, run, lambda: None, concatenated, LARGE, large_matrix)


@program("large-viewed", 100, of="token", absent=NOT_ASSIGNABLE, large=True)
def large_viewed(mx: Any, run: Run) -> Iterator[Any]:
    """100 tokens, 8 layers of 1024, preallocated cache with a growing view"""
    yield from generate(mx, run, zeros(mx, LARGE), viewed, LARGE, large_matrix)


@program("large-prompts", 40, of="prompt", large=True)
def large_prompts(mx: Any, run: Run) -> Iterator[Any]:
    """40 prompts of ever new lengths, 8 layers of 1024"""
    rng = generator()
    p = LARGE.parameters(mx, large_matrix)
    total = mx.zeros(())
    for i in range(run.steps):
        tokens = mx.array(rng.integers(0, LARGE.vocabulary, (1, 64 + i * 97 % 448)).astype(np.int32))
        total = total + mx.mean(mx.logsumexp(transformer_logits(mx, p, tokens, LARGE.heads)[:, -1], axis=-1))
        mx.eval(total)
        yield total


@program("large-training", 40, large=True)
def large_training(mx: Any, run: Run) -> Iterator[Any]:
    """8 layers of 1024, lazy step, 40 steps, batch size and length change each step"""
    rng = generator()
    p = LARGE.parameters(mx, large_matrix)
    step = mx.value_and_grad(lambda p, x, y: transformer_loss(mx, p, x, y, LARGE.heads))
    for i in range(run.steps):
        tokens = rng.integers(0, LARGE.vocabulary, (1 + i % 6, 65 + i * 97 % 448)).astype(np.int32)
        loss, gradients = step(p, mx.array(tokens[:, :-1]), mx.array(tokens[:, 1:]))
        p = sgd(mx, p, gradients, 0.01)
        mx.eval(loss, p)
        yield loss

"""Convolutions and attention by cuDNN."""

from __future__ import annotations

import functools

from ...gpu.library import AttentionGradient, Convolution, ScaledAttention
from ..libraries import load, opened
from . import attention, attention_gradient, convolutions
from .library import Library


@functools.cache
def library() -> Library | None:
    """cuDNN; None where it is not installed, or does not work with the driver."""
    loaded = load("cudnn") if load("cublasLt") is not None else None  # which it loads, and cannot do without
    found = opened(Library, loaded)
    if found is not None:
        found.plans = {
            Convolution.kind: convolutions.plans, ScaledAttention.kind: attention.plans,
            AttentionGradient.kind: attention_gradient.plans,
        }  # fmt: skip
    return found

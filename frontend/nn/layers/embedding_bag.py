"""Sums of vectors for bags of integers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import smelt
from smelt import array
from smelt.ir.errors import AttributeValueError, ShapeError, at_user_line, shown

from .activation_functions import widened
from .base import Module

__all__ = ["EmbeddingBag"]


class EmbeddingBag(Module):
    """For each bag of integers the mean, sum or largest elements of their vectors.

    Args:
        num_embeddings: how many integers there are. dims: the size of a vector. mode: mean, sum or max.

    Attributes:
        weight: [num_embeddings, dims]; normally distributed at first, with deviation 1/√dims.

    Raises:
        AttributeValueError: another `mode`; when called, weights of integers with a mode that is not sum.
        ShapeError: when called, offsets that do not go with one axis of integers, weights of another shape.

    >>> import smelt
    >>> bags = smelt.nn.EmbeddingBag(10, 4)
    >>> bags(smelt.array([[1, 2, 3], [4, 4, 0]])).shape
    (2, 4)
    >>> bags(smelt.array([1, 2, 3, 4]), offsets=smelt.array([0, 3])).shape
    (2, 4)
    """

    def __init__(self, num_embeddings: int, dims: int, mode: Literal["mean", "sum", "max"] = "mean"):
        super().__init__()
        if mode not in ("mean", "sum", "max"):
            raise AttributeValueError(
                at_user_line(f"smelt.nn.EmbeddingBag: mode must be mean, sum or max, is {shown(mode)}")
            )
        self.mode = mode
        self.weight = smelt.random.normal((num_embeddings, dims), scale=1 / math.sqrt(dims))

    def _extra_repr(self) -> str:
        return f"{self.weight.shape[0]}, {self.weight.shape[1]}, mode={self.mode}"

    def __call__(self, x: array, offsets: array | None = None, weights: array | None = None) -> array:
        """One vector for each bag, [..., dims].

        Args:
            x: integers, [..., how many are in a bag]; with `offsets`, the integers of all bags one after the other.
            offsets: where each bag begins, from 0 on and not falling. An empty bag has the vector 0.
            weights: what the vectors of the integers are multiplied by, of the shape of `x`; for sums.
        """
        if weights is not None and self.mode != "sum":
            raise AttributeValueError(at_user_line(f"smelt.nn.EmbeddingBag: weights go with mode sum, not {self.mode}"))
        if weights is not None and weights.shape != x.shape:
            raise ShapeError(
                at_user_line(f"smelt.nn.EmbeddingBag: weights need the shape of x; x {x.aval}, weights {weights.aval}")
            )
        vectors = self["weight"][x]
        if weights is not None:
            vectors = vectors * weights[..., None]
        if offsets is not None:
            return self._segments(x, vectors, offsets)
        if x.ndim < 1:
            raise ShapeError(at_user_line(f"smelt.nn.EmbeddingBag: needs axes [..., integers]; x {x.aval}"))
        reductions: dict[str, Callable[..., array]] = {"mean": smelt.mean, "sum": smelt.sum, "max": smelt.max}
        return reductions[self.mode](vectors, axis=-2)

    def _segments(self, x: array, vectors: array, offsets: array) -> array:
        if x.ndim != 1 or offsets.ndim != 1:
            raise ShapeError(
                at_user_line(
                    f"smelt.nn.EmbeddingBag: with offsets both have one axis; x {x.aval}, offsets {offsets.aval}"
                )
            )
        bag = smelt.searchsorted(offsets, smelt.arange(x.shape[0]), side="right").astype(smelt.int32) - 1
        shape = (offsets.shape[0], vectors.shape[-1])
        counts = smelt.zeros((shape[0], 1), smelt.int32).at[bag].add(1)
        if self.mode == "max":
            largest = smelt.full(shape, -math.inf, vectors.dtype).at[bag].maximum(vectors)
            return smelt.where(counts > 0, largest, 0)
        wide = widened(vectors)  # sums of halves would soon grow no more
        sums = smelt.zeros(shape, wide.dtype).at[bag].add(wide)
        found = sums if self.mode == "sum" else sums / smelt.maximum(counts, 1)
        return found.astype(vectors.dtype)

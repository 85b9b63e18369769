"""Vectors for integers."""

from __future__ import annotations

import math

import smelt
from smelt import array
from smelt.ir.errors import AttributeValueError, at_user_line

from .base import Module
from .quantized import QuantizedEmbedding

__all__ = ["Embedding"]


class Embedding(Module):
    """A vector for each of a number of integers.

    Args:
        num_embeddings: how many there are. dims: the size of a vector.

    Attributes:
        weight: [num_embeddings, dims]; normally distributed at first, with deviation 1/√dims.

    >>> import smelt
    >>> smelt.nn.Embedding(10, 4)(smelt.array([[1, 2, 3]])).shape
    (1, 3, 4)
    """

    def __init__(self, num_embeddings: int, dims: int):
        super().__init__()
        self.weight = smelt.random.normal((num_embeddings, dims), scale=1 / math.sqrt(dims))

    def _extra_repr(self) -> str:
        return f"{self.weight.shape[0]}, {self.weight.shape[1]}"

    def __call__(self, x: array) -> array:
        """The vectors of integers of any shape, [*x.shape, dims].

        Raises:
            IndexOutOfRangeError: an integer, in an array whose values are there, that there is no vector for.
        """
        return self["weight"][x]

    def as_linear(self, x: array) -> array:
        """x · weightᵀ: scores of all integers, by weights that are shared with the embedding.

        >>> import smelt
        >>> smelt.nn.Embedding(10, 4).as_linear(smelt.ones((2, 4))).shape
        (2, 10)
        """
        return x @ self["weight"].T

    def to_quantized(
        self, group_size: int | None = None, bits: int | None = None, mode: str = "affine", quantize_input: bool = False
    ) -> Module:
        """The same, packed.

        Args:
            group_size, bits, mode: as of `smelt.quantize`. quantize_input: False.

        Raises:
            AttributeValueError: `quantize_input`: integers have nothing to quantize.

        >>> import smelt
        >>> smelt.nn.Embedding(10, 64).to_quantized(bits=8)
        QuantizedEmbedding(10, 64, group_size=64, bits=8, mode=affine)
        """
        if quantize_input:
            raise AttributeValueError(at_user_line("smelt.nn.Embedding: integers are not quantized: no quantize_input"))
        return QuantizedEmbedding.from_embedding(self, group_size, bits, mode)

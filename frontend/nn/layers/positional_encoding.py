"""Encodings of positions in a sequence."""

from __future__ import annotations

import math

import smelt
from smelt import array
from smelt.ir.dtypes import DType
from smelt.ir.errors import ShapeError, at_user_line

from ...lazy.arguments import integer
from .base import Module

__all__ = ["ALiBi", "RoPE", "SinusoidalPositionalEncoding"]


class RoPE(Module):
    """Pairs of features rotated by angles that grow with the position: see `smelt.fast.rope`.

    Args:
        dims: how many features turn. traditional: pairs are neighbours, else halves.
        base: the larger, the slower the last pairs turn. scale: of the positions.

    >>> import smelt
    >>> smelt.nn.RoPE(4)(smelt.ones((1, 2, 8, 4)), offset=3).shape
    (1, 2, 8, 4)
    """

    def __init__(self, dims: int, traditional: bool = False, base: float = 10000, scale: float = 1.0):
        super().__init__()
        self.dims = dims
        self.traditional = traditional
        self.base = base
        self.scale = scale

    def _extra_repr(self) -> str:
        return f"{self.dims}, traditional={self.traditional}"

    def __call__(self, x: array, offset: int | array = 0) -> array:
        return smelt.fast.rope(
            x, self.dims, traditional=self.traditional, base=self.base, scale=self.scale, offset=offset
        )


class SinusoidalPositionalEncoding(Module):
    """sin(x · f) and cos(x · f) of positions x, for frequencies f between two in a geometric series.

    Vaswani et al., "Attention is all you need", 2017.

    Args:
        dims: the size of an encoding, an even number. min_freq, max_freq: the last and the first frequency.
        scale: of the encodings, √(2 / dims) by default. cos_first: cosines stand before sines.
        full_turns: frequencies are turns, not radians.

    >>> import smelt
    >>> smelt.nn.SinusoidalPositionalEncoding(8)(smelt.arange(3)).shape
    (3, 8)
    """

    def __init__(
        self,
        dims: int,
        min_freq: float = 0.0001,
        max_freq: float = 1,
        scale: float | None = None,
        cos_first: bool = False,
        full_turns: bool = False,
    ):
        super().__init__()
        half = integer("nn.SinusoidalPositionalEncoding", "dims", dims, 2) // 2
        falling = smelt.linspace(1.0, 0.0, half) if half > 1 else smelt.ones(half)
        low, high = math.log(min_freq), math.log(max_freq)
        self._sigmas = smelt.exp(falling * (high - low) + low) * (2 * math.pi if full_turns else 1.0)
        self.scale = math.sqrt(2 / dims) if scale is None else scale
        self.cos_first = cos_first

    def __call__(self, x: array) -> array:
        """The encodings of positions of any shape, [*x.shape, dims]."""
        angles = smelt.expand_dims(x, -1) * self._sigmas
        parts = [smelt.sin(angles), smelt.cos(angles)]
        found = smelt.concatenate(parts[::-1] if self.cos_first else parts, axis=-1)
        return found * self.scale if self.scale != 1 else found


class ALiBi(Module):
    """Scores of attention, less the distance of query and key times a slope for each head.

    Press, Smith and Lewis, "Train short, test long", 2022.

    >>> import smelt
    >>> smelt.nn.ALiBi()(smelt.zeros((1, 1, 2, 3)))[0, 0].tolist()
    [[0.0, -0.00390625, -0.0078125], [-0.00390625, 0.0, -0.00390625]]
    """

    @staticmethod
    def create_alibi_matrix(
        q_sequence_length: int,
        k_sequence_length: int,
        num_heads: int,
        offset: int = 0,
        dtype: DType = smelt.float32,
    ) -> array:
        """What is added to scores, [1, num_heads, queries, keys]. The queries are those from `offset` to
        `q_sequence_length`.

        >>> import smelt
        >>> smelt.nn.ALiBi.create_alibi_matrix(4, 4, 2, offset=1).shape
        (1, 2, 3, 4)
        """
        queries, keys = smelt.arange(offset, q_sequence_length), smelt.arange(k_sequence_length)
        distance = smelt.abs(smelt.expand_dims(queries, 1) - keys).astype(dtype)
        return smelt.expand_dims(-distance * ALiBi.create_alibi_slope(num_heads, dtype), 0)

    @staticmethod
    def create_alibi_slope(num_heads: int, dtype: DType = smelt.float32) -> array:
        """2^(-8 · h / num_heads) for h = 1, 2, …, as [num_heads, 1, 1].

        Where `num_heads` is no power of two, those of the power n below it, then every other one of those of 2n heads.

        >>> import smelt
        >>> smelt.nn.ALiBi.create_alibi_slope(2).tolist()
        [[[0.0625]], [[0.00390625]]]
        """
        known = 2 ** (num_heads.bit_length() - 1)
        powers = [2 ** (-8 * (h + 1) / known) for h in range(known)]
        powers += [2 ** (-8 * (2 * h + 1) / (2 * known)) for h in range(num_heads - known)]
        return smelt.array(powers, smelt.float32).astype(dtype).reshape(num_heads, 1, 1)

    def __call__(self, attention_scores: array, offset: int = 0, mask: array | None = None) -> array:
        """The scores, [batch, heads, queries, keys], less the distances.

        Args:
            offset: how many positions the first query is behind the first key. mask: is added, too.

        Raises:
            ShapeError: other axes.
        """
        if attention_scores.ndim != 4:
            message = f"needs axes [batch, heads, queries, keys]; attention_scores {attention_scores.aval}"
            raise ShapeError(at_user_line(f"smelt.nn.ALiBi: {message}"))
        _, heads, queries, keys = attention_scores.shape
        bias = ALiBi.create_alibi_matrix(queries + offset, keys, heads, offset, attention_scores.dtype)
        return attention_scores + (bias if mask is None else bias + mask)

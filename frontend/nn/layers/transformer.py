"""Attention of several heads, and the layers of transformers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import smelt
from smelt import array
from smelt.ir.dtypes import DType
from smelt.ir.errors import AttributeValueError, at_user_line

from ...lazy.arguments import integer
from ..utils import checkpoint as checkpointed
from .activation_functions import relu
from .base import Module
from .dropout import Dropout
from .linear import Linear
from .normalization import LayerNorm

__all__ = [
    "MultiHeadAttention", "Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder",
    "TransformerEncoderLayer",
]  # fmt: skip

Activation = Callable[[Any], Any]


class MultiHeadAttention(Module):
    """Attention of several heads: see `smelt.fast.scaled_dot_product_attention`.

    Args:
        dims: of queries and keys, all heads together. num_heads: how many there are.
        query_input_dims, key_input_dims, value_input_dims: the last extents of the arguments; by default `dims`,
            `dims`, and that of the keys. value_dims: of values, all heads together, `dims` by default.
        value_output_dims: the last extent of the result, `dims` by default. bias: whether the projections have one.

    Attributes:
        query_proj, key_proj, value_proj, out_proj: modules of class `Linear`.

    Raises:
        AttributeValueError: `dims` that are not `num_heads` equal parts.

    >>> import smelt
    >>> x = smelt.ones((2, 5, 8))
    >>> smelt.nn.MultiHeadAttention(8, 2)(x, x, x, mask="causal").shape
    (2, 5, 8)
    """

    def __init__(
        self,
        dims: int,
        num_heads: int,
        query_input_dims: int | None = None,
        key_input_dims: int | None = None,
        value_input_dims: int | None = None,
        value_dims: int | None = None,
        value_output_dims: int | None = None,
        bias: bool = False,
    ):
        super().__init__()
        integer("nn.MultiHeadAttention", "num_heads", num_heads, 1)
        if dims % num_heads or (value_dims or dims) % num_heads:
            raise AttributeValueError(
                at_user_line(
                    f"smelt.nn.MultiHeadAttention: dims ({dims}) and value_dims ({value_dims or dims}) must be "
                    f"{num_heads} equal parts, one for each head"
                )
            )
        keys = key_input_dims or dims
        values = value_dims or dims
        self.num_heads = num_heads
        self.query_proj = Linear(query_input_dims or dims, dims, bias=bias)
        self.key_proj = Linear(keys, dims, bias=bias)
        self.value_proj = Linear(value_input_dims or keys, values, bias=bias)
        self.out_proj = Linear(values, value_output_dims or dims, bias=bias)

    def __call__(self, queries: array, keys: array, values: array, mask: str | array | None = None) -> array:
        """For each query a mean of the values, by the scores of their keys.

        Args:
            queries, keys, values: [batch, positions, features]; as many keys as values.
            mask: None, ``"causal"``, or an array that broadcasts to [batch, heads, queries, keys].

        Returns:
            [batch, positions of the queries, value_output_dims].
        """
        projected = (self.query_proj(queries), self.key_proj(keys), self.value_proj(values))
        q, k, v = (
            x.reshape(*x.shape[:-1], self.num_heads, x.shape[-1] // self.num_heads).transpose(0, 2, 1, 3)
            for x in projected
        )
        found = smelt.fast.scaled_dot_product_attention(q, k, v, scale=1 / math.sqrt(q.shape[-1]), mask=mask)
        found = found.transpose(0, 2, 1, 3)
        return self.out_proj(found.flatten(-2))

    @staticmethod
    def create_additive_causal_mask(N: int, dtype: DType = smelt.float32) -> array:
        """A mask, [N, N], that hides what comes later: 0, or the least finite number.

        >>> import smelt
        >>> (smelt.nn.MultiHeadAttention.create_additive_causal_mask(2) < 0).tolist()
        [[False, True], [False, False]]
        """
        positions = smelt.arange(N)
        later = smelt.expand_dims(positions, 1) < positions
        return smelt.where(later, smelt.array(smelt.finfo(dtype).min, dtype), smelt.array(0, dtype))


class TransformerEncoderLayer(Module):
    """Attention of a sequence to itself, then two linear maps with an activation between, each with a bridge around.

    Args:
        dims, num_heads: of the attention. mlp_dims: of the inner layer, 4 · dims by default.
        dropout: the probability of zeros. activation: a function.
        norm_first: normalize before each part, else after it.

    >>> import smelt
    >>> smelt.nn.TransformerEncoderLayer(8, 2)(smelt.ones((2, 5, 8)), None).shape
    (2, 5, 8)
    """

    def __init__(
        self,
        dims: int,
        num_heads: int,
        mlp_dims: int | None = None,
        dropout: float = 0.0,
        activation: Activation = relu,
        norm_first: bool = True,
    ):
        super().__init__()
        inner = mlp_dims or 4 * dims
        self.attention = MultiHeadAttention(dims, num_heads)
        self.ln1, self.ln2 = LayerNorm(dims), LayerNorm(dims)
        self.linear1, self.linear2 = Linear(dims, inner), Linear(inner, dims)
        self.dropout1, self.dropout2 = Dropout(dropout), Dropout(dropout)
        self.activation = activation
        self.norm_first = norm_first

    def __call__(self, x: array, mask: str | array | None) -> array:
        """x: [batch, positions, dims]. mask: as of `MultiHeadAttention`."""
        if self.norm_first:
            y = self.ln1(x)
            x = x + self.dropout1(self.attention(y, y, y, mask))
            return x + self._inner(self.ln2(x))
        x = self.ln1(x + self.dropout1(self.attention(x, x, x, mask)))
        return self.ln2(x + self._inner(x))

    def _inner(self, x: array) -> array:
        return self.linear2(self.dropout2(self.activation(self.linear1(x))))


class TransformerDecoderLayer(Module):
    """`TransformerEncoderLayer` with attention to another sequence in between.

    Args:
        dims, num_heads, mlp_dims, dropout, activation, norm_first: as of `TransformerEncoderLayer`.

    >>> import smelt
    >>> layer = smelt.nn.TransformerDecoderLayer(8, 2)
    >>> layer(smelt.ones((2, 5, 8)), smelt.ones((2, 3, 8)), "causal", None).shape
    (2, 5, 8)
    """

    def __init__(
        self,
        dims: int,
        num_heads: int,
        mlp_dims: int | None = None,
        dropout: float = 0.0,
        activation: Activation = relu,
        norm_first: bool = True,
    ):
        super().__init__()
        inner = mlp_dims or 4 * dims
        self.self_attention = MultiHeadAttention(dims, num_heads)
        self.cross_attention = MultiHeadAttention(dims, num_heads)
        self.ln1, self.ln2, self.ln3 = LayerNorm(dims), LayerNorm(dims), LayerNorm(dims)
        self.linear1, self.linear2 = Linear(dims, inner), Linear(inner, dims)
        self.dropout1, self.dropout2, self.dropout3 = Dropout(dropout), Dropout(dropout), Dropout(dropout)
        self.activation = activation
        self.norm_first = norm_first

    def __call__(
        self, x: array, memory: array, x_mask: str | array | None, memory_mask: str | array | None
    ) -> array:
        """x: [batch, positions, dims]. memory: [batch, other positions, dims]. The masks are for either."""
        if self.norm_first:
            y = self.ln1(x)
            x = x + self.dropout1(self.self_attention(y, y, y, x_mask))
            x = x + self.dropout2(self.cross_attention(self.ln2(x), memory, memory, memory_mask))
            return x + self._inner(self.ln3(x))
        x = self.ln1(x + self.dropout1(self.self_attention(x, x, x, x_mask)))
        x = self.ln2(x + self.dropout2(self.cross_attention(x, memory, memory, memory_mask)))
        return self.ln3(x + self._inner(x))

    def _inner(self, x: array) -> array:
        return self.linear2(self.dropout3(self.activation(self.linear1(x))))


class TransformerEncoder(Module):
    """A number of modules of class `TransformerEncoderLayer`, one after the other, and a `LayerNorm`.

    Args:
        num_layers: how many. checkpoint: compute each again for its gradient, see `smelt.nn.utils.checkpoint`.
            The rest: see `TransformerEncoderLayer`.

    >>> import smelt
    >>> smelt.nn.TransformerEncoder(3, 8, 2)(smelt.ones((2, 5, 8)), "causal").shape
    (2, 5, 8)
    """

    def __init__(
        self,
        num_layers: int,
        dims: int,
        num_heads: int,
        mlp_dims: int | None = None,
        dropout: float = 0.0,
        activation: Activation = relu,
        norm_first: bool = True,
        checkpoint: bool = False,
    ):
        super().__init__()
        self.layers = [
            TransformerEncoderLayer(dims, num_heads, mlp_dims, dropout, activation, norm_first)
            for _ in range(integer(f"nn.{type(self).__name__}", "num_layers", num_layers, 0))
        ]
        self.ln = LayerNorm(dims)
        self.checkpoint = checkpoint

    def __call__(self, x: array, mask: str | array | None) -> array:
        """x: [batch, positions, dims]. mask: as of `MultiHeadAttention`."""
        for layer in self.layers:
            x = (checkpointed(layer) if self.checkpoint else layer)(x, mask)
        return self.ln(x)


class TransformerDecoder(Module):
    """A number of modules of class `TransformerDecoderLayer`, one after the other, and a `LayerNorm`.

    Args:
        num_layers: how many. checkpoint: compute each again for its gradient, see `smelt.nn.utils.checkpoint`.
            The rest: see `TransformerDecoderLayer`.

    >>> import smelt
    >>> decoder = smelt.nn.TransformerDecoder(3, 8, 2)
    >>> decoder(smelt.ones((2, 5, 8)), smelt.ones((2, 3, 8)), "causal", None).shape
    (2, 5, 8)
    """

    def __init__(
        self,
        num_layers: int,
        dims: int,
        num_heads: int,
        mlp_dims: int | None = None,
        dropout: float = 0.0,
        activation: Activation = relu,
        norm_first: bool = True,
        checkpoint: bool = False,
    ):
        super().__init__()
        self.layers = [
            TransformerDecoderLayer(dims, num_heads, mlp_dims, dropout, activation, norm_first)
            for _ in range(integer(f"nn.{type(self).__name__}", "num_layers", num_layers, 0))
        ]
        self.ln = LayerNorm(dims)
        self.checkpoint = checkpoint

    def __call__(
        self, x: array, memory: array, x_mask: str | array | None, memory_mask: str | array | None
    ) -> array:
        """As of `TransformerDecoderLayer`."""
        for layer in self.layers:
            x = (checkpointed(layer) if self.checkpoint else layer)(x, memory, x_mask, memory_mask)
        return self.ln(x)


class Transformer(Module):
    """An encoder, and a decoder that sees what comes out of it (Vaswani et al., 2017).

    Args:
        dims, num_heads, mlp_dims, dropout, activation, norm_first, checkpoint: see `TransformerEncoder`.
        num_encoder_layers, num_decoder_layers: how many. custom_encoder, custom_decoder: to be taken instead.

    >>> import smelt
    >>> model = smelt.nn.Transformer(8, 2, num_encoder_layers=1, num_decoder_layers=1)
    >>> model(smelt.ones((2, 3, 8)), smelt.ones((2, 5, 8)), None, "causal", None).shape
    (2, 5, 8)
    """

    def __init__(
        self,
        dims: int = 512,
        num_heads: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        mlp_dims: int | None = None,
        dropout: float = 0.0,
        activation: Activation = relu,
        custom_encoder: Any | None = None,
        custom_decoder: Any | None = None,
        norm_first: bool = True,
        checkpoint: bool = False,
    ):
        super().__init__()
        rest = (dims, num_heads, mlp_dims, dropout, activation, norm_first, checkpoint)
        self.encoder = TransformerEncoder(num_encoder_layers, *rest) if custom_encoder is None else custom_encoder
        self.decoder = TransformerDecoder(num_decoder_layers, *rest) if custom_decoder is None else custom_decoder

    def __call__(
        self,
        src: array,
        tgt: array,
        src_mask: str | array | None,
        tgt_mask: str | array | None,
        memory_mask: str | array | None,
    ) -> array:
        """src: [batch, positions, dims]. tgt: [batch, other positions, dims]. The masks are those of the encoder's
        attention, of the decoder's, and of the latter to the former."""
        return self.decoder(tgt, self.encoder(src, src_mask), tgt_mask, memory_mask)

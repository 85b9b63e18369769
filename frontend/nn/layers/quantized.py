"""Layers whose weights are packed in few bits; see `smelt.quantize` for the formats."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import smelt
from smelt import array
from smelt.functions.quantization import format_of
from smelt.ir.errors import ArgumentTypeError, AttributeValueError, at_user_line, shown
from smelt.utils import tree_map_with_path

from ...lazy.explained import explained
from .base import Module, check_linear, check_module

__all__ = ["QQLinear", "QuantizedEmbedding", "QuantizedLinear", "quantize"]


class _Packed(Module):
    """What the layers share: how a weight is packed."""

    def __init__(self, group_size: int | None, bits: int | None, mode: str):
        super().__init__()
        self.mode, self.group_size, self.bits = format_of(f"nn.{type(self).__name__}", group_size, bits, mode)

    @property
    def _format(self) -> dict[str, Any]:
        return {"group_size": self.group_size, "bits": self.bits, "mode": self.mode}

    def _extra_repr(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self._format.items())


class _Quantized(_Packed):
    """A packed ``weight`` with its ``scales`` (and ``biases``), frozen until somebody unfreezes scales or biases."""

    def _put(self, weight: array) -> None:
        self.weight, self.scales, *biases = smelt.quantize(weight, **self._format)
        if biases:
            self.biases = biases[0]
        self.freeze()

    def _parts(self) -> tuple[array, array, array | None]:
        return self["weight"], self["scales"], self.get("biases")

    @property
    def _columns(self) -> int:
        return self.weight.shape[-1] * 32 // self.bits


class QuantizedLinear(_Quantized):
    """x · weightᵀ + bias, with a packed weight.

    Args:
        input_dims: the extent of the last axis of the argument; a group divides it. output_dims: that of the result.
        bias: whether there is one. group_size, bits, mode: as in `smelt.quantize`.

    Attributes:
        weight: uint32 [output_dims, input_dims · bits / 32]. scales, biases: [output_dims, input_dims / group_size].
        bias: [output_dims].

    >>> import smelt
    >>> smelt.nn.QuantizedLinear(64, 3)(smelt.ones((5, 64))).shape
    (5, 3)
    """

    def __init__(
        self, input_dims: int, output_dims: int, bias: bool = True, group_size: int | None = None,
        bits: int | None = None, mode: str = "affine",
    ):  # fmt: skip
        super().__init__(group_size, bits, mode)
        bound = 1 / math.sqrt(input_dims) if input_dims else 0.0
        self._put(smelt.random.uniform(-bound, bound, (output_dims, input_dims)))
        if bias:
            self.bias = smelt.zeros((output_dims,))
            self.freeze(keys="bias")

    def _extra_repr(self) -> str:
        outputs = self.weight.shape[0]
        dims = f"input_dims={self._columns}, output_dims={outputs}, bias={'bias' in self}"
        return f"{dims}, {super()._extra_repr()}"

    def __call__(self, x: array) -> array:
        found = smelt.quantized_matmul(x, *self._parts(), transpose=True, **self._format)
        return found + self["bias"] if "bias" in self else found

    @classmethod
    def from_linear(
        cls, linear_layer: Module, group_size: int | None = None, bits: int | None = None, mode: str = "affine"
    ) -> QuantizedLinear:
        """The layer with the weights of a `Linear`. Its bias, which is not packed, is trained as before.

        Raises:
            ShapeError: groups do not divide the rows of its weight.

        >>> import smelt
        >>> smelt.nn.QuantizedLinear.from_linear(smelt.nn.Linear(64, 2), bits=8)
        QuantizedLinear(input_dims=64, output_dims=2, bias=True, group_size=64, bits=8, mode=affine)
        """
        check_linear("QuantizedLinear.from_linear", linear_layer)
        outputs, inputs = linear_layer.weight.shape
        found = cls(inputs, outputs, False, group_size, bits, mode=mode)  # which draws as many random numbers as MLX's
        if "bias" in linear_layer:
            found.bias = linear_layer.bias
        found._put(linear_layer.weight)
        if "bias" in linear_layer.trainable_parameters():
            found.unfreeze(keys="bias")
        return found


class QuantizedEmbedding(_Quantized):
    """A vector for each of a number of integers, packed.

    Args:
        num_embeddings: how many there are. dims: the size of a vector; a group divides it.
        group_size, bits, mode: as in `smelt.quantize`.

    >>> import smelt
    >>> smelt.nn.QuantizedEmbedding(10, 64)(smelt.array([[1, 2, 3]])).shape
    (1, 3, 64)
    """

    def __init__(
        self, num_embeddings: int, dims: int, group_size: int | None = None, bits: int | None = None,
        mode: str = "affine",
    ):  # fmt: skip
        super().__init__(group_size, bits, mode)
        self.num_embeddings, self.dims = num_embeddings, dims
        self._put(smelt.random.normal((num_embeddings, dims), scale=1 / math.sqrt(dims) if dims else 1.0))

    def _extra_repr(self) -> str:
        return f"{self.weight.shape[0]}, {self._columns}, {super()._extra_repr()}"

    def __call__(self, x: array) -> array:
        """The vectors of integers of any shape, [*x.shape, dims]; of any other index, those that it takes."""
        weight, scales, biases = self._parts()
        x = x if isinstance(x, array) else smelt.arange(weight.shape[0])[x]
        at = x.reshape(-1)
        found = smelt.dequantize(weight[at], scales[at], None if biases is None else biases[at], **self._format)
        return found.reshape(*x.shape, found.shape[-1])

    def as_linear(self, x: array) -> array:
        """x · weightᵀ: scores of all integers, by weights that are shared with the embedding.

        >>> import smelt
        >>> smelt.nn.QuantizedEmbedding(10, 64).as_linear(smelt.ones((2, 64))).shape
        (2, 10)
        """
        return smelt.quantized_matmul(x, *self._parts(), transpose=True, **self._format)

    @classmethod
    def from_embedding(
        cls, embedding_layer: Module, group_size: int | None = None, bits: int | None = None, mode: str = "affine"
    ) -> QuantizedEmbedding:
        """The layer with the vectors of an `Embedding`.

        >>> import smelt
        >>> smelt.nn.QuantizedEmbedding.from_embedding(smelt.nn.Embedding(10, 32), mode="mxfp4")
        QuantizedEmbedding(10, 32, group_size=32, bits=4, mode=mxfp4)
        """
        check_linear("QuantizedEmbedding.from_embedding", embedding_layer)
        num_embeddings, dims = embedding_layer.weight.shape
        found = cls(num_embeddings, dims, group_size, bits, mode)
        found._put(embedding_layer.weight)
        return found


class QQLinear(_Packed):
    """x · weightᵀ, with both quantized by `smelt.qqmm`.

    The weight is a parameter like any other until `quantize`, which `eval` calls; `train` calls `dequantize`.

    Args:
        input_dims, output_dims: as of `Linear`. group_size, bits, mode: as in `smelt.qqmm`.

    >>> import smelt
    >>> layer = smelt.nn.QQLinear(64, 3)
    >>> layer.quantize()
    >>> layer(smelt.ones((5, 64))).shape, layer.weight.dtype
    ((5, 3), smelt.uint32)
    """

    def __init__(
        self, input_dims: int, output_dims: int, group_size: int | None = None, bits: int | None = None,
        mode: str = "nvfp4",
    ):  # fmt: skip
        super().__init__(group_size, bits, mode)
        bound = 1 / math.sqrt(input_dims) if input_dims else 0.0
        self.weight = smelt.random.uniform(-bound, bound, (output_dims, input_dims))

    def _extra_repr(self) -> str:
        outputs, columns = self.weight.shape
        inputs = columns * 32 // self.bits if "scales" in self else columns
        return f"input_dims={inputs}, output_dims={outputs}, {super()._extra_repr()}"

    def __call__(self, x: array) -> array:
        return smelt.qqmm(x, self["weight"], self.get("scales"), **self._format)

    def quantize(self) -> None:
        """Pack the weight, and train it no more."""
        if "scales" not in self:
            self._trained = "weight" in self.trainable_parameters()
            self.weight, self.scales = smelt.quantize(self.weight, **self._format)
            self.freeze()

    def dequantize(self) -> None:
        """Make the weight what is left of it, in bfloat16; it is trained if it was before."""
        if "scales" in self:
            self.weight = smelt.dequantize(self.weight, self.scales, **self._format)
            del self.scales
            if self._trained:
                self.unfreeze()

    def _set_training_mode(self, mode: bool) -> None:
        super()._set_training_mode(mode)
        if mode:
            self.dequantize()
        else:
            self.quantize()

    @classmethod
    def from_linear(
        cls, linear_layer: Module, group_size: int | None = None, bits: int | None = None, mode: str = "nvfp4"
    ) -> QQLinear:
        """The layer with the weight of a `Linear` without a bias.

        Raises:
            AttributeValueError: the layer has a bias.

        >>> import smelt
        >>> smelt.nn.QQLinear.from_linear(smelt.nn.Linear(64, 2, bias=False))
        QQLinear(input_dims=64, output_dims=2, group_size=16, bits=4, mode=nvfp4)
        """
        check_linear("QQLinear.from_linear", linear_layer)
        if "bias" in linear_layer:
            message = "the layer has a bias, for which there is no place"
            raise AttributeValueError(at_user_line(f"smelt.nn.QQLinear: {message}"))
        outputs, inputs = linear_layer.weight.shape
        found = cls(inputs, outputs, group_size, bits, mode=mode)
        found.weight = linear_layer.weight
        if not linear_layer.trainable_parameters():
            found.freeze()
        return found.train(linear_layer.training)


#: Which module is quantized, and how: a flag, or arguments of its `to_quantized`.
Predicate = Callable[[str, Module], "bool | dict[str, Any]"]


@explained
def quantize(
    model: Module,
    group_size: int | None = None,
    bits: int | None = None,
    *,
    mode: str = "affine",
    quantize_input: bool = False,
    class_predicate: Predicate | None = None,
) -> None:
    """Replace the layers of a model that can be quantized (those with a method ``to_quantized``).

    Args:
        group_size, bits, mode: as in `smelt.quantize`. quantize_input: `QQLinear` for linear layers.
        class_predicate: is asked about each leaf module, with its path: whether it is quantized, or with which
            arguments; None: all that can be.

    Raises:
        ShapeError: groups do not divide the rows of a weight. AttributeValueError: an input, or a layer that
            `class_predicate` asks for, that cannot be quantized.
        ArgumentTypeError: `class_predicate` returns something else. TreeError: the model is no module.

    >>> import smelt
    >>> model = smelt.nn.Sequential(smelt.nn.Linear(64, 2), smelt.nn.ReLU())
    >>> smelt.nn.quantize(model, bits=8)
    >>> model
    Sequential(
      (layers.0): QuantizedLinear(input_dims=64, output_dims=2, bias=True, group_size=64, bits=8, mode=affine)
      (layers.1): ReLU()
    )
    """
    check_module("quantize", model)
    common = {"group_size": group_size, "bits": bits, "mode": mode}
    if quantize_input:
        common["quantize_input"] = True

    def replaced(path: str, module: Module) -> Module:
        can = hasattr(module, "to_quantized")
        asked = can if class_predicate is None else class_predicate(path, module)
        if asked is False:
            return module
        if not can:
            message = f"class_predicate asks for {path!r}, a {type(module).__name__}, which cannot be quantized"
            raise AttributeValueError(at_user_line(f"smelt.nn.quantize: {message}"))
        if asked is not True and not isinstance(asked, dict):
            message = f"class_predicate must return a bool or a dict of arguments, returned {shown(asked)} for {path!r}"
            raise ArgumentTypeError(at_user_line(f"smelt.nn.quantize: {message}"))
        return module.to_quantized(**(asked if isinstance(asked, dict) else common))

    def all_replaced(self: Module) -> Any:  # as a method has it, so that errors in `replaced` say where in the model
        return tree_map_with_path(replaced, self.leaf_modules(), is_leaf=Module.is_module)

    model.update_modules(all_replaced(model))

"""Layers whose weights are divided among the processes of a group, along with their gradients."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import smelt
from smelt import array
from smelt.distributed import Group, all_gather, all_sum, init, sum_scatter
from smelt.ir.dtypes import DType
from smelt.ir.errors import ArgumentTypeError, AttributeValueError, ShapeError, at_user_line, shown

from ...lazy.arguments import is_integer
from ...utils import tree_map_with_path
from .base import Module, check_linear, check_module
from .linear import Linear
from .quantized import QuantizedLinear

__all__ = [
    "AllToShardedLinear", "FullyShardedModule", "QuantizedAllToShardedLinear", "QuantizedShardedToAllLinear",
    "ShardedToAllLinear", "fully_shard", "shard_inplace", "shard_linear", "sum_gradients",
]  # fmt: skip

#: Along which axis a parameter is divided (None: not at all), and into which parts before that.
Places = Callable[[str, array], "int | tuple[int, Any] | None"]


@functools.cache
def _pair(group: Group) -> tuple[Callable[[array], array], Callable[[array], array]]:
    """Of a group: what is the same everywhere, for parts that differ; and the sum of such parts.

    The loss is the same in all processes, so each is the transpose of the other one.
    """

    @smelt.custom_function
    def spread(x: array) -> array:
        return x

    @smelt.custom_function
    def collect(x: array) -> array:
        return all_sum(x, group=group)

    spread.vjp(lambda x, cotangent, output: collect(cotangent))
    spread.jvp(lambda x, tangent: tangent)
    collect.vjp(lambda x, cotangent, output: spread(cotangent))
    collect.jvp(lambda x, tangent: collect(tangent))
    return spread, collect


def sum_gradients(group: Group) -> Callable[[array], array]:
    """A function that returns its argument, and whose derivative is the sum of those of all processes.

    >>> import smelt
    >>> f = smelt.nn.layers.distributed.sum_gradients(smelt.distributed.init())
    >>> smelt.grad(lambda x: f(x).sum())(smelt.ones(2))
    array([1, 1], dtype=float32)
    """
    return (lambda x: x) if group.size() == 1 else _pair(group)[0]


def _collected(x: array, group: Group) -> array:
    return x if group.size() == 1 else _pair(group)[1](x)


def _own_part(x: array, axis: int, segments: Any, group: Group, name: str) -> array:
    """Of each segment along an axis the part of this process."""
    n, extent = group.size(), x.shape[axis]
    if is_integer(segments):
        segments = int(segments)
        bounds = [extent * i // segments for i in range(1, segments)]
    elif isinstance(segments, (list, tuple)):
        bounds = [int(s * extent) if isinstance(s, float) and s < 1 else int(s) for s in segments]
    else:
        raise ArgumentTypeError(
            at_user_line(f"smelt.nn.layers.distributed: segments must be an int or a list, is {shown(segments)}")
        )
    parts = []
    for start, end in zip([0, *bounds], [*bounds, extent]):
        if (end - start) % n:
            raise ShapeError(
                at_user_line(
                    f"smelt.nn.layers.distributed: axis {axis} of {name or 'a parameter'} has {end - start} elements "
                    f"for {n} processes, no equal parts; {x.aval}"
                )
            )
        each = (end - start) // n
        first = start + each * group.rank()
        parts.append(smelt.take(x, smelt.arange(first, first + each), axis=axis))
    return parts[0] if len(parts) == 1 else smelt.concatenate(parts, axis=axis)


def _all_to_sharded(path: str, x: array) -> int | None:
    return max(x.ndim - 2, 0)  # outputs: of weights, scales and biases of groups, and of the bias


def _sharded_to_all(path: str, x: array) -> int | None:
    return None if path.rpartition(".")[2] == "bias" else x.ndim - 1


_SHARDINGS: dict[str, Places] = {"all-to-sharded": _all_to_sharded, "sharded-to-all": _sharded_to_all}


def _places(sharding: Any) -> Places:
    found = _SHARDINGS.get(sharding) if isinstance(sharding, str) else sharding
    if not callable(found):
        raise AttributeValueError(
            at_user_line(
                "smelt.nn.layers.distributed: sharding must be all-to-sharded, sharded-to-all or a function, is "
                f"{shown(sharding)}"
            )
        )
    return found


def _divided(parameters: Any, places: Places, segments: Any, group: Group) -> Any:
    def part(path: str, x: array) -> array:
        found = places(path, x)
        if found is None:
            return x
        axis, inner = found if isinstance(found, tuple) else (found, segments)
        return _own_part(x, axis, inner, group, path)

    return tree_map_with_path(part, parameters)


def _equal(name: str, what: str, dims: int, group: Group) -> int:
    if dims % group.size():
        raise ShapeError(
            at_user_line(f"smelt.nn.{name}: {what} is {dims}, which {group.size()} processes cannot share equally")
        )
    return dims // group.size()


class AllToShardedLinear(Module):
    """A `Linear` of which each process has some of the outputs: its argument is the same everywhere.

    Args:
        input_dims, output_dims, bias: as of the whole layer. group: all processes by default.

    Attributes:
        weight: [output_dims / processes, input_dims]. bias: [output_dims / processes].

    Raises:
        ShapeError: processes that do not divide the outputs.

    >>> import smelt
    >>> smelt.nn.AllToShardedLinear(2, 4)(smelt.ones((1, 2))).shape  # of one process
    (1, 4)
    """

    def __init__(self, input_dims: int, output_dims: int, bias: bool = True, group: Group | None = None):
        super().__init__()
        self.group = group or init()
        own = _equal("AllToShardedLinear", "output_dims", output_dims, self.group)
        bound = 1 / math.sqrt(input_dims)
        self.weight = smelt.random.uniform(-bound, bound, (own, input_dims))
        if bias:
            self.bias = smelt.random.uniform(-bound, bound, (own,))

    def _extra_repr(self) -> str:
        own, inputs = self.weight.shape
        return f"input_dims={inputs}, output_dims={own * self.group.size()}, bias={'bias' in self}"

    def __call__(self, x: array) -> array:
        x = sum_gradients(self.group)(x)
        return smelt.addmm(self["bias"], x, self["weight"].T) if "bias" in self else x @ self["weight"].T

    @classmethod
    def from_linear(
        cls, linear_layer: Module, *, segments: int | list[Any] = 1, group: Group | None = None
    ) -> AllToShardedLinear:
        """This process's part of a `Linear`.

        Args:
            segments: how many parts, or at which places they begin, the outputs consist of, such as queries, keys and
                values; each is divided.

        >>> import smelt
        >>> smelt.nn.AllToShardedLinear.from_linear(smelt.nn.Linear(2, 4))
        AllToShardedLinear(input_dims=2, output_dims=4, bias=True)
        """
        check_linear("AllToShardedLinear.from_linear", linear_layer)
        outputs, inputs = linear_layer.weight.shape
        found = cls(inputs, outputs, "bias" in linear_layer, group)
        return found._taken(_divided(linear_layer.parameters(), _all_to_sharded, segments, found.group))

    def _taken(self, parameters: dict[str, array]) -> AllToShardedLinear:
        for name, x in parameters.items():
            setattr(self, name, x)
        return self


class ShardedToAllLinear(Module):
    """A `Linear` of which each process has some of the inputs: the result is the same everywhere.

    Args:
        input_dims, output_dims, bias: as of the whole layer. group: all processes by default.

    Attributes:
        weight: [output_dims, input_dims / processes]. bias: [output_dims].

    Raises:
        ShapeError: processes that do not divide the inputs.

    >>> import smelt
    >>> smelt.nn.ShardedToAllLinear(2, 4)(smelt.ones((1, 2))).shape  # of one process
    (1, 4)
    """

    def __init__(self, input_dims: int, output_dims: int, bias: bool = True, group: Group | None = None):
        super().__init__()
        self.group = group or init()
        own = _equal("ShardedToAllLinear", "input_dims", input_dims, self.group)
        bound = 1 / math.sqrt(input_dims)
        self.weight = smelt.random.uniform(-bound, bound, (output_dims, own))
        if bias:
            self.bias = smelt.random.uniform(-bound, bound, (output_dims,))

    def _extra_repr(self) -> str:
        outputs, own = self.weight.shape
        return f"input_dims={own * self.group.size()}, output_dims={outputs}, bias={'bias' in self}"

    def __call__(self, x: array) -> array:
        found = _collected(x @ self["weight"].T, self.group)
        return found + self["bias"] if "bias" in self else found

    @classmethod
    def from_linear(
        cls, linear_layer: Module, *, segments: int | list[Any] = 1, group: Group | None = None
    ) -> ShardedToAllLinear:
        """This process's part of a `Linear`; `segments` are those of the inputs, see `AllToShardedLinear`.

        >>> import smelt
        >>> smelt.nn.ShardedToAllLinear.from_linear(smelt.nn.Linear(2, 4))
        ShardedToAllLinear(input_dims=2, output_dims=4, bias=True)
        """
        check_linear("ShardedToAllLinear.from_linear", linear_layer)
        outputs, inputs = linear_layer.weight.shape
        found = cls(inputs, outputs, "bias" in linear_layer, group)
        for name, x in _divided(linear_layer.parameters(), _sharded_to_all, segments, found.group).items():
            setattr(found, name, x)
        return found


class _QuantizedPart(QuantizedLinear):
    """A packed part of a layer."""

    group: Group
    _divided_by: Places

    @classmethod
    def from_quantized_linear(
        cls, quantized_linear_layer: Module, *, segments: int | list[Any] = 1, group: Group | None = None
    ) -> Any:
        """This process's part of a `QuantizedLinear`; a group of its weights may not be cut."""
        whole: Any = quantized_linear_layer
        group = group or init()
        parts = _divided(whole.parameters(), cls._divided_by, segments, group)
        outputs, inputs = whole.weight.shape[0], whole._columns
        make: Any = cls  # whose constructor takes a group
        found = make(inputs, outputs, "bias" in whole, whole.group_size, whole.bits, mode=whole.mode, group=group)
        for name, x in parts.items():
            setattr(found, name, x)
        return found.freeze()


class QuantizedAllToShardedLinear(_QuantizedPart):
    """An `AllToShardedLinear` with a packed weight.

    Args:
        input_dims, output_dims, bias, group: as there. group_size, bits, mode: as in `smelt.quantize`.

    >>> import smelt
    >>> smelt.nn.QuantizedAllToShardedLinear(64, 4)(smelt.ones((1, 64))).shape  # of one process
    (1, 4)
    """

    _divided_by = staticmethod(_all_to_sharded)

    def __init__(
        self, input_dims: int, output_dims: int, bias: bool = True, group_size: int | None = None,
        bits: int | None = None, mode: str = "affine", group: Group | None = None,
    ):  # fmt: skip
        group = group or init()
        own = _equal("QuantizedAllToShardedLinear", "output_dims", output_dims, group)
        super().__init__(input_dims, own, bias, group_size, bits, mode)
        self.group = group

    def __call__(self, x: array) -> array:
        return super().__call__(sum_gradients(self.group)(x))


class QuantizedShardedToAllLinear(_QuantizedPart):
    """A `ShardedToAllLinear` with a packed weight.

    Args:
        input_dims, output_dims, bias, group: as there. group_size, bits, mode: as in `smelt.quantize`.

    >>> import smelt
    >>> smelt.nn.QuantizedShardedToAllLinear(64, 4)(smelt.ones((1, 64))).shape  # of one process
    (1, 4)
    """

    _divided_by = staticmethod(_sharded_to_all)

    def __init__(
        self, input_dims: int, output_dims: int, bias: bool = True, group_size: int | None = None,
        bits: int | None = None, mode: str = "affine", group: Group | None = None,
    ):  # fmt: skip
        group = group or init()
        own = _equal("QuantizedShardedToAllLinear", "input_dims", input_dims, group)
        super().__init__(own, output_dims, bias, group_size, bits, mode)
        self.group = group

    def __call__(self, x: array) -> array:
        found = smelt.quantized_matmul(x, *self._parts(), transpose=True, **self._format)
        found = _collected(found, self.group)
        return found + self["bias"] if "bias" in self else found


def shard_linear(
    module: Module, sharding: str, *, segments: int | list[Any] = 1, group: Group | None = None
) -> Module:
    """This process's part of a `Linear` or `QuantizedLinear`, as a layer that works with those of the others.

    Args:
        sharding: ``"all-to-sharded"``: outputs are divided; ``"sharded-to-all"``: inputs are.
        segments: of the divided axis; each is divided. group: all processes by default.

    Raises:
        AttributeValueError: another sharding. ArgumentTypeError: another layer. ShapeError: no equal parts.

    >>> import smelt
    >>> smelt.nn.layers.distributed.shard_linear(smelt.nn.Linear(2, 4), "sharded-to-all")
    ShardedToAllLinear(input_dims=2, output_dims=4, bias=True)
    """
    outputs = _places(sharding) is _all_to_sharded
    if isinstance(module, Linear):
        plain = AllToShardedLinear if outputs else ShardedToAllLinear
        return plain.from_linear(module, segments=segments, group=group)
    if isinstance(module, QuantizedLinear):
        packed = QuantizedAllToShardedLinear if outputs else QuantizedShardedToAllLinear
        return packed.from_quantized_linear(module, segments=segments, group=group)
    raise ArgumentTypeError(
        at_user_line(f"smelt.nn.layers.distributed.shard_linear: needs a linear layer, got {shown(module)}")
    )


def shard_inplace(
    module: Module, sharding: str | Places, *, segments: int | list[Any] = 1, group: Group | None = None
) -> None:
    """Leave in a module this process's part of each parameter. What the module computes is not changed.

    Args:
        sharding: as in `shard_linear`, or a function of path and parameter that gives an axis, an axis and segments,
            or None. segments, group: as in `shard_linear`.

    >>> import smelt
    >>> smelt.nn.layers.distributed.shard_inplace(smelt.nn.Linear(2, 4), lambda path, x: 0)
    """
    module.update(_divided(module.parameters(), _places(sharding), segments, group or init()))


class FullyShardedModule(Module):
    """A module whose parameters are divided among processes, and put together while it is called.

    Each process has its own examples, and the mean of all processes' gradients for its part. Parameters whose first
    axis cannot be divided equally are everywhere; their gradients are left to `nn.average_gradients`.

    Args:
        module: what is divided. group: all processes by default.
        compute_dtype: in which parameters travel and are used.

    Attributes:
        module: the module, with this process's parts.

    Raises:
        TreeError: something else than a module.

    >>> import smelt
    >>> smelt.nn.FullyShardedModule(smelt.nn.Linear(2, 4))(smelt.ones((1, 2))).shape  # of one process
    (1, 4)
    """

    def __init__(self, module: Module, group: Group | None = None, compute_dtype: DType | None = None):
        super().__init__()
        check_module("FullyShardedModule", module)
        self.group = group or init()
        self.compute_dtype = compute_dtype
        n = self.group.size()
        self._whole = frozenset(
            path for path, x in smelt.utils.tree_flatten(module.parameters()) if x.ndim == 0 or x.shape[0] % n
        )
        shard_inplace(module, lambda path, x: None if path in self._whole else 0, group=self.group)
        self.module = module

    def _gathered(self, path: str, x: array) -> array:
        floating = smelt.issubdtype(x.dtype, smelt.floating)
        x = x.astype(self.compute_dtype) if self.compute_dtype is not None and floating else x
        return x if path in self._whole or self.group.size() == 1 else _gather_mean(self.group)(x)

    def _called(self, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        module: Any = self.module
        parts = module.parameters()
        module.update(tree_map_with_path(self._gathered, parts))
        try:
            return function(*args, **kwargs)
        finally:
            module.update(parts)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        module: Any = self.module
        return self._called(module, args, kwargs)

    def as_linear(self, *args: Any, **kwargs: Any) -> Any:
        """`as_linear` of the module, such as an `Embedding`.

        Args:
            args, kwargs: what that method takes.
        """
        module: Any = self.module
        return self._called(module.as_linear, args, kwargs)


@functools.cache
def _gather_mean(group: Group) -> Callable[[array], array]:
    """`all_gather` whose derivative is the mean of those of all processes."""

    @smelt.custom_function
    def gather(x: array) -> array:
        return all_gather(x, group=group)

    gather.vjp(lambda x, cotangent, output: sum_scatter(cotangent, group=group) / group.size())
    gather.jvp(lambda x, tangent: gather(tangent))
    return gather


def fully_shard(
    module: Module, *, group: Group | None = None, compute_dtype: DType | None = None
) -> FullyShardedModule:
    """`FullyShardedModule` as a function.

    Args:
        module, group, compute_dtype: as of `FullyShardedModule`.

    >>> import smelt
    >>> smelt.nn.fully_shard(smelt.nn.Linear(2, 4))(smelt.ones((1, 2))).shape  # of one process
    (1, 4)
    """
    return FullyShardedModule(module, group, compute_dtype)

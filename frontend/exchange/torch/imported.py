"""`from_torch`: a program of PyTorch as a function of arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from smelt import array
from smelt.ir import dtypes
from smelt.ir.errors import ArgumentTypeError, IRError, MissingPackageError, SmeltError, at_user_line, shown

from ..translating import replaced
from . import rules as _rules  # fills the table
from .exported import Exported, constant, exported, tensor_for, weights_of

__all__ = ["TorchFunction", "from_torch"]

_ = _rules

#: Types of arguments for which a module is kept exported.
_MOST_TYPES = 64


class TorchFunction:
    """What `from_torch` returns: a function of the module's arguments, which returns what the module returns.

    Attributes:
        weights: the module's parameters and buffers by name; `apply` takes others in their place.
    """

    def __init__(self, name: str, weights: Mapping[str, array], find: Callable[..., Any]):
        self.__name__ = name.partition(" (")[0]
        self._find = find
        self.weights: Mapping[str, array] = MappingProxyType(dict(weights))

    def __repr__(self) -> str:
        return f"<smelt.from_torch {self.__name__}, {len(self.weights)} weights>"

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self.apply(self.weights, *args, **named)

    def apply(self, weights: Mapping[str, Any], /, *args: Any, **named: Any) -> Any:
        """The results with some of the weights replaced, so that there are derivatives with respect to these.

        Args:
            weights: arrays by the names in `weights`; the others are those of the module.
            args, named: the module's arguments. Arrays may be NumPy's; what is no array is part of the program.

        Raises:
            IRError: something in the program has no translation; or it writes to buffers, as batch norms do while they
                train: `step` returns these, too.
            ArgumentTypeError, ShapeError, DTypeError: other arguments or weights than the program takes.
        """
        results, changed = self._run(weights, args, named)
        if changed:
            what = f"{self.__name__} writes to {', '.join(changed)}"
            message = f"{what}; .step returns them, too, or export it after .eval()"
            raise IRError(at_user_line(f"smelt.from_torch: {message}"))
        return results

    def step(self, weights: Mapping[str, Any], /, *args: Any, **named: Any) -> tuple[Any, dict[str, array]]:
        """`apply`, and the new values of the buffers to which the module writes, by name.

        Args:
            weights, args, named: as of `apply`.

        Returns:
            The results; a dict of arrays.
        """
        return self._run(weights, args, named)

    def _run(self, weights: Mapping[str, Any], args: Any, named: Any) -> tuple[Any, dict[str, array]]:
        given = replaced("smelt.from_torch", self.__name__, self.weights, weights)
        try:
            program, leaves = self._find(args, named)
            return program.call(given, leaves)
        except SmeltError as error:
            raise type(error)(at_user_line(f"smelt.from_torch: {error}")) from error.__cause__


def from_torch(program: Any, /, *examples: Any, **named_examples: Any) -> TorchFunction:
    """A program of PyTorch as a function of arrays, which can be differentiated, mapped, compiled, run on any device.

    torch.export makes a graph of it, and each op of the graph is one of smelt's functions. Weights are copied; the
    package `torch` is needed when the function is called for types of arguments that it has not met, not to run it.

    Args:
        program: a ``torch.nn.Module``, a function of tensors, or a ``torch.export.ExportedProgram``.
        examples, named_examples: arguments, of which only the types count: arrays of smelt, NumPy or PyTorch. For
            arrays of other types, and for other values of what is no array, the module is exported anew when the
            function is called so. Without examples that happens first then.

    Returns:
        A function of the module's arguments that returns what the module returns. `weights` are its parameters and
        buffers by name, `apply(weights, …)` takes others, and `step(weights, …)` also returns buffers that change.
        Random numbers, as of dropout, are those of `smelt.random`; assertions about values are not made.

    Raises:
        IRError: torch.export fails, or something in the program has no translation: the message names the op and the
            line that called it. MissingPackageError: the package `torch` is not there.
        ArgumentTypeError: `program` is no program, or examples are given for one that is exported already.

    >>> import smelt
    >>> smelt.from_torch(None)  # doctest: +SKIP
    Traceback (most recent call last):
    smelt.ir.errors.ArgumentTypeError: smelt.from_torch: needs a module, a function of tensors or an exported program
    """
    torch = _package()
    try:
        if isinstance(program, torch.export.ExportedProgram):
            return _of_exported(torch, program, bool(examples or named_examples))
        return _of_module(torch, program, examples, named_examples)
    except SmeltError as error:
        raise type(error)(at_user_line(f"smelt.from_torch: {error}")) from error.__cause__


def _package() -> Any:
    try:
        import torch
        import torch.export
    except ImportError:
        message = "programs of PyTorch need the package torch: pip install torch"
        raise MissingPackageError(at_user_line(f"smelt.from_torch: {message}")) from None
    return torch


def _of_exported(torch: Any, program: Any, examples: bool) -> TorchFunction:
    if examples:
        raise ArgumentTypeError("a program that is exported has its arguments; give examples for modules and functions")
    name = "the exported program"
    made = Exported(torch, program, name)
    tensors = {**program.state_dict, **{k: v for k, v in program.constants.items() if isinstance(v, torch.Tensor)}}

    def find(args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Exported, list[Any]]:
        return made, [_leaf(torch, x) for x in made.leaves(args, named)]

    return TorchFunction(name, weights_of(name, list(tensors.items())), find)


def _of_module(torch: Any, program: Any, examples: tuple[Any, ...], named: dict[str, Any]) -> TorchFunction:
    if isinstance(program, torch.nn.Module):
        module, name = program, type(program).__name__
    elif callable(program) and not isinstance(program, type):
        module, name = _module_of(torch, program), _called(program)
    else:
        raise ArgumentTypeError(f"needs a module, a function of tensors or an exported program, got {shown(program)}")
    tensors = [*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False)]
    device = tensors[0][1].device if tensors else "cpu"
    pytree = torch.utils._pytree

    @functools.lru_cache(maxsize=_MOST_TYPES)
    def made(key: tuple[Any, ...], spec: Any) -> Exported:
        leaves = [tensor_for(torch, x, device) if kind is array else x for kind, x in key]
        args, named = pytree.tree_unflatten(leaves, spec)
        return Exported(torch, exported(torch, module, args, named, name), name)

    def find(args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Exported, list[Any]]:
        leaves, spec = pytree.tree_flatten((args, dict(sorted(named.items()))))
        leaves = [_leaf(torch, x) for x in leaves]
        key = tuple((array, x.aval) if isinstance(x, array) else (type(x), x) for x in leaves)
        try:
            return made(key, spec), leaves
        except TypeError:  # of a key that cannot be one
            other = next((x for x in leaves if type(x).__hash__ is None), None)
            if other is None:
                raise
            message = f"{name} takes arrays, numbers and trees of these, is given {shown(other)}"
            raise ArgumentTypeError(message) from None

    found = TorchFunction(name, weights_of(name, tensors), find)
    if examples or named:
        find(examples, named)
    return found


def _called(function: Callable[..., Any]) -> str:
    """A function's name, and where it stands: torch.export notes the lines of modules alone."""
    name, code = getattr(function, "__name__", type(function).__name__), getattr(function, "__code__", None)
    return name if code is None else f"{name} ({code.co_filename}:{code.co_firstlineno})"


def _module_of(torch: Any, function: Callable[..., Any]) -> Any:
    """A module, which is what torch.export takes, that calls a function."""

    class Function(torch.nn.Module):  # type: ignore[misc,name-defined]
        def forward(self, *args: Any, **named: Any) -> Any:
            return function(*args, **named)

    return Function()


def _leaf(torch: Any, x: Any) -> Any:
    """An argument as an array, or as it is where it is part of the program."""
    if isinstance(x, torch.Tensor):
        return constant(x)
    return array(x, dtypes.of(x.dtype)) if isinstance(x, (np.ndarray, np.generic)) else x

"""Averages of parameters over the steps of training."""

from __future__ import annotations

from copy import copy
from typing import Any

import smelt
from smelt import array
from smelt.ir.errors import AttributeValueError, ShapeError, TreeError, at_user_line
from smelt.ir.flags import flag

from ..lazy.explained import explained
from ..lazy.tree import kind_of
from ..nn.layers.base import Module
from ..utils import tree_flatten, tree_map

__all__ = ["EMA"]


class EMA:
    """Exponential moving averages: after each step a = decay · a + (1 - decay) · p, beginning with p.

    Of integers, bools and settings among the parameters there are the last ones.

    Args:
        decay: as above: how slowly the averages follow, over about 1 / (1 - decay) steps.
        warmup: whether it is at most (1 + t) / (10 + t) in step t, so that the first parameters soon count for nothing.

    Attributes:
        state: ``"step"`` and ``"averages"``, for `inputs` and `outputs` of `smelt.compile`, and for saving.

    Raises:
        AttributeValueError: `decay` outside [0, 1].

    >>> import smelt
    >>> model = smelt.nn.Linear(1, 1, bias=False)
    >>> model.weight = smelt.array([[1.0]])
    >>> average = smelt.optimizers.EMA(0.5)
    >>> average.init(model)
    >>> model.weight = smelt.array([[3.0]])
    >>> average.update(model)
    >>> average.averages
    {'weight': array([[2]], dtype=float32)}
    """

    @explained
    def __init__(self, decay: float = 0.999, warmup: bool = False):
        if not 0 <= decay <= 1:
            raise AttributeValueError(at_user_line(f"smelt.optimizers.EMA: decay must be in [0, 1], is {decay}"))
        self.decay = decay
        self.warmup = flag("optimizers.EMA", "warmup", warmup)
        self.state: dict[str, Any] = {"step": smelt.array(0, smelt.uint64), "averages": {}}

    @property
    def averages(self) -> Any:
        """A tree like that of the parameters."""
        return self.state["averages"]

    def init(self, parameters: Any) -> None:
        """Begin with parameters: those of a module, or a tree of arrays."""
        # Arrays of their own: a compiled step is traced for which arrays of its state are the same.
        self.state["averages"] = tree_map(copy, _parameters(parameters))

    def update(self, parameters: Any) -> None:
        """Take in parameters after a step.

        Raises:
            TreeError: not those that there are averages of. ShapeError: another shape. The messages name the path.
        """
        parameters = _parameters(parameters)
        if not tree_flatten(self.averages):
            self.init(parameters)
        self._check(parameters)
        self.state["step"] = step = self.state["step"] + 1
        decay: Any = self.decay
        if self.warmup:
            count = step.astype(smelt.float32)
            decay = smelt.minimum(decay, (1 + count) / (10 + count))

        def moved(a: Any, p: Any) -> Any:
            if not isinstance(a, array) or not a.dtype.is_inexact:
                return p  # a setting, or numbers that have no mean of their dtype
            wide = smelt.result_type(a, smelt.float32)  # in half precision small steps would vanish
            return (a + (1 - decay) * (p.astype(wide) - a)).astype(a.dtype)

        self.state["averages"] = tree_map(moved, self.averages, parameters)

    def swap(self, model: Module) -> None:
        """Give a module the averages, and keep its parameters in their place; once more: the other way round.

        Args:
            model: the module, or one with parameters of the same paths and shapes.

        >>> import smelt
        >>> model = smelt.nn.Linear(1, 1)
        >>> average = smelt.optimizers.EMA()
        >>> average.init(model)
        >>> average.swap(model)
        """
        held = _parameters(model)
        self._check(held)
        model.update(self.averages)
        self.state["averages"] = held

    def _check(self, parameters: Any) -> None:
        own, given = (dict(tree_flatten(tree)) for tree in (self.averages, parameters))
        for path in sorted(own.keys() ^ given.keys()):
            problem = "has no average" if path in given else "has an average, but is no parameter"
            raise TreeError(at_user_line(f"smelt.optimizers.EMA: {path} {problem}"))
        for path, x in own.items():
            p = given[path]
            if isinstance(x, array) != isinstance(p, array):
                raise TreeError(at_user_line(f"smelt.optimizers.EMA: {path} is {kind_of(p)}, its average {kind_of(x)}"))
            if isinstance(x, array) and x.shape != p.shape:
                raise ShapeError(at_user_line(f"smelt.optimizers.EMA: {path} is {p.aval}, its average {x.aval}"))


def _parameters(tree: Any) -> Any:
    return tree.trainable_parameters() if isinstance(tree, Module) else tree

"""Functions of modules: gradients and checkpoints."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import smelt
from smelt.distributed import Group, all_sum
from smelt.ir.errors import TreeError, at_user_line
from smelt.ir.listing import listed

from ..distributed.groups import group_or_world
from ..lazy.explained import explained
from ..lazy.signatures import P, R, T
from ..lazy.tree import STATES, flatten, unflatten
from ..optimizers.base import clipped
from ..transforms.grad import differentiated
from ..transforms.recording import check_function, name_of
from ..utils import tree_flatten, tree_map
from .layers.base import Module, check_module, fits_array
from .layers.entries import note_fitting

__all__ = ["average_gradients", "checkpoint", "clip_grad_norm_sharded", "value_and_grad"]

__dir__ = listed(globals())


#: A dict or a list inside a module, a key of it, and the array that stands there.
Place = tuple[Any, Any, Any]


def _places(model: Module) -> list[Place]:
    """Where there are arrays in the dicts and lists inside a module."""
    found: list[Place] = []
    pending: list[Any] = [model]
    seen: set[int] = set()
    while pending:
        holder = pending.pop()
        if id(holder) in seen:
            continue
        seen.add(id(holder))
        for key, value in holder.items() if isinstance(holder, dict) else enumerate(holder):
            if isinstance(value, smelt.array):
                if not isinstance(holder, tuple):
                    found.append((holder, key, value))
            elif isinstance(value, (dict, list, tuple)):
                pending.append(value)
    return found


def _changed(before: list[Place], after: list[Place]) -> list[Place]:
    """The places with another array than before."""
    if len(before) == len(after) and all(x is y and h is g and k == j for (h, k, x), (g, j, y) in zip(before, after)):
        return []
    known = {(id(holder), key): x for holder, key, x in before}
    return [(holder, key, x) for holder, key, x in after if x is not known.get((id(holder), key))]


def value_and_grad(model: Module, fn: Callable[P, R]) -> Callable[P, tuple[R, dict[str, Any]]]:
    """A function that returns the value of `fun` and its gradient with respect to the trainable parameters of a model.

    What `fn` changes in the model besides, such as running means, is as `fn` leaves it. Integers and booleans among the
    parameters (positions, masks) are constants, whose gradient is zeros; `smelt.optimizers` leave them as they are.

    Args:
        model: a module, which `fn` uses. fn: returns a scalar, or a tuple or list whose first entry is one.

    Returns:
        A function with the arguments of `fn`. It returns ``(value, gradients)``, where `gradients` is a tree like
        ``model.trainable_parameters()``.

    Raises:
        TreeError: no module; when called, no parameter of it is trainable.
        And what `smelt.value_and_grad` raises.

    >>> import smelt
    >>> model = smelt.nn.Linear(2, 1)
    >>> model.weight = smelt.array([[1.0, 2.0]])
    >>> loss = lambda x: model(x).sum()
    >>> _, gradients = smelt.nn.value_and_grad(model, loss)(smelt.array([[3.0, 4.0]]))
    >>> gradients["weight"]
    array([[3, 4]], dtype=float32)
    """
    check_module("value_and_grad", model)
    check_function(fn, "smelt.nn.value_and_grad")

    who = name_of(fn)

    @functools.wraps(fn)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> tuple[R, dict[str, Any]]:
        parameters = model.trainable_parameters()
        leaves, structure = flatten(parameters, strict=False, space=STATES)
        floats = [x if x.dtype.is_inexact else None for x in leaves]
        if all(x is None for x in floats):
            raise TreeError(
                at_user_line(f"smelt.nn.value_and_grad: no parameter of {type(model).__name__} is trainable")
            )
        updated = _Update(model, parameters, leaves, structure)
        changed: list[Place] = []

        def of_parameters(values: Sequence[Any]) -> Any:
            updated.put([x if given is None else given for x, given in zip(leaves, values[0])])
            before = _places(model)
            result = fn(*args, **kwargs)
            changed.extend(_changed(before, _places(model)))
            loss = result[0] if isinstance(result, (tuple, list)) and result else result
            return loss, result, [x for _, _, x in changed]

        try:
            (_, value, found), (gradients,) = differentiated(
                "smelt.value_and_grad", who, [("argument 0", floats)], of_parameters, floats, args, kwargs
            )
        finally:
            updated.put_back()
        for (holder, key, _), x in zip(changed, found):
            holder[key] = x
        completed = [smelt.zeros_like(x) if g is None else g for x, g in zip(leaves, gradients)]
        return value, unflatten(structure, completed)

    return wrapped


class _Update:
    """Arrays that stand in the places of the parameters of a module for a while.

    Args:
        parameters: trees as from `Module.trainable_parameters`, and what they consist of.
    """

    def __init__(self, model: Module, parameters: dict[str, Any], leaves: Sequence[Any], structure: Any):
        self.model, self.parameters, self.structure = model, parameters, structure
        #: None: an update is what the model says it is.
        self.places: list[Place] | None = None
        if type(model).update is Module.update:
            found: list[Place] = []
            note_fitting(model, parameters, fits_array, found)
            if len(found) == len(leaves) and all(x is y for (_, _, x), y in zip(found, leaves)):
                self.places = found

    def put(self, arrays: Sequence[Any]) -> None:
        if self.places is None:
            self.model.update(unflatten(self.structure, arrays))
            return
        for (holder, key, _), x in zip(self.places, arrays):
            holder[key] = x

    def put_back(self) -> None:
        if self.places is None:
            self.model.update(self.parameters)
            return
        for holder, key, x in self.places:
            holder[key] = x


def checkpoint(module: Module, fn: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """A function that computes what a module does, and computes it again for its gradient: see `smelt.checkpoint`.

    Args:
        module: its trainable parameters get gradients, too. fn: what to do, ``module`` itself by default.

    Raises:
        TreeError: no module.

    >>> import smelt
    >>> layer = smelt.nn.Linear(2, 3)
    >>> smelt.nn.utils.checkpoint(layer)(smelt.ones((1, 2))).shape
    (1, 3)
    """
    check_module("utils.checkpoint", module)
    call = module if fn is None else fn

    def inner(parameters: Any, args: Any, kwargs: Any) -> Any:
        module.update(parameters)
        return call(*args, **kwargs)  # type: ignore[operator]

    checkpointed = smelt.checkpoint(inner)

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        parameters = module.trainable_parameters()
        try:
            return checkpointed(parameters, args, kwargs)
        finally:
            module.update(parameters)

    return wrapped


@explained
def average_gradients(
    gradients: T,
    group: Group | None = None,
    all_reduce_size: int = 32 * 1024**2,
    communication_stream: Any = None,
) -> T:
    """The mean of gradients over the processes of a group.

    Args:
        gradients: a tree of arrays, the same in all processes but for the values. group: all processes by default.
        all_reduce_size: gradients of one dtype travel together, in messages of about so many bytes.
        communication_stream: what MLX takes; without effect.

    >>> import smelt
    >>> smelt.nn.average_gradients({"w": smelt.array([1.0])})
    {'w': array([1], dtype=float32)}
    """
    group = group_or_world("average_gradients", group)
    if group.size() == 1:
        return gradients
    leaves = [x for _, x in tree_flatten(gradients) if isinstance(x, smelt.array)]
    found: dict[int, Any] = {}
    for dtype in dict.fromkeys(x.dtype for x in leaves):
        together: list[int] = []
        size = 0
        chosen = [i for i, x in enumerate(leaves) if x.dtype is dtype]
        for i in chosen:
            together.append(i)
            size += leaves[i].nbytes
            if size >= all_reduce_size or i == chosen[-1]:
                found |= _averaged([(i, leaves[i]) for i in together], group)
                together, size = [], 0
    means = iter([found[i] for i in range(len(leaves))])
    return tree_map(lambda x: next(means) if isinstance(x, smelt.array) else x, gradients)


def _averaged(parts: list[tuple[int, Any]], group: Group) -> dict[int, Any]:
    """The means of arrays of one dtype, as one message."""
    total = all_sum(smelt.concatenate([x.reshape(-1) for _, x in parts]), group=group) / group.size()
    found, start = {}, 0
    for i, x in parts:
        found[i] = total[start : start + x.size].reshape(x.shape)
        start += x.size
    return found


def clip_grad_norm_sharded(gradients: Any, max_norm: float, group: Group | None = None) -> tuple[Any, smelt.array]:
    """`smelt.optimizers.clip_grad_norm` of gradients of which each process has a part (`fully_shard`).

    Args:
        gradients: nested dicts and lists, of which each process has its part. max_norm: of all parts together.
        group: the processes; all by default.

    Returns:
        The tree of gradients, and the norm of all parts together.

    >>> import smelt
    >>> smelt.nn.utils.clip_grad_norm_sharded({"w": smelt.array([3.0, 4.0])}, 2.5)
    ({'w': array([1.5, 2], dtype=float32)}, array(5, dtype=float32))
    """
    who = "nn.utils.clip_grad_norm_sharded"
    return clipped(who, gradients, max_norm, lambda squares: all_sum(squares, group=group))

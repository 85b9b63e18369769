"""`vmap`: functions of one example applied to many at once."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from smelt.ir.aval import Aval
from smelt.ir.errors import AxisError, ShapeError, TreeError, at_user_line, shown
from smelt.ir.keywords import explain_keywords

from ..lazy import tree
from ..lazy.arguments import aval_of, is_integer
from ..lazy.arrays import array, as_array, wrap
from ..lazy.core import seen, shadows
from ..lazy.graph import Ref, parameter, record_function, state
from ..lazy.signatures import P, R
from .recording import apply_function, article, check_function, check_no_escape, name_of, tracing, unchanged

_NUMBERS = (bool, int, float, complex, np.generic)


def vmap(fun: Callable[P, R], in_axes: Any = 0, out_axes: Any = 0) -> Callable[P, R]:
    """A function that applies `fun` over an axis of its arguments.

    `fun` runs once, on arrays that lack that axis; each op then works on all examples at once.

    Args:
        fun: takes and returns trees of arrays. Leaves that are no arrays are passed on as they are.
        in_axes: the axis of each positional argument to map over, counted from the end if negative;
            None for arguments that are not mapped. One int for all arguments, or a tuple with one
            entry an argument: an int or None for all of its arrays, or a tree with a prefix of its
            structure. Keyword arguments are mapped over axis 0.
        out_axes: where the mapped axis goes in the results, likewise; None for results that do not
            depend on the mapped arguments.

    Returns:
        A function with the arguments of `fun`. Results that do not depend on a mapped argument are
        repeated along the mapped axis, unless their entry in `out_axes` is None.

    Raises:
        ShapeError: mapped axes of different sizes or out of range, nothing to map over, or None in
        `out_axes` for a result that is mapped. TreeError: trees that do not match; results that are
        no arrays. TraceError: `fun` asks for a value, or uses an array of a finished trace.

    >>> import smelt
    >>> smelt.vmap(lambda x, y: x @ y, in_axes=(0, None))(smelt.ones((3, 2)), smelt.ones(2))
    array([2, 2, 2], dtype=float32)
    """
    check_function(fun, "smelt.vmap")
    in_axes, out_axes = _checked_axes(in_axes, "in_axes"), _checked_axes(out_axes, "out_axes")
    who = name_of(fun)

    @functools.wraps(fun)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        leaves, treedef = tree.flatten((args, kwargs))
        if shadows:
            leaves = seen(leaves)
        axes = _argument_axes(in_axes, args, kwargs)
        mapped = [(i, x, a) for i, (x, a) in enumerate(zip(leaves, axes)) if a is not None and isinstance(x, array)]

        def named() -> list[str]:
            return _names(fun, args, kwargs)

        size, places = _mapped_size(mapped, named, args, kwargs, in_axes, who)
        with tracing(), unchanged(args, kwargs):
            inner = list(leaves)
            parameters: list[Ref] = []
            for (i, x, _), a in zip(mapped, places):
                parameters.append(_parameter(x.aval.with_shape(x.shape[:a] + x.shape[a + 1 :]), size))
                inner[i] = wrap(parameters[-1])
            new_args, new_kwargs = tree.unflatten(treedef, inner)
            result = fun(*new_args, **new_kwargs)
            out_leaves, out_tree = tree.flatten(result)
            positions = [i for i, x in enumerate(out_leaves) if x is not None]
            outs = [_result(out_leaves[i], i, result, who) for i in positions]
        f = record_function(who, parameters, [x._ref for x in outs], keep_outside=True)
        inputs = [x._ref for _, x, _ in mapped] + f.captured
        check_no_escape("smelt.vmap", inputs)
        out_places = _out_places(out_axes, result, outs, positions, f, who)
        make = _attributes if type(size) is int else _attributes.__wrapped__  # no symbol is in a key
        attrs = make(size, tuple(places) + (-1,) * len(f.captured), tuple(out_places))
        avals = [
            x.aval if a < 0 else aval_of("vmap", (*x.shape[:a], size, *x.shape[a:]), x.dtype)
            for x, a in zip(outs, out_places)
        ]
        for i, x in zip(positions, apply_function(f, [("batch", attrs)], inputs, avals)):
            out_leaves[i] = x
        return tree.unflatten(out_tree, out_leaves)

    return wrapped


@functools.lru_cache(maxsize=256)
def _attributes(size: int, in_axes: tuple[int, ...], out_axes: tuple[int, ...]) -> dict[str, Any]:
    """Attributes of a function over a batch: the same object each time, whose key is known."""
    return {"size": size, "in_axes": in_axes, "out_axes": out_axes}


def _parameter(aval: Aval, size: int) -> Ref:
    """A placeholder; it knows which vmap it belongs to, for functions with a vmap rule of their own."""
    return parameter(aval, {"batch": (state.traced, size)})


def _result(x: Any, i: int, result: Any, who: str) -> array:
    if isinstance(x, (array, np.ndarray, *_NUMBERS)):
        return wrap(as_array(x)._ref)
    path = tree.paths(result, "result")[i]
    raise TreeError(at_user_line(f"smelt.vmap: a result of {who} ({path}) must be an array, found {article(x)}"))


def _out_place(aval: Aval, axis: int | None, i: int, result: Any, who: str) -> int:
    if axis is None:
        return -1
    if not -aval.ndim - 1 <= axis <= aval.ndim:
        raise AxisError(
            at_user_line(
                f"smelt.vmap: out_axes entry {axis} out of range for {tree.paths(result, 'result')[i]}, {aval}, of "
                f"{who}; it must lie in [{-aval.ndim - 1}, {aval.ndim}]"
            )
        )
    return axis % (aval.ndim + 1)


def _out_places(
    out_axes: Any, result: Any, outs: Sequence[array], positions: Sequence[int], f: Any, who: str
) -> list[int]:
    """Where the mapped axis goes in each array of a result; -1 for those that are not mapped.

    Args:
        positions: of the arrays among the leaves of the result.
        f: the recorded function; its parameters are what is mapped.
    """
    if isinstance(out_axes, (tuple, list)) and len(out_axes) == 1 and tree.children(result) is None:
        out_axes = out_axes[0]
    every = broadcast_axes(out_axes, result, "out_axes", "result")
    found = [_out_place(x.aval, every[i], i, result, who) for x, i in zip(outs, positions)]
    dependent = _dependent(f, len(f.parameters) - len(f.captured)) if min(found, default=0) < 0 else set()
    for x, a, i in zip(outs, found, positions):
        if a < 0 and x._ref in dependent:
            raise ShapeError(
                at_user_line(
                    f"smelt.vmap: out_axes is None for {tree.paths(result, 'result')[i]}, {x.aval}, of {who}, "
                    "which depends on a mapped argument; give it an axis"
                )
            )
    return found


def _dependent(f: Any, count: int) -> set[Ref]:
    """What depends on the first parameters of a recorded function."""
    found = set(f.parameters[:count])
    for step in f.body:
        if any(r in found for r in step.inputs):
            found.update((step.node, i) for i in range(len(step.avals)))
    return found


def _mapped_size(
    mapped: Sequence[tuple[int, array, int]], named: Callable[[], list[str]], args: Any, kwargs: Any, in_axes: Any,
    who: str,
) -> tuple[int, list[int]]:  # fmt: skip
    """The common extent of the mapped axes, and these axes counted from the front."""
    places = []
    for i, x, a in mapped:
        if not -x.ndim <= a < x.ndim:
            allowed = f"it must lie in [{-x.ndim}, {x.ndim - 1}]" if x.ndim else "a scalar has no axis: use None"
            raise AxisError(
                at_user_line(
                    f"smelt.vmap: in_axes entry {a} out of range for {named()[i]}, {x.aval}, of {who}; {allowed}"
                )
            )
        places.append(a % x.ndim)
    if not mapped:
        if not args and not kwargs:
            raise ShapeError(at_user_line(f"smelt.vmap: {who} was called without arguments: nothing to map over"))
        raise ShapeError(at_user_line(f"smelt.vmap: no argument of {who} is mapped; in_axes={in_axes}"))
    sizes: list[int] = []
    for (_, x, _), a in zip(mapped, places):
        if x.shape[a] not in sizes:  # symbols cannot be hashed
            sizes.append(x.shape[a])
    if len(sizes) > 1:
        sizes.sort()
        names = named()
        listed = ", ".join(f"{names[i]} {x.aval} axis {a} of size {x.shape[a]}"
                           for (i, x, _), a in zip(mapped, places))  # fmt: skip
        raise ShapeError(
            at_user_line(
                f"smelt.vmap: the mapped axes of {who} have different sizes {sizes}: {listed}; in_axes={in_axes}"
            )
        )
    return sizes[0], places


def _names(fun: Callable, args: Sequence[Any], kwargs: dict[str, Any]) -> list[str]:
    """What to call each leaf of the arguments: the user's names where there are any."""
    roots = [f"argument {i}" for i in range(len(args))]
    try:
        bound = inspect.signature(fun).bind(*args, **kwargs)
        names = [n for n in bound.arguments if n not in kwargs]
        kinds = bound.signature.parameters
        if all(kinds[n].kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
               for n in names):  # fmt: skip
            roots = names
    except (TypeError, ValueError):
        pass
    values = [*zip(roots, args), *((k, kwargs[k]) for k in sorted(kwargs))]
    return [path for root, value in values for path in tree.paths(value, root)]


# Axes


def _checked_axes(axes: Any, what: str) -> Any:
    """A tree of axes, with NumPy's integers as ints."""
    leaves, treedef = tree.flatten(axes)
    for x in leaves:
        if x is not None and (not is_integer(x) or isinstance(x, bool)):
            raise TreeError(
                at_user_line(f"smelt.vmap: {what} is made of ints and None, found {article(x)} in {shown(axes)}")
            )
    return tree.unflatten(treedef, [int(x) if isinstance(x, np.integer) else x for x in leaves])


def _argument_axes(in_axes: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> list[int | None]:
    """One axis for each leaf of the arguments."""
    each = type(in_axes) in (tuple, list)
    if not each and in_axes is not None and not isinstance(in_axes, int):
        in_axes, each = (in_axes,), True  # the axes of one argument
    if each and len(in_axes) != len(args):
        raise TreeError(
            at_user_line(
                f"smelt.vmap: in_axes {shown(in_axes)} has {len(in_axes)} entries for {len(args)} positional arguments"
            )
        )
    found: list[int | None] = []
    for i, x in enumerate(args):
        axes = in_axes[i] if each else in_axes
        if type(x) is array and (axes is None or type(axes) is int):
            found.append(axes)
            continue
        leaves = broadcast_axes(axes, x, "in_axes", f"argument {i}")
        values = tree.flatten(x)[0]
        if isinstance(axes, int) and values and not any(isinstance(v, array) or v is None for v in values):
            what = "a NumPy array" if isinstance(x, np.ndarray) else f"{article(x)} without arrays"
            message = f"smelt.vmap: argument {i} is mapped over axis {axes}, but is {what}; "
            raise TreeError(at_user_line(message + "give it None in in_axes, or pass smelt.array(x)"))
        found += leaves
    return found + [0] * len(tree.flatten(kwargs)[0]) if kwargs else found


def broadcast_axes(axes: Any, value: Any, what: str, path: str) -> list[int | None]:
    """One axis a leaf of `value`, from a tree that is a prefix of it. Lists and tuples are alike."""
    if axes is None or isinstance(axes, int):
        return [axes] if type(value) is array else [axes] * len(tree.flatten(value)[0])
    below, entries = tree.children(value), tree.children(axes)
    if below is None or entries is None or not tree.same_kind(axes, value):
        raise TreeError(
            at_user_line(
                f"smelt.vmap: {what} {shown(axes)} does not match {path}, which is {article(value)}; a prefix of its "
                "tree is needed"
            )
        )
    if isinstance(value, dict) and axes.keys() != value.keys():
        raise TreeError(
            at_user_line(
                f"smelt.vmap: {what} has the keys {sorted(axes, key=str)} for {path}, whose keys are "
                f"{sorted(value, key=str)}"
            )
        )
    if len(below) != len(entries):
        raise TreeError(
            at_user_line(
                f"smelt.vmap: {what} {shown(axes)} has {len(entries)} entries for {path}, which has {len(below)}"
            )
        )
    found: list[int | None] = []
    for step, child, entry in tree.paired(value, axes):
        found += broadcast_axes(entry, child, what, path + step)
    return found


explain_keywords(globals(), "vmap")

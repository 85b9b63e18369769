"""Compiled functions that a trace runs many times: from some call on, a function of the module is called.

A compiled function inside of a trace is traced as part of it. Where functions run the next one twice each, that is
done twice as often at each level. So what has been traced a few times for arguments of the same types is recorded, and
applied from then on; passes put it in its place again, as far as programs do not become too large (see `inline`).

Only what another trace would repeat is recorded: a function that reads no arrays besides its arguments, that changes
nothing of what it refers to, and whose surroundings are as they were.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from smelt.ir.errors import TreeError

from ..lazy import tree
from ..lazy.arrays import array, wrap
from ..lazy.graph import GraphFunction, Ref, cut, parameter, snapshot, state
from .calls import keys_of_dicts, static_part
from .recording import apply_function, name_of, tracing
from .versions import Surroundings, unwrapped

__all__: list[str] = []

#: Calls that are traced each.
MOST_TRACED = 8
#: Types of results beside arrays that are the same in each call.
_SIMPLE = frozenset((int, bool, float, str, type(None)))


class _Repeated:
    """A recorded function, what it returns beside arrays, and what it referred to."""

    def __init__(self, function: GraphFunction, leaves: list[Any], treedef: Any, surroundings: Surroundings):
        self.function, self.leaves, self.treedef, self.surroundings = function, leaves, treedef, surroundings

    def apply(self, refs: Sequence[Ref]) -> Any:
        found = iter(apply_function(self.function, (), refs, self.function.results))
        return tree.unflatten(self.treedef, [next(found) if isinstance(x, array) else x for x in self.leaves])


def call(fun: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """What a function returns as part of the trace around it. It gets its own handles on its arguments, so those of
    the caller stay as they are."""
    leaves, treedef = tree.flatten((args, kwargs), space=tree.STATES)

    def run(leaves: Sequence[Any]) -> Any:
        given = [wrap(x._ref) if isinstance(x, array) else unwrapped(x) for x in leaves]
        args, kwargs = tree.unflatten(treedef, given)
        return fun(*args, **kwargs)

    calls = state.calls
    key = None if calls is None or state.stored is not None else _key(fun, leaves, treedef)
    if calls is None or key is None:
        return run(leaves)
    known = calls.get(key, 0)
    if isinstance(known, int) and known < MOST_TRACED:
        calls[key] = known + 1
        return run(leaves)
    refs = [x._ref for x in leaves if isinstance(x, array)]
    if isinstance(known, int):
        before = Surroundings(fun)
        result = run(leaves)
        calls[key] = _recorded(fun, leaves, run, before) if _is_repeatable(fun, refs, result, before) else None
        return result
    if known is None or Surroundings(fun).parts != known.surroundings.parts:
        return run(leaves)
    return known.apply(refs)


def _key(fun: Callable[..., Any], leaves: Sequence[Any], treedef: Any) -> Any:
    """Equal for calls of the same types; None for those that no key tells apart."""
    if keys_of_dicts([treedef]) is not None:
        return None
    try:
        return (fun, treedef, *(x.aval if isinstance(x, array) else static_part(x, "") for x in leaves))
    except TreeError:
        return None


def _is_repeatable(fun: Callable[..., Any], refs: Sequence[Ref], result: Any, before: Surroundings) -> bool:
    """Whether another call would do what this one did."""
    leaves = tree.flatten(result)[0]
    outs = [x._ref for x in leaves if isinstance(x, array)]
    if not outs or not all(isinstance(x, array) or type(x) in _SIMPLE for x in leaves):
        return False
    if not before.is_whole or Surroundings(fun).parts != before.parts:
        return False
    body, captured = cut(refs, outs, lambda node: node.values is not None, hoist=False)
    return not captured and all(node.op.pure for node in body)


def _recorded(
    fun: Callable[..., Any], leaves: Sequence[Any], run: Callable[[Sequence[Any]], Any], surroundings: Surroundings
) -> _Repeated | None:
    """The function, traced on placeholders; None where it needs more than these after all."""
    with tracing():
        trace = state.traced
        given = [wrap(parameter(x.aval)) if isinstance(x, array) else x for x in leaves]
        found, treedef = tree.flatten(run(given))
    parameters = [x._ref for x in given if isinstance(x, array)]
    outs = [x._ref for x in found if isinstance(x, array)]
    body, captured = cut(parameters, outs, lambda n: n.traced < trace or n.values is not None, hoist=False)
    if captured:
        return None
    return _Repeated(GraphFunction(name_of(fun), parameters, (), snapshot(body), outs), found, treedef, surroundings)

"""Arguments that are given up: the memory of arrays that die with a call becomes that of its results.

An array that was given to a function with ``donate=`` has no value afterwards, whatever became of its memory. The
memory is used where it can be (`smelt.backends.cpu.donations`) and where nobody else refers to it: no other array,
unevaluated graph or captured constant, and no view that NumPy, DLPack or the buffer protocol handed out. Whether
somebody does shows when all references of the call are dropped: then the owner of the memory dies, or it does not
(`smelt.backends.buffer.Buffer.renew`). A call with arguments that have no values yet is noted, and looks at that
when it runs (`smelt.lazy.calls`).

So is a call that replaces its state, of which nothing is taken from a user: what becomes of the old arrays shows when
the new ones stand in their place. Where the call fails they are put back (`GivenState`).
"""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from smelt.ir.errors import ArgumentTypeError, AttributeValueError, at_user_line, shown
from smelt.runtime import Buffer, Executable

from ..lazy import tree
from ..lazy.arrays import array, wrap
from ..lazy.core import COMPILED
from ..lazy.evaluate import evaluate
from ..lazy.graph import PARAMETER, Node, Ref
from ..lazy.tree_updates import put

__all__: list[str] = []

#: What `smelt.compile` takes as `donate`: numbers and names of arguments.
Donate = int | str | Sequence["int | str"]


class Donations:
    """Which arguments of a function are given up.

    Attributes:
        name: of the function.
        key: equal for those of the same arguments.
    """

    def __init__(self, fun: Callable[..., Any], name: str, donate: Donate):
        self.name = name
        given = [donate] if isinstance(donate, (int, str)) else donate
        if not isinstance(given, Sequence) or not all(isinstance(d, (int, str)) for d in given):
            message = f"smelt.compile: donate must be numbers or names of arguments of {name}, is {shown(donate)}"
            raise ArgumentTypeError(at_user_line(message))
        known, more, names = _parameters(fun)
        self._names = {d for d in given if isinstance(d, str)}
        self._numbers = {d for d in given if not isinstance(d, str)}
        wrong: list[int | str] = [d for d in self._names if d not in names and not more]
        wrong += [d for d in self._numbers if isinstance(d, bool) or d < 0 or (d >= len(known) and not more)]
        if wrong:
            message = f"smelt.compile: donate names {shown(wrong[0])}, but {name} has the arguments {', '.join(names)}"
            raise AttributeValueError(at_user_line(message))
        self._numbers |= {i for i, n in enumerate(known) if n in self._names}
        self._names |= {known[i] for i in self._numbers if i < len(known)}
        self.key = frozenset(self._names), frozenset(self._numbers)

    def arrays(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[int, array]:
        """The arrays that a call gives up, by their numbers among all arrays of its arguments."""
        found: dict[int, array] = {}
        count = 0
        flags = [(value, i in self._numbers) for i, value in enumerate(args)]
        for value, flag in [*flags, *((kwargs[n], n in self._names) for n in sorted(kwargs))]:
            for x in tree.flatten(value)[0]:
                if isinstance(x, array):
                    if flag:
                        found[count] = x
                    count += 1
        return found

    def run(
        self, executable: Executable, refs: list[Ref], buffers: list[Buffer], given: Mapping[int, array]
    ) -> list[Buffer]:
        """Run a program on buffers, those of `refs` first. The arrays `given` have no values from now on, and `refs`,
        which is cleared, must be the caller's only references."""
        if not given:
            return executable.run(buffers)
        self.take(given)
        refs.clear()
        taken = {n for n in given if Buffer.renew(buffers, n)}
        return executable.run_donated(buffers, taken) if taken else executable.run(buffers)

    def take(self, given: Mapping[int, array]) -> None:
        """Let arrays have no value from now on."""
        if not given:
            return
        said = at_user_line(f"its memory was given to {self.name} (donate=)").replace("; at ", " at ", 1)
        for x in given.values():
            aval = x.aval
            text = f"an array {aval} was used after {said}; copy it before the call, or do not donate it"
            x._ref = (Node(PARAMETER, {"donated": text}, (), (aval,)), 0)


class GivenState:
    """The state that a call replaces, without references to its arrays.

    Args:
        outputs: the trees that hold it. arrays: those that the call reads. first: their place among what it reads.
    """

    def __init__(self, outputs: Any, arrays: Sequence[array], first: int):
        self._outputs, self._first = outputs, first
        leaves, self._tree = tree.flatten(outputs)
        places = {id(x): i for i, x in enumerate(arrays)}
        self._leaves = [(places.get(id(x)), None if id(x) in places else x) for x in leaves]
        self._handles = [weakref.ref(x) for x in arrays]

    def run(self, new: Any, results: Sequence[array]) -> None:
        """Put `new` into the trees and run the noted call of which all `results` are, so that nobody has the old state
        whom the trees do not stand for. Where it fails, the state is as before; if it has run before Ctrl-C comes, as
        after."""
        node = results[0]._ref[0]
        call = node if node.op is COMPILED else node.inputs[0][0]
        try:
            put(self._outputs, new)
            evaluate([x._ref for x in results])
        except BaseException:
            old = [wrap(ref) for ref in call.inputs[self._first :]]  # from now on nobody gives it up
            if call.values is None and all(x._ref[0].values is not None for x in old):
                self._put_back(old)
            raise

    def _put_back(self, old: list[array]) -> None:
        for i, handle in enumerate(self._handles):
            known = handle()
            if known is not None and known._ref == old[i]._ref:  # else it was itself given another value
                old[i] = known
        put(self._outputs, tree.unflatten(self._tree, [x if i is None else old[i] for i, x in self._leaves]))


def _parameters(fun: Callable[..., Any]) -> tuple[list[str], bool, list[str]]:
    """The names of arguments by position, whether any others are taken, and all names."""
    try:
        found = inspect.signature(fun).parameters.values()
    except (TypeError, ValueError):
        return [], True, []
    by_position = [p.name for p in found if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    more = any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in found)
    return by_position, more, [p.name for p in found]

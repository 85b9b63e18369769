"""Calls of a compiled function with state that are like its last one: the state is compared leaf by leaf in one walk,
and the new arrays are put where the old ones stand, without flat lists, structures and keys."""

from __future__ import annotations

from typing import Any

from ..lazy import alike, tree
from ..lazy.alike import Pattern, UnlikeError, leaves_like, pattern_of
from ..lazy.arrays import array
from ..lazy.core import evaluated
from .versions import RepeatedCall, Version

__all__: list[str] = []

#: How often a pattern is looked for in the state of one version: it may have none, or none yet, or by now other objects
#: are its attributes.
_TRIES = 3


class RepeatedStep:
    """The last call of a function with `inputs` or `outputs`.

    Attributes:
        call: its arguments and its version. inputs, outputs: the patterns of these, none where there is no such tree.
        new: by the leaves of `outputs` the number of the result that is put there; -1: it stays.
    """

    __slots__ = ("call", "expected", "expected_of_outputs", "inputs", "new", "outputs")

    def __init__(self, call: RepeatedCall, inputs: tuple[Pattern, ...], outputs: tuple[Pattern, ...], new: list[int],
                 expected: list[Any], expected_of_outputs: list[Any]):  # fmt: skip
        self.call, self.inputs, self.outputs, self.new = call, inputs, outputs, new
        self.expected, self.expected_of_outputs = expected, expected_of_outputs

    @staticmethod
    def of(call: RepeatedCall, inputs: Any, outputs: Any) -> RepeatedStep | None:
        """None where the state, as the call has left it, has no pattern."""
        if call.patterns is None:
            return None
        expected: list[Any] = []
        expected_of_outputs: list[Any] = []
        try:
            read = () if inputs is None else (pattern_of(inputs, expected),)
            written = () if outputs is None else (pattern_of(outputs, expected_of_outputs),)
        except UnlikeError:
            return None
        if alike.buffers_like(read, (inputs,) * len(read), expected, True) is None:
            return None
        if not all(map(_is_assigned_to, written)):
            return None
        version = call.version
        leaves = tree.flatten(outputs)[0] if written else []
        places = {id(x): place for x, (place, _) in zip(leaves, version.state_leaves) if isinstance(x, array)}
        new = []
        for x in leaves_like(written, (outputs,) * len(written)):
            place = places.get(id(x))
            new.append(-1 if place is None else version.n_outputs + place)
        return RepeatedStep(call, read, written, new, expected, expected_of_outputs)

    def run(self, args: tuple, kwargs: dict[str, Any], inputs: Any, outputs: Any) -> list[array] | None:
        """The results of a call that is like this one but for what is put into `outputs`; None for others."""
        version = self.call.version
        buffers = self.call.buffers_of_arguments(args, kwargs)
        if buffers is None or version.gives_up(len(buffers)):  # its program may have come since
            return None
        if self.inputs:
            read = alike.buffers_like(self.inputs, (inputs,), self.expected, True)
            if read is None:
                return None
            buffers += read
        if self.outputs and not _is_same(inputs, outputs):
            if alike.buffers_like(self.outputs, (outputs,), self.expected_of_outputs) is None:
                return None
        buffers += version.captured
        results: list[Any] = version.executable.run(buffers)
        if not self.outputs:
            return evaluated(results)
        del buffers  # the old state goes when the new one is there
        found = evaluated(results[: version.n_outputs])
        results.append(None)
        alike.put_like(self.outputs, (outputs,), [results[i] for i in self.new])
        return found


def _is_same(inputs: Any, outputs: Any) -> bool:
    """Whether two trees are one, or lists of the same trees."""
    if inputs is outputs:
        return True
    return (
        type(inputs) is list
        and type(outputs) is list
        and len(inputs) == len(outputs)
        and all(x is y for x, y in zip(inputs, outputs))
    )


def _is_assigned_to(pattern: Pattern) -> bool:
    """Whether leaves are put into what has this pattern as into dicts and lists."""
    if pattern is None:
        return False
    kind: Any
    kind, _, children, _ = pattern
    if kind is tuple or kind.__setitem__ not in (list.__setitem__, dict.__setitem__):
        below = children
    else:
        below = tuple([child for child in children if child is not None])
    return all(map(_is_assigned_to, below))


class Steps:
    """The last call of one function with state, if it may be repeated."""

    def __init__(self) -> None:
        self.last: RepeatedStep | None = None
        self._tried: tuple[Version | None, int] = (None, 0)

    def ask(self, version: Version) -> bool:
        """Whether to note a call of a version: another one is noted, and its state may get a pattern."""
        known, times = self._tried
        self._tried = version, times + 1 if known is version else 1
        return self._tried[1] <= _TRIES

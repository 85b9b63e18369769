"""Programs as calls of NumPy, for programs that run again and again (see `Op.host_call`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from . import dtypes
from .aval import Aval
from .op import Op

#: Arguments that a call has at most.
MOST_ARGUMENTS = 20


class Call(NamedTuple):
    """One call on a frame: a list of arrays.

    Attributes:
        function: called with `before` if that is not None, the entries `read` and `extra`; None: the first entry
            itself. It gives an array, or a list of several.
        names: the keywords by which it takes `extra`; None: by position.
        first: the entry that the result becomes; several become those from it on.
        dead: entries that are emptied after it.
    """

    function: Callable[..., Any] | None
    before: Op | None
    extra: tuple[Any, ...]
    names: tuple[str, ...] | None
    read: tuple[int, ...]
    first: int
    dead: tuple[int, ...]


class Calls:
    """The calls of a program, noted by the types of its values.

    Attributes:
        fit: whether all that was noted can be called.
    """

    def __init__(self) -> None:
        self._calls: list[Call] = []
        self._repeats: set[int] = set()
        self._spreads: list[bool] = []
        self.fit = True

    def note(
        self, op: Op, rule: Callable[..., Any] | None, attrs: dict[str, Any],
        otherwise: Callable[..., list[Any]] | None, operands: Sequence[Aval], result: Aval | None,
        place: tuple[tuple[int, ...], int, tuple[int, ...]],
    ) -> None:  # fmt: skip
        """Note what gives a result.

        Args:
            rule: as of `plain_rule`; where there is none, `otherwise` is called with the operands.
            operands, result: types, perhaps with symbols; of the result where there is a rule.
            place: `read`, `first` and `dead` of the call.
        """
        self.fit = self.fit and len(operands) + len(attrs) <= MOST_ARGUMENTS
        host = None if rule is None or result is None else op.host_call(operands, result, **attrs)
        if host is not None and len(operands) + len(host.extra) > MOST_ARGUMENTS:
            host = None
        if rule is None:
            call = Call(otherwise, None, (), None, *place)
        elif host is None:
            call = Call(rule, op, tuple(attrs.values()), tuple(attrs) or None, *place)
        else:
            call = Call(host.function, None, host.extra, None, *place)
        self._calls.append(call)
        self._spreads.append(host is not None and host.spreads)
        if host is not None and host.repeats:
            self._repeats.add(call.first)

    def done(self, returns: Iterable[int]) -> list[Call]:
        """The calls, without repetitions that what reads them makes by itself."""
        short = self._repeats.difference(returns)
        for call, spreads in zip(self._calls, self._spreads):
            known = [i for i in call.read if i in short]
            if not spreads:
                short.difference_update(known)
            elif known and len(known) == len(call.read):
                short.discard(known[0])
        return [c._replace(function=None, extra=()) if c.first in short else c for c in self._calls]


def aval_of(x: Any) -> Aval:
    """The type of an array of NumPy."""
    return Aval(x.shape, dtypes.of_numpy(x.dtype))


def run_calls(frame: list[Any], calls: list[Call]) -> None:
    """Run calls in order. Where one had no memory, its number becomes the last entry of the frame.

    Raises:
        MemoryError: there is no memory for a result. And what the functions raise.
    """
    for place, (function, before, extra, names, read, first, dead) in enumerate(calls):
        operands = [frame[i] for i in read]
        first_argument = () if before is None else (before,)
        try:
            if function is None:
                found = operands[0]
            elif names is None:
                found = function(*first_argument, *operands, *extra)
            else:
                found = function(*first_argument, *operands, **dict(zip(names, extra)))
        except MemoryError:
            frame[-1] = place
            raise
        if type(found) is list:
            frame[first : first + len(found)] = found
        else:
            frame[first] = np.asarray(found)
        del operands, found
        for i in dead:
            frame[i] = None


_runner: list[Callable[[list[Any], list[Call]], None]] = [run_calls]


def use_runner(run: Callable[[list[Any], list[Call]], None]) -> None:
    """Run calls by another function that does the same."""
    _runner[0] = run


def run(frame: list[Any], calls: list[Call]) -> None:
    """`run_calls`, by the fastest implementation that is available."""
    _runner[0](frame, calls)

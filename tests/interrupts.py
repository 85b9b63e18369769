"""Interrupts at every place of some functions where Python lets a handler of a signal run."""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable, Iterator
from types import CodeType, FrameType
from typing import Any


class _Interruption:
    """A trace function that raises KeyboardInterrupt at the `place`th such place: where a function begins, at a call,
    at a jump back. Traces end with what one raises, so it raises once."""

    def __init__(self, inside: set[CodeType], place: int):
        self.inside, self.left, self.line = inside, place, ""

    def __call__(self, frame: FrameType, event: str, argument: Any) -> Any:
        if frame.f_code not in self.inside:
            return None
        frame.f_trace_opcodes = True
        if event == "call":
            self._pass(frame)
        elif event == "opcode":
            name = dis.opname[frame.f_code.co_code[frame.f_lasti]]
            if name.startswith("CALL") or "JUMP_BACKWARD" in name or "JUMP_ABSOLUTE" in name:
                self._pass(frame)
        return self

    def _pass(self, frame: FrameType) -> None:
        self.left -= 1
        if not self.left:
            self.line = f"{frame.f_code.co_name}, line {frame.f_lineno}"
            raise KeyboardInterrupt


def _codes(function: Any) -> Iterator[CodeType]:
    """That of a function and of those in it."""
    rest = [getattr(function, "__wrapped__", function).__code__]
    for code in rest:  # grows on the way
        yield code
        rest += [x for x in code.co_consts if isinstance(x, CodeType)]


def everywhere(run: Callable[[], object], *functions: Any) -> Iterator[str]:
    """Run it with an interrupt at one place in these functions after the other, as often as there are places; say after
    each run where that was. Each interrupt has to come out of it.

    The functions have no `with` of locks: an interrupt at a call comes before that here, after it in truth, and the end
    of a `with` is a call.
    """
    inside = {code for function in functions for code in _codes(function)}
    for place in range(1, 10_000):
        trace = _Interruption(inside, place)
        sys.settrace(trace)
        try:
            run()
        except KeyboardInterrupt:
            yield trace.line
        else:
            assert not trace.line, f"the interrupt was lost: {trace.line}"
            return
        finally:
            sys.settrace(None)

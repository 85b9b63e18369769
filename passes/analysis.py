"""Analyses: what passes ask of a module, found once and kept until a pass changes the module.

An analysis is a function from a module to whatever it finds; ``str()`` of that is its report::

    from smelt.passes.analysis import analysis_of, register_analysis

    @register_analysis("exponentials")
    def exponentials(module):
        \"\"\"How many exponentials each function computes.\"\"\"
        return {name: sum(op.name == "exp" for op in read_function(f).ops) for name, f in functions(module).items()}

    analysis_of(module, "exponentials")     # in a pass

The pass ``analyze{of=exponentials}`` reports it. Other packages name theirs by entry points of the group
``smelt.analyses``, called like the analysis. While a pipeline runs, what was found is kept until a pass counts a
change, unless that pass says under `preserves` that it stays right; a pass that goes on to ask after it has changed
something calls `invalidate`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from smelt.ir.entry_points import load, offered
from smelt.ir.errors import ArgumentTypeError, PipelineError, at_user_line, shown

from .registry import definition_of, registry, require_name

Analysis = Callable[[Any], Any]
GROUP = "smelt.analyses"
_registered: dict[str, Analysis] = {}


class Analyses:
    """What is known of a module that a pipeline runs on."""

    def __init__(self, module: Any):
        self.module = module
        self.kept: dict[str, Any] = {}

    def invalidate(self, preserved: Sequence[str] = ()) -> None:
        """Forget all but some."""
        self.kept = {name: found for name, found in self.kept.items() if name in preserved}


class _Running(threading.local):
    def __init__(self) -> None:
        self.stack: list[Analyses] = []


_running = _Running()


@contextmanager
def active(analyses: Analyses) -> Iterator[None]:
    """Keep what is asked of a module while a pipeline runs on it."""
    _running.stack.append(analyses)
    try:
        yield
    finally:
        _running.stack.pop()


def register_analysis(name: str) -> Callable[[Analysis], Analysis]:
    """Decorator: make an analysis known under its name.

    Raises:
        PipelineError: a name that a pipeline cannot spell, or that another one has.
        ArgumentTypeError: what is decorated cannot be called.
    """
    require_name("an analysis", name)

    def register(function: Analysis) -> Analysis:
        if not callable(function):
            raise ArgumentTypeError(at_user_line(f"an analysis is a function of a module, not {shown(function)}"))
        known = _registered.get(name)
        if known is not None and definition_of(known) != definition_of(function):
            raise PipelineError(at_user_line(f"two analyses are called {name!r}"))
        _registered[name] = function
        return function

    return register


def find(name: str) -> Analysis:
    """The analysis called `name`, loaded from the package that has it.

    Raises:
        PipelineError: there is none, or it does not load.
    """
    registry()  # those of smelt are in modules of this room
    if name in _registered:
        return _registered[name]
    for entry in offered(GROUP):
        if entry.name == name:
            load(entry, "the analysis", PipelineError)
    if name not in _registered:
        raise PipelineError(f"there is no analysis {shown(name)}; analyses: {', '.join(sorted(_registered))}")
    return _registered[name]


def analysis_of(module: Any, name: str) -> Any:
    """What an analysis finds in a module; what it has found before, where a pipeline runs and nothing has changed.

    Raises:
        PipelineError: there is no such analysis, or it does not load.
    """
    running = next((a for a in reversed(_running.stack) if a.module is module), None)
    if running is None:
        return find(name)(module)
    if name not in running.kept:
        running.kept[name] = find(name)(module)
    return running.kept[name]


def invalidate(module: Any) -> None:
    """Forget what analyses have found in a module: for passes that ask after they have changed something."""
    for running in _running.stack:
        if running.module is module:
            running.invalidate()

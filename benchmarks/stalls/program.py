"""What a program of the stalls benchmark is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

#: A program: gets a framework's names and how it runs, yields after each step the step's (evaluated) number.
Steps = Callable[[Any, "Run"], Iterator[Any]]


@dataclass(frozen=True)
class Run:
    """How a program runs this time.

    Attributes:
        steps: how many steps.
        again: 0 in a new process, 1 for the same once more in the same process.
    """

    steps: int
    again: int = 0


@dataclass(frozen=True)
class Program:
    """One row of the table.

    Attributes:
        steps: steps of a run; `run` yields after each.
        of: what a step is.
        count: what the time of a run is divided by; 1: the row gives the time of a whole run.
        unit: of the times in the table.
        absent: frameworks that have nothing to compare here, and why.
        tolerance: how far the frameworks' numbers may be apart, relatively; None: they have no number in common.
    """

    name: str
    title: str
    run: Steps
    steps: int
    of: str = "step"
    count: int = 1
    unit: str = "s"
    absent: Mapping[str, str] = field(default_factory=dict)
    tolerance: float | None = 1e-2
    large: bool = False  #: too much for a few cores: on a CPU it runs only where it is named
    starts_others: bool = False  #: processes whose processor time is not the program's


programs: dict[str, Program] = {}


def program(name: str, steps: int, **fields: Any) -> Callable[[Steps], Steps]:
    """Make a function known as a program; its title is the first line of its docstring."""

    def register(run: Steps) -> Steps:
        title = (run.__doc__ or "").strip().splitlines()[0].rstrip(".")
        programs[name] = Program(name, title, run, steps, **fields)
        return run

    return register

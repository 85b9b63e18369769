"""Launches on memory whose addresses change from run to run, handed over in one call of C (`launches.c`).

Python takes longer for the arguments of a launch than the driver for the launch. Where the module in C was not built,
and where SMELT_CORE is ``python``, launches are made one by one.
"""

from __future__ import annotations

import importlib
from array import array
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple, Protocol, cast

from smelt.ir.errors import SmeltError
from smelt.ir.settings import settings

from . import driver

#: What a line of a table begins with.
KERNEL, PRODUCT = 0, 1


#: Where a launch finds a buffer: the number of an address, and an offset in bytes.
Place = tuple[int, int]


class Step(Protocol):
    """A kernel, or what a library does.

    Attributes:
        is_alone: whether it cannot be part of a graph.
    """

    is_alone: bool

    def add_to(self, graph: driver.Graph, addresses: Sequence[int]) -> None:
        """Put it into a graph; `addresses`: of its buffers."""
        ...

    def words(self) -> Sequence[int] | None:
        """What a table has of it before its places (see `launches.c`), which holds as long as the step lives; empty
        where it does nothing, None where it is no line of a table."""
        ...

    def places(self, given: Sequence[Place]) -> Sequence[Place]:
        """The places that a table has, of those of its buffers."""
        ...

    def launch(self, addresses: Sequence[int]) -> None:
        """Does it, without waiting; `addresses`: of its buffers."""
        ...


class ProductStep(Step, Protocol):
    """A step whose words are those of a product."""

    @property
    def guard(self) -> AbstractContextManager[Any]:
        """What a thread holds while a table is launched that has a line of it."""
        ...

    def error(self, code: int) -> SmeltError:
        """What an error is of its call by a table."""
        ...


class Line(NamedTuple):
    """A step of a program.

    Attributes:
        words: of it. places: where its buffers lie, by the numbers of the program's; what a table has, if it has words.
    """

    step: Step
    words: Sequence[int] | None
    places: Sequence[Place]


def _native() -> Any:
    if settings.__dict__.get("core") == "python":
        return None
    try:
        return importlib.import_module("smelt._launches")
    except ImportError:
        return None


_found = _native()


def line_of(step: Step, given: Sequence[Place]) -> Line:
    """A step on buffers that lie there."""
    words = None if _found is None else step.words()
    return Line(step, words, step.places(given) if words else given)


class LaunchList:
    """Steps one after the other. `run` hands them over, without waiting."""

    def __init__(self) -> None:
        self._parts: list[array[int] | Line] = []
        self._launch = 0 if _found is None else driver.address("cuLaunchKernel")
        self._product: ProductStep | None = None  #: the last one; all are of one library
        self._guard: AbstractContextManager[Any] = nullcontext()  #: of products

    def append(self, line: Line, buffers: Sequence[Place]) -> None:
        """Add a step, which has to live as long. `buffers`: where those of its program lie, by the numbers of
        addresses."""
        step, words, places = line
        if words is None:
            found = [(buffers[i][0], buffers[i][1] + offset) for i, offset in places]
            self._parts.append(Line(step, None, found))
        elif words:
            if words[0] == PRODUCT:
                self._product = cast("ProductStep", step)
                self._guard = self._product.guard
            if not self._parts or isinstance(self._parts[-1], Line):
                self._parts.append(array("Q"))
            table: Any = self._parts[-1]
            table.extend(words)
            for i, offset in places:
                number, start = buffers[i]
                table.append(number)
                table.append(start + offset)

    def run(self, addresses: array[int]) -> None:
        """Hand all over.

        Args:
            addresses: on the GPU, as unsigned numbers of 64 bits.

        Raises:
            DeviceError, OutOfMemoryError: from the driver or a library.
        """
        driver.enter()
        for part in self._parts:
            if isinstance(part, Line):
                part.step.launch([addresses[n] + offset for n, offset in part.places])
                continue
            with self._guard:
                code, is_product = _found.launch(part, addresses, self._launch)
            if code:
                raise _error(code, self._product if is_product else None)


def _error(code: int, product: ProductStep | None) -> SmeltError:
    return driver.error("cuLaunchKernel", code) if product is None else product.error(code)

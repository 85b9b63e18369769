"""Launches on memory whose addresses change from run to run, handed over in one call of C (`launches.c`).

Python takes longer for the arguments of a launch than the driver for the launch. Where the module in C was not built,
and where SMELT_CORE is ``python``, launches are made one by one.
"""

from __future__ import annotations

import importlib
import itertools
from array import array
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from smelt.ir.settings import settings

from . import driver

#: What a line of a table begins with.
KERNEL, PRODUCT = 0, 1


class Place(NamedTuple):
    """Where a launch finds a buffer: the number of an address, and an offset in bytes."""

    buffer: int
    offset: int


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


#: A step, and where its buffers are.
Placed = tuple[Step, Sequence[Place]]


def _native() -> Any:
    if settings.__dict__.get("core") == "python":
        return None
    try:
        return importlib.import_module("smelt._launches")
    except ImportError:
        return None


_found = _native()


class LaunchList:
    """Steps one after the other. `run` hands them over, without waiting.

    Args:
        steps: in order.
    """

    def __init__(self, steps: Iterable[Placed]):
        self._parts: list[array[int] | list[Placed]] = []
        self._steps: list[Step] = []  # which live as long as the table
        lines = ((step, places, None if _found is None else step.words()) for step, places in steps)
        for is_table, group in itertools.groupby(lines, key=lambda line: line[2] is not None):
            if not is_table:
                self._parts.append([(step, places) for step, places, _ in group])
                continue
            table = array("Q")
            for step, places, words in group:
                if words:
                    table.extend(words)
                    table.extend(itertools.chain.from_iterable(step.places(places)))
                    self._steps.append(step)
            self._parts.append(table)

    def run(self, addresses: array[int]) -> None:
        """Hand all over.

        Args:
            addresses: on the GPU, as unsigned numbers of 64 bits.

        Raises:
            DeviceError, OutOfMemoryError: from the driver or a library.
        """
        driver.enter()
        for part in self._parts:
            if isinstance(part, list):
                for step, places in part:
                    step.launch([addresses[n] + offset for n, offset in places])
            elif part:
                code, is_product = _found.launch(part, addresses, *_functions())
                if code and is_product:
                    raise _products().error("cublasLtMatmul", code)
                if code:
                    raise driver.error("cuLaunchKernel", code)


def _functions() -> tuple[int, int]:
    """The addresses of what launches a kernel, and of what makes a product."""
    library = _products()
    return driver.address("cuLaunchKernel"), 0 if library is None else library.address("cublasLtMatmul")


def _products() -> Any:
    from .products import library

    return library()

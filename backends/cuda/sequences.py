"""Programs that run in one go: their launches are one list, and what lies between them has one block of memory."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Sequence

from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.dtypes import DType
from smelt.passes.kernels.plan_buffers import Arena

from ..buffer import Buffer
from ..executable import Executable
from ..gpu.executable import GpuExecutable
from ..gpu.library import MatrixProduct
from ..strided import PlannedLaunch
from .executable import CudaProgram, LibraryLaunch
from .launches import LaunchList, Place, Placed
from .memory import MEMORY


class LibraryProduct(Executable):
    """A product that the library makes of parts of its arguments.

    Args:
        arguments: the types of all of their memory.
        dtype: of the result.

    Attributes:
        step: what is launched, on the arguments and the result.
    """

    def __init__(self, product: MatrixProduct, arguments: Sequence[Aval], dtype: DType):
        super().__init__(list(arguments), [Aval((product.batch, product.rows, product.columns), dtype)])
        self.step = LibraryLaunch(product)

    def run(self, inputs: Sequence[Buffer]) -> list[Buffer]:
        found = MEMORY.empty(self.results[0])
        self.step.launch([MEMORY.adopt(b).home.address for b in (*inputs, found)])
        return [found]


def steps_of(program: Executable) -> Sequence[Placed] | None:
    """What a program launches, on buffers numbered from its arguments over its results to its arena; None where it
    does something else, or values decide."""
    if isinstance(program, LibraryProduct):
        return [(program.step, [Place(i, 0) for i in range(len(program.arguments) + 1)])]
    if not isinstance(program, GpuExecutable) or program.program.aliases:
        return None
    found: list[Placed] = []
    for part in program.parts:
        steps = part.steps(len(program.arguments), len(program.results)) if isinstance(part, CudaProgram) else None
        if steps is None:
            return None
        found += steps
    return found


class LaunchSequence:
    """See `smelt.backends.strided.LaunchSequence`."""

    def __init__(self, launches: Sequence[PlannedLaunch], nbytes: Sequence[int], given: Collection[int]):
        last = {i: n for n, launch in enumerate(launches) for i in (*launch.read, *launch.written)}
        self.given = tuple([i for i in last if i in given])
        nowhere, own = Place(len(self.given), 0), len(self.given) + 1  # an address of 0, and the block of memory
        places = {i: Place(n, 0) for n, i in enumerate(self.given)}
        arena, steps = Arena(), []
        for n, launch in enumerate(launches):
            used = (*launch.read, *launch.written)
            for i in used:
                if i not in places:
                    places[i] = Place(own, arena.allocate(nbytes[i]))
            bound = [places[i] for i in used]
            if launch.table is not None:
                bound.insert(0, nowhere._replace(offset=launch.table.home.address))
            if scratch := launch.program.arena_bytes:
                bound.append(Place(own, arena.allocate(scratch)))
                arena.release(bound[-1].offset, scratch)
            for step, at in steps_of(launch.program) or ():
                steps.append((step, [Place(bound[i].buffer, bound[i].offset + offset) for i, offset in at]))
            for i in dict.fromkeys(used):
                if last[i] == n and i not in given:
                    arena.release(places[i].offset, nbytes[i])
        self._own = Aval((arena.end,), dtypes.uint8)
        self._tables = [launch.table for launch in launches]  # which live as long as their addresses are used
        self._programs = [launch.program for launch in launches]
        self._list = LaunchList(steps)

    def run(self, memories: Sequence[Buffer]) -> None:
        own = MEMORY.empty(self._own)
        self._list.run(array("Q", [*[b.home.address for b in memories], 0, own.home.address]))

"""Programs that run in one go: their launches are one list, and what lies between them has one block of memory."""

from __future__ import annotations

import weakref
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
from .launches import LaunchList, Line, line_of
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


#: `lines_of` of programs, as long as they live.
_known: weakref.WeakKeyDictionary[Executable, Sequence[Line] | None] = weakref.WeakKeyDictionary()


def lines_of(program: Executable) -> Sequence[Line] | None:
    """What a program launches, on buffers numbered from its arguments over its results to its arena; None where it
    does something else, or values decide. The program is ready to run."""
    try:
        return _known[program]
    except KeyError:
        found = _known[program] = _lines_of(program)
        return found


def _lines_of(program: Executable) -> Sequence[Line] | None:
    if isinstance(program, LibraryProduct):
        return [line_of(program.step, [(i, 0) for i in range(len(program.arguments) + 1)])]
    if not isinstance(program, GpuExecutable) or program.program.aliases:
        return None
    found: list[Line] = []
    for part in program.parts:
        lines = part.lines(len(program.arguments), len(program.results)) if isinstance(part, CudaProgram) else None
        if lines is None:
            return None
        found += lines
    return found


class LaunchSequence:
    """See `smelt.backends.strided.LaunchSequence`."""

    def __init__(self, launches: Sequence[PlannedLaunch], nbytes: Sequence[int], given: Collection[int]):
        last = {i: n for n, launch in enumerate(launches) for i in (*launch.read, *launch.written)}
        self.given = tuple([i for i in last if i in given])
        nowhere, own = len(self.given), len(self.given) + 1  # an address of 0, and the block of memory
        places = {i: (n, 0) for n, i in enumerate(self.given)}
        arena, self._list = Arena(), LaunchList()
        for n, (program, table, *numbers) in enumerate(launches):
            used = [i for some in numbers for i in some]
            for i in used:
                if i not in places:
                    places[i] = own, arena.allocate(nbytes[i])
            bound = [] if table is None else [(nowhere, table.home.address)]
            bound += [places[i] for i in used]
            if scratch := program.arena_bytes:
                offset = arena.allocate(scratch)
                arena.release(offset, scratch)
                bound.append((own, offset))
            for line in lines_of(program) or ():
                self._list.append(line, bound)
            for i in dict.fromkeys(used):
                if last[i] == n and i not in given:
                    arena.release(places[i][1], nbytes[i])
        self._own = Aval((arena.end,), dtypes.uint8)
        # What addresses and steps in the list belong to.
        self._tables = [launch.table for launch in launches if launch.table is not None]
        self._programs = list({id(launch.program): launch.program for launch in launches}.values())

    def run(self, memories: Sequence[Buffer]) -> None:
        own = MEMORY.empty(self._own)
        self._list.run(array("Q", [*[b.home.address for b in memories], 0, own.home.address]))

"""The device ``cuda``: Metal's texts on an NVIDIA GPU. Launches do not wait; values are waited for."""

from __future__ import annotations

import functools
import itertools
from array import array
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from smelt.ir import dtypes, locks
from smelt.ir.aval import Aval
from smelt.ir.errors import DeviceError, OutOfMemoryError, SmeltError
from smelt.ir.host_threads import processors
from smelt.ir.interpreter import run_op
from smelt.ir.op import get
from smelt.ir.ops.constants import constant_array

from ..buffer import Buffer
from ..gpu.executable import GpuExecutable, HostCall
from ..gpu.library import LibraryCall, LibraryStep
from ..gpu.manifest import KernelInfo, Manifest, Size
from ..gpu.portable import GpuPortable
from ..gpu.program import DeviceSegment
from ..gpu.steps import Where, known_launches, walk
from . import driver, installed
from .compiler import cubins
from .launches import KERNEL, LaunchList, Line, Place, line_of
from .memory import MEMORY, memory_at
from .source import cuda_source, cuda_sources

_Tables = Mapping[str, Sequence[Any]]


#: Launches of a program that become a graph: fewer are as quick one by one, if no library is called for one, which
#: takes longer; more take too much memory.
LEAST_LAUNCHES, MOST_LAUNCHES = 4, 8192
#: Bytes of the GPU that must be free for another process to compile: its context and its libraries take a third.
ROOM = 2 << 30
#: Graphs that a program keeps: as many as there are sets of arrays between which a loop changes over.
MOST_GRAPHS = 8

_Threads = tuple[tuple[str, Size], ...]

_guard = locks.lock()
#: Texts that are compiled right now: who needs one of them waits for it.
_compiling: dict[tuple[str, _Threads, bool], Any] = {}
#: Machine code by its source, which was compiled with others and is asked for next.
_ahead: dict[str, bytes] = {}


@functools.lru_cache(maxsize=256)
def _code(text: str, threads: _Threads, dispatched: bool) -> dict[str, driver.Module]:
    if dispatched:
        source, entries = cuda_source(text, dict(threads), dispatched)
        sources = dict.fromkeys(entries, source)
    else:
        sources = cuda_sources(text, dict(threads), processors())
    architecture = driver.architecture()
    several = list(dict.fromkeys(sources.values()))
    with _guard:
        known = [_ahead.pop(source, None) for source in several]
    made = {source: cubin for source, cubin in zip(several, known) if cubin is not None}
    missing = [source for source in several if source not in made]
    made.update(zip(missing, cubins(missing, architecture)))
    modules = {source: driver.Module(made[source]) for source in several}
    return {entry: modules[source] for entry, source in sources.items()}


def code(text: str, threads: Mapping[str, Size], dispatched: bool = False) -> Mapping[str, driver.Module]:
    """A text's kernels on the GPU, by name. Those compiled before are remembered; large texts are compiled in parts
    by several processes, and several texts at once if several threads ask for them.

    Args:
        threads: of a threadgroup, by kernel; dispatched: whether grids may be no multiples of them.

    Raises:
        DeviceError: NVRTC is not installed, or refuses the text.
    """
    key = text, tuple(sorted(threads.items())), dispatched
    with _guard:
        own = _compiling.setdefault(key, locks.lock())
    try:
        with own:
            return _code(*key)
    finally:
        with _guard:
            _compiling.pop(key, None)


def _threads_of(manifest: Manifest) -> dict[str, Size]:
    """Those of the kernels of a text that are smelt's own."""
    return {k.entry: k.threads for k in manifest.kernels if k.own is None and k.library is None}


def compile_ahead(segments: Iterable[DeviceSegment]) -> None:
    """Compile texts that `code` will be asked for one by one: all at once."""
    found = [(s.text, _threads_of(s.manifest)) for s in segments]
    sources = [s for text, threads in found if threads for s in cuda_sources(text, threads, processors()).values()]
    several = list(dict.fromkeys(sources))
    with _guard:
        _ahead.clear()
    made = dict(zip(several, cubins(several, driver.architecture())))
    with _guard:
        _ahead.update(made)


class CudaProgram:
    """Compiled kernels and the order of their launches.

    Launches whose order is known before become graphs of the driver when they come a second time on the same memory:
    handing over a graph takes less than a microsecond a launch.
    """

    def __init__(self, text: str, manifest: Manifest):
        own = [kernel.entry for kernel in manifest.kernels if kernel.own is not None]
        threads = _threads_of(manifest)
        modules = code(text, threads) if threads else {}
        self._manifest = manifest
        self._kernels: dict[str, _Kernel | LibraryLaunch] = {}
        for kernel in manifest.kernels:
            if kernel.library is not None:
                self._kernels[kernel.entry] = LibraryLaunch(kernel.library)
                continue
            found = modules[kernel.entry] if kernel.entry not in own else _own_code(kernel)
            self._kernels[kernel.entry] = _Kernel(kernel, found)
        launches = known_launches(manifest)
        self._is_known = launches is not None and launches <= MOST_LAUNCHES
        calls = any(kernel.library is not None for kernel in manifest.kernels)
        self._is_graph = not own and self._is_known and (launches or 0) >= (1 if calls else LEAST_LAUNCHES)
        #: kernels with the places of their buffers, as `lines` numbers them, once they were asked for
        self._steps: list[tuple[_Kernel | LibraryLaunch, list[Place]]] | None = None
        self._list: LaunchList | None = None  #: the same, to be handed over at once
        self._seen: OrderedDict[bytes, list[Callable[[], None]] | None] = OrderedDict()

    def run(self, arguments: Sequence[Buffer], results: Sequence[Buffer], arena: Buffer | None) -> None:
        """Launch everything. Where a loop or a branch asks for a value, what was launched is waited for."""
        if not self._is_known:
            self._run_by_values(arguments, results, arena)
            return
        launches = self._list or self._listed(len(arguments), len(results))
        buffers = (*arguments, *results, *([arena] if arena else []))
        addresses = array("Q", [b.home.address for b in buffers])
        if not self._is_graph:
            launches.run(addresses)
            return
        key = addresses.tobytes()
        with _guard:
            is_repeated = key in self._seen
            parts = self._seen.pop(key, None)
        if is_repeated and parts is None:
            parts = self._graphs_of(addresses)
        if parts is not None:
            for launch in parts:
                launch()
        else:
            launches.run(addresses)
        with _guard:
            self._seen[key] = parts
            self._drop_oldest()

    def _listed(self, arguments: int, results: int) -> LaunchList:
        found = LaunchList()
        buffers = [(i, 0) for i in range(arguments + results + 1)]
        for line in self.lines(arguments, results) or ():
            found.append(line, buffers)
        self._list = found
        return found

    def lines(self, arguments: int, results: int) -> list[Line] | None:
        """What runs, in order; None where values decide about that. Buffers are numbered: arguments, so many, then
        results and the arena."""
        if not self._is_known:
            return None
        if self._steps is None:
            first = {"argument": 0, "result": arguments, "arena": arguments + results}
            self._steps = [
                (self._kernels[launch.entry], [(first[kind] + n, offset) for kind, n, offset in places])
                for launch, places in walk(self._manifest, _no_value)
            ]
        return [line_of(step, places) for step, places in self._steps]

    def _run_by_values(self, arguments: Sequence[Buffer], results: Sequence[Buffer], arena: Buffer | None) -> None:
        tables: _Tables = {"argument": arguments, "result": results, "arena": [arena] if arena else []}
        bases = {kind: [b.home.address for b in table] for kind, table in tables.items()}

        def read(where: Where, nbytes: int) -> int:
            kind, index, offset = where
            number: int = tables[kind][index].home.handle.number(offset, nbytes)
            return number

        for launch, places in walk(self._manifest, read):
            self._kernels[launch.entry].launch([bases[kind][n] + offset for kind, n, offset in places])

    def _drop_oldest(self) -> None:
        while len(self._seen) > MOST_GRAPHS:
            self._seen.popitem(last=False)

    def _graphs_of(self, addresses: Sequence[int]) -> list[Callable[[], None]] | None:
        """Launches as graphs, and what stands between them by itself; None where the driver makes none, as one
        without memory for it: then not again."""
        assert self._steps is not None
        launches = [(step, [addresses[n] + offset for n, offset in places]) for step, places in self._steps]
        parts: list[Callable[[], None]] = []
        try:
            for alone, group in itertools.groupby(launches, key=lambda launch: launch[0].is_alone):
                if alone:
                    parts += [functools.partial(step.launch, given) for step, given in group]
                    continue
                graph = driver.Graph()
                for step, given in group:
                    step.add_to(graph, given)
                graph.finish()
                parts.append(graph.launch)
        except (DeviceError, OutOfMemoryError):
            self._is_graph = False
            return None
        return parts


def _no_value(where: Where, nbytes: int) -> int:
    raise AssertionError("no value decides about the launches of this program")


class _Kernel:
    """A kernel, and the constants it is launched with, which lie on the GPU."""

    #: Whether it cannot be part of a graph.
    is_alone = False

    def __init__(self, info: KernelInfo, module: driver.Module):
        self.info, self.module = info, module
        own = info.own
        constants = () if own is None else own.constants
        self._order = [b.index for b in info.buffers] + [c.index for c in constants]
        self._constants = [_on_gpu(c.bytes) for c in constants]

    def add_to(self, graph: driver.Graph, addresses: Sequence[int]) -> None:
        """Put the launch into a graph. The kernel is not a user's."""
        info = self.info
        if 0 not in info.threadgroups:
            self.module.node(graph, info.entry, addresses, info.threadgroups, info.threads)

    def words(self) -> list[int] | None:
        """See `launches.Step`."""
        info = self.info
        if info.own is not None:
            return None
        if 0 in info.threadgroups:
            return []
        function = self.module.function(info.entry).value or 0
        return [KERNEL, function, *info.threadgroups, *info.threads, len(info.buffers)]

    def places(self, given: Sequence[Place]) -> Sequence[Place]:
        """See `launches.Step`."""
        return given

    def launch(self, addresses: Sequence[int]) -> None:
        info, own = self.info, self.info.own
        if own is None:
            if 0 not in info.threadgroups:
                self.module.launch(info.entry, addresses, info.threadgroups, info.threads)
            return
        bound = dict(zip(self._order, [*addresses, *(c.home.address for c in self._constants)]))
        self.module.dispatch(own.function, [bound[i] for i in sorted(bound)], own.grid, info.threads)


class LibraryLaunch:
    """What a library does."""

    def __init__(self, step: LibraryStep):
        self._step, self._plan = step, installed.plan(step)
        self.is_alone = not self._plan.in_graphs

    def add_to(self, graph: driver.Graph, addresses: Sequence[int]) -> None:
        graph.add_captured(lambda stream: self._plan.run(addresses, stream))

    def words(self) -> Sequence[int] | None:
        """See `launches.Step`."""
        return self._plan.words()

    def places(self, given: Sequence[Place]) -> Sequence[Place]:
        """See `launches.Step`."""
        return self._plan.places(given)

    @property
    def guard(self) -> AbstractContextManager[Any]:
        """See `launches.ProductStep`."""
        return self._plan.guard

    def error(self, code: int) -> SmeltError:
        """See `launches.ProductStep`."""
        return self._plan.error(code)

    def launch(self, addresses: Sequence[int]) -> None:
        self._plan.run(addresses)
        if isinstance(self._step, LibraryCall) and self._plan.failed(addresses):
            _run_on_host(self._step, addresses)


def _run_on_host(call: LibraryCall, addresses: Sequence[int]) -> None:
    """Compute on the CPU what a library could not: the op knows whether that is an error, and says so.

    Raises:
        LibraryError: the operands have no such result.
    """
    operands, places = [], iter(addresses)
    for given, address in zip(call.operands, places):
        staged = Buffer.empty(given.aval)
        memory_at(address, given.aval.nbytes).read(staged.address)
        operands.append(staged.array)
    found = run_op(get(call.op), operands, dict(call.attributes), call.line)
    for i, (x, address) in enumerate(zip(found, places)):
        x = np.ascontiguousarray(np.swapaxes(x, -2, -1) if i in call.columns else x)
        memory_at(address, x.nbytes).write(x.ctypes.data)


def _own_code(kernel: KernelInfo) -> driver.Module:
    assert kernel.own is not None
    threads = {kernel.own.function: kernel.threads} if _is_whole(kernel) else {}
    return code(kernel.own.text, threads, dispatched=True)[kernel.own.function]


def _is_whole(kernel: KernelInfo) -> bool:
    """Whether all threadgroups of a user's kernel are full."""
    return kernel.own is not None and all(n % t == 0 for n, t in zip(kernel.own.grid, kernel.threads))


def _on_gpu(content: bytes) -> Buffer:
    array = np.frombuffer(content, np.uint8)
    return MEMORY.adopt(Buffer.of(array, Aval(array.shape, dtypes.uint8)))


class StagedCall(HostCall):
    """A function on the CPU: what it reads is fetched from the GPU, and what it writes is sent there."""

    def run(self, arguments: Sequence[Buffer], results: Sequence[Buffer], arena: Buffer | None) -> None:
        tables: _Tables = {"argument": arguments, "result": results, "arena": [arena]}
        inputs = []
        for place, aval in self.segment.arguments:
            staged = Buffer.empty(aval)
            tables[place.kind][place.index].home.handle.read(staged.address, aval.nbytes, place.offset)
            inputs.append(staged)
        outputs = [Buffer.empty(aval) for _, aval in self.segment.results]
        self.call(inputs, outputs)
        for (place, aval), staged in zip(self.segment.results, outputs):
            tables[place.kind][place.index].home.handle.write(staged.address, aval.nbytes, place.offset)


class CudaExecutable(GpuExecutable):
    """Programs of ``cuda``."""

    host_call = StagedCall

    def load(self, text: str, manifest: Manifest) -> CudaProgram:
        return CudaProgram(text, manifest)


def _has_room() -> bool:
    """Whether another process may ask the GPU which products a library takes: it holds memory there meanwhile, and
    takes the first GPU."""
    free, _ = driver.memory_info()
    return driver.ordinal() == 0 and free > ROOM


PORTABLE = GpuPortable(CudaExecutable, installed.identity, _has_room)


def launch(
    text: str, entry: str, inputs: Sequence[Buffer | bytes], results: Sequence[Aval], init_value: Any,
    grid: Size, threads: Size,
) -> list[Buffer]:  # fmt: skip
    """Run one kernel of a user's text; what it writes. See `smelt.backends.metal.simulated.launch`.

    Raises:
        DeviceError: the text does not compile, or there is no GPU.
    """
    module = code(text, {}, dispatched=True)[entry]
    found = []
    for aval in results:
        if init_value is None:
            found.append(MEMORY.empty(aval))
        else:
            array = np.full(aval.shape, constant_array(init_value, aval.dtype))
            block = MEMORY.adopt(Buffer.of(array, aval)).home
            found.append(Buffer.at(aval, block))
    given = [_on_gpu(x) if isinstance(x, bytes) else MEMORY.adopt(x) for x in inputs]
    module.dispatch(entry, [b.home.address for b in (*given, *found)], grid, threads)
    return found


def details() -> dict[str, str | int]:
    """What is known of the GPU."""
    free, total = driver.memory_info()
    return {
        "device_name": driver.gpu_name(), "architecture": driver.architecture(), "memory_size": total,
        "free_memory": free,
    }  # fmt: skip

"""cuDNN's handle and descriptors: graphs of operations, engines that can run them, and execution plans."""

from __future__ import annotations

import ctypes
import sys
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from smelt.ir.errors import DeviceError

from ...gpu.library import AttentionGradient, Convolution, ScaledAttention, Tensor
from .. import driver, libraries
from ..products import alignment, place
from . import codes

#: What the elements of an attribute are, where they are no numbers of an enumeration.
_ELEMENTS: dict[int, Any] = {
    **dict.fromkeys((codes.HANDLE, codes.POINTER, codes.DESCRIPTOR), ctypes.c_void_p),
    codes.BOOLEAN: ctypes.c_bool, codes.INT64: ctypes.c_int64, codes.FLOAT: ctypes.c_float,
    codes.DOUBLE: ctypes.c_double,
}  # fmt: skip
#: cudnnBackendDescriptorType_t.
_ENGINE, _CONFIGURATION, _HEURISTICS, _PLAN, _GRAPH, _PACK, _TENSOR = 2, 3, 4, 5, 15, 16, 17
#: Modes of heuristics (cudnnBackendHeurMode_t): the usual one, and what works where that knows nothing.
_USUAL, _FALLBACK = 3, 2
#: Notes that an engine has, at most.
_MOST_NOTES = 32
#: Bytes of which the address of a workspace is a multiple.
_WORKSPACE_ALIGNMENT = 256
#: Sets of addresses for which a plan keeps what cuDNN makes of them.
_MOST_PACKS = 8

Step = Convolution | ScaledAttention | AttentionGradient


class Library(libraries.Library[Step, "Plan"]):
    """cuDNN on the GPU. See `libraries.Library`.

    Attributes:
        plans: by kind of step, the ways in which it can be done, those first that are taken for the fastest.
    """

    create = "cudnnCreate"
    describe = "cudnnGetErrorString"
    exhausted = (4003, 4004)
    plans: Mapping[str, Callable[[Library, Any], Iterator[Plan]]] = {}

    @property
    def version(self) -> int:
        """As cuDNN numbers it: 91900 for 9.19."""
        return self.status("cudnnGetVersion")

    def _planned(self, step: Step) -> Plan | None:
        return next(self.plans[step.kind](self, step), None)


class Descriptor:
    """A cudnnBackendDescriptor_t.

    Raises:
        DeviceError, OutOfMemoryError: from the library.
    """

    def __init__(self, library: Library, kind: int):
        self._library, self.handle = library, ctypes.c_void_p()
        library.call("cudnnBackendCreateDescriptor", kind, ctypes.byref(self.handle))

    def set(self, attribute: int, kind: int, *values: Any) -> Descriptor:
        """Give it an attribute; itself."""
        found = (_ELEMENTS.get(kind, ctypes.c_int) * len(values))(*values)
        count = ctypes.c_int64(len(values))
        self._library.call("cudnnBackendSetAttribute", self.handle, attribute, kind, count, found)
        return self

    def integers(self, attribute: int, *values: int) -> Descriptor:
        """Give it integers for an attribute; itself."""
        return self.set(attribute, codes.INT64, *values)

    def dtype(self, attribute: int, name: str) -> Descriptor:
        """Give it a type of elements for an attribute; itself."""
        return self.set(attribute, codes.DATA_TYPE, codes.TYPES[name])

    def refer(self, attribute: int, *others: Descriptor) -> Descriptor:
        """Give it other descriptors for an attribute; itself."""
        return self.set(attribute, codes.DESCRIPTOR, *(x.handle for x in others))

    def finish(self) -> Descriptor:
        """Let there be no more attributes; itself."""
        self._library.call("cudnnBackendFinalize", self.handle)
        return self

    def get(self, attribute: int, kind: int, most: int, given: Sequence[ctypes.c_void_p] = ()) -> list[Any]:
        """An attribute's elements: `most` of them at most. `given`: descriptors that become these."""
        count, found = ctypes.c_int64(), (_ELEMENTS.get(kind, ctypes.c_int) * most)(*given)
        self._library.call(
            "cudnnBackendGetAttribute", self.handle, attribute, kind, ctypes.c_int64(most), ctypes.byref(count), found
        )
        return list(found[: min(count.value, most)])

    def count(self, attribute: int, kind: int) -> int:
        """How many elements an attribute has."""
        count = ctypes.c_int64()
        self._library.call(
            "cudnnBackendGetAttribute", self.handle, attribute, kind, ctypes.c_int64(0), ctypes.byref(count), None
        )
        return count.value

    def __del__(self, is_finalizing: Any = sys.is_finalizing) -> None:
        if not is_finalizing() and self.handle and not driver.is_forked():
            self._library.status("cudnnBackendDestroyDescriptor", self.handle)


@dataclass
class Graph:
    """Operations on tensors, as they are put together.

    Attributes:
        parts: the descriptors so far, which live as long as what is made of them.
        operations: those of them that compute.
        arrays: the tensors that lie in buffers of the step, by their numbers.
        numbers: the numbers that are handed over with each execution, by those of their tensors.
    """

    library: Library
    parts: list[Descriptor] = field(default_factory=list)
    operations: list[Descriptor] = field(default_factory=list)
    arrays: dict[int, Tensor] = field(default_factory=dict)
    numbers: dict[int, ctypes.c_float] = field(default_factory=dict)

    def part(self, kind: int) -> Descriptor:
        """A new descriptor, which belongs to the graph."""
        self.parts.append(Descriptor(self.library, kind))
        return self.parts[-1]

    def operation(self, kind: int) -> Descriptor:
        """A new one that computes."""
        self.operations.append(self.part(kind))
        return self.operations[-1]

    def array(self, x: Tensor) -> Descriptor:
        """A tensor in a buffer of the step."""
        self.arrays[number := len(self.parts)] = x
        made = self._tensor(number, x.dtype, x.shape, x.strides)
        return made.integers(900, alignment(place(x)[1])).finish()

    def between(self, dtype: str, shape: Sequence[int], strides: Sequence[int] | None = None) -> Descriptor:
        """A tensor that one operation gives and others take, and that is nowhere in memory; by default row by row."""
        rows = [1]
        for extent in reversed(shape[1:]):
            rows.insert(0, rows[0] * extent)
        made = self._tensor(len(self.parts), dtype, shape, rows if strides is None else strides)
        return made.integers(900, _WORKSPACE_ALIGNMENT).set(907, codes.BOOLEAN, True).finish()

    def number(self, value: float, axes: int) -> Descriptor:
        """A number of float32, as a tensor of one element."""
        self.numbers[number := len(self.parts)] = ctypes.c_float(value)
        made = self._tensor(number, "float32", (1,) * axes, (1,) * axes)
        return made.integers(900, 16).set(908, codes.BOOLEAN, True).finish()

    def _tensor(self, number: int, dtype: str, shape: Sequence[int], strides: Sequence[int]) -> Descriptor:
        made = self.part(_TENSOR).dtype(901, dtype).integers(902, *shape)
        return made.integers(903, *strides).integers(906, number)

    def plans(self, refused: Collection[int], workspace: int, compiles: bool = False) -> Iterator[Plan]:
        """The plans of its engines, those first that cuDNN takes for the fastest.

        Args:
            refused: notes on numerics that an engine may not have.
            workspace: bytes that it may use, at most.
            compiles: whether it may be one that is compiled first.
        """
        library = self.library
        try:
            whole = Descriptor(library, _GRAPH).set(800, codes.HANDLE, library.handle)
            whole.refer(801, *self.operations).finish()
        except DeviceError:  # what it knows to be impossible without asking its engines
            return
        for mode in (_USUAL, _FALLBACK):
            try:
                found = _configurations(library, whole, mode)
            except DeviceError:
                continue
            for configuration in found:
                plan = self._plan([whole, configuration], refused, workspace, compiles)
                if plan is not None:
                    yield plan

    def _plan(
        self, parts: Sequence[Descriptor], refused: Collection[int], workspace: int, compiles: bool
    ) -> Plan | None:
        """The plan of a configuration, the last of the parts; None where it is refused, or there is none."""
        library, configuration = self.library, parts[-1]
        engine = Descriptor(library, _ENGINE)
        try:
            configuration.get(300, codes.DESCRIPTOR, 1, [engine.handle])
            numerics = engine.get(1303, codes.NUMERICS, _MOST_NOTES)
            behavior = engine.get(1305, codes.BEHAVIOR, _MOST_NOTES)
            if set(refused) & set(numerics) or (codes.COMPILES in behavior and not compiles):
                return None
            made = Descriptor(library, _PLAN).set(400, codes.HANDLE, library.handle).refer(401, configuration).finish()
            (needed,) = made.get(402, codes.INT64, 1)
        except DeviceError:  # an engine that cannot, after all
            return None
        if needed:
            needed += _WORKSPACE_ALIGNMENT
        return None if needed > workspace else Plan(self, [*parts, made], needed)


def _configurations(library: Library, graph: Descriptor, mode: int) -> list[Descriptor]:
    """Engines for a graph, with their choices."""
    heuristics = Descriptor(library, _HEURISTICS).refer(201, graph).set(200, codes.HEURISTIC, mode)
    count = heuristics.finish().count(202, codes.DESCRIPTOR)
    found = [Descriptor(library, _CONFIGURATION) for _ in range(count)]
    got = heuristics.get(202, codes.DESCRIPTOR, count, [x.handle for x in found]) if count else []
    return found[: len(got)]


class Plan(libraries.Plan):
    """How a graph is computed.

    Attributes:
        workspace: bytes of memory that it uses beside the step's buffers.
        parts: of what is computed one after the other, how many bytes further tensors lie, by their numbers.
    """

    def __init__(self, graph: Graph, made: Sequence[Descriptor], workspace: int):
        self._graph, self._made, self.workspace = graph, made, workspace
        self.parts: Sequence[Mapping[int, int]] = [{}]
        self._at = {number: place(x) for number, x in graph.arrays.items()}
        self._packs: OrderedDict[tuple[int, ...], list[Descriptor]] = OrderedDict()

    def run(self, addresses: Sequence[int], stream: ctypes.c_void_p | None = None) -> None:
        """See `smelt.backends.cuda.installed.Plan`."""
        driver.enter()
        library, key = self._graph.library, tuple(addresses)
        with library.guard:
            packs = self._packs.get(key)
            if packs is None:
                packs = self._packs[key] = [self._pack(key, part) for part in self.parts]
                self._drop_oldest()
            library.call("cudnnSetStream", library.handle, stream)
            for pack in packs:
                library.call("cudnnBackendExecute", library.handle, self._made[-1].handle, pack.handle)

    def _drop_oldest(self) -> None:
        while len(self._packs) > _MOST_PACKS:
            self._packs.popitem(last=False)

    def _pack(self, addresses: Sequence[int], part: Mapping[int, int]) -> Descriptor:
        """The memory that an execution works on."""
        found = {n: addresses[buffer] + offset + part.get(n, 0) for n, (buffer, offset) in self._at.items()}
        found.update({number: ctypes.addressof(x) for number, x in self._graph.numbers.items()})
        made = Descriptor(self._graph.library, _PACK).integers(1000, *found)
        made.set(1001, codes.POINTER, *found.values())
        workspace = addresses[-1] + -addresses[-1] % _WORKSPACE_ALIGNMENT if self.workspace else None
        return made.set(1003, codes.POINTER, workspace).finish()

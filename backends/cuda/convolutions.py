"""Convolutions by cuDNN: from a `Convolution` to a graph of one operation, an engine for it, and its execution plan.

What a plan computes does not change from run to run, and sums of float32 stay float32's: engines that cuDNN notes to be
otherwise are left out. Numbers are those of ``cudnn_graph.h``.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Any

from smelt.ir.errors import DeviceError

from ..gpu.library import Convolution, Tensor
from . import driver, libraries
from .libraries import load, opened
from .products import alignment, place

#: cudnnDataType_t.
_TYPES = {"float32": 0, "float64": 1, "float16": 2, "bfloat16": 9}
#: cudnnBackendDescriptorType_t.
_CONVOLUTION, _ENGINE, _CONFIGURATION, _HEURISTICS, _PLAN, _GRAPH, _PACK, _TENSOR = 1, 2, 3, 4, 5, 15, 16, 17
#: The same of the operation that writes a tensor, and the attributes of its operands.
_OPERATIONS = {
    "result": (10, {"alpha": 700, "beta": 701, "description": 702, "filter": 703, "image": 704, "result": 705}),
    "image": (12, {"alpha": 706, "beta": 707, "description": 708, "filter": 709, "image": 710, "result": 711}),
    "filter": (11, {"alpha": 712, "beta": 713, "description": 714, "filter": 715, "image": 716, "result": 717}),
}
#: cudnnBackendAttributeType_t, and what the elements are.
_HANDLE, _DATA_TYPE, _INT64, _FLOAT, _DOUBLE, _POINTER, _MODE, _HEURISTIC, _NUMERICS, _DESCRIPTOR, _BEHAVIOR = (
    0, 1, 3, 4, 5, 6, 7, 8, 11, 15, 19,
)  # fmt: skip
_ELEMENTS: dict[int, Any] = {
    **dict.fromkeys((_HANDLE, _POINTER, _DESCRIPTOR), ctypes.c_void_p), _INT64: ctypes.c_int64, _FLOAT: ctypes.c_float,
    _DOUBLE: ctypes.c_double,
}  # fmt: skip
#: Modes of heuristics (cudnnBackendHeurMode_t): the usual one, and what works where that knows nothing.
_USUAL, _FALLBACK = 3, 2
#: cudnnBackendNumericalNote_t.
_TENSOR_CORES, _ROUNDS_INPUTS, _ROUNDS_SUMS, _FOURIER, _CHANGES, _WINOGRAD = 0, 1, 2, 3, 4, (5, 6, 7, 8)
#: What no engine may do, and what it may not do besides where operands of float32 are not to be rounded.
_REFUSED = {_ROUNDS_SUMS, _FOURIER, _CHANGES, *_WINOGRAD}
_ROUNDING = {_TENSOR_CORES, _ROUNDS_INPUTS}
#: cudnnBackendBehaviorNote_t: an engine that is compiled for its operation, which takes long.
_COMPILES = 0
#: Notes that an engine has, at most.
_MOST_NOTES = 32
#: Bytes of which the address of a workspace is a multiple.
_WORKSPACE_ALIGNMENT = 256
#: Sets of addresses for which a plan keeps what cuDNN makes of them.
_MOST_PACKS = 8


class Library(libraries.Library[Convolution, "Plan"]):
    """cuDNN on the GPU. See `libraries.Library`."""

    create = "cudnnCreate"
    describe = "cudnnGetErrorString"
    exhausted = (4003, 4004)

    def _planned(self, convolution: Convolution) -> Plan | None:
        return next(plans(self, convolution), None)


class _Descriptor:
    """A cudnnBackendDescriptor_t.

    Raises:
        DeviceError, OutOfMemoryError: from the library.
    """

    def __init__(self, library: Library, kind: int):
        self._library, self.handle = library, ctypes.c_void_p()
        library.call("cudnnBackendCreateDescriptor", kind, ctypes.byref(self.handle))

    def set(self, attribute: int, kind: int, *values: Any) -> _Descriptor:
        """Give it an attribute; itself."""
        found = (_ELEMENTS.get(kind, ctypes.c_int) * len(values))(*values)
        count = ctypes.c_int64(len(values))
        self._library.call("cudnnBackendSetAttribute", self.handle, attribute, kind, count, found)
        return self

    def finish(self) -> _Descriptor:
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


def plans(library: Library, convolution: Convolution) -> Iterator[Plan]:
    """The ways in which cuDNN can make a convolution, those first that it takes for the fastest."""
    dtypes = {x.dtype for x in (convolution.image, convolution.filter, convolution.result)}
    if len(dtypes) > 1 or not dtypes <= _TYPES.keys() or _is_wrong(convolution):
        return
    try:
        parts = _graph(library, convolution, *dtypes)
    except DeviceError:  # what it knows to be impossible without asking its engines
        return
    refused = _REFUSED if convolution.tf32 or "float32" not in dtypes else _REFUSED | _ROUNDING
    for mode in (_USUAL, _FALLBACK):
        try:
            found = _configurations(library, parts[-1], mode)
        except DeviceError:
            continue
        for configuration in found:
            plan = _plan(library, convolution, [*parts, configuration], refused)
            if plan is not None:
                yield plan


def _is_wrong(convolution: Convolution) -> bool:
    """Whether cuDNN was seen to give wrong values (9.19): gradients in filters where padding is not that before."""
    return convolution.out == "filter" and convolution.low != convolution.high


def _graph(library: Library, convolution: Convolution, dtype: str) -> list[_Descriptor]:
    """The operation's graph, behind all that it consists of."""

    def tensor(x: Tensor, number: int) -> _Descriptor:
        made = _Descriptor(library, _TENSOR).set(901, _DATA_TYPE, _TYPES[x.dtype]).set(902, _INT64, *x.shape)
        made.set(903, _INT64, *x.strides).set(906, _INT64, number)
        return made.set(900, _INT64, alignment(place(x)[1])).finish()

    real = _DOUBLE if dtype == "float64" else _FLOAT
    axes = len(convolution.strides)
    description = _Descriptor(library, _CONVOLUTION)
    description.set(100, _DATA_TYPE, _TYPES["float64" if dtype == "float64" else "float32"]).set(101, _MODE, 1)
    description.set(106, _INT64, axes).set(102, _INT64, *convolution.dilation).set(103, _INT64, *convolution.strides)
    description.set(105, _INT64, *convolution.low).set(104, _INT64, *convolution.high).finish()
    kind, names = _OPERATIONS[convolution.out]
    operation = _Descriptor(library, kind).set(names["description"], _DESCRIPTOR, description.handle)
    tensors = []
    for number, name in enumerate(("image", "filter", "result")):
        tensors.append(tensor(getattr(convolution, name), number))
        operation.set(names[name], _DESCRIPTOR, tensors[-1].handle)
    operation.set(names["alpha"], real, 1.0).set(names["beta"], real, 0.0).finish()
    graph = _Descriptor(library, _GRAPH).set(800, _HANDLE, library.handle).set(801, _DESCRIPTOR, operation.handle)
    return [description, *tensors, operation, graph.finish()]


def _configurations(library: Library, graph: _Descriptor, mode: int) -> list[_Descriptor]:
    """Engines for a graph, with their choices."""
    heuristics = _Descriptor(library, _HEURISTICS).set(201, _DESCRIPTOR, graph.handle).set(200, _HEURISTIC, mode)
    count = heuristics.finish().count(202, _DESCRIPTOR)
    found = [_Descriptor(library, _CONFIGURATION) for _ in range(count)]
    got = heuristics.get(202, _DESCRIPTOR, count, [x.handle for x in found]) if count else []
    return found[: len(got)]


def _plan(library: Library, convolution: Convolution, parts: list[_Descriptor], refused: set[int]) -> Plan | None:
    """The plan of a configuration, the last of the parts; None where it is refused, or there is none."""
    engine = _Descriptor(library, _ENGINE)
    try:
        parts[-1].get(300, _DESCRIPTOR, 1, [engine.handle])
        numerics, behavior = engine.get(1303, _NUMERICS, _MOST_NOTES), engine.get(1305, _BEHAVIOR, _MOST_NOTES)
        if refused & set(numerics) or _COMPILES in behavior:
            return None
        made = _Descriptor(library, _PLAN).set(400, _HANDLE, library.handle)
        made.set(401, _DESCRIPTOR, parts[-1].handle).finish()
        (workspace,) = made.get(402, _INT64, 1)
    except DeviceError:  # an engine that cannot, after all
        return None
    if workspace:
        workspace += _WORKSPACE_ALIGNMENT
    return None if workspace > convolution.workspace else Plan(library, convolution, [*parts, made], workspace)


class Plan(libraries.Plan):
    """How a convolution is made.

    Attributes:
        workspace: bytes of memory that it uses beside the three arrays.
    """

    def __init__(self, library: Library, convolution: Convolution, parts: list[_Descriptor], workspace: int):
        self._library, self._parts, self.workspace = library, parts, workspace
        self._at = [place(x) for x in (convolution.image, convolution.filter, convolution.result)]
        self._packs: OrderedDict[tuple[int, ...], _Descriptor] = OrderedDict()

    def run(self, addresses: Sequence[int], stream: ctypes.c_void_p | None = None) -> None:
        """See `smelt.backends.cuda.installed.Plan`."""
        driver.enter()
        library, key = self._library, tuple(addresses)
        with library.guard:
            pack = self._packs.get(key)
            if pack is None:
                pack = self._packs[key] = self._pack(key)
                while len(self._packs) > _MOST_PACKS:
                    self._packs.popitem(last=False)
            library.call("cudnnSetStream", library.handle, stream)
            library.call("cudnnBackendExecute", library.handle, self._parts[-1].handle, pack.handle)

    def _pack(self, addresses: Sequence[int]) -> _Descriptor:
        """The memory that an execution works on."""
        found = [addresses[buffer] + offset for buffer, offset in self._at]
        made = _Descriptor(self._library, _PACK).set(1000, _INT64, *range(len(found))).set(1001, _POINTER, *found)
        workspace = addresses[-1] + -addresses[-1] % _WORKSPACE_ALIGNMENT if self.workspace else None
        return made.set(1003, _POINTER, workspace).finish()


@functools.cache
def library() -> Library | None:
    """cuDNN; None where it is not installed, or does not work with the driver."""
    loaded = load("cudnn") if load("cublasLt") is not None else None  # which it loads, and cannot do without
    return opened(Library, loaded)

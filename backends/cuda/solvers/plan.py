"""What plans of linear algebra have in common: which matrices they take, their workspace, addresses of batches."""

from __future__ import annotations

import ctypes
import math
import sys
from collections import OrderedDict
from collections.abc import Sequence
from ctypes import c_size_t, c_void_p
from dataclasses import dataclass
from typing import Any

import numpy as np

from smelt.backends.gpu.library import LibraryCall
from smelt.ir.aval import broadcast_shapes

from .. import driver, libraries
from ..memory import memory_at
from .library import Blas, Library

#: cudaDataType_t, and the letter of functions for one type.
TYPES = {"float32": (0, "S"), "float64": (1, "D"), "complex64": (4, "C")}
#: cublasFillMode_t and cublasOperation_t.
UPPER, AS_IT_IS, TRANSPOSED = 1, 0, 1
#: Rows and columns from which on a matrix is worth calls of its own, and how many are: below, LAPACK has done a matrix
#: by the time that kernels of the library have been launched one after the other.
LEAST, MOST = 128, 32
#: Elements from which on a batch is worth its way to the library, which takes as long as a few thousand on the CPU;
#: and rows up to which its functions for batches are made for that.
LEAST_ELEMENTS, MOST_ROWS = 4096, 1024
#: What parts of a workspace begin at multiples of.
_ALIGNMENT = 256
#: Sets of arrays for which a plan keeps the addresses of their matrices.
_MOST_SETS = 8


@dataclass
class Places:
    """Addresses of what a step works on.

    Attributes:
        operands: each as it is laid out for the library, if it is.
        results: what is written.
        beside: what has been laid out besides.
        workspace: where that begins.
    """

    operands: list[int]
    results: list[int]
    beside: list[int]
    workspace: int


class Plan(libraries.Plan):
    """How an op is computed: a subclass for each. In the workspace there is a number for each matrix, which is not zero
    where it has no such factors.

    Raises:
        DeviceError, OutOfMemoryError: from the library.
    """

    dtypes: Sequence[str] = tuple(TYPES)
    #: What is found out while it runs, and addresses that are kept, are no part of a graph.
    in_graphs = False
    #: Whether there are matrices without such factors.
    can_fail = True
    #: Whether the last of what was laid out says of matrices that they have no such factors, or none that the library
    #: can be trusted with: it may return an error for what is not finite.
    is_checked = False
    #: Whether cuBLAS is called.
    needs_blas = False

    @classmethod
    def takes(cls, library: Library, call: LibraryCall) -> bool:
        """Whether it is the way for a call."""
        return call.operands[0].dtype in cls.dtypes and not (cls.needs_blas and library.blas is None)

    def __init__(self, library: Library, call: LibraryCall):
        self.library, self.call = library, call
        a = call.operands[0]
        self.m, self.n = a.shape[-2:]
        self.count = count(call)
        self.type, self.letter = TYPES[a.dtype]
        self.element = a.aval.dtype.size
        self.nbytes = self.m * self.n * self.element
        self.workspace = 0
        self._info = self.reserve(4 * self.count)
        driver.enter()
        self.prepare()

    # What ops differ in

    def prepare(self) -> None:
        """Reserve the workspace."""

    def compute(self, at: Places, stream: c_void_p | None) -> None:
        """Start the calls. The library's guard is held."""
        raise NotImplementedError

    # What they share

    @property
    def blas(self) -> Blas:
        assert self.library.blas is not None
        return self.library.blas

    def reserve(self, nbytes: int) -> int:
        """A part of the workspace: how many bytes from its start."""
        start = self.workspace
        self.workspace += -(-max(nbytes, 1) // _ALIGNMENT) * _ALIGNMENT
        return start

    def run(self, addresses: Sequence[int], stream: c_void_p | None = None) -> None:
        """See `smelt.backends.cuda.installed.Plan`."""
        call, (*places, workspace) = self.call, addresses
        first, laid = len(call.operands), len(call.operands) + len(call.results)
        at = Places(places[:first], places[first:laid], [], workspace)
        for operand, place in zip(call.laid_of, places[laid:]):
            if operand is None:
                at.beside.append(place)
            else:
                at.operands[operand] = place
        driver.enter()
        if self.is_checked and self.can_fail and self._is_refused(addresses):
            memory_at(workspace + self._info, 4).write(ctypes.addressof(ctypes.c_int32(1)))
            return
        with self.library.guard:
            self.library.put_on(stream)
            self.compute(at, stream)

    def failed(self, addresses: Sequence[int]) -> bool:
        """See `smelt.backends.cuda.installed.Plan`."""
        if self.can_fail:
            return _any(addresses[-1] + self._info, self.count)
        return self.is_checked and self._is_refused(addresses)

    def _is_refused(self, addresses: Sequence[int]) -> bool:
        return _any(addresses[-2], math.prod(self.call.laid[-1].shape))

    def info(self, at: Places, matrix: int = 0) -> c_void_p:
        """The address of the number that says whether a matrix has factors."""
        return c_void_p(at.workspace + self._info + 4 * matrix)

    def do(self, name: str, *arguments: object) -> None:
        """Call a function whose name has an X."""
        self.library.call(f"cusolverDn{name}", self.library.handle, self.library.options, *arguments)


class PlanOfOne(Plan):
    """Few large matrices, one after the other."""

    #: How many times as large matrices must be to be worth the calls, and how many times fewer.
    scale = 1

    @classmethod
    def takes(cls, library: Library, call: LibraryCall) -> bool:
        least = min(call.operands[0].shape[-2:])
        return super().takes(library, call) and least >= LEAST * cls.scale and count(call) <= MOST // cls.scale

    def size(self, name: str, *arguments: object) -> None:
        """Reserve what a function whose name has an X wants on the GPU and on the host."""
        device, host = c_size_t(), c_size_t()
        self.do(f"{name}_bufferSize", *arguments, ctypes.byref(device), ctypes.byref(host))
        self._area, self._area_bytes = self.reserve(device.value), device
        self._host, self._host_bytes = ctypes.create_string_buffer(max(host.value, 1)), host

    def area(self, at: Places, matrix: int) -> tuple[object, ...]:
        """The last arguments of that function."""
        place = c_void_p(at.workspace + self._area)
        return place, self._area_bytes, self._host, self._host_bytes, self.info(at, matrix)


class PlanOfMany(Plan):
    """Many matrices by one call."""

    #: Rows up to which all batches are taken, and not only those of more matrices than are factored one by one.
    rows = LEAST - 1

    @classmethod
    def takes(cls, library: Library, call: LibraryCall) -> bool:
        rows, matrices = max(call.operands[0].shape[-2:]), count(call)
        several = matrices > 1 and math.prod(call.operands[0].shape[-2:]) * matrices >= LEAST_ELEMENTS
        return super().takes(library, call) and several and rows <= (cls.rows if matrices <= MOST else MOST_ROWS)


class Addresses:
    """Arrays on the GPU with the address of each matrix of a batch. They are kept for the sets of batches that were
    asked for last: results of a program that runs again and again lie in few places.

    Args:
        count: of matrices; steps: for each array of a set, bytes from one to the next.
    """

    def __init__(self, count: int, steps: Sequence[int]):
        self._offsets = np.arange(count, dtype=np.uint64) * np.asarray(steps, np.uint64)[:, None]
        self._memory: driver.Memory | None = None
        self._sets: OrderedDict[tuple[int, ...], int] = OrderedDict()

    def of(self, *starts: int) -> list[c_void_p]:
        """Where the addresses of the matrices of batches lie that begin there."""
        nbytes = self._offsets.nbytes
        if self._memory is None:
            self._memory = driver.Memory(_MOST_SETS * nbytes)
        place = self._sets.pop(starts, None)
        if place is None:
            place = len(self._sets)
            if place == _MOST_SETS:
                _, place = self._sets.popitem(last=False)
            found = self._offsets + np.asarray(starts, np.uint64)[:, None]
            self._memory.write(found.ctypes.data, nbytes, place * nbytes)  # behind what still reads what was there
        self._sets[starts] = place
        step = nbytes // len(starts)
        return [c_void_p(self._memory.address + place * nbytes + i * step) for i in range(len(starts))]

    def __del__(self, is_finalizing: Any = sys.is_finalizing) -> None:
        if not is_finalizing() and getattr(self, "_memory", None) and not driver.is_forked():
            self._memory.free()  # type: ignore[union-attr]


def count(call: LibraryCall) -> int:
    """How many matrices are factored: one, where it is on the left of a whole batch of columns."""
    leads = [x.shape[:-2] for x in call.operands]
    return 1 if math.prod(leads[0]) == 1 else math.prod(broadcast_shapes(*leads))


def joined_columns(call: LibraryCall) -> int:
    """How many columns are on the right of each matrix."""
    b = call.operands[1]
    wide = math.prod(b.shape[:-2]) if count(call) == 1 else 1
    return wide * b.shape[-1]


def number(element: str, value: float) -> Any:
    """A scalar of the host, as cuBLAS takes it."""
    kind = ctypes.c_double if element == "float64" else ctypes.c_float
    return ctypes.byref((kind * 2)(value, 0))


def _any(address: int, length: int) -> bool:
    """Whether any of `length` numbers of int32 is not zero."""
    found = np.empty(length, np.int32)
    driver.fetch(found.ctypes.data, address, found.nbytes)
    return bool(found.any())

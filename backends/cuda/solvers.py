"""Linear algebra by cuSOLVER, matrix by matrix. Numbers are those of ``cusolverDn.h`` and ``library_types.h``.

The library's matrices lie by columns: to it the rows of an array are the columns of the transposed matrix. What
`smelt.backends.gpu.schedules.calls` has not laid out otherwise is asked for of that one.
"""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Iterator, Sequence
from ctypes import c_int64, c_size_t, c_void_p
from typing import Any

from smelt.ir.errors import DeviceError

from ..gpu.library import LibraryCall
from . import driver, libraries
from .libraries import load, opened

#: cudaDataType_t, and the letter of functions for one type.
_TYPES = {"float32": (0, "S"), "float64": (1, "D"), "complex64": (4, "C")}
#: cublasFillMode_t and cublasOperation_t.
_UPPER, _TRANSPOSED = 1, 1
#: Rows and columns from which on a matrix is worth the calls, and matrices that are factored one after the other.
LEAST, MOST = 128, 32
#: What parts of a workspace begin at multiples of.
_ALIGNMENT = 256


class Library(libraries.Library[LibraryCall, "Plan"]):
    """cuSOLVER on the GPU. See `libraries.Library`."""

    create = "cusolverDnCreate"
    exhausted = (2,)

    def __init__(self, library: Any):
        super().__init__(library)
        self.options = c_void_p()
        self.call("cusolverDnCreateParams", ctypes.byref(self.options))

    def _planned(self, call: LibraryCall) -> Plan | None:
        kind, leads = _OPS[call.op], {x.shape[:-2] for x in call.operands}
        if call.operands[0].dtype not in kind.dtypes or len(leads) > 1:
            return None
        if math.prod(*leads) > MOST // kind.scale or min(call.operands[0].shape[-2:]) < LEAST * kind.scale:
            return None
        try:
            return kind(self, call)
        except DeviceError:  # larger than it knows
            return None


class Plan(libraries.Plan):
    """How an op is computed: a subclass for each. Behind the workspace of the library's functions lie arrays that they
    hand to each other, and a number for each matrix, which is not zero where it has no such factors.

    Raises:
        DeviceError, OutOfMemoryError: from the library.
    """

    dtypes: Sequence[str] = tuple(_TYPES)
    in_graphs = False
    #: How many times as large matrices must be to be worth the calls, and how many times fewer.
    scale = 1
    #: The operand that is laid out for the library, if one is.
    lays = 0
    #: Whether there are matrices without such factors.
    can_fail = True

    def __init__(self, library: Library, call: LibraryCall):
        self._library, self._call = library, call
        a = call.operands[0]
        self._count, (self._m, self._n) = math.prod(a.shape[:-2]), a.shape[-2:]
        self._type, self._letter = _TYPES[a.dtype]
        self._real = _TYPES["float64" if a.dtype == "float64" else "float32"][0]
        self._steps = [x.aval.nbytes // self._count for x in (*call.operands, *call.results, call.operands[self.lays])]
        driver.enter()
        sizes = list(self._sizes())
        on_device, on_host = (max(found) for found in zip(*sizes))
        self._host = ctypes.create_string_buffer(max(on_host, 1))
        self._area, self._on_host = _rounded(on_device), c_size_t(on_host)
        self._between = self._area + _rounded(self._extra())
        self.workspace = self._between + _rounded(4 * self._count)

    # What ops differ in

    def _sizes(self) -> Iterator[tuple[int, int]]:
        """Bytes on the GPU and on the host that each of the calls for a matrix wants."""
        raise NotImplementedError

    def _extra(self) -> int:
        """Bytes of the arrays that the calls for a matrix hand to each other."""
        return 0

    def _compute(self, places: list[int], extra: int, stream: c_void_p | None, work: tuple[Any, ...]) -> None:
        """Start the calls for a matrix.

        Args:
            places: addresses of its operands, results, and what has been laid out.
            extra: that of the arrays between the calls.
            work: the last arguments of a call.
        """
        raise NotImplementedError

    # What they share

    def run(self, addresses: Sequence[int], stream: c_void_p | None = None) -> None:
        """See `smelt.backends.cuda.installed.Plan`."""
        library, (*places, workspace) = self._library, addresses
        area = c_void_p(workspace), c_size_t(self._area), self._host, self._on_host
        driver.enter()
        with library.guard:
            library.call("cusolverDnSetStream", library.handle, stream)
            for i in range(self._count):
                at = [place + i * step for place, step in zip(places, self._steps)]
                info = c_void_p(workspace + self._between + 4 * i)
                self._compute(at, workspace + self._area, stream, (*area, info))

    def failed(self, addresses: Sequence[int]) -> bool:
        """See `smelt.backends.cuda.installed.Plan`."""
        if not self.can_fail:
            return False
        found = (ctypes.c_int32 * self._count)()
        driver.fetch(ctypes.addressof(found), addresses[-1] + self._between, ctypes.sizeof(found))
        return any(found)

    def _size(self, name: str, *arguments: object) -> tuple[int, int]:
        device, host = c_size_t(), c_size_t()
        self._do(f"{name}_bufferSize", *arguments, ctypes.byref(device), ctypes.byref(host))
        return device.value, host.value

    def _do(self, name: str, *arguments: object) -> None:
        self._library.call(f"cusolverDn{name}", self._library.handle, self._library.options, *arguments)


def _rounded(nbytes: int) -> int:
    return -(-nbytes // _ALIGNMENT) * _ALIGNMENT


def _at(address: int | None) -> c_void_p:
    return c_void_p(address)


class _Cholesky(Plan):
    """The rows of L are the columns of the upper factor of the transposed matrix."""

    def _arguments(self, a: int | None = None) -> tuple[object, ...]:
        n = c_int64(self._n)
        return _UPPER, n, self._type, _at(a), n, self._type

    def _sizes(self) -> Iterator[tuple[int, int]]:
        yield self._size("Xpotrf", *self._arguments())

    def _compute(self, places: list[int], extra: int, stream: c_void_p | None, work: tuple[Any, ...]) -> None:
        _, out, laid = places
        driver.copy(out, laid, self._steps[1], stream)
        self._do("Xpotrf", *self._arguments(out), *work)


class _Solve(Plan):
    """By LU factors of the transposed matrix, of which the transposed one is wanted."""

    lays = 1

    def _arguments(self, a: int | None = None, pivots: int | None = None) -> tuple[object, ...]:
        n = c_int64(self._n)
        return n, n, self._type, _at(a), n, *([] if a is None else [_at(pivots)]), self._type

    def _sizes(self) -> Iterator[tuple[int, int]]:
        yield self._size("Xgetrf", *self._arguments())

    def _extra(self) -> int:
        return _rounded(self._steps[0]) + 8 * self._n

    def _compute(self, places: list[int], extra: int, stream: c_void_p | None, work: tuple[Any, ...]) -> None:
        a, b, out, *laid = places
        pivots = extra + _rounded(self._steps[0])
        driver.copy(extra, a, self._steps[0], stream)
        driver.copy(out, laid[0] if laid else b, self._steps[2], stream)
        self._do("Xgetrf", *self._arguments(extra, pivots), *work)
        n, k = c_int64(self._n), c_int64(self._call.operands[1].shape[-1])
        factors = _TRANSPOSED, n, k, self._type, _at(extra), n, _at(pivots)
        # The last argument is a number that says nothing: whose arguments are wrong.
        self._do("Xgetrs", *factors, self._type, _at(out), n, _at(pivots + 8 * self._n))


class _Qr(Plan):
    """R is what the first call leaves of the matrix above its diagonal, Q the product of what lies below."""

    can_fail = False

    def __init__(self, library: Library, call: LibraryCall):
        super().__init__(library, call)
        self._steps[2] = self._steps[0]  # R is made of all that the first call leaves

    def _arguments(self, a: int | None = None, turns: int | None = None) -> tuple[object, ...]:
        m, n = c_int64(self._m), c_int64(self._n)
        return m, n, self._type, _at(a), m, self._type, _at(turns), self._type

    def _products(self, q: int | None = None, turns: int | None = None) -> tuple[object, ...]:
        m, k = self._m, min(self._m, self._n)
        return self._library.handle, m, k, k, _at(q), m, _at(turns)

    @property
    def _name(self) -> str:
        return f"cusolverDn{self._letter}{'ungqr' if self._letter == 'C' else 'orgqr'}"

    def _sizes(self) -> Iterator[tuple[int, int]]:
        yield self._size("Xgeqrf", *self._arguments())
        length = ctypes.c_int()
        self._library.call(f"{self._name}_bufferSize", *self._products(), ctypes.byref(length))
        self._length = length.value
        yield length.value * self._element, 0

    @property
    def _element(self) -> int:
        return self._steps[0] // (self._m * self._n)

    def _extra(self) -> int:
        return self._element * min(self._m, self._n)

    def _compute(self, places: list[int], extra: int, stream: c_void_p | None, work: tuple[Any, ...]) -> None:
        _, q, r, laid = places
        self._do("Xgeqrf", *self._arguments(laid, extra), *work)
        driver.copy(r, laid, self._steps[0], stream)
        driver.copy(q, laid, self._steps[1], stream)
        self._library.call(self._name, *self._products(q, extra), work[0], self._length, work[-1])


class _Eigh(Plan):
    """What lies below the diagonal lies above that of the transposed matrix, whose eigenvectors are the same."""

    dtypes = ("float32", "float64")

    def _arguments(self, a: int | None = None, w: int | None = None) -> tuple[object, ...]:
        n, vectors = c_int64(self._n), int(len(self._call.results) == 2)
        return vectors, _UPPER, n, self._type, _at(a), n, self._real, _at(w), self._type

    def _sizes(self) -> Iterator[tuple[int, int]]:
        yield self._size("Xsyevd", *self._arguments())

    def _extra(self) -> int:
        return self._steps[0]

    def _compute(self, places: list[int], extra: int, stream: c_void_p | None, work: tuple[Any, ...]) -> None:
        a, w, *vectors = places
        (found,) = vectors[:1] or [extra]
        driver.copy(found, a, self._steps[0], stream)
        self._do("Xsyevd", *self._arguments(found, w), *work)


class _Svd(Plan):
    """Of a matrix that is no wider than high, or of the transposed one, whose factors change places."""

    dtypes = ("float32", "float64")
    scale = 4  # of 512 rows it takes as long as LAPACK on sixteen cores

    def _arguments(self, a: int | None = None, s: int | None = None, left: int | None = None, right: int | None = None
    ) -> tuple[object, ...]:  # fmt: skip
        m, n = (c_int64(x) for x in sorted((self._m, self._n), reverse=True))
        full = dict(self._call.attributes).get("full", False)
        job = ctypes.c_char(b"N" if len(self._call.results) == 1 else b"A" if full else b"S")
        return (
            job, job, m, n, self._type, _at(a), m, self._real, _at(s), self._type, _at(left), m, self._type, _at(right),
            n, self._type,
        )  # fmt: skip

    def _sizes(self) -> Iterator[tuple[int, int]]:
        yield self._size("Xgesvd", *self._arguments())

    def _extra(self) -> int:
        return self._steps[0]

    def _compute(self, places: list[int], extra: int, stream: c_void_p | None, work: tuple[Any, ...]) -> None:
        a, *found = places
        results, laid = found[: len(self._call.results)], found[len(self._call.results) :]
        driver.copy(extra, laid[0] if laid else a, self._steps[0], stream)
        if len(results) == 1:
            self._do("Xgesvd", *self._arguments(extra, *results), *work)
            return
        u, s, vt = results
        left, right = (u, vt) if laid else (vt, u)
        self._do("Xgesvd", *self._arguments(extra, s, left, right), *work)


#: By op what plans it.
_OPS: dict[str, type[Plan]] = {
    "cholesky": _Cholesky, "solve": _Solve, "qr": _Qr, "eigh": _Eigh, "eigvalsh": _Eigh, "svd": _Svd,
    "singular_values": _Svd,
}  # fmt: skip
OPS = tuple(_OPS)


@functools.cache
def library() -> Library | None:
    """cuSOLVER; None where it is not installed, or does not work with the driver."""
    for needed in ("nvJitLink", "cublasLt", "cublas", "cusparse"):  # which it loads
        load(needed)
    return opened(Library, load("cusolver"))

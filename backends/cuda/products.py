"""Matrix products by cuBLASLt: from the strides of a `MatrixProduct` to its descriptors.

The library's matrices are column-major, and bias runs down a column. So where neighbours of the result lie across, the
transposed product is asked for: ``outᵀ = rhsᵀ · lhsᵀ``. Numbers are those of ``cublasLt.h``, ``cublas_api.h`` and
``library_types.h``.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from smelt.ir.errors import SmeltError

from ..gpu.library import Matrix, MatrixProduct, Tensor
from . import driver, libraries
from .launches import PRODUCT, Place
from .libraries import load, opened

#: cudaDataType_t.
_TYPES = {"float32": 0, "float64": 1, "float16": 2, "complex64": 4, "bfloat16": 14}
#: Types of the operands, and of the result.
_KINDS = [({x}, {x}) for x in _TYPES] + [({x}, {"float32"}) for x in ("float16", "bfloat16")]
#: cublasComputeType_t, and the type of alpha and beta, by the type of the result.
_SINGLE, _DOUBLE, _TF32 = 68, 70, 77
#: cublasLtMatmulDescAttributes_t.
_TRANSPOSE_A, _TRANSPOSE_B, _EPILOGUE, _BIAS = 3, 4, 7, 8
#: cublasLtMatrixLayoutAttribute_t.
_BATCH_COUNT, _BATCH_STRIDE = 5, 6
#: cublasLtMatmulPreferenceAttributes_t; the first of four for the alignments of A, B, C and D.
_WORKSPACE, _REDUCTIONS, _ALIGNMENT = 1, 3, 5
#: cublasLtEpilogue_t.
_NO_EPILOGUE, _ADDS_BIAS, _ACTIVATIONS = 1, 4, {"": 0, "relu": 2, "gelu": 32}
#: cublasLtReductionScheme_t: parts of sums are added in the type of computation, not in that of the result.
_IN_COMPUTE_TYPE = 2
#: Bytes that all products share: they run one after the other.
WORKSPACE_BYTES = 32 << 20
#: Bytes of which the addresses of buffers are multiples.
ALIGNMENT = 16


class _Heuristic(ctypes.Structure):
    """cublasLtMatmulHeuristicResult_t."""

    _fields_ = [
        ("algorithm", ctypes.c_uint64 * 8),
        ("workspace", ctypes.c_size_t),
        ("state", ctypes.c_int),
        ("waves", ctypes.c_float),
        ("reserved", ctypes.c_int * 4),
    ]


class Side(NamedTuple):
    """A matrix as it is stored, column-major.

    Attributes:
        rows, columns: of what is stored.
        lead: elements from column to column.
        transposed: whether the product takes it transposed.
    """

    rows: int
    columns: int
    lead: int
    transposed: bool


def stored(rows: int, columns: int, down: int, across: int) -> Side | None:
    """How a matrix lies whose neighbours are so far apart; None where neither lie next to each other."""
    if down == 1 or rows == 1:
        lead = across if columns > 1 else rows
        if lead >= rows:
            return Side(rows, columns, lead, False)
    if across == 1 or columns == 1:
        lead = down if rows > 1 else columns
        if lead >= columns:
            return Side(columns, rows, lead, True)
    return None


class Placed(NamedTuple):
    """A matrix of a product, and how it is stored."""

    matrix: Matrix
    side: Side


def placed(product: MatrixProduct) -> list[Placed] | None:
    """A, B, C and D of cuBLASLt for a product; None where it has no form for it."""
    m, n, k, bias = product.rows, product.columns, product.depth, product.bias

    def find(matrix: Matrix, rows: int, columns: int, is_turned: bool) -> Placed | None:
        _, down, across = matrix.strides
        form = (columns, rows, across, down) if is_turned else (rows, columns, down, across)
        side = stored(*form)
        return None if side is None else Placed(matrix, side)

    for is_turned in (True, False):  # outᵀ = rhsᵀ · lhsᵀ, or as it stands
        if bias is not None and bias.strides != ((0, 0, 1) if is_turned else (0, 1, 0)):
            continue
        lhs, rhs = find(product.lhs, m, k, is_turned), find(product.rhs, k, n, is_turned)
        c, d = (find(matrix, m, n, is_turned) for matrix in (product.addend or product.out, product.out))
        found = [x for x in ((rhs, lhs, c, d) if is_turned else (lhs, rhs, c, d)) if x is not None]
        if len(found) == 4 and not any(x.side.transposed for x in found[2:]):
            return found
    return None


class Library(libraries.Library[MatrixProduct, "Plan"]):
    """cuBLASLt on the GPU. See `libraries.Library`."""

    create = "cublasLtCreate"
    describe = "cublasLtGetStatusString"
    exhausted = (3,)

    def __init__(self, library: Any):
        super().__init__(library)
        self._memory: driver.Memory | None = None
        self._workspace: ctypes.c_void_p | None = None

    def _planned(self, product: MatrixProduct) -> Plan | None:
        operands = {product.lhs.dtype, product.rhs.dtype}
        results = {m.dtype for m in (product.out, product.addend, product.bias) if m is not None}
        found = placed(product)
        if found is None or (operands, results) not in _KINDS:
            return None
        plan = Plan(self, product, found)
        return plan if plan.has_algorithm else None

    def workspace(self) -> ctypes.c_void_p:
        """The address of the memory that products share: whoever puts one on the stream holds `guard`, for one may be
        several kernels, between which no other may write there."""
        if self._workspace is None:
            with self.guard:
                if self._memory is None:
                    self._memory = driver.Memory(WORKSPACE_BYTES)
                self._workspace = ctypes.c_void_p(self._memory.address)
        return self._workspace


class Plan(libraries.Plan):
    """A product's descriptors and algorithm.

    Attributes:
        has_algorithm: whether the library has one.
    """

    def __init__(self, library: Library, product: MatrixProduct, found: Sequence[Placed]):
        self._library, self._product = library, product
        self._keep: list[tuple[str, ctypes.c_void_p]] = []
        dtype = product.out.dtype
        compute = _DOUBLE if dtype == "float64" else _TF32 if product.tf32 else _SINGLE
        scale = dtype if dtype in ("float64", "complex64") else "float32"
        number = ctypes.c_double if scale == "float64" else ctypes.c_float
        self._alpha, self._beta = (number * 2)(product.alpha, 0), (number * 2)(product.addend is not None, 0)
        self._nbytes = ctypes.c_size_t(WORKSPACE_BYTES)
        self._at = [place(matrix) for matrix, _ in found]
        self._bias = None if product.bias is None else place(product.bias)
        self._operation = self._make("cublasLtMatmulDesc", compute, _TYPES[scale])
        for attribute, (_, side) in zip((_TRANSPOSE_A, _TRANSPOSE_B), found):
            self._set(self._operation, attribute, ctypes.c_int32(side.transposed))
        epilogue = _ACTIVATIONS[product.activation] | (_ADDS_BIAS if product.bias is not None else 0)
        self._set(self._operation, _EPILOGUE, ctypes.c_uint32(epilogue or _NO_EPILOGUE))
        if self._bias is not None:  # an address of which only the alignment counts
            self._set(self._operation, _BIAS, ctypes.c_void_p((1 << 20) + self._bias[1]))
        self._layouts = [self._layout(matrix, side) for matrix, side in found]
        best = self._algorithm()
        self._best, self.has_algorithm = best or _Heuristic(), best is not None

    def _make(self, kind: str, *arguments: Any) -> ctypes.c_void_p:
        made = ctypes.c_void_p()
        self._library.call(f"{kind}Create", ctypes.byref(made), *arguments)
        self._keep.append((f"{kind}Destroy", made))
        return made

    def _set(self, descriptor: ctypes.c_void_p, attribute: int, value: Any, of: str = "cublasLtMatmulDesc") -> None:
        size = ctypes.c_size_t(ctypes.sizeof(value))
        self._library.call(f"{of}SetAttribute", descriptor, attribute, ctypes.byref(value), size)

    def _layout(self, matrix: Matrix, side: Side) -> ctypes.c_void_p:
        extents = ctypes.c_uint64(side.rows), ctypes.c_uint64(side.columns), ctypes.c_int64(side.lead)
        made = self._make("cublasLtMatrixLayout", _TYPES[matrix.dtype], *extents)
        if self._product.batch > 1:
            self._set(made, _BATCH_COUNT, ctypes.c_int32(self._product.batch), "cublasLtMatrixLayout")
            self._set(made, _BATCH_STRIDE, ctypes.c_int64(matrix.strides[0]), "cublasLtMatrixLayout")
        return made

    def _algorithm(self) -> _Heuristic | None:
        preference, of = self._make("cublasLtMatmulPreference"), "cublasLtMatmulPreference"
        self._set(preference, _WORKSPACE, ctypes.c_size_t(WORKSPACE_BYTES), of)
        self._set(preference, _REDUCTIONS, ctypes.c_uint32(_IN_COMPUTE_TYPE), of)
        for i, (_, offset) in enumerate(self._at):
            aligned = ctypes.c_uint32(alignment(offset))
            self._set(preference, _ALIGNMENT + i, aligned, of)
        best, count = _Heuristic(), ctypes.c_int()
        code = self._library.status(
            "cublasLtMatmulAlgoGetHeuristic", self._library.handle, self._operation, *self._layouts, preference, 1,
            ctypes.byref(best), ctypes.byref(count),
        )  # fmt: skip
        return best if not code and count.value and not best.state else None

    def run(self, addresses: Sequence[int], stream: ctypes.c_void_p | None = None) -> None:
        """Makes the product of buffers, without waiting.

        Args:
            addresses: of the buffers.
            stream: None: that of all launches.

        Raises:
            DeviceError, OutOfMemoryError: from the library.
        """
        driver.enter()
        a, b, c, d = [ctypes.c_void_p(addresses[buffer] + offset) for buffer, offset in self._at]
        with self._library.guard:
            if self._bias is not None:  # its address is part of the descriptor
                buffer, offset = self._bias
                self._set(self._operation, _BIAS, ctypes.c_void_p(addresses[buffer] + offset))
            self._call(a, b, c, d, stream)

    def _call(
        self, a: ctypes.c_void_p, b: ctypes.c_void_p, c: ctypes.c_void_p, d: ctypes.c_void_p,
        stream: ctypes.c_void_p | None,
    ) -> None:  # fmt: skip
        of_a, of_b, of_c, of_d = self._layouts
        self._library.call(
            "cublasLtMatmul", self._library.handle, self._operation, ctypes.byref(self._alpha), a, of_a, b, of_b,
            ctypes.byref(self._beta), c, of_c, d, of_d, ctypes.byref(self._best), self._library.workspace(),
            self._nbytes, stream,
        )  # fmt: skip

    def words(self) -> list[int] | None:
        """See `launches.Step`. None where the address of a bias is part of the descriptor."""
        if self._bias is not None:
            return None
        alpha, beta, best = map(ctypes.addressof, (self._alpha, self._beta, self._best))
        handles = (self._library.handle, self._operation, *self._layouts, self._library.workspace())
        handle, operation, of_a, of_b, of_c, of_d, workspace = (h.value or 0 for h in handles)
        function = self._library.address("cublasLtMatmul")
        return [
            PRODUCT, function, handle, operation, alpha, of_a, of_b, beta, of_c, of_d, best, workspace, WORKSPACE_BYTES
        ]  # fmt: skip

    def places(self, given: Sequence[Place]) -> list[Place]:
        """See `launches.Step`: those of A, B, C and D."""
        return [(given[buffer][0], given[buffer][1] + offset) for buffer, offset in self._at]

    @property
    def guard(self) -> AbstractContextManager[Any]:
        """See `launches.ProductStep`."""
        guard: AbstractContextManager[Any] = self._library.guard
        return guard

    def error(self, code: int) -> SmeltError:
        """See `launches.ProductStep`."""
        return self._library.error("cublasLtMatmul", code)

    def __del__(self, is_finalizing: Any = sys.is_finalizing) -> None:
        if is_finalizing() or driver.is_forked():
            return
        for name, descriptor in getattr(self, "_keep", ()):
            self._library.status(name, descriptor)


def place(matrix: Matrix | Tensor) -> tuple[int, int]:
    """Which buffer a matrix is in, and how many bytes from its start."""
    return matrix.buffer, matrix.offset * {"float16": 2, "bfloat16": 2, "float32": 4}.get(matrix.dtype, 8)


def alignment(offset: int) -> int:
    """The largest power of two, up to `ALIGNMENT`, that a place at an offset in a buffer is aligned to."""
    return offset & -offset if 0 < offset & -offset < ALIGNMENT else ALIGNMENT


@functools.cache
def library() -> Library | None:
    """cuBLASLt; None where it is not installed, or does not work with the driver."""
    return opened(Library, load("cublasLt"))

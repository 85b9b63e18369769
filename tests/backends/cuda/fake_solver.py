"""cuSOLVER and cuBLAS without a GPU: the functions that smelt calls, by SciPy's LAPACK, from what they are given.

Numbers are those of NVIDIA's headers, written down apart from smelt's.
"""

from __future__ import annotations

import ctypes
import itertools
from typing import Any

import numpy as np
from scipy.linalg import get_lapack_funcs

from .fake_driver import FakeDriver

SUCCESS, ALLOC_FAILED, INVALID_VALUE, EXECUTION_FAILED = 0, 2, 3, 6
#: cudaDataType_t.
DTYPES: dict[int, Any] = {0: np.float32, 1: np.float64, 4: np.complex64}
UPPER, TRANSPOSED = 1, 1
#: Bytes that every function uses besides, on the GPU and on the host.
AREA, ON_HOST = 512, 16


class _Fake:
    """What both have in common. `done`: the functions that computed, in order; `fails`: what they return instead."""

    def __init__(self, driver: FakeDriver, done: list[str]):
        self.driver, self.done = driver, done
        self.fails = 0

    def _array(self, place: Any, dtype: Any, rows: int, columns: int = 1, lead: int | None = None) -> np.ndarray:
        """A matrix by columns, a view of the GPU's memory. place: its address, or a pointer."""
        dtype, address = np.dtype(dtype), place if isinstance(place, int) else place.value
        assert isinstance(place, int | ctypes.c_void_p), "an address that is given as a number is cut to 32 bits"
        found, lead = self.driver._find(address), rows if lead is None else lead
        nbytes = ((columns - 1) * lead + rows) * dtype.itemsize
        assert lead >= rows and found is not None and nbytes <= found[1], "the function reaches beyond its memory"
        memory = np.frombuffer((ctypes.c_char * nbytes).from_address(found[0]), dtype)
        return np.lib.stride_tricks.as_strided(memory, (rows, columns), (dtype.itemsize, lead * dtype.itemsize))

    def _each(self, places: Any, count: int) -> list[int]:
        """The addresses in an array of the GPU."""
        return [int(x) for x in self._array(places, np.uint64, count)[:, 0]]

    def _says(self, info: Any, number: int) -> int:
        self._array(info, np.int32, 1)[...] = number
        return SUCCESS


class FakeSolver(_Fake):
    """Attributes:
    without: matrices with more rows are too large.
    most: matrices that `XsyevBatched` takes at once.
    fails: what functions return instead of computing.
    diverges: what iterations for singular values say of themselves: 0, or that they have not converged.
    jacobi: by the number of options of Jacobi's method what they were set to.
    """

    def __init__(self, driver: FakeDriver):
        super().__init__(driver, [])
        self.without, self.most, self.diverges = 1 << 30, 32768, 0
        self.jacobi: dict[int, dict[str, float]] = {}
        self._numbers = itertools.count(403)
        self.blas = FakeBlas(driver, self.done)

    def cusolverDnCreate(self, handle: Any) -> int:
        handle._obj.value = 400
        return SUCCESS

    def cusolverDnCreateParams(self, options: Any) -> int:
        options._obj.value = 401
        return SUCCESS

    def cusolverDnSetStream(self, handle: Any, stream: Any) -> int:
        assert handle.value == 400 and stream is None
        return SUCCESS

    # What is asked

    def _begins(self, name: str, handle: Any, options: Any) -> int:
        assert (handle.value, options.value) == (400, 401)
        self.done.append(name)
        return self.fails

    def _sizes(self, rows: Any, on_device: Any, on_host: Any) -> int:
        if rows.value > self.without:
            return INVALID_VALUE
        on_device._obj.value, on_host._obj.value = AREA, ON_HOST
        return SUCCESS

    def _works(self, area: Any, nbytes: Any, host: Any, host_bytes: Any) -> bool:
        found = self.driver._find(area.value)
        whole = found is not None and found[1] >= AREA and nbytes.value >= AREA
        return whole and host_bytes.value >= ON_HOST and len(host) >= ON_HOST

    # Cholesky

    def cusolverDnXpotrf_bufferSize(
        self, handle: Any, options: Any, uplo: int, n: Any, kind: int, a: Any, lda: Any, compute: int, *sizes: Any
    ) -> int:
        assert isinstance(n, ctypes.c_int64) and kind == compute
        return self._sizes(n, *sizes)

    def cusolverDnXpotrf(
        self, handle: Any, options: Any, uplo: int, n: Any, kind: int, a: Any, lda: Any, compute: int, *work: Any
    ) -> int:
        if code := self._begins("potrf", handle, options):
            return code
        assert uplo == UPPER and self._works(*work[:4])
        x = self._array(a, DTYPES[kind], n.value, n.value, lda.value)
        factor, info = get_lapack_funcs("potrf", (x,))(np.triu(x), lower=False, clean=False)
        above = np.triu_indices(n.value)
        x[above] = factor[above]
        return self._says(work[4], info)

    def _potrf_batched(self, kind: Any, handle: Any, uplo: int, n: int, a: Any, lda: int, info: Any, count: int) -> int:
        self.done.append("potrfBatched")
        assert handle.value == 400 and uplo == UPPER
        for i, place in enumerate(self._each(a, count)):
            x = self._array(place, kind, n, n, lda)
            factor, found = get_lapack_funcs("potrf", (x,))(np.triu(x), lower=False, clean=False)
            x[np.triu_indices(n)] = factor[np.triu_indices(n)]
            self._array(info, np.int32, count)[i] = found
        return self.fails

    # Factors of LU

    def _getrf_size(self, handle: Any, m: int, n: int, a: Any, lda: int, length: Any) -> int:
        length._obj.value = 64
        return INVALID_VALUE if m > self.without else SUCCESS

    def _getrf(
        self, kind: Any, handle: Any, m: int, n: int, a: Any, lda: int, area: Any, pivots: Any, info: Any
    ) -> int:  # fmt: skip
        self.done.append("getrf32")
        self._array(area, kind, 64)[...] = np.nan
        x = self._array(a, kind, m, n, lda)
        x[...], found, number = get_lapack_funcs("getrf", (x,))(x)
        self._array(pivots, np.int32, min(m, n))[:, 0] = found + 1
        return self._says(info, number)

    def cusolverDnSlaswp(self, handle: Any, n: int, a: Any, lda: int, k1: int, k2: int, pivots: Any, step: int) -> int:
        self.done.append("laswp")
        assert (k1, step) == (1, 1)
        x, found = self._array(a, np.float32, lda, n), self._array(pivots, np.int32, k2)[:, 0] - 1
        for i, p in enumerate(found):
            x[[i, p]] = x[[p, i]]
        return SUCCESS

    # Solutions

    def cusolverDnXgetrf_bufferSize(
        self, handle: Any, options: Any, m: Any, n: Any, kind: int, a: Any, lda: Any, compute: int, *sizes: Any
    ) -> int:
        return self._sizes(m, *sizes)

    def cusolverDnXgetrf(
        self, handle: Any, options: Any, m: Any, n: Any, kind: int, a: Any, lda: Any, pivots: Any, compute: int,
        *work: Any,
    ) -> int:  # fmt: skip
        if code := self._begins("getrf", handle, options):
            return code
        assert self._works(*work[:4])
        x = self._array(a, DTYPES[kind], m.value, n.value, lda.value)
        factors, found, info = get_lapack_funcs("getrf", (x,))(x)
        x[...] = factors
        self._array(pivots, np.int64, min(m.value, n.value))[:, 0] = found + 1
        return self._says(work[4], info)

    def cusolverDnXgetrs(
        self, handle: Any, options: Any, trans: int, n: Any, k: Any, kind: int, a: Any, lda: Any, pivots: Any,
        kind_b: int, b: Any, ldb: Any, info: Any,
    ) -> int:  # fmt: skip
        if code := self._begins("getrs", handle, options):
            return code
        x = self._array(a, DTYPES[kind], n.value, n.value, lda.value)
        y = self._array(b, DTYPES[kind_b], n.value, k.value, ldb.value)
        found = self._array(pivots, np.int64, n.value)[:, 0] - 1
        y[...] = get_lapack_funcs("getrs", (x,))(x, found.astype(np.int32), y, trans=int(trans == TRANSPOSED))[0]
        return self._says(info, 0)

    # QR

    def cusolverDnXgeqrf_bufferSize(
        self, handle: Any, options: Any, m: Any, n: Any, kind: int, a: Any, lda: Any, kind_tau: int, tau: Any,
        compute: int, *sizes: Any,
    ) -> int:  # fmt: skip
        return self._sizes(m, *sizes)

    def cusolverDnXgeqrf(
        self, handle: Any, options: Any, m: Any, n: Any, kind: int, a: Any, lda: Any, kind_tau: int, tau: Any,
        compute: int, *work: Any,
    ) -> int:  # fmt: skip
        if code := self._begins("geqrf", handle, options):
            return code
        assert self._works(*work[:4])
        x = self._array(a, DTYPES[kind], m.value, n.value, lda.value)
        factors, turns, _, info = get_lapack_funcs("geqrf", (x,))(x)
        x[...] = factors
        self._array(tau, DTYPES[kind_tau], min(m.value, n.value))[:, 0] = turns
        return self._says(work[4], info)

    def _products_size(self, handle: Any, m: int, n: int, k: int, a: Any, lda: int, tau: Any, length: Any) -> int:
        length._obj.value = 64
        return SUCCESS

    def _products(
        self, kind: Any, handle: Any, m: int, n: int, k: int, a: Any, lda: int, tau: Any, area: Any, length: int,
        info: Any,
    ) -> int:  # fmt: skip
        self.done.append("orgqr")
        assert length == 64 and self.driver._find(area.value) is not None
        x = self._array(a, kind, m, n, lda)
        name = "ungqr" if np.dtype(kind).kind == "c" else "orgqr"
        x[...] = get_lapack_funcs(name, (x,))(x, self._array(tau, kind, k)[:, 0])[0]
        return self._says(info, 0)

    cusolverDnSorgqr_bufferSize = cusolverDnDorgqr_bufferSize = cusolverDnCungqr_bufferSize = _products_size

    def cusolverDnSorgqr(self, *arguments: Any) -> int:
        return self._products(np.float32, *arguments)

    def cusolverDnDorgqr(self, *arguments: Any) -> int:
        return self._products(np.float64, *arguments)

    def cusolverDnCungqr(self, *arguments: Any) -> int:
        return self._products(np.complex64, *arguments)

    # Eigenvalues and singular values

    def cusolverDnXsyevd_bufferSize(
        self, handle: Any, options: Any, job: int, uplo: int, n: Any, kind: int, a: Any, lda: Any, kind_w: int, w: Any,
        compute: int, *sizes: Any,
    ) -> int:  # fmt: skip
        return self._sizes(n, *sizes)

    def cusolverDnXsyevd(
        self, handle: Any, options: Any, job: int, uplo: int, n: Any, kind: int, a: Any, lda: Any, kind_w: int, w: Any,
        compute: int, *work: Any,
    ) -> int:  # fmt: skip
        if code := self._begins("syevd", handle, options):
            return code
        assert uplo == UPPER and self._works(*work[:4])
        x, values = self._array(a, DTYPES[kind], n.value, n.value, lda.value), self._array(w, DTYPES[kind_w], n.value)
        if np.isnan(x).any():
            return EXECUTION_FAILED
        found, vectors = np.linalg.eigh(x, UPLO="U")
        values[:, 0] = found
        x[...] = vectors if job else np.nan
        return self._says(work[4], 0)

    def cusolverDnXgesvd_bufferSize(self, handle: Any, options: Any, job_u: Any, job_v: Any, m: Any, *rest: Any) -> int:
        return self._sizes(m, *rest[-2:])

    def cusolverDnXgesvd(
        self, handle: Any, options: Any, job_u: Any, job_v: Any, m: Any, n: Any, kind: int, a: Any, lda: Any,
        kind_s: int, s: Any, kind_u: int, u: Any, ldu: Any, kind_v: int, vt: Any, ldvt: Any, compute: int, *work: Any,
    ) -> int:  # fmt: skip
        if code := self._begins("gesvd", handle, options):
            return code
        if m.value < n.value or job_u.value != job_v.value:
            return INVALID_VALUE
        assert self._works(*work[:4])
        x, values = self._array(a, DTYPES[kind], m.value, n.value, lda.value), self._array(s, DTYPES[kind_s], n.value)
        if np.isnan(x).any():
            return EXECUTION_FAILED
        left, found, right = np.linalg.svd(x, full_matrices=job_u.value == b"A")
        values[:, 0], x[...] = found, np.nan
        if job_u.value != b"N":
            self._array(u, DTYPES[kind_u], *left.shape, ldu.value)[...] = left
            self._array(vt, DTYPES[kind_v], *right.shape, ldvt.value)[...] = right
        return self._says(work[4], self.diverges)

    def cusolverDnXsyevBatched_bufferSize(
        self, handle: Any, options: Any, job: int, uplo: int, n: Any, kind: int, a: Any, lda: Any, kind_w: int, w: Any,
        compute: int, on_device: Any, on_host: Any, count: Any,
    ) -> int:  # fmt: skip
        assert isinstance(count, ctypes.c_int64) and count.value <= self.most
        return self._sizes(n, on_device, on_host)

    def cusolverDnXsyevBatched(
        self, handle: Any, options: Any, job: int, uplo: int, n: Any, kind: int, a: Any, lda: Any, kind_w: int, w: Any,
        compute: int, area: Any, nbytes: Any, host: Any, host_bytes: Any, info: Any, count: Any,
    ) -> int:  # fmt: skip
        if code := self._begins("syevBatched", handle, options):
            return code
        assert uplo == UPPER and self._works(area, nbytes, host, host_bytes)
        rows, matrices = n.value, self._array(a, DTYPES[kind], n.value, n.value * count.value)
        if count.value > self.most or not np.isfinite(matrices).all():
            return INVALID_VALUE
        values = self._array(w, DTYPES[kind], rows, count.value)
        self._array(info, np.int32, count.value)[...] = 0
        for i in range(count.value):
            x = matrices[:, i * rows : (i + 1) * rows]
            values[:, i], vectors = np.linalg.eigh(x, UPLO="U")
            x[...] = vectors if job else np.nan
        return SUCCESS

    def cusolverDnCreateGesvdjInfo(self, options: Any) -> int:
        options._obj.value = next(self._numbers)
        self.jacobi[options._obj.value] = {}
        return SUCCESS

    def cusolverDnDestroyGesvdjInfo(self, options: Any) -> int:
        del self.jacobi[options.value]
        return SUCCESS

    def cusolverDnXgesvdjSetTolerance(self, options: Any, tolerance: Any) -> int:
        assert isinstance(tolerance, ctypes.c_double)
        self.jacobi[options.value]["tolerance"] = tolerance.value
        return SUCCESS

    def cusolverDnXgesvdjSetMaxSweeps(self, options: Any, sweeps: int) -> int:
        self.jacobi[options.value]["sweeps"] = sweeps
        return SUCCESS

    def _gesvdj_batched_size(
        self, handle: Any, job: int, m: int, n: int, a: Any, lda: int, s: Any, u: Any, ldu: int, v: Any, ldv: int,
        length: Any, options: Any, count: int,
    ) -> int:  # fmt: skip
        length._obj.value = 64
        return SUCCESS

    def _gesvdj_batched(
        self, kind: Any, handle: Any, job: int, m: int, n: int, a: Any, lda: int, s: Any, u: Any, ldu: int, v: Any,
        ldv: int, area: Any, length: int, info: Any, options: Any, count: int,
    ) -> int:  # fmt: skip
        self.done.append("gesvdjBatched")
        assert (lda, ldu, ldv, length) == (m, m, n, 64) and max(m, n) <= 32
        assert self.jacobi[options.value] == {"tolerance": np.finfo(kind).eps, "sweeps": 400}
        self._array(area, kind, 64)[...] = np.nan
        x, values = self._array(a, kind, m, n * count), self._array(s, kind, min(m, n), count)
        lefts, rights = self._array(u, kind, m, m * count), self._array(v, kind, n, n * count)
        if not np.isfinite(x).all():
            return EXECUTION_FAILED
        for i in range(count):
            left, values[:, i], right = np.linalg.svd(x[:, i * n : (i + 1) * n])
            lefts[:, i * m : (i + 1) * m], rights[:, i * n : (i + 1) * n] = left, right.T
        x[...] = np.nan
        self._array(info, np.int32, count)[...] = self.diverges
        return SUCCESS


class FakeBlas(_Fake):
    """cuBLAS."""

    def cublasCreate_v2(self, handle: Any) -> int:
        handle._obj.value = 500
        return SUCCESS

    def cublasSetStream_v2(self, handle: Any, stream: Any) -> int:
        assert handle.value == 500 and stream is None
        return SUCCESS

    def _getrf_batched(
        self, kind: Any, handle: Any, n: int, a: Any, lda: int, pivots: Any, info: Any, count: int
    ) -> int:
        self.done.append("getrfBatched")
        for i, place in enumerate(self._each(a, count)):
            x = self._array(place, kind, n, n, lda)
            x[...], found, number = get_lapack_funcs("getrf", (x,))(x)
            self._array(pivots, np.int32, n, count)[:, i] = found + 1
            self._array(info, np.int32, count)[i] = number
        return self.fails

    def _getrs_batched(
        self, kind: Any, handle: Any, trans: int, n: int, k: int, a: Any, lda: int, pivots: Any, b: Any, ldb: int,
        info: Any, count: int,
    ) -> int:  # fmt: skip
        self.done.append("getrsBatched")
        for i, (left, right) in enumerate(zip(self._each(a, count), self._each(b, count))):
            x, y = self._array(left, kind, n, n, lda), self._array(right, kind, n, k, ldb)
            found = self._array(pivots, np.int32, n, count)[:, i] - 1
            y[...] = get_lapack_funcs("getrs", (x,))(x, found, y, trans=int(trans == TRANSPOSED))[0]
        info._obj.value = 0  # of the host
        return SUCCESS

    def _getri_batched(
        self, kind: Any, handle: Any, n: int, a: Any, lda: int, pivots: Any, c: Any, ldc: int, info: Any, count: int
    ) -> int:
        self.done.append("getriBatched")
        for i, (left, right) in enumerate(zip(self._each(a, count), self._each(c, count))):
            x, found = self._array(left, kind, n, n, lda), self._array(pivots, np.int32, n, count)[:, i] - 1
            inverse, number = get_lapack_funcs("getri", (x,))(x, found)
            self._array(right, kind, n, n, ldc)[...] = inverse
            self._array(info, np.int32, count)[i] = number
        return SUCCESS

    def _matinv_batched(
        self, kind: Any, handle: Any, n: int, a: Any, lda: int, c: Any, ldc: int, info: Any, count: int
    ) -> int:
        self.done.append("matinvBatched")
        assert n <= 32
        for i, (left, right) in enumerate(zip(self._each(a, count), self._each(c, count))):
            x = self._array(left, kind, n, n, lda)
            factors, pivots, number = get_lapack_funcs("getrf", (x,))(x)
            self._array(right, kind, n, n, ldc)[...] = get_lapack_funcs("getri", (x,))(factors, pivots)[0]
            self._array(info, np.int32, count)[i] = number
        return SUCCESS

    def _trsm(
        self, kind: Any, handle: Any, side: int, uplo: int, trans: int, diagonal: int, m: int, n: int, alpha: Any,
        a: Any, lda: int, b: Any, ldb: int,
    ) -> int:  # fmt: skip
        assert handle.value == 500 and diagonal == 0
        one = np.frombuffer(alpha._obj, np.float64 if kind == np.float64 else np.float32)
        assert one.tolist() == [1, 0]
        rows = n if side else m
        x, y = self._array(a, kind, rows, rows, lda), self._array(b, kind, m, n, ldb)
        x = np.triu(x) if uplo == UPPER else np.tril(x)
        x = x.T if trans == TRANSPOSED else x
        with np.errstate(all="ignore"):
            y[...] = np.nan if 0 in np.diag(x) else (np.linalg.solve(x.T, y.T).T if side else np.linalg.solve(x, y))
        return SUCCESS

    def _one_trsm(self, kind: Any, *arguments: Any) -> int:
        self.done.append("trsm")
        return self._trsm(kind, *arguments)

    def _trsm_batched(self, kind: Any, *arguments: Any) -> int:
        *first, a, lda, b, ldb, count = arguments
        self.done.append("trsmBatched")
        for left, right in zip(self._each(a, count), self._each(b, count)):
            self._trsm(kind, *first, left, lda, right, ldb)
        return SUCCESS


def _typed(function: Any, kind: Any) -> Any:
    return lambda self, *arguments: function(self, kind, *arguments)


for _letter, _kind in (("S", np.float32), ("D", np.float64), ("C", np.complex64)):
    for _class, _name, _function in (
        (FakeSolver, "cusolverDn{}potrfBatched", FakeSolver._potrf_batched),
        (FakeSolver, "cusolverDn{}getrf", FakeSolver._getrf),
        (FakeSolver, "cusolverDn{}gesvdjBatched", FakeSolver._gesvdj_batched),
        (FakeBlas, "cublas{}getrfBatched", FakeBlas._getrf_batched),
        (FakeBlas, "cublas{}getrsBatched", FakeBlas._getrs_batched),
        (FakeBlas, "cublas{}getriBatched", FakeBlas._getri_batched),
        (FakeBlas, "cublas{}matinvBatched", FakeBlas._matinv_batched),
        (FakeBlas, "cublas{}trsm_v2", FakeBlas._one_trsm),
        (FakeBlas, "cublas{}trsmBatched", FakeBlas._trsm_batched),
    ):
        setattr(_class, _name.format(_letter), _typed(_function, _kind))
    for _name, _function in (("getrf", FakeSolver._getrf_size), ("gesvdjBatched", FakeSolver._gesvdj_batched_size)):
        setattr(FakeSolver, f"cusolverDn{_letter}{_name}_bufferSize", _function)

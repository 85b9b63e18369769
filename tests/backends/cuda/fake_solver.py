"""cuSOLVER without a GPU: the functions that smelt calls, by SciPy's LAPACK, from the arguments that they are given.

Numbers are those of NVIDIA's headers, written down apart from smelt's.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from scipy.linalg import get_lapack_funcs

from .fake_driver import FakeDriver

SUCCESS, ALLOC_FAILED, INVALID_VALUE = 0, 2, 3
#: cudaDataType_t.
DTYPES: dict[int, Any] = {0: np.float32, 1: np.float64, 4: np.complex64}
UPPER, TRANSPOSED = 1, 1
#: Bytes that every function uses besides, on the GPU and on the host.
AREA, ON_HOST = 512, 16


class FakeSolver:
    """Attributes:
    done: the functions that computed, in order.
    without: matrices with more rows are too large.
    fails: what functions return instead of computing.
    """

    def __init__(self, driver: FakeDriver):
        self.driver = driver
        self.done: list[str] = []
        self.without = 1 << 30
        self.fails = 0

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

    def _array(self, place: Any, dtype: Any, rows: int, columns: int = 1, lead: int | None = None) -> np.ndarray:
        """A matrix by columns, a view of the GPU's memory."""
        dtype = np.dtype(dtype)
        found, lead = self.driver._find(place.value), rows if lead is None else lead
        nbytes = ((columns - 1) * lead + rows) * dtype.itemsize
        assert lead >= rows and found is not None and nbytes <= found[1], "the function reaches beyond its memory"
        memory = np.frombuffer((ctypes.c_char * nbytes).from_address(found[0]), dtype)
        return np.lib.stride_tricks.as_strided(memory, (rows, columns), (dtype.itemsize, lead * dtype.itemsize))

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

    def _says(self, info: Any, number: int) -> int:
        self._array(info, np.int32, 1)[...] = number
        return SUCCESS

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
            x[...] = np.nan
            return self._says(work[4], 1)
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
            return self._says(work[4], 1)
        left, found, right = np.linalg.svd(x, full_matrices=job_u.value == b"A")
        values[:, 0], x[...] = found, np.nan
        if job_u.value != b"N":
            self._array(u, DTYPES[kind_u], *left.shape, ldu.value)[...] = left
            self._array(vt, DTYPES[kind_v], *right.shape, ldvt.value)[...] = right
        return self._says(work[4], 0)

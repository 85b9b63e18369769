"""Factorizations of large matrices by NumPy's LAPACK, called directly on matrices as they lie.

NumPy's functions convert float32 to float64, and copy each matrix to columns and back in strides: for some hundred rows
that takes as long as the factorization, for determinants and solutions twice as long. The rows of an array are the
columns of the transposed matrix, whose factors serve as well: L and Q of Aᵀ are Rᵀ and Qᵀ of A, and its singular
vectors change places. Functions return None where NumPy's are to do it: for small matrices, for which calls from here
cost more, with another library than OpenBLAS, and where a matrix has no such factors, to tell errors.
"""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from . import numpy_blas, small_matrices
from .aval import Aval, broadcast_shapes
from .host_memory import arrange, contiguous
from .locks import unforked
from .numpy_blas import lapack_function

#: Rows and columns from which on it pays: of what takes some n³ steps, of what takes many, of what LU factors give
#: (solutions, inverses and determinants), and of what takes n² steps.
FEW, LEAST, DIRECT, SUBSTITUTED = 33, 17, 33, 24
#: And n³, of all matrices together: calls from here cost some ten microseconds more than NumPy's. Of float32 and
#: complex64, which NumPy converts, and of wider numbers.
Worth = tuple[float, float]
OF_ROOT: Worth = (1.2e6, 8e6)
OF_LU: Worth = (2e6, 2e7)
OF_INVERSE: Worth = (1e5, 2.5e5)
OF_QR: Worth = (2e5, 2e6)
OF_SPECTRUM: Worth = (1e5, 1.5e6)
#: Elements of a matrix, and of all together, from which on least squares are not by gels.
OF_REFLECTORS, MOST_OF_GELS = 2500, 30000
#: The first letters of LAPACK's names.
_LETTERS = {"f": "s", "d": "d", "F": "c", "D": "z"}

class Each(NamedTuple):
    """An array of matrices, or those of them at some places: each call takes the next one."""

    matrices: np.ndarray
    at: np.ndarray | None = None

    def addresses(self) -> Sequence[int]:
        first, step = _address(self.matrices), self.matrices.strides[0]
        if self.at is None:
            return range(first, first + step * len(self.matrices), step)
        found: list[int] = (first + self.at * step).tolist()
        return found


#: What LAPACK's functions take: words, integers, and arrays, all of them by their addresses.
Argument = bytes | int | np.ndarray | Each


_INTEGERS: dict[Any, Any] = {np.int32: ctypes.c_int32, np.int64: ctypes.c_int64}
#: How much work space functions ask for, by dtype, name, and arguments that are no arrays; so many at most.
_rooms: dict[tuple[Any, ...], int] = {}
_MOST_ROOMS = 512


def _address(x: np.ndarray) -> int:
    found: int = x.__array_interface__["data"][0]
    return found


def _told(x: Argument | None) -> bytes | int | str | None:
    """What an argument says of the work space: of arrays nothing."""
    return x if x is None or isinstance(x, (bytes, int)) else ""


class _Prepared(NamedTuple):
    """A function, and what it is called with: addresses, zeros for those of arrays and of the status, and the lengths
    of words. Words and integers lie in memory that functions only read, and that `kept` keeps."""

    function: Callable[..., Any]
    template: tuple[int, ...]
    kept: list[Any]


@functools.lru_cache(maxsize=_MOST_ROOMS)
def _prepared(name: str, told: tuple[bytes | int | None, ...], has_status: bool) -> _Prepared:
    found = lapack_function(name)
    assert found is not None, name
    function, kind = found
    kept = [
        ctypes.create_string_buffer(x, 1) if isinstance(x, bytes) else _INTEGERS[kind](x) if x is not None else None
        for x in told
    ]
    given = [0 if x is None else ctypes.addressof(x) for x in kept] + [0] * has_status
    lengths = [1] * sum(isinstance(x, bytes) for x in told)  # as Fortran passes them
    function.argtypes = [ctypes.c_void_p] * len(given) + [ctypes.c_size_t] * len(lengths)  # type: ignore[attr-defined]
    return _Prepared(function, (*given, *lengths), kept)


class _Lapack:
    """LAPACK's functions for numbers of one dtype.

    Attributes:
        real: the dtype of singular values. kind: that of LAPACK's integers.
    """

    def __init__(self, dtype: np.dtype[Any], kind: type[np.signedinteger[Any]]):
        self.dtype, self.kind, self.real = dtype, kind, np.empty(0, dtype).real.dtype
        self._status = _INTEGERS[kind]

    @property
    def is_complex(self) -> bool:
        return self.dtype.kind == "c"

    def call(self, name: str, *arguments: Argument, has_status: bool = False) -> bool:
        """Call a function, once or for each of some matrices.

        Args:
            has_status: whether it ends with what went wrong.

        Returns:
            Whether nothing did, in any of the calls.
        """
        told = tuple([x if isinstance(x, (bytes, int)) else None for x in arguments])
        prepared = _prepared(_LETTERS[self.dtype.char] + name, told, has_status)
        function, given = prepared.function, list(prepared.template)
        moving: dict[int, Sequence[int]] = {}
        for i, x in enumerate(arguments):
            if isinstance(x, Each):
                moving[i] = x.addresses()
            elif isinstance(x, np.ndarray):
                given[i] = _address(x)
        status = self._status() if has_status else None
        if status is not None:
            given[len(arguments)] = ctypes.addressof(status)
        if not moving:
            function(*given)
            return status is None or not status.value
        succeeds = True
        for addresses in zip(*moving.values()):
            for i, address in zip(moving, addresses):
                given[i] = address
            function(*given)
            succeeds &= status is None or not status.value
        return succeeds

    def succeeds(self, name: str, *arguments: Argument | None) -> bool:
        """Call a function that ends with what went wrong, once or for each of some matrices; whether nothing did.

        None stands for its work space and the size of that, which it is asked for before.
        """
        room = np.zeros(1, self.dtype)

        def call(size: int) -> bool:
            given: list[Argument] = []
            for x in arguments:
                if isinstance(x, Each) and size < 0:  # the first one tells
                    x = x.matrices[0]
                given += [room, size] if x is None else [x]
            return self.call(name, *given, has_status=True)

        if None in map(_told, arguments):
            key = (self.dtype.char, name, *map(_told, arguments))
            size = _rooms.get(key, 0)
            if not size:
                if not call(-1):
                    return False
                size = math.ceil(float(room[0].real) * (1 + 1e-6))  # rounded to float32 perhaps
                if len(_rooms) >= _MOST_ROOMS:
                    _rooms.clear()
                _rooms[key] = size
            room = np.empty(size, self.dtype)
        return call(len(room))


def _lapack(a: np.ndarray, least: int, worth: Worth = (0, 0)) -> _Lapack | None:
    """The functions for some matrices, if calling them pays."""
    if a.dtype.char not in _LETTERS or min(a.shape[-2:]) < least or not a.size:
        return None
    if a.size * min(a.shape[-2:]) < worth[a.real.itemsize > 4]:
        return None
    found = lapack_function(_LETTERS[a.dtype.char] + "potrf")
    return None if found is None else _Lapack(a.dtype, found[1])


def cholesky(a: np.ndarray) -> np.ndarray | None:
    """``np.linalg.cholesky``, which reads the lower triangles."""
    lapack, n = _lapack(a, FEW, OF_ROOT), a.shape[-1]
    if lapack is None:
        return None
    # By columns: a lower factor takes three quarters of the time of an upper one.
    out, matrices = np.zeros(a.shape, a.dtype), contiguous(a.swapaxes(-1, -2))
    each = Each(out.reshape(-1, n, n))
    lapack.call("lacpy", b"L", n, n, Each(matrices.reshape(-1, n, n)), n, each, n)
    return contiguous(out.swapaxes(-1, -2)) if lapack.succeeds("potrf", b"L", n, each, n) else None


def qr(a: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """``np.linalg.qr``: the factors L and Q of what the matrices are by columns."""
    lapack, (m, n) = _lapack(a, FEW, OF_QR), a.shape[-2:]
    if lapack is None:
        return None
    k, lead = min(m, n), a.shape[:-2]
    out, turns = np.array(a, order="C"), np.empty((math.prod(lead), k), a.dtype)
    r = np.empty((*lead, k, n), a.dtype)
    each, turned = Each(out.reshape(-1, m, n)), Each(turns)
    if not lapack.succeeds("gelqf", n, m, each, n, turned, None):
        return None
    r[...] = np.triu(out[..., :k, :])
    if not lapack.succeeds("unglq" if lapack.is_complex else "orglq", k, m, k, each, n, turned, None):
        return None
    return np.ascontiguousarray(out[..., :k]), r


def eigh(a: np.ndarray, vectors: bool = True) -> tuple[np.ndarray, np.ndarray] | None:
    """``np.linalg.eigh`` of the lower triangles; without `vectors` the values alone count."""
    lapack, n = _lapack(a, LEAST, OF_SPECTRUM), a.shape[-1]
    if lapack is None:
        return None
    out, values = np.array(a, order="C"), np.empty(a.shape[:-1], lapack.real)
    places = np.empty(3 + 5 * n, lapack.kind)
    more: list[Argument] = []
    if lapack.is_complex:
        reals = np.empty(1 + 5 * n + 2 * n * n if vectors else n, lapack.real)
        more = [reals, len(reals)]
    job, name = b"V" if vectors else b"N", "heevd" if lapack.is_complex else "syevd"
    each, found = Each(out.reshape(-1, n, n)), Each(values.reshape(-1, n))
    if not lapack.succeeds(name, job, b"U", n, each, n, found, None, *more, places, len(places)):
        return None
    # Vectors are those of the transposed matrix, by columns.
    return values, np.ascontiguousarray(out.swapaxes(-1, -2).conj()) if vectors else out


def svd(a: np.ndarray, full: bool, vectors: bool = True) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """``np.linalg.svd``; without `vectors` the values alone count."""
    lapack, (m, n) = _lapack(a, LEAST, OF_SPECTRUM), a.shape[-2:]
    if lapack is None:
        return None
    k, most, lead = min(m, n), max(m, n), a.shape[:-2]
    p, q = (m, n) if full else (k, k)
    room, values = np.array(a, order="C"), np.empty((*lead, k), lapack.real)
    u, vt = (np.empty((*lead, *size), a.dtype) if vectors else room for size in ((m, p), (q, n)))
    places = np.empty(8 * k, lapack.kind)
    more: list[Argument] = []
    if lapack.is_complex:
        more = [np.empty(k * max(5 * k + 7, 2 * most + 2 * k + 1) if vectors else 7 * k, lapack.real)]
    job = b"N" if not vectors else b"A" if full else b"S"
    count = math.prod(lead)
    x, s, left, right = (Each(y.reshape(count, *y.shape[len(lead) :])) for y in (room, values, u, vt))
    # Of the transposed matrix the right vectors are the left ones here, and lie in rows.
    if not lapack.succeeds("gesdd", job, n, m, x, n, s, right, n, left, p if vectors else m, None, *more, places):
        return None
    return u, values, vt


def solve_triangular(a: np.ndarray, b: np.ndarray, upper: bool) -> np.ndarray | None:
    """x with a·x = b for triangular matrices without zeros on their diagonals."""
    lapack, (n, k) = _lapack(a, SUBSTITUTED), b.shape[-2:]
    if lapack is None or a.dtype != b.dtype or not b.size:
        return None
    # The matrix lies by columns if it is a transpose; its triangle is the other one in the memory of those by rows.
    by_columns = not a.flags.c_contiguous and a.swapaxes(-1, -2).flags.c_contiguous
    matrices, one = a.swapaxes(-1, -2) if by_columns else np.ascontiguousarray(a), np.ones(1, a.dtype)
    triangle, turn, straight = b"L" if upper != by_columns else b"U", b"T", b"N"
    if by_columns:
        turn, straight = straight, turn
    each: Argument = matrices
    x: Argument
    if a.ndim == b.ndim == 2:  # one call: nothing to count
        x = out = np.array(b, order="C")
    else:
        lead = broadcast_shapes(a.shape[:-2], b.shape[:-2])
        out = np.array(np.broadcast_to(b, (*lead, n, k)), order="C")
        which = np.broadcast_to(np.arange(math.prod(a.shape[:-2])).reshape(a.shape[:-2]), lead).reshape(-1)
        each, x = Each(matrices.reshape(-1, n, n), which), Each(out.reshape(-1, n, k))
    if k == 1:  # by columns: xᵀ·aᵀ = bᵀ
        lapack.call("trsv", triangle, turn, b"N", n, each, n, x, 1)
    else:
        lapack.call("trsm", b"R", triangle, straight, b"N", k, n, one, each, n, x, k)
    return out


#: What computes an op on memory: called with addresses of operands and of results, it says whether it has done so.
OnAddresses = Callable[[Sequence[int], Sequence[int]], bool]


def _one_matrix(a: Aval, least: int) -> _Lapack | None:
    """The functions for one matrix that is large enough for them, and not so large that the library shares it out."""
    if a.ndim != 2 or not least <= a.shape[0] <= numpy_blas.FACTORED_ALONE or a.dtype.numpy.char not in _LETTERS:
        return None
    found = lapack_function(_LETTERS[a.dtype.numpy.char] + "potrf")
    return None if found is None else _Lapack(a.dtype.numpy, found[1])


def solving_triangular(a: Aval, b: Aval, upper: bool) -> OnAddresses | None:
    """`solve_triangular` of one matrix on memory, with the same bits; not where the diagonal has a zero."""
    lapack = _one_matrix(a, max(SUBSTITUTED, small_matrices.MOST + 1))
    if lapack is None or b.ndim != 2 or not 0 < b.shape[1] <= numpy_blas.FACTORED_ALONE or a.dtype != b.dtype:
        return None
    (n, k), one, dtype = b.shape, np.ones(1, a.dtype.numpy), a.dtype.numpy
    triangle = b"L" if upper else b"U"
    told: tuple[bytes | int | None, ...] = (triangle, b"T", b"N", n, None, n, None, 1)
    name, at, to = "trsv", 4, 6
    if k > 1:
        told, name, at, to = (b"R", triangle, b"N", b"N", k, n, None, None, n, None, k), "trsm", 7, 9
    prepared = _prepared(_LETTERS[dtype.char] + name, told, False)

    @unforked
    def solve(operands: Sequence[int], results: Sequence[int]) -> bool:
        (matrix, right), (out,) = operands, results
        if out < matrix + a.nbytes and matrix < out + b.nbytes:
            return False
        memory = memoryview((ctypes.c_char * a.nbytes).from_address(matrix))
        if not np.ndarray((n,), dtype, memory, 0, ((n + 1) * dtype.itemsize,)).all():
            return False
        if right != out:
            ctypes.memmove(out, right, b.nbytes)
        given = list(prepared.template)
        if k > 1:
            given[6] = _address(one)
        given[at], given[to] = matrix, out
        numpy_blas.alone(lambda: prepared.function(*given))
        return True

    return solve


def factoring(a: Aval) -> OnAddresses | None:
    """`cholesky` of one matrix on memory, with the same bits; not of a matrix that has no such factor."""
    lapack, n = _one_matrix(a, FEW), a.shape[-1]
    if lapack is None or a.size * n < OF_ROOT[a.dtype.numpy.itemsize // (1 + a.dtype.is_complex) > 4]:
        return None
    dtype, zero = a.dtype.numpy, np.zeros(1, a.dtype.numpy)

    def array_at(address: int) -> np.ndarray:
        return np.ndarray(a.shape, dtype, memoryview((ctypes.c_char * a.nbytes).from_address(address)))

    @unforked
    def factor(operands: Sequence[int], results: Sequence[int]) -> bool:
        by_columns = contiguous(array_at(operands[0]).T)
        if not numpy_blas.alone(lambda: lapack.call("potrf", b"L", n, by_columns, n, has_status=True)):
            return False
        lapack.call("laset", b"U", n - 1, n - 1, zero, zero, by_columns[1:], n)  # what is above the diagonal
        arrange(by_columns.T, array_at(results[0]))
        return True

    return factor


def _is_usual(a: np.ndarray) -> bool:
    """Whether numbers are finite, and the largest of them so that sums of products do not overflow or lose digits."""
    parts = np.ascontiguousarray(a).view(a.real.dtype)
    largest, limits = np.abs(parts).max(), np.finfo(parts.dtype)
    return bool(largest == 0 or limits.tiny / limits.eps <= largest <= limits.eps / limits.tiny)


def _by_reflectors(lapack: _Lapack, adjoint: bytes, tall: bool, each: Each, found: Each, k: int) -> bool:
    """What gels makes of the same arrays, without looking for the largest elements, which takes most of its time."""
    count, least, most = each.matrices.shape
    one, tau = np.ones(1, each.matrices.dtype), Each(np.empty((count, least), each.matrices.dtype))
    if not lapack.succeeds("geqrf", most, least, each, most, tau, None):
        return False
    rotate = "unmqr" if lapack.is_complex else "ormqr"
    for step in ("rotate", "solve") if tall else ("solve", "rotate"):
        turn = adjoint if (step == "rotate") == tall else b"N"
        if step == "solve":
            lapack.call("trsm", b"L", b"U", turn, b"N", least, k, one, each, most, found, most)
        elif not lapack.succeeds(rotate, b"L", turn, most, k, least, each, most, tau, found, most, None):
            return False
    return True


def least_squares(a: np.ndarray, b: np.ndarray, rtol: float) -> np.ndarray | None:
    """x for which a·x - b is smallest, and of these the shortest, by a QR decomposition.

    None also where a matrix may have another rank than its shape allows: where the norms of the triangle and of its
    inverse do not rule out that a singular value is as small as `rtol` times the largest one.
    """
    lapack = _lapack(a, 1)
    if lapack is None or a.dtype != b.dtype or not b.size or not (_is_usual(a) and _is_usual(b)):
        return None
    (m, n), k = a.shape[-2:], b.shape[-1]
    least, most = min(m, n), max(m, n)
    lead = broadcast_shapes(a.shape[:-2], b.shape[:-2])
    count = math.prod(lead)
    # By columns: the matrix itself, or the adjoint of one with more columns than rows.
    turned = contiguous(a.swapaxes(-1, -2)) if m >= n else a.conj()
    factors = np.array(np.broadcast_to(turned, (*lead, least, most)), order="C")
    x = np.zeros((*lead, k, most), a.dtype)
    x[..., :m] = b.swapaxes(-1, -2)
    each, found = Each(factors.reshape(count, least, most)), Each(x.reshape(count, k, most))
    adjoint = b"C" if lapack.is_complex else b"T"
    if m * n < OF_REFLECTORS or count * m * n < MOST_OF_GELS:  # one call instead of three
        job = b"N" if m >= n else adjoint
        if not lapack.succeeds("gels", job, most, least, k, each, most, found, most, None):
            return None
    elif not _by_reflectors(lapack, adjoint, m >= n, each, found, k):
        return None
    triangle = np.tril(factors[..., :least])
    norms, whole = np.linalg.norm(triangle, axis=(-2, -1)), Each(triangle.reshape(count, least, least))
    if not lapack.call("trtri", b"U", b"N", least, whole, least, has_status=True):
        return None
    # Frobenius' norms are no smaller than the largest singular values.
    if not (norms * np.linalg.norm(triangle, axis=(-2, -1)) * rtol < 1).all():
        return None
    return x[..., :n].swapaxes(-1, -2)


def schur(a: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """T and U of the Schur form U·T·Uᴴ of one matrix: T of a real one has blocks of two rows on its diagonal."""
    lapack, n = _lapack(a, 1), a.shape[-1]
    if lapack is None:
        return None
    t, u, unused = np.array(a.T, order="C"), np.empty_like(a, order="C"), np.zeros(1, lapack.kind)
    values = [np.empty(n, a.dtype) for _ in range(1 if lapack.is_complex else 2)]
    more = [np.empty(n, lapack.real)] if lapack.is_complex else []
    if not lapack.succeeds("gees", b"V", b"N", unused, n, t, n, unused, *values, u, n, None, *more, unused):
        return None
    return np.triu(t.T, 0 if lapack.is_complex else -1), u.T


class Factors:
    """LU factors of real matrices (count × m × n), whose elements stand by columns in `matrices` (count × n × m), which
    they replace.

    Attributes:
        pivots: from 1 on. singular: whether a matrix has a zero on the diagonal of U.
    """

    def __init__(self, lapack: _Lapack, matrices: np.ndarray) -> None:
        count, n, m = matrices.shape
        self.lapack, self.matrices = lapack, matrices
        self.pivots = np.empty((count, min(m, n)), lapack.kind)
        self.singular = not lapack.succeeds("getrf", m, n, Each(matrices), max(m, 1), Each(self.pivots))

    def logarithms(self) -> tuple[np.ndarray, np.ndarray]:
        """The signs of the determinants of square matrices, and the logarithms of their sizes in float64."""
        diagonal = np.diagonal(self.matrices, 0, -2, -1)
        turns = (self.pivots != np.arange(1, diagonal.shape[-1] + 1)).sum(-1)
        sign = np.where(turns % 2, -1, 1) * np.sign(diagonal).prod(-1)
        return sign, np.log(np.abs(diagonal).astype(np.float64)).sum(-1)

    def determinants(self) -> np.ndarray:
        """Those of square matrices, in float64: products of fractions, and sums of exponents."""
        sign, _ = self.logarithms()
        fraction, exponent = np.frexp(np.abs(np.diagonal(self.matrices, 0, -2, -1)).astype(np.float64))
        found, power = sign.astype(np.float64), exponent.sum(-1)
        for i in range(0, fraction.shape[-1], 512):
            found, more = np.frexp(found * fraction[..., i : i + 512].prod(-1))
            power = power + more
        return np.ldexp(found, np.clip(power, -5000, 5000).astype(np.int32))

    def solved(self, which: np.ndarray, b: np.ndarray) -> np.ndarray:
        """What solves Aᵀ·x = b for each of b (count × k × n), by the matrices at `which`."""
        x = np.array(b, order="C")
        k, n = b.shape[1:]
        factors, pivots = Each(self.matrices, which), Each(self.pivots, which)
        self.lapack.succeeds("getrs", b"T", n, k, factors, n, pivots, Each(x), n)
        return x

    def inverses(self) -> np.ndarray:
        """Those of square matrices, as these stood in memory; the factors are lost."""
        n = self.matrices.shape[-1]
        self.lapack.succeeds("getri", n, Each(self.matrices), n, Each(self.pivots), None)
        return self.matrices


def lu(a: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """LU factors of matrices (count × m × n) in one array, and pivots from 0 on.

    Those of complex ones are the elements with the largest sum of sizes of both parts.
    """
    lapack = _lapack(a, 1)
    if lapack is None:
        return None
    found = Factors(lapack, np.array(a.swapaxes(1, 2), order="C"))
    return found.matrices.swapaxes(1, 2), (found.pivots - 1).astype(np.uint32)


def _large(a: np.ndarray, worth: Worth) -> Factors | None:
    """Factors of the transposes of real square matrices, which need no rearrangement.

    They serve as well: the solution of (Aᵀ)ᵀ·x = b is that of A·x = b.
    """
    n = a.shape[-1]
    lapack = _lapack(a, DIRECT, worth) if a.dtype.kind == "f" else None
    return None if lapack is None else Factors(lapack, np.array(a.reshape(-1, n, n), order="C"))


def solve(a: np.ndarray, b: np.ndarray) -> np.ndarray | None:
    """``np.linalg.solve`` of real matrices (…, n, n) and (…, n, k)."""
    known = _large(a, OF_LU) if a.dtype == b.dtype else None
    if known is None or known.singular:
        return None
    lead = broadcast_shapes(a.shape[:-2], b.shape[:-2])
    own = np.arange(len(known.matrices)).reshape(a.shape[:-2])
    which = np.broadcast_to(own, lead).reshape(-1)
    right = np.broadcast_to(b.swapaxes(-1, -2), (*lead, b.shape[-1], b.shape[-2]))
    found = known.solved(which, right.reshape(-1, *right.shape[-2:]))
    return found.reshape(right.shape).swapaxes(-1, -2)


def inv(a: np.ndarray) -> np.ndarray | None:
    """``np.linalg.inv`` of real matrices."""
    known = _large(a, OF_INVERSE)
    return None if known is None or known.singular else known.inverses().reshape(a.shape)


def det(a: np.ndarray) -> np.ndarray | None:
    """``np.linalg.det`` of real matrices."""
    known = _large(a, OF_LU)
    return None if known is None else known.determinants().astype(a.dtype).reshape(a.shape[:-2])


def slogdet(a: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """``np.linalg.slogdet`` of real matrices."""
    known = _large(a, OF_LU)
    if known is None:
        return None
    sign, log = known.logarithms()
    return sign.astype(a.dtype).reshape(a.shape[:-2]), log.astype(a.dtype).reshape(a.shape[:-2])

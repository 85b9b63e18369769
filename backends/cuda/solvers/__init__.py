"""Linear algebra by cuSOLVER and cuBLAS. Numbers are those of their headers, and of ``library_types.h``.

Few large matrices are factored one after the other, many small ones by functions for batches. The libraries' matrices
lie by columns: to them the rows of an array are the columns of the transposed matrix. What
`smelt.backends.gpu.schedules.factorizations` has not laid out otherwise is asked for of that one.
"""

from __future__ import annotations

import functools

from ..libraries import load, opened
from . import eigenvalues, lu, orthogonal, positive, singular_values, triangular
from .library import Blas, Library
from .plan import Plan

#: By op what plans it: the first that takes a call.
KINDS: dict[str, tuple[type[Plan], ...]] = {
    "cholesky": (positive.CholeskyOfMany, positive.Cholesky),
    "solve": (lu.SolveOfMany, lu.Solve),
    "solve_triangular": (triangular.SolveTriangularOfMany, triangular.SolveTriangular),
    "inv": (lu.InverseOfMany, lu.Inverse),
    "det": (lu.FactorsOfMany, lu.Factors),
    "slogdet": (lu.FactorsOfMany, lu.Factors),
    "lu": (lu.LuOfMany, lu.Lu),
    "qr": (orthogonal.Qr,),
    "eigh": (eigenvalues.EighOfMany, eigenvalues.Eigh),
    "eigvalsh": (eigenvalues.EighOfMany, eigenvalues.Eigh),
    "svd": (singular_values.SvdOfManySmall, singular_values.Svd),
    "singular_values": (singular_values.SvdOfManySmall, singular_values.Svd),
}
OPS = tuple(KINDS)


@functools.cache
def library() -> Library | None:
    """cuSOLVER, with cuBLAS; None where it is not installed, or does not work with the driver."""
    needed = {name: load(name) for name in ("nvJitLink", "cublasLt", "cublas", "cusparse")}  # which it loads
    found = opened(Library, load("cusolver"))
    if found is not None:
        found.kinds, found.blas = KINDS, opened(Blas, needed["cublas"])
    return found

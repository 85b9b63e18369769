"""Linear algebra under the names of `mlx.core.linalg`, computed by LAPACK on the CPU, whatever the device.

Matrices stand on the last two axes; all axes before them are a batch, which is one call of the library.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from smelt.ir.listing import listed as _listed

from ..lacking import lacking as _lacking
from .factors import cholesky, lu, lu_factor, qr
from .matrix_functions import (
    coshm,
    cosm,
    expm,
    fractional_matrix_power,
    logm,
    sinhm,
    sinm,
    solve_continuous_lyapunov,
    solve_sylvester,
    sqrtm,
)
from .norms import matrix_norm, norm, vector_norm
from .products import cross, diagonal, matmul, matrix_transpose, multi_dot, outer, tensordot, trace, vecdot
from .spectra import eig, eigh, eigvals, eigvalsh, lstsq, matrix_rank, pinv, svd, svdvals
from .structured import block_diag, cho_factor, cond, tensorinv, tensorsolve, toeplitz
from .systems import (
    cho_solve,
    cholesky_inv,
    det,
    inv,
    lu_solve,
    matrix_power,
    slogdet,
    solve,
    solve_triangular,
    tri_inv,
)

__all__ = [
    "block_diag", "cho_factor", "cho_solve", "cholesky", "cholesky_inv", "cond", "coshm", "cosm", "cross", "det",
    "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "expm", "fractional_matrix_power", "inv", "logm", "lstsq", "lu",
    "lu_factor", "lu_solve", "matmul", "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose", "multi_dot",
    "norm", "outer", "pinv", "qr", "sinhm", "sinm", "slogdet", "solve", "solve_continuous_lyapunov", "solve_sylvester",
    "solve_triangular", "sqrtm", "svd", "svdvals", "tensordot", "tensorinv", "tensorsolve", "toeplitz", "trace",
    "tri_inv", "vecdot", "vector_norm",
]  # fmt: skip

__dir__ = _listed(globals())
if not TYPE_CHECKING:
    __getattr__ = _lacking(globals())

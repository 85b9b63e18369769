"""How each op of the dialect is written in StableHLO: one entry an op, a file a family."""

from . import (
    control,
    elementwise,
    factors,
    indexing,
    jacobi,
    lapack,
    library,
    linear,
    loops,
    matrix_functions,
    movement,
    real_schur,
    reductions,
    schur,
    systems,
    table,
)

__all__ = [
    "control", "elementwise", "factors", "indexing", "jacobi", "lapack", "library", "linear", "loops",
    "matrix_functions", "movement", "real_schur", "reductions", "schur", "systems", "table",
]  # fmt: skip

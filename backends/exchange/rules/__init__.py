"""How each op of the dialect is written in StableHLO: one entry an op, a file a family."""

from . import control, elementwise, indexing, lapack, library, linear, movement, reductions, table

__all__ = ["control", "elementwise", "indexing", "lapack", "library", "linear", "movement", "reductions", "table"]

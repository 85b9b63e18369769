"""What each op of StableHLO and CHLO means in ops and functions of smelt: one entry an op, a file a family."""

from . import control, elementwise, indexing, library, linear, random, reductions, shapes, sorting, special, windows

__all__ = [
    "control",
    "elementwise",
    "indexing",
    "library",
    "linear",
    "random",
    "reductions",
    "shapes",
    "sorting",
    "special",
    "windows",
]

"""Loops in C that rules of ops run on the host, where the core of the frontend is built; NumPy computes otherwise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass
class HostLoops:
    """Functions of the core. They give the bits that the rules give without them, or other last bits of a factor.

    Attributes:
        vector_bytes: of the vectors in which they compute.
        erf: erf and erfc, in place of numbers >= 0 and of their exp(-x²).
        erf_single: erf of an array of float32 into another.
        erfinv_single: the inverse of erf, of an array of float32 with -log(1 - x²) of it in float64, into another.
        fourier, fourier_columns: transforms of rows and of columns; see `fourier.c`.
        random_words: fills an array from keys; the second argument says whether with numbers of 64 bits.
        small_matrices: factors; see `small_matrices.c`.
        row_sums: sums or products of rows, or of rows before an axis of few elements; see `row_sums.c`.
        row_extrema: extrema of rows in the same way; see `row_extrema.c`.
        running: running sums, products and extrema; see `running.c`.
        radix: sorts rows, or gives their order; see `radix.c`.
        write_rows: writes rows to an array, or combines them with its rows; see `written_rows.c`.
        arrange: copies an array into a contiguous one; see `arranged.c`.
        select: elements of one array or another, by a condition; see `selected.c`.
        signs: of float32 or float64; see `selected.c`.
        shift_words: one word by each of a row of shifts, for many words; see `elements.c`.
        short_rows: arithmetic of rows that are broadcast, where they lie in order; see `short_rows.c`.
        convert_halves: float16 or bfloat16 to float32, or back; see `halves.c`.
    """

    vector_bytes: int = 16
    erf: Callable[[np.ndarray, np.ndarray], None] | None = None
    erf_single: Callable[[np.ndarray, np.ndarray], None] | None = None
    erfinv_single: Callable[[np.ndarray, np.ndarray, np.ndarray], None] | None = None
    fourier: Callable[..., None] | None = None
    fourier_columns: Callable[..., None] | None = None
    random_words: Callable[[np.ndarray, bool, np.ndarray], None] | None = None
    small_matrices: Callable[..., bool] | None = None
    row_sums: Callable[[np.ndarray, np.ndarray, int, int, int, bool], None] | None = None
    row_extrema: Callable[[np.ndarray, np.ndarray, int, int, int, bool], None] | None = None
    running: Callable[[np.ndarray, np.ndarray, int, int, int, int], None] | None = None
    radix: Callable[..., None] | None = None
    write_rows: Callable[..., None] | None = None
    arrange: Callable[[np.ndarray, np.ndarray], None] | None = None
    select: Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], None] | None = None
    signs: Callable[[np.ndarray, np.ndarray], None] | None = None
    shift_words: Callable[[np.ndarray, np.ndarray, np.ndarray], None] | None = None
    short_rows: Callable[[int, np.ndarray, np.ndarray, np.ndarray], bool] | None = None
    convert_halves: Callable[[np.ndarray, np.ndarray, bool], None] | None = None


loops = HostLoops()

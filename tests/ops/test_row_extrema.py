"""Extrema of rows, and before axes of not too many elements, have loops of their own, which give what NumPy gives."""

from __future__ import annotations

import numpy as np
import pytest

import smelt
from smelt.ir import short_axes
from smelt.ir.host_loops import loops

from .test_row_sums import SHAPES

pytestmark = pytest.mark.host("about NumPy's extrema")

#: Columns that fill the vectors, divide them, or neither.
COLUMNS = [*range(2, 20), 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 500]
MORE = [*[((2100, k), (0,)) for k in COLUMNS], *[((5, 61, k), (1,)) for k in COLUMNS]]


@pytest.mark.parametrize(
    "dtype", ["bool", "uint8", "int8", "int32", "uint32", "int64", "float16", "float32", "float64"]
)
def test_they_are_numpys(dtype: str) -> None:
    rng = np.random.default_rng(0)
    functions = [np.maximum, np.minimum, *([np.logical_or, np.logical_and] if dtype == "bool" else [])]
    looped = 0
    for shape, axes in [*SHAPES, *MORE]:
        if any(shape[a] == 0 for a in axes):
            continue
        low = 0 if dtype in ("bool", "uint8", "uint32") else -100
        x = rng.integers(low, 2 if dtype == "bool" else 100, shape).astype(dtype)
        if dtype.startswith("float") and x.size:
            x.reshape(-1)[rng.integers(0, x.size, 3)] = np.nan
            x.reshape(-1)[rng.integers(0, x.size, 3)] = np.inf
        swapped = x if dtype == "float16" else x.astype(x.dtype.newbyteorder())
        for function in functions:
            for given in (x, np.asfortranarray(x), x[::-1], swapped):
                looped += loops.row_extrema is not None and short_axes._row_extrema(function, given, axes) is not None
                found = short_axes.reduced(function, given, axes)
                want = function.reduce(given, axes)
                assert found.shape == want.shape and found.dtype == want.dtype, (shape, axes)
                np.testing.assert_array_equal(found, want, err_msg=f"{function} {shape} {axes}")
    has_loops = dtype in ("bool", "uint8", "int32", "int64", "float32", "float64")
    assert loops.row_extrema is None or bool(looped) == has_loops


@pytest.mark.parametrize("place", [0, 1, 30, 63, 64, 100, 511, 512, 998, 999])
def test_one_nan_anywhere(place: int) -> None:
    for columns in (1, 3, 8, 100):
        x = np.ones((3, 1000, columns), np.float32)
        x[1, place, columns // 2] = np.nan
        for name in ("max", "min"):
            found = np.asarray(getattr(smelt, name)(smelt.array(x), axis=1))
            assert np.isnan(found[1, columns // 2]) and np.isnan(found).sum() == 1


@pytest.mark.skipif(loops.row_extrema is None, reason="no core in C")
def test_what_does_not_fit_is_refused() -> None:
    assert loops.row_extrema is not None
    x, out = np.ones((4, 6), np.float32), np.empty(4, np.float32)
    for kind, n, columns in ((3, 5, 1), (3, 0, 1), (3, 6, 0), (4, 6, 1), (1 << 20, 6, 1), (-1, 6, 1), (3, 1 << 62, 4)):
        with pytest.raises(ValueError, match="row_extrema takes"):
            loops.row_extrema(x, out, kind, n, columns, True)
    with pytest.raises(ValueError, match="row_extrema takes"):
        loops.row_extrema(x, out[:3], 3, 6, 1, True)

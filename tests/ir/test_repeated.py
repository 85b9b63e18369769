"""Views in which elements repeat are those of NumPy's broadcast_to."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest

from smelt.ir.repeated import repeated

SHAPES = [(), (0,), (1,), (3,), (1, 3), (3, 1), (2, 3), (1, 1), (2, 0), (1, 2, 1)]


@pytest.mark.parametrize("dtype", [np.float32, np.bool_, np.complex64, ml_dtypes.bfloat16])
@pytest.mark.parametrize("turned", [False, True])
def test_elements_are_those_of_numpy(dtype: type, turned: bool) -> None:
    for old, shape in itertools.product(SHAPES, [*SHAPES, (2, 3, 1), (4, 2, 3), (4, 3, 2), (2, 2, 5)]):
        x = np.arange(np.prod(old, dtype=int)).reshape(old).astype(dtype)
        x = x.T if turned else x
        try:
            want = np.broadcast_to(x, shape)
        except ValueError:
            with pytest.raises(ValueError, match=r"broadcast|dimensions"):
                repeated(x, shape)
            continue
        found = repeated(x, shape)
        assert found.shape == want.shape and found.dtype == want.dtype and not found.flags.writeable
        np.testing.assert_array_equal(found, want)

"""Rules in NumPy say nothing of the numbers that they meet: IEEE results are the meaning, and no warning is."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.dtypes import DType
from smelt.ir.errors import SmeltError
from smelt.ir.examples import example
from smelt.ir.op import registry

#: Signalling and quiet NaN of both signs, infinities, the largest and the least numbers, zeros, ones.
SPECIAL = np.array(
    [0x7F800001, 0xFF812345, 0x7FC00000, 0xFFC00000, 0x7F800000, 0xFF800000, 0x7F7FFFFF, 0xFF7FFFFF, 1, 0x80000001, 0,
     0x80000000, 0x3F800000, 0xBF800000], np.uint32,
).view(np.float32)  # fmt: skip
OPS = [name for name, op in registry.items() if op.kind not in ("transform", "control") and not op.mixed]


def special(aval: Aval, shift: int) -> np.ndarray:
    """Elements that are one of those each; zeros where a dtype has none of them."""
    if not aval.dtype.is_inexact:
        return np.zeros(aval.shape, aval.dtype.numpy)
    found = np.empty(SPECIAL.size, aval.dtype.numpy)
    with np.errstate(all="ignore"):
        if aval.dtype.is_complex:
            found.real, found.imag = np.roll(SPECIAL, shift), np.roll(SPECIAL, 3 * shift + 1)
        else:
            found[...] = np.roll(SPECIAL, shift).astype(aval.dtype.numpy)
    return np.resize(found, aval.shape)


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.float32, dtypes.float64, dtypes.complex64], ids=str)
@pytest.mark.parametrize("name", OPS)
def test_references_warn_of_nothing(name: str, dtype: DType) -> None:
    op = registry[name]
    avals, attrs = example(op)
    avals = tuple(Aval(a.shape, dtype) if a.dtype.is_inexact else a for a in avals)
    try:
        op.infer_checked(avals, attrs)
    except SmeltError:
        pytest.skip("the op has no such operands")
    for shift in range(SPECIAL.size):
        operands = [special(a, shift * (i + 1)) for i, a in enumerate(avals)]
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            try:
                op.reference(*operands, **attrs)
            except (SmeltError, np.linalg.LinAlgError):
                continue  # a matrix that has no such factors

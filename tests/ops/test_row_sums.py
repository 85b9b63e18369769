"""Sums of rows, and before axes of not too many elements, have loops of their own: NumPy's sums, to the bit. So have
products, in the same order."""

from __future__ import annotations

import numpy as np
import pytest

import smelt
from smelt.ir.host_loops import loops
from smelt.ir.ops import reduce
from smelt.ir.settings import override
from tests.frontend.checks import exact

pytestmark = pytest.mark.host("about NumPy's sums")

SHAPES = [
    *[((700, n), (1,)) for n in (*range(1, 19), 63, 64, 65, 126, 127, 128, 129)],
    *[((3000, k), (0,)) for k in (*range(1, 19), 31, 32, 47, 63, 64, 65)],
    *[((30, 50, k), (1,)) for k in (2, 3, 7, 8, 15, 33, 64)],
    *[((5, n), (1,)) for n in (*range(250, 270), 463, 464, 465, *range(500, 530), 1000, 4096, 50_001)],
    *[((70, k), (0,)) for k in (100, 255, 512, 513)],
    ((3, 500, 100), (1,)),
    ((100_000,), (0,)),
    ((300, 300), (0, 1)),
    ((20, 30, 2, 3), (2, 3)),
    ((20, 30, 4, 5), (2, 3)),
    ((20, 30, 4, 5), (1,)),
    ((20, 9, 7, 30), (1, 2)),
    ((20, 30, 2, 2), (1, 2)),
    ((20, 30, 2, 2), (0, 1)),
    ((40, 60, 2), ()),
    ((40, 60), (0, 1)),
    ((0, 3), (0,)),
    ((3000, 0), (0,)),
]


@pytest.mark.parametrize(
    "dtype", [
        "float32", "float64", "complex64", "complex128", "int32", "int64", "uint32", "uint64", "int8", "float16"
    ],
)  # fmt: skip
def test_they_are_numpys(dtype: str) -> None:
    rng = np.random.default_rng(0)
    for shape, axes in SHAPES:
        numbers = rng.uniform(-100, 100, (2, *shape)) + 1j * rng.uniform(-100, 100, (2, *shape))
        of_dtype = (numbers if dtype.startswith("c") else numbers.real).astype(dtype)
        for x in (of_dtype[0], np.asfortranarray(of_dtype[1]), np.ones(shape[::-1], dtype).T):
            found = np.asarray(reduce._folded(np.add, x, axes, x.dtype))
            np.testing.assert_array_equal(found, np.add.reduce(x, axes, x.dtype), strict=True)


#: Axes with others between them, which are reduced one after the other where the last rows are not long.
APART = [
    ((20, 30, 2, 2), (1, 3)), ((20, 30, 2, 2), (0, 2)), ((9, 8, 7, 6, 5), (0, 2, 4)), ((4, 30, 2, 20), (3, 0)),
    ((3, 4, 40, 50), (0, 2, 3)), ((9, 8, 7, 6), (0, 1, 3)), ((0, 5, 7), (0, 2)), ((500, 5, 0), (0, 2)),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "int32", "uint8", "bool", "float16"])
def test_axes_apart(dtype: str) -> None:
    rng = np.random.default_rng(0)
    for shape, axes in APART:
        numbers = rng.uniform(0, 2, shape)
        x = (numbers + 1j * numbers[..., ::-1] if dtype.startswith("c") else numbers).astype(dtype)
        for given in (x, np.asfortranarray(x), x[::-1]):
            wide = given.astype(np.complex128 if dtype.startswith("c") else np.float64)
            rtol = {"float16": 2e-3, "float32": 1e-5, "complex64": 1e-5}.get(dtype, 1e-12)
            names = ("sum", "max", "min") if dtype != "bool" else ("any", "all", "max")
            for name in names if given.size else names[:1]:
                if dtype == "complex64" and name != "sum":
                    continue
                found = getattr(smelt, name)(exact(given), axes)
                np.testing.assert_allclose(np.asarray(found), getattr(np, name)(wide, axes), rtol=rtol, err_msg=name)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "float16"])
def test_sums_of_negative_zeros(dtype: str) -> None:
    """Zeros of the same sign for any number of elements, op by op and in a kernel."""
    for shape, axes in SHAPES:
        x = -np.zeros(shape, dtype)
        wanted = np.add.reduce(x, axes, x.dtype)
        assert not np.signbit(wanted.real).any() or not axes
        found = reduce._added(x, axes, x.dtype)
        np.testing.assert_array_equal(np.signbit([found.real, found.imag]), np.signbit([wanted.real, wanted.imag]))
    for length in (1, 2, 6, 12, 90):
        x = smelt.array(-np.zeros((3000, length), dtype))
        for found in (x.sum(1), smelt.compile(lambda x: x.sum(1))(x)):
            assert not np.signbit(np.asarray(found).real).any()
    for shape, axis in (((), None), ((1,), 0), ((3,), ()), ((1, 1), None), ((2, 1, 4), 1), ((1, 3), (0,)), ((1, 5), 1)):
        x = smelt.array(-np.zeros(shape, dtype))
        wanted = np.asarray(np.sum(np.asarray(x), axis))
        for f in (smelt.sum, smelt.compile(lambda x, axis: smelt.sum(x, axis))):
            found = np.asarray(f(x, axis))
            assert found.shape == wanted.shape
            np.testing.assert_array_equal(np.signbit(found.real), np.signbit(wanted.real), f"{shape} over {axis}")


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "uint32", "uint64", "complex64", "float16"])
def test_products(dtype: str) -> None:
    rng = np.random.default_rng(0)
    for shape, axes in SHAPES:
        x = (rng.integers(-9, 9, shape) if "int" in dtype else 1 + rng.uniform(-0.02, 0.02, shape)).astype(dtype)
        for y in (x, np.asfortranarray(x)):
            found = np.asarray(reduce._multiplied(y, axes, y.dtype))
            wanted = np.multiply.reduce(y, axes, y.dtype)
            if x.dtype.kind in "iu":
                np.testing.assert_array_equal(found, wanted, strict=True)
            else:
                np.testing.assert_allclose(found, wanted, rtol=1e-10 if dtype == "float64" else 1e-2)


def test_products_of_zeros_and_what_is_not_finite() -> None:
    x = np.ones((40, 70), np.float32)
    x[0, 3], x[1, 60], x[2, [4, 50]], x[3, [5, 6]] = -0.0, np.nan, [0, np.inf], [-np.inf, 2]
    x[4, 1::2] = -1
    with override(tier="ops"):
        found = np.asarray(smelt.prod(smelt.array(x), axis=1))
    with np.errstate(invalid="ignore"):
        wanted = np.prod(x, 1)
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(np.signbit(found[:2]), np.signbit(wanted[:2]))


@pytest.mark.skipif(loops.row_sums is None, reason="no core in C")
def test_what_does_not_fit_is_refused() -> None:
    x, out = np.ones((100, 2), np.float32), np.empty(100, np.float32)
    assert loops.row_sums is not None
    for count, *sizes in ((99, 2, 1), (100, 3, 1), (100, 2, 513), (100, 128, 1), (100, 0, 1)):
        with pytest.raises(ValueError, match="takes rows"):
            loops.row_sums(x, out[:count], 1, *sizes, False)
    with pytest.raises(ValueError, match="takes rows"):
        loops.row_sums(x.astype(np.float16), out, 1, 2, 1, False)
    with pytest.raises(ValueError, match="takes rows"):
        loops.row_sums(x.astype(np.complex64), out.astype(np.complex64), 2, 2, 1, True)
    for kind, *sizes in ((1, 2**62, 1), (1, 2**61, 2), (1, 2, 2**62), (3, 2, 1), (-1, 2, 1), (2, 2, 1)):
        with pytest.raises(ValueError, match="takes rows"):  # products of these overflow, or are of no type
            loops.row_sums(x[:0], out[:4], kind, *sizes, False)
    with pytest.raises(ValueError, match="takes rows"):
        loops.row_sums(x[:8], np.zeros(2), 1, 2, 1, False)
    assert reduce._row_sums(x[::2], (1,)) is None


@pytest.mark.parametrize("tier", ["ops", "strided", "program"])
def test_each_way_gives_them(tier: str) -> None:
    """Points of a plane: what has short axes in its middle and at its end."""
    rng = np.random.default_rng(0)
    points = rng.uniform(-1, 1, (60, 2)).astype(np.float32)
    wide = points.astype(np.float64)
    between = wide[:, None] - wide
    wanted = (between / ((between**2).sum(-1) + 0.1)[..., None]).sum(1)
    with override(tier=tier):
        x = smelt.array(points)
        d = x[:, None] - x
        found = (d / ((d * d).sum(-1) + 0.1)[..., None]).sum(1)
        np.testing.assert_allclose(np.array(found), wanted, rtol=1e-4, atol=1e-5)

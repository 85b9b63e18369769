"""Work on the host that threads share: rows of sorts, matrices of batches."""

from __future__ import annotations

import numpy as np
import pytest

import smelt
from smelt.ir import host_threads
from smelt.ir.errors import LibraryError
from smelt.ir.settings import override


@pytest.fixture(autouse=True)
def several_threads():
    with override(num_threads=3):
        yield


@pytest.mark.parametrize("rows", [0, 1, 2, 3, 10, 1001])
def test_every_row_is_worked_on_once(rows: int) -> None:
    seen = np.zeros(rows, int)

    def body(part: slice) -> None:
        seen[part] += 1

    host_threads.share(rows, 1.0, body)
    assert (seen == 1).all()


def test_little_work_stays_on_the_calling_thread() -> None:
    parts: list[slice] = []
    host_threads.share(100, host_threads.WORTH, parts.append)
    assert parts == [slice(0, 100)]


def test_an_error_of_a_part_is_raised() -> None:
    def body(part: slice) -> None:
        if part.stop == 9:
            raise KeyError(part.start)

    with pytest.raises(KeyError):
        host_threads.share(9, 1.0, body)


def test_settings_of_floating_point_hold_in_parts() -> None:
    x = np.zeros(9)

    def body(part: slice) -> None:
        x[part] = 1 / x[part]

    with np.errstate(divide="ignore"):
        host_threads.share(9, 1.0, body)
    assert np.isinf(x).all()


def test_an_error_names_the_matrix_of_the_whole_batch() -> None:
    a = np.random.default_rng(0).standard_normal((40, 50, 8, 8)).astype(np.float32)
    found = np.array(smelt.linalg.inv(smelt.array(a)))
    np.testing.assert_allclose(found, np.linalg.inv(a), rtol=1e-4, atol=1e-3 * np.abs(found).max())
    a[37, 4] = 0
    with pytest.raises(LibraryError, match=r"matrix 37, 4 of the batch is singular"):
        smelt.eval(smelt.linalg.inv(smelt.array(a)))


def test_results_do_not_depend_on_threads() -> None:
    x = smelt.array(np.random.default_rng(1).standard_normal((300, 256)).astype(np.float32))
    functions = (smelt.sort, smelt.argsort, smelt.fft.rfft, lambda x: smelt.topk(x, 3))
    several = [np.array(f(x)) for f in functions]
    with override(num_threads=1):
        for f, found in zip(functions, several):
            np.testing.assert_array_equal(np.array(f(x)), found)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int32", "uint32", "int64", "float64"])
@pytest.mark.parametrize(("shape", "axis"), [((40, 9), 0), ((3, 0), 1), ((2, 300, 3), 1), ((1,), 0), ((0, 4), 1)])
def test_sorting(dtype: str, shape: tuple[int, ...], axis: int) -> None:
    """NaN last, zeros of both signs and equal elements in their order, as NumPy's stable sort has them."""
    x = np.random.default_rng(2).integers(0, 20, shape).astype(np.float32)
    if dtype == "uint32":
        x = x.astype(np.float64) + 2.0**31 - 8
    if "int" not in dtype and x.size > 8:
        flat = x.reshape(-1)
        flat[::7], flat[1::5], flat[2::5], flat[3::11], flat[4::13] = np.nan, 0.0, -0.0, np.inf, -np.inf
    a = smelt.array(x.astype(dtype) if dtype != "bfloat16" else x, dtype=getattr(smelt, dtype))
    host = np.array(a.astype(smelt.float64))
    for f in (lambda a: a, smelt.compile(lambda a: a + 0 if "int" in dtype else a * 1)):
        found = np.array(smelt.sort(f(a), axis=axis).astype(smelt.float64))
        expected = np.sort(host, axis, "stable")
        np.testing.assert_array_equal(found, expected)
        numbers = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(found)[numbers], np.signbit(expected)[numbers])
        np.testing.assert_array_equal(np.array(smelt.argsort(f(a), axis=axis)), np.argsort(host, axis, "stable"))


@pytest.mark.parametrize("shape", [(3, 1000), (1009,), (0, 500), (600, 2)])
@pytest.mark.parametrize("k", [0, 1, 7])
def test_largest_elements(shape: tuple[int, ...], k: int) -> None:
    x = np.random.default_rng(3).integers(-500, 500, shape).astype(np.float32)
    axis = int(np.argmax(shape))
    x.reshape(-1)[: x.size // 400] = np.nan
    expected = np.take(np.sort(x, axis), range(shape[axis] - k, shape[axis]), axis)
    a = smelt.array(x)
    np.testing.assert_array_equal(np.array(smelt.topk(a, k, axis)), expected)
    compiled = smelt.compile(lambda a: smelt.topk(a, k, axis))
    np.testing.assert_array_equal(np.array(compiled(a)), expected)


def test_derivatives_of_largest_elements() -> None:
    x = np.random.default_rng(4).permutation(2000).reshape(2, 1000).astype(np.float32)
    weights = np.array([1, 2, 3], np.float32)
    expected = np.zeros_like(x)
    np.put_along_axis(expected, np.argsort(x)[:, -3:], np.broadcast_to(weights, (2, 3)), 1)
    gradient = smelt.grad(lambda a: (smelt.topk(a, 3) * smelt.array(weights)).sum())(smelt.array(x))
    np.testing.assert_array_equal(np.array(gradient), expected)


@pytest.mark.parametrize("bins", [1, 7, 1000])
@pytest.mark.parametrize("limits", [(-1.0, 1.0), (1e6, 1e6 + 3), (0.0, 0.0), (-1e30, 1e30), (-3e38, 3e38)])
def test_bins_of_one_width(bins: int, limits: tuple[float, float]) -> None:
    """Elements at the edges are where a search of the edges puts them."""
    rng = np.random.default_rng(5)
    with np.errstate(all="ignore"):
        edges = np.array(smelt.histogram_bin_edges(smelt.zeros(1), bins, limits))
        inside = rng.uniform(*limits, 3000).astype(np.float32) if limits != (-3e38, 3e38) else edges[:0]
    special = np.array([np.nan, np.inf, -np.inf], np.float32)
    x = np.concatenate([inside, edges, np.nextafter(edges, np.float32(np.inf)), special])
    found = np.array(smelt.histogram(smelt.array(x), bins, limits).hist)
    if np.isfinite(edges).all():
        kept = x[(x >= edges[0]) & (x <= edges[-1])]
        place = np.minimum(np.searchsorted(edges, kept, "right") - 1, bins - 1)
        np.testing.assert_array_equal(found, np.bincount(place, minlength=bins))


def test_what_is_shared_within_a_share_ends() -> None:
    seen: list[int] = []

    def inner(part: slice) -> None:
        seen.extend(range(part.start, part.stop))

    with override(num_threads=2):
        host_threads.share(2, 1.0, lambda part: host_threads.share(4, 1.0, inner))
    assert sorted(seen) == [0, 0, 1, 1, 2, 2, 3, 3]

"""Scans and sorting against plain loops and Python's sort."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import smelt
from smelt.ir import dtypes, sorting
from smelt.ir import op as op_module
from smelt.ir.errors import AttributeValueError, DTypeError
from smelt.lazy import core

from .rules import Number, ScalarMachine, check_batch, check_jvp, check_tangent_transposes, check_transpose, jvp, run

SCANS = {
    "cumsum": np.sum, "cumprod": np.prod, "cummax": np.max, "cummin": np.min,
    "logcumsumexp": lambda v: np.log(np.sum(np.exp(v))),
}  # fmt: skip
VARIANTS = [{"reverse": r, "inclusive": i} for r in (False, True) for i in (False, True)]


def scan_by_loops(name, x, axis, reverse, inclusive):
    op, out = op_module.get(name), np.empty_like(x)
    x, view = np.moveaxis(x, axis, -1), np.moveaxis(out, axis, -1)
    for at in np.ndindex(x.shape):
        i = at[-1]
        seen = x[at[:-1]][i + (not inclusive) :] if reverse else x[at[:-1]][: i + inclusive]
        view[at] = SCANS[name](seen) if seen.size else op.identity(dtypes.of(x.dtype))
    return out


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
@pytest.mark.parametrize("name", SCANS)
def test_scans(name, variant, rng):
    for shape, axis in (((5,), 0), ((3, 6, 2), 1), ((4, 1), 1), ((0, 3), 0), ((3, 0), 0)):
        x = rng.standard_normal(shape)
        attrs = {"axis": axis, **variant}
        want = scan_by_loops(name, x, **attrs)
        np.testing.assert_allclose(run(name, x, **attrs), want, rtol=1e-12, atol=1e-14)
        if shape[axis]:
            check_jvp(name, [x], (0,), rng, **attrs)
            if x.size:
                check_tangent_transposes(name, [x], (0,), rng, **attrs)
        for dim in range(len(shape) + 1):
            check_batch(name, [np.stack([x, x + 1], dim)], (dim,), **attrs)
        if name == "cumsum":
            check_transpose(name, [x], [True], rng, **attrs)


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin"])
def test_scans_by_steps_of_combine(name, rng):
    """What a backend does: start from the identity, combine in order."""
    op = op_module.get(name)
    for dtype in (dtypes.int8, dtypes.uint16, dtypes.float32, dtypes.float64):
        x = rng.integers(0, 5, 9).astype(dtype.numpy)
        state, out = Number(op.identity(dtype), dtype), []
        for v in x:
            state = op.combine(ScalarMachine(), state, Number(v, dtype))
            out.append(state.value)
        np.testing.assert_array_equal(run(name, x, axis=0), np.array(out))


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
@pytest.mark.parametrize("zeros", [(0,), (2, 5), (0, 6), tuple(range(7))])
def test_cumprod_derivative_is_exact_at_zeros(zeros, variant, rng):
    x = rng.standard_normal(7)
    x[list(zeros)] = 0
    check_jvp("cumprod", [x], (0,), rng, axis=0, **variant)


def test_logcumsumexp_far_from_overflow(rng):
    x = np.array([-np.inf, -np.inf, 1000.0, 999.0, -1000.0, 3000.0])
    found = run("logcumsumexp", x, axis=0)
    two = 1000 + np.log1p(np.exp(-1))
    np.testing.assert_allclose(found[2:], [1000, two, two, 3000])
    assert np.all(found[:2] == -np.inf)
    t = rng.standard_normal(6)
    p = 1 / (1 + np.exp(-1))
    want = [0, 0, t[2], p * t[2] + (1 - p) * t[3], p * t[2] + (1 - p) * t[3], t[5]]
    np.testing.assert_allclose(jvp("logcumsumexp", [x], [t], axis=0), want, atol=1e-12)


@pytest.mark.parametrize("offset", [0.0, -3e4, 1e6, 2e30], ids=str)
@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_logcumsumexp_derivative_of_large_elements(offset, variant, rng):
    """However large the elements are, weights are those of their differences: the result's rounding is not in them."""
    x, t = np.round(rng.standard_normal(9) * 4) + np.float32(offset), rng.standard_normal(9).astype(np.float32)
    x = x.astype(np.float32)
    x[variant["reverse"] * -3 :][:3] = -1e9 - np.abs(offset)  # what a mask hides, first in the scan
    wide = x.astype(np.float64)
    want = np.zeros(9)
    for i in range(9):
        seen = slice(i + (not variant["inclusive"]), None) if variant["reverse"] else slice(i + variant["inclusive"])
        if len(wide[seen]):
            weights = np.exp(wide[seen] - wide[seen].max())
            want[i] = weights @ t[seen] / weights.sum()
    np.testing.assert_allclose(jvp("logcumsumexp", [x], [t], axis=0, **variant), want, rtol=1e-5, atol=1e-6)


def test_cumulative_extrema_give_ties_to_the_latest():
    x, t = np.array([1.0, 3, 3, 2, 3, 5]), np.arange(6.0)
    assert jvp("cummax", [x], [t], axis=0).tolist() == [0, 1, 2, 2, 4, 5]
    assert jvp("cummax", [x], [t], axis=0, inclusive=False).tolist() == [0, 0, 1, 2, 2, 4]
    assert jvp("cummax", [-x], [t], axis=0, reverse=True).tolist() == [0, 3, 3, 3, 4, 5]
    assert jvp("cummin", [-x], [t], axis=0).tolist() == [0, 1, 2, 2, 4, 5]


def test_scan_dtypes(rng):
    for dtype in (np.float16, ml_dtypes.bfloat16):
        found = run("cumsum", np.ones(5000, dtype), axis=0)  # would stop growing in the narrow dtype
        assert found.dtype == dtype and found[-1] == dtype(5000)
        x, t = rng.standard_normal((2, 8)).astype(dtype)
        for name in SCANS:
            assert jvp(name, [x], [t], axis=0).dtype == dtype
    assert run("cumsum", np.full(3, 100, np.int8), axis=0).tolist() == [100, -56, 44]
    x = np.array([False, True, False])
    assert run("cummax", x, axis=0).tolist() == [False, True, True]
    assert run("cummin", x, axis=0, inclusive=False).tolist() == [True, False, False]
    assert np.isnan(run("cummax", np.array([1, np.nan, 2.0]), axis=0)).tolist() == [False, True, True]
    with pytest.raises(DTypeError):
        run("cumsum", x, axis=0)
    with pytest.raises(AttributeValueError):
        run("cumsum", np.ones(3), axis=1)


@pytest.mark.parametrize("dtype", (dtypes.bool_, *dtypes.REAL), ids=lambda d: d.name)
def test_sort(dtype, rng):
    x = rng.integers(0, 20, (4, 30, 3)).astype(dtype.numpy)
    for axis in range(3):
        for dim in range(4):
            check_batch("sort", [np.stack([x, x[::-1]], dim)], (dim,), axis=axis)
            check_batch("argsort", [np.stack([x, x[::-1]], dim)], (dim,), axis=axis)
        lines = np.moveaxis(x, axis, -1).reshape(-1, x.shape[axis]).tolist()
        found = np.moveaxis(run("sort", x, axis=axis), axis, -1).reshape(-1, x.shape[axis]).tolist()
        at = np.moveaxis(run("argsort", x, axis=axis), axis, -1).reshape(-1, x.shape[axis]).tolist()
        assert found == [sorted(line) for line in lines]
        assert at == [sorted(range(len(line)), key=line.__getitem__) for line in lines]  # Python's is stable


@pytest.mark.parametrize("dtype", dtypes.FLOATS, ids=lambda d: d.name)
def test_sort_puts_nan_last(dtype):
    x = np.array([np.nan, 2, -np.inf, np.inf, np.nan, 0]).astype(dtype.numpy)
    found = run("sort", x, axis=0)
    assert found.dtype == dtype.numpy
    np.testing.assert_array_equal(found.astype(float), [-np.inf, 0, 2, np.inf, np.nan, np.nan])
    assert run("argsort", x, axis=0).tolist() == [2, 5, 1, 3, 0, 4]


def test_sort_derivative(rng):
    check_jvp("sort", [rng.standard_normal((3, 5))], (0,), rng, axis=1)
    check_jvp("sort", [rng.standard_normal((3, 5))], (0,), rng, axis=0)
    check_tangent_transposes("sort", [rng.standard_normal((3, 5))], (0,), rng, axis=0)


def no_array_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SMALL", "SMALL_ORDER"):
        monkeypatch.setattr(sorting, name, 0)


@pytest.mark.parametrize(
    "dtype",
    (dtypes.bool_, dtypes.int8, dtypes.uint8, dtypes.int16, dtypes.uint16, *dtypes.FLOATS),
    ids=lambda d: d.name,
)
@pytest.mark.parametrize("shape", [(3, 0), (0, 3), (4, 1), (5, 70), (70, 3), (2, 700), (40, 6), (30, 12)])
def test_sort_leaves_equal_elements_in_their_order(dtype, shape, rng, monkeypatch):
    """0 and -0 are equal and not the same; elements of 8 and 16 bits are counted in long rows."""
    monkeypatch.setattr(sorting, "FEWEST", 1)
    no_array_is_small(monkeypatch)
    some = [0.0, -0.0, 1.0, 2.5, 100.0] + ([-3.0, np.nan, np.inf, -np.inf] if dtype.is_float else [])
    x = rng.choice(np.array(some), shape).astype(dtype.numpy)
    for axis in (0, 1):
        host, found = (a.astype(np.float64) for a in (x, op_module.get("sort").reference(x, axis=axis)))
        wanted = np.sort(host, axis, "stable")
        np.testing.assert_array_equal(found, wanted)
        np.testing.assert_array_equal(np.signbit(found) & (found == 0), np.signbit(wanted) & (wanted == 0))
        order = op_module.get("argsort").reference(x, axis=axis)
        np.testing.assert_array_equal(order, np.argsort(host, axis, "stable"))


def test_networks_sort(monkeypatch):
    """All rows of zeros and ones of each length: what sorts these sorts everything."""
    monkeypatch.setattr(sorting, "FEWEST", 1)
    no_array_is_small(monkeypatch)
    for n in range(1, sorting.NETWORK + 1):
        rows = (np.arange(1 << n)[:, None] >> np.arange(n) & 1).astype(np.int32)
        np.testing.assert_array_equal(sorting.sorted_along(rows, 1), np.sort(rows, 1))
        np.testing.assert_array_equal(sorting.order_along(rows, 1), np.argsort(rows, 1, "stable"))


@pytest.mark.skipif(core.native is None, reason="there is no core in C")
@pytest.mark.parametrize("quicker", [True, False])
def test_which_sort_is_quicker_changes_no_value(quicker, rng, monkeypatch):
    monkeypatch.setattr(sorting, "_digits_are_quicker", lambda: quicker)
    x = rng.standard_normal((3, sorting.LONG // 8)).astype(np.float32)
    x[:, ::50], x[:, 1::50], x[1, ::70] = 0.0, -0.0, np.nan
    found = sorting.sorted_along(x, 1)
    np.testing.assert_array_equal(found, np.sort(x, 1))
    wanted = np.take_along_axis(x, np.argsort(x, 1, "stable"), 1)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted) & ~np.isnan(wanted))
    assert isinstance(sorting._digits_are_quicker(), bool)


NUMBERS = [d for d in dtypes.REAL if d.size > 1]


@pytest.mark.skipif(core.native is None, reason="there is no core in C")
@pytest.mark.parametrize("dtype", NUMBERS, ids=lambda d: d.name)
@pytest.mark.parametrize("shape", [(7, 1), (9, 6), (3, 70), (2, 128), (2, 129), (3, 257), (2, 3000)])
def test_sort_by_digits(dtype, shape, rng, monkeypatch):
    """All of a type's numbers, in rows of any length: what NumPy makes of them."""
    monkeypatch.setattr(sorting, "LONG", 1)
    no_array_is_small(monkeypatch)
    monkeypatch.setattr(sorting, "NETWORK", 0)
    monkeypatch.setattr(sorting, "_LONG_ORDER", {2: 1, 4: 1, 8: 1})
    calls = []
    monkeypatch.setattr(sorting.loops, "radix", lambda *args: calls.append(1) or core.native.radix(*args))
    x = rng.integers(0, 256, (*shape, dtype.size), np.uint8).view(dtype.numpy)[..., 0]  # any bits, many NaN of halves
    for rows in (x, np.sort(x.view(f"u{dtype.size}"), -1).view(dtype.numpy), np.full_like(x, 5), x[:, ::-1]):
        with np.errstate(invalid="ignore"):  # signalling NaN
            wide = rows.astype(np.float64) if dtype.is_float else rows
        found, order = sorting.sorted_along(rows, 1), sorting.order_along(rows, 1)
        assert found.dtype == dtype.numpy and order.dtype == np.uint32 and len(calls) >= 2
        np.testing.assert_array_equal(found.astype(wide.dtype), np.sort(wide, -1))
        np.testing.assert_array_equal(order, np.argsort(wide, -1, "stable"))
        calls.clear()


@pytest.mark.skipif(core.native is None, reason="there is no core in C")
def test_arrays_that_do_not_fit_are_refused():
    x = np.arange(6, dtype=np.int32)
    good = (1, 4, 0, 3, 0, x, np.empty_like(x))
    core.native.radix(*good)
    for place, value in {0: 3, 1: 1, 3: 4, 5: x[:5], 6: np.empty(5, np.int32)}.items():
        with pytest.raises(ValueError):
            core.native.radix(*good[:place], value, *good[place + 1 :])
    with pytest.raises(ValueError):
        core.native.radix(1, 8, 0, 3, 1, np.zeros(3), np.empty(3))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8", "bool"])
@pytest.mark.parametrize(("shape", "axis"), [((9,), 0), ((13, 7), 0), ((13, 7), 1), ((2, 60, 3), 1), ((1, 1), 0)])
def test_small_arrays(shape: tuple[int, ...], axis: int, dtype: str) -> None:
    """NumPy sorts them: NaN last, and equal elements in their order, two zeros too."""
    rng = np.random.default_rng(0)
    x = rng.integers(-3, 4, shape).astype(dtype)
    if dtype.startswith("float"):
        x[rng.random(shape) < 0.2] = np.nan
        x[rng.random(shape) < 0.3] *= -1
    order = np.argsort(x, axis, kind="stable")
    found = sorting.sorted_along(x, axis)
    np.testing.assert_array_equal(sorting.order_along(x, axis), order)
    np.testing.assert_array_equal(found, np.take_along_axis(x, order, axis))
    if dtype.startswith("float"):
        signs = np.signbit(np.take_along_axis(x, order, axis))
        np.testing.assert_array_equal(np.signbit(found) & ~np.isnan(found), signs & ~np.isnan(found))


def _arrangements(x: np.ndarray) -> dict[str, np.ndarray]:
    """The same rows, of a memory in which they lie otherwise."""
    columns = np.array(x.T, order="C")
    backwards, twice = columns[:, ::-1].copy(), np.repeat(columns, 2, 1)
    return {"rows": x, "columns": columns.T, "reversed": backwards[:, ::-1].T, "strided": twice[:, ::2].T}


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int32", "int64", "float16", "float32", "float64"])
def test_what_is_sorted_keeps_its_values(dtype, rng):
    """However it lies in memory, short rows of networks, those that are counted, and those of digits."""
    for n in (2, 6, sorting.NETWORK, sorting.NETWORK + 1, 70, 600):
        rows = (rng.standard_normal((2 * sorting.FEWEST // min(n, 40) + sorting.FEWEST, n)) * 50).astype(dtype)
        for name, x in _arrangements(rows).items():
            assert sorting.sorted_along(x, 1).tobytes() == np.sort(rows, 1, "stable").tobytes(), (n, name)
            np.testing.assert_array_equal(x, rows, err_msg=f"{n} {name}")
            np.testing.assert_array_equal(sorting.order_along(x, 1), np.argsort(rows, 1, "stable"))
            np.testing.assert_array_equal(x, rows, err_msg=f"{n} {name}")


def test_sorted_along_a_moved_axis():
    """Lazily, its operand is the memory of another array."""
    x = np.random.default_rng(0).random((10, 11, 130))
    a = smelt.array(x)
    for f in (smelt.sort, smelt.argsort, lambda v, axis: smelt.partition(v, 3, axis)):
        smelt.eval(f(smelt.moveaxis(a, 0, -1), axis=-1))
        np.testing.assert_array_equal(np.array(a), x.astype(np.float32))

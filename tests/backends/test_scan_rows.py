"""Scans along rows in vectors: values of NumPy, whatever the ends, the operand and the number of threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.backends import buffer
from smelt.backends.cpu import scan_rows, streaming

#: Rows side by side and alone, about as long as a vector, a chunk, several of them; none and one of either.
SHAPES = [(16, 16), (17, 15), (19, 65), (33, 130), (3, 64), (1, 513), (2, 1100), (2, 9, 77), (0, 40), (40, 0), (40, 1)]
DTYPES = ["float32", "float64", "float16", "bfloat16", "int8", "uint8", "int32", "uint64", "bool", "complex64"]
SCANS: dict[str, tuple[Callable[..., Any], Callable[[np.ndarray], np.ndarray]]] = {
    "cumsum": (smelt.cumsum, lambda x: np.cumsum(x, -1, dtype=x.dtype)),
    "cumprod": (smelt.cumprod, lambda x: np.cumprod(x, -1, dtype=x.dtype)),
    "cummax": (smelt.cummax, lambda x: np.maximum.accumulate(x, -1)),
    "cummin": (smelt.cummin, lambda x: np.minimum.accumulate(x, -1)),
    "logcumsumexp": (smelt.logcumsumexp, lambda x: np.logaddexp.accumulate(x, -1)),
}
STARTS = {"cumsum": 0.0, "cumprod": 1.0}


def _drawn(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    rng = np.random.default_rng(0)
    held = {"bfloat16": "float32"}.get(dtype, dtype)
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if "int" in dtype:
        return rng.integers(0, 4, shape).astype(held)
    return (np.round(rng.standard_normal(shape) * 4) / 4).astype(held)  # with ties and zeros of both signs


def _wanted(name: str, x: np.ndarray, dtype: str) -> np.ndarray:
    wide = {"float16": np.float32, "float32": np.float64}.get(dtype, x.dtype) if name != "cummax" else x.dtype
    with np.errstate(all="ignore"):
        return SCANS[name][1](x.astype(wide)) if x.size else x


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", SCANS)
def test_scans_of_rows(name: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if (dtype == "bool" and name not in ("cummax", "cummin")) or (
        name == "logcumsumexp" and dtype not in ("float32", "float64", "bfloat16")
    ):
        pytest.skip("not of this dtype")
    if dtype == "complex64" and name != "cumsum":
        pytest.skip("no other way than for cumsum")
    if dtype in ("float32", "bfloat16"):
        monkeypatch.setattr(streaming, "STREAM_BYTES", 1)
        monkeypatch.setattr(buffer, "SMALL", 0)
    hosts = [_drawn(shape, dtype) for shape in SHAPES]
    arrays = [smelt.array(x).astype(getattr(smelt, dtype if dtype != "bool" else "bool_")) for x in hosts]
    found = smelt.compile(lambda xs: [SCANS[name][0](x, axis=-1) for x in xs])(arrays)
    loose = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 2e-6, "float64": 1e-14, "complex64": 1e-6}.get(dtype, 0)
    for x, f in zip(hosts, found):
        want = _wanted(name, x, dtype)
        got = np.asarray(f.astype(smelt.float32) if dtype == "bfloat16" else f)
        scale = np.abs(want.astype(np.float64) if dtype != "complex64" else want).max(initial=0.0)
        np.testing.assert_allclose(got, want.astype(got.dtype), rtol=loose, atol=loose * scale)


@pytest.mark.parametrize("shape", [(18, 70), (2, 531)])
def test_directions_operands_and_layouts(shape: tuple[int, int]) -> None:
    x = _drawn(shape, "float32")
    other, wide = _drawn((shape[1], shape[0]), "float32"), _drawn((shape[0], 2 * shape[1] + 1), "float32")

    def scans(x: Any, other: Any, wide: Any) -> list[Any]:
        return [
            smelt.cumsum(x, axis=-1, reverse=True), smelt.cumsum(x, axis=-1, inclusive=False),
            smelt.cummax(x, axis=-1, reverse=True, inclusive=False), smelt.cumsum(smelt.exp(x) * 2, axis=-1),
            smelt.cumsum(other.T, axis=-1), smelt.cummin(wide[:, 1::2], axis=-1), smelt.cumsum(wide[:, ::-2], axis=-1),
            smelt.cumsum(smelt.broadcast_to(x[:, :1], x.shape), axis=-1), smelt.cumprod(x[:, ::-1] / 2, axis=-1),
            smelt.cumsum(x.astype(smelt.int32), axis=-1).astype(smelt.float32),
        ]  # fmt: skip

    found = smelt.compile(scans)(*map(smelt.array, (x, other, wide)))
    sums = np.cumsum(x.astype(np.float64), -1)
    largest = np.maximum.accumulate(x[:, ::-1], -1)[:, ::-1]
    wanted = [
        np.cumsum(x[:, ::-1].astype(np.float64), -1)[:, ::-1],
        np.concatenate([np.zeros_like(sums[:, :1]), sums[:, :-1]], -1),
        np.concatenate([largest[:, 1:], np.full_like(x[:, :1], -np.inf)], -1),
        np.cumsum(np.exp(x.astype(np.float64)) * 2, -1), np.cumsum(other.T.astype(np.float64), -1),
        np.minimum.accumulate(wide[:, 1::2], -1), np.cumsum(wide[:, ::-2].astype(np.float64), -1),
        x[:, :1] * np.arange(1.0, shape[1] + 1), np.cumprod(x[:, ::-1].astype(np.float64) / 2, -1),
        np.cumsum(x.astype(np.int32), -1),
    ]  # fmt: skip
    for got, want in zip(found, wanted):
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("rows", [1, 16])
def test_numbers_that_are_none_stay_in_their_place(rows: int) -> None:
    x = np.ones((rows, 200), np.float32)
    x[:, 20], x[:, 70], x[:, 90] = np.inf, -np.inf, np.nan
    y = np.ones((rows, 200), np.float32)
    y[:, :3] = 0.0, 1e30, 1e30  # a product of neighbours is infinite, that of all is zero
    z = np.where(np.arange(200) % 2, 0.0, -0.0).astype(np.float32) * np.ones((rows, 1), np.float32)
    f = smelt.compile(
        lambda x, y, z: (x.cumsum(axis=-1), smelt.cummax(x, axis=-1), smelt.cumprod(y, axis=-1), z.cumsum(axis=-1))
    )
    sums, largest, products, zeros = (np.asarray(v) for v in f(*map(smelt.array, (x, y, z))))
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(sums, np.cumsum(x, -1))
    np.testing.assert_array_equal(largest, np.maximum.accumulate(x, -1))
    assert not products.any() and not zeros.any()


def test_bits_do_not_depend_on_threads() -> None:
    x = np.random.default_rng(0).standard_normal((50, 3000), np.float32)
    found = []
    for threads in (1, 3, 16):
        with smelt.ir.settings.override(num_threads=threads):
            f = smelt.compile(lambda x: (x.cumsum(axis=-1), x[:3].cumsum(axis=-1), smelt.cumprod(x, axis=-1)))
            found.append([np.array(v) for v in f(smelt.array(x))])
    for other in found[1:]:
        for a, b in zip(found[0], other):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("dtype", "columns", "turned"),
    [("float32", 256, True), ("float64", 256, True), ("float32", 255, False), ("bfloat16", 256, False),
     ("int8", 256, False)],
)  # fmt: skip
def test_rows_that_are_narrow_or_begin_anywhere_are_not_turned(
    dtype: str, columns: int, turned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming, "STREAM_BYTES", 1)
    x = smelt.zeros((40, columns), getattr(smelt, dtype))
    kernel = smelt.compile(lambda x: x.cumsum(axis=1)).trace(x).lower().compile().as_text("kernel")
    lanes = 8 if dtype == "float64" else 16
    assert (f"memref<{lanes * scan_rows.PITCH}x" in kernel) == turned
    assert (f"memref<{scan_rows.LONG}x" in kernel) != turned

"""Products of few rows with packed weights that lie along the result, and what elements of words have in common."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.backends.contraction import Product
from smelt.backends.cpu.contract import build, tables
from smelt.ir.settings import override

from ..spies import calls_of
from .test_expressions import _agree, _float64


@pytest.fixture(autouse=True)
def checked() -> Iterator[None]:
    """For places outside of arrays."""
    with override(check=True):
        yield


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[Product]:
    """Products that took this kernel."""
    return calls_of(monkeypatch, build, "build_packed_lines", lambda arguments, result: arguments[-1])


def _random(seed: int, *shape: int, dtype: Any = smelt.float32) -> smelt.array:
    return smelt.array(np.random.default_rng(seed).standard_normal(shape).astype(np.float32)).astype(dtype)


def _dequantized(packed: Any, *form: Any) -> smelt.array:
    return smelt.dequantize(*packed, **dict(zip(("group_size", "bits", "mode"), form)), dtype=smelt.float32)


def _product(transpose: bool, *form: Any) -> Any:
    group, bits, mode = form

    def product(x: smelt.array, w: smelt.array, scales: smelt.array, *biases: smelt.array) -> smelt.array:
        return smelt.quantized_matmul(x, w, scales, *(biases or [None]), transpose, group, bits, mode)

    return smelt.compile(product)


GROUPS, BITS = (32, 64, 128), (1, 2, 3, 4, 5, 6, 8)


def _check_format(rows: int, depth: int, dtype: Any, *form: Any) -> None:
    packed, x = smelt.quantize(_random(rows, depth, 768, dtype=dtype), *form), _random(99, rows, depth, dtype=dtype)
    found = _product(False, *form)(x, *packed)
    _agree(found, x, smelt.swapaxes(_dequantized(packed, *form), 0, 1))
    assert found.dtype is dtype


@pytest.mark.thinned(3)
@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("bits", BITS)
def test_formats(bits: int, group: int, built: list[Product]) -> None:
    """Depths that blocks of steps do and do not divide, and, with `test_formats_of_floats`, all numbers of rows."""
    i, k = BITS.index(bits), GROUPS.index(group)
    dtype = (smelt.float32, smelt.bfloat16, smelt.float16)[(i // 3 + k) % 3]
    _check_format(1 + (i + 3 * k) % 8, (67, 130, 256)[i % 3], dtype, group, bits, "affine")
    assert built


@pytest.mark.parametrize(
    ("rows", "depth", "dtype", "form"),
    [
        (2, 67, smelt.float32, (32, 4, "mxfp4")),
        (5, 130, smelt.bfloat16, (32, 8, "mxfp8")),
        (7, 256, smelt.float16, (16, 4, "nvfp4")),
    ],
)
def test_formats_of_floats(rows: int, depth: int, dtype: Any, form: tuple[int, int, str], built: list[Product]) -> None:
    _check_format(rows, depth, dtype, *form)
    assert built


@pytest.mark.parametrize("rows", [9, 22])
@pytest.mark.parametrize("form", [(32, 3, "affine"), (64, 4, "affine"), (32, 8, "mxfp8")])
def test_blocks_of_rows(form: tuple[int, int, str], rows: int, built: list[Product]) -> None:
    packed, x = smelt.quantize(_random(rows, 70, 512), *form), _random(11, rows, 70)
    _agree(_product(False, *form)(x, *packed), x, smelt.swapaxes(_dequantized(packed, *form), 0, 1))
    assert built


@pytest.mark.parametrize("shape", [(0, 64), (2, 0), (0, 0)])
@pytest.mark.parametrize("transpose", [False, True])
def test_empty(shape: tuple[int, int], transpose: bool) -> None:
    rows, depth = shape
    packed = smelt.quantize(smelt.zeros((128, depth) if transpose else (depth, 128)), 64, 4)
    found = _product(transpose, 64, 4, "affine")(smelt.zeros(shape), *packed)
    np.testing.assert_array_equal(np.asarray(found), np.zeros((rows, 128)))


def test_experts(built: list[Product]) -> None:
    packed, x, chosen = smelt.quantize(_random(1, 5, 96, 512), bits=4), _random(2, 4, 1, 96), smelt.array([3, 0, 3, 4])
    plain = smelt.dequantize(*packed, bits=4)[chosen]
    f = smelt.compile(lambda x, at, *w: smelt.gather_qmm(x, *w, rhs_indices=at, transpose=False, bits=4))
    _agree(f(x, chosen, *packed), x, smelt.swapaxes(plain, -1, -2))
    assert built


def test_with_what_comes_behind(built: list[Product]) -> None:
    packed, x, bias = smelt.quantize(_random(3, 128, 512), bits=8), _random(4, 2, 128), smelt.arange(512) / 8
    f = smelt.compile(
        lambda x, bias, *w: smelt.maximum(smelt.quantized_matmul(smelt.exp(x), *w, transpose=False, bits=8) + bias, 0)
    )
    wanted = np.maximum(np.exp(_float64(x)) @ _float64(smelt.dequantize(*packed, bits=8)) + np.arange(512) / 8, 0)
    np.testing.assert_allclose(np.asarray(f(x, bias, *packed)), wanted, rtol=1e-4, atol=1e-3)
    assert built


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("form", [(64, 4, "affine"), (32, 4, "mxfp4")])
def test_scales_that_are_not_finite(form: tuple[int, int, str], transpose: bool) -> None:
    """As where each weight is made by itself: infinity times a code of zero is NaN, and others are as ever."""
    mode = form[-1]
    w, scales, *biases = (np.array(v) for v in smelt.quantize(_random(5, 256, 256), *form))
    if mode == "affine":
        scales[3, 1], scales[17, 0], biases[0][40, 2] = np.inf, np.nan, -np.inf
    else:
        scales[3, 1] = 255  # NaN
    packed = [smelt.array(v) for v in (w, scales, *biases)]
    x = np.abs(np.array(_random(6, 3, 256)))
    x[1, 7], x[2] = np.inf, 3e38  # what overflows on the way, and does not as it is written
    plain = np.asarray(_dequantized(packed, *form))
    found = np.asarray(_product(transpose, *form)(smelt.array(x), *packed))
    with np.errstate(all="ignore"):
        wanted = (x[:, None, :] * (plain if transpose else plain.T)[None]).astype(np.float32)
        sums = wanted.sum(-1)
    clear = np.isfinite(wanted).all(-1) & np.isfinite(sums)
    np.testing.assert_array_equal(np.isnan(found[:2]), np.isnan(sums[:2]))
    np.testing.assert_array_equal(found[:2][np.isinf(sums[:2])], sums[:2][np.isinf(sums[:2])])
    scale = np.abs(wanted).sum(-1, dtype=np.float64)
    np.testing.assert_array_less(np.abs(found[clear] - sums[clear]), 1e-5 * scale[clear] + 1e-9)


@pytest.mark.parametrize("transpose", [False, True])
def test_the_number_of_threads_does_not_matter(transpose: bool) -> None:
    packed, x = smelt.quantize(_random(7, 1024, 1024), bits=4), _random(8, 3, 1024)
    found = []
    for n in (1, 2, 3):
        with override(num_threads=n, tier="program", check=False):
            found.append(np.asarray(_product(transpose, 64, 4, "affine")(x, *packed)))
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


@pytest.mark.parametrize("mode", ["affine", "mxfp4"])
def test_registers_without_tables(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same numbers where no register holds a table. Integers need none: they become floats as they are."""
    x, packed, found = _random(9, 1, 256), smelt.quantize(_random(10, 256, 512), 32, 4, mode), []
    original, asked = tables.has_wide_registers, list[bool]()
    for wide in (original(), False):
        monkeypatch.setattr(tables, "has_wide_registers", lambda wide=wide: asked.append(wide) or wide)
        smelt.clear_cache()
        with override(cache=False):
            found.append(np.asarray(_product(False, 32, 4, mode)(x, *packed)))
    np.testing.assert_array_equal(*found)
    assert set(asked) == ({original(), False} if mode == "mxfp4" else set())


def test_tables_of_few_bits() -> None:
    """Any function of such numbers, by whatever ops, is looked up; the mask may come first or last."""
    random = np.random.default_rng(11)
    words, x = random.integers(0, 2**32, (64, 32), np.uint32), random.integers(-3, 4, (1, 64)).astype(np.float32)
    scale = random.integers(1, 4, (64, 1)).astype(np.float32)

    def weights(w: Any, scale: Any, of: Any) -> Any:
        codes = (w[..., None] >> of.arange(0, 32, 4).astype(of.uint32)).reshape(64, 256) & of.array(7, dtype=of.uint32)
        return of.where(codes > 3, codes.astype(of.float32) * 0.5 - 9, codes.astype(of.float32)) * scale

    found = smelt.compile(lambda x, w, s: x @ weights(w, s, smelt))(*map(smelt.array, (x, words, scale)))
    np.testing.assert_array_equal(np.asarray(found), x @ weights(words, scale, np))

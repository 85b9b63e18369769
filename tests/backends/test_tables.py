"""Floats of few bits that are looked up: every one of them, NaN too, with registers that hold tables and without."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import smelt
from smelt.backends.cpu.contract import tables
from smelt.functions.quantization import packed
from smelt.ir.settings import override

from ..spies import calls_of

#: Of processors, by what they look numbers up with.
FEATURES = [(), ("AVX2",), ("AVX2", "AVX512F"), ("AVX2", "AVX512F", "AVX512VBMI")]


@pytest.fixture(params=FEATURES, ids=lambda features: features[-1] if features else "none")
def features(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, ...]]:
    """What there is of some features; no program is one that was made with others."""
    has = tables.has_feature
    found = tuple(name for name in request.param if has(name))
    monkeypatch.setattr(tables, "has_feature", lambda name: name in found)
    monkeypatch.setattr(tables, "has_wide_registers", lambda: "AVX512F" in found)
    smelt.clear_cache()
    with override(cache=False):
        yield found
    smelt.clear_cache()


@pytest.mark.parametrize("transpose", [True, False])
def test_floats_of_eight_bits(features: tuple[str, ...], transpose: bool) -> None:
    codes = np.arange(256, dtype=np.uint8).reshape(64, 4)  # no two words alike: what is chosen wrongly is seen
    codes = np.ascontiguousarray(np.broadcast_to(codes[:, None], (64, 32, 4))).reshape(64, 128)
    words, scales = smelt.array(codes.view(np.uint32)), smelt.full((64, 4), 128, dtype=smelt.uint8)
    x = np.zeros((4, 128 if transpose else 64), np.float32)
    x[np.arange(4), np.arange(4) + 16] = 1
    f = smelt.compile(lambda x, w, s: smelt.quantized_matmul(x, w, s, None, transpose, mode="mxfp8"))
    found = np.asarray(f(smelt.array(x), words, scales))
    plain = 2 * np.asarray(smelt.from_fp8(smelt.array(codes), smelt.float32))
    numbers, nans = np.nan_to_num(plain), np.isnan(plain)
    wanted = x @ (numbers.T if transpose else numbers)
    odd = np.broadcast_to(nans.any(axis=1) if transpose else nans.any(axis=0), wanted.shape)  # 0 · NaN is NaN
    np.testing.assert_array_equal(np.isnan(found), odd)
    np.testing.assert_array_equal(found[~odd], wanted[~odd])


@pytest.mark.parametrize("mode", ["mxfp4", "nvfp4"])
@pytest.mark.parametrize("transpose", [True, False])
def test_floats_of_four_bits(
    mode: str, transpose: bool, features: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every one of them in every place of a word, exactly, by one instruction or two."""
    called = calls_of(monkeypatch, tables, "called", lambda arguments, result: arguments[1])
    group = {"mxfp4": 32, "nvfp4": 16}[mode]
    codes = np.random.default_rng(0).permuted(np.resize(np.arange(16, dtype=np.uint32), (128, 512)), axis=1)
    words, one = packed(smelt.array(codes), 4), {"mxfp4": 127, "nvfp4": 56}[mode]
    scales = smelt.full((128, 512 // group), one, dtype=smelt.uint8)
    rows = smelt.eye(512 if transpose else 128)[:4]

    def product(x: smelt.array, w: smelt.array, s: smelt.array) -> smelt.array:
        return smelt.quantized_matmul(x, w, s, None, transpose, group, 4, mode)

    found = np.asarray(smelt.compile(product)(rows, words, scales))
    sizes = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)
    floats = np.concatenate([sizes, -sizes])[codes]
    np.testing.assert_array_equal(found, floats.T[:4] if transpose else floats[:4])
    wanted = {"none": set[str](), "AVX2": {"avx2.permps"}}.get(features[-1] if features else "none")
    assert set(called) == ({"avx512.permvar.sf.512"} if wanted is None else wanted)

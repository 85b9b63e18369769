"""Floats of few bits that are looked up: every one of them, NaN too, with registers that hold tables and without."""

from __future__ import annotations

import numpy as np
import pytest

import smelt
from smelt.backends.cpu.contract import tables


@pytest.mark.parametrize("features", [(), ("AVX512F",), ("AVX512F", "AVX512VBMI")], ids=len)
@pytest.mark.parametrize("transpose", [True, False])
def test_floats_of_eight_bits(features: tuple[str, ...], transpose: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    has = tables.has_feature
    monkeypatch.setattr(tables, "has_feature", lambda name: name in features and has(name))
    monkeypatch.setattr(tables, "has_wide_registers", lambda: "AVX512F" in features and has("AVX512F"))
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

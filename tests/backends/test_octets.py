"""Weights in three, five or six bits: their bytes come to their places by one step, and the values are NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

import smelt


@pytest.mark.parametrize("transpose", [True, False])
@pytest.mark.parametrize("bits", [3, 5, 6])
def test_packed_weights(bits: int, transpose: bool) -> None:
    random = np.random.default_rng(bits)
    w = smelt.array(random.standard_normal((96, 384)).astype(np.float32))
    x = smelt.array(random.standard_normal((2, 384 if transpose else 96)).astype(np.float32))
    packed = smelt.quantize(w, 32, bits)
    f = smelt.compile(lambda x, *w: smelt.quantized_matmul(x, *w, transpose, 32, bits))
    plain = np.asarray(smelt.dequantize(*packed, 32, bits), np.float64)
    wanted = np.asarray(x, np.float64) @ (plain.T if transpose else plain)
    np.testing.assert_allclose(np.asarray(f(x, *packed)), wanted, rtol=1e-5, atol=1e-4)
    kernel = f.trace(x, *packed).lower().compile().as_text("kernel")
    assert "arith.trunci" not in kernel and "vector<64xi8>" in kernel  # no byte by itself


def joined(octets: smelt.array, places: tuple[int, ...]) -> smelt.array:
    found = smelt.zeros(octets[..., 0].shape, smelt.uint32)
    for place, i in enumerate(places):
        found = found | octets[..., i].astype(smelt.uint32) << 8 * place
    return found


@pytest.mark.parametrize("places", [(0, 1), (1, 0), (0, 2), (2, 3), (0, 1, 2), (2, 1, 0), (1, 2, 3, 4), (4, 4), (3,)])
@pytest.mark.parametrize("as_words", [True, False])
def test_bytes_in_any_order(places: tuple[int, ...], as_words: bool) -> None:
    """Those that are no neighbours, or not in their order, are read one by one."""
    random = np.random.default_rng(len(places))
    octets = random.integers(0, 256, (40, 320), np.uint8)
    x = random.integers(-2, 3, (2, 64)).astype(np.float32)
    given = smelt.array(octets.view(np.uint32) if as_words else octets)

    def product(x: smelt.array, w: smelt.array) -> smelt.array:
        w = smelt.view(w, smelt.uint8) if as_words else w
        return x @ (joined(w.reshape(40, 64, 5), places) & 0xFFFF).astype(smelt.float32).T

    parts = octets.reshape(40, 64, 5).astype(np.uint32)
    numbers = sum(parts[..., i] << 8 * place for place, i in enumerate(places)) & 0xFFFF
    found = smelt.compile(product)(smelt.array(x), given)
    np.testing.assert_allclose(np.asarray(found), x @ numbers.astype(np.float32).T, rtol=1e-5)


@pytest.mark.parametrize("bits", [3, 5, 6])
def test_of_chosen_matrices(bits: int) -> None:
    random = np.random.default_rng(7)
    packed = smelt.quantize(smelt.array(random.standard_normal((3, 40, 128)).astype(np.float32)), 32, bits)
    x, at = smelt.array(random.standard_normal((4, 1, 128)).astype(np.float32)), smelt.array([2, 0, 2, 1])
    f = smelt.compile(lambda x, at, *w: smelt.gather_qmm(x, *w, rhs_indices=at, group_size=32, bits=bits))
    plain = np.asarray(smelt.dequantize(*packed, 32, bits))[np.asarray(at)]
    np.testing.assert_allclose(np.asarray(f(x, at, *packed)), np.asarray(x) @ plain.swapaxes(1, 2), 1e-4, 1e-4)


def test_a_number_that_all_lanes_share() -> None:
    random = np.random.default_rng(8)
    octets, w = random.integers(0, 256, (40, 3), np.uint8), random.integers(-3, 4, (40, 64))
    x = random.integers(-2, 3, (2, 64)).astype(np.float32)

    def product(x: smelt.array, octets: smelt.array, w: smelt.array) -> smelt.array:
        shared = (joined(octets, (0, 1)) & 7).astype(smelt.float32)
        return x @ (w.astype(smelt.float32) * shared[:, None]).T

    found = smelt.compile(product)(smelt.array(x), smelt.array(octets), smelt.array(w.astype(np.int8)))
    np.testing.assert_allclose(np.asarray(found), x @ (w * (octets[:, :1] & 7)).T.astype(np.float32), rtol=1e-5)

"""Random bits against published answers of Threefry, and in their distribution."""

from __future__ import annotations

import numpy as np
import pytest

from smelt.ir import dtypes
from smelt.ir import op as op_module
from smelt.ir.aval import Aval
from smelt.ir.errors import AttributeValueError, DTypeError, ShapeError
from smelt.ir.ops.random import threefry2x32

from .rules import Number, ScalarMachine, check_batch, constants, elements, fetcher, run

ONES = 0xFFFFFFFF


@pytest.mark.parametrize(
    "key, counter, block",  # published with Random123
    [
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((ONES, ONES), (ONES, ONES), (0x1CB996FC, 0xBB002BE7)),
        ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
    ],
)
def test_threefry_known_answers(key, counter, block):
    words = [np.array([w], np.uint32) for w in (*key, *counter)]
    assert tuple(int(x[0]) for x in threefry2x32(*words)) == block
    numbers = [Number(w, dtypes.uint32) for w in (*key, *counter)]
    assert tuple(int(x.value) for x in threefry2x32(*numbers)) == block


def test_random_bits_are_blocks_of_threefry():
    key = np.array([5, 6], np.uint32)
    zero = np.zeros(1, np.uint32)
    blocks = [threefry2x32(key[:1], key[1:], zero, np.array([n], np.uint32)) for n in range(6)]
    first, second = ([int(b[i][0]) for b in blocks] for i in (0, 1))
    for width in (8, 16, 32):
        found = run("random_bits", key, shape=(2, 3), width=width)
        assert found.dtype == f"uint{width}"
        assert found.ravel().tolist() == [x % 2**width for x in first]
    wide = run("random_bits", key, shape=(2, 3), width=64)
    assert wide.ravel().tolist() == [(x << 32) + y for x, y in zip(first, second)]
    split = run("random_split", key, num=2)
    want = [threefry2x32(*(np.array([w], np.uint32) for w in (5, 6, ONES, i))) for i in range(2)]
    assert split.tolist() == [[int(x[0]), int(y[0])] for x, y in want]


@pytest.mark.parametrize("width", [8, 16, 32, 64])
def test_random_elements_are_the_reference(width, rng):
    for batch in ((), (3,), (2, 2)):
        keys = rng.integers(0, 2**32, (*batch, 2)).astype(np.uint32)
        for shape in ((), (4,), (2, 3)):
            attrs = {"shape": shape, "width": width}
            found = run("random_bits", keys, **attrs)
            np.testing.assert_array_equal(found, elements("random_bits", keys, **attrs))
            for dim in range(len(batch) + 1):
                check_batch("random_bits", [np.stack([keys, keys + np.uint32(1)], dim)], (dim,), **attrs)
        np.testing.assert_array_equal(run("random_split", keys, num=3), elements("random_split", keys, num=3))
        check_batch("random_split", [np.stack([keys, keys ^ np.uint32(9)])], (0,), num=3)


def test_random_bits_of_arrays_beyond_4_gigaelements():
    """The offset's high word is part of the counter."""
    op, key = op_module.get("random_bits"), np.array([1, 2], np.uint32)
    attrs = {"shape": (2**20, 2**14), "width": 32}
    aval = Aval((2,), dtypes.uint32)
    at = 2**19 + 3, 77
    n = at[0] * 2**14 + at[1]
    found = op.element(
        ScalarMachine(), constants(at), fetcher([key]), [aval], op.infer(aval, **attrs), **attrs
    ).value
    want = threefry2x32(*(np.array([w], np.uint32) for w in (1, 2, n >> 32, n & ONES)))[0][0]
    assert n >> 32 and found == want


def test_random_bits_are_uniform():
    bits = run("random_bits", np.array([0, 42], np.uint32), shape=(1 << 16,), width=32)
    ones = np.unpackbits(bits.view(np.uint8).reshape(-1, 4), axis=1).mean(0)
    assert np.all(np.abs(ones - 0.5) < 5 * 0.5 / 256)  # five standard deviations, each of 32 bits
    counts = np.bincount(bits >> 24, minlength=256)
    assert ((counts - 256.0) ** 2 / 256).sum() < 255 + 5 * np.sqrt(2 * 255)


def test_random_errors():
    key = np.zeros(2, np.uint32)
    with pytest.raises(DTypeError, match="key is int32"):
        run("random_bits", np.zeros(2, np.int32), shape=(3,), width=32)
    with pytest.raises(ShapeError, match="2 words"):
        run("random_split", np.zeros(3, np.uint32), num=2)
    with pytest.raises(AttributeValueError, match="width 12"):
        run("random_bits", key, shape=(3,), width=12)
    with pytest.raises(AttributeValueError, match="negative"):
        run("random_bits", key, shape=(-3,), width=32)

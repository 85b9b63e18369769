"""Random bits against published answers of Threefry, their order, and their distribution."""

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


def blocks(key, *counters):
    words = [np.array(w, np.uint32) for w in zip(*counters)]
    return [x.tolist() for x in threefry2x32(key[:1], key[1:], *words)]


def test_random_bits_are_blocks_of_threefry():
    """Both words of a block: the first ones are the first half, the second ones the second."""
    key = np.array([5, 6], np.uint32)
    first, second = blocks(key, (0, 3), (1, 4), (2, 5))
    words = run("random_bits", key, shape=(2, 3), width=32)
    assert words.dtype == "uint32" and words.ravel().tolist() == first + second
    (a, b), (c, d) = blocks(key, (0, 3), (1, 4))
    middle = blocks(key, (2, 0))[0]
    assert run("random_bits", key, shape=(5,), width=32).tolist() == [a, b, *middle, c, d]
    assert run("random_bits", key, shape=(), width=32).tolist() == blocks(key, (0, 0))[0][0]
    for width in (8, 16):
        found, each = run("random_bits", key, shape=(2, 3), width=width), 32 // width
        assert found.dtype == f"uint{width}"
        words = run("random_bits", key, shape=(-(-6 // each),), width=32).tolist()
        assert found.ravel().tolist() == [words[i // each] >> i % each * width & 2**width - 1 for i in range(6)]
    low, high = blocks(key, *((i, i + 6) for i in range(6)))
    wide = run("random_bits", key, shape=(2, 3), width=64)
    assert wide.ravel().tolist() == [(y << 32) + x for x, y in zip(low, high)]


@pytest.mark.parametrize("width", [8, 16, 32, 64])
def test_random_elements_are_the_reference(width, rng):
    for batch in ((), (3,), (2, 2)):
        keys = rng.integers(0, 2**32, (*batch, 2)).astype(np.uint32)
        for shape in ((), (4,), (2, 3), (3, 1, 3), (1, 2, 2)):
            attrs = {"shape": shape, "width": width}
            found = run("random_bits", keys, **attrs)
            np.testing.assert_array_equal(found, elements("random_bits", keys, **attrs))
            for dim in range(len(batch) + 1):
                check_batch("random_bits", [np.stack([keys, keys + np.uint32(1)], dim)], (dim,), **attrs)


@pytest.mark.parametrize("n", [2**32 - 1, 2**32, 2**33 - 1, 2**33])
def test_random_bits_of_arrays_beyond_4_gigaelements(n):
    """Counters are modulo 2³²; no block occurs twice."""
    op, key, aval = op_module.get("random_bits"), np.array([1, 2], np.uint32), Aval((2,), dtypes.uint32)
    attrs = {"shape": (n,), "width": 32}
    half = n // 2
    middle = n - half
    for at in (0, 77, half - 1, half, middle, middle + 77, n - 1):
        found = op.element(ScalarMachine(), constants((at,)), fetcher([key]), [aval], op.infer(aval, **attrs), **attrs)
        first = at - middle if at >= middle else at
        second = 0 if n % 2 and at == half else first + middle & ONES
        assert found.value == blocks(key, (first & ONES, second))[at >= middle][0]


def test_more_words_than_a_key_has():
    op, aval = op_module.get("random_bits"), Aval((2,), dtypes.uint32)
    for shape, width in (((2**33 + 1,), 32), ((2**32, 2), 64), ((2**20, 2**16), 8)):
        with pytest.raises(AttributeValueError, match=r"more than the 2\*\*33 words of a key"):
            op.infer(aval, shape=shape, width=width)


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
        run("random_bits", np.zeros(3, np.uint32), shape=(3,), width=32)
    with pytest.raises(AttributeValueError, match="width 12"):
        run("random_bits", key, shape=(3,), width=12)
    with pytest.raises(AttributeValueError, match="negative"):
        run("random_bits", key, shape=(-3,), width=32)

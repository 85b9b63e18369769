"""Words that are shifted by a row of numbers, as packed ones are taken out of them, have a loop: NumPy's bits."""

from __future__ import annotations

import numpy as np
import pytest

import smelt
from smelt.ir import short_axes
from smelt.ir.host_loops import loops
from smelt.ir.settings import override

from ..spies import calls_of

pytestmark = pytest.mark.host("about NumPy's shifts")


def _words(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).integers(0, 2**32, shape, np.uint32)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 16, 31, 32, 33])
def test_they_are_numpys(n: int) -> None:
    row = np.random.default_rng(n).integers(0, 40, n).astype(np.uint32)  # from 32 on, nothing is left
    given = _words(700, 1), _words(40, 30, 1), _words(60, 40)[::2, ::-3, None], _words(7, 1).T[..., None], _words(1)
    for words in given:
        for y in (row, row[None, None], np.broadcast_to(row, (*words.shape[:-1], n)), row[::-1]):
            for x in (words, np.broadcast_to(words, (*words.shape[:-1], n))):
                np.testing.assert_array_equal(short_axes.shifted(x, y), np.right_shift(x, y), strict=True)


@pytest.mark.parametrize(
    "shapes",
    [
        ((0, 1), (8,)), ((3, 8), (3, 1)), ((3, 8), (3, 8)), ((1,), (5, 8)), ((), (8,)), ((8, 1), ()),
        ((0, 1), (0, 4)), ((1, 1), (0, 4)),
    ],
)  # fmt: skip
def test_of_other_shapes(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    x, y = (np.asarray(_words(*shape) >> np.uint32(i * 28)) for i, shape in enumerate(shapes))
    np.testing.assert_array_equal(short_axes.shifted(x, y), np.right_shift(x, y), strict=True)


@pytest.mark.skipif(loops.shift_words is None, reason="no core in C")
def test_what_does_not_fit_is_refused() -> None:
    shift = loops.shift_words
    assert shift is not None
    x, row, out = _words(10), _words(4), np.empty((10, 4), np.uint32)
    for given in ((x[:9], row, out), (x, row[:3], out), (x, row[:0], out), (x.astype(np.uint64), row, out)):
        with pytest.raises(ValueError, match="takes words"):
            shift(*given)
    with pytest.raises(ValueError, match="takes words"):
        shift(x, _words(33), np.empty((10, 33), np.uint32))


@pytest.mark.skipif(loops.shift_words is None, reason="no core in C")
@pytest.mark.parametrize("bits", [2, 3, 4, 8])
@pytest.mark.parametrize("compiled", [False, True])
def test_packed_weights_take_it(bits: int, compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = calls_of(monkeypatch, loops, "shift_words", lambda arguments, result: len(arguments[1]))
    w = smelt.array(np.random.default_rng(bits).standard_normal((48, 64)).astype(np.float32))
    packed = smelt.quantize(w, 32, bits)
    smelt.eval(packed)
    taken.clear()

    def product(x: smelt.array, *w: smelt.array) -> smelt.array:
        return smelt.quantized_matmul(x, *w, group_size=32, bits=bits)

    with override(tier="ops"):
        found = (smelt.compile(product) if compiled else product)(smelt.ones((1, 64)), *packed)
        plain = np.asarray(smelt.dequantize(*packed, 32, bits)).sum(1)
        np.testing.assert_allclose(np.asarray(found)[0], plain, rtol=1e-5, atol=1e-4)
    assert {2: 16, 3: 8, 4: 8, 8: 4}[bits] in taken

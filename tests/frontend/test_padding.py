"""Padding, by the index that each element comes from."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import smelt
from smelt.ir.errors import AttributeValueError, ShapeError
from tests.frontend.checks import check_gradient, exact, same

MODES = ("constant", "edge", "reflect", "symmetric", "wrap")


def source(i: int, size: int, mode: str) -> int:
    """Where element i of an axis comes from that goes on on both sides."""
    if mode == "edge" or size == 1:
        return min(max(i, 0), size - 1)
    if mode == "wrap":
        return i % size
    period = 2 * size - 2 if mode == "reflect" else 2 * size
    at = i % period
    return at if at < size else (period if mode == "reflect" else period - 1) - at


def padded(x: np.ndarray, widths: list[tuple[int, int]], mode: str) -> np.ndarray:
    if mode == "constant":
        return np.pad(x, widths)
    for axis, (low, high) in enumerate(widths):
        size = x.shape[axis]
        if low or high:
            x = np.take(x, [source(i, size, mode) for i in range(-low, size + high)], axis)
    return x


def test_the_oracle_is_numpys() -> None:
    """Where NumPy's releases agree: within the first mirror images."""
    x = np.arange(5)
    for mode, low, high in itertools.product(MODES, range(5), range(5)):
        np.testing.assert_array_equal(padded(x, [(low, high)], mode), np.pad(x, [(low, high)], mode))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_widths_of_any_size(mode: str, size: int) -> None:
    x = np.arange(1, size + 1, dtype=np.int32)
    for low, high in itertools.product((0, 1, 2, 3, 4, 5, 8, 13), repeat=2):
        same(smelt.pad(exact(x), [(low, high)], mode), padded(x, [(low, high)], mode))


@pytest.mark.parametrize("mode", MODES)
def test_several_axes_in_kernels(mode: str) -> None:
    x = np.random.default_rng(0).standard_normal((3, 1, 4)).astype(np.float32)
    many = [[(0, 7), (3, 0), (1, 2)], [(2, 9), (0, 0), (11, 3)], [(0, 0), (0, 0), (0, 0)], [(5, 0), (0, 1), (0, 20)]]
    found = smelt.compile(lambda x: [smelt.pad(x, widths, mode) for widths in many])(exact(x))
    for y, widths in zip(found, many):
        same(y, padded(x, widths, mode))
    mapped = smelt.vmap(lambda x: smelt.pad(x, many[0][1:], mode))(exact(x))
    same(mapped, padded(x, [(0, 0), *many[0][1:]], mode))
    check_gradient(lambda x: smelt.pad(x, many[1], mode), x)


@pytest.mark.parametrize("mode", MODES)
def test_empty_axes(mode: str) -> None:
    x = smelt.zeros((2, 0, 3))
    assert smelt.pad(x, [(1, 4), (0, 0), (7, 1)], mode).shape == (7, 0, 11)
    if mode == "constant":
        same(smelt.pad(x, [(0, 0), (1, 1), (0, 0)], mode, 5), np.full((2, 2, 3), 5, np.float32))
    else:
        with pytest.raises(ShapeError, match=rf'mode "{mode}" needs elements on axis 1.*test_padding\.py'):
            smelt.pad(x, [(0, 0), (1, 0), (0, 0)], mode)


def test_wide_padding_of_few_elements_is_a_small_program() -> None:
    found = smelt.make_ir(lambda x: smelt.pad(x, [(100_000, 99_999)], "reflect"))(smelt.arange(3))
    assert found.count("smelt.") < 12
    last = [source(i, 3, "reflect") for i in range(99_997, 100_002)]
    same(smelt.pad(smelt.arange(3), [(100_000, 99_999)], "reflect")[-5:], np.array(last, np.int32))


def test_other_modes_are_refused() -> None:
    with pytest.raises(AttributeValueError, match=r"mode must be.*test_padding\.py"):
        smelt.pad(smelt.ones(3), 1, "wrapped")


def test_widths_are_not_read_where_they_are_too_many():
    many = np.broadcast_to(np.int8(1), (2**20, 2**20))
    with pytest.raises(ShapeError, match=r"pad_width must be .* shape \(1048576, 1048576\).*test_padding\.py"):
        smelt.pad(smelt.ones((2, 3)), many)

"""Padding by values, ramps, statistics and odd images, beside NumPy's."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir.errors import ArgumentTypeError, AttributeValueError, AxisError, ShapeError
from tests.frontend.checks import check_gradient, exact, same

rng = np.random.default_rng(0)
WIDTHS: list[Any] = [2, (1, 3), ((2, 0), (0, 3)), ((0, 0), (4, 1)), [[9], [7]], {-1: (1, 2)}, {0: 3, 1: 1}]
KEYWORDS: list[dict[str, Any]] = [
    {"constant_values": ((1, 2), (3, 4))}, {"constant_values": (5, 6)}, {"constant_values": [[1], [2]]},
    {"mode": "linear_ramp"}, {"mode": "linear_ramp", "end_values": -5}, {"mode": "linear_ramp", "end_values": 2.5},
    {"mode": "linear_ramp", "end_values": ((1, -2), (30, 4))},
    *({"mode": mode, **more} for mode in ("maximum", "mean", "median", "minimum")
      for more in ({}, {"stat_length": 2}, {"stat_length": ((1, 2), (3, 90))})),
    {"mode": "reflect", "reflect_type": "odd"}, {"mode": "symmetric", "reflect_type": "odd"},
]  # fmt: skip


def numpys(x: np.ndarray, widths: Any, **keywords: Any) -> np.ndarray:
    if isinstance(widths, dict):  # not known to all of NumPy's releases
        pairs = [(0, 0)] * x.ndim
        for axis, w in widths.items():
            pairs[axis] = w if isinstance(w, tuple) else (w, w)
        widths = pairs
    return np.pad(x, widths, **keywords)


@pytest.mark.parametrize("dtype", ["float64", "int32", "int8", "uint8", "bool", "complex128"])
@pytest.mark.parametrize("keywords", KEYWORDS, ids=str)
def test_beside_numpy(keywords: dict[str, Any], dtype: str) -> None:
    if dtype == "complex128" and keywords.get("mode") in ("median", "maximum", "minimum"):
        pytest.skip("order of complex numbers")
    most = {"bool": 2, "float64": 0, "complex128": 0}.get(dtype, 100)
    x = (rng.integers(0, most, (3, 4)) if most else rng.standard_normal((3, 4)) * 50).astype(dtype)
    for widths in WIDTHS:
        expected = numpys(x, widths, **keywords)
        for found in (
            smelt.pad(exact(x), widths, **keywords),
            smelt.compile(lambda x, w=widths: smelt.pad(x, w, **keywords))(exact(x)),
        ):
            assert found.dtype.name == dtype
            np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("keywords", KEYWORDS, ids=str)
def test_mapped_and_differentiated(keywords: dict[str, Any]) -> None:
    x = rng.standard_normal((2, 3, 4))
    mapped = smelt.vmap(lambda x: smelt.pad(x, ((2, 1), (0, 7)), **keywords))(exact(x))
    for found, one in zip(mapped, x):
        np.testing.assert_allclose(np.asarray(found), np.pad(one, ((2, 1), (0, 7)), **keywords), rtol=1e-12)
    check_gradient(lambda x: smelt.pad(x, ((2, 1), (0, 7)), **keywords), x[0])


def test_values_are_arguments() -> None:
    x, values = rng.standard_normal((3, 2)), rng.standard_normal((2, 2))
    for mode, word in (("constant", "constant_values"), ("linear_ramp", "end_values")):
        call = smelt.compile(lambda x, v, mode=mode, word=word: smelt.pad(x, (1, 2), mode, **{word: v}))
        same(call(exact(x), exact(values)), np.pad(x, (1, 2), mode, **{word: values}), rtol=1e-12)
        check_gradient(lambda x, v, mode=mode, word=word: smelt.pad(x, (1, 2), mode, **{word: v}), x, values)


def test_odd_images_again_and_again() -> None:
    """Of a line they go on with the line; of others, images of images are the elements again, further on."""
    for mode, size in itertools.product(("reflect", "symmetric"), (1, 2, 5)):
        x = rng.integers(-9, 9, size)
        found = np.asarray(smelt.pad(exact(x), (37, 41), mode, reflect_type="odd"))
        period = 2 * size - (2 if mode == "reflect" else 0)
        if size == 1 and mode == "reflect":
            same(smelt.array(found), np.full(79, x[0]))
        else:
            assert len(set(found[period:] - found[:-period])) == 1
    same(smelt.pad(smelt.arange(4), (9, 30), "reflect", reflect_type="odd"), np.arange(-9, 34, dtype=np.int32))


@pytest.mark.parametrize(
    ("arguments", "keywords", "error", "said"),
    [
        ((1, "ramp"), {}, AttributeValueError, "mode must be"),
        ((1, "edge"), {"end_values": 1}, ArgumentTypeError, "takes no end_values"),
        ((1, "linear_ramp"), {"stat_length": 1}, ArgumentTypeError, "takes no stat_length"),
        ((1, "wrap"), {"reflect_type": "odd"}, ArgumentTypeError, "takes no reflect_type"),
        ((1, "reflect"), {"reflect_type": "strange"}, AttributeValueError, "reflect_type must be"),
        ((1, "mean"), {"stat_length": 0}, AttributeValueError, "stat_length must be positive"),
        ((1, "mean"), {"stat_length": (1, 2, 3)}, ShapeError, "stat_length must be an int"),
        ((1,), {"constant_values": [1, 2, 3]}, ShapeError, "constant_values must be a scalar"),
        ((1, "linear_ramp"), {"end_values": [[[1, 2]]]}, ShapeError, "end_values must be a scalar"),
        (({2: 1},), {}, AxisError, "axis"),
        (({0: -1},), {}, ShapeError, "negative"),
        (({0: (1, 2, 3)},), {}, ShapeError, "pad_width must be"),
        (({"a": 1},), {}, ArgumentTypeError, "axis"),
    ],
)
def test_errors(arguments: tuple, keywords: dict[str, Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=rf"smelt\.pad.*{said}.*test_padding_values"):
        smelt.pad(smelt.zeros((2, 3)), *arguments, **keywords)

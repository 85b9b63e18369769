"""How much of an array prints, in which lines: NumPy's options."""

from __future__ import annotations

import reprlib
from array import array

import numpy as np
import pytest

import smelt
from smelt.ir.errors import ArgumentTypeError, AttributeValueError


def numpys(x: np.ndarray, **options: int) -> str:
    with np.printoptions(**options):  # type: ignore[arg-type]
        return np.array2string(x, separator=", ", prefix="array(", suffix=")")


def test_as_much_as_is_asked_for() -> None:
    x = np.arange(3000, dtype=np.int32).reshape(3, 1000)
    for options in ({"threshold": 10}, {"threshold": 5000}, {"edgeitems": 1}, {"threshold": 5000, "linewidth": 200}):
        with smelt.printoptions(**options) as found:
            assert str(smelt.array(x)) == f"array({numpys(x, **options)}, dtype=int32)"
            assert {name: getattr(found, name) for name in options} == options
    assert smelt.get_printoptions() == smelt.PrintOptions()


def test_what_is_left_out_stays() -> None:
    with smelt.printoptions(threshold=4):
        smelt.set_printoptions(2)
        assert str(smelt.arange(5.0)) == "array([0.00, 1.00, 2.00, 3.00, 4.00], dtype=float32)".replace(
            "[0.00, 1.00, 2.00, 3.00, 4.00]", numpys(np.arange(5.0), threshold=4).replace(".", ".00")
        )
        with smelt.printoptions(edgeitems=1):
            assert str(smelt.arange(5)) == "array([0, ..., 4], dtype=int32)"
            assert smelt.get_printoptions() == smelt.PrintOptions(-1, 4, 1)
        assert smelt.get_printoptions() == smelt.PrintOptions(2, 4)


@pytest.mark.parametrize("name", ["threshold", "edgeitems", "linewidth"])
def test_errors(name: str) -> None:
    for value, error in ((-1, AttributeValueError), (1.5, ArgumentTypeError), ("a", ArgumentTypeError)):
        for call in (smelt.set_printoptions, lambda **k: smelt.printoptions(**k).__enter__()):
            with pytest.raises(error, match=rf"{name}.*test_printoptions"):
                call(**{name: value})  # type: ignore[operator]
    assert smelt.get_printoptions() == smelt.PrintOptions()


def test_reprlib_shows_arrays() -> None:
    """pytest and debuggers show values by it; arrays of the standard library have the same name."""
    assert reprlib.repr(smelt.array([1, 2])) == repr(smelt.array([1, 2]))
    assert len(reprlib.repr([smelt.zeros((9, 9)), smelt.array([])])) < 80
    assert reprlib.repr(array("i", range(9))) == "array('i', [0, 1, 2, 3, 4, ...])"

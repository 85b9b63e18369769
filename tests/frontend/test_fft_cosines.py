"""Cosine and sine transforms and those of what has a real transform, along several axes: beside SciPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.fft

import smelt
from smelt.ir.errors import ArgumentTypeError, AttributeValueError, AxisError, DTypeError, ShapeError
from tests.frontend.checks import check_gradient, exact

rng = np.random.default_rng(2)
NAMES = ("dct", "idct", "dst", "idst")
NORMS = (None, "backward", "ortho", "forward")


def close(found: Any, expected: Any, rtol: float = 1e-12) -> None:
    assert found.shape == expected.shape
    np.testing.assert_allclose(np.asarray(found), expected, rtol=rtol, atol=rtol * max(np.abs(expected).max(), 1))


@pytest.mark.parametrize("kind", [1, 2, 3, 4])
@pytest.mark.parametrize("name", NAMES)
def test_sizes_and_norms(name: str, kind: int) -> None:
    theirs, ours = getattr(scipy.fft, name), getattr(smelt.fft, name)
    for size in (1, 2, 3, 4, 5, 8, 12, 17):
        if size == 1 and kind == 1 and name in ("dct", "idct"):
            continue
        x = rng.standard_normal((2, size))
        for norm in NORMS:
            close(ours(exact(x), kind, norm=norm), theirs(x, kind, norm=norm))
    for n in (3, 9):
        close(ours(exact(x), kind, n), theirs(x, kind, n))
    y = rng.standard_normal((4, 5, 3))
    close(ours(exact(y), kind, axis=1), theirs(y, kind, axis=1))
    close(ours(exact(y), kind, 7, 0, "ortho"), theirs(y, kind, 7, 0, "ortho"))


@pytest.mark.parametrize("kind", [1, 2, 3, 4])
@pytest.mark.parametrize("name", NAMES)
def test_dtypes_programs_and_derivatives(name: str, kind: int) -> None:
    theirs, ours = getattr(scipy.fft, name), getattr(smelt.fft, name)
    x = rng.standard_normal((3, 6)).astype(np.float32)
    found = ours(exact(x), kind)
    assert found.dtype is smelt.float32
    close(found, theirs(x, kind), 1e-5)
    assert ours(smelt.array([1, 2, 3], smelt.int8), kind).dtype is smelt.float32
    assert ours(exact(x).astype(smelt.float16), kind).dtype is smelt.float32
    z = x + 1j * rng.standard_normal((3, 6))
    close(ours(exact(z), kind), theirs(z, kind))
    x = x.astype(np.float64)
    close(smelt.compile(lambda x: ours(x, kind))(exact(x)), theirs(x, kind))
    close(smelt.vmap(lambda x: ours(x, kind))(exact(x)), theirs(x, kind))
    free = smelt.compile(lambda x: ours(x, kind), shapeless=True)
    for size in (6, 9, 4):
        y = rng.standard_normal((2, size))
        close(free(exact(y)), theirs(y, kind))
    check_gradient(lambda x: ours(x, kind, norm="ortho"), x)
    back = getattr(smelt.fft, name[1:] if name[0] == "i" else f"i{name}")
    close(back(ours(exact(x), kind), kind), x)


@pytest.mark.parametrize("name", NAMES)
def test_several_axes(name: str) -> None:
    theirs, ours = getattr(scipy.fft, f"{name}n"), getattr(smelt.fft, f"{name}n")
    x = rng.standard_normal((3, 4, 5))
    for keywords in ({}, {"axes": (0, 2)}, {"s": (2, 6)}, {"s": (2, 6), "axes": (2, 0), "norm": "ortho"}, {"type": 3}):
        close(ours(exact(x), **keywords), theirs(x, **keywords))


@pytest.mark.parametrize("name", ["hfftn", "hfft2", "ihfftn", "ihfft2"])
def test_transforms_of_what_has_a_real_one(name: str) -> None:
    theirs, ours = getattr(scipy.fft, name), getattr(smelt.fft, name)
    x = rng.standard_normal((3, 4, 5))
    x = x + 1j * rng.standard_normal((3, 4, 5)) if name[0] == "h" else x
    for norm in NORMS[1:]:
        for keywords in ({}, {"axes": (0, 2)}, {"s": (2, 6)}, {"s": (2, 7), "axes": (2, 0)}):
            call = lambda x: ours(x, norm=norm, **keywords)  # noqa: B023, E731
            close(call(exact(x)), theirs(x, norm=norm, **keywords))
            close(smelt.compile(call)(exact(x)), theirs(x, norm=norm, **keywords))
    close(ours(exact(x), (4, -1), (1, 2)), theirs(x, (4, 8 if name[0] == "h" else 5), (1, 2)))
    check_gradient(lambda x: smelt.real(ours(x)), np.real(x[0]))


def test_errors() -> None:
    x = smelt.ones((2, 3))
    for name in NAMES:
        ours = getattr(smelt.fft, name)
        for arguments, error, said in (
            ((5,), AttributeValueError, "type must be"), (("2",), ArgumentTypeError, "type must be an int"),
            ((2, 0), AttributeValueError, "n must be"), ((2, None, 2), AxisError, "axis"),
            ((2, None, 0, "unitary"), AttributeValueError, "norm must be"),
        ):  # fmt: skip
            with pytest.raises(error, match=rf"smelt\.fft\.{name}.*{said}.*test_fft_cosines"):
                ours(x, *arguments)
        with pytest.raises(ShapeError, match=rf"smelt\.fft\.{name}.*one element"):
            ours(smelt.ones((2, 0)))
    with pytest.raises(ShapeError, match="two elements"):
        smelt.fft.dct(smelt.ones(1), 1)
    with pytest.raises(ShapeError, match="one axis"):
        smelt.fft.hfftn(smelt.array(1.0))
    with pytest.raises(DTypeError, match="ihfft2"):
        smelt.fft.ihfft2(smelt.array([[1j]]))

"""Parts of floating-point numbers, against NumPy."""

import numpy as np
import pytest

import smelt
from smelt.ir.errors import DTypeError
from tests.frontend.checks import check_gradient, exact, same

DTYPES = (np.float16, np.float32, np.float64)


def edges(dtype: type) -> np.ndarray:
    info = np.finfo(dtype)
    tiny = info.smallest_subnormal
    found = [0.0, -0.0, 1, -1, 1.5, -2.75, info.max, info.min, info.tiny, -info.tiny, tiny, -tiny, 3 * tiny, info.eps,
             info.tiny - tiny, np.inf, -np.inf, np.nan, -np.nan, 1e-3, 12345.678]  # fmt: skip
    return np.array(found, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("way", [lambda f: f, smelt.compile], ids=["eager", "compiled"])
def test_parts(way, dtype) -> None:
    host = edges(dtype)
    x, y = exact(host[:, None]), exact(host[None])
    with np.errstate(all="ignore"):
        same(way(smelt.signbit)(x), np.signbit(host[:, None]))
        for name in ("copysign", "nextafter", "hypot"):
            expected = getattr(np, name)(host[:, None], host[None])
            tolerance = 2e-3 if dtype is np.float16 else 4 * np.finfo(dtype).eps
            same(way(getattr(smelt, name))(x, y), expected, rtol=tolerance if name == "hypot" else 0)
        signs = np.signbit(np.asarray(way(smelt.copysign)(x, y)))
        np.testing.assert_array_equal(signs, np.broadcast_to(np.signbit(host[None]), signs.shape))
        mantissa, exponent = way(smelt.frexp)(exact(host))
        expected = np.frexp(host)
        same(mantissa, expected[0])
        same(exponent, np.where(np.isfinite(host), expected[1], 0).astype(np.int32))
        shifts = np.array([0, 1, -1, 7, -20, 60, -150, 130, 300, -300, 1100, -1100, 2100, -2100], np.int32)
        same(way(smelt.ldexp)(x, exact(shifts[None])), np.ldexp(host[:, None], shifts[None]))


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "int64"])
def test_integers(dtype: str) -> None:
    host = np.array([0, 1, 2], dtype) if dtype in ("bool", "uint8") else np.array([0, -1, 2], dtype)
    same(smelt.signbit(exact(host)), host < 0 if dtype != "bool" else np.zeros(3, bool))
    same(smelt.hypot(exact(host), exact(host)), np.hypot(host.astype(np.float32), host.astype(np.float32)), rtol=1e-6)
    same(smelt.frexp(exact(host))[0], np.frexp(host.astype(np.float32))[0])


def test_derivatives() -> None:
    x, y = np.array([3.0, -2.5, 1.3e-3]), np.array([4.0, 1.5, -1e-3])
    check_gradient(smelt.hypot, x, y)
    check_gradient(smelt.copysign, x, y)
    check_gradient(smelt.nextafter, x, y)
    check_gradient(lambda x: smelt.ldexp(x, smelt.array([1, -3, 2])), x)
    check_gradient(lambda x: smelt.frexp(x)[0], x)
    zero = smelt.zeros(2)
    same(smelt.grad(lambda x: smelt.hypot(x, zero).sum())(zero), np.zeros(2, np.float32))


def test_wrong_dtypes() -> None:
    z = smelt.array([1j])
    for function in (smelt.signbit, smelt.frexp, lambda z: smelt.hypot(z, z), lambda z: smelt.copysign(z, z)):
        with pytest.raises(DTypeError, match="complex"):
            function(z)
    with pytest.raises(DTypeError, match="integers"):
        smelt.ldexp(smelt.array([1.0]), smelt.array([1.0]))
    assert smelt.hypot(smelt.zeros((0, 3)), smelt.zeros((3,))).shape == (0, 3)

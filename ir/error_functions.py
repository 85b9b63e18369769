"""The error function, what it leaves of 1, its inverse, and the logistic function in NumPy, which has none of them.

All but the last compute in float64 and are right to a few units in the last place there, or are rounded to float32 with
an error of 0.51 units at most. Polynomials interpolate in
Chebyshev points at 50 digits: erf(x) / x in x² where |x| < 1, and else erfc(x)·exp(x²) / t in t = 2 / (2 + x).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from .elementary.coefficients import ERFCX
from .host_loops import loops
from .host_memory import contiguous, empty

#: In 2x² - 1, which is in [-1, 1].
_SMALL = (
    0.9654687386698673, -0.1405360890227171, 0.019852496688983708, -0.0022854855611441132, 0.00021751715604159932,
    -1.7537169441124866e-05, 1.223382738359897e-06, -7.511569286591727e-08, 4.115800583208149e-09,
    -2.035228405815769e-10, 9.167619596865806e-12, -3.8078824063194953e-13, 1.4543887079465116e-14,
)  # fmt: skip
#: In s, of t from FIRST (x = 7) to LAST (x = 1).
_LARGE = (
    0.47431431913757305, 0.139226283554549, 0.026254509726259243, 0.001980704399255599, -0.0003391857652285666,
    -7.173222318812855e-05, 8.551221973783126e-06, 2.374313242507056e-06, -4.131144242983189e-07,
    -7.097224557600694e-08, 2.439719707669606e-08, 6.65936803045905e-10, -1.2916707331666743e-09,
    1.5441241614025957e-10, 4.599878781452271e-11, -1.6523573848005614e-11, -2.289915890450926e-13,
    8.221145855309965e-13,
)  # fmt: skip
_FIRST, _LAST = 2 / 9, 2 / 3
#: For float32: as `_SMALL`; and erf itself where 1 <= x <= 4, in (x - 2.5) / 1.5. It is 1 from there on.
_SINGLE_SMALL = (
    0.9654687386375691, -0.14053608902112114, 0.019852497722455814, -0.002285485612212242, 0.0002175119906208899,
    -1.7536914180800595e-05, 1.2316395977478375e-06, -7.552378571474216e-08,
)  # fmt: skip
_SINGLE_LARGE = (
    0.9995930478513905, 0.003267426345154415, -0.012252827518250662, 0.02818155227963554, -0.04365134513715881,
    0.04645361320288999, -0.03187060974956155, 0.009267552001539576, 0.006649488132310014, -0.009621385963954125,
    0.004637153971491357, 0.0004418985562898437, -0.0019928241229112903, 0.0009205711040597914, 0.000231121185114414,
    -0.0002948060972152907, 7.184258174654208e-06, 3.317439730169916e-05,
)  # fmt: skip
#: The inverse for float32, over x: in w / 2.5 - 1 where w = -log(1 - x²) < 5, and in (√w - 3.125) / 0.9 from there on.
_SINGLE_INVERSE = (
    1.501409351110792, 0.6166006919631694, -0.026108236313375218, -0.019573563806598138, 0.008525415992185547,
    -0.00048787904773047456, -0.0008342566486193873, 0.0002921416164184736, 2.0891564964598315e-05,
    -4.140623891110373e-05, 7.941246815710843e-06, 2.9332373078157436e-06, -1.2638309676539305e-06,
)  # fmt: skip
_SINGLE_INVERSE_FAR = (
    2.958320150240462, 0.9033468258087927, 0.00570878660999381, -0.003864526678756769, 0.0024895127254577405,
    -0.0014872338513798752, 0.0006700168575516508, -0.0001597839641495852, -3.867360219845811e-05,
    5.727582289109485e-05, -2.0412966018468916e-05, -3.3426761293427907e-06, 3.3085993442880947e-06,
)  # fmt: skip
_TWO_OVER_SQRT_PI = 2 / math.sqrt(math.pi)
#: Newton's method doubles the digits of an approximation that has three.
_STEPS = 3
#: What the loop of the core computes with.
COEFFICIENTS = (
    _SMALL, _LARGE, _SINGLE_SMALL, _SINGLE_LARGE, _SINGLE_INVERSE, _SINGLE_INVERSE_FAR, _FIRST, _LAST,
)  # fmt: skip


def _polynomial(coefficients: Sequence[float], x: np.ndarray) -> np.ndarray:
    result = np.full_like(x, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        result *= x
        result += coefficient
    return result


def _erf_of_small(x: np.ndarray) -> np.ndarray:
    """Where |x| < 1."""
    return x * _polynomial(_SMALL, 2 * x * x - 1)


def _erfc_of_large(x: np.ndarray) -> np.ndarray:
    """1 - erf(x), where x >= 1."""
    t = 2 / (2 + np.minimum(x, 7))
    return t * _polynomial(_LARGE, (2 * t - (_FIRST + _LAST)) / (_LAST - _FIRST)) * np.exp(-x * x)


def _erf_and_erfc(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of x >= 0; each where it is not a difference of nearly equal numbers."""
    if loops.erf is not None and x.ndim:
        erf, erfc = np.array(x, order="C"), np.exp(-x * x, order="C")
        loops.erf(erf, erfc)
        return erf, erfc
    is_small = x < 1
    if is_small.all():
        erf = _erf_of_small(x)
        return erf, 1 - erf
    erfc = _erfc_of_large(np.maximum(x, 1))
    if not is_small.any():
        return 1 - erfc, erfc
    erf = _erf_of_small(np.minimum(x, 1))
    return np.where(is_small, erf, 1 - erfc), np.where(is_small, 1 - erf, erfc)


def erf_array(x: np.ndarray) -> np.ndarray:
    """erf(x), of the dtype of x (a floating one).

    >>> erf_array(np.array([0.0, 0.5, -2.0, np.inf]))
    array([ 0.        ,  0.52049988, -0.99532227,  1.        ])
    """
    if x.dtype == np.float32:
        return _erf_single(x)
    wide = x.astype(np.float64, copy=False)
    size = np.abs(wide)
    if loops.erf is not None and size.flags.c_contiguous and size.ndim:
        loops.erf(size, np.exp(-size * size))
    else:
        size = _erf_and_erfc(size)[0]
    return np.copysign(size, wide).astype(x.dtype, copy=False)


def _erf_single(x: np.ndarray) -> np.ndarray:
    if loops.erf_single is not None and x.ndim:
        found = empty(x.shape, x.dtype)
        loops.erf_single(contiguous(x), found)
        return found
    wide = x.astype(np.float64)
    size = np.minimum(np.abs(wide), 4)
    large = _polynomial(_SINGLE_LARGE, (size - 2.5) * (2 / 3))
    small = size * _polynomial(_SINGLE_SMALL, 2 * size * size - 1)
    return np.copysign(np.where(size < 1, small, large), wide).astype(x.dtype)


def erfc_array(x: np.ndarray) -> np.ndarray:
    """1 - erf(x), of the dtype of x (a floating one).

    >>> erfc_array(np.array([0.0, 0.5, -2.0, np.inf]))
    array([1.        , 0.47950012, 1.99532227, 0.        ])
    """
    wide = x.astype(np.float64, copy=False)
    size = np.minimum(np.abs(wide), 28)
    rough = size.astype(np.float32).astype(np.float64)  # its square is exact
    exponential = np.exp(-rough * rough) * np.exp(-(size - rough) * (size + rough))
    large = _polynomial(ERFCX[8], (size - 2) / (size + 2)) / (size + 2) * exponential
    found = np.where(size < 0.5, 1 - _erf_of_small(np.minimum(size, 0.5)), large)
    return np.where(wide < 0, 2 - found, found).astype(x.dtype, copy=False)


def erfinv_array(x: np.ndarray) -> np.ndarray:
    """The y with erf(y) = x, of the dtype of x; NaN where |x| > 1.

    For float32 polynomials, after Giles. Else Newton's method, on log erfc where x is large, which is nearly quadratic;
    from Winitzki's approximation.

    >>> erfinv_array(np.array([0.0, 0.5, -1.0, 2.0]))
    array([0.        , 0.47693628,       -inf,        nan])
    """
    with np.errstate(all="ignore"):
        if x.dtype == np.float32:
            return _erfinv_single(x)
        return _erfinv(x.astype(np.float64, copy=False)).astype(x.dtype, copy=False)


def _erfinv_single(given: np.ndarray) -> np.ndarray:
    """Right to float32, of numbers of float32."""
    x = given.astype(np.float64, order="C").reshape(-1)
    w = -np.log(1 - x * x)
    if loops.erfinv_single is not None and given.ndim:
        found = empty(given.shape, given.dtype)
        loops.erfinv_single(contiguous(given), w, found)
        return found
    y = x * _polynomial(_SINGLE_INVERSE, w * 0.4 - 1)
    (far,) = np.nonzero(w >= 5)
    if far.size:
        large = np.sqrt(np.minimum(w[far], 17))
        large = _polynomial(_SINGLE_INVERSE_FAR, (large - 3.125) / 0.9)
        y[far] = x[far] * np.where(w[far] < 17, large, np.inf)  # of the largest number below 1 it is 15.9
    return y.astype(np.float32).reshape(given.shape)


def _erfinv(x: np.ndarray) -> np.ndarray:
    size = np.abs(x)
    log, a = np.log1p(-size * size), 0.147
    half = 2 / (math.pi * a) + log / 2
    rest, is_small = 1 - size, size < 0.5
    y = np.sqrt(np.sqrt(half * half - log / a) - half)
    for _ in range(_STEPS):
        erf, erfc = _erf_and_erfc(y)
        step = np.where(is_small, size - erf, erfc * np.log(erfc / rest))
        y = y + step * np.exp(y * y) / _TWO_OVER_SQRT_PI
    y = np.where(size < 1e-9, size / _TWO_OVER_SQRT_PI, y)
    y = np.where(size < 1, y, np.where(size == 1, np.inf, np.nan))
    return np.copysign(y, x)


def sigmoid_array(x: np.ndarray) -> np.ndarray:
    """1 / (1 + e⁻ˣ) without overflow, of float32 or float64."""
    zero, one = _BOUNDS[x.dtype]
    e = np.asarray(np.abs(x))
    np.negative(e, e)
    np.exp(e, e)
    found = np.where(np.less(x, zero), e, one)
    np.add(e, one, e)
    return np.divide(found, e, found)


#: 0 and 1 as arrays: NumPy makes them of numbers in each call.
_BOUNDS = {np.dtype(dtype): (np.zeros((), dtype), np.ones((), dtype)) for dtype in (np.float32, np.float64)}

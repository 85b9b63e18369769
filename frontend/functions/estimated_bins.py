"""How many bins of one width a histogram of elements has, by rules of statistics with NumPy's names for them."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from smelt.ir.errors import AttributeValueError, at_user_line, shown

from .bins import MOST_BINS

__all__: list[str] = []

Limits = tuple[float, float]
#: Beyond so many bins, or the root of the number of elements, "stone" tries none.
_TRIED = 100


def _square_root(x: np.ndarray, extent: float, limits: Limits) -> float:
    return extent / math.sqrt(len(x))


def _sturges(x: np.ndarray, extent: float, limits: Limits) -> float:
    return extent / (math.log2(len(x)) + 1)


def _rice(x: np.ndarray, extent: float, limits: Limits) -> float:
    return extent / (2 * len(x) ** (1 / 3))


def _scott(x: np.ndarray, extent: float, limits: Limits) -> float:
    return (24 * math.sqrt(math.pi) / len(x)) ** (1 / 3) * float(np.std(x))


def _freedman_diaconis(x: np.ndarray, extent: float, limits: Limits) -> float:
    upper, lower = np.percentile(x, [75, 25])
    return 2 * float(upper - lower) * len(x) ** (-1 / 3)


def _automatic(x: np.ndarray, extent: float, limits: Limits) -> float:
    least = _square_root(x, extent, limits) / 2
    return min(max(_freedman_diaconis(x, extent, limits), least), _sturges(x, extent, limits))


def _doane(x: np.ndarray, extent: float, limits: Limits) -> float:
    """Sturges's rule with bins for the skewness."""
    n, deviation = len(x), float(np.std(x))
    if n < 3 or not deviation:
        return 0.0
    skewness = abs(float(np.mean(((x - np.mean(x)) / deviation) ** 3)))
    usual = math.sqrt(6 * (n - 2) / ((n + 1) * (n + 3)))
    return extent / (1 + math.log2(n) + math.log2(1 + skewness / usual))


def _stone(x: np.ndarray, extent: float, limits: Limits) -> float:
    """The width with the least estimate, by leaving elements out, of the squared error of the density."""
    n = len(x)
    if n < 2 or not extent:
        return 0.0

    def loss(bins: int) -> float:
        shares = np.histogram(x, bins, limits)[0] / n
        return (2 - (n + 1) * float(shares @ shares)) * bins / extent

    return extent / min(range(1, max(_TRIED, math.isqrt(n)) + 1), key=loss)


#: The width of a bin for some elements and the distance of the greatest from the least, between the outer edges.
RULES: dict[str, Callable[[np.ndarray, float, Limits], float]] = {
    "auto": _automatic, "doane": _doane, "fd": _freedman_diaconis, "rice": _rice, "scott": _scott,
    "sqrt": _square_root, "stone": _stone, "sturges": _sturges,
}  # fmt: skip


def estimated_bins(name: str, x: np.ndarray, rule: str, limits: Limits | None) -> int:
    """The number of bins for a vector of elements.

    Raises:
        AttributeValueError: elements are not finite, or it is too large.
    """
    whole = x.dtype.kind in "biu"
    x = x.astype(np.float64)
    if limits is not None:
        x = x[(x >= limits[0]) & (x <= limits[1])]
    if not x.size:
        return 1
    low, high = float(x.min()), float(x.max())
    if not math.isfinite(high - low):
        message = f'smelt.{name}: bins="{rule}" needs finite elements, of which the range is finite'
        raise AttributeValueError(at_user_line(f"{message}, not from {low} to {high}"))
    if limits is None:
        limits = (low, high) if low < high else (low - 0.5, high + 0.5)
    width = RULES[rule](x, high - low, limits)
    if not width:
        return 1
    count = (limits[1] - limits[0]) / (max(width, 1) if whole else width)
    if not count <= MOST_BINS:
        raise AttributeValueError(at_user_line(f'smelt.{name}: {shown(count)} bins by "{rule}" are too many'))
    return max(math.ceil(count), 1)

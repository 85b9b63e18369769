"""Windows of signals: bartlett, hanning, hamming, blackman."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from smelt.ir import dtypes
from smelt.ir.errors import AttributeValueError, at_user_line, shown
from smelt.ir.keywords import keywords_explained

from ..lazy.arguments import integer
from ..lazy.arrays import StreamOrDevice, array, from_host
from ..lazy.streams import check_stream

__all__ = ["bartlett", "blackman", "hamming", "hanning"]


class _Window(Protocol):
    def __call__(self, M: int, *, stream: StreamOrDevice = None) -> array: ...


def _window(name: str, function: Callable[..., Any], formula: str, example: str, points: int = 3) -> _Window:
    def window(M: int, *, stream: StreamOrDevice = None) -> array:
        check_stream(stream)
        count = integer(name, "M", M)
        if count > 1 << 28:
            raise AttributeValueError(at_user_line(f"smelt.{name}: M may be 2**28 at most, is {shown(M)}"))
        return from_host(np.asarray(function(count)), dtypes.float32)

    window.__name__ = window.__qualname__ = name
    window.__doc__ = f"""The {name.capitalize()} window of `M` points, as float32: {formula}.

    Raises:
        AttributeValueError: more than 2**28 points.

    >>> import smelt
    >>> smelt.{name}({points})
    array({example}, dtype=float32)
    """
    return keywords_explained(window)


bartlett = _window("bartlett", np.bartlett, "a triangle from 0 to 1 to 0", "[0, 1, 0]")
hanning = _window("hanning", np.hanning, "0.5 - 0.5 cos(2πn / (M - 1))", "[0, 1, 0]")
hamming = _window("hamming", np.hamming, "0.54 - 0.46 cos(2πn / (M - 1))", "[0.08, 1, 0.08]")
blackman = _window("blackman", np.blackman, "0.42 - 0.5 cos(2πn / (M - 1)) + 0.08 cos(4πn / (M - 1))", "[1]", 1)

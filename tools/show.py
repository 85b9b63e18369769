"""NumPy arrays as text, in the form of MLIR's dense attributes."""

from __future__ import annotations

import numpy as np


def dense(array: np.ndarray, digits: int = 6) -> str:
    """An array as ``dense<[1.0, 2.5]> : tensor<2xf32>``, floats to `digits` significant digits.

    For reading and for FileCheck: rounded, and infinities and NaN are written as words.
    """
    from smelt.ir import dtypes
    from smelt.ir.aval import Aval

    aval = Aval(tuple(array.shape), dtypes.of(array.dtype))
    return f"dense<{_elements(array, digits)}> : {aval.mlir}"


def _elements(array: np.ndarray, digits: int) -> str:
    if array.ndim:
        return f"[{', '.join(_elements(row, digits) for row in array)}]"
    kind = array.dtype.kind
    if kind == "b":
        return "true" if array else "false"
    if kind in "iu":
        return str(int(array))
    if kind == "c":
        value = complex(array)
        return f"({_float(value.real, digits)}, {_float(value.imag, digits)})"
    return _float(float(array), digits)


def _float(value: float, digits: int) -> str:
    text = f"{value:.{digits}g}"
    return text if not text.lstrip("-").isdigit() else text + ".0"

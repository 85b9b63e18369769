"""Rounding to whole numbers."""

from __future__ import annotations

import numpy as np

from .. import dtypes
from ..kinds import Elementwise, silent
from ..op import NotDifferentiable, Operand
from ..scalar import Scalar, ScalarBuilder


class Round(Elementwise, name="round"):
    """Nearest integer, ties to even.

    ``%0 = "smelt.round"(%x) : (tensor<4xf32>) -> tensor<4xf32>``
    """

    x: Operand
    accepts = dtypes.FLOATS
    jumps = True
    not_differentiable = NotDifferentiable("piecewise constant: the derivative is zero almost everywhere")
    ufunc = np.rint

    @silent
    def reference(self, x: np.ndarray) -> np.ndarray:
        return np.rint(x)

    def lower(self, k: ScalarBuilder, x: Scalar) -> Scalar:
        return k.math("roundeven", x)


class Floor(Elementwise, name="floor"):
    """Largest integer not above x: ⌊x⌋.

    ``%0 = "smelt.floor"(%x) : (tensor<4xf32>) -> tensor<4xf32>``
    """

    x: Operand
    accepts = dtypes.FLOATS
    jumps = True
    not_differentiable = NotDifferentiable("piecewise constant: the derivative is zero almost everywhere")
    ufunc = np.floor

    @silent
    def reference(self, x: np.ndarray) -> np.ndarray:
        return np.floor(x)

    def lower(self, k: ScalarBuilder, x: Scalar) -> Scalar:
        return k.math("floor", x)


class Ceil(Elementwise, name="ceil"):
    """Smallest integer not below x: ⌈x⌉.

    ``%0 = "smelt.ceil"(%x) : (tensor<4xf32>) -> tensor<4xf32>``
    """

    x: Operand
    accepts = dtypes.FLOATS
    jumps = True
    not_differentiable = NotDifferentiable("piecewise constant: the derivative is zero almost everywhere")
    ufunc = np.ceil

    @silent
    def reference(self, x: np.ndarray) -> np.ndarray:
        return np.ceil(x)

    def lower(self, k: ScalarBuilder, x: Scalar) -> Scalar:
        return k.math("ceil", x)


class Trunc(Elementwise, name="trunc"):
    """x without its fraction.

    ``%0 = "smelt.trunc"(%x) : (tensor<4xf32>) -> tensor<4xf32>``
    """

    x: Operand
    accepts = dtypes.FLOATS
    jumps = True
    not_differentiable = NotDifferentiable("piecewise constant: the derivative is zero almost everywhere")
    ufunc = np.trunc

    @silent
    def reference(self, x: np.ndarray) -> np.ndarray:
        return np.trunc(x)

    def lower(self, k: ScalarBuilder, x: Scalar) -> Scalar:
        return k.math("trunc", x)

"""Results whose parts have names, those of the array API standard."""

from __future__ import annotations

from typing import NamedTuple

from ..lazy.arrays import array

__all__: list[str] = []


class EigenResult(NamedTuple):
    """What `eig` and `eigh` return."""

    eigenvalues: array
    eigenvectors: array


class QRResult(NamedTuple):
    """What `qr` returns."""

    Q: array
    R: array


class SlogdetResult(NamedTuple):
    """What `slogdet` returns."""

    sign: array
    logabsdet: array


class SVDResult(NamedTuple):
    """What `svd` returns."""

    U: array
    S: array
    Vh: array

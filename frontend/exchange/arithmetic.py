"""Arithmetic that other frameworks define otherwise than NumPy."""

from __future__ import annotations

import smelt
from smelt import array


def quotient(x: array, y: array) -> array:
    """x / y; of integers towards zero."""
    if x.dtype.is_inexact:
        return x / y
    found = smelt.floor_divide(x, y)
    if x.dtype.kind == "i":
        odd = smelt.logical_and(found * y != x, found < 0)
        found = found + odd.astype(x.dtype)
    return found


def rounded_to(x: array, found: array) -> array:
    """`found`, which numbers were rounded to, with the derivative of the identity: bits of floats have none."""
    found = smelt.stop_gradient(found)
    return smelt.where(smelt.isfinite(x), found - (smelt.stop_gradient(x) - x), found)

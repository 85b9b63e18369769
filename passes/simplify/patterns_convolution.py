"""Patterns on convolutions: no products with the zeros that stand between the elements of an input."""

from __future__ import annotations

from smelt.ir.builder import Value
from smelt.ir.convolution_phases import by_phases, has_phases
from smelt.ir.ops.convolution import ConvGeneral

from .patterns import PatternBuilder, Site, pattern

#: Multiplications from which on it pays to have a kernel for each phase, and channels of which each sums the products.
WORK, CHANNELS = 1 << 22, 8


@pattern("conv_general")
def conv_of_spread_input(b: PatternBuilder, at: Site) -> Value | None:
    """conv(x spread by e, w) → every e-th element of the result by a conv(x, every e-th tap of w) of its own."""
    (x, w), attrs = at.operands, at.attrs
    if not has_phases(attrs) or w.shape[-1] < CHANNELS or not at.aval.size or not x.aval.size:
        return None
    if ConvGeneral().work(x.aval, w.aval, **attrs) < WORK:
        return None
    return by_phases(b, at.op, x, w, at.aval, attrs)

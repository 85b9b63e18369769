"""Canonicalize: simpler ops for what needs no harder ones, and constants computed ahead.

Before::

    %one = "smelt.constant"() {value = 1.000000e+00 : f64, dtype = f32}
    %seed = "smelt.broadcast"(%one) {shape = array<i64: 2, 3>}
    %0 = "smelt.mul"(%x, %seed)
    %1 = "smelt.transpose"(%0) {permutation = array<i64: 1, 0>}
    %2 = "smelt.transpose"(%1) {permutation = array<i64: 1, 0>}
    return %2

After::

    return %x

Every rewrite is exact: it gives the same bits, also for infinities, NaN and signed zeros. Sums and
products count as reassociable, as everywhere in smelt. The patterns stand in the files
``patterns_*.py``; each is counted under its name.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from ..registry import Pass, register_pass
from . import (  # noqa: F401  (register them)
    patterns_algebra,
    patterns_contraction,
    patterns_convolution,
    patterns_indexing,
    patterns_movement,
    patterns_reduce,
)
from .patterns import PatternBuilder, has_foreign_patterns, patterns_without
from .reads import functions_with_effects


@register_pass("canonicalize")
@dataclass(frozen=True)
class CanonicalizePass(Pass):
    """Simplify each function by exact local rewrites, and drop what becomes dead.

    Attributes:
        without: rewrites to leave out, by name; ``smelt-opt --list-rewrites`` lists them.
    """

    without: tuple[str, ...] = ()

    @property
    def foreign(self) -> bool:
        return has_foreign_patterns()

    def run(self, module: Any, statistics: Counter) -> None:
        tried = patterns_without(self.without)
        PatternBuilder(statistics, functions_with_effects(module), tried).sweep_all(module)

"""Cases of ops for generated tests: `smelt.tools.op_cases`. Those of installed packages have such tests, too."""

from __future__ import annotations

from smelt.ir import plugins
from smelt.tools.op_cases import EXPANDED as EXPAND
from smelt.tools.op_cases import (
    EXTENTS,
    INTERVALS,
    Case,
    all_cases,
    cases,
    choices,
    differentiable,
    example,
    module_of,
    module_of_batch,
    plain_ops,
    random_operands,
    reference,
    resized,
    run,
    sample,
    seeds_of,
    smooth_operands,
    transformed,
    valid,
    wrt_of,
)

__all__ = [
    "EXPAND", "EXTENTS", "INTERVALS", "Case", "all_cases", "cases", "choices", "differentiable", "example", "module_of",
    "module_of_batch", "plain_ops", "random_operands", "reference", "resized", "run", "sample", "seeds_of",
    "smooth_operands", "transformed", "valid", "wrt_of",
]  # fmt: skip

assert not (problems := plugins.load_all()), problems

"""Each op of the dialect, written in StableHLO and run by StableHLO's own interpreter, beside its reference rule."""

from __future__ import annotations

import numpy as np
import pytest

from smelt.backends.exchange.linalg import to_linalg
from smelt.backends.exchange.rules.table import RULES
from smelt.backends.exchange.stablehlo import to_stablehlo
from smelt.ir import dtypes, stablehlo
from smelt.ir.op import Op

from ..ops.cases import Case, cases, module_of, plain_ops, random_operands, reference

#: What the interpreter does not know, though compilers do.
NOT_INTERPRETED = {op.name for op in plain_ops() if op.kind == "library"} - {"permutation_of_pivots"}


def test_every_op_has_a_rule_or_is_refused() -> None:
    names = {op.name for op in plain_ops()}
    assert names - set(RULES) <= {"custom_call"}


def _interpreted(case: Case) -> bool:
    """The bindings hand out no complex numbers and no bfloat16."""
    kinds = [a.dtype for a in (*case.avals, *case.results)]
    return not any(k.is_complex or k is dtypes.bfloat16 for k in kinds)


TRANSLATED = [op for op in plain_ops() if op.name in RULES]


@pytest.mark.parametrize("op", TRANSLATED, ids=lambda op: op.name)
def test_values(op: Op) -> None:
    rng = np.random.default_rng(5)
    for case in cases(op):
        text = to_stablehlo(module_of(case))
        if op.name in NOT_INTERPRETED or not _interpreted(case):
            continue
        operands = random_operands(case, rng)
        for got, want in zip(stablehlo.evaluate(text, operands), reference(case, operands)):
            assert got.dtype == want.dtype
            if got.dtype.kind != "f":
                np.testing.assert_array_equal(got, want, err_msg=str(case))
                continue
            tolerance = {2: 4e-3, 4: 2e-5, 8: 1e-9}[got.dtype.itemsize]
            np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance, err_msg=str(case))


@pytest.mark.parametrize("op", TRANSLATED, ids=lambda op: op.name)
def test_linalg_has_every_op(op: Op) -> None:
    """tests/exchange/test_linalg.py runs those that are loops there."""
    for case in (cases(op)[0], *(c for c in cases(op) if c.avals and c.avals[0].dtype is dtypes.complex64)):
        to_linalg(module_of(case))

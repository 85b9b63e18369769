"""Every op of the registry against oracles that do not share its code; see `smelt.tools.op_checks`."""

from __future__ import annotations

import pytest

from smelt.ir.op import registry
from smelt.tools.op_cases import example
from smelt.tools.op_checks import (
    check_batch,
    check_derivative,
    check_kernels,
    check_second_derivative,
    check_text,
    check_transpose,
    smooth_cases,
)
from smelt.tools.op_variants import varied

from ..devices import chosen_device
from .cases import Case, all_cases, cases, choices, differentiable, plain_ops


def _id(value) -> str:
    return str(value) if isinstance(value, Case) else getattr(value, "name", str(value))


#: A case of float64 and one of complex128 of each op with a derivative.
DIFFERENTIABLE = [case for op in plain_ops() for case in differentiable(op)]


@pytest.mark.parametrize("op", plain_ops(), ids=_id)
def test_backend_agrees_with_reference(op):
    check_kernels(cases(op), chosen_device())


@pytest.mark.parametrize("case", all_cases(), ids=_id)
def test_round_trip(case):
    check_text(case)


@pytest.mark.parametrize("case", DIFFERENTIABLE, ids=_id)
def test_jvp_agrees_with_finite_differences(case):
    for wrt in choices(case):
        check_derivative(case, wrt)


@pytest.mark.parametrize("case", DIFFERENTIABLE, ids=_id)
def test_vjp_is_the_adjoint_of_jvp(case):
    check_transpose(case)


@pytest.mark.parametrize("case", DIFFERENTIABLE, ids=_id)
def test_second_derivative(case):
    check_second_derivative(case)


@pytest.mark.parametrize("op", [op for op in plain_ops() if op.operand_names], ids=_id)
def test_batch_agrees_with_a_loop(op):
    check_batch(example(op))


@pytest.mark.parametrize("op", [op for op in plain_ops() if varied(op)], ids=_id)
def test_rules_hold_for_other_values_of_attributes(op):
    check_kernels(varied(op), chosen_device())
    for case in varied(op):
        check_text(case)
        if op.operand_names:
            check_batch(case)

@pytest.mark.parametrize("op", [op for op in plain_ops() if varied(op) and differentiable(op)], ids=_id)
def test_derivatives_hold_for_other_values_of_attributes(op):
    for case in smooth_cases(op)[len(differentiable(op)) :]:
        for wrt in choices(case):
            check_derivative(case, wrt)
        check_transpose(case)


def test_every_example_is_one_line_of_mlir():
    families = ("contract", "indexing", "scan_sort", "random")
    names = [n for n, op in registry.items() if type(op).__module__.split(".")[-1] in families]
    assert len(names) == 12
    for name in names:
        example = registry[name].example
        assert example is not None and f'"smelt.{name}"(' in example and " -> tensor<" in example

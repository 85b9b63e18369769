"""Which generated cases tell nothing about kernels of the CPU, because they launch none or run on the host.

A comparison with the reference device says nothing where the reference rule itself is what runs. Such cases are listed
here with the reason; one that is not listed, or that has kernels by now, fails.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from smelt.backends.cpu import program as cpu
from smelt.backends.cpu.kernel import KernelModule
from smelt.backends.cpu.planner import FunctionPlanner
from smelt.ir.builder import functions
from smelt.passes import Pipeline

from .cases import Case, module_of, plain_ops
from .variants import every_case


def _always(case: Case) -> bool:
    return True


def _over_no_axes(case: Case) -> bool:
    return case.kwargs["axes"] == ()


def _to_its_own_dtype(case: Case) -> bool:
    return case.kwargs["dtype"] is case.avals[0].dtype


#: Nothing is computed: ops, when, and why.
NO_KERNEL: list[tuple[tuple[str, ...], Callable[[Case], bool], str]] = [
    (("barrier", "stop_gradient"), _always, "the result is the operand, once no derivative can be taken"),
    (("reshape", "byte_view"), _always, "the result is the operand's memory"),
    (("convert", "bitcast"), _to_its_own_dtype, "the result is the operand"),
    (("integer_power",), lambda case: case.kwargs["exponent"] == 1, "the result is the operand"),
    (("reverse", "reduce_prod", "reduce_max", "reduce_min", "reduce_all", "reduce_any"), _over_no_axes,
     "the result is the operand"),
]  # fmt: skip
#: The reference rule runs. Each of these has an oracle of its own.
ON_THE_HOST: list[tuple[tuple[str, ...], Callable[[Case], bool], str]] = [
    (tuple(op.name for op in plain_ops() if op.kind == "library"), _always, "a library computes; see test_library"),
    (("sort", "argsort"), _always, "NumPy sorts; see test_scan_sort"),
]  # fmt: skip


def schedules(case: Case) -> list[str]:
    """How the kernels of a case are scheduled; "host" for what is none."""
    module = module_of(case)
    Pipeline.parse(cpu.PIPELINE).run(module)
    parts = FunctionPlanner(KernelModule(), functions(module))
    parts.body("main")
    return [kernel.schedule for kernel in parts.kernels]


def listed(case: Case, where: list[tuple[tuple[str, ...], Callable[[Case], bool], str]]) -> bool:
    return any(case.op.name in names and holds(case) for names, holds, _ in where)


@pytest.mark.parametrize("op", plain_ops(), ids=lambda op: op.name)
def test_cases_without_kernels_are_listed(op):
    for case in every_case(op):
        found = schedules(case)
        assert (not found) == listed(case, NO_KERNEL), f"{case} {case.kwargs}: {found or 'no kernel'}"
        assert ("host" in found) == listed(case, ON_THE_HOST), f"{case} {case.kwargs}: {found}"


def test_the_lists_name_cases_that_there_are():
    every = [case for op in plain_ops() for case in every_case(op)]
    for names, holds, _ in (*NO_KERNEL, *ON_THE_HOST):
        for name in names:
            assert any(case.op.name == name and holds(case) for case in every), name

"""The contract between the rules of ops and those who run them: who implements `ScalarBuilder` has all of it."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import numpy as np
import pytest

from smelt.backends.cpu.kernel import CpuKernel
from smelt.backends.gpu.kernel import GpuKernel
from smelt.ir import dtypes
from smelt.ir.kinds import Fusible
from smelt.ir.scalar import ScalarBuilder
from smelt.passes.kernels.analysis import Recorder
from smelt.tools.op_checks import tolerance

from .cases import Case, cases, plain_ops, reference, sample
from .rules import ScalarMachine, constants, fetcher
from .test_elementary import HostKernel

MEMBERS = [name for name in vars(ScalarBuilder) if not name.startswith("_")]
BUILDERS = [CpuKernel, GpuKernel, HostKernel, Recorder, ScalarMachine]


def parameters(function: Callable[..., object]) -> list[tuple[str, object, object]]:
    return [(p.name, p.kind, p.default) for p in inspect.signature(function).parameters.values()]


@pytest.mark.parametrize("builder", BUILDERS, ids=lambda b: b.__name__)
def test_a_builder_has_every_method_with_its_parameters(builder: type) -> None:
    assert not getattr(builder, "__abstractmethods__", ())
    for name in MEMBERS:
        wanted, found = inspect.getattr_static(ScalarBuilder, name), inspect.getattr_static(builder, name, None)
        assert hasattr(builder, name), f"{builder.__name__} has no {name}"
        if isinstance(wanted, property):
            continue
        asked, given = parameters(wanted), parameters(found)
        assert given[: len(asked)] == asked, f"{builder.__name__}.{name} takes other parameters than ScalarBuilder's"
        more = [name for name, _, default in given[len(asked) :] if default is inspect.Parameter.empty]
        assert not more, f"{builder.__name__}.{name} needs {more} beside what ScalarBuilder says"


def test_every_method_says_what_it_does() -> None:
    for name in MEMBERS:
        member = inspect.getattr_static(ScalarBuilder, name)
        assert inspect.getdoc(member), name
        annotated = inspect.signature(member.fget if isinstance(member, property) else member)
        assert annotated.return_annotation is not annotated.empty, name


def element_cases() -> list[Case]:
    """Each op with an element rule, in every dtype that kernels hold as it is."""
    found = []
    for op in plain_ops():
        if isinstance(op, Fusible):
            found += [c for c in cases(op) if not any(a.dtype in (dtypes.float16, dtypes.bfloat16) for a in c.avals)]
    return found


@pytest.mark.parametrize("case", element_cases(), ids=str)
def test_the_element_rule_computes_the_reference(case: Case) -> None:
    """The rule on NumPy scalars: what it asks of the builder is all in the contract."""
    rng = np.random.default_rng(3)
    operands = [sample(a, rng) for a in case.avals]
    (want,), (result,) = reference(case, operands), case.results
    wide = complex if result.dtype.is_complex else float
    for at in list(np.ndindex(result.shape))[:4]:
        found = case.op.element(
            ScalarMachine(), constants(at), fetcher(operands), case.avals, result, **case.kwargs
        )
        bounds = tolerance(result) if result.dtype.is_inexact else {"atol": 0, "rtol": 0}
        np.testing.assert_allclose(wide(found.mlir), wide(np.asarray(want)[at]), equal_nan=True, **bounds)

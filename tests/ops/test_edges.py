"""Kernels at the edges: every op with axes without elements and of one, odd extents, ties, NaN, infinities, zeros.

What is compiled (on the CPU with checked accesses, and Metal's kernels on the simulator with guarded
buffers) against the `reference` rules. Many cases share one program; each program runs on every kind of values.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from smelt.ir import dtypes
from smelt.ir.op import Op
from smelt.ir.settings import override
from smelt.runtime import Buffer, compile_module
from smelt.runtime.device import Device
from smelt.tools.op_checks import assert_close

from ..devices import with_kernels
from .cases import Case, module_of_batch, plain_ops, reference
from .edges import VALUES, dtype_cases, edge_cases, few, operands_of

#: Cases in one program.
BATCH = {"cpu": 64, "metal:sim": 40}
#: Cases of one op at most: of shapes, of dtypes.
MOST = {"cpu": (40, 16), "metal:sim": (8, 8)}
#: Ops without operands have no shapes to change; ops that combine nothing have no elements to compare.
SOURCES = "it has no operands"


def device_cases(op: Op, device: str) -> list[Case]:
    shapes, kinds = MOST.get(device, (8, 8))
    found = [*few(edge_cases(op), shapes), *few(dtype_cases(op), kinds)]
    if device not in ("cpu", "cuda"):  # what has float64 runs on the CPU there
        found = [c for c in found if not any(a.dtype.real is dtypes.float64 for a in (*c.avals, *c.results))]
    return found


def batches() -> Iterator[Any]:
    """Cases of all ops in handfuls; one op's cases are spread, so that a program holds many kinds of kernels."""
    for device in with_kernels():
        every = [c for op in plain_ops() for c in device_cases(op, device.name)]
        step = -(-len(every) // BATCH.get(device.name, 40))
        for first in range(step):
            yield pytest.param(device, every[first::step], id=f"{device.name}-{first}")


@pytest.mark.parametrize(("device", "batch"), list(batches()))
def test_kernels_agree_with_reference(device: Device, batch: list[Case]) -> None:
    with override(check=True, race="shuffled"):
        program = compile_module(module_of_batch(batch), device)
        for values in VALUES:
            rng = np.random.default_rng(1)
            operands = [operands_of(c, values, rng) for c in batch]
            flat = [Buffer.of(x, a) for c, xs in zip(batch, operands) for x, a in zip(xs, c.avals)]
            outs = iter(program.run(flat))
            for case, xs in zip(batch, operands):
                with np.errstate(all="ignore"):
                    wanted = reference(case, xs)
                for want, aval in zip(wanted, case.results):
                    agree(case, next(outs).array, np.asarray(want), aval, values)


def agree(case: Case, found: np.ndarray, want: np.ndarray, aval: Any, values: str) -> None:
    what = f"{case} {case.kwargs}, {values}"
    assert_close(found, want, aval, what)
    if (
        case.op.kind in ("movement", "gather", "sort") and aval.dtype.kind == "f"
    ):  # elements as they are: zeros have signs
        np.testing.assert_array_equal(np.signbit(found), np.signbit(want), err_msg=what)


@pytest.mark.parametrize("op", plain_ops(), ids=lambda op: op.name)
def test_every_op_has_cases_at_the_edges(op: Op) -> None:
    """Results or operands without elements, axes of one, and more than one element."""
    if not op.operand_names:
        return
    sizes = [{a.size for a in (*c.avals, *c.results)} for c in few(edge_cases(op), MOST["cpu"][0])]
    shapes = [a.shape for c in few(edge_cases(op), MOST["cpu"][0]) for a in (*c.avals, *c.results)]
    assert any(0 in s for s in sizes) and any(1 in s for s in shapes) and any(max(s) > 1 for s in sizes)

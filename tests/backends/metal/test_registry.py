"""Every op of the registry in every dtype that Metal has: strict check, and values on the simulator.

Many cases share one program, which saves compiles: their ops have no operand in common, so each stays a
kernel of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pytest

import smelt
from smelt.backends.metal.check import check
from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.errors import SmeltError
from smelt.ir.op import Op
from smelt.ir.settings import override
from smelt.runtime import Buffer, compile_module
from smelt.runtime.device import metal_sim
from smelt.tools.op_checks import assert_close
from tests.ops.cases import Case, cases, module_of_batch, plain_ops, random_operands, reference

#: Calls of functions that Metal has fast and precise versions of, without saying which.
PLAIN_MATH = re.compile(
    r"(?<!precise::)(?<!fast::)(?<!\w)(?:sqrt|rsqrt|exp|exp2|exp10|log|log2|log10|sin|cos|tan|sincos|asin|acos|atan|atan2|sinh"
    r"|cosh|tanh|asinh|acosh|atanh|pow|powr|sinpi|cospi|tanpi|divide)\("
)
#: Cases in one program.
BATCH = 24

ELEMENTWISE = ((1027,), (4, 1024), (2, 3, 1, 2, 1, 3), (0, 5))
#: Shapes and the axes along which reductions, scans and sorts run.
ALONG = (
    ((7,), 0), ((1,), 0), ((3, 0), 0), ((5, 1000), 1), ((3, 257), 1), ((1000, 3), 0), ((64, 256), 0),
    ((2, 3, 4, 5), 1), ((2, 3, 4, 5), 3), ((2, 1, 2, 3, 1, 4), 3), ((70000,), 0), ((2, 5000), 1),
)  # fmt: skip


def metal_cases(op: Op) -> list[Case]:
    """The op's cases without float64, and more shapes."""
    found = list(cases(op))
    base = found[0]
    if op.kind == "elementwise":
        for shape in ELEMENTWISE:
            found.append(Case(op, tuple(a.with_shape(shape) for a in base.avals), base.attrs))
    names = dict(base.attrs)
    if "axis" in names and len(base.avals) == 1:
        found += _along(op, base, "axis", lambda axis: axis)
    if "axes" in names and op.kind == "reduction":
        found += _along(op, base, "axes", lambda axis: (axis,))
        for shape, axes in (((4, 5, 6), (0, 2)), ((4, 5, 6), (0, 1, 2)), ((4, 5), ()), ((300, 300), (0, 1))):
            found += _if_valid(op, (base.avals[0].with_shape(shape),), {**names, "axes": axes})
    return [c for c in found if not any(a.dtype.real is dtypes.float64 for a in (*c.avals, *c.results))]


def _along(op: Op, base: Case, name: str, value) -> list[Case]:
    found = []
    for shape, axis in ALONG:
        found += _if_valid(op, (base.avals[0].with_shape(shape),), {**base.kwargs, name: value(axis)})
    return found


def _if_valid(op: Op, avals: tuple[Aval, ...], attrs: dict) -> list[Case]:
    try:
        op.infer(*avals, **attrs)
    except SmeltError:
        return []
    return [Case(op, avals, tuple(attrs.items()))]


def batches() -> Iterator[list[Case]]:
    """Cases of all ops, in handfuls; one op's cases are spread, so that dtypes mix."""
    every = [c for op in plain_ops() for c in metal_cases(op)]
    step = -(-len(every) // BATCH)
    for first in range(step):
        yield every[first::step]


@pytest.mark.parametrize("batch", list(batches()), ids=lambda b: b[0].op.name)
def test_simulator_agrees_with_reference(batch):
    program = compile_module(module_of_batch(batch), metal_sim)
    text = program.as_text("msl")
    assert not [d for d in check(text) if d.severity != "note"]
    assert not PLAIN_MATH.findall(text), "what a plain name means, fast or precise, is the host's choice"
    assert_values(program, batch)


def assert_values(program, batch):
    """The cases' values, of their program on a device, are those of the NumPy rules."""
    rng = np.random.default_rng(1)
    operands = [list(map(np.asarray, random_operands(c, rng))) for c in batch]
    avals = [a for c in batch for a in c.avals]
    flat = [x for xs in operands for x in xs]
    outs = iter(program.run([Buffer.of(x, a) for x, a in zip(flat, avals)]))
    for c, xs in zip(batch, operands):
        for want, aval in zip(reference(c, xs), c.results):
            found, want = next(outs).array, np.asarray(want)
            if c.op.name == "cumsum" and aval.dtype.is_float and want.size > 1000:
                # Sums in another order differ by the rounding of the largest of them.
                np.testing.assert_allclose(found, want, atol=1e-5 * np.max(np.abs(want)))
            elif c.op.name == "reduce_sum" and aval.dtype is dtypes.float32 and xs[0].size > 1000 * want.size:
                bound = 4 * np.finfo(np.float32).eps * np.sqrt(xs[0].size / want.size) * np.max(np.abs(xs[0]))
                np.testing.assert_allclose(found, want, rtol=2e-5, atol=bound)
            else:
                assert_close(found, want, aval, f"{c} {c.kwargs}")


def test_float64_is_placed_on_the_cpu():
    (add,) = (op for op in plain_ops() if op.name == "add")
    aval = Aval((5,), dtypes.float64)
    case = Case(add, (aval, aval), ())
    program = compile_module(module_of_batch([case]), metal_sim, keep_texts=True)
    assert 'smelt.device = "cpu"' in program.as_text("place")
    x = np.arange(5) / 3
    (out,) = program.run([Buffer.of(x, aval), Buffer.of(x, aval)])
    np.testing.assert_array_equal(out.array, x + x)


def test_kernels_go_on_with_what_the_cpu_made():
    compiled = smelt.compile(lambda x, y: smelt.exp(x).astype(smelt.float32) + smelt.softmax(y))
    x, y = smelt.array(np.arange(5) / 3, dtype=smelt.float64), smelt.arange(5.0)
    with override(device="metal:sim"):
        found = np.array(compiled(x, y))
    want = np.exp(np.arange(5) / 3) + np.exp(np.arange(5)) / np.exp(np.arange(5)).sum()
    np.testing.assert_allclose(found, want, rtol=1e-6)

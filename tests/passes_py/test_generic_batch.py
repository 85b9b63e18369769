"""The batching rule of ops that have none of their own: a scan over the batch in the IR."""

from __future__ import annotations

import numpy as np
import pytest

from smelt.ir import dtypes, text
from smelt.ir.aval import Aval
from smelt.ir.op import Op, registry
from smelt.passes import Pipeline
from tests.ops.cases import Case, all_cases, module_of, random_operands, reference, transformed

from .batch_programs import EXPAND, V, at, batch, names_of

GENERIC = {c.op.name: c for c in reversed(all_cases()) if c.avals}


@pytest.mark.parametrize("name", sorted(GENERIC))
def test_generic_rule(name, monkeypatch):
    """Every op of the registry gets the right result from the rule that ops without one get."""
    case = GENERIC[name]
    monkeypatch.setattr(type(case.op), "batch", Op.batch)
    assert not case.op.has_rule("batch")
    rng = np.random.default_rng(0)
    size, n = 2, len(case.avals)
    for axes in {(0,) * n, tuple(a.ndim if i == n - 1 else -1 for i, a in enumerate(case.avals))}:
        elements = [random_operands(case, rng, (0.2, 0.9)) for _ in range(size)]
        slices = [xs[: size if x >= 0 else 1] for xs, x in zip(zip(*elements), axes)]
        arrays = [np.stack(s, x) if x >= 0 else s[0] for s, x in zip(slices, axes)]
        found = transformed(case, [batch(size, axes, (0,) * len(case.results))], arrays)
        rows = [reference(case, [at(a, x, i) for a, x in zip(arrays, axes)]) for i in range(size)]
        for out, *want in zip(found, *rows):
            # NumPy's products of matrices round by how the operands lie in memory.
            rounding = 1e-6 if case.op.kind == "contraction" and out.dtype.kind in "fc" else 0
            np.testing.assert_allclose(out, np.stack(want), rtol=rounding)


def test_generic_rule_is_one_loop_in_the_ir(monkeypatch):
    """No copy of the op for each element, and derivatives go through it."""
    op = registry["sin"]
    monkeypatch.setattr(type(op), "batch", Op.batch)
    case = Case(op, (V,), ())

    def wrap(arguments, results):
        big = [Aval((1000, 3), dtypes.float64)]
        return big, big, lambda b, f, args: b.apply(b.transform(registry["batch"], f, batch(1000, (0,), (0,))[1]), args)

    module = module_of(case, wrap)
    Pipeline.parse(EXPAND).run(module)
    assert names_of(module) == ["scan"] and text.to_text(module).count("smelt.sin") == 1
    x, t = np.random.default_rng(0).uniform(-1, 1, (2, 4, 3))
    out, tangent = transformed(case, [batch(4, (0,), (0,)), ("jvp", {"wrt": (0,)})], [x, t])
    np.testing.assert_allclose(out, np.sin(x), rtol=1e-12)
    np.testing.assert_allclose(tangent, np.cos(x) * t, rtol=1e-12)

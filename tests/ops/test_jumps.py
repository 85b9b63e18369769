"""What jumps, or ends, takes operands of half precision as they are in memory, also where a kernel makes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

import smelt
from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.kinds import Elementwise
from smelt.ir.op import registry

#: What takes real numbers, by its numbers of operands; comparisons give no float, so they always do.
REAL_OPS = {
    name: op for name, op in registry.items()
    if isinstance(op, Elementwise) and {dtypes.float32, dtypes.float64} <= {*op.accepts} and op.linearity is None
    and not op.attrs.keys() - {"y"} and op.infer(*[Aval((), dtypes.float32)] * len(op.operand_names),
                                               **dict.fromkeys(op.attrs, 3)).dtype.is_float
}  # fmt: skip
FRONTEND: dict[str, Callable[..., smelt.array]] = {
    "floor": smelt.floor, "ceil": smelt.ceil, "round": smelt.round, "trunc": smelt.trunc, "sign": smelt.sign,
    "modf": lambda x: smelt.modf(x)[0], "whole part": lambda x: smelt.modf(x)[1],
    "remainder": lambda x: smelt.remainder(x, 1.0), "fmod": lambda x: smelt.fmod(x, 1.0),
    "floor_divide": lambda x: x // 1.0, "divisor": lambda x: smelt.remainder(12.0, x),
    "quotient": lambda x: 12.0 // x, "power": lambda x: smelt.power(-2.0, x), "arcsin": lambda x: smelt.arcsin(x / 4),
    "arccosh": lambda x: smelt.arccosh(x / 4), "less": lambda x: x < 3, "astype": lambda x: x.astype(smelt.int32),
}  # fmt: skip


@pytest.fixture(params=["cpu", "metal:sim"])
def device(request: pytest.FixtureRequest) -> Iterator[str]:
    with smelt.stream(request.param):
        yield request.param


def factors(dtype: smelt.Dtype) -> tuple[smelt.array, smelt.array]:
    """Numbers whose products are next to whole numbers, and rounded to these."""
    a = np.tile(np.arange(3, 120) / 7, 8)
    n = np.repeat(np.arange(1, 9), 117)
    x = smelt.array(a, smelt.float32).astype(dtype)
    return x, (smelt.array(n.astype(np.float32)) / x.astype(smelt.float32)).astype(dtype)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", FRONTEND)
def test_products_next_to_whole_numbers(name: str, dtype: str, device: str) -> None:
    function = FRONTEND[name]
    x, y = factors(getattr(smelt, dtype))
    product = x * y
    smelt.eval(product)
    want = np.asarray(function(product).astype(smelt.float32))
    found = np.asarray(smelt.compile(lambda x, y: function(x * y))(x, y).astype(smelt.float32))
    np.testing.assert_allclose(found, want, 1e-2, 1e-6)


@pytest.mark.parametrize("name", REAL_OPS)
def test_the_registry_says_what_jumps(name: str) -> None:
    """Next to numbers of 16 bits results are near to theirs, and numbers; but not where the op jumps or ends.

    An end at 0 does not count: what is rounded keeps its sign.
    """
    op = REAL_OPS[name]
    attrs = dict.fromkeys(op.attrs, 3)
    grid = np.concatenate([np.arange(-48, 49) / 16, [100.0, -100.0]]).astype(np.float32)
    count = len(op.operand_names)
    xs = np.array(np.meshgrid(*[grid] * count)).reshape(count, -1) if count < 3 else np.stack([grid] * count)
    here = np.asarray(op.reference(*xs, **attrs), np.float64)
    jumps = ends = False
    for i in range(count):
        for step in (-1e-6, 1e-6):
            moved = xs.copy()
            moved[i] = np.where(xs[i] == 0, step, xs[i] * np.float32(1 + step))
            there = np.asarray(op.reference(*moved, **attrs), np.float64)
            known = np.isfinite(here) & np.isfinite(there)
            apart = np.where(known, there, 0) - np.where(known, here, 0)
            jumps |= bool(np.any(np.abs(apart) > 1e-2 * np.where(known, np.maximum(1, np.abs(here)), 1)))
            ends |= bool(np.any(np.isnan(there) & ~np.isnan(here) & (xs[i] != 0)))
    assert (jumps or ends) == op.jumps

"""Values of bfloat16 that are stored without rounding: right for every bit pattern, and without its operations."""

import ml_dtypes
import numpy as np
import pytest

import smelt
from smelt import nn
from smelt.ir.settings import override

X = np.arange(1 << 16, dtype=np.uint16).view(ml_dtypes.bfloat16)
Y = np.random.default_rng(0).permutation(X)

MOVING = {
    "negative": lambda x, y: -x,
    "abs": lambda x, y: smelt.abs(x),
    "copysign": smelt.copysign,
    "maximum": smelt.maximum,
    "minimum": smelt.minimum,
    "relu": lambda x, y: nn.relu(x),
    "relu6": lambda x, y: nn.relu6(x),
    "where": lambda x, y: smelt.where(x > y, x, y),
    "clip": lambda x, y: smelt.clip(x, -1, 1.5),
    "floor": lambda x, y: smelt.floor(x),
    "ceil": lambda x, y: smelt.ceil(x),
    "round": lambda x, y: smelt.round(x),
    "trunc": lambda x, y: smelt.trunc(x),
    "several": lambda x, y: -smelt.abs(smelt.minimum(x, smelt.floor(y))),
}
ROUNDING = {
    "square": lambda x, y: x * x,
    "leaky_relu": lambda x, y: nn.leaky_relu(x),
    "max of a sum": lambda x, y: smelt.maximum(x + y, x),
    "of many bits": lambda x, y: smelt.where(x > y, x.astype(smelt.float32), 0.1).astype(x.dtype),
}


@pytest.mark.parametrize("name", [*MOVING, *ROUNDING])
def test_all_bit_patterns(name):
    f = {**MOVING, **ROUNDING}[name]
    x, y = smelt.array(X), smelt.array(Y)
    with override(tier="program", small_work=0, cache=False):
        found = np.array(smelt.compile(f)(x, y).astype(smelt.float32))
    with override(device="reference"):
        wanted = np.array(f(x, y).astype(smelt.float32))
    np.testing.assert_array_equal(found, wanted)
    numbers = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(found[numbers]), np.signbit(wanted[numbers]))


@pytest.mark.parametrize("name", [*MOVING, *ROUNDING])
def test_what_is_rounded(name):
    x = smelt.array(X)
    compiled = smelt.compile({**MOVING, **ROUNDING}[name]).trace(x, x).lower().compile()
    assert ("arith.trunci" in compiled.as_text("kernel")) == (name in MOVING)  # the upper half

"""Extrema of what a mask leaves: kernels of the cpu backend in vectors, as those of all elements."""

import numpy as np
import pytest

import smelt
from smelt.ir.settings import override

X = np.random.default_rng(0).standard_normal((500, 2048)).astype(np.float32)
MASK = np.random.default_rng(1).random((500, 2048)) < 0.5
X[::7, ::5] = np.nan
MASK[3], MASK[:, 2] = False, True


def _masked(x, fill):
    return smelt.where(smelt.array(MASK), x, fill)


FUNCTIONS = {
    "max": (lambda x: _masked(x, -np.inf).max(1), lambda x: np.where(MASK, x, -np.inf).max(1)),
    "min": (lambda x: _masked(x, np.inf).min(1), lambda x: np.where(MASK, x, np.inf).min(1)),
    "all": (lambda x: _masked(x, -np.inf).max(), lambda x: np.where(MASK, x, -np.inf).max()),
    "argmax": (lambda x: _masked(x, -np.inf).argmax(1), lambda x: np.where(MASK, x, -np.inf).argmax(1)),
    "nanmax": (lambda x: smelt.nanmax(x, axis=1), lambda x: np.nanmax(x, 1)),
    "nanmin": (lambda x: smelt.nanmin(x, axis=1), lambda x: np.nanmin(x, 1)),
}


@pytest.fixture(scope="module")
def compiled():
    with override(tier="program"):
        yield {name: smelt.compile(ours) for name, (ours, _) in FUNCTIONS.items()}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values(compiled, name):
    np.testing.assert_array_equal(np.asarray(compiled[name](smelt.array(X))), FUNCTIONS[name][1](X))


@pytest.mark.host("it is about kernels of the CPU")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_was_chosen_is_settled(name):
    """LLVM would compute extrema of infinities that were chosen only where they were not: no vector's loop."""
    for function, is_masked in ((FUNCTIONS[name][0], True), (lambda x: x.max(1), False)):
        program = smelt.compile(function).trace(smelt.array(X)).lower().compile()
        assert ("llvm.freeze" in program.as_text("kernel")) == is_masked

"""What the tests of ops share."""

from __future__ import annotations

import numpy as np
import pytest

from smelt.lazy import core


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.fixture(params=(16, 32, 64))
def vector_bytes(request: pytest.FixtureRequest) -> int:
    """Each size of vectors for which there are loops in C, where the processor has them."""
    own: int = core.native.vector_bytes()
    if request.param > own:
        pytest.skip(f"the processor has vectors of {own} bytes")
    found: int = request.param
    return found

"""Programs that were compiled under other settings are other programs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir.settings import OF_PROGRAMS, override, settings


def total(x: smelt.array) -> smelt.array:
    return (smelt.exp(x * 0.001) * 2 + x).sum()


@pytest.mark.parametrize("function", [total, smelt.compile(total)], ids=["lazy", "compiled"])
def test_a_pipeline_is_asked_for_again(function: Any) -> None:
    x = smelt.array(np.arange(1000, dtype=np.float32))
    with override(tier="program", small_work=0):
        for _ in range(3):  # the last one repeats a call
            wanted = np.array(function(x))
        with override(pipeline="no-such-pass"), pytest.raises(smelt.SmeltError, match="unknown pass 'no-such-pass'"):
            smelt.eval(function(x))
        np.testing.assert_array_equal(np.array(function(x)), wanted)


def test_values_of_settings_are_noted() -> None:
    before = settings.of_programs
    assert before == tuple(getattr(settings, name) for name in OF_PROGRAMS)
    with override(check=not settings.check):
        assert settings.of_programs != before
    assert settings.of_programs == before

"""The demo's network trains through Metal's kernels as it does on the CPU."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

import smelt
from smelt.ir.settings import override
from tests.architecture.sources import ROOT

STEPS = 6


def losses(device: str) -> list[float]:
    """The losses of the first steps of examples/digits.py."""
    spec = importlib.util.spec_from_file_location("digits", ROOT / "examples" / "digits.py")
    assert spec is not None and spec.loader is not None
    digits = importlib.util.module_from_spec(spec)
    with override(device=device):
        spec.loader.exec_module(digits)
        (images, labels), _ = digits.load()
        found = []
        for i in range(0, STEPS * digits.BATCH, digits.BATCH):
            batch = slice(i, i + digits.BATCH)
            found.append(digits.step(smelt.array(images[batch]), smelt.array(labels[batch])).item())
    return found


def test_losses_agree_with_the_cpu():
    pytest.importorskip("sklearn")
    cpu, metal = losses("cpu"), losses("metal:sim")
    np.testing.assert_allclose(metal, cpu, atol=1e-4)
    assert metal[-1] < metal[0]

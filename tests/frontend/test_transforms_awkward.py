"""Derivatives at kinks, ties and poles are what the table in docs/transformations.md says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import smelt
from smelt.ir.settings import override

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "transformations.md"
NAMES = {"smelt": smelt, "inf": float("inf"), "nan": float("nan")}


def rows() -> Iterator[tuple[str, str, str]]:
    """Expression, point and derivative of each row of the table."""
    table = DOCUMENT.read_text(encoding="utf-8").split("<!-- awkward points -->\n")[1].split("\n\n")[0]
    for line in table.splitlines()[2:]:
        cells = [c.strip() for c in re.split(r"(?<!\\)\|", line)[1:-1]]
        expression, point, derivative = (c.strip("`") for c in cells[:3])
        yield expression, point, derivative


ROWS = list(rows())


def test_the_table_is_read():
    assert len(ROWS) > 40


@pytest.mark.parametrize("expression, point, derivative", ROWS, ids=[f"{e} at {p}" for e, p, _ in ROWS])
def test_row(expression, point, derivative):
    function = eval(f"lambda x: smelt.sum({expression})", dict(NAMES))
    want = np.array(eval(derivative, dict(NAMES)), np.float64)
    gradient = smelt.grad(function)
    for dtype in (smelt.float64, smelt.float32):
        x = smelt.array(np.array(eval(point, dict(NAMES)), np.float64), dtype)
        found = {
            "grad": gradient(x),
            "compile": smelt.compile(gradient)(x),
            "vmap": smelt.vmap(gradient)(x[None])[0],
            "jacfwd": smelt.jacfwd(function)(x),
        }
        with override(device="reference"):
            found["reference"] = smelt.compile(gradient)(x)
            smelt.eval(found["reference"])
        for how, got in found.items():
            if how == "jacfwd" and not np.isfinite(want).all():
                continue  # forward mode may add 0 · ∞ where reverse mode does not
            np.testing.assert_allclose(np.array(got), want, rtol=1e-5, atol=1e-7, err_msg=f"{how} {dtype}")


def test_values_at_these_points():
    inf = float("inf")
    assert smelt.logsumexp(smelt.array([-inf, -inf])).item() == -inf
    assert smelt.logsumexp(smelt.array([inf, 0.0])).item() == inf
    assert smelt.logaddexp(smelt.array(-inf), smelt.array(-inf)).item() == -inf
    assert smelt.logaddexp(smelt.array(inf), smelt.array(inf)).item() == inf
    assert smelt.std(smelt.array([1.0, 1.0])).item() == 0.0
    assert smelt.power(smelt.array(0.0), smelt.array(0.0)).item() == 1.0


@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150])
def test_arctan2_at_all_scales(scale):
    """Gradient of the angle: (x, -y) / (x² + y²)."""
    y, x = 3.0 * scale, 4.0 * scale
    gy, gx = smelt.grad(smelt.arctan2, argnums=(0, 1))(smelt.array(y, smelt.float64), smelt.array(x, smelt.float64))
    np.testing.assert_allclose([gy.item() * scale, gx.item() * scale], [4 / 25, -3 / 25], rtol=1e-12)

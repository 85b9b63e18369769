"""Blocks of products: which operand comes into the caches again."""

from __future__ import annotations

import pytest

import smelt
from smelt.backends.cpu.contract import build, panels
from smelt.backends.cpu.kernel import KernelModule
from smelt.ir.settings import override

from ..spies import calls_of


@pytest.mark.parametrize(("rows", "columns"), [(27, 64), (64, 27)])
def test_the_smaller_operand_is_filled_again(rows: int, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows stay whole where a product is cut in two, and few columns."""
    monkeypatch.setattr(panels, "processors", lambda: 2)
    made = calls_of(monkeypatch, build, "build_panels", lambda arguments, result: arguments[-1])
    x, y = (smelt.ones((5000, n), smelt.float16) for n in (rows, columns))
    with override(tier="program", small_work=0):
        smelt.eval(smelt.compile(lambda x, y: smelt.tanh(x.T @ y * 1e-5))(x, y))
    [product] = made
    kernel = panels._Panels(KernelModule(), "trial", product)
    blocks = (kernel.rows, kernel.columns) if kernel.sides.rows.extent == 27 else (kernel.columns, kernel.rows)
    assert [b.count for b in blocks] == [1, 2]

"""Pictures by matplotlib, where it is installed."""

from __future__ import annotations

import builtins
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.nn.pictures import attention_maps, training_curves


def test_without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(smelt.SmeltError, match="training_curves: needs matplotlib: pip install matplotlib") as found:
        training_curves({"loss": [1.0]})
    assert isinstance(found.value, builtins.ImportError)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: training_curves([1.0]), "curves must be values by name"),
        (lambda: training_curves({"loss": smelt.ones((2, 2))}), "loss must be a sequence of numbers, has the"),
        (lambda: training_curves({"loss": [1.0]}, steps={"loss": [1, 2]}), "loss has 1 values at 2 steps"),
        (lambda: training_curves({}, smooth=1.0), "smooth must be at least 0 and below 1"),
        (lambda: attention_maps(smelt.ones(3)), r"weights are \[heads, queries, keys\]"),
        (lambda: attention_maps(smelt.ones((2, 3)), queries=["a"]), "2 queries with 1 words"),
        (lambda: attention_maps(smelt.ones((2, 3)), keys=["a"]), "3 keys with 1 words"),
    ],
)  # fmt: skip
def test_bad_arguments(call: Any, message: str) -> None:
    with pytest.raises(smelt.SmeltError, match=message):
        call()


def test_curves(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / "curves.png"
    losses = [smelt.array(2.0), 1.0, np.float32("nan"), 0.5]
    figure = training_curves({"loss": losses, "held out": smelt.array([1.5])}, path, steps={"held out": [4]}, log=True)
    assert path.read_bytes()[:4] == b"\x89PNG"
    axes = figure.axes[0]
    assert [line.get_label() for line in axes.lines] == ["loss", "held out"] and axes.get_yscale() == "log"
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), [2, 1, np.nan, 0.5])
    assert axes.lines[1].get_xdata().tolist() == [4]
    smoothed = training_curves({"loss": [4.0, 0.0]}, smooth=0.5).axes[0].lines
    np.testing.assert_allclose(smoothed[1].get_ydata(), [4, 2 / 1.5])
    assert "matplotlib.pyplot" not in sys.modules


def test_maps(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    weights = smelt.softmax(smelt.random.normal((6, 3, 3)), axis=-1)
    figure = attention_maps(weights, tmp_path / "maps.svg", queries=["a", "b", "c"], title="words")
    assert "<svg" in (tmp_path / "maps.svg").read_text()
    assert len(figure.axes) == 6
    np.testing.assert_allclose(figure.axes[4].images[0].get_array(), np.asarray(weights[4]))
    assert [t.get_text() for t in figure.axes[0].get_xticklabels()] == ["a", "b", "c"]
    assert len(attention_maps(np.eye(3)).axes) == 1

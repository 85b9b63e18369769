"""The page of `smelt view` in a real browser, where there is one: ``make test-browser``."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

import smelt
import smelt.nn as nn
from smelt import optimizers

pytestmark = pytest.mark.skipif(
    not (importlib.util.find_spec("PyQt6") and importlib.util.find_spec("PyQt6.QtWebEngineCore")),
    reason="no PyQt6-WebEngine",
)

TABS = ["Stages", "Kernels", "Graph", "Memory", "Passes", "Code", "Remarks"]


class Layer(nn.Module):
    def __init__(self, dims: int):
        super().__init__()
        self.attention = nn.MultiHeadAttention(dims, 4)
        self.norm, self.up, self.down = nn.LayerNorm(dims), nn.Linear(dims, 4 * dims), nn.Linear(4 * dims, dims)

    def __call__(self, x):
        h = self.norm(x)
        return x + self.attention(h, h, h) + self.down(nn.gelu(self.up(h)))


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a train step of two layers of a transformer."""
    model = nn.Sequential(nn.Embedding(32, 32), Layer(32), Layer(32), nn.Linear(32, 32))
    optimizer = optimizers.AdamW(1e-3)
    optimizer.init(model.trainable_parameters())

    def loss(parameters, tokens):
        model.update(parameters)
        return nn.losses.cross_entropy(model(tokens[:, :-1]), tokens[:, 1:], reduction="mean")

    def step(parameters, state, tokens):
        value, gradients = smelt.value_and_grad(loss)(parameters, tokens)
        optimizer.state = state
        return value, optimizer.apply_gradients(gradients, parameters), optimizer.state

    arguments = model.trainable_parameters(), optimizer.state, smelt.zeros((4, 17), smelt.int32)
    file = tmp_path_factory.mktemp("view") / "page.html"
    file.write_text(smelt.compile(step).trace(*arguments).lower().compile().view())
    return file


@pytest.mark.parametrize("size", ["1920x1080", "1400x1000", "1000x700"])
def test_it_draws_each_tab_in_the_window_and_complains_of_nothing(page: Path, size: str) -> None:
    picture = page.with_name(f"{size}.png")
    command = [sys.executable, "-m", "tests.runtime.browser", str(page), "--size", size, "--picture", str(picture)]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, cwd=root)
    assert done.returncode == 0 and done.stdout, done.stderr
    found = json.loads(done.stdout)
    assert not found["complaints"] and not found["loaded"] and found["tabs"] == TABS
    for seen in found["seen"]:
        assert seen["shown"] == 1 and seen["text"] > 500 and max(seen["beyond"]) <= 0, seen
        assert bool(seen["pictures"]) == (seen["tab"] in ("Graph", "Memory"))
    assert page.stat().st_size < 5e6 and picture.stat().st_size > 10_000


def test_a_small_window_scrolls(page: Path) -> None:
    command = [sys.executable, "-m", "tests.runtime.browser", str(page), "--size", "600x300"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, cwd=Path(__file__).parents[2])
    found = json.loads(done.stdout)
    assert not found["complaints"]
    assert all(seen["beyond"][0] <= 0 for seen in found["seen"])  # the part below the tabs scrolls, not the page
    assert any(seen["beyond"][1] > 0 for seen in found["seen"])


def test_lines_whose_values_have_other_numbers_are_the_same(tmp_path: Path) -> None:
    """Only what a pass changed is marked, although it changes the numbers of all that follows."""

    def f(x):
        y = smelt.exp(x)
        y, z = y + smelt.cos(x) * smelt.cos(x), y
        for _ in range(30):
            y, z = smelt.sin(y) * z, y
        return y

    file = tmp_path / "page.html"
    file.write_text(smelt.compile(f).trace(smelt.ones((4,))).lower().compile().view())
    script = """JSON.stringify(data.stages.slice(1).map((stage, k) => {
      const rows = compare(data.stages[k].lines, stage.lines), texts = [data.stages[k].lines, stage.lines];
      return [stage.name, rows.filter(r => r[1] == null && r[0] != null).map(r => texts[0][r[0]][0]),
              rows.filter(r => r[0] == null && r[1] != null).map(r => texts[1][r[1]][0])];
    }))"""
    command = [sys.executable, "-m", "tests.runtime.browser", str(file), "--tab", "Stages", "--script", script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, cwd=Path(__file__).parents[2])
    found = json.loads(json.loads(done.stdout)["computed"])
    gone, new = next((gone, new) for name, gone, new in found if name == "cse")
    assert [line.split("=")[1].split("(")[0].strip() for line in gone] == ["cos"] and not new, (gone, new)

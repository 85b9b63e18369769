"""Columns in panels that stay in cache: the same values as in lines, whatever the ends and the number of threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import smelt
from smelt.backends import buffer
from smelt.backends.cpu import panels, rows, streaming

LANES = 2048  # fewer columns are reduced in chunks


def _normalized(x: Any, axis: int) -> Any:
    centered = x - x.mean(axis=axis, keepdims=True)
    return centered * smelt.rsqrt((centered * centered).mean(axis=axis, keepdims=True) + 1e-5)


def _backward(x: Any, y: Any, axis: int) -> Any:
    return smelt.vjp(lambda x: _normalized(x, axis), [x], [y])[1][0]


PROGRAMS = {
    "softmax": lambda x, y, axis: smelt.softmax(x, axis=axis),
    "logsumexp": lambda x, y, axis: smelt.logsumexp(x, axis=axis),
    "variance and its place": lambda x, y, axis: (x.var(axis=axis), smelt.argmax(x, axis=axis), x.max(axis=axis)),
    "layer norm": lambda x, y, axis: _normalized(x, axis),
    "layer norm, backward": _backward,
    "a mask": lambda x, y, axis: smelt.where(x > x.mean(axis=axis, keepdims=True), y, x.astype(y.dtype)),
}
SHAPES = {"whole": ((24, LANES), 0), "ragged": ((19, LANES + 7), 0), "middle": ((3, 18, LANES // 2), 1),
          "one": ((1, LANES), 0), "none": ((0, LANES), 0)}  # fmt: skip


@pytest.fixture
def everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Panels and streaming however small arrays are."""
    monkeypatch.setattr(panels, "NEAR_BYTES", 0)
    monkeypatch.setattr(rows, "NEAR_BYTES", 0)
    monkeypatch.setattr(streaming, "STREAM_BYTES", 1)
    monkeypatch.setattr(buffer, "SMALL", 0)


def _run(name: str, x: Any, y: Any, axis: int) -> tuple[list[np.ndarray], str]:
    f = smelt.compile(lambda x, y: PROGRAMS[name](x, y, axis))
    found = f(x, y)
    results = [np.array(v.astype(smelt.float64)) for v in (found if isinstance(found, tuple) else (found,))]
    return results, f.trace(x, y).lower().compile().as_text("kernel")


@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_panels(name: str, kind: str, everywhere: None) -> None:
    shape, axis = SHAPES[kind]
    if not shape[axis] and name.startswith(("variance", "logsumexp", "softmax")):
        pytest.skip("an empty axis has no extremum")
    rng = np.random.default_rng(0)
    dtype = smelt.bfloat16 if kind == "ragged" else smelt.float32
    values = np.round(rng.standard_normal(shape, np.float32), 1)  # with ties
    if kind == "whole" and "backward" not in name:
        values[3, ::50], values[5, 7::50], values[:, 11::50] = np.nan, np.inf, -0.0
        values[:3, 13::50] = -np.inf
    x, y = smelt.array(values).astype(dtype), smelt.array(rng.standard_normal(shape, np.float32)).astype(dtype)
    with smelt.ir.settings.override(device="reference"):
        wanted, _ = _run_reference(name, x, y, axis)
    found, kernel = _run(name, x, y, axis)
    if shape[axis] > 1 and name != "a mask":
        assert "_panels" in kernel
    for a, b in zip(found, wanted):
        scale = np.nanmax(np.abs(b[np.isfinite(b)]), initial=0.0)
        loose = 3e-2 if dtype is smelt.bfloat16 else 3e-5
        np.testing.assert_allclose(a, b, rtol=loose, atol=loose * scale)


def _run_reference(name: str, x: Any, y: Any, axis: int) -> tuple[list[np.ndarray], None]:
    found = smelt.compile(lambda x, y: PROGRAMS[name](x, y, axis))(x, y)
    return [np.array(v.astype(smelt.float64)) for v in (found if isinstance(found, tuple) else (found,))], None


def test_panels_are_those_of_a_thread(everywhere: None) -> None:
    rng = np.random.default_rng(0)
    x, y = (smelt.array(rng.standard_normal((40, LANES + 64), np.float32)) for _ in "xy")
    found = []
    for threads in (1, 3, 16):
        with smelt.ir.settings.override(num_threads=threads):
            found.append(_run("layer norm, backward", x, y, 0)[0][0])
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_checked_panels(everywhere: None) -> None:
    x = smelt.array(np.random.default_rng(0).standard_normal((19, LANES + 7), np.float32))
    wanted = _run("softmax", x, x, 0)[0][0]
    with smelt.ir.settings.override(check=True):
        np.testing.assert_array_equal(_run("softmax", x, x, 0)[0][0], wanted)


def test_what_is_no_line_of_memory_has_no_panels(everywhere: None) -> None:
    x = smelt.array(np.random.default_rng(0).standard_normal((19, 2 * LANES), np.float32))
    f = smelt.compile(lambda x: smelt.softmax(x[:, ::2], axis=0))
    assert "_panels" not in f.trace(x).lower().compile().as_text("kernel")
    np.testing.assert_allclose(np.array(f(x)).sum(axis=0), 1, rtol=1e-5)

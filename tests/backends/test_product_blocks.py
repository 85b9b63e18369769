"""Blocks of products: which operand comes into the caches again."""

from __future__ import annotations

import numpy as np
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


def test_windows_are_read_as_few_times_as_processors_take(monkeypatch: pytest.MonkeyPatch) -> None:
    """The windows of an image, whose elements take longer to read than to copy, are read once for one processor; for
    two as well, each of which has about half of them, though a part holds whole rows of a window."""
    made = calls_of(monkeypatch, build, "build_panels", lambda arguments, result: arguments[-1])
    x, c = smelt.ones((3, 30, 30, 3)), smelt.ones((3, 15, 15, 64))
    with override(tier="program", small_work=0):
        gradient = lambda x, w, c: smelt.vjp(  # noqa: E731
            lambda w: smelt.conv2d(x, w, stride=2, padding=3), [w], [c]
        )[1][0]
        smelt.eval(smelt.compile(gradient)(x, smelt.ones((64, 7, 7, 3)), c))
    [product] = made
    for processors, parts in ((1, 1), (2, 2)):
        monkeypatch.setattr(panels, "processors", lambda n=processors: n)
        kernel = panels._Panels(KernelModule(), "trial", product)
        windows, others = kernel.rows, kernel.columns
        if kernel.sides.rows.extent == 64:
            windows, others = others, windows
        assert (windows.count, others.count) == (parts, 1)
        assert windows.capacity == {1: 147, 2: 84}[processors]


@pytest.mark.parametrize(
    ("image", "window", "stride", "padding", "dilation"),
    [
        ((9, 11), (3, 3), (1, 1), (1, 1), (1, 1)), ((9, 11), (7, 7), (2, 2), (3, 3), (1, 1)),
        ((5, 4), (7, 3), (1, 2), (3, 1), (1, 1)), ((12, 9), (3, 2), (2, 1), (2, 3), (2, 3)),
        ((1, 17), (1, 5), (1, 1), (0, 2), (1, 2)), ((8, 8), (4, 4), (4, 4), (2, 0), (1, 1)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("channels", [(1, 20), (3, 64), (17, 33)])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
def test_gradients_of_weights_at_edges(
    image: tuple[int, int], window: tuple[int, int], stride: tuple[int, int], padding: tuple[int, int],
    dilation: tuple[int, int], channels: tuple[int, int], dtype: str,
) -> None:  # fmt: skip
    """Windows inside of an image, which are read in longer runs, and those that reach beyond it in each direction, with
    infinities, a NaN and zeros of both signs inside: what a padding hides meets nothing."""
    random, kind = np.random.default_rng(0), getattr(smelt, dtype)
    x = random.integers(-3, 4, (3, *image, channels[0])).astype("f")
    x[0, 0, 0, 0], x[1, 0, image[1] // 2, -1], x[2, 0, 0, 0] = np.inf, np.nan, -0.0
    weights = (channels[1], *window, channels[0])
    counts = [
        (n + 2 * p - d * (w - 1) - 1) // s + 1 for n, w, s, p, d in zip(image, window, stride, padding, dilation)
    ]
    c = random.integers(-2, 3, (3, *counts, channels[1])).astype("f")
    padded = np.zeros((3, *(n + 2 * p for n, p in zip(image, padding)), channels[0]), "f")
    padded[:, padding[0] : padding[0] + image[0], padding[1] : padding[1] + image[1]] = x
    wanted = np.zeros(weights)
    for i, j in np.ndindex(*window):
        rows = slice(i * dilation[0], i * dilation[0] + stride[0] * (counts[0] - 1) + 1, stride[0])
        columns = slice(j * dilation[1], j * dilation[1] + stride[1] * (counts[1] - 1) + 1, stride[1])
        with np.errstate(invalid="ignore"):
            terms = c[..., :, None].astype("d") * padded[:, rows, columns, None, :]
            wanted[:, i, j] = terms.sum((0, 1, 2))
    settings = {"stride": stride, "padding": padding, "dilation": dilation}
    with override(tier="program", small_work=0):
        layer = lambda x, w, c: smelt.vjp(lambda w: smelt.conv2d(x, w, **settings), [w], [c])[1][0]  # noqa: E731
        arrays = [smelt.array(a).astype(kind) for a in (x, np.ones(weights, "f"), c)]
        found = np.asarray(smelt.compile(layer)(*arrays).astype(smelt.float64))
    np.testing.assert_allclose(found, wanted, rtol={"bfloat16": 8e-3}.get(dtype, 0))


@pytest.mark.parametrize("kept", [0, 1 << 20])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("image", [(3, 21, 20, 33), (1, 40, 1, 70), (0, 9, 9, 33)])
def test_columns_of_a_long_depth_are_kept(
    kept: int, dtype: str, image: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks of the depth that are brought into their order once, and for each block of rows, give the same sums."""
    monkeypatch.setattr(panels, "KEPT_BYTES", kept)
    random, kind = np.random.default_rng(0), getattr(smelt, dtype)
    x = random.integers(-2, 3, image).astype("f")
    w = random.integers(-2, 3, (64, 3, 3, image[-1])).astype("f")
    blocks = calls_of(monkeypatch, panels.Tile, "use", lambda arguments, result: arguments)
    with override(tier="program", small_work=0, cache=False):
        layer = smelt.compile(lambda x, w: smelt.maximum(smelt.conv2d(x, w, padding=1), -9))
        found = np.asarray(layer(smelt.array(x).astype(kind), smelt.array(w).astype(kind)).astype(smelt.float64))
    padded = np.pad(x.astype("d"), [(0, 0), (1, 1), (1, 1), (0, 0)])
    parts = {(i, j): padded[:, i : i + image[1], j : j + image[2]] for i, j in np.ndindex(3, 3)}
    terms = [np.einsum("nhwc,oc->nhwo", part, w[:, i, j]) for (i, j), part in parts.items()]
    np.testing.assert_array_equal(found, np.maximum(sum(terms), -9))
    if image[0] > 1:
        assert bool(blocks) == bool(kept)

"""Reductions along pieces that lie apart, over groups of channels of many places: the values of NumPy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.backends.cpu import narrow_lines, reductions, spread_rows
from smelt.passes.kernels import groups

AXES = (-3, -1)


def _centered(x: Any) -> Any:
    return x - x.mean(AXES, keepdims=True)


#: Of an array, numbers of channels, and of rows.
PROGRAMS: dict[str, Callable[..., Any]] = {
    "sums": lambda x, w, y, of: (x.sum(AXES), x.max(AXES), x.min(AXES)),
    "bools": lambda x, w, y, of: ((x > 0.5).any(AXES), (x > -3).all(AXES)),
    "of what is computed": lambda x, w, y, of: ((x * w + y) * 2).sum(AXES),
    "variance": lambda x, w, y, of: (_centered(x) ** 2).mean(AXES),
    "normalized": lambda x, w, y, of: _centered(x) / of.sqrt((_centered(x) ** 2).mean(AXES, keepdims=True) + 1) * w + y,
    "exponentials": lambda x, w, y, of: of.exp(x - x.max(AXES, keepdims=True)) * (x + 1).sum(AXES, keepdims=True),
    "written as it comes": lambda x, w, y, of: (x * 2, (x * 2).sum(AXES)),
    "a product": lambda x, w, y, of: of.where(x > 0, 1 + x / 1024, 1).prod(AXES),
    "of three axes": lambda x, w, y, of: (x.reshape(*x.shape[:-3], -1, 2, *x.shape[-2:]) + w).sum((-4, -3, -1)),
    "of a part": lambda x, w, y, of: (x[..., 1:, :, :] * x[..., :-1, :, :]).sum(AXES),
    "places": lambda x, w, y, of: (x.swapaxes(-2, -3).reshape(*x.shape[:-3], x.shape[-2], -1).argmax(-1), x.max(AXES)),
    "turned": lambda x, w, y, of: (x.swapaxes(-1, -2) + 1).sum(AXES),
}
SHAPES = [
    (3, 22, 5, 3), (64, 4, 16), (2, 40, 7, 1), (1, 10, 32, 4), (2, 2, 34, 3, 128), (20, 8, 2, 129), (3, 200, 2, 2),
]  # fmt: skip
EMPTY = [(0, 20, 4, 3), (3, 0, 4, 3), (3, 20, 0, 3), (3, 20, 4, 0), (3, 1, 4, 3), (3, 20, 1, 3)]


@pytest.fixture(autouse=True)
def everywhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """However few rows there are, checked for places outside of arrays."""
    monkeypatch.setattr(groups, "SMALL", 1 << 30)
    with smelt.ir.settings.override(check=True, cache=False, tier="program"):
        yield


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The kernels of rows that run together."""
    found: list[Any] = []

    def kept(*arguments: Any) -> Any:
        found.append(spread_rows.SpreadRowKernel(*arguments))
        return found[-1]

    monkeypatch.setattr(reductions, "SpreadRowKernel", kept)
    return found


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", PROGRAMS)
def test_values(name: str, shape: tuple[int, ...], made: list[Any]) -> None:
    random = np.random.default_rng(0)
    x, w, y = (
        np.round(random.standard_normal(s), 1).astype(np.float32)
        for s in (shape, shape[-2:], (*shape[:-3], 1, shape[-2], 1))
    )
    if name in ("sums", "bools", "places"):
        x[..., 0, 0, 0], x[..., -1, 1, -1], x[..., 2, 0, 0], x[..., 0] = np.nan, np.inf, -np.inf, -x[..., -1]
    found = smelt.compile(lambda x, w, y: PROGRAMS[name](x, w, y, smelt))(*map(smelt.array, (x, w, y)))
    with np.errstate(invalid="ignore"):
        wanted = PROGRAMS[name](*(v.astype(np.float64) for v in (x, w, y)), np)
    for a, b in zip(*(v if isinstance(v, tuple) else (v,) for v in (found, wanted))):
        scale = np.abs(b, where=np.isfinite(b), out=np.ones(b.shape)).max()
        np.testing.assert_allclose(np.asarray(a.astype(smelt.float64)), b, rtol=1e-5, atol=1e-6 * scale)
    assert bool(made) == (1 < shape[-1] <= spread_rows.LONGEST and name not in ("turned",)) or name == "places"


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int8", "uint32", "complex64"])
def test_dtypes(dtype: str) -> None:
    values = np.round(np.random.default_rng(0).standard_normal((20, 60, 6, 5)) ** 2)  # exact in all dtypes
    x = smelt.array(values.astype(np.float32)).astype(getattr(smelt, dtype))
    found = smelt.compile(lambda x: (x * x[0, 0]).sum((1, 3)).astype(smelt.complex64))(x)
    wanted = (values * values[0, 0]).sum((1, 3))
    if dtype == "int8":
        wanted = wanted.astype(np.int64).astype(np.asarray(x.sum()).dtype)
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=5e-3 if x.dtype.size == 2 else 1e-6)


@pytest.mark.parametrize("shape", EMPTY, ids=str)
def test_axes_of_none_and_of_one(shape: tuple[int, ...]) -> None:
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    found = smelt.compile(lambda x: x.sum((1, 3)))(smelt.array(x))
    np.testing.assert_array_equal(np.asarray(found), x.sum((1, 3)))


def test_results_are_those_of_a_thread(made: list[Any]) -> None:
    x, found = smelt.array(np.random.default_rng(0).standard_normal((5, 301, 100, 7), np.float32)), []
    for threads in (1, 3, 16):
        with smelt.ir.settings.override(num_threads=threads):
            found.append(np.asarray(smelt.compile(lambda x: x - x.mean((1, 3), keepdims=True))(x)))
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
    assert made


def test_views_and_gradients() -> None:
    """Of every other image, and of group norm, whose gradients sum over groups, too."""
    x = np.random.default_rng(0).standard_normal((8, 6, 5, 8)).astype(np.float32)
    found = smelt.compile(lambda x: x[::2, 1:].reshape(4, -1, 4, 2).sum((1, 3)))(smelt.array(x))
    np.testing.assert_allclose(np.asarray(found), x[::2, 1:].reshape(4, -1, 4, 2).sum((1, 3)), rtol=1e-5, atol=1e-5)
    layer = smelt.nn.GroupNorm(4, 8, pytorch_compatible=True)

    def loss(x: Any) -> Any:
        return (layer(x) ** 3).sum()

    step = 1e-5
    direction = np.random.default_rng(1).standard_normal(x.shape)
    with smelt.stream("cpu"):
        slope = smelt.compile(smelt.grad(loss))(smelt.array(x, smelt.float64))
        high, low = (loss(smelt.array(x + s * direction, smelt.float64)).item() for s in (step, -step))
    np.testing.assert_allclose((np.asarray(slope) * direction).sum(), (high - low) / (2 * step), rtol=1e-6)


def _random_program(random: np.random.Generator) -> tuple[tuple[int, ...], Callable[[Any, Any], Any]]:
    """A shape, and reductions along any of its axes with maps before, between, and after them."""
    shape = tuple(int(d) for d in random.choice([1, 2, 3, 4, 7, 9, 16, 33], random.integers(3, 6)))
    axes = tuple(int(a) for a in range(len(shape)) if random.random() < 0.5) or (len(shape) - 2,)
    first, second = random.choice(["sum", "max", "min", "mean"], 2)
    scale, keeps, chains = random.integers(1, 4), random.random() < 0.5, random.random() < 0.5

    def program(x: Any, of: Any) -> Any:
        y = getattr(x * float(scale) + x[..., :1, :], first)(axes, keepdims=True)
        z = of.maximum(x - y, -2.0) if chains else x * x
        return z * y if keeps else getattr(z, second)(axes)

    return shape, program


def test_random_programs_reach_rows_and_steps_beside_each_other(
    made: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[Any] = []

    def kept(*arguments: Any) -> Any:
        steps.append(narrow_lines.NarrowRowKernel(*arguments))
        return steps[-1]

    monkeypatch.setattr(reductions, "NarrowRowKernel", kept)
    for seed in range(120):
        random = np.random.default_rng(seed)
        shape, program = _random_program(random)
        x = np.round(random.standard_normal(shape), 1).astype(np.float32)
        found = smelt.compile(lambda x, program=program: program(x, smelt))(smelt.array(x))
        wanted = program(x.astype(np.float64), np)
        scale = max(1.0, np.abs(wanted).max())
        np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-5, atol=2e-6 * scale, err_msg=f"seed {seed}")
    assert len(made) >= 5 and len(steps) >= 5, (len(made), len(steps))

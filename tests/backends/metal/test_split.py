"""Few long rows and columns that threadgroups share: several kernels for chains of loops, and for arrays as long."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.backends.gpu.devices import GPUS
from smelt.backends.gpu.schedules.rows.split import Split
from smelt.backends.metal.simulator import Options

from ...spies import calls_of
from .harness import check
from .test_merged import FEW, FUNCTIONS, normalized
from .test_rows import S, f32, races, run_on


def backward(f: Callable[[Any, int], Any]) -> Callable[[Any, Any, int], Any]:
    return lambda x, y, axis: smelt.vjp(lambda x: f(x, axis), [x], [y])[1][0]


CHAINS: dict[str, Callable[[Any, Any, int], Any]] = {
    "softmax": lambda x, y, axis: FUNCTIONS["softmax"](x, axis),
    "log_softmax": lambda x, y, axis: FUNCTIONS["log_softmax"](x * y, axis),
    "normalized": lambda x, y, axis: normalized(x, axis),
    "softmax, backward": backward(FUNCTIONS["softmax"]),
    "normalized, backward": backward(normalized),
    "rows and what is as long": lambda x, y, axis: (
        FUNCTIONS["softmax"](x, axis), smelt.max(x, axis=axis), smelt.argmin(x, axis=axis), smelt.var(x, axis=axis),
    ),
    "not merged": lambda x, y, axis: (y * smelt.sum(smelt.exp(x - smelt.min(x, axis=axis, keepdims=True)) * y,
                                                    axis=axis, keepdims=True),),
    "by its maximum": lambda x, y, axis: x / smelt.max(smelt.abs(x), axis=axis, keepdims=True) + y,
}  # fmt: skip
SHAPES = [((4, 5000), 1), ((5003, 3), 0), ((5001,), 0), ((2, 1500, 6), 1)]


@pytest.fixture(autouse=True)
def splits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A GPU on which short rows are long; how many kernels each fusion got that was split."""
    monkeypatch.setitem(GPUS, "simulator", FEW)
    return calls_of(monkeypatch, Split, "build", lambda arguments, steps: len(steps))


@pytest.mark.parametrize(("shape", "axis"), SHAPES, ids=str)
@pytest.mark.parametrize("name", CHAINS)
def test_values(name: str, shape: tuple[int, ...], axis: int, splits: list[int]) -> None:
    x = S(shape, f32)
    program = races(lambda x, y: CHAINS[name](x, y, axis), x, x, tolerance=5e-4)
    assert splits and len(program.kernels) >= sum(splits)


def test_loops_of_several_extents(splits: list[int]) -> None:
    """A small reduction, and a large one, of which what is as long as the row depends."""

    def function(x: Any, y: Any) -> Any:
        return x * smelt.sum(y) - smelt.max(x)

    races(function, S((70, 90), f32), S((300,), f32), tolerance=1e-3)
    assert splits


def test_not_for_many_rows(splits: list[int]) -> None:
    races(lambda x: FUNCTIONS["softmax"](x, 1), S((200, 300), f32))
    assert not splits


def test_arithmetic_of_few_rows_counts(splits: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that one threadgroup would read by itself is shared where each element takes long."""
    monkeypatch.setitem(GPUS, "simulator", replace(FEW, own_tiles=8))
    row = S((6000,), f32)
    races(lambda x: (lambda y: (y, smelt.sum(y)))(x + 1), row, tolerance=1e-3)
    plain = len(splits)
    races(lambda x: (lambda y: (y, smelt.sum(y)))(smelt.sin(smelt.exp(smelt.tanh(x)))), row, tolerance=1e-3)
    assert not plain and splits


def test_too_many_arrays(splits: list[int]) -> None:
    """A kernel with as many buffers as there may be is not split."""

    def function(*xs: Any) -> Any:
        total = sum(x * i for i, x in enumerate(xs, 1))
        return total * smelt.sum(total) + smelt.max(total)

    check(function, *[S((5000,), f32)] * 28, tolerance=1e-3, options=Options(order="shuffled", poison=True))
    assert not splits


@pytest.mark.parametrize("dtype", [smelt.float16, smelt.bfloat16, smelt.int32, smelt.complex64])
@pytest.mark.parametrize("axis", [0, 1])
def test_dtypes(axis: int, dtype: Any, splits: list[int]) -> None:
    def function(x: Any) -> Any:
        return x - smelt.sum(x, axis=axis, keepdims=True) * 2

    races(function, S((5000, 4) if axis == 0 else (4, 5000), dtype), tolerance=2e-2)
    assert splits


SPECIAL = {
    "NaN": (4001, np.nan),
    "infinity": (17, np.inf),
    "minus infinity": (slice(None), -np.inf),
    "ties": (slice(3, 4900), 2.0),
    "minus zero": (slice(None), -0.0),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("special", SPECIAL)
@pytest.mark.parametrize("axis", [0, 1])
def test_special_values(special: str, axis: int, splits: list[int]) -> None:
    x = np.random.default_rng(0).standard_normal((5000, 3)).astype(np.float32)
    at, number = SPECIAL[special]
    x[at, 0] = number
    x = x if axis == 0 else np.ascontiguousarray(x.T)

    def function(x: Any) -> Any:
        shifted = x - smelt.max(x, axis=axis, keepdims=True)
        return FUNCTIONS["softmax"](x, axis), shifted, smelt.argmax(x, axis=axis)

    with np.errstate(all="ignore"):
        for found, want in zip(*run_on(function, x)):
            np.testing.assert_allclose(found, want, rtol=2e-4, atol=1e-7)
            assert found.dtype.kind != "f" or (np.signbit(found) == np.signbit(want))[~np.isnan(want)].all()
    assert splits


def random_chain(seed: int) -> tuple[Callable[..., Any], tuple[int, ...]]:
    """A program of reductions of few long rows, of random axes and arithmetic."""
    rng = np.random.default_rng(seed)
    ndim = int(rng.integers(1, 4))
    long = int(rng.integers(ndim))
    shape = tuple(int(rng.integers(4500, 6000)) if a == long else int(rng.integers(1, 5)) for a in range(ndim))
    axes = tuple(a for a in range(ndim) if a == long or rng.random() < 0.4)
    names = list(rng.choice(list(CHAINS), 2))

    def function(x: Any, y: Any) -> Any:
        found = [CHAINS[name](x, y, axes) for name in names if name != "rows and what is as long"]
        return [f[0] if isinstance(f, tuple) else f for f in found] or x + 1

    return function, shape


def test_random_programs(splits: list[int]) -> None:
    for seed in range(5):
        function, shape = random_chain(seed)
        check(function, S(shape, f32), S(shape, f32), tolerance=1e-3, options=Options(order="shuffled", poison=True))
    assert len(splits) > 4, splits


def test_row_of_one_threadgroup(monkeypatch: pytest.MonkeyPatch, splits: list[int]) -> None:
    """A GPU says from how many tiles on threadgroups share a row."""
    monkeypatch.setitem(GPUS, "simulator", replace(FEW, own_tiles=1000))
    races(lambda x: FUNCTIONS["softmax"](x, 1), S((3, 5000), f32))
    assert not splits

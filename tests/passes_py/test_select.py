"""Few elements of a sort: the same bits as the whole sort gives, for any order of ties, NaN and zeros."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir import dtypes, text
from smelt.ir.builder import functions, read_function
from smelt.ir.interpreter import Interpreter
from smelt.passes import Pipeline

REAL = [d for d in dtypes.ALL if d.kind != "c"]


def selected(function: Any, *arrays: np.ndarray, sorts: int = 1, tile: int = 32) -> None:
    """A sort is replaced in so many places; the values are those of the reference, bit by bit."""
    shapes = [smelt.ShapeDtype(a.shape, dtypes.of(a.dtype)) for a in arrays]
    module = smelt.compile(function).trace(*shapes).lower().module
    before = text.parse(text.to_text(module))
    Pipeline.parse("canonicalize,cse").run(before)
    after = text.parse(text.to_text(before))
    Pipeline.parse(f"select{{tile={tile} rows=2 ragged=2}}").run(after)
    text.verify(after)
    assert (text.to_text(after) != text.to_text(before)) == bool(sorts)
    whole = {n for a in arrays for n in a.shape if n >= 2 * tile}
    lengths = [op.operands[0].shape[op.attrs["axis"]] for op in sorts_of(after)]
    assert not sorts or not whole.intersection(lengths)
    for found, wanted in zip(Interpreter(after)("main", arrays), Interpreter(before)("main", arrays)):
        assert found.dtype == wanted.dtype and found.tobytes() == wanted.tobytes()


def sorts_of(module: Any) -> list[Any]:
    return [op for f in functions(module).values() for op in read_function(f).ops if op.op.kind == "sort"]


def sample(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any = dtypes.float32) -> np.ndarray:
    """Many ties; NaN, infinities and both zeros where there are any."""
    found = rng.integers(0, 5, shape)
    if not dtype.is_float:
        return found.astype(dtype.numpy)
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0])
    return np.where(rng.random(shape) < 0.5, found - 2.0, special[found]).astype(dtype.numpy)


@pytest.mark.parametrize("dtype", REAL, ids=lambda d: d.name)
def test_every_dtype(dtype: Any) -> None:
    x = sample(np.random.default_rng(0), (3, 1100), dtype)
    selected(lambda x: (smelt.sort(x)[:, -2:], smelt.argsort(x)[:, :3]), x)


def test_what_reads_it() -> None:
    x = sample(np.random.default_rng(1), (2000, 2))
    selected(lambda x: (smelt.sort(x, axis=0)[:3, 1:], smelt.sort(x, axis=0)[2:4]), x)
    selected(lambda x: smelt.argsort(x, axis=0)[-4::2], x)
    selected(lambda x: smelt.sort(x, axis=0)[::-1][:4], x)
    selected(lambda x: (smelt.argsort(x, axis=0)[::-1][1:4], smelt.argsort(x, axis=0)[-2:]), x)
    selected(lambda x: smelt.sort(x, axis=0)[3], x)


def test_what_stays() -> None:
    x = sample(np.random.default_rng(2), (2000,))
    for function in (
        smelt.sort,
        lambda x: (smelt.sort(x)[:3], smelt.sort(x)[-3:]),
        lambda x: smelt.sort(x)[:20],
        lambda x: smelt.sort(x)[::-1],
        lambda x: (smelt.sort(x)[:2], smelt.sort(x).sum()),
        lambda x: smelt.sort(x[:31])[:1],
        lambda x: smelt.sort(x)[:0],
    ):
        selected(function, x, sorts=0)


def test_rows_that_tiles_do_not_divide() -> None:
    """They are copied once more, which pays for longer rows alone."""
    for n, sorts in ((8 * 16, 1), (127, 0), (8 * 16 + 1, 0), (13 * 10, 1), (32 * 16, 1), (509, 0), (521, 1)):
        module = smelt.compile(lambda x: smelt.sort(x)[:2]).trace(smelt.ShapeDtype((n,), smelt.float32)).lower().module
        Pipeline.parse("select{tile=16}").run(module)
        assert (len(sorts_of(module)) > 1) == bool(sorts), n


def test_random_selections() -> None:
    rng, draw = np.random.default_rng(3), random.Random(3)
    for _ in range(25):
        shape = [draw.randint(1, 3), draw.randint(1, 3)]
        axis = draw.randint(0, 2)
        shape.insert(axis, draw.randint(260, 3000))
        tile = draw.choice([16, 32, 120])
        count = draw.randint(1, min(shape[axis] // 64, tile // 8))
        op, last = draw.choice([smelt.sort, smelt.argsort]), draw.random() < 0.5

        def function(x: Any, op: Any = op, axis: int = axis, count: int = count, last: bool = last) -> Any:
            found = op(x, axis=axis)
            at = slice(found.shape[axis] - count, None) if last else slice(count)
            return found[tuple(at if a == axis else slice(None) for a in range(3))]

        selected(function, sample(rng, tuple(shape)), tile=tile)

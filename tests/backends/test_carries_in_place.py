"""Carries that a loop only scatters into stay in one buffer, on every backend, and mean the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.settings import override

from .control_modules import Made
from .metal.test_control import check as check_on_metal
from .modules import f32, random_array

ROWS, COUNT = Aval((7, 3), f32), Aval((), dtypes.int32)


def scatter(b: Any, c: Any, x: Any, i: Any, mode: str = "add") -> Any:
    """c with x at row i."""
    return b.scatter(c, b.reshape(x, shape=(1, 3)), i, axes=(0,), mode=mode)


def row_of(b: Any, c: Any, i: int) -> Any:
    return b.reshape(b.slice(c, start=(i, 0), stop=(i + 1, 3), stride=(1, 1)), shape=(3,))


def check(m: Made, arrays: list[np.ndarray], in_place: bool) -> None:
    """Compare with the interpreter on the CPU and on Metal, and see whether a loop copies the array."""
    before = [a.copy() for a in arrays]
    program = m.check(arrays)
    copies = "_scatter_copy(" in program.as_text("kernel").split("func.func @main_0", 1)[1].split("scf.", 1)[-1]
    assert copies is not in_place
    metal = check_on_metal(m, arrays, strict=True)
    launched = [launch.entry for segment in metal.segments for launch in segment.manifest.launches]  # type: ignore
    assert any(entry.endswith("scatter_copy") for entry in launched) is not in_place
    for a, b in zip(arrays, before):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("mode", ["set", "add", "mul", "max"])
@pytest.mark.parametrize("length", [1, 2, 5])
def test_scan(length: int, mode: str) -> None:
    m, at = Made(), Aval((length,), dtypes.int32)
    row = Aval((3,), f32)
    m.define("body", [ROWS, row, COUNT], lambda b, c, x, i: [scatter(b, c, x, i, mode), x * 2])
    avals = [ROWS, Aval((length, 3), f32), at]
    m.define("main", avals, lambda b, c, x, i: [*m.scan(b, "body", [c, x, i], length, 0, 1, length == 5), c * 2])
    arrays = [random_array(ROWS), random_array(avals[1], 1), np.arange(length, dtype=np.int32) % 2]
    check(m, arrays, in_place=True)


@pytest.mark.parametrize("stop", [-1, 0, 1, 4])
def test_while_whose_condition_reads_the_carry(stop: int) -> None:
    m = Made()
    limit = Aval((), f32)

    def go(b: Any, stop: Any, big: Any, i: Any, c: Any) -> list[Any]:
        return [b.logical_and(b.less(i, stop), b.less(b.reduce_max(c, axes=(0, 1)), big))]

    state = [COUNT, limit, COUNT, ROWS]
    m.define("go", state, go)
    m.define(
        "step", state, lambda b, s, big, i, c: [i + 1, scatter(b, c, b.broadcast_to(b.convert(i, dtype=f32), (3,)), i)]
    )  # fmt: skip
    m.define("main", state, lambda b, *v: m.loop(b, "go", "step", v, 2))
    arrays = [np.array(stop, np.int32), np.array(100, np.float32), np.array(0, np.int32), random_array(ROWS)]
    check(m, arrays, in_place=True)


def test_carries_with_other_readers_are_kept() -> None:
    """The old value is summed, returned as another carry, or stacked."""
    row = Aval((3,), f32)
    bodies = [
        lambda b, c, x, i: [scatter(b, c, x, i), b.reduce_sum(c, axes=(0, 1))],
        lambda b, c, x, i: [scatter(b, c, x, i), c],
        lambda b, c, x, i: [scatter(b, c, row_of(b, c, 0), i)],
        lambda b, c, x, i: [scatter(b, c * 0.5, x, i)],
    ]  # fmt: skip
    for body in bodies:
        m = Made()
        m.define("body", [ROWS, row, COUNT], body)
        avals = [ROWS, Aval((4, 3), f32), Aval((4,), dtypes.int32)]
        m.define("main", avals, lambda b, *v, m=m: m.scan(b, "body", v, 4, 0, 1))
        check(m, [random_array(ROWS), random_array(avals[1], 1), np.array([1, 1, 0, 6], np.int32)], in_place=False)


def test_one_array_in_many_places() -> None:
    """The same initial array twice, also as a constant; the new value also stacked."""
    m = Made()

    def body(b: Any, k: Any, c: Any, d: Any, i: Any) -> list[Any]:
        row = row_of(b, k, 2)
        new = scatter(b, c, row, i)
        return [new, scatter(b, d, row * 2, i + 1), new]

    m.define("body", [ROWS, ROWS, ROWS, COUNT], body)
    m.define(
        "main", [ROWS, Aval((5,), dtypes.int32)], lambda b, c, i: [*m.scan(b, "body", [c, c, c, i], 5, 1, 2), c + 1]
    )  # fmt: skip
    check(m, [random_array(ROWS), np.array([0, 2, 2, 5, 2], np.int32)], in_place=True)


@pytest.mark.parametrize("updates", [5, 200])
def test_many_updates_at_once(updates: int) -> None:
    """Duplicates: applied in order, or sorted first."""
    m, wide, many = Made(), Aval((50,), f32), Aval((updates,), dtypes.int32)

    def body(b: Any, c: Any, i: Any) -> list[Any]:
        values = b.reshape(b.convert(i, dtype=f32) * 0.5, shape=(updates, 1))
        return [b.scatter(c, values, i, axes=(0,), mode="add")]

    m.define("body", [wide, many], body)
    m.define("main", [wide, many.with_shape((3, updates))], lambda b, c, i: m.scan(b, "body", [c, i], 3, 0, 1))
    rng = np.random.default_rng(0)
    check(m, [random_array(wide), rng.integers(0, 12, (3, updates)).astype(np.int32)], in_place=True)


def test_nested_loops() -> None:
    m, row = Made(), Aval((3,), f32)
    m.define("inner", [row, ROWS, COUNT], lambda b, x, c, i: [scatter(b, c, x, i)])
    m.define("outer", [ROWS, row, Aval((4,), dtypes.int32)], lambda b, c, x, i: m.scan(b, "inner", [x, c, i], 4, 1, 1))
    avals = [ROWS, Aval((5, 3), f32), Aval((5, 4), dtypes.int32)]
    m.define("main", avals, lambda b, *v: m.scan(b, "outer", v, 5, 0, 1))
    arrays = [random_array(ROWS), random_array(avals[1], 1), np.arange(20, dtype=np.int32).reshape(5, 4) % 7]
    check(m, arrays, in_place=True)


# As users write it


def fill(c: Any, xs: Any) -> Any:
    def step(c: Any, ix: Any) -> Any:
        i, x = ix
        c[i % c.shape[0]] += x
        return c, None

    return smelt.scan(step, c, (smelt.arange(xs.shape[0]), xs))[0]


def decode(c: Any, xs: Any) -> Any:
    """Greedy decoding: what a step writes depends on all that is there."""

    def step(state: Any) -> Any:
        i, cache, x = state
        x = smelt.tanh(x + (cache * smelt.softmax(cache @ x)[:, None]).sum(axis=0))
        return i + 1, cache.at[i].add(x), x

    return smelt.while_loop(lambda s: s[0] < xs.shape[0], step, (smelt.array(0), c, xs[0]))[1]


def sorted_fill(c: Any, xs: Any) -> Any:
    return smelt.scan(lambda c, x: (c.at[0].add(smelt.sort(x)), None), c, xs)[0]


@pytest.mark.parametrize("device", ["cpu", "metal:sim"])
@pytest.mark.parametrize("function", [fill, decode, sorted_fill], ids=lambda f: f.__name__)
def test_written_in_python(function: Any, device: str) -> None:
    rng = np.random.default_rng(0)
    c, xs = (smelt.array(rng.standard_normal(s).astype(np.float32)) for s in ((2, 7, 3), (2, 5, 3)))
    programs = {
        "once": lambda c, xs: function(c[0], xs[0]),
        "vmap": smelt.vmap(function),
        "jvp": lambda c, xs: smelt.jvp(function, [c[0], xs[0]], [c[1], xs[1]])[1][0],
    }
    if function is not decode:
        programs["grad"] = smelt.grad(lambda c, xs: (function(c[0], xs[0]) ** 2).sum(), argnums=(0, 1))
    found: dict[str, list[Any]] = {}
    for name in ("reference", device):
        with override(device=name):
            found[name] = []
            for program in programs.values():
                out = smelt.compile(program)(c, xs)
                found[name] += [np.array(x) for x in (out if isinstance(out, tuple) else (out,))]
    for a, b in zip(found[device], found["reference"]):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)

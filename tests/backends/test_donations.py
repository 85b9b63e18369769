"""Results in the memory of arguments: any pair that a program allows gives the same bits, and the useful ones exist."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from smelt.backends.cpu import build, donations, vector_rows
from smelt.backends.cpu.description import ProgramDescription
from smelt.backends.cpu.program import Program
from smelt.ir import dtypes
from smelt.ir.aval import Aval

from .modules import Buffer, compile_, module_of, run
from .random_graphs import made

PASSES = "canonicalize,cse,dce,fuse,plan-buffers"
F = Aval((16, 40), dtypes.float32)


@pytest.fixture(autouse=True)
def of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(donations, "SMALLEST", 0)


def run_donated(program: Program, arrays: Sequence[np.ndarray], placed: dict[int, int]) -> list[np.ndarray]:
    """`run` with results in the memory of arguments."""
    inputs = [Buffer(a) for a in arrays]
    outputs = [Buffer(np.full(a.shape, 7, a.dtype.numpy)) for a in program.results]
    for result, argument in placed.items():
        outputs[result] = inputs[argument]
    program.run(inputs, outputs, Buffer(np.zeros(program.arena_bytes, np.uint8)).address)
    found = []
    for i, aval in enumerate(program.results):
        alias = program.aliases.get(i, ("result", i))
        buffer = inputs[alias] if isinstance(alias, int) else outputs[alias[1]]
        buffer.check()
        found.append(buffer.array.view(aval.dtype.numpy).reshape(aval.shape))
    return found


def assigned(program: Program) -> dict[int, int]:
    """The results that lie in arguments where all of these are given up."""
    found: dict[int, int] = {}
    for result, argument in program.description.donations:
        if result not in found and argument not in found.values():
            found[result] = argument
    return found


def check(program: Program, arrays: Sequence[np.ndarray], what: object) -> int:
    """Each pair alone, and as many together as there are; how many pairs."""
    pairs, together = program.description.donations, assigned(program)
    with np.errstate(all="ignore"):
        want = run(program, arrays)
        for placed in [*({result: argument} for result, argument in pairs), together]:
            for i, (have, expected) in enumerate(zip(run_donated(program, arrays, placed), want, strict=True)):
                np.testing.assert_array_equal(have, expected, err_msg=f"result {i}, {placed} of\n{what}")
    return len(pairs)


def test_random_graphs() -> None:
    count = 0
    for seed in range(0, 104, 8):
        graph, arrays = made(range(seed, seed + 8), 4000)
        count += check(compile_(module_of(graph.avals, graph), PASSES), arrays, graph)
    assert count > 30


@pytest.mark.parametrize("rows", [97, 1038])
@pytest.mark.parametrize("times", [1, 3])
def test_rows_that_are_read_again(rows: int, times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last block of short rows begins among those of the one before: no result lies where these are read, neither
    in an argument nor in what another kernel has made."""
    monkeypatch.setattr(vector_rows, "FEWEST", 0)
    monkeypatch.setattr(vector_rows, "IDLE", math.inf)
    found = []

    def counted(*arguments: Any) -> Any:
        found.append(vector_rows.build_vector_rows(*arguments))
        return found[-1]

    monkeypatch.setattr(build, "build_vector_rows", counted)
    x = Aval((rows, 21), dtypes.float32)

    def softmax(b: Any, x: Any) -> Any:
        def spread(v: Any) -> Any:
            return b.broadcast_to(b.reshape_to(v, (rows, 1)), x.shape)

        e = b.exp(x - spread(b.reduce_max(x, axes=(1,))))
        return e / spread(b.reduce_sum(e, axes=(1,)))

    def repeated(b: Any, x: Any) -> Any:
        for _ in range(times):
            x = softmax(b, x * 3)
        return x

    host = np.random.default_rng(0).standard_normal(x.shape).astype(np.float32)
    program = compile_(module_of([x], repeated), PASSES)
    check(program, [host], "softmax of rows")
    assert any(found) and not any(kernel.in_place for kernel in found if kernel)
    wanted = host.astype(np.float64)
    for _ in range(times):
        wanted = np.exp(wanted * 3 - (wanted * 3).max(1, keepdims=True))
        wanted /= wanted.sum(1, keepdims=True)
    np.testing.assert_allclose(run(program, [host])[0], wanted, rtol=1e-5)


def adam(b: Any, p: Any, m: Any, v: Any, g: Any) -> list[Any]:
    m, v = m * 0.9 + g * 0.1, v * 0.99 + g * g * 0.01
    return [p - m / (b.sqrt(v) + 1e-8), m, v]


S = Aval((200, 200), dtypes.float32)


@pytest.mark.parametrize("avals, function, pairs", [
    ([F] * 4, adam, {0: 0, 1: 1, 2: 2}),
    # as a weight's gradient comes: the kernel runs in blocks
    ([S] * 4, lambda b, p, m, v, g: adam(b, p, m, v, b.transpose(g, permutation=(1, 0))), {0: 0, 1: 1, 2: 2}),
    ([F] * 6, lambda b, *xs: [b.reverse(x, axes=(1,)) for x in xs], {1: 0, 2: 1, 3: 2, 4: 3, 5: 4}),
    ([F], lambda b, x: [b.exp(x)], {0: 0}),
    ([F, F], lambda b, x, y: [x + b.reverse(y, axes=(1,))], {0: 0}),  # y is read elsewhere, too
    ([F], lambda b, x: [x + b.reverse(x, axes=(1,))], {}),
    ([F], lambda b, x: [b.exp(x), x], {}),  # x itself is returned
    ([F], lambda b, x: [b.cumsum(b.exp(x), axis=1)], {}),
    ([Aval((40, 40), dtypes.float32)], lambda b, x: [b.transpose(x, permutation=(1, 0))], {}),
    ([F.with_dtype(dtypes.complex64)], lambda b, x: [x * 1j], {}),
    ([F, F], lambda b, x, y: [y * 2.0], {0: 1}),
    ([F, F], lambda b, x, y: [b.reverse(y, axes=(1,)) * 2.0], {0: 0}),  # nobody reads x
])  # fmt: skip
def test_what_shares_memory(avals: list[Aval], function: Callable[..., Any], pairs: dict[int, int]) -> None:
    program = compile_(module_of(avals, function), PASSES)
    assert assigned(program) == pairs
    rng = np.random.default_rng(0)
    check(program, [(rng.random(a.shape) + 0.5).astype(a.dtype.numpy) for a in avals], function)


def test_a_description_keeps_them() -> None:
    description = compile_(module_of([F] * 4, adam), PASSES).description
    assert ProgramDescription.of_json(description.to_json()).donations == description.donations != []


def test_small_arrays_are_not_donated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert compile_(module_of([F] * 4, adam), PASSES).description.donations == []

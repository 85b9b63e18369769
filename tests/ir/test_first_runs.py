"""Programs that run op by op are calls from their first run on, and these give what the rules of their ops give."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.op_program import OpProgram
from smelt.ir.settings import override
from smelt.lazy.execution.strided import StridedProgram
from tests.backends.strided_graphs import recorded

_SHAPES: list[tuple[int, ...]] = [(3, 4), (1, 1), (0, 4), (3, 0), (), (40, 600)]
_DTYPES = [dtypes.float32, dtypes.float16, dtypes.bfloat16, dtypes.int32]


def _ops(t: Any, x: Any, y: Any) -> list[Any]:
    """Elementwise ops, movement and reductions; results that are arguments, results twice, and ones nobody reads."""
    z = t.sub(t.mul(x, y), t.maximum(x, y))
    t.add(z, z)
    axes = tuple(range(len(x.aval.shape)))
    moved = t.transpose(z, permutation=axes[::-1])
    return [z, t.reduce_sum(t.abs(moved), axes=axes), moved, z, x, t.select(t.less(x, y), z, y)]


def _program(aval: Aval) -> OpProgram:
    return OpProgram(*recorded([aval, aval], _ops), lambda f, operands: [])


def _arrays(aval: Aval) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=aval.shape) * 3 for _ in range(2))
    if aval.dtype.is_inexact and aval.size > 5:
        x.flat[:5] = np.nan, np.inf, -np.inf, -0.0, 0.0
    return [np.asarray(v).astype(aval.dtype.numpy) for v in (x, y)]


def _same(found: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> None:
    for a, b in zip(found, expected, strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        assert np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes()


@pytest.mark.parametrize("dtype", _DTYPES, ids=str)
@pytest.mark.parametrize("shape", _SHAPES, ids=str)
def test_the_first_run_gives_what_rules_give(shape: tuple[int, ...], dtype: Any) -> None:
    aval = Aval(shape, dtype)
    arrays, program = _arrays(aval), _program(aval)
    with override(check=True):  # by rules
        expected = _program(aval).run(arrays)
    first = program.run(arrays)
    assert program._calls is not None
    _same(first, expected)
    _same(program.run(arrays), expected)
    _same(program.run([x[()] for x in arrays]), expected)  # scalars of NumPy, where they are no arrays
    _same(program.run([np.asarray(x, order="F") for x in arrays]), expected)


def test_programs_with_groups_note_their_calls_later() -> None:
    aval = Aval((40, 600), dtypes.float32)
    arrays, program = _arrays(aval), _program(aval)
    grouped = StridedProgram(program, smelt.cpu)
    assert grouped.groups
    expected = program.run(arrays)
    for noted in (False, True, True):
        with override(tier="ops"):
            _same(grouped.run(arrays), expected)
        assert (grouped._calls is not None) is noted


def test_checked_runs_are_by_rules() -> None:
    aval = Aval((3, 4), dtypes.float32)
    arrays, program = _arrays(aval), _program(aval)
    with override(check=True):
        program.run(arrays)
    assert program._calls is None
    program.run(arrays)
    assert program._calls is not None

"""Maps of few elements as one vector: the bits that their loops give, for every op, dtype and order of elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.backends.cpu import maps
from smelt.ir.op import Op

from ..ops.cases import Case, cases, plain_ops, sample
from .modules import compile_, module_of, run

SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 3e38)


def _found(op: Op) -> list[Case]:
    return [c for c in cases(op) if len(c.results) == 1 and 1 < c.results[0].size <= 64 and c.avals]


OPS = [op for op in plain_ops() if op.kind in ("elementwise", "movement") and op.pure and _found(op)]


def _operand(case: Case, i: int, rng: np.random.Generator) -> np.ndarray:
    x = sample(case.avals[i], rng)
    if case.avals[i].dtype.kind == "f" and x.size > len(SPECIAL):
        x.reshape(-1)[: len(SPECIAL)] = np.roll(np.array(SPECIAL), i).astype(x.dtype)
    return x


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_bits_of_every_op(op: Op, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, found = np.random.default_rng(0), _found(op)
    avals = [a for case in found for a in case.avals]
    with np.errstate(all="ignore"):
        arrays = [_operand(case, i, rng) for case in found for i in range(len(case.avals))]

    def graph(b: Any, *values: Any) -> list[Any]:
        left = iter(values)
        return [r for c in found for r in b.emit(c.op, [next(left) for _ in c.avals], c.kwargs)]

    monkeypatch.setattr(maps, "LOOPS", 0)
    straight = run(compile_(module_of(avals, graph)), arrays)
    monkeypatch.setattr(maps, "build_tiny_map", lambda *_: None)
    loops = run(compile_(module_of(avals, graph)), arrays)
    for case, a, b in zip(found, straight, loops, strict=True):
        if case.results[0].dtype.kind == "f":
            a, b = a.astype(np.float64), b.astype(np.float64)
            np.testing.assert_array_equal(np.signbit(a) & ~np.isnan(a), np.signbit(b) & ~np.isnan(b), str(case))
        np.testing.assert_array_equal(a, b, str(case))


#: Of x, of shape (4, 6), with NumPy's functions and with smelt's; whether one vector holds it.
PROGRAMS: dict[str, tuple[Callable[..., Any], bool]] = {
    "turned": (lambda x, of: of.transpose(x) * 2 + 1, True),
    "turned back": (lambda x, of: of.transpose(of.reshape(x, (2, 3, 4)), (1, 2, 0)) + x[0, 0], True),
    "reversed": (lambda x, of: x[::-1, ::-1] - x, False),
    "every other": (lambda x, of: x[::2, 1::2] * x[1::2, ::2], True),
    "rows and columns": (lambda x, of: x[:, :1] * x[:1] + x, True),
    "one for all": (lambda x, of: of.maximum(x, x[2, 3]), False),
    "bools": (lambda x, of: of.where(x > 0, x, -x) * (x[0] < 0), True),
    "two results": (lambda x, of: (x + 1, of.sqrt(of.abs(x))), False),
    "padded": (lambda x, of: of.pad(x[1:3], ((1, 2), (0, 1))) + 1, False),
    "joined": (lambda x, of: of.concatenate([x[:2], x[1:]], axis=0) * 3, False),
    "larger": (lambda x, of: of.reshape(x, (1, 24)) + of.reshape(x, (24, 1)), False),
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "int8"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_orders(name: str, dtype: str) -> None:
    program, is_tiny = PROGRAMS[name]
    x = (np.arange(24).reshape(4, 6) * 5 % 17 - 8).astype(dtype)
    f = smelt.compile(lambda x: program(x, smelt))
    kernels = str(f.trace(smelt.array(x)).lower().compile().as_text("kernel"))
    assert ("scf.for" not in kernels) == (is_tiny and np.dtype(dtype).itemsize >= 4), kernels
    found, wanted = f(smelt.array(x)), program(x, np)
    for a, b in zip(*(v if isinstance(v, tuple) else (v,) for v in (found, wanted))):
        np.testing.assert_allclose(np.asarray(a), b, rtol=1e-3 if b.dtype == np.float16 else 1e-6)


def test_nothing() -> None:
    assert smelt.compile(lambda x: smelt.transpose(x[:0]) + 1)(smelt.ones((4, 6))).shape == (6, 0)


def test_among_members_of_a_team() -> None:
    """Beside a kernel that is divided among threads."""
    f = smelt.compile(lambda x, y: (smelt.exp(x) * y[0], smelt.sin(y) + x[:8]))
    x, y = np.linspace(-1, 1, 1 << 20, dtype=np.float32), np.arange(8, dtype=np.float32)
    for _ in range(3):
        a, b = f(smelt.array(x), smelt.array(y))
        np.testing.assert_allclose(np.asarray(a), np.exp(x) * y[0], rtol=1e-6)
        np.testing.assert_allclose(np.asarray(b), np.sin(y) + x[:8], rtol=1e-5, atol=1e-6)

"""Many launches of few kernels run from a table, and compute what the interpreter does."""

from __future__ import annotations

from typing import Any

from smelt.backends.cpu import launch_tables
from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.settings import override

from .modules import check, compile_, f32, module_of

SQUARE = Aval((4, 4), f32)
INDICES = Aval((4,), dtypes.int32)
STEPS = 2 * launch_tables.FEWEST


def _text(avals: list[Aval], function: Any) -> str:
    return compile_(module_of(avals, function)).as_text("kernel")


def test_arguments_results_and_temporaries() -> None:
    def f(b: Any, x: Any, y: Any) -> list[Any]:
        found = [x, y]
        for i in range(STEPS):
            found.append(b.dot_general(found[-1], found[-2 if i % 3 else 0], **matmul))
            found.append(b.sin(found[-1]))
        return [found[5], x, *found[-3:], found[-1]]

    matmul = {"lhs_contracting": (1,), "rhs_contracting": (0,), "lhs_batch": (), "rhs_batch": ()}
    text = _text([SQUARE, SQUARE], f)
    assert text.count("scf.index_switch") == 1 and text.count("func.call") < STEPS / 2
    check([SQUARE, SQUARE], f)


def test_updates_in_place_and_of_copies() -> None:
    def f(b: Any, x: Any, y: Any, i: Any) -> list[Any]:
        kept = [x]
        for n in range(STEPS):
            rows = b.reshape(b.sin(y) if n % 2 else y, shape=(4, 1, 4))
            kept.append(b.scatter(kept[-1], rows, i, axes=(0,), mode="add"))
            y = b.dot_general(y, x, lhs_contracting=(1,), rhs_contracting=(0,), lhs_batch=(), rhs_batch=())
            y = b.sin(y) * 0.5  # and errors do not grow
        return [kept[7], kept[-1]]

    check([SQUARE, SQUARE, INDICES], f)


def test_many_results() -> None:
    """Each launch has a branch of its own, so nothing is gained: the calls are written out."""

    def f(b: Any, x: Any) -> list[Any]:
        factors = [x * float(i) for i in range(launch_tables.FEWEST)]
        return [b.dot_general(x, v, **matmul) for v in factors]

    matmul = {"lhs_contracting": (1,), "rhs_contracting": (0,), "lhs_batch": (), "rhs_batch": ()}
    check([SQUARE], f)


def test_checked_kernels_have_none() -> None:
    def f(b: Any, x: Any) -> list[Any]:
        for _ in range(STEPS):
            x = b.sin(b.dot_general(x, x, lhs_contracting=(1,), rhs_contracting=(0,), lhs_batch=(), rhs_batch=()))
        return [x]

    with override(check=True):
        assert "scf.index_switch" not in _text([SQUARE], f)
        check([SQUARE], f)
    assert "scf.index_switch" in _text([SQUARE], f)

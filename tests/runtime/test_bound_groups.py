"""A graph that has run in groups, with kernels for all sizes among ops, runs so again without being looked at node by
node, as long as there is nothing to do about a program."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir.errors import OutOfMemoryError, SmeltError
from smelt.ir.settings import override, settings
from smelt.lazy import evaluate
from smelt.lazy.evaluate import executables
from smelt.lazy.execution import known, strided, tiers

from .test_bound import (
    check_a_derivative,
    check_what_is_let_go,
    given,
    held,
    kept,
    layer,
    long,
    numbers,
    several,
    swapped,
)
from .test_short_runs import Compiling


@pytest.fixture(autouse=True)
def ran(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """Groups pay at once, programs never do; the plans that ran in groups without another look."""
    executables.clear()
    tiers.structures.clear()
    known.by_plan.clear()
    strided.kernels.clear()
    strided._programs.clear()
    monkeypatch.setattr(tiers, "groups_pay", lambda *args: True)
    monkeypatch.setattr(tiers, "LOOK", float("inf"))
    for name in ("seconds", "in_place"):
        monkeypatch.setattr(tiers.CompileCost, name, lambda *args: 1e9)
    found: list[Any] = []
    run = evaluate._ran_in_groups

    def noted(plan: Any, *given: Any) -> bool:
        done = run(plan, *given)
        if done:
            found.append(given[0])
        return done

    monkeypatch.setattr(evaluate, "_ran_in_groups", noted)
    with override(tier="auto", small_work=0):
        yield found
    tiers.structures.clear()
    known.by_plan.clear()
    strided._programs.clear()


@pytest.mark.parametrize("kernels", [False, True])
@pytest.mark.parametrize("f", [layer, swapped, several, numbers, held, long], ids=lambda f: f.__name__)
def test_values_are_those_of_the_operands_that_are_there(
    f: Callable[..., Any], kernels: bool, ran: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    if kernels:
        monkeypatch.setattr(strided, "SMALL", 0)
        monkeypatch.setattr(strided.Kernel, "look", lambda self, at_once, look=strided.Kernel.look: look(self, True))
    kept.clear()
    for i in range(8):
        x, w = given(6, 6), given(6, 6)
        if i == 5:
            w = x  # one value twice: another structure
        found = f(x, w)
        smelt.eval(found)
        with override(tier="ops"):
            want = f(x, w)
            smelt.eval(want)
        for a, b in zip(found, want):
            np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=2e-5, atol=1e-6)
    while len(kept) > 1:
        np.testing.assert_allclose(np.asarray(kept.pop()), np.asarray(kept.pop()), rtol=2e-5)
    assert len(ran) >= 3 or f is long  # in which loops may stand for repetitions


def test_a_program_that_another_process_has_made_ends_them(ran: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    x, w = given(5, 5), given(5, 5)
    for _ in range(4):
        smelt.eval(layer(x, w))
    count = len(ran)
    structure = tiers.structures.get(ran[0].key)
    assert count and structure is not None
    structure.pending = pending = Compiling()  # type: ignore[assignment]
    smelt.eval(layer(x, w))
    assert len(ran) == count + 1
    pending.is_over = True  # without one: it is compiled in place
    smelt.eval(layer(x, w))
    assert len(ran) == count + 1 and executables.get(ran[0].key) is not None


def test_settings_and_caches_count(ran: list[Any]) -> None:
    x, w = given(5, 5), given(5, 5)
    for _ in range(4):
        smelt.eval(layer(x, w))
    count = len(ran)
    assert count
    with override(libraries=not settings.libraries):
        smelt.eval(layer(x, w))
    assert len(ran) == count
    strided._programs.clear()
    smelt.eval(layer(x, w))
    assert len(ran) == count
    smelt.eval(layer(x, w))
    assert len(ran) == count + 1


def test_what_runs_take_counts_where_it_is_looked_at_after_a_cache_let_go(ran: list[Any]) -> None:
    x, w = given(5, 5), given(5, 5)
    for _ in range(4):
        smelt.eval(layer(x, w))
    (key,) = {bound.key for bound in ran}
    tiers.structures.clear()
    count = len(ran)
    smelt.eval(layer(x, w))
    structure = tiers.structures.get(key)
    assert structure is not None
    before = structure.taken
    for _ in range(3):
        smelt.eval(layer(x, w))
    assert len(ran) > count and structure.taken > before


def test_errors_name_the_line_of_each_run() -> None:
    good, bad = smelt.eye(3), -smelt.eye(3)
    smelt.eval(good, bad)
    for _ in range(5):
        smelt.eval(smelt.linalg.cholesky(good) + 1)
    ways = [
        lambda: smelt.linalg.cholesky(bad) + 1,
        lambda: smelt.linalg.cholesky(bad) + 1,
    ]
    for way in ways:
        line = way.__code__.co_firstlineno
        with pytest.raises(SmeltError, match=rf"cholesky.*test_bound_groups.py:{line}"):
            smelt.eval(way())


def test_memory_that_there_is_not_names_the_op(ran: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    x, w = given(5, 5), given(5, 5)
    for _ in range(4):
        smelt.eval(layer(x, w))
    assert ran

    def fails(self: Any, operands: Any) -> Any:
        raise MemoryError("none left")

    found = layer(x, w)
    with monkeypatch.context() as patch:
        patch.setattr(strided.StridedStep, "run", fails)
        with pytest.raises(OutOfMemoryError, match="none left"):
            smelt.eval(found)
    smelt.eval(found)
    np.testing.assert_allclose(np.asarray(found[2]), np.asarray(x)[1:] - np.asarray(w)[:-1], rtol=1e-6)


def test_evaluated_nodes_let_go_of_what_they_were_made_from(ran: list[Any]) -> None:
    check_what_is_let_go()
    assert ran


def test_a_derivative_looks_at_what_was_evaluated_inside(ran: list[Any]) -> None:
    check_a_derivative()
    assert ran

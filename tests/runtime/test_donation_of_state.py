"""Compiled steps write new state over the old one, unless somebody still has that, and keep it where they fail."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import smelt
from smelt import nn, optimizers
from smelt.backends.cpu.executable import CpuExecutable
from smelt.ir.settings import override
from smelt.lazy.execution import tiers
from smelt.lazy.execution.tiered import TieredExecutable
from smelt.runtime import pool
from smelt.transforms import versions

from .test_donation import HOLDERS, N, _read, x_of

NBYTES = N * N * 4
X = np.full((N, N), 0.25, np.float32)


@pytest.fixture(autouse=True)
def programs_and_states_of_any_size(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(versions, "LEAST_GIVEN", 1)
    with override(tier="program"):
        yield


def stepping(state: Any, put: Callable[[Any, smelt.array], None], get: Callable[[Any], smelt.array]) -> Any:
    """A compiled step of the array that `get` finds in the state: its sine and a quarter."""

    def step(x: smelt.array) -> smelt.array:
        put(state, smelt.sin(get(state)) + x)
        return x.sum()

    return smelt.compile(step, inputs=state, outputs=state)


def of_dict(seed: int = 0) -> tuple[dict[str, Any], Callable[[smelt.array], smelt.array]]:
    state = {"w": x_of(seed)}
    return state, stepping(state, lambda s, x: s.update(w=x), lambda s: s["w"])


def after(steps: int, seed: int = 0) -> np.ndarray:
    w = np.array(x_of(seed))
    for _ in range(steps):
        w = np.sin(w) + X
    return w


def train(holding: bool) -> tuple[list[Any], int]:
    """What some steps of AdamW give, and by how many bytes beside temporaries memory grew at most."""
    smelt.random.seed(0)
    model = nn.Sequential(nn.Linear(N, N), nn.Linear(N, N))
    optimizer = optimizers.AdamW(1e-3)
    optimizer.init(model.trainable_parameters())
    run = nn.value_and_grad(model, lambda x: (model(x) ** 2).sum())

    def step(x: smelt.array) -> smelt.array:
        loss, gradients = run(x)
        optimizer.update(model, gradients)
        return loss

    state, batch, held = [model.state, optimizer.state], x_of(1, 8, N), []
    compiled = smelt.compile(step, inputs=state, outputs=state)
    smelt.eval(compiled(batch), state)
    temporaries = compiled.trace(batch).lower().compile().cost().arena_bytes
    pool.peak_bytes = before = pool.active_bytes
    found: list[Any] = []
    for _ in range(4):
        if holding:
            held.append((model.parameters(), np.array(model.layers[0]["weight"])))
        found.append(compiled(batch).item())
    for parameters, weight in held:
        np.testing.assert_array_equal(parameters["layers"][0]["weight"], weight)
    return [*found, np.array(model.layers[0]["weight"])], pool.peak_bytes - before - temporaries


def test_a_step_needs_no_second_state() -> None:
    (found, least), (wanted, most) = train(False), train(True)
    for x, y in zip(found, wanted):
        np.testing.assert_array_equal(x, y)
    assert least < NBYTES and most > 2 * NBYTES


def test_a_program_that_comes_later_writes_over_the_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls that are like the last one ran op by op before."""
    state, step = of_dict()
    smelt.eval(state)
    given = []
    run = CpuExecutable.run_donated

    def noted(self: Any, inputs: Any, donated: Any) -> Any:
        given.append(set(donated))
        return run(self, inputs, donated)

    monkeypatch.setattr(CpuExecutable, "run_donated", noted)
    monkeypatch.setattr(tiers, "pays_at_once", lambda *args: False)
    monkeypatch.setattr(TieredExecutable, "_made", lambda self, tier: None)
    with override(tier="auto"):
        for _ in range(3):
            step(smelt.array(X))
        version = step._store.recent
        assert step._steps.last is not None and not version.executable.donatable
        version.executable._program = version.executable._make()
        for _ in range(3):
            step(smelt.array(X))
        smelt.eval(state)
    assert len(given) >= 2 and all(given)
    np.testing.assert_allclose(state["w"], after(6), 1e-5)


@pytest.mark.parametrize("name", [*HOLDERS, "the array", "another dict"])
def test_what_somebody_has_stays(name: str) -> None:
    holders = {**HOLDERS, "the array": lambda x: x, "another dict": lambda x: {"w": x}["w"]}
    wanted = _read(holders[name](x_of(0)))
    state, step = of_dict()
    step(smelt.array(X))
    state["w"] = x_of(0)
    held = holders[name](state["w"])
    for _ in range(3):
        step(smelt.array(X))
    np.testing.assert_array_equal(_read(held), wanted)
    np.testing.assert_allclose(state["w"], after(3), 1e-5)


class Holder:
    def __init__(self) -> None:
        self.w = x_of(0)


STATES: dict[str, tuple[Callable[[], Any], Callable[[Any, smelt.array], Any], Callable[[Any], smelt.array]]] = {
    "a list": (lambda: [x_of(0)], lambda s, x: s.__setitem__(0, x), lambda s: s[0]),
    "a tuple": (lambda: (x_of(0),), lambda s, x: setattr(s[0], "_ref", x._ref), lambda s: s[0]),
    "a tuple in a dict": (lambda: {"w": (x_of(0), 1)}, lambda s, x: s.update(w=(x, 1)), lambda s: s["w"][0]),
    "an array": (lambda: x_of(0), lambda s, x: setattr(s, "_ref", x._ref), lambda s: s),
    "an array twice": (lambda: [*[x_of(0)] * 2], lambda s, x: s.__setitem__(slice(2), [x, x]), lambda s: s[1]),
    "one dict twice": (lambda: [*[{"w": x_of(0)}] * 2], lambda s, x: s[1].update(w=x), lambda s: s[0]["w"]),
    "a module": (lambda: nn.Linear(N, N), lambda s, x: s.update({"weight": x}), lambda s: s["weight"]),
}


@pytest.mark.parametrize("name", STATES)
@pytest.mark.parametrize("keeps", [False, True])
def test_states_of_all_kinds(name: str, keeps: bool) -> None:
    make, put, get = STATES[name]
    state = make()
    if name == "a module":
        state["weight"] = x_of(0)
    step = stepping(state, put, get)
    kept = []
    for count in range(4):
        step(smelt.array(X))
        np.testing.assert_allclose(get(state), after(count + 1), 1e-5)
        if keeps and name not in ("a tuple", "an array"):  # these are themselves given other values
            kept.append(get(state))
    for count, x in enumerate(kept):
        np.testing.assert_allclose(x, after(count + 1), 1e-5)


def test_what_is_read_and_not_replaced_stays() -> None:
    read, written = {"a": x_of(0)}, {"b": x_of(1)}
    step = smelt.compile(lambda: written.update(b=smelt.exp(read["a"]) + 1), inputs=[read, written], outputs=written)
    want = np.array(read["a"])
    for _ in range(3):
        step()
        np.testing.assert_array_equal(read["a"], want)
    np.testing.assert_allclose(written["b"], np.exp(want) + 1, 1e-5)


def test_a_step_that_fails_leaves_the_state(monkeypatch: pytest.MonkeyPatch) -> None:
    state, step = of_dict()
    state["other"] = x_of(5)
    step(smelt.array(X))
    kept, given = state["other"], []
    with monkeypatch.context() as patched:

        def fail(self: Any, inputs: Any, donated: Any) -> Any:
            given.append(set(donated))
            raise MemoryError

        patched.setattr(CpuExecutable, "run_donated", fail)
        for _ in range(2):
            with pytest.raises(MemoryError):
                step(smelt.array(X))
            np.testing.assert_allclose(state["w"], after(1), 1e-5)
    assert all(given) and state["other"] is kept
    step(smelt.array(X))
    np.testing.assert_allclose(state["w"], after(2), 1e-5)


def test_a_function_that_raises_leaves_the_state() -> None:
    state, _ = of_dict()

    def step(x: smelt.array) -> smelt.array:
        state["w"] = smelt.sin(state["w"]) + x
        if x.ndim == 1:
            raise RuntimeError("no")
        return x.sum()

    compiled = smelt.compile(step, inputs=state, outputs=state)
    compiled(smelt.array(X))
    with pytest.raises(RuntimeError):
        compiled(smelt.array(X[0]))
    compiled(smelt.array(X))
    np.testing.assert_allclose(state["w"], after(2), 1e-5)


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="no signals")
def test_an_interrupt_comes_between_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    state, step = of_dict()
    step(smelt.array(X))
    run = CpuExecutable.run_donated

    def interrupted(self: Any, inputs: Any, donated: Any) -> Any:
        assert donated
        os.kill(os.getpid(), signal.SIGINT)
        return run(self, inputs, donated)

    with monkeypatch.context() as patched:
        patched.setattr(CpuExecutable, "run_donated", interrupted)
        with pytest.raises(KeyboardInterrupt):
            step(smelt.array(X))
    np.testing.assert_allclose(state["w"], after(2), 1e-5)
    step(smelt.array(X))
    np.testing.assert_allclose(state["w"], after(3), 1e-5)


def test_who_reads_the_state_meanwhile_sees_whole_steps() -> None:
    state, step = of_dict()
    known = [after(n).sum(dtype=np.float64) for n in range(40)]
    seen, over = list[float](), threading.Event()

    def read() -> None:
        while not over.is_set():
            seen.append(np.array(state["w"]).sum(dtype=np.float64))

    reader = threading.Thread(target=read)
    reader.start()
    for _ in range(39):
        step(smelt.array(X))
    over.set()
    reader.join()
    assert all(np.min(np.abs(np.array(known) - x)) < 1 for x in seen)
    np.testing.assert_allclose(state["w"], after(39), 1e-4)


def test_threads_that_share_a_step_take_turns() -> None:
    state, step = of_dict()
    step(smelt.array(X))

    def run() -> None:
        for _ in range(5):
            step(smelt.array(X))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_allclose(state["w"], after(21), 1e-4)

"""Compiled calls that wait for their arguments take the memory of those that nobody wants any more, and of no other."""

from __future__ import annotations

import functools
import os
import random
import signal
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.backends.cpu.executable import CpuExecutable
from smelt.ir.errors import DonatedError
from smelt.ir.settings import override
from smelt.lazy.calls import dying
from smelt.lazy.core import COMPILED
from smelt.runtime import pool

from .test_donation import HOLDERS, N, _read, x_of

NBYTES = N * N * 4


@pytest.fixture(autouse=True)
def one_tier() -> Iterator[None]:
    """Only what `compiled` gives is a program."""
    with override(tier="ops"):
        yield


def compiled(f: Callable[..., Any], inputs: int = 2, **options: Any) -> Callable[..., Any]:
    """A function whose program is there."""
    made = smelt.compile(f, **options)
    with override(tier="program"):
        smelt.eval(made(*[x_of(100 + i) for i in range(inputs)]))
    return made


def is_noted(x: smelt.array) -> bool:
    node = x._ref[0]
    return node.values is None and (node.op is COMPILED or any(n.op is COMPILED for n, _ in node.inputs))


def chained(step: Callable[..., smelt.array], steps: int, state: smelt.array) -> tuple[smelt.array, int]:
    """What so many steps make of a state, and by how many bytes memory grew at most."""
    given = x_of(2)
    pool.peak_bytes = before = pool.active_bytes
    x = given + 1
    for _ in range(steps):
        state = step(state, x)
    assert is_noted(state)
    smelt.eval(state)
    return state, pool.peak_bytes - before


def test_a_chain_of_steps_needs_no_second_state() -> None:
    step = compiled(lambda s, x: smelt.sin(s) * 0.5 + x)
    start = np.asarray(x_of(3)).copy()
    found, grown = chained(step, 8, x_of(3))
    kept, grown_kept = chained(step, 8, keep := x_of(3))
    np.testing.assert_array_equal(found, kept)
    np.testing.assert_array_equal(keep, start)
    x = np.asarray(x_of(2)) + 1
    want = start
    for _ in range(8):
        want = np.sin(want) * 0.5 + x
    np.testing.assert_allclose(found, want, 1e-5)
    assert grown < NBYTES / 2 and grown_kept < 1.5 * NBYTES  # a state of its own where the first may not be written to


@pytest.mark.parametrize("holder", HOLDERS)
def test_what_somebody_sees_does_not_change(holder: str) -> None:
    f, x = compiled(lambda y, z: smelt.exp(y) + z), x_of(4)
    want = np.exp(np.asarray(x)) + 1
    held = HOLDERS[holder](x)
    before = _read(HOLDERS[holder](smelt.array(np.array(x))))
    y = f(x, smelt.ones((N, N)) * 1)
    del x
    assert is_noted(y)
    np.testing.assert_allclose(y, want, 1e-5)
    np.testing.assert_allclose(_read(held), before, 1e-5)


def test_one_array_twice() -> None:
    f, x = compiled(lambda y, z, w: (smelt.exp(y) * z, z - w), 3), x_of(5)
    host = np.array(x)
    a, b = f(x, x, lazy := smelt.ones((N, N)) * 2)
    del x
    smelt.eval(a, b)
    np.testing.assert_allclose(a, np.exp(host) * host, 1e-5)
    np.testing.assert_allclose(b, host - 2, 1e-5)
    np.testing.assert_array_equal(lazy, np.full((N, N), 2, np.float32))


def test_where_there_is_no_memory_everything_is_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    f, x = compiled(lambda y, z: smelt.cos(y) + z), x_of(6)
    want = np.cos(np.asarray(x)) + 2
    y = f(x, smelt.ones((N, N)) * 2)
    del x
    given = []

    def fail(self: Any, inputs: Any, donated: Any) -> Any:
        given.append(set(donated))
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr(CpuExecutable, "run_donated", fail)
        for _ in range(2):
            with pytest.raises(MemoryError):
                smelt.eval(y)
    np.testing.assert_allclose(y, want, 1e-5)
    assert all(0 in g for g in given) and len(given) == 2


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="no signals")
def test_an_interrupt_comes_when_the_values_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    f, x = compiled(lambda y, z: smelt.cos(y) * z), x_of(7)
    want = np.cos(np.asarray(x)) * 2
    y = f(x, smelt.ones((N, N)) * 2)
    del x
    run = CpuExecutable.run_donated

    def interrupted(self: Any, inputs: Any, donated: Any) -> Any:
        assert donated
        os.kill(os.getpid(), signal.SIGINT)
        found = run(self, inputs, donated)
        os.kill(os.getpid(), signal.SIGINT)
        return found

    monkeypatch.setattr(CpuExecutable, "run_donated", interrupted)
    with pytest.raises(KeyboardInterrupt):
        smelt.eval(y)
    np.testing.assert_allclose(y, want, 1e-5)


def test_a_donating_call_waits_for_its_arguments() -> None:
    f, x = compiled(lambda y, z: smelt.exp(y) + z, donate=0), x_of(8)
    before, want = np.asarray(x).ctypes.data, np.exp(np.array(x)) + 3
    y = f(x, smelt.ones((N, N)) * 3)
    assert is_noted(y)
    with pytest.raises(DonatedError, match=r"f32\[256,256\] was used after .*test_donation_of_calls\.py:\d+"):
        smelt.eval(x + 1)
    np.testing.assert_allclose(y, want, 1e-5)
    assert before  # NumPy's view was dropped: the memory was free to be taken


@pytest.mark.parametrize("tier", ["program", "ops", "auto"])
def test_many_donating_calls_that_wait(tier: str) -> None:
    f = smelt.compile(lambda s, x: (smelt.sin(s["a"]) + x, {"a": s["a"] * 0.5 + x}), donate="s")
    with override(tier=tier):
        state, x = {"a": x_of(9)}, smelt.ones((N, N)) * 0.25
        want, sums, wanted = np.array(state["a"]), [], []
        for _ in range(6):
            y, state = f(state, x)
            sums.append(y.sum())
            wanted.append((np.sin(want) + 0.25).sum())
            want = want * 0.5 + 0.25
        np.testing.assert_allclose(smelt.stack(sums), wanted, 1e-4)
        np.testing.assert_allclose(state["a"], want, 1e-5)


def test_who_refers_to_a_node() -> None:
    x, y = x_of(10), x_of(11)
    refs = (x._ref, y._ref, (x._ref[0], 0))
    assert dying(refs, range(3)) == []
    del x
    assert dying(refs, range(4)) == [0, 2]
    held = refs[0]
    assert dying(refs, range(3)) == []
    del held
    node = refs[0][0]
    assert dying(refs, range(3)) == []
    del node, y
    assert dying(refs, (0, 1)) == [0, 1]


FUNCTIONS: list[tuple[Callable[..., Any], Callable[..., Any]]] = [
    (lambda x, y: x * 0.5 + y, lambda x, y: x * np.float32(0.5) + y),
    (lambda x, y: (x - y, x * 0.25), lambda x, y: (x - y, x * np.float32(0.25))),
    (lambda x, y: x.T * 0.5 - y, lambda x, y: x.T * np.float32(0.5) - y),
    (lambda x, y: (y, x + 1), lambda x, y: (y, x + 1)),
    (lambda x, y: smelt.maximum(x, y) - smelt.max(x, axis=0), lambda x, y: np.maximum(x, y) - x.max(0)),
]


@functools.cache
def _compiled_functions() -> tuple[list[Callable[..., Any]], list[Callable[..., Any]]]:
    return [compiled(f) for f, _ in FUNCTIONS], [compiled(f, donate=0) for f, _ in FUNCTIONS]


@pytest.mark.parametrize("donate", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_random_chains_are_as_numpy_says(seed: int, donate: bool) -> None:
    """Arrays that live, die, are viewed, evaluated and read by lazy calls, in any order."""
    choose = random.Random(seed)
    plain, giving = _compiled_functions()
    host = [np.random.default_rng(seed * 9 + i).random((N, N), np.float32) for i in range(5)]
    live: list[tuple[smelt.array, np.ndarray]] = [(smelt.array(h), h) for h in host]
    views: list[tuple[np.ndarray, np.ndarray]] = []
    for _ in range(60):
        which = choose.randrange(len(FUNCTIONS))
        i, j = choose.randrange(len(live)), choose.randrange(len(live))
        (x, a), (y, b) = live[i], live[j]
        if choose.random() < 0.5:
            y = y * 1  # not evaluated: the call waits
        gives = donate and choose.random() < 0.3 and x is not y
        found = (giving if gives else plain)[which](x, y)
        wanted = FUNCTIONS[which][1](a, b)
        pairs = list(zip(found, wanted)) if isinstance(found, tuple) else [(found, wanted)]
        if gives or choose.random() < 0.6:
            live = [(z, c) for z, c in live if z is not x]
        del x, y
        live += pairs
        del pairs, found
        choose.shuffle(live)
        live = live[-6:] if len(live) > 6 else live + [(smelt.array(host[0]), host[0])] * (len(live) < 2)
        event = choose.random()
        if event < 0.15:
            views = [*views[-3:], (np.asarray(live[0][0]), live[0][1])]
        elif event < 0.3:
            smelt.eval(*[z for z, _ in live[:2]])
        elif event < 0.4:
            np.testing.assert_allclose(live[-1][0], live[-1][1], 1e-5, 1e-6)
    for z, c in [*live, *views]:
        np.testing.assert_allclose(z, c, 1e-5, 1e-6)

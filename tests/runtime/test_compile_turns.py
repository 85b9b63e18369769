"""Functions with state that several threads call: what one leaves, the next one reads, whichever functions they are."""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir import custom_call
from smelt.ir.custom_call import Call, Target, register_target
from smelt.transforms import turns
from smelt.transforms.turns import under_way
from smelt.transforms.versions import LEAST_GIVEN

from .. import interrupts

#: What a call of the target `turns.pause` does.
pauses: list[Callable[[], None]] = []


@pytest.fixture(autouse=True)
def target() -> Iterator[None]:
    known = dict(custom_call._targets)

    def pause(call: Call, x: np.ndarray) -> np.ndarray:
        while pauses:
            pauses.pop()()
        return x.copy()

    register_target(Target("turns.pause", pause))
    yield
    pauses.clear()
    custom_call._targets.clear()
    custom_call._targets.update(known)


def paused(x: smelt.array) -> smelt.array:
    return smelt.custom_call("turns.pause", x, types=smelt.ShapeDtype(x.shape, x.dtype))


class Other:
    """A thread that calls a function while another call is in the middle of its work."""

    def __init__(self, function: Callable[[], Any]):
        self._function = function
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.error: BaseException | None = None

    def _run(self) -> None:
        try:
            self._function()
        except BaseException as error:
            self.error = error

    def start(self) -> None:
        """Begin the call: it is over, or waits for the one that is under way."""
        self._thread.start()
        end = time.monotonic() + 60
        while self._thread.is_alive() and len(under_way) < 2 and time.monotonic() < end:
            time.sleep(1e-4)

    def begin_and_end(self) -> None:
        """Begin a call that has nothing to wait for."""
        self._thread.start()
        self._thread.join(60)
        assert not self._thread.is_alive()

    def join(self) -> None:
        self._thread.join(60)
        assert not self._thread.is_alive() and self.error is None, self.error


def adding(n: float, state: Any, held: Any, key: Any = 0, traced: Callable[[], None] | None = None) -> Any:
    """A compiled function that adds to an entry of a list or dict, which is `held` or below it."""

    def step() -> None:
        if traced is not None:
            traced()
        state[key] = paused(state[key]) + n

    return smelt.compile(step, inputs=held, outputs=held)


def layouts() -> list[tuple[str, Any, Any, Any, Any]]:
    """The list or dict that is assigned to, its key, and the state of two functions that have it in common."""
    a, b, c, d = [smelt.array(1.0)], {"n": smelt.array(1.0)}, [smelt.array(1.0)], {"n": smelt.array(1.0)}
    return [
        ("the same", a, 0, a, a),
        ("a part", b, "n", {"model": b, "rest": []}, b),
        ("two parts", c, 0, [c, [smelt.array(0)]], [{"x": smelt.array(0)}, (c,)]),
        ("named twice", d, "n", [d, d], ({"deep": [d]},)),
    ]


@pytest.mark.parametrize("nbytes", [4, 2 * LEAST_GIVEN])
@pytest.mark.parametrize("at", range(4), ids=[name for name, *_ in layouts()])
def test_no_update_is_lost(at: int, nbytes: int) -> None:
    _, state, key, first, second = layouts()[at]
    state[key] = smelt.ones(nbytes // 4)
    smelt.eval(state)
    f, g = adding(1, state, first, key), adding(10, state, second, key)
    expected = 1.0
    for _ in range(3):  # those that are traced, and that repeat the one before
        other = Other(g)
        pauses.append(other.start)
        f()
        smelt.eval(state)
        other.join()
        expected += 11
        assert smelt.max(state[key]).item() == smelt.min(state[key]).item() == expected
    assert not under_way


@pytest.mark.parametrize("at", range(4), ids=[name for name, *_ in layouts()])
def test_no_call_sees_a_state_that_is_being_traced(at: int) -> None:
    _, state, key, first, second = layouts()[at]
    others: list[Other] = []

    def traced() -> None:
        state[key] = state[key] * 2  # another array stands there now
        others.append(Other(g))
        others[-1].start()

    f, g = adding(1, state, first, key, traced), adding(10, state, second, key)
    f.trace()
    others[0].join()
    assert state[key].item() == 11
    f()
    others[1].join()
    assert state[key].item() == 33


def test_an_array_in_two_lists_is_shared_while_it_is_traced() -> None:
    x = smelt.array(1.0)
    one, two = [x], [x]
    others: list[Other] = []

    def traced() -> None:
        one[0] = one[0] * 2
        others.append(Other(g))
        others[-1].start()

    f, g = adding(1, one, one, 0, traced), adding(10, two, two)
    f()
    others[0].join()
    assert (one[0].item(), two[0].item(), x.item()) == (3, 11, 1)


def test_functions_that_share_nothing_do_not_wait() -> None:
    one, two = [smelt.array(1.0)], [smelt.array(1.0)]
    f, g = adding(1, one, one), adding(10, two, two)
    for _ in range(3):
        other = Other(g)
        pauses.append(other.begin_and_end)
        f()
        smelt.eval(one)
        other.join()
    assert (one[0].item(), two[0].item()) == (4, 31)


def test_a_call_within_a_call_has_its_turn() -> None:
    state = [smelt.array(1.0)]
    f, g = adding(1, state, state), adding(10, state, state)
    g()
    pauses.append(g)
    f()
    assert state[0].item() in (12, 22)  # f's own update is of what it read
    assert not under_way


@pytest.mark.parametrize("waiting", [0, 1])
def test_a_call_within_a_call_does_not_wait_for_one_that_waits(waiting: int) -> None:
    """Whichever of the locks a thread would take first."""
    state = [smelt.array(1.0)]
    f, g = adding(1, state, state), adding(10, state, state)
    outer, inner = (f, g) if waiting else (g, f)
    for _ in range(3):
        f()
        g()
    others = [Other(inner), Other(inner)]

    def nested() -> None:
        for other in others:
            other.start()
            time.sleep(0.05)  # it waits now
        inner()

    pauses.append(nested)
    caller = Other(outer)
    caller.start()
    caller.join()
    for other in others:
        other.join()
    added = {id(f): 1, id(g): 10}
    assert state[0].item() == 34 + added[id(outer)] + 2 * added[id(inner)]  # of the first two, one reads the same
    assert not under_way


def test_a_call_that_fails_leaves_its_turn() -> None:
    state = [smelt.array(1.0)]

    def step() -> None:
        raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"):
        smelt.compile(step, inputs=state, outputs=state)()
    assert not under_way


@pytest.mark.parametrize("kind", ["plain", "donated"])
def test_one_function_in_several_threads(kind: str) -> None:
    """Calls of one function that are under way at the same time have nothing to do with each other."""
    f = smelt.compile(lambda x: paused(x) + 1, donate=None if kind == "plain" else 0)
    for n in range(4):
        x, y = smelt.full((4,), n), smelt.full((4,), 10 * n)
        smelt.eval(x, y)
        found: list[Any] = []
        other = Other(lambda y=y, found=found: found.append(f(y).tolist()))
        pauses.append(other.begin_and_end)
        assert f(x).tolist() == [n + 1.0] * 4
        other.join()
        assert found == [[10 * n + 1.0] * 4]


def test_calls_within_calls_of_functions_that_share_nothing_do_not_wait_for_each_other() -> None:
    """Each thread is in a call of one function, and calls the other one."""
    one, two = [smelt.array(1.0)], [smelt.array(1.0)]
    f, g = adding(1, one, one), adding(10, two, two)
    for _ in range(3):
        f()
        g()
    smelt.eval(one, two)
    both_inside = threading.Barrier(2)
    inner = threading.local()

    def pause(call: Call, x: np.ndarray) -> np.ndarray:
        if (function := vars(inner).pop("function", None)) is not None:
            both_inside.wait(60)
            function()
        return x.copy()

    def outer(function: Callable[[], Any], called: Callable[[], Any]) -> None:
        inner.function = called
        function()
        smelt.eval(one, two)

    custom_call._targets["turns.pause"] = Target("turns.pause", pause)
    others = [Other(lambda: outer(f, g)), Other(lambda: outer(g, f))]
    for other in others:
        other._thread.start()
    for other in others:
        other.join()
    assert one[0].item() in (5, 6) and two[0].item() in (41, 51)  # of a call that did without waiting one is lost
    assert not under_way and not turns._waiting


@pytest.mark.parametrize("several", [False, True])
def test_an_interrupt_leaves_no_lock(several: bool) -> None:
    """Wherever it comes."""
    state = [smelt.array(1.0)]
    functions = [adding(1, state, state), adding(10, state, state)]
    locks = [f._lock for f in functions]

    def call() -> None:
        held = None
        try:
            held = turns.Turn(locks[: 1 + several])
            with held:
                assert all(lock._is_owned() for lock in locks[: 1 + several])
        finally:
            turns.release(held)

    places = 0
    for place in interrupts.everywhere(call, turns.Turn.__enter__, turns.Turn._take, turns.Turn.__exit__):
        assert not any(lock._is_owned() for lock in locks), place
        places += 1
    for _ in interrupts.everywhere(call, turns.Turn.release):
        for lock in locks:
            while lock._is_owned():  # the second interrupt would be one more
                lock.release()
        places += 1
    assert places > 3 and not turns._waiting


def test_calls_that_are_interrupted_are_over() -> None:
    """Wherever an interrupt comes, no list says that a call is under way: it would keep the function and its state."""
    state = [smelt.array(0.0)]
    f = adding(1, state, state)
    f()
    seed = random.Random(0)
    interrupted = 0
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        for _ in range(2000):
            try:
                signal.setitimer(signal.ITIMER_REAL, seed.uniform(1e-6, 6e-5))
                while True:
                    f()
            except KeyboardInterrupt:
                interrupted += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert interrupted == 2000 and not under_way
    assert state[0].item() > 1

"""Evaluations in different threads: at the same time where they share nothing, and what they share once."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir.custom_call import Target, register_target
from smelt.ir.settings import override
from smelt.lazy.evaluate import executables
from smelt.runtime import LruCache

#: What the target runs: a function of its number and operand.
actions: dict[int, Callable[[np.ndarray], np.ndarray]] = {}


def _act(call: Any, x: np.ndarray) -> np.ndarray:
    return actions[call.parameters["number"]](x)


register_target(Target("test.act", _act))


def act(number: int, x: smelt.array) -> smelt.array:
    return smelt.custom_call("test.act", x, types=smelt.ShapeDtype(x.shape, x.dtype), number=number)


@pytest.fixture(autouse=True, params=["program", "ops"])
def tier(request: pytest.FixtureRequest) -> Any:
    """Programs, and op by op; nothing is small."""
    actions.clear()
    with override(tier=request.param, small_work=0):
        yield request.param


def in_threads(count: int, work: Callable[[int], Any]) -> list[Any]:
    with ThreadPoolExecutor(count) as pool:
        return [job.result(60) for job in [pool.submit(work, i) for i in range(count)]]


def test_what_shares_nothing_runs_at_the_same_time() -> None:
    meeting = threading.Barrier(3)

    def meet(x: np.ndarray) -> np.ndarray:
        meeting.wait(30)
        return x + 1

    actions[0] = meet
    # One key: the program is found by all.
    actions[1] = lambda x: x
    smelt.eval(act(1, smelt.ones((10, 10))) * 2)
    xs = [smelt.ones((10, 10)) * i for i in range(3)]
    smelt.eval(xs)
    found = in_threads(3, lambda i: np.array(act(0, xs[i]) * 2)[0, 0])
    assert found == [2, 4, 6]


def test_a_value_that_several_want_is_computed_once(tier: str) -> None:
    begun, calls = threading.Event(), []

    def slow(x: np.ndarray) -> np.ndarray:
        begun.set()
        calls.append(1)
        time.sleep(0.2)
        return x + 1

    actions[2] = slow
    x = smelt.ones((10, 10))
    smelt.eval(x)
    shared = act(2, x) * 2
    larger = smelt.concatenate([shared[:, :5] + 1] * 2)  # no plan of calls alone would see that

    def want(i: int) -> float:
        if i:
            begun.wait(30)
        return np.array((shared, larger, larger * 3)[i])[0, 0]

    assert in_threads(3, want) == [4, 5, 15]
    if tier == "program":
        assert len(calls) == 1


def test_functions_that_need_each_others_values() -> None:
    """Inside of an evaluation a function may ask for what another thread has in work, which asks for this one's."""
    meeting = threading.Barrier(2)
    arrays: list[smelt.array] = []

    def crossing(number: int) -> Callable[[np.ndarray], np.ndarray]:
        def ask(x: np.ndarray) -> np.ndarray:
            if depth.__dict__.setdefault("inside", False):
                return x + number
            depth.inside = True
            try:
                meeting.wait(30)
                return x + number + 0 * np.array(arrays[1 - number])
            finally:
                depth.inside = False

        return ask

    depth = threading.local()
    actions[0], actions[1] = crossing(0), crossing(1)
    arrays += [act(i, smelt.ones((4, 4))) * 2 for i in range(2)]
    assert in_threads(2, lambda i: np.array(arrays[i])[0, 0]) == [2, 4]
    assert [np.array(x)[0, 0] for x in arrays] == [2, 4]


def test_an_error_in_one_thread_leaves_the_others_their_values() -> None:
    begun = threading.Event()

    def fail(x: np.ndarray) -> np.ndarray:
        begun.set()
        time.sleep(0.1)
        if threading.current_thread() is first:
            raise ArithmeticError("not today")
        return x

    actions[3] = fail
    y = act(3, smelt.ones((3, 3))) * 5
    errors: list[BaseException] = []

    def try_it() -> None:
        try:
            smelt.eval(y)
        except Exception as error:
            errors.append(error)

    first = threading.Thread(target=try_it)
    first.start()
    begun.wait(30)
    assert np.array(y)[0, 0] == 5
    first.join()
    assert len(errors) == 1 and "not today" in str(errors[0])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_computes_what_a_thread_of_its_parent_had_in_work(tier: str) -> None:
    code = f"""
import faulthandler, os, sys, threading, time
import numpy as np
import smelt
from smelt.ir.custom_call import Target, register_target
from smelt.ir.settings import settings
settings.tier, settings.small_work = {tier!r}, 0
begun, go_on = threading.Event(), threading.Event()
def slow(call, x):
    begun.set()
    if os.getpid() == parent:
        go_on.wait(30)
    return x + 1
register_target(Target("test.slow", slow))
parent = os.getpid()
x = smelt.ones((10, 10))
smelt.eval(x)
y = smelt.custom_call("test.slow", x, types=smelt.ShapeDtype((10, 10), smelt.float32)) * 2
thread = threading.Thread(target=smelt.eval, args=(y,))
thread.start()
begun.wait(30)
child = os.fork()
if child == 0:
    faulthandler.dump_traceback_later(30, exit=True)
    os._exit(int(np.array(y * 1)[0, 0]))
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
go_on.set()
thread.join()
print(np.array(y)[0, 0])
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=100)
    assert done.stdout.split() == ["4", "4.0"], done.stdout + done.stderr


def test_who_wants_another_program_does_not_wait_for_a_compile() -> None:
    cache = LruCache(weigh=lambda value: 1)
    begun, go_on = threading.Event(), threading.Event()

    def slow() -> str:
        begun.set()
        assert go_on.wait(30)
        return "slow"

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(cache.get_or_wait, "a", slow)
        begun.wait(30)
        second = pool.submit(cache.get_or_wait, "a", lambda: "again")
        assert cache.get_or_wait("b", lambda: "quick") == "quick"
        assert cache.get("b") == "quick" and not second.done()
        go_on.set()
        assert (first.result(30), second.result(30), cache.misses) == ("slow", "slow", 2)
    assert cache.get_or_wait("c", lambda: None) is None and len(cache) == 2
    assert not cache._making and executables is not cache

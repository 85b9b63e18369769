"""`async_eval`: evaluation beside the calling thread."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import smelt
from smelt.ir.errors import LibraryError, TraceError
from smelt.ir.settings import override
from smelt.lazy import asynchrony


@pytest.fixture(autouse=True)
def everything_is_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asynchrony, "WORTH_IT", 0.0)


def test_values_are_those_of_eval() -> None:
    x = smelt.random.normal((50, 50), key=smelt.random.key(0))
    for _ in range(20):
        x = smelt.tanh(x @ x)
        smelt.async_eval(x, {"more": [x + 1, None, "text"]})
    wanted = smelt.random.normal((50, 50), key=smelt.random.key(0))
    for _ in range(20):
        wanted = smelt.tanh(wanted @ wanted)
    np.testing.assert_allclose(x, wanted, 1e-4, 1e-5)
    smelt.synchronize()


def test_it_runs_in_another_thread_and_what_asks_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    threads, go = [], threading.Event()
    evaluate = asynchrony.evaluate

    def slow(refs: object) -> None:
        threads.append(threading.current_thread())
        evaluate(refs)  # type: ignore[arg-type]
        go.wait(60)

    monkeypatch.setattr(asynchrony, "evaluate", slow)
    x = smelt.ones(3) + 1
    smelt.async_eval(x)
    y = x * 2  # recorded meanwhile
    assert not asynchrony._worker.is_idle()
    go.set()
    smelt.synchronize()
    assert threads and threads[0] is not threading.current_thread()
    assert x._ref[0].values is not None and y.tolist() == [4, 4, 4]


def test_errors_surface_at_the_wait() -> None:
    bad = smelt.linalg.cholesky(-smelt.eye(3))
    smelt.async_eval(bad)
    with pytest.raises(LibraryError, match=r"not positive definite.*test_async\.py:"):
        smelt.synchronize()
    smelt.synchronize()  # it was raised
    smelt.async_eval(bad)
    with pytest.raises(LibraryError, match=r"not positive definite.*test_async\.py:"):
        smelt.eval(bad)
    with pytest.raises(LibraryError):
        smelt.synchronize()


def test_inside_of_traces_it_is_eval() -> None:
    with pytest.raises(TraceError):
        smelt.compile(lambda x: smelt.async_eval(x))(smelt.ones(3))

    def f(x: smelt.array) -> smelt.array:
        y = x * x
        smelt.async_eval(y)
        return y.sum() * float(y[0].item())

    assert smelt.grad(f)(smelt.array([2.0, 3.0])).tolist() == [16, 24]


def test_the_device_is_that_of_the_caller() -> None:
    with override(tier="auto"), smelt.stream(smelt.reference):
        x = smelt.exp(smelt.ones(7))
        smelt.async_eval(x)
        np.testing.assert_allclose(x, np.full(7, np.e), 1e-6)
    smelt.synchronize()


def test_many_threads_ask() -> None:
    x = smelt.ones((200, 200)) * 0.01
    for _ in range(30):
        x = x @ x + 1
    smelt.async_eval(x)
    found: list[float] = []
    threads = [threading.Thread(target=lambda: found.append((x * 0 + 1).sum().item())) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(found) == 4
    smelt.synchronize()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_child_process_evaluates_for_itself() -> None:
    code = """
import os, smelt
from smelt.lazy import asynchrony
asynchrony.WORTH_IT = 0
x = smelt.ones((300, 300)) * 0.5
for _ in range(40):
    x = smelt.sin(x @ x)
smelt.async_eval(x)
pid = os.fork()
y = (x * 0 + 2).sum().item()
assert y == 180000, y
smelt.async_eval(x + 1)
smelt.synchronize()
if pid == 0:
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert not done.returncode, done.stderr


def test_the_interpreter_may_end_meanwhile() -> None:
    code = """
import smelt
from smelt.lazy import asynchrony
asynchrony.WORTH_IT = 0
x = smelt.ones((500, 500)) * 0.5
for _ in range(40):
    x = smelt.sin(x @ x)
smelt.async_eval(x)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


def test_threads_hand_over_and_wait_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asynchrony, "MOST_JOBS", 3)  # all of them wait for a place, too
    problems: list[BaseException] = []

    def run(n: int) -> None:
        try:
            for i in range(40):
                x = smelt.ones((20, 20)) * n + i
                smelt.async_eval(x)
                if i % 5 == n:
                    smelt.synchronize()
                assert x[0, 0].item() == n + i
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=run, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    smelt.synchronize()
    assert not problems and asynchrony._worker.is_idle()


def test_an_error_is_raised_in_one_of_the_threads_that_wait() -> None:
    go, raised = threading.Barrier(4), []

    def run() -> None:
        go.wait(60)
        try:
            smelt.synchronize()
        except LibraryError as error:
            raised.append(error)

    threads = [threading.Thread(target=run) for _ in range(4)]
    smelt.async_eval(smelt.linalg.cholesky(-smelt.eye(3)))
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(raised) == 1


def test_what_the_worker_hands_over_it_evaluates_itself() -> None:
    found = []

    def callback(x: np.ndarray) -> np.ndarray:
        y = smelt.ones(3) * 2
        smelt.async_eval(y)
        found.append(threading.current_thread())
        return x + y.sum().item()

    x = smelt.ones(3) + 1
    assert asynchrony._worker.submit([x._ref], asynchrony.default_device())
    job = asynchrony._worker._pool.submit(callback, np.ones(3))  # type: ignore[union-attr]
    assert job.result(60).tolist() == [7, 7, 7] and found[0] is not threading.current_thread()
    smelt.synchronize()


def test_what_python_does_for_each_op_is_not_handed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two threads would take turns at Python's lock."""
    handed: list[object] = []
    monkeypatch.setattr(asynchrony, "WORTH_IT", 1e-3)
    monkeypatch.setattr(asynchrony._worker, "submit", lambda refs, device: handed.append(refs))
    double = smelt.compile(lambda x: 2 * x)
    for _ in range(2):  # unknown ops, and known ones
        x = smelt.arange(4.0)
        for _ in range(500):
            x = smelt.sin(double(x))
        smelt.async_eval(x)
        assert not handed and x._ref[0].values is not None
    smelt.async_eval(smelt.ones((1000, 1000)) @ smelt.ones((1000, 1000)))
    assert len(handed) == 1

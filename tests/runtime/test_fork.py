"""Child processes: they compute right whatever other threads were doing when they were forked."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

import smelt
from smelt.backends.cpu import blas
from smelt.ir import locks

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")

PROGRAM = """
import faulthandler, os, random, signal, sys, threading, time, warnings
import numpy as np
import numpy.random, numpy.testing  # when they are named: a child of a thread that imports waits for ever
import smelt
from smelt.ir.settings import settings

warnings.simplefilter("ignore", DeprecationWarning)  # forks with threads are what this is about
rounds, busy = int(sys.argv[1]), True

def compute(n, rng):
    x = rng.standard_normal((n, 50)).astype(np.float32)
    a = smelt.array(x)
    f = smelt.compile(lambda a: (smelt.exp(a) * n).sum(axis=1))
    np.testing.assert_allclose(np.array(f(a)), (np.exp(x) * n).sum(1), rtol=1e-4)
    # No x @ x.T: a child's products never end if it was forked in the middle of one of NumPy's.
    np.testing.assert_allclose(np.array((a @ a.T).sum()), (x.sum(0, np.float64) ** 2).sum(), rtol=1e-2, atol=1)
    g = smelt.grad(lambda a: (a * a * a).sum())(a)
    np.testing.assert_allclose(np.array(g), 3 * x * x, rtol=1e-4, atol=1e-4)
    smelt.eval(smelt.random.normal((n, 3)))
    return shared(smelt.array(x[:30])).shape == (30, 50)

shared = smelt.compile(lambda x: smelt.softmax(x, axis=-1))

def work(seed):
    rng, i = np.random.default_rng(seed), 0
    while busy:
        i += 1
        compute(2_000 if i % 5 == 0 else 30 + (seed * 1000 + i) % 97, rng)

settings.small_work = 20_000  # some are compiled, some are not
threads = [threading.Thread(target=work, args=(i,), daemon=True) for i in range(3)]
for t in threads:
    t.start()
failed = 0
for i in range(rounds):
    time.sleep(random.Random(i).uniform(0, 0.3))
    child = os.fork()
    if child == 0:
        status = 1
        try:
            faulthandler.dump_traceback_later(60, exit=True)
            rng = np.random.default_rng(1000 + i)
            for n in (40, 3_000):
                assert compute(n, rng)
            inner = threading.Thread(target=compute, args=(50, rng))
            inner.start()
            inner.join()
            status = 0
        except BaseException:
            import traceback
            traceback.print_exc()
        finally:
            os._exit(status)
    failed += os.waitpid(child, 0)[1] != 0
busy = False
for t in threads:
    t.join()
print(failed, "of", rounds)
"""


def forks(rounds: int) -> None:
    """Fork so many children while three threads compile and evaluate."""
    command = [sys.executable, "-c", PROGRAM, str(rounds)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=70 * (rounds + 1))
    assert done.stdout == f"0 of {rounds}\n", done.stdout + done.stderr[-4000:]


def test_children_compute_while_their_parent_does() -> None:
    forks(3)


@pytest.mark.parametrize("product", ["a @ a.T", "smelt.linalg.cholesky(a.T @ a)"])
def test_forks_wait_for_products_of_other_threads(product: str) -> None:
    """NumPy's BLAS does not survive a fork in the middle of a product, nor do the child's next products."""
    code = f"""
import faulthandler, os, threading
import smelt
a = smelt.random.normal((2_000, 50))
def work():
    smelt.eval({product})
def go_on():
    while busy:
        work()
busy = True
threads = [threading.Thread(target=go_on, daemon=True) for _ in range(2)]
for t in threads:
    t.start()
ended = []
for i in range(30):
    child = os.fork()
    if child == 0:
        faulthandler.dump_traceback_later(60, exit=True)
        work()
        os._exit(0)
    ended.append(os.waitpid(child, 0)[1])
busy = False
for t in threads:
    t.join()
print(ended == [0] * 30)
"""
    assert run(code) == "True\n"


def test_forks_wait_for_compiled_code_that_calls_the_blas(monkeypatch: pytest.MonkeyPatch) -> None:
    """A product holds the lock of the BLAS's memory for so short a time that forks met it once in a thousand runs."""
    held: list[str] = []

    class Gate:
        lock = contextlib.nullcontext()

        def __getattribute__(self, name: str) -> object:
            held.append(name)
            return super().__getattribute__(name)

    a = smelt.random.normal((2_000, 50))
    smelt.eval(a)
    monkeypatch.setattr(locks, "gate", Gate())
    smelt.eval(smelt.compile(lambda x: smelt.exp(x) + 1)(a))
    assert not held
    smelt.eval(smelt.compile(lambda x: smelt.exp(x @ x.T).sum())(a))
    assert bool(held) == (blas.library() is not None)


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_lock_that_another_thread_has_is_free_in_the_child() -> None:
    code = """
import os, threading
import smelt
from smelt.backends.metal import simulator
from smelt.backends.metal.check import front_end
from smelt.ir import locks
f = smelt.compile(lambda x: x + 1)
taken, done = threading.Event(), threading.Event()
def hold():
    for lock in held:
        lock.acquire()
    taken.set()
    done.wait()
    for lock in held:
        lock.release()
held = [lock for lock in list(locks._made) if lock is not locks._whole]
locks._LONGEST_WAIT = 0.1  # they are not given back
thread = threading.Thread(target=hold)
thread.start()
taken.wait()
child = os.fork()
if child == 0:
    free = [lock.acquire(False) for lock in held]
    os._exit(0 if all(free) and len(free) > 6 and f(smelt.zeros(())).item() == 1 else 1)
print(os.waitpid(child, 0)[1])
done.set()
thread.join()
"""
    assert run(code) == "0\n"


def test_a_lock_of_the_forking_thread_stays_its_own() -> None:
    own = locks.lock()
    with own:
        child = os.fork()
        if child == 0:
            try:
                own.release()
                try:
                    own.release()
                except RuntimeError:
                    os._exit(0)
            finally:
                os._exit(1)
        assert os.waitpid(child, 0)[1] == 0


def test_forks_wait_for_what_is_done_whole() -> None:
    code = """
import os, threading, time
from smelt.ir import locks
state = []
def slow():
    state.append("begun")
    begun.set()
    time.sleep(0.3)
    state.append("ended")
begun = threading.Event()
thread = threading.Thread(target=locks.whole, args=(slow,))
thread.start()
begun.wait()
child = os.fork()
if child == 0:
    os._exit(0 if state == ["begun", "ended"] and locks.whole(lambda: 7) == 7 else 1)
print(os.waitpid(child, 0)[1])
thread.join()
"""
    assert run(code) == "0\n"


def test_forks_wait_for_imports_of_other_threads(tmp_path: Path) -> None:
    """A child would wait for the end of an import that a thread has begun which is not there."""
    (tmp_path / "slow.py").write_text("import time\nbegun.set()\ntime.sleep(0.3)\nvalue = 5\n")
    code = f"""
import builtins, faulthandler, os, sys, threading
import smelt
sys.path.append({str(tmp_path)!r})
builtins.begun = threading.Event()
thread = threading.Thread(target=__import__, args=("slow",))
thread.start()
begun.wait()
child = os.fork()
if child == 0:
    faulthandler.dump_traceback_later(20, exit=True)
    import slow
    os._exit(slow.value)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
thread.join()
"""
    assert run(code) == "5\n"


def test_the_first_compile_may_be_under_way_in_another_thread() -> None:
    code = """
import faulthandler, os, threading, time
import smelt
def work():
    smelt.compile(lambda x: smelt.exp(x))(smelt.ones((300, 300)))
thread = threading.Thread(target=work)
thread.start()
children = []
for i in range(8):
    time.sleep(0.03)
    child = os.fork()
    if child == 0:
        faulthandler.dump_traceback_later(60, exit=True)
        work()
        os._exit(0)
    children.append(child)
print([os.waitpid(child, 0)[1] for child in children])
thread.join()
"""
    assert run(code) == f"{[0] * 8}\n"

"""Signals reach Python while a loop of unknown or great length runs as machine code."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import smelt
from smelt.backends.cpu import polling
from smelt.backends.cpu.polling import MOST_ITERATIONS, period
from smelt.backends.cpu.threads import team
from smelt.ir.settings import settings

PROGRAM = """
import os, signal, threading
import smelt

def late(number, frame):
    raise KeyboardInterrupt("late")

signal.signal(signal.SIGALRM, late)
{body}
x = smelt.ones(({size},))
counted = smelt.compile(lambda x: smelt.while_loop(lambda s: s < 1000, lambda s: s + 1, x))
smelt.eval(x, counted(smelt.array(0.0)))  # the compiler is loaded
for seconds in (1.0, 0.3):
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        smelt.eval(function(x))
    except KeyboardInterrupt as error:
        print("raised", error)
print(counted(smelt.array(0.0)).item())
"""
ENDLESS = "function = smelt.compile(lambda x: smelt.while_loop(lambda s: (s * s).all(), lambda s: -s, x))"
NESTED = """
inner = lambda s: smelt.while_loop(lambda s: (s * s).all(), lambda s: -s, s)
function = smelt.compile(lambda x: smelt.while_loop(lambda s: (s * s).all(), lambda s: -inner(s), x))
"""
#: Two loops run the function that has the endless one in it.
SHARED = """
inner = lambda s: smelt.while_loop(lambda s: (s * s).all(), lambda s: -s, s)
twice = lambda s: inner(s) - inner(s * 2)
function = smelt.compile(lambda x: [smelt.fori_loop(0, 3, lambda i, s: twice(s), x * n) for n in (1, 2)])
"""
LONG = "function = smelt.compile(lambda x: smelt.fori_loop(0, 2**40, lambda i, s: -s, x))"
HOSTED = "function = smelt.compile(lambda x: smelt.while_loop(lambda s: (s * s).all(), lambda s: -smelt.sort(s), x))"


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGALRM")
@pytest.mark.parametrize(
    "body, size",
    [
        (ENDLESS, 1), (ENDLESS, 1_000_000), (NESTED, 5), (NESTED, 300_000), (SHARED, 5), (SHARED, 300_000), (HOSTED, 5),
        (LONG, 5), (LONG, 300_000),
    ],
)
def test_a_handler_ends_a_long_loop(body: str, size: int) -> None:
    code = PROGRAM.format(body=body, size=size)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout.split("\n") == ["raised late", "raised late", "1000.0", ""], done.stdout + done.stderr


def test_handlers_that_do_not_raise_let_a_loop_go_on() -> None:
    code = """
import signal, smelt
count = 0
def handler(number, frame):
    global count
    count += 1
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
slow = smelt.compile(lambda x: smelt.while_loop(lambda s: s < 30_000_000, lambda s: s + 1, x))
print(slow(smelt.array(0, smelt.int64)).item(), count > 1)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout == "30000000 True\n", done.stdout + done.stderr


def test_small_loops_ask_seldom() -> None:
    assert period(0) == MOST_ITERATIONS and period(1e12) == 1
    assert all(period(10.0**n) & (period(10.0**n) - 1) == 0 for n in range(14))


#: Kernels over more elements than anybody waits for, of arrays that nobody stores.
ABSURD = {
    "a sum": "smelt.zeros(10**13).sum()",
    "a gradient": "smelt.grad(lambda x: smelt.broadcast_to(x, (10**13,)).sum())(smelt.array(1.0))",
    "columns": "smelt.broadcast_to(smelt.arange(1000.0), (10**10, 1000)).sum(axis=0)",
    "rows": "smelt.exp(smelt.outer(smelt.arange(4e6), smelt.arange(4e6))).sum(axis=1)",
    "two reductions": "smelt.softmax(smelt.zeros((3, 10**12)), axis=1).sum()",
    "repeated": "smelt.repeat(smelt.arange(1000.0), 10**10)[1:].max()",
    "indices": "smelt.eye(10**7).sum()",
    "a contraction": "smelt.broadcast_to(smelt.arange(1000.0), (10**10, 1000)).T @ smelt.ones(10**10)",
    "a convolution": "smelt.conv1d(smelt.zeros((1, 10**7, 1)), smelt.ones((1, 10**6, 1))).sum()",
    "integers": "smelt.ones((20_000, 20_000), smelt.int32) @ smelt.ones((20_000, 20_000), smelt.int32)",
    "a loop": "smelt.fori_loop(0, 9, lambda i, s: s + (smelt.zeros(10**13) * s).sum(), smelt.array(1.0))",
    "a step on the host": "smelt.sort(smelt.zeros(9) + (smelt.zeros(10**13) + smelt.array(1.0)).sum())",
}


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT")
@pytest.mark.skipif(not team().together, reason="members of this team tell each other nothing")
@pytest.mark.parametrize("what", ABSURD)
def test_an_interrupt_ends_a_long_kernel(what: str) -> None:
    """The signal comes from another process, while machine code runs."""
    code = f"""
import signal, threading, smelt
from smelt.backends.cpu import running
signal.signal(signal.SIGINT, signal.default_int_handler)
x = smelt.arange(300_000.0)
total = smelt.compile(lambda x: (x * 2).sum())
want = total(x).item()
run = running.Program.run
def told(self, *operands):
    if self.has_long:
        print("running", flush=True)
    return run(self, *operands)
running.Program.run = told
try:
    smelt.eval({ABSURD[what]})
except KeyboardInterrupt:
    print("interrupted")
print(total(x).item() == want, smelt.compile(lambda: smelt.exp(x).min())().item())
"""
    environment = {**os.environ, "SMELT_TIER": "program"}
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment) as child:
        assert child.stdout is not None and child.stdout.readline() == "running\n"
        time.sleep(0.3)
        child.send_signal(signal.SIGINT)
        try:
            assert child.communicate(timeout=30)[0] == "interrupted\nTrue 1.0\n"
        finally:
            child.kill()


@pytest.mark.parametrize("members", [1, 3])
def test_long_kernels_compute_the_same(members: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels that ask, here short ones, and those that do not."""
    x = smelt.array(np.random.default_rng(0).standard_normal((37, 300, 11)).astype(np.float32))
    functions = [
        lambda x: x.sum(), lambda x: (x * x).sum(axis=0), lambda x: smelt.softmax(x, axis=1), lambda x: x.max(axis=2),
        lambda x: x.transpose(2, 0, 1) * 2, lambda x: smelt.cumsum(x, axis=1), lambda x: smelt.argmin(x, axis=1),
        lambda x: (x.astype(smelt.int32) @ x.astype(smelt.int32)[:, :11]), lambda x: x[0] @ x[1].T,
        lambda x: smelt.conv1d(x, smelt.ones((2, 30, 11))), lambda x: smelt.exp(x[0, :, :1] + x[1, :, 0]).sum(axis=1),
    ]  # fmt: skip
    monkeypatch.setattr(settings, "num_threads", members)
    wanted = [np.array(smelt.compile(f)(x)) for f in functions]
    monkeypatch.setattr(polling, "LONG_KERNEL", 1)
    monkeypatch.setattr(polling, "BETWEEN", 100)
    asking = []
    made = polling.Breaks.__init__
    monkeypatch.setattr(polling.Breaks, "__init__", lambda self, *a: (asking.append(self), made(self, *a))[1])
    smelt.clear_cache()
    for f, want in zip(functions, wanted):
        found = np.array(smelt.compile(lambda x, f=f: f(x) + 0)(x))  # another function: what was compiled is kept
        np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-4)
    assert len(asking) >= len(functions) or not team().together


def test_only_long_kernels_ask() -> None:
    def text(n: int) -> str:
        traced = smelt.compile(lambda x: smelt.broadcast_to(x, (n,)).sum()).trace(smelt.array(1.0))
        return traced.lower().compile(keep_texts=True).as_text("kernel")

    assert "smelt_poll" in text(polling.LONG_KERNEL) and "smelt_poll" not in text(polling.LONG_KERNEL - 1)

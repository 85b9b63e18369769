"""Signals reach Python while a loop of unknown or great length runs as machine code."""

from __future__ import annotations

import subprocess
import sys

import pytest

from smelt.backends.cpu.polling import MOST_ITERATIONS, period

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
LONG = "function = smelt.compile(lambda x: smelt.fori_loop(0, 2**40, lambda i, s: -s, x))"
HOSTED = "function = smelt.compile(lambda x: smelt.while_loop(lambda s: (s * s).all(), lambda s: -smelt.sort(s), x))"


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGALRM")
@pytest.mark.parametrize(
    "body, size",
    [(ENDLESS, 1), (ENDLESS, 1_000_000), (NESTED, 5), (NESTED, 300_000), (HOSTED, 5), (LONG, 5), (LONG, 300_000)],
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

"""The interpreter ends while threads are inside of smelt: no abort, no message, the exit status that was asked for."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from smelt.ir import ending

PROGRAM = Path(__file__).with_name("ending_program.py")
WORK = ["trees", "calls", "lazily", "gradients", "compiles", "asynchronously"]
#: Python forgets that it ends by a signal where another thread runs code that is made meanwhile.
ENDS = {
    "return": [0], "exit": [3], "at once": [3], "error": [1], "interrupt": [-signal.SIGINT, 1], "handlers": [0],
    "fork": [3],
}  # fmt: skip
#: By the work, the ends beside `sys.exit`, so that each stands with two kinds of work.
OTHERS = {
    "trees": ["error", "fork"], "calls": ["return", "handlers"], "lazily": ["at once", "interrupt"],
    "gradients": ["return", "error"], "compiles": ["interrupt", "handlers"], "asynchronously": ["at once", "fork"],
}  # fmt: skip


@pytest.mark.skipif(not hasattr(os, "fork"), reason="other exit statuses, and no fork")
@pytest.mark.parametrize("work", WORK)
def test_threads_inside_of_libraries(work: str) -> None:
    programs = {
        how: subprocess.Popen(
            [sys.executable, PROGRAM, work, how, seconds], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for how, seconds in zip(["exit", *OTHERS[work]], ["0.2", "0.4", "0.6"])
    }
    for how, program in programs.items():
        out, err = program.communicate(timeout=120)
        assert program.returncode in ENDS[how] and not out, (how, program.returncode, out, err)
        wanted = {"error": "ValueError: an error", "interrupt": "KeyboardInterrupt"}.get(how, "")
        assert err.strip().endswith(wanted) and err.count("Traceback") == bool(wanted), (how, err)


def test_who_is_kept_out(monkeypatch: pytest.MonkeyPatch) -> None:
    held = ending.GuardedLock()
    monkeypatch.setattr(ending, "_held", [held])
    monkeypatch.setattr(ending, "_ends", None)
    monkeypatch.setattr(ending, "_ending", False)
    inside, go, ended, found = threading.Event(), threading.Event(), threading.Event(), []

    def library(x: int) -> int:
        inside.set()
        go.wait(60)
        return x

    def run() -> None:
        found.append(ending.guarded(library)(2))
        ended.wait(60)
        for use in (lambda: ending.guarded(library)(3), held.__enter__):
            with pytest.raises(SystemExit):
                use()
            found.append("kept out")

    def finish() -> None:
        ending._end()
        found.append("ended")

    thread = threading.Thread(target=run)
    thread.start()
    inside.wait(60)
    finishing = threading.Thread(target=finish)
    finishing.start()
    finishing.join(0.1)
    assert finishing.is_alive() and not found  # it waits for the one inside
    go.set()
    finishing.join(60)
    assert found == [2, "ended"]
    ended.set()
    thread.join(60)
    assert found == [2, "ended", "kept out", "kept out"]
    assert held.acquire(timeout=10)  # nobody has kept it
    held.release()


def test_the_end_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    held, go = ending.GuardedLock(), threading.Event()
    monkeypatch.setattr(ending, "_held", [held])
    monkeypatch.setattr(ending, "_ends", None)
    monkeypatch.setattr(ending, "_ending", False)
    monkeypatch.setattr(ending, "_LONGEST_WAIT", 0.05)
    begun = threading.Event()

    def stay() -> None:
        with held:
            begun.set()
            go.wait(60)

    thread = threading.Thread(target=stay)
    thread.start()
    begun.wait(60)
    ending._end()
    assert thread.is_alive()
    go.set()
    thread.join(60)

"""Work that is done whole: to its end, wherever the thread that asks for it is, and whatever interrupts it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from smelt.ir import locks


def test_a_module_that_is_being_imported_may_ask_for_its_own_parts(tmp_path: Path) -> None:
    """Another thread's import of a part would wait for the import of the package, which waits for the part."""
    package = tmp_path / "waiting"
    package.mkdir()
    (package / "__init__.py").write_text(
        "import importlib\nfrom smelt.ir import locks\n"
        "value = locks.whole(lambda: importlib.import_module('waiting.part')).value\n"
    )
    (package / "part.py").write_text("value = 5\n")
    done = subprocess.run(
        [sys.executable, "-c", "import waiting; print(waiting.value)"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout == "5\n", done.stderr


@pytest.mark.skipif(not hasattr(signal, "raise_signal"), reason="no signals")
@pytest.mark.parametrize("importing", [False, True], ids=["elsewhere", "inside of an import"])
def test_an_interrupt_is_raised_when_the_work_is_done(importing: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "_is_importing", lambda: importing)
    before, steps = signal.getsignal(signal.SIGINT), []

    def interrupted() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        for i in range(1000):
            steps.append(i)

    with pytest.raises(KeyboardInterrupt):
        locks.whole(interrupted)
    assert len(steps) == 1000
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("importing", [False, True])
def test_whole_work_returns_and_raises_as_it_would_alone(importing: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "_is_importing", lambda: importing)

    def wrong() -> None:
        raise LookupError("mine")

    assert locks.whole(lambda: 3) == 3
    with pytest.raises(LookupError, match="mine"):
        locks.whole(wrong)
    assert not locks._whole._is_owned()


def test_a_thread_that_waits_for_this_import_does_not_stop_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A handler of a signal runs inside of an import, whose lock another thread wants in the midst of its work."""
    monkeypatch.setattr(locks, "_is_importing", lambda: True)
    begun, end = threading.Event(), threading.Event()
    other = threading.Thread(target=locks.whole, args=(lambda: (begun.set(), end.wait(30)),))
    other.start()
    begun.wait()
    assert locks.whole(lambda: 3) == 3
    end.set()
    other.join()


def test_an_interrupt_that_leaves_the_import_lock_stops_no_thread() -> None:
    """Where Python is interrupted between taking its lock and the block that frees it."""
    code = """
import _imp, faulthandler, importlib
from smelt.ir import locks
faulthandler.dump_traceback_later(20, exit=True)
_imp.acquire_lock()
_imp.acquire_lock()
print(locks.whole(lambda: importlib.import_module('colorsys')).__name__, _imp.lock_held())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "colorsys False\n", done.stderr


def test_what_is_unforked_runs_in_several_threads_at_once() -> None:
    meeting = threading.Barrier(3)
    together = locks.unforked(lambda: meeting.wait(30))
    with ThreadPoolExecutor(3) as pool:
        assert sorted(pool.map(lambda _: together(), range(3))) == [0, 1, 2]

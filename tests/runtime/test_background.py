"""Programs compiled by a worker process: it never stalls, ends with its parent, and may be killed at any time."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import smelt
from smelt.backends.cpu import objects
from smelt.ir.settings import override
from smelt.runtime import Buffer, background
from smelt.runtime import kept as kept_recipes
from smelt.runtime import worker as worker_module
from smelt.runtime.background import Pending, compile_in_background
from smelt.runtime.disk import disk
from smelt.runtime.worker import _Parent as Parent

pytestmark = pytest.mark.skipif(not objects.supported(), reason="no objects are loaded on this machine")

SECONDS = 60
X = np.arange(4, dtype=np.float32)


def text_of(function: Callable[[Any], Any]) -> str:
    return smelt.make_ir(function)(smelt.array(X))


def started(function: Callable[[Any], Any]) -> Pending:
    pending = compile_in_background(text_of(function), smelt.cpu)
    assert pending is not None
    return pending


def values(pending: Pending) -> np.ndarray:
    assert pending.wait(SECONDS)
    program = pending.program()
    assert program is not None
    (found,) = program.run([Buffer.of(X, program.arguments[0])])
    return found.array


@pytest.fixture
def worker() -> Iterator[Any]:
    """The worker, alive and as new."""
    background._worker.leave()
    background._worker.deaths = 0
    yield background._worker
    background._worker.leave()
    background._worker.deaths = 0


def test_a_program_comes_back(worker: Any) -> None:
    first, second = started(lambda x: x * 2), started(lambda x: x + 1)
    np.testing.assert_array_equal(values(second), X + 1)
    np.testing.assert_array_equal(values(first), X * 2)
    program = first.program()
    assert program is first.program() and program is not None and program.seconds > 0
    assert worker.starts == 1 or worker.process.poll() is None
    third = started(lambda x: x - 2)
    assert background.wait_for_all(SECONDS) and third.ready() and not background.wait_for_all(SECONDS)


@pytest.mark.parametrize("kept", [True, False])
def test_machine_code_is_made_beside_only_where_it_is_kept(monkeypatch: pytest.MonkeyPatch, kept: bool) -> None:
    asked: list[bool] = []
    make = worker_module.compile_anew
    monkeypatch.setattr(worker_module, "compile_anew", lambda *a, prepare: asked.append(prepare) or make(*a))
    text = text_of(lambda x: x + 1)
    job = {"text": text, "located": text, "device": "cpu", "pipeline": None, "reader": kept_recipes.MLIR}
    with override(cache=kept):
        worker_module._compiled({**job, "settings": {"cache": kept}, "prepare": True})
    assert asked == [kept]


def test_functions_of_the_library_that_a_program_replaces(worker: Any) -> None:
    """Tests of programs do so (`mock.patch("json.loads")`), and evaluate arrays meanwhile."""
    json = mock.patch.multiple("json", loads=mock.Mock(return_value={}), dumps=mock.Mock(return_value=""))
    with json, mock.patch("builtins.open", side_effect=AssertionError):
        pending = started(lambda x: smelt.cumsum(x * 3.25) - 2)
        np.testing.assert_allclose(values(pending), np.cumsum(X * 3.25) - 2)
        slope = smelt.compile(smelt.grad(lambda x: (smelt.sin(x) * x * 3.25).sum()))
        for host in (X, X + 1):
            np.testing.assert_allclose(
                np.array(slope(smelt.array(host))), 3.25 * (np.sin(host) + host * np.cos(host)), rtol=1e-5
            )
            background.wait_for_all(SECONDS)


def test_several_workers_where_there_is_much_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    workers = [background._Worker() for _ in range(2)]
    monkeypatch.setattr(background, "_workers", workers)
    few = [started(lambda x: x * 2), started(lambda x: x + 1)]
    assert workers[1].process is None  # the first has little to do
    monkeypatch.setattr(background, "MUCH", 1)
    more = [started(lambda x, i=i: x - i) for i in range(2, 6)]
    assert {p._worker for p in more} == set(workers)
    for pending, wanted in zip([*few, *more], [X * 2, X + 1, X - 2, X - 3, X - 4, X - 5]):
        np.testing.assert_array_equal(values(pending), wanted)
    assert not background.wait_for_all(SECONDS)
    pids = [w.process.pid for w in workers if w.process is not None]
    assert len(set(pids)) == 2
    for w in workers:
        w.end()
    for pid in pids:
        assert_gone(pid)


def test_another_thread_starts_the_last_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two looks at the workers."""

    class StartedMeanwhile:
        queued, looks = 1, 0

        @property
        def process(self) -> object:
            self.looks += 1
            return None if self.looks == 1 else object()

    class Running:
        queued, process = 1, object()

    running = Running()
    monkeypatch.setattr(background, "_workers", [running, StartedMeanwhile()])
    monkeypatch.setattr(background, "MUCH", 1)
    assert background._least_busy() is running  # type: ignore[comparison-overlap]


def test_a_job_that_comes_with_the_end_of_its_parent_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs, end = os.pipe(), os.pipe()
    parent = Parent(os.getppid())
    parent._handle = end[0]
    answers = [[], [jobs[0], end[0]], [], [end[0]]]
    monkeypatch.setattr(select, "select", lambda *_: (answers.pop(0), [], []))
    assert parent.wait_for(jobs[0])  # both at once
    assert not parent.wait_for(jobs[0])
    for descriptor in (*jobs, *end):
        os.close(descriptor)


def test_a_worker_has_the_settings_of_this_process(worker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """And not those of the environment, which it gets, too."""
    monkeypatch.setenv("SMELT_PIPELINE", "no-such-pass")
    with override(pipeline=""):
        np.testing.assert_allclose(values(started(lambda x: smelt.exp(x) + 3)), np.exp(X) + 3, rtol=1e-6)


def test_what_is_wrong_is_left_to_the_caller(worker: Any) -> None:
    pending = compile_in_background("rubbish", smelt.cpu)
    assert pending is not None and pending.wait(SECONDS) and pending.program() is None
    np.testing.assert_array_equal(values(started(lambda x: x * 3)), X * 3)


def test_programs_without_bytes_have_no_background(monkeypatch: pytest.MonkeyPatch) -> None:
    text = text_of(lambda x: x * 2)
    assert compile_in_background(text, smelt.Device("reference")) is None
    monkeypatch.setattr(objects, "supported", lambda: False)
    assert compile_in_background(text, smelt.cpu) is None


def test_a_killed_worker_is_started_again(worker: Any) -> None:
    values(started(lambda x: x * 4))
    starts = worker.starts
    os.kill(worker.process.pid, signal.SIGKILL)
    np.testing.assert_array_equal(values(started(lambda x: x * 5)), X * 5)  # while nothing ran
    pending = started(lambda x: x * 6)
    os.kill(worker.process.pid, signal.SIGKILL)
    np.testing.assert_array_equal(values(pending), X * 6)  # while it was compiling
    assert worker.starts == starts + 2 and worker.deaths == 0


def test_after_repeated_deaths_there_is_no_background(worker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "_START", "import sys; sys.exit(1)")
    for _ in range(background.MOST_DEATHS):
        pending = compile_in_background(text_of(lambda x: x * 7), smelt.cpu)
        if pending is None:
            break
        assert pending.wait(SECONDS) and pending.program() is None
    assert worker.is_given_up and compile_in_background(text_of(lambda x: x * 7), smelt.cpu) is None


def test_large_modules_do_not_fill_the_pipe(worker: Any) -> None:
    def long(x: Any) -> Any:
        for i in range(1500):
            x = smelt.sin(x) + i
        return x

    text = text_of(long)
    assert len(text) > 1 << 17  # more than a pipe holds
    found = [compile_in_background(text + "\n" * i, smelt.cpu) for i in range(2)]
    assert all(p is not None for p in found)
    worker.leave()  # nobody waits for them
    assert all(p is not None and p.ready() and p.program() is None for p in found)


def test_what_is_on_disk_is_ready_at_once(worker: Any, tmp_path: Path) -> None:
    with override(cache=True, cache_dir=tmp_path):
        values(started(lambda x: x * 8))
        assert len(disk.entries()) == 1
        worker.leave()
        pending = started(lambda x: x * 8)
        assert pending.ready() and worker.process is None
        np.testing.assert_array_equal(values(pending), X * 8)


PARENT = """
import os, sys, time
import smelt
from smelt.runtime import background
text = smelt.make_ir(lambda x: x * 2)(smelt.zeros(4))
pending = background.compile_in_background(text, smelt.cpu)
assert pending.wait(120) and pending.program() is not None
pid = background._worker.process.pid
"""


def run(code: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", PARENT + code], stdout=subprocess.PIPE, text=True)


def assert_gone(pid: int) -> None:
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return
        if state == "Z":  # the test's machine may have nobody who buries it
            return
        time.sleep(0.02)
    raise AssertionError("the worker lives on")


@pytest.mark.parametrize("how", ["exit", "exit in the midst", "kill", "exit of a child", "kill while a child lives"])
def test_it_ends_with_its_parent(how: str) -> None:
    code = {
        "exit": "print(pid)",
        "exit in the midst": """
long = smelt.make_ir(lambda x: sum(smelt.sin(x + i) for i in range(1000)))(smelt.zeros(4))
background.compile_in_background(long, smelt.cpu)
print(pid)
""",
        "kill": "print(pid, flush=True); time.sleep(600)",
        "exit of a child": """
if os.fork() == 0:
    os._exit(0)
os.wait()
print(pid, background._worker.process.poll())
""",
        # By C's fork: Python knows nothing of the child, which keeps the parent's end of the worker's pipes open.
        "kill while a child lives": """
import ctypes
child = ctypes.PyDLL(None).fork()
if child:
    print(pid, child, flush=True)
time.sleep(600)
""",
    }[how]
    parent = run(code)
    assert parent.stdout is not None
    words = parent.stdout.readline().split()
    if how.startswith("kill"):
        parent.kill()
    try:
        assert_gone(int(words[0]))
    finally:
        if how == "kill while a child lives":
            os.kill(int(words[1]), signal.SIGKILL)
    parent.wait(SECONDS)
    parent.stdout.close()
    if how == "exit of a child":
        assert words[1] == "None"  # the child's end was not the worker's


def test_what_a_short_program_asked_for_is_there_for_the_next(tmp_path: Path) -> None:
    code = """
import os, sys
import smelt
from smelt.runtime.background import compile_in_background
os.environ["SMELT_CACHE_DIR"] = smelt.ir.settings.settings.cache_dir = sys.argv[1]
smelt.ir.settings.settings.cache = True
compile_in_background(smelt.make_ir(lambda x: x * 11)(smelt.zeros(4)), smelt.cpu)
"""
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, timeout=SECONDS)
    end = time.monotonic() + SECONDS
    with override(cache=True, cache_dir=tmp_path):
        while not disk.entries() and time.monotonic() < end:
            time.sleep(0.05)
        assert len(disk.entries()) == 1


def test_a_child_has_a_worker_of_its_own() -> None:
    code = """
other = background.compile_in_background(text.replace("2", "3", 1), smelt.cpu)
if os.fork() == 0:
    assert other is None or other.ready() and other.program() is None
    mine = background.compile_in_background(text, smelt.cpu)
    print(mine.wait(120) and mine.program() is not None and background._worker.process.pid != pid, flush=True)
    os._exit(0)
os.wait()
print(background._worker.process.pid == pid)
"""
    parent = run(code)
    assert parent.communicate(timeout=SECONDS)[0].split() == ["True", "True"]


def test_ctrl_c_is_not_the_workers(worker: Any) -> None:
    values(started(lambda x: x * 9))
    os.kill(worker.process.pid, signal.SIGINT)
    starts = worker.starts
    np.testing.assert_array_equal(values(started(lambda x: x * 10)), X * 10)
    assert worker.starts == starts and os.getsid(worker.process.pid) != os.getsid(0)


def test_a_worker_ends_when_there_is_nothing_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    from smelt.runtime import worker as process

    reading, writing = os.pipe()
    monkeypatch.setattr(process, "IDLE_SECONDS", 0.05)
    assert not process._Parent(os.getppid()).wait_for(reading)
    os.write(writing, b"x")
    assert process._Parent(os.getppid()).wait_for(reading)
    assert process._Parent(os.getpid()).wait_for(reading)  # that is no parent of this process; it has left something
    os.read(reading, 1)
    assert not process._Parent(os.getpid()).wait_for(reading)
    os.close(reading)
    os.close(writing)

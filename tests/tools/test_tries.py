"""Commands that are tried again and again: in one process, until one crashes or takes too long."""

from __future__ import annotations

import os
import re
import signal
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from smelt.tools import cli, reduce
from smelt.tools.isolate import INTERRUPTED
from smelt.tools.tries import Tries, Try
from smelt.tools.usage import UsageError

from .test_tools import GOOD

linux = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere every try is a process of its own")


@pytest.fixture
def doing(monkeypatch):
    """Lets commands of smelt do what stands in a file."""
    monkeypatch.setattr(cli, "main", lambda arguments, isolate=True: eval(Path(arguments[0]).read_text()))


@linux
def test_one_process_until_it_ends(doing, tmp_path):
    def run(code: str):
        path = tmp_path / "code"
        path.write_text(code)
        return tries.run(["smelt", str(path)])

    process = "print(__import__('os').getpid()) or 0"
    with Tries(2.0) as tries:
        first = run(process)
        assert first.status == 0 and int(first.printed) != os.getpid()
        assert run(process) == first and run("print('said') or 3").printed == b"said\n"
        assert run("3").status == 3 and run("3").printed == b""
        crashed = run("__import__('os').kill(__import__('os').getpid(), 9)")
        assert crashed.status == -signal.SIGKILL and b"crashed with SIGKILL" in crashed.printed
        second = run(process)
        assert second.status == 0 and second.printed != first.printed
        assert run("__import__('time').sleep(60)").status is None
        assert run(process).printed not in (first.printed, second.printed)
        raised = run("1 / 0")
        assert raised.status == 1 and b"ZeroDivisionError" in raised.printed
    for found in first, second:
        with pytest.raises(ProcessLookupError):
            os.kill(int(found.printed), 0)


@pytest.mark.skipif(os.name != "posix", reason="TMPDIR")
@pytest.mark.parametrize("own", [False, pytest.param(True, marks=linux)])
def test_temporary_files_of_commands_go_with_them(own, doing, tmp_path, monkeypatch):
    """Of those that crash or take too long, too, which delete none themselves."""
    kept = tmp_path / "kept"
    kept.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(kept))
    with Tries(1.0) as tries:
        for ending in ("0", "os.kill(os.getpid(), 9)", "__import__('time').sleep(60)"):
            code = f"[os := __import__('os'), __import__('tempfile').mkdtemp(), {ending}][-1]"
            path = tmp_path / "code"
            path.write_text(code)
            tries.run(["smelt", str(path)] if own else [sys.executable, "-c", code])
        assert len([*kept.rglob("tmp*")]) == 3 + own  # one that crashes here runs again by itself
    assert not [*kept.iterdir()]


@pytest.mark.skipif(os.name != "posix", reason="groups of processes")
def test_what_a_command_starts_ends_with_it(tmp_path):
    """One that waits for a process that it started was waited for as long as that ran."""
    started = tmp_path / "started"
    code = (
        "import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']); "
        f"open({str(started)!r}, 'w').write(str(p.pid)); p.wait()"
    )
    start = time.monotonic()
    with Tries(3.0) as tries:
        assert tries.run([sys.executable, "-c", code]).status is None
    assert time.monotonic() - start < 30
    for _ in range(100):
        try:
            os.kill(int(started.read_text()), 0)
        except ProcessLookupError:
            return
        state = Path(f"/proc/{started.read_text()}/stat").read_text().split()[2] if sys.platform == "linux" else ""
        if state == "Z":  # ended, and nobody has asked yet
            return
        time.sleep(0.05)
    raise AssertionError("it still runs")


def test_what_cannot_be_run():
    with Tries(1.0) as tries, pytest.raises(UsageError, match="/nowhere/command cannot be run"):
        tries.run(["/nowhere/command"])


@linux
def test_commands_of_smelt(tmp_path):
    path, wrong = tmp_path / "f.mlir", tmp_path / "wrong.mlir"
    path.write_text(GOOD)
    wrong.write_text("func.func @main(")
    with Tries(60.0) as tries:
        for _ in range(2):
            good, bad = tries.run(["smelt-opt", str(path), "--cse"]), tries.run(["smelt-opt", str(wrong)])
            assert good.status == 0 and b"smelt.mul" in good.printed
            assert bad.status == 1 and bad.printed.startswith(f"{wrong}:1".encode())
        assert tries.run(["smelt", "nothing"]).status == 2


NAMES = [("exp", "sin")[i % 9 == 0] for i in range(60)]
CHAIN = "\n".join(f'%{i + 1} = "smelt.{n}"(%{i}) : (tensor<3xf32>) -> tensor<3xf32>' for i, n in enumerate(NAMES))
LONG = f"""func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {{
  %0 = "smelt.neg"(%x) : (tensor<3xf32>) -> tensor<3xf32>
  {CHAIN}
  return %60 : tensor<3xf32>
}}"""


@pytest.mark.parametrize("ending", ["interrupted", "time"])
def test_a_search_that_ends_early_writes_what_it_has(ending, monkeypatch, tmp_path, capsys):
    """By Ctrl-C, or after as long as it may take."""
    path, small, runs = tmp_path / "f.mlir", tmp_path / "small.mlir", []
    path.write_text(LONG)

    def run(self, command):
        runs.append(Path(command[-1]).read_text())
        if len(runs) == 6 and ending == "interrupted":
            raise KeyboardInterrupt
        return Try(int(runs[-1].count("smelt.sin") > 2), b"")

    monkeypatch.setattr(Tries, "run", run)
    clock = (lambda: 0.05 * len(runs)) if ending == "time" else (lambda: 0.0)
    monkeypatch.setattr(reduce, "time", SimpleNamespace(monotonic=clock))
    command = ["reduce", str(path), "-o", str(small), "--total=0.3", "--", "a command"]
    assert cli.main(command, isolate=False) == (INTERRUPTED if ending == "interrupted" else 0)
    said = capsys.readouterr().err
    assert re.search(r"(interrupted: |after 0.3 s \(--total\) )\d+ ops are left after \d+ runs", said), said
    assert small.read_text() in runs and small.read_text().count("smelt.sin") > 2 and len(small.read_text()) < len(LONG)


def test_progress_is_told(monkeypatch, tmp_path, capsys):
    path = tmp_path / "f.mlir"
    path.write_text(LONG)
    monkeypatch.setattr(Tries, "run", lambda self, command: Try(int("smelt.neg" in Path(command[-1]).read_text()), b""))
    monkeypatch.setattr(reduce, "QUIET", 0.0)
    assert cli.main(["reduce", str(path), "--", "a command"], isolate=False) == 0
    assert re.search(r"^\d+ runs in \d+ s: \d+ ops are left$", capsys.readouterr().err, re.MULTILINE)

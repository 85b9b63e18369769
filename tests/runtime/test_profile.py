"""Profiles: every kernel, op and compile with its place in the user's program; nothing outside of a block."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir import profiling
from smelt.ir.errors import ArgumentTypeError, ProfileError
from smelt.ir.settings import override
from smelt.runtime.profile import trace

HERE = os.path.abspath(__file__)


def line_of(word: str) -> str:
    """The place of the line of this file that ends with a comment."""
    for number, line in enumerate(Path(HERE).read_text(encoding="utf-8").split("\n"), 1):
        if line.endswith(f"# {word}"):
            return f"{HERE}:{number}"
    raise AssertionError(word)


def matrix(n: int = 64) -> smelt.array:
    return smelt.array(np.random.default_rng(0).uniform(0.5, 1, (n, n)).astype(np.float32))


def attention(q: smelt.array, v: smelt.array) -> smelt.array:
    scores = q @ q.T  # scores
    return smelt.softmax(scores, axis=-1) @ v  # attention


def test_kernels_of_compiled_functions_one_by_one() -> None:
    x = matrix()
    function = smelt.compile(attention)
    want = np.asarray(function(x, x))  # a program that is there before is compiled anew, with kernels apart
    with smelt.profile(prints=False) as found:
        for _ in range(3):
            have = np.asarray(function(x, x))
    np.testing.assert_allclose(have, want, rtol=1e-6)
    program = function.trace(x, x).lower().compile()
    kernels = Counter(e.name for e in found.events if e.kind == "kernel")
    assert kernels == Counter({k.name: 3 * n for k, n in Counter(program.kernels).items()})
    assert {e.line for e in found.events if e.kind == "kernel"} <= {line_of("scores"), line_of("attention")}
    assert line_of("attention") in {e.line for e in found.events}
    rows = found.rows()
    assert sum(row.share for row in rows) == pytest.approx(1)
    assert [row.seconds for row in rows] == sorted([row.seconds for row in rows], reverse=True)
    (compiled,) = [row for row in rows if row.kind == "compile"]
    assert compiled.name == "compile attention" and compiled.calls == 1
    passes = [e for e in found.events if e.kind == "pass"]
    (whole,) = [e for e in found.events if e.kind == "compile"]
    assert {"fuse", "plan-buffers"} <= {e.name for e in passes}
    assert all(whole.start <= e.start and e.start + e.seconds <= whole.start + whole.seconds + 1e-3 for e in passes)
    count = len(found.events)
    function(x, x)
    assert len(found.events) == count and profiling.active is None


def test_lines_of_kernels_in_the_simulator() -> None:
    def f(x: smelt.array) -> tuple[smelt.array, smelt.array]:
        y = smelt.exp(x) * 2
        return smelt.sort(y), y.sum(axis=0)  # sorted and summed

    with smelt.stream(smelt.Device("metal:sim")):
        function, x = smelt.compile(f), matrix(8)
        with smelt.profile(prints=False) as found:
            smelt.eval(function(x))
    lines = {e.line for e in found.events if e.kind == "kernel"}
    assert os.path.basename(line_of("sorted and summed")) in lines
    assert "" not in lines


def test_ops_of_lazy_arrays() -> None:
    x = matrix()
    with smelt.profile(prints=False) as found:
        y = smelt.exp(x) @ x  # lazy
        smelt.eval(y)
        smelt.eval(smelt.grad(lambda a: smelt.sum(smelt.sin(a)))(x))  # grad
    ops = {(e.name, e.line) for e in found.events if e.kind == "op"}
    assert {("exp", line_of("lazy")), ("dot_general", line_of("lazy"))} <= ops
    assert ("cos", line_of("grad")) in ops


@pytest.mark.parametrize("tier", ["ops", "strided", "program"])
def test_every_tier_has_the_same_values(tier: str) -> None:
    x = matrix(200)

    def compute() -> Any:
        y = smelt.tanh(x * 2 + 1)
        return np.asarray(smelt.sum(y * smelt.exp(-y), axis=1))

    with override(tier=tier, small_work=0):
        want = compute()
        with smelt.profile(prints=False) as found:
            have = compute()
        np.testing.assert_allclose(have, want, rtol=1e-5)
        assert sum(row.seconds for row in found.rows()) > 0
        np.testing.assert_allclose(compute(), want, rtol=1e-5)


def test_steps_on_the_host_and_in_loops() -> None:
    def loop(x: smelt.array) -> Any:
        return smelt.scan(lambda c, row: (c * 0.5 + smelt.sort(row), c.sum()), x[0], x)  # loop

    x = matrix(16)
    with smelt.profile(prints=False) as found:
        smelt.eval(smelt.compile(loop)(x))
    (sort,) = [row for row in found.rows() if row.name == "sort"]
    assert sort.kind == "host" and sort.calls == 16 and sort.line == line_of("loop")


def test_the_table_and_the_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "trace.json"
    x = matrix()
    with smelt.profile(path) as found:
        smelt.eval(smelt.exp(x))  # table
    header, row, *_ = capsys.readouterr().out.split("\n")
    assert header.split() == ["kernel", "or", "op", "kind", "calls", "total", "ms", "share", "line"]
    assert row.split()[:3] == ["exp", "op", "1"] and row.endswith(line_of("table"))
    written = json.loads(path.read_text(encoding="utf-8"))
    assert written == json.loads(json.dumps(trace(found.events)))
    for event in written["traceEvents"]:
        assert event["ph"] == "X" and event["ts"] >= 0 and event["dur"] >= 0 and event["tid"]
    assert {e["args"]["line"] for e in written["traceEvents"]} == {line_of("table")}


def test_one_at_a_time_and_ended_by_errors() -> None:
    with smelt.profile(prints=False):
        with pytest.raises(ProfileError, match="a profile is being taken already"), smelt.profile():
            pass
        assert profiling.active is not None
    with pytest.raises(KeyError), smelt.profile():
        raise KeyError
    assert profiling.active is None


def test_a_number_is_no_path() -> None:
    """It would be a file that is open already."""
    with pytest.raises(ArgumentTypeError, match="path must be a path, is 3"):
        smelt.profile(3)
    with smelt.profile(prints=False) as found, pytest.raises(ArgumentTypeError, match="path must be a path, is 1"):
        found.save(1)


def test_other_threads_are_in_it() -> None:
    x = matrix()
    with smelt.profile(prints=False) as found:
        threads = [threading.Thread(target=lambda: smelt.eval(smelt.exp(x) + 1)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sum(e.name == "exp" for e in found.events) == 4


def test_of_a_process(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    program = tmp_path / "program.py"
    program.write_text(
        "import os, smelt\n"
        "x = smelt.ones((64, 64))\n"
        "smelt.eval(smelt.exp(x))\n"
        "smelt.eval(smelt.compile(lambda x: smelt.sin(x) @ x)(x))\n"
        "if os.fork() == 0: raise SystemExit  # writes nothing\n"
        "os.wait()\n",
        encoding="utf-8",
    )
    environment = {**os.environ, "SMELT_PROFILE": str(path), "SMELT_CACHE_DIR": str(tmp_path / "cache")}
    subprocess.run([sys.executable, str(program)], check=True, env=environment)
    events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    found = {(e["name"], e["cat"], e["args"]["line"]) for e in events}
    assert ("exp", "op", f"{program}:3") in found and ("compile lambda_", "compile", f"{program}:4") in found
    assert ("kernel_sin", "kernel", f"{program}:4") in found
    environment["SMELT_PROFILE"] = str(tmp_path / "nowhere" / "trace.json")
    done = subprocess.run([sys.executable, str(program)], env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and "cannot be written" in done.stderr

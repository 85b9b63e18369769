"""The benchmark command, without the other frameworks."""

from __future__ import annotations

import fnmatch
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import __main__ as command
from benchmarks import every
from benchmarks.roofline import __main__ as roofline
from benchmarks.roofline import families
from benchmarks.stalls.command import Machine, disagreements, waits_table
from benchmarks.stalls.program import programs
from benchmarks.workload import workloads


def test_every_workload_has_a_title() -> None:
    assert workloads
    for workload in workloads.values():
        assert workload.title and workload.unit in command.SCALE


def test_unknown_names_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["gelo"])
    assert "unknown workload 'gelo'" in capsys.readouterr().err


def test_absent_rivals_are_noted_and_results_checked(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    arguments = ["small-call", "compile", "matmul", "--seconds", "0.05", "--rival-python", str(tmp_path / "python")]
    command.main(arguments)
    out = capsys.readouterr().out
    assert "jax is not installed" in out
    assert "failed" not in out
    assert out.count("**") == 6, out


def test_a_wrong_result_is_not_timed() -> None:
    workload = workloads["softmax"]
    x = workload.arrays(np.random.default_rng(0))[0][:4]
    right = workload.expected(x)
    workload.check(right, x)
    with pytest.raises(AssertionError):
        workload.check(right * 1.1, x)


def test_rows_give_ratios() -> None:
    times = {"least": 0.001, "smelt": 0.002, "jax": 0.008}
    replies = {name: {"times": [seconds]} for name, seconds in times.items()} | {"mlx": {"error": "why"}}
    cells = command.row(workloads["softmax"], replies, ["smelt", "mlx", "jax"])
    assert cells[1:] == ["1", "**2** (2.00× least)", "failed", "8 (4.0×)"]


def test_programs_that_make_a_compiler_wait(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    names = ["op-evaluated", "tokens-viewed", "mlp-fixed"]
    command.main(["stalls", *names, "--scale", "0.05", "--rival-python", str(tmp_path / "python"), "--cpu"])
    out = capsys.readouterr().out
    assert "mlx is not installed" in out
    assert "failed" not in out and ">" not in out, out
    assert out.count(" / ") >= 2 * len(names)


def test_programs_are_one_text_for_both_frameworks() -> None:
    assert len({p.title for p in programs.values()}) == len(programs)
    for program in programs.values():
        assert not {"smelt", "mlx"} & set(program.absent), program.name


def test_numbers_that_differ_are_told() -> None:
    replies = {
        name: {"value": value, "steps": 2, "runs": [{"steps": 2}]}
        for name, value in {"smelt": 1.0, "mlx": 1.001, "jax": 1.2}.items()
    }
    assert disagreements(programs["logistic"], replies) == ["logistic: jax computes 1.2, smelt 1"]
    replies["jax"]["runs"][0]["steps"] = 1  # it came to no end
    assert disagreements(programs["logistic"], replies) == []


def test_tables_of_programs_with_gaps() -> None:
    def run(seconds: float, steps: int) -> dict[str, float]:
        return {"seconds": seconds, "cpu": 0.0, "longest": 1.0, "steps": steps, "memory": 10**6, "compiles": 2}

    replies = {
        "smelt": {"steps": 10, "runs": [run(1.0, 10), run(0.5, 10)]},
        "mlx": {"steps": 10, "runs": [run(8.0, 4)]},
        "torch": {"error": "why"},
        "jax": {"absent": "why not"},
    }
    chosen, columns = [programs["logistic"]], list(replies)
    text = Machine().times_table(chosen, {"logistic": replies}, columns)
    assert "| 1 / 0.5 | > 8 (4/10) / – | failed |  | 20× |" in text
    assert "0" in Machine(clock="cpu").times_table(chosen, {"logistic": replies}, columns)
    assert "| 1000, 1 | 1000, 1 |  |  | 2 / 2 |" in waits_table(chosen, {"logistic": replies}, columns)


def test_rows_of_the_roofline_have_the_right_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(families, "SHAPES", {"large": (16, 16)})
    for row in families.rows():
        if row.dtype == "float32":
            found = roofline.measure(row, 0.0, check=True)
            assert found.nbytes >= 16 * 16 * 4 and found.fraction > 0, row.name


def test_reasons_of_the_roofline_are_of_rows_that_there_are() -> None:
    names = [row.name for row in families.rows()]
    for pattern in families.REASONS:
        assert fnmatch.filter(names, pattern), pattern
    assert next(row for row in families.rows() if row.name == "cumsum of rows, odd float32").reason
    assert not next(row for row in families.rows() if row.name == "negative, odd float32").reason


def test_the_roofline_lists_the_slowest_first(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(families, "SHAPES", {"large": (16, 16)})
    roofline.main(["--only", "add a", "--seconds", "0"])
    fractions = [float(line.split("**")[1]) for line in capsys.readouterr().out.splitlines() if "**" in line]
    assert len(fractions) > 10 and fractions == sorted(fractions)


def test_every_function_is_timed_by_its_signature(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    names = {case.name for case in every.cases([], ["float32"])}
    assert {"sin", "add", "max", "softmax", "linalg.svd", "fft.rfft"} <= names
    assert not names & {"einsum", "load", "random.uniform"}
    file = tmp_path / "times.json"
    every.main(["negative", "--dtypes", "float32", "--libraries", "numpy,jax", "--seconds", "0.001", "--least", "0",
                "--rival-python", sys.executable, "--json", str(file)])  # fmt: skip
    times = json.loads(file.read_text())
    assert [len(cells) for cells in times.values()] == [3, 3, 3]
    assert all(isinstance(cells["smelt"], float) and isinstance(cells["numpy"], float) for cells in times.values())
    assert "| negative 1000000 float32 |" in capsys.readouterr().out

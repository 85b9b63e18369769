"""Versions, and what is left behind by passes of other packages that crash, hang or fail."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import smelt
from smelt.ir.settings import override
from smelt.runtime.disk import disk
from smelt.tools import cli
from smelt.tools import opt as opt_tool

PLUGINS = """
import os
import time
from smelt.passes import Pass, register_pass

@register_pass("test-crash")
class Crash(Pass):
    def run(self, module, statistics):
        os.abort()

@register_pass("test-hang")
class Hang(Pass):
    def run(self, module, statistics):
        time.sleep(600)

@register_pass("test-refuse")
class Refuse(Pass):
    def run(self, module, statistics):
        from smelt.ir.errors import IRError
        raise IRError("not this one")

@register_pass("test-fail")
class Fail(Pass):
    def run(self, module, statistics):
        raise KeyError("no such thing")
"""
SOURCE = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "smelt.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A module, and a package with passes."""
    (tmp_path / "tmp").mkdir()
    (tmp_path / "f.mlir").write_text(SOURCE)
    (tmp_path / "some_passes.py").write_text(PLUGINS)
    info = tmp_path / "some_passes-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: some-passes\nVersion: 1.0\n")
    names = {"test-crash": "Crash", "test-hang": "Hang", "test-fail": "Fail", "test-refuse": "Refuse"}
    entries = "".join(f"{name} = some_passes:{cls}\n" for name, cls in names.items())
    (info / "entry_points.txt").write_text("[smelt.passes]\n" + entries + "test-stale = nowhere:Nothing\n")
    return tmp_path


def python(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path, "TMPDIR": str(folder / "tmp"), **variables}
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=False, timeout=120, cwd=folder,
        env=environment,
    )  # fmt: skip


def opt(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return python(folder, "-m", "smelt.tools.opt", "f.mlir", *arguments)


FAILURES = {
    "test-crash": ((), "pass test-crash crashed with SIGABRT", "the process ended in this pass, or was ended"),
    "test-hang": (("--pass-timeout", "1"), "pass test-hang was still busy after 1 s; gave up", "the process ended"),
    "test-fail": ((), "the pass test-fail failed: KeyError: 'no such thing'; at ", "the pass test-fail failed"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_reproducer_is_left(folder: Path, name: str) -> None:
    options, reported, fails = FAILURES[name]
    done = opt(folder, "--cse", f"--{name}", "--dce", *options)
    assert done.returncode == 1 and reported in done.stderr and "Traceback" not in done.stderr
    (left,) = (folder / "tmp").iterdir()
    assert f"f.mlir: note: reproducer: {left}" in done.stderr
    first, second, rest = left.read_text().split("\n", 2)
    assert first == f"// RUN: smelt-opt %s --pass-pipeline='{name}'" and second.startswith(f"// fails: {fails}")
    assert '"smelt.exp"' in rest


def test_a_reproducer_is_left_where_it_is_told(folder: Path) -> None:
    done = opt(folder, "--test-crash", "--mlir-pass-pipeline-crash-reproducer=kept.mlir")
    assert "f.mlir: note: reproducer: kept.mlir" in done.stderr and not list((folder / "tmp").iterdir())
    assert (folder / "kept.mlir").read_text().startswith("// RUN: smelt-opt %s --pass-pipeline='test-crash'")


@pytest.mark.parametrize("name", ["test-crash", "test-fail"])
def test_a_reproducer_is_left_in_process(folder: Path, name: str) -> None:
    code = f"import smelt; smelt.compile(smelt.exp, pipeline='cse,{name}')(smelt.zeros(3))"
    done = python(folder, "-c", code, SMELT_DUMP_IR="ir")
    assert done.returncode != 0
    names = sorted(path.name for path in folder.glob("ir/*/*"))
    assert names == ["0000-input.mlir", "0001-cse-unchanged.mlir", f"0002-{name}-reproducer.mlir"]


def test_nothing_is_left_by_passes_that_are_done_or_refuse_a_module(folder: Path) -> None:
    assert opt(folder, "--cse", "--dce").returncode == 0
    assert opt(folder, "--cse", "--test-stale").returncode == 1
    assert opt(folder, "--cse", "--test-refuse").returncode == 1
    assert list((folder / "tmp").iterdir()) == []


def test_list_passes_warns_in_a_process(folder: Path) -> None:
    done = python(folder, "-m", "smelt.tools.opt", "--list-passes")
    assert done.returncode == 0 and "--test-crash" in done.stdout
    assert done.stderr.startswith("smelt-opt: warning: the pass 'test-stale' of nowhere:Nothing does not load")


@pytest.mark.parametrize("arguments", ["-m smelt.tools.opt f.mlir", "-m smelt diff f.mlir g.mlir"])
def test_a_reader_that_leaves(folder: Path, arguments: str) -> None:
    """``smelt-opt f.mlir | true``: nothing is said of it."""
    (folder / "g.mlir").write_text(SOURCE.replace("exp", "sin"))
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as gone:
        done = subprocess.run(
            [sys.executable, *arguments.split()], stdout=gone, stderr=subprocess.PIPE, text=True, check=False,
            timeout=120, cwd=folder,
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_programs_that_end_the_process(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "ends.py"
    path.write_text("raise SystemExit(3)")
    assert cli.main(["dump", f"{path}:f", "f32[3]"]) == 1
    assert "cannot be imported: SystemExit: 3" in capsys.readouterr().err
    path.write_text("def f(x):\n    raise KeyboardInterrupt\n")
    assert cli.main(["dump", f"{path}:f", "f32[3]"]) == 130
    assert capsys.readouterr().err == ""


def test_a_pipeline_is_read_whatever_stage_is_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "f.py"
    path.write_text("def f(x):\n    return x + 1\n")
    assert cli.main(["dump", f"{path}:f", "f32[3]", "--pass-pipeline=cse{by=2}"]) == 1
    assert "pass cse has no option" in capsys.readouterr().err


def test_dumps_where_nothing_can_be_written(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    taken = folder / "f.mlir"
    command = [str(taken), "--cse", f"--mlir-print-ir-tree-dir={taken}/x", "--mlir-print-ir-after-all"]
    assert opt_tool.main(command, isolate=False) == 1
    assert f"{taken}/x/builtin_module_no-symbol-name/0_cse.mlir: error: cannot be written" in capsys.readouterr().err


VERSIONS = {
    "-m smelt --version": "smelt", "-m smelt.tools --version": "smelt", "-m smelt.tools.opt --version": "smelt-opt",
    "-m smelt opt --version": "smelt-opt",
}  # fmt: skip


@pytest.mark.parametrize("arguments", VERSIONS)
def test_versions_load_no_bindings(tmp_path: Path, arguments: str) -> None:
    done = python(tmp_path, "-X", "importtime", *arguments.split())
    assert (done.returncode, done.stdout) == (0, f"{VERSIONS[arguments]} {smelt.__version__}\n")
    assert not [line for line in done.stderr.splitlines() if line.split("|")[-1].strip().startswith("torch_mlir")]


def test_the_version_is_that_of_the_project() -> None:
    project = (Path(__file__).parent.parent.parent / "pyproject.toml").read_text(encoding="utf-8")
    assert f'\nversion = "{smelt.__version__}"\n' in project


def test_cache_shows_and_clears(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with override(cache=True, cache_dir=tmp_path):
        assert cli.main(["cache"]) == 0 and "programs  0, 0.0 MB of at most 1,073.7 MB" in capsys.readouterr().out
        assert disk.put("one", bytes(150_000)) and disk.put("two", bytes(150_000))
        assert cli.main(["cache"]) == 0
        shown = capsys.readouterr().out
        assert f"folder    {disk.place}\n" in shown and "programs  2, 0.3 MB" in shown and "used      between" in shown
        assert cli.main(["cache", "--clear"]) == 0 and "deleted 2 programs, 0.3 MB" in capsys.readouterr().out
        assert not disk.entries()
    with override(cache=False, cache_dir=tmp_path):
        assert cli.main(["cache"]) == 0 and "(off: SMELT_CACHE=0)" in capsys.readouterr().out

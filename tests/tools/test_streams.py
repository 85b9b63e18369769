"""Commands with standard streams that are closed, full, or of another encoding, and files whose names are no text."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from smelt.ir import text
from smelt.tools import cli

IR = """
func.func @main() -> tensor<2xf32> {
  %0 = "smelt.constant"() {dtype = f32, value = 1 : i64} : () -> tensor<f32>
  %1 = "smelt.broadcast"(%0) {shape = array<i64: 2>} : (tensor<f32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}
"""
METAL = "kernel void k(device float* x [[buffer(0)]]) { \u00e9 = 1; }\n"
FUNCTION = "import smelt\n\ndef f(x):\n    return smelt.exp(x) * 2\n\ndef leaves(x):\n    raise SystemExit(3)\n"
AT_ONCE = """
import os
import threading

def at_once(x):
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    os._exit(0)

def apart(x):
    thread = threading.Thread(target=os._exit, args=(0,))
    thread.start()
    thread.join()
    return x
"""
#: By what is closed: commands, and what they say of it.
CLOSED = {
    1: (
        "opt {ir} --cse", "opt --list-ops", "opt --version", "run {ir}", "dump {py}:f f32[4]",
        "view {py}:f f32[4] -o -", "reduce {ir} -- false {{}}", "cache", "--version",
    ),
    0: ("opt -", "run -", "verify -", "diff {ir} -", "check-metal -", "view - -o {page}"),
}  # fmt: skip
SAID = {1: "<stdout>: error: cannot be written: ", 0: ""}


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    content = {"ir": IR, "py": FUNCTION + AT_ONCE, "metal": METAL}
    found = {"page": str(tmp_path / "page.html")}
    for kind, written in content.items():
        path = tmp_path / f"given.{'mlir' if kind == 'ir' else kind}"
        path.write_text(written, encoding="utf-8")
        found[kind] = str(path)
    return found


def smelt(
    command: list[str], redirected: str = "", environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """A command as a shell starts it, with buffered output, whatever this process has."""
    environment = {**os.environ, **(environment or {})}
    environment.pop("PYTHONUNBUFFERED", None)
    run = ["sh", "-c", f'exec "$@" {redirected}', "sh", sys.executable, "-m", "smelt.tools", *command]
    return subprocess.run(
        run, capture_output=True, env=environment, encoding="utf-8", errors="surrogateescape", timeout=120, check=False
    )


def quiet(done: subprocess.CompletedProcess[str]) -> bool:
    """Whether nothing of Python's own is said."""
    return not any(x in done.stdout + done.stderr for x in ("Traceback", "internal error", "Exception ignored"))


@pytest.mark.skipif(sys.platform == "win32", reason="needs a shell")
@pytest.mark.parametrize(("number", "command"), [(n, c) for n, commands in CLOSED.items() for c in commands])
def test_a_closed_stream_is_an_error_message(files: dict[str, str], number: int, command: str) -> None:
    done = smelt(command.format(**files).split(), "<&-" if number == 0 else ">&-")
    assert done.returncode in (1, 2) and quiet(done), done
    assert SAID[number] in done.stderr and "error: " in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="needs a shell")
def test_what_is_written_to_a_file_needs_no_streams(files: dict[str, str]) -> None:
    made = f"{files['ir']}.out"
    done = smelt(["opt", files["ir"], "--cse", "-o", made], "<&- >&- 2>&-")
    assert done.returncode == 0 and "func.func @main" in Path(made).read_text()
    done = smelt(["opt", files["ir"], "--cse"], "2>&-")
    assert done.returncode == 0 and "func.func @main" in done.stdout


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
@pytest.mark.parametrize("command", ["cache", "--version", "opt --version", "doctor --device reference"])
def test_what_is_held_back_until_the_end_is_missed(files: dict[str, str], command: str) -> None:
    done = smelt(command.split(), "> /dev/full")
    assert done.returncode == 1 and quiet(done) and SAID[1] in done.stderr, done


def test_pipes_carry_text_as_files_do(files: dict[str, str]) -> None:
    """Whatever the encoding of the terminal: what one command writes, the next one reads."""
    environment = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    named = Path(files["ir"])
    named.write_text(named.read_text().replace("@main", '@"m\u00e9"'), encoding="utf-8")
    commands = {
        "opt": ["opt", files["ir"], "--short"], "view": ["view", f"{files['py']}:f", "f32[4]", "-o", "-"],
        "metal": ["check-metal", files["metal"]], "rewrites": ["opt", "--list-rewrites"],
    }  # fmt: skip
    for name, command in commands.items():
        done = smelt(command, environment=environment)
        assert done.returncode == (name == "metal") and quiet(done), done
        assert not done.stdout.isascii() or name == "metal", name


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are bytes on Linux alone")
def test_names_that_are_no_text(files: dict[str, str], tmp_path: Path) -> None:
    ir, py = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.mlir"), os.fsdecode(os.fsencode(tmp_path) + b"/\xff.py")
    accented, quoted = str(tmp_path / "\u00e9.mlir"), str(tmp_path / 'a\\u"0.mlir')
    os.link(files["py"], py)
    for name in (ir, accented, quoted):
        os.link(files["ir"], name)
    broken = os.fsdecode(os.fsencode(tmp_path) + b"/\xfe.mlir")
    Path(broken).write_text("func.func @main(")
    works = (
        ["opt", ir, "--cse"], ["run", ir], ["diff", ir, files["ir"]],
        *(["view", name, "-o", files["page"]] for name in (ir, accented, quoted)),
        ["view", f"{py}:f", "f32[4]", "-o", files["page"]], ["dump", f"{py}:f", "f32[4]", "--remarks"],
    )  # fmt: skip
    for command in works:
        done = smelt(command)
        assert done.returncode == 0 and quiet(done), done
    for command in (["opt", broken], ["run", broken], ["view", broken, "-o", files["page"]], ["dump", f"{py}:g"]):
        done = smelt(command)
        assert done.returncode == 1 and quiet(done) and "error: " in done.stderr, done


def test_a_function_that_ends_the_process_is_told(files: dict[str, str]) -> None:
    for command in (["dump"], ["view", "-o", files["page"]]):
        done = smelt([*command, f"{files['py']}:leaves", "f32[4]"])
        assert done.returncode == 1 and "leaves raised SystemExit: 3; at " in done.stderr, done
        done = smelt([*command, f"{files['py']}:at_once", "f32[4]"])
        assert done.returncode == 1 and "at_once raised SystemExit: os._exit(0); at " in done.stderr, done
        done = smelt([*command, f"{files['py']}:apart", "f32[4]"])
        assert done.returncode == 1 and "raised SystemExit: os._exit(0) in another thread" in done.stderr, done


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="needs a device that never ends")
@pytest.mark.parametrize("command", ["opt", "run", "verify", "view", "reduce", "diff"])
def test_what_never_ends_is_refused(
    run: Any, files: dict[str, str], command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text, "MAX_BYTES", 1000)
    more = {"view": ["-o", files["page"]], "reduce": ["--", "false"], "diff": [files["ir"]]}.get(command, [])
    code, _, err = run(command, "/dev/zero", *more, main=cli.main)
    assert code in (1, 2) and "/dev/zero: error: there are more than 4000 bytes" in err

"""Plant faults one at a time and see whether a test fails: ``python -m tests.faults [name ...]``.

Each fault is planted in a copy of the checkout. The tests named beside it in the catalogue run first; if they
pass, so does the rest of the suite, unless ``--near`` says to leave that out. Prints a line a fault and a
closing count; exits with 1 if a fault went unnoticed that the catalogue does not list as unnoticed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .catalogue import FAULTS, ROOMS, ROOT, Fault, planted

#: What a copy leaves out: what is no source.
_NO_SOURCE = {".git", ".venv", ".bench-venv", "build", "__pycache__", ".hypothesis"}
#: A test that runs for longer than this hangs, which is noticed too.
SECONDS = 3600


def copy_of(root: Path, target: Path) -> Path:
    """A copy of the checkout in `target`; the folder that has it as the package `smelt`."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=root, capture_output=True, text=True
    )
    names = listed.stdout.splitlines() if listed.returncode == 0 else [
        str(p.relative_to(root)) for p in root.rglob("*") if p.is_file() and not _NO_SOURCE & set(p.parts)
    ]  # fmt: skip
    for name in names:
        source = root / name
        if source.is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            (target / name).write_bytes(source.read_bytes())
    package = target / "build" / "fault" / "smelt"
    package.mkdir(parents=True)
    for item in (target / "frontend").iterdir():
        (package / item.name).symlink_to(item)
    for room in ROOMS:
        if room != "frontend":
            (package / room).symlink_to(target / room)
    return package.parent


def run_tests(checkout: Path, packages: Path, tests: Sequence[str]) -> tuple[bool, str]:
    """Whether `tests` pass (all of them if there are none), and what failed first."""
    environment = {**os.environ, "PYTHONPATH": str(packages), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    try:
        done = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return False, "a test that never ends"
    lines = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    if done.returncode == 0:
        return True, ""
    return False, lines[0].removeprefix("FAILED ") if lines else f"exit code {done.returncode}"


def noticed(fault: Fault, near: bool) -> tuple[bool, str]:
    """Whether a test fails with the fault in place, and passes without it; which one."""
    with tempfile.TemporaryDirectory(prefix="smelt-fault-") as folder:
        checkout, plain = Path(folder, "planted"), Path(folder, "plain")
        packages, plain_packages = copy_of(ROOT, checkout), copy_of(ROOT, plain)
        for edit in fault.edits:
            path = checkout / edit.file
            path.write_text(planted(path.read_text(encoding="utf-8"), edit), encoding="utf-8")
        unfit: list[str] = []  # tests that fail without the fault too
        # One after the other: pytest runs a file that lies in a folder of the command line with that folder.
        for tests in [*((place,) for place in fault.tests), *([] if near else [()])]:
            while True:
                passed, first = run_tests(checkout, packages, [*tests, *(f"--deselect={name}" for name in unfit)])
                if passed:
                    break
                name = first.partition(" - ")[0]
                if "::" not in name or run_tests(plain, plain_packages, [name])[0]:
                    return True, first
                unfit.append(name)
        return False, f"{unfit} fail without it too" if unfit else ""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("names", nargs="*", help="faults of the catalogue; all of them if none is named")
    parser.add_argument("--near", action="store_true", help="run only the tests named beside each fault")
    parser.add_argument("--list", action="store_true", help="list the faults and stop")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="faults at a time")
    options = parser.parse_args(arguments)
    chosen = [f for f in FAULTS if not options.names or f.name in options.names]
    if options.list:
        for fault in chosen:
            print(f"{fault.name:32} {fault.edits[0].file:44} {fault.what}")
        return 0

    def work(fault: Fault) -> bool:
        start = time.perf_counter()
        caught, first = noticed(fault, options.near)
        word = "noticed" if caught else "UNNOTICED"
        print(f"{word:10} {time.perf_counter() - start:6.0f} s  {fault.name:32} {first[:100]}", flush=True)
        return caught

    with ThreadPoolExecutor(options.jobs) as pool:
        found = list(pool.map(work, chosen))
    print(f"{sum(found)} of {len(found)} planted faults were noticed")
    return 0 if all(found) else 1


if __name__ == "__main__":
    raise SystemExit(main())

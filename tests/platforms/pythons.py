"""Tests on every Python from 3.10 on: `python -m tests.platforms.pythons [--on PYTHON ...] TESTS ...`.

Without `--on` those are taken that are called python3.N on PATH or that pyenv has, one of each version. Each gets a
virtual environment of its own in build/pythons, which later runs use again.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OLDEST, NEWEST = 10, 30


def version_of(python: str) -> str | None:
    """Such as 3.12, or None for what is no Python that smelt supports. A shim of pyenv may stand for nothing."""
    code = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"
    try:
        answer = subprocess.run([python, "-c", code], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    version = answer.stdout.strip()
    major, _, minor = version.partition(".")
    return version if answer.returncode == 0 and major == "3" and int(minor) >= OLDEST else None


def candidates() -> Iterator[str]:
    """Where Pythons may be."""
    for n in range(OLDEST, NEWEST):
        if found := shutil.which(f"python3.{n}"):
            yield found
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from map(str, sorted(pyenv.glob("versions/3.*/bin/python")))
    yield sys.executable


def pythons(named: list[str]) -> dict[str, str]:
    """By version, in order."""
    found: dict[str, str] = {}
    for python in named or candidates():
        version = version_of(python)
        if version is not None:
            found.setdefault(version, python)
        elif named:
            raise SystemExit(f"{python} is no Python from 3.{OLDEST} on that can make virtual environments")
    return dict(sorted(found.items(), key=lambda item: int(item[0].partition(".")[2])))


def tested(version: str, python: str, tests: list[str]) -> bool:
    """Whether all tests pass on one Python."""
    venv = f"build/pythons/{version}"
    print(f"--- Python {version}: {python}", flush=True)
    made = subprocess.run(["make", f"PYTHON={python}", f"VENV={venv}", f"{venv}/.test"], cwd=ROOT)
    if made.returncode:
        return False
    return subprocess.run([f"{venv}/bin/python", "-m", "pytest", "-n", "2", *tests], cwd=ROOT).returncode == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--on", action="append", default=[], metavar="PYTHON", help="an interpreter; may be repeated")
    parser.add_argument("tests", nargs="+")
    options = parser.parse_args()
    found = pythons([python for named in options.on for python in named.split()])
    passed = {version: tested(version, python, options.tests) for version, python in found.items()}
    newest = max(14, *(int(v.partition(".")[2]) for v in found))
    missing = [v for n in range(OLDEST, newest + 1) if (v := f"3.{n}") not in found]
    print("Python " + ", ".join(f"{version} {'passed' if ok else 'FAILED'}" for version, ok in passed.items()))
    if missing:
        print(f"not here: {', '.join(missing)}; name one by PYTHONS=/path/to/python")
    sys.exit(not all(passed.values()))


if __name__ == "__main__":
    main()

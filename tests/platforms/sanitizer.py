"""Tests of ops under NVIDIA's compute-sanitizer: ``python -m tests.platforms.sanitizer memcheck`` (or racecheck, …).

A sample of the registry's tests and of those of a few families that fits the time: first without the tool by several
processes, which leave machine code on disk, then by one under the tool. Arrays get just the bytes that they have, so
that an access behind them is seen. What the tool has found is printed; so is how many tests ran, where the time was up.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
TESTS = (
    "tests/ops/test_registry.py", "tests/ops/test_scan_sort.py", "tests/ops/test_contract.py",
    "tests/ops/test_indexing.py", "tests/ops/test_transformations.py", "tests/backends/cuda/test_kernels.py",
)  # fmt: skip
#: Seconds that the tests under way may take when the time is up.
GRACE = 30


def pytest_configure(config: pytest.Config) -> None:
    """As a plugin of the runs: no array has more memory than it needs, and machine code is kept."""
    from smelt.backends.cuda.memory import CudaMemory
    from smelt.ir.settings import settings

    settings.cache = True
    CudaMemory.size_of = lambda self, nbytes: max(nbytes, 1)  # type: ignore[method-assign]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.platforms.sanitizer", description=__doc__.splitlines()[0])
    parser.add_argument("tool", choices=TOOLS)
    parser.add_argument("tests", nargs="*", help="(default: of the registry and of a few families)")
    parser.add_argument("--sample", type=int, default=100, help="of each test's variants every so many (default: 100)")
    parser.add_argument("--seconds", type=float, default=100, help="after which no test begins (default: 100)")
    parser.add_argument("-n", type=int, default=8, help="processes of the run without the tool (default: 8)")
    options = parser.parse_args()
    sanitizer = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    with tempfile.TemporaryDirectory() as folder:
        tests = [
            sys.executable, "-m", "pytest", "--device", "cuda", "-vv", "-p", "tests.platforms.sanitizer",
            "-p", "tests.platforms.time_box", "--sample", str(options.sample), *(options.tests or TESTS),
        ]  # fmt: skip
        kept = {**os.environ, "SMELT_CACHE_DIR": f"{folder}/kept", "SMELT_TEST_SECONDS": str(options.seconds)}
        subprocess.run([*tests, "-n", str(options.n)], cwd=ROOT, env=kept, stdout=subprocess.DEVNULL, check=False)
        command = [sanitizer, "--tool", options.tool, "--log-file", f"{folder}/%p.log", *tests]
        # A session of its own: all of its processes are ended when the time is up.
        child = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
            env=kept,
        )  # fmt: skip
        try:
            output = child.communicate(timeout=options.seconds + GRACE)[0]
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGTERM)
            output = child.communicate()[0]
            print("it was ended")
        logs = [path.read_text(errors="replace") for path in sorted(Path(folder).glob("*.log"))]
    found = [line for log in logs for line in log.splitlines() if not re.search(r"COMPUTE-SANITIZER$|SUMMARY: 0", line)]
    print("\n".join(output.splitlines()[-15:]))
    print("\n".join(found[:200]))
    named = [line for line in output.splitlines() if "::" in line]
    words = r"\bPASSED\b", r"\b(FAILED|ERROR)\b"
    passed, failed = (sum(bool(re.search(word, line)) for line in named) for word in words)
    told = f"{len(found)} lines of the tool from {len(logs)} logs"
    print(f"{options.tool}: {passed} tests passed, {failed} failed, {told}")
    sys.exit(bool(found or failed or not passed))


if __name__ == "__main__":
    main()

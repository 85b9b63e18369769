"""A process that answers requests, one JSON object a line."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


class Process:
    """Started by the first request, and again after it has ended.

    Args:
        python: the interpreter. arguments: of it. environment: variables besides those of this process.
    """

    def __init__(self, python: str, arguments: Sequence[str], environment: Mapping[str, str] | None = None):
        self.python, self.arguments, self.environment = python, arguments, environment or {}
        self.process: subprocess.Popen | None = None

    def _start(self) -> subprocess.Popen:
        # As where it is installed; and what is timed is compiled.
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        environment.setdefault("SMELT_CACHE", "0")
        return subprocess.Popen(
            [self.python, *self.arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=ROOT,
            env=environment | dict(self.environment),
        )  # fmt: skip

    def ask(self, request: dict[str, Any], limit: float | None = None) -> dict[str, Any]:
        """The answer; an ``error`` where the process ends, or has not answered after `limit` seconds: it is killed."""
        if self.process is None:
            self.process = self._start()
        process = self.process
        assert process.stdin and process.stdout
        timer = threading.Timer(limit, process.kill) if limit else None
        try:
            if timer:
                timer.start()
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            is_late = timer is not None and not timer.is_alive()
            if timer:
                timer.cancel()
        if not line.endswith("\n"):
            self.stop()
            return {"error": f"no answer in {limit:g} s" if is_late else "the process ended"}
        return json.loads(line)

    def stop(self) -> None:
        if self.process is not None:
            with contextlib.suppress(BrokenPipeError):
                self.process.stdin and self.process.stdin.close()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
            self.process = None

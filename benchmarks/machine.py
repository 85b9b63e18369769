"""What the commands print about the machine, and how."""

from __future__ import annotations

import os
import platform
import re
import sys
from pathlib import Path


def number(value: float) -> str:
    """Three significant digits, without an exponent."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def threads() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def cores_of(count: int | None) -> str:
    """In words, what the processes started from now on may use: `count` cores, or all that there are."""
    if count is None or not hasattr(os, "sched_setaffinity"):
        return f"{os.cpu_count()} cores"
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])
    return f"{count} of {os.cpu_count()} cores"


def cpu_name() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
        match = re.search(r"model name\s*: (.*)", text)
        return match.group(1) if match else platform.machine()
    except OSError:
        return platform.processor() or platform.machine()


def progress(text: str) -> None:
    """What is being timed, on a terminal."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)

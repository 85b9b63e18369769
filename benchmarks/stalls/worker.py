"""Runs one program in one framework, twice: ``python -m benchmarks.stalls.worker``, a request on stdin.

A request is ``{"framework": name, "program": name, "limit": seconds, "scale": part of the steps}``; the answer
``{"runs": [...], ...}`` or ``{"error": why}``. Each run has its time, its longest step, how many steps it got through
within the limit, and by how much memory grew.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from . import all_programs as all_programs
from .names import load
from .program import Run, programs


def memory() -> int:
    """Bytes of this process in memory; where the system does not tell, the most that there have been."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        import resource

        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024


def processor_seconds(children: bool) -> float:
    """What this process used so far, with its compilers."""
    return time.process_time() + (sum(os.times()[2:4]) if children else 0.0)


def compiles(names: Any, framework: str) -> int | None:
    """How many programs this process has compiled, if the framework tells."""
    return names.explain().count if framework == "smelt" else None


def timed(steps: Iterator[Any], limit: float) -> tuple[list[float], Any]:
    """The time of each step, until they end or together take longer than `limit`; the last step's result."""
    times: list[float] = []
    value = None
    stop = time.perf_counter() + limit
    while True:
        start = time.perf_counter()
        try:
            value = next(steps)
        except StopIteration:
            return times, value
        times.append(time.perf_counter() - start)
        if time.perf_counter() > stop:
            steps.close()  # type: ignore[attr-defined]
            return times, value


def run(framework: str, name: str, limit: float, scale: float = 1.0) -> dict[str, Any]:
    """What the framework needs for the program: cold, then warm."""
    start = time.perf_counter()
    names, version = load(framework)
    importing = time.perf_counter() - start
    program = programs[name]
    if framework in program.absent:
        return {"version": version, "absent": program.absent[framework]}
    steps = max(1, round(program.steps * scale))
    runs: list[dict[str, Any]] = []
    value = None
    for again in (0, 1):
        gc.collect()
        before, made = memory(), compiles(names, framework)
        cpu = processor_seconds(not program.starts_others)
        times, last = timed(program.run(names, Run(steps, again)), limit)
        used = processor_seconds(not program.starts_others) - cpu
        if not again and last is not None and len(times) == steps:
            value = float(np.array(last.cpu() if hasattr(last, "cpu") else last))
        grown = memory() - before
        runs.append({"seconds": sum(times), "cpu": used, "longest": max(times), "steps": len(times), "memory": grown})
        if made is not None:
            runs[-1]["compiles"] = (compiles(names, framework) or 0) - made
        if len(times) < steps:
            break
    return {"version": version, "import": importing, "steps": steps, "value": value, "runs": runs}


def main() -> None:
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what frameworks print does not mix with the answer
    request = json.loads(sys.stdin.read())
    try:
        answer = run(request["framework"], request["program"], request["limit"], request.get("scale", 1.0))
    except Exception as error:
        lines = [line for line in str(error).splitlines() if line.strip()]
        answer = {"error": f"{type(error).__name__}: {' '.join(lines[:3])}"[:300]}
    print(json.dumps(answer), file=replies, flush=True)


if __name__ == "__main__":
    main()

"""Times workloads in one framework: a process that answers requests, one JSON object a line.

A request is ``{"workload": name, "seconds": budget, "clock": "wall"}`` (or ``"cpu"``: the time of all of the process's
threads, in rows of new processes that of their children, too; for machines that others use); the answer
``{"times": [...]}`` in seconds, ``{"skipped": why}`` or ``{"error": why}``. ``{}`` asks for the version.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from . import workloads as _workloads  # noqa: F401  (registers them)
from .frameworks import Framework, frameworks
from .machine import threads
from .workload import Workload, workloads

SEED = 0
MIN_SAMPLES, MAX_SAMPLES = 3, 200


def family_time() -> float:
    """Processor time of this process and of those that it has started, compilers for instance, in seconds."""
    found = time.process_time() + sum(os.times()[2:4])
    parents: dict[int, tuple[int, float]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        ticks = sum(map(int, fields[11:15]))  # user and system, its own and of children that have ended
        parents[int(path.parent.name)] = int(fields[1]), ticks / os.sysconf("SC_CLK_TCK")
    family = {os.getpid()}
    while more := {pid for pid, (parent, _) in parents.items() if parent in family} - family:
        family |= more
    return found + sum(parents[pid][1] for pid in family - {os.getpid()})


clocks = {"wall": time.perf_counter, "cpu": time.process_time}
clock = clocks["wall"]


def samples(run: Any, seconds: float, before: Any = None) -> list[float]:
    """Times of `run`, for about `seconds`; the previous result is dropped before the next run."""
    times: list[float] = []
    stop = time.perf_counter() + seconds
    while len(times) < MIN_SAMPLES or (time.perf_counter() < stop and len(times) < MAX_SAMPLES):
        if before is not None:
            before()
        start = clock()
        result = run()
        times.append(clock() - start)
        del result
    return times


def copy_time(nbytes: int, seconds: float) -> list[float]:
    """Times of moving `nbytes` (half read, half written), by a copy on all cores."""
    cores = threads()
    source = np.ones(max(nbytes // 2, cores), np.uint8)
    target = np.zeros_like(source)
    pieces = list(zip(np.array_split(target, cores), np.array_split(source, cores)))
    with ThreadPoolExecutor(cores) as pool:

        def run() -> None:
            list(pool.map(lambda pair: np.copyto(*pair), pieces))

        run()
        return samples(run, seconds)


def least_time(workload: Workload, seconds: float) -> list[float] | None:
    """Times of the workload's lower bound."""
    bound = workload.least(np)
    if bound is not None:
        arrays = workload.arrays(np.random.default_rng(SEED))
        return samples(lambda: bound(*arrays), seconds)
    return copy_time(workload.least_bytes, seconds) if workload.least_bytes else None


def framework_time(workload: Workload, framework: Framework, name: str, seconds: float) -> list[float] | None:
    """Times of the workload in a framework, after its result was checked."""
    make = getattr(workload, name)
    workload.salt = time.time() % 1  # frameworks keep compiled programs on disk
    framework.forget()  # what is like an earlier workload in its code alone
    host = workload.arrays(np.random.default_rng(SEED))
    if workload.fresh_process:
        arrays = [framework.array(x) for x in host]
        spent = family_time if clock is time.process_time else clock
        start = spent()
        function = make(framework.module)
        if function is None:
            return None
        result = framework.wait(function(*arrays))
        elapsed = spent() - start
        workload.check(framework.numpy(result), *host)
        return [elapsed / workload.count]
    function = make(framework.module)
    if function is None:
        return None
    arrays = [framework.array(x) for x in host]
    workload.check(framework.numpy(framework.wait(function(*arrays))), *host)
    if not workload.making:
        framework.settle(lambda: framework.wait(function(*arrays)), seconds)
    if workload.making:

        def before() -> None:
            workload.salt += 1e-3
            framework.forget()
            gc.collect()

        return samples(lambda: framework.wait(make(framework.module)(*arrays)), seconds, before)
    if workload.count > 1:
        # The function repeats the operation itself, and waits where it has to.
        return [t / workload.count for t in samples(lambda: function(*arrays), seconds)]
    return samples(lambda: framework.wait(function(*arrays)), seconds)


def answer(name: str, framework: Framework | None, request: dict[str, Any]) -> dict[str, Any]:
    if not request:
        return {"version": framework.version if framework else np.__version__}
    global clock
    workload = workloads[request["workload"]]
    clock = clocks[request.get("clock", "wall")]
    try:
        if framework is None:
            times = least_time(workload, request["seconds"])
        else:
            times = framework_time(workload, framework, name, request["seconds"])
    except Exception as error:
        lines = [line for line in str(error).splitlines() if line.strip()]
        return {"error": f"{type(error).__name__}: {' '.join(lines[:3])}"[:300]}
    finally:
        gc.collect()
    return {"skipped": "not implemented"} if times is None else {"times": times}


def main(name: str) -> None:
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what frameworks print does not mix with the answers
    framework = None if name == "least" else frameworks[name]()
    for line in sys.stdin:
        print(json.dumps(answer(name, framework, json.loads(line))), file=replies, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])

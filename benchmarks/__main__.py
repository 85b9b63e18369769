"""The command: runs workloads, prints a Markdown table.

``python -m benchmarks`` runs the table of programs, ``python -m benchmarks library`` that of single functions,
``python -m benchmarks examples`` that of the examples' models,
``python -m benchmarks gelu-compiled --rivals jax`` one workload beside one framework; ``convolutions``, the name of
a file of `benchmarks/workloads`, is all that it holds. ``python -m benchmarks stalls`` is a command of its own
(`benchmarks/stalls`), and so are ``python -m benchmarks memory`` and ``python -m benchmarks device``.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import shutil
import statistics
import sys
from pathlib import Path
from typing import Any

from . import memory
from . import workloads as _workloads  # noqa: F401  (registers them)
from .device import command as device
from .machine import cores_of, cpu_name, number, progress
from .process import ROOT, Process
from .stalls import command as stalls
from .workload import FRAMEWORKS, Workload, workloads

RIVALS = FRAMEWORKS[1:]
#: Commands of their own.
COMMANDS = {"memory": memory.main, "stalls": stalls.main, "device": device.main}
SCALE = {"s": 1.0, "ms": 1e3, "µs": 1e6}


class Worker(Process):
    """A process that times workloads in one framework."""

    def __init__(self, name: str, python: str):
        super().__init__(python, ["-m", "benchmarks.worker", name])

    def time(self, workload: Workload, seconds: float, clock: str) -> dict[str, Any]:
        """Times of one workload; those that need a fresh process get one for each of three samples."""
        request = {"workload": workload.name, "seconds": seconds, "clock": clock}
        if not workload.fresh_process:
            return self.ask(request)
        times = []
        for _ in range(3):
            self.stop()
            reply = self.ask(request)
            if "times" not in reply:
                return reply
            times += reply["times"]
        self.stop()
        return {"times": times}


def median(reply: dict[str, Any], unit: str) -> float | None:
    return statistics.median(reply["times"]) * SCALE[unit] if "times" in reply else None


def row(workload: Workload, replies: dict[str, dict[str, Any]], columns: list[str]) -> list[str]:
    """A row of the table: medians, with ratios to the lower bound and to smelt."""
    times = {name: median(reply, workload.unit) for name, reply in replies.items()}
    least, ours = None, times.get("smelt")
    if "times" in replies.get("least", {}):  # a bound: what disturbs it only makes it longer
        least = min(replies["least"]["times"]) * SCALE[workload.unit]
    unit = "tokens a second" if workload.is_rate else workload.unit
    cells = [f"{workload.title}, {unit}", number(least) if least else ""]
    for name in columns:
        value = times.get(name)
        if value is None:
            cells.append("failed" if "error" in replies.get(name, {}) else "")
            continue
        shown = number(1 / value if workload.is_rate else value)
        if name == "smelt":
            cells.append(f"**{shown}**" + (f" ({value / least:.2f}× least)" if least else ""))
        else:
            cells.append(shown + (f" ({value / ours:.1f}×)" if ours else ""))
    return cells


def header(columns: list[str]) -> list[list[str]]:
    names = ["workload", "least", *(name.replace("_", ".") for name in columns)]
    return [names, ["---"] + ["---:"] * (len(names) - 1)]


def table(rows: list[list[str]]) -> str:
    return "".join(f"| {' | '.join(line)} |\n" for line in rows)


def slower(results: dict[str, dict[str, Any]], chosen: list[Workload], ratio: float = 1.2) -> str:
    """Which workloads take smelt longer than the best of the others, by more than `ratio`: a sentence."""
    found = []
    for workload in chosen:
        times = {name: median(reply, workload.unit) for name, reply in results[workload.name].items()}
        ours, best = times.get("smelt"), min((t for n, t in times.items() if t and n in RIVALS), default=None)
        if ours and best and ours > ratio * best:
            found.append(f"{workload.title} ({ours / best:.1f}×)")
    if not found:
        return f"smelt takes no more than {ratio} times as long as the best of the others in any row.\n"
    return f"smelt takes more than {ratio} times as long as the best of the others for {'; '.join(found)}.\n"


def replace_between_markers(path: Path, text: str, mark: str = "benchmarks") -> None:
    """Put a table between its markers in a document."""
    pattern = re.compile(rf"(<!-- {mark} -->\n).*?(<!-- end -->)", re.DOTALL)
    document, count = pattern.subn(lambda m: f"{m.group(1)}{text}{m.group(2)}", path.read_text(encoding="utf-8"))
    if not count:
        raise SystemExit(f"{path} has no <!-- {mark} --> ... <!-- end -->")
    path.write_text(document, encoding="utf-8")


def named(name: str) -> list[Workload]:
    """The workloads of a name, of a theme or of a table."""
    return [w for w in workloads.values() if name in (w.name, w.theme, w.table)]


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="workload", help="or a theme, or a table (default: programs)")
    parser.add_argument("--list", action="store_true", help="list the workloads")
    parser.add_argument("--rivals", default=",".join(RIVALS), help="comma-separated (default: %(default)s)")
    parser.add_argument("--rival-python", default=str(ROOT / ".bench-venv/bin/python"), metavar="PATH",
                        help="the interpreter that has them (default: the one of `make bench-setup`)")  # fmt: skip
    parser.add_argument("--seconds", type=float, default=2.0, help="time for each cell (default: %(default)s)")
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall",
                        help="cpu: time of all threads, where others use the machine (default: wall)")  # fmt: skip
    parser.add_argument("--cores", type=int, metavar="N",
                        help="cores for each framework; with one, --clock cpu counts no waiting")  # fmt: skip
    parser.add_argument("--rounds", type=int, default=1,
                        help="times in turn, each framework after the other (default: %(default)s)")  # fmt: skip
    parser.add_argument("--json", metavar="FILE", help="write all samples")
    parser.add_argument("--write", metavar="FILE", help="replace the table of what was chosen in a Markdown file")
    options = parser.parse_args(argv)
    for name in options.names:
        if not named(name):
            parser.error(f"unknown workload {name!r}; there are {', '.join(workloads)}")
    options.chosen = list({w.name: w for name in options.names or ["programs"] for w in named(name)}.values())
    options.rivals = [name.replace(".", "_") for name in options.rivals.split(",") if name]
    for name in options.rivals:
        if name not in RIVALS:
            parser.error(f"unknown rival {name!r}; there are {', '.join(RIVALS)}")
    return options


def main(argv: list[str] | None = None) -> None:
    argv = sys.argv[1:] if argv is None else argv
    if argv[:1] and argv[0] in COMMANDS:
        COMMANDS[argv[0]](argv[1:])
        return
    options = parse(argv)
    if options.list:
        for workload in workloads.values():
            print(f"{workload.name:24} {workload.title}")
        return
    cores = cores_of(options.cores)
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    workers = {"least": Worker("least", sys.executable), "smelt": Worker("smelt", sys.executable)}
    versions: dict[str, str] = {}
    notes = [f"the machine was busy at the start (load {load:.1f})"] if load > 0.5 else []
    for name in options.rivals:
        workers[name] = Worker(name, options.rival_python)
    for name in list(workers):
        reply = workers[name].ask({}) if shutil.which(workers[name].python) else {"error": "absent"}
        if "version" in reply:
            versions["numpy" if name == "least" else name] = reply["version"]
        else:
            notes.append(f"{name} is not installed (`make bench-setup` installs it)")
            del workers[name]
    columns = [name for name in FRAMEWORKS if name in workers]
    shown = {k: v for k, v in versions.items() if k != "torch_compile"}
    machine = f"{cpu_name()}, {cores}{'; processor time' * (options.clock == 'cpu')}; " + ", ".join(
        f"{k} {v}" for k, v in shown.items()
    )
    results: dict[str, dict[str, Any]] = {}
    rows = header(columns)
    print(f"{machine}.\n\n{table(rows)}", end="", flush=True)
    for workload in options.chosen:
        found = results[workload.name] = {}
        for round_, (name, worker) in itertools.product(range(options.rounds), workers.items()):
            if round_ and "times" not in found[name]:
                continue
            progress(f"{workload.name}: {name}")
            reply = worker.time(workload, options.seconds / options.rounds, options.clock)
            if "error" in reply:
                notes.append(f"{workload.name} in {name}: {reply['error']}")
            if round_ and "times" in reply:
                found[name]["times"] += reply["times"]
            else:
                found[name] = reply
        progress("")
        rows.append(row(workload, found, columns))
        print(table(rows[-1:]), end="", flush=True)
    for worker in workers.values():
        worker.stop()
    for note in notes:
        print(f"note: {note}")
    if options.json:
        Path(options.json).write_text(json.dumps({"machine": machine, "results": results}, indent=1), encoding="utf-8")
    if options.write:
        tables = {workload.table for workload in options.chosen}
        mark = tables.pop() if len(tables) == 1 else "programs"
        text = f"{machine}.\n\n{table(rows)}" + (f"\n{slower(results, options.chosen)}" if mark != "programs" else "")
        replace_between_markers(Path(options.write), text, {"programs": "benchmarks"}.get(mark, mark))


if __name__ == "__main__":
    main()

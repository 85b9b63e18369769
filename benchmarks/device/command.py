"""The command ``python -m benchmarks device``: programs on a GPU beside other frameworks, as a table in Markdown.

Each framework has a process of its own; one that fails or does not answer is ended, and started again for the next
program. All frameworks prepare a program at once (compile it, run it, compare the result with NumPy), then each is
timed while the others wait. The table is written anew after each program.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from ..machine import number
from ..process import Process
from ..roofline.report import write
from . import attention as _attention  # noqa: F401  (registers them)
from . import functions as _functions  # noqa: F401
from . import kernels as _kernels  # noqa: F401
from . import quantized as _quantized  # noqa: F401
from . import steps as _steps  # noqa: F401
from .program import FRAMEWORKS, Program, programs

SCALE = {"ms": 1e3, "µs": 1e6}
Replies = dict[str, dict[str, Any]]


def parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks device", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="program", help="(default: all)")
    parser.add_argument("--list", action="store_true", help="list the programs")
    parser.add_argument("--device", default="cuda", help="smelt's; rivals run on the GPU if it is cuda (default: cuda)")
    parser.add_argument("--rivals", default=",".join(FRAMEWORKS[1:]), help="comma-separated (default: %(default)s)")
    parser.add_argument("--rival-python", default=sys.executable, metavar="PATH",
                        help="the interpreter that has them (default: this one)")  # fmt: skip
    parser.add_argument("--seconds", type=float, default=1.0, help="time for each cell (default: %(default)s)")
    parser.add_argument("--limit", type=float, default=120.0,
                        help="seconds that a program may take to prepare (default: %(default)s)")  # fmt: skip
    parser.add_argument("--budget", type=float, default=1e9, help="seconds after which no program is begun")
    parser.add_argument("--tiny", action="store_true", help="small sizes: to try the code")
    parser.add_argument("--no-kernels", action="store_true", help="do not count what the GPU runs")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all that was measured")
    parser.add_argument("--write", type=Path, metavar="FILE", help="put the table into a document with <!-- device -->")
    options = parser.parse_args(argv)
    for name in options.names:
        if name not in programs:
            parser.error(f"unknown program {name!r}; there are {', '.join(programs)}")
    for name in options.rivals.split(","):
        if name and name not in FRAMEWORKS[1:]:
            parser.error(f"unknown rival {name!r}; there are {', '.join(FRAMEWORKS[1:])}")
    return options


class Run:
    """Processes of frameworks, and what was measured with them."""

    def __init__(self, options: argparse.Namespace):
        self.options = options
        rivals = "cuda" if options.device == "cuda" else "cpu"
        self.workers = {
            name: Process(
                sys.executable if name == "smelt" else options.rival_python,
                ["-m", "benchmarks.device.worker", name, options.device if name == "smelt" else rivals],
            )
            for name in ("smelt", *options.rivals.split(","))
            if name
        }
        self.versions: dict[str, str] = {}
        self.results: dict[str, Replies] = {}

    def ask_all(self, names: list[str], request: dict[str, Any], limit: float) -> Replies:
        with ThreadPoolExecutor(len(names) or 1) as pool:
            asked = {name: pool.submit(self.workers[name].ask, request, limit) for name in names}
            return {name: reply.result() for name, reply in asked.items()}

    def begin(self) -> list[str]:
        """Start the processes; notes on those that are not there."""
        notes = []
        for name, reply in self.ask_all(list(self.workers), {}, 120.0).items():
            if "version" in reply:
                self.versions[name] = reply["version"]
            else:
                notes.append(f"{name} is not there ({reply['error']})")
                del self.workers[name]
        return notes

    def measure(self, program: Program) -> None:
        """Prepare and time a program in all frameworks."""
        options = self.options
        request = {"program": program.name, "prepare": True, "tiny": options.tiny}
        found = self.results[program.name] = self.ask_all(list(self.workers), request, options.limit)
        timing = {"program": program.name, "seconds": options.seconds, "kernels": not options.no_kernels}
        for name, reply in list(found.items()):
            if not reply:
                del found[name]
                continue
            if "error" not in reply:
                reply |= self.workers[name].ask(timing, options.limit)
            if "error" in reply:
                self.workers[name].stop()  # nobody knows what state the device is in for it

    def stop(self) -> None:
        for worker in self.workers.values():
            worker.stop()


def cells(program: Program, replies: Replies, columns: list[str], tiny: bool) -> list[str]:
    """A row of the table."""
    times = {k: statistics.median(r["times"]) for k, r in replies.items() if "times" in r}
    program.tiny = tiny
    found = [f"{program.title}, {program.unit}"]
    for name in columns:
        text = number(times[name] * SCALE[program.unit]) if name in times else "failed" if name in replies else ""
        found.append(f"**{text}**" if name == "smelt" else text)
    rivals = [t for name, t in times.items() if name != "smelt"]
    ours = times.get("smelt")
    found.append(f"{ours / min(rivals):.2f}×" if ours and rivals else "")
    rate = ""
    if ours and program.flops:
        rate = f"{program.flops / ours / 1e12:.0f} TFLOP/s"
    elif ours and program.least_bytes:
        rate = f"{program.least_bytes / ours / 1e9:.0f} GB/s"
    found.append(rate)
    counted = {k: sum(row[1] for row in r["kernels"]) for k, r in replies.items() if r.get("kernels")}
    found.append(" / ".join(str(counted.get(name, "–")) for name in columns) if counted else "")
    found.append(" / ".join(number(replies[k]["first"]) if "first" in replies.get(k, {}) else "–" for k in columns))
    return found


def table(chosen: list[Program], results: dict[str, Replies], columns: list[str], tiny: bool = False) -> str:
    shown = [name.replace("_", ".") for name in columns]
    header = ["program", *shown, "of the best", "", "kernels", "first call, s"]
    rows = [cells(p, results[p.name], columns, tiny) for p in chosen if p.name in results]
    lines = [header, ["---"] + ["---:"] * (len(header) - 1), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def notes_on(results: dict[str, Replies]) -> list[str]:
    """What failed, and numbers on which frameworks do not agree."""
    found = []
    for program, replies in results.items():
        values = {k: r["value"] for k, r in replies.items() if r.get("value") is not None}
        for name, reply in replies.items():
            found += [f"{program} in {name}: {reply[k]}" for k in ("error", "note") if k in reply]
            ours, value = values.get("smelt"), values.get(name)
            if ours is not None and value is not None and abs(value - ours) > 5e-3 * abs(ours):
                found.append(f"{program}: {name} computes {value:.6g}, smelt {ours:.6g}")
    return found


def device_name(device: str) -> str:
    if device != "cuda":
        return device
    from smelt.backends.cuda import driver

    return f"{driver.gpu_name()} ({driver.architecture()})"


def main(argv: list[str]) -> None:
    options = parse(argv)
    chosen = [programs[name] for name in options.names] or list(programs.values())
    if options.list:
        for program in chosen:
            print(f"{program.name:24} {program.title}")
        return
    start, run = time.monotonic(), Run(options)
    notes = run.begin()
    columns = [name for name in FRAMEWORKS if name in run.workers]
    shown = ", ".join(f"{name} {v}" for name, v in run.versions.items() if name != "torch_compile")
    machine = f"{device_name(options.device)}; {shown}."
    try:
        for program in chosen:
            if time.monotonic() - start > options.budget:
                notes.append(f"{program.name} was not begun: the time was up")
                continue
            run.measure(program)
            text = f"{machine}\n\n{table(chosen, run.results, columns, options.tiny)}"
            row = " | ".join(cells(program, run.results[program.name], columns, options.tiny))
            print(f"{time.monotonic() - start:5.0f} s  {row}", flush=True)
            for line in notes_on({program.name: run.results[program.name]}):
                print(f"         {line}", flush=True)
            if options.json:
                content = {"machine": machine, "results": run.results}
                options.json.write_text(json.dumps(content, indent=1), encoding="utf-8")
            if options.write:
                write(options.write, "device", text)
    finally:
        run.stop()
    print(text)
    for line in [*notes, *notes_on(run.results)]:
        print(f"note: {line}")

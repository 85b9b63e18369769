"""The command ``python -m benchmarks stalls``: two tables in Markdown.

The first has the time of a whole program, compiles included: cold (in a new process, with nothing kept on disk) /
warm (once more in the same process); with ``--processes 2`` also in a second process, with what the first one kept on
disk. The second table tells of the longest wait within a program, of memory, and of smelt's compiles.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..machine import cores_of, cpu_name, number, progress
from ..roofline.report import write
from . import all_programs as all_programs
from .names import NAMES
from .program import Program, programs

ROOT = Path(__file__).resolve().parents[2]
SCALE = {"s": 1.0, "ms": 1e3, "µs": 1e6}


class Machine:
    """How programs are run here: the limit of a run, the part of the steps, processes one after the other."""

    def __init__(self, limit: float = 60.0, scale: float = 1.0, processes: int = 1, clock: str = "seconds"):
        self.limit, self.scale, self.processes, self.clock = limit, scale, processes, clock

    def measure(self, python: str, framework: str, program: Program) -> dict[str, Any]:
        """The worker's answer of the first process, with the first runs of later ones added to its runs."""
        # Where frameworks keep what they compiled; a compiler of theirs may still write there.
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            answer = self._process(python, framework, program, folder)
            for _ in range(1, self.processes):
                if len(answer.get("runs", [])) >= 2:
                    later = self._process(python, framework, program, folder)
                    answer["runs"] += later.get("runs", [])[:1]
        return answer

    def _process(self, python: str, framework: str, program: Program, folder: str) -> dict[str, Any]:
        request = {"framework": framework, "program": program.name, "limit": self.limit, "scale": self.scale}
        kept = {"TMPDIR": folder, "SMELT_CACHE_DIR": folder, "XDG_CACHE_HOME": folder}
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"} | kept
        seconds = 3 * self.limit + 30  # a step cannot be cut short
        try:
            done = subprocess.run(
                [python, "-m", "benchmarks.stalls.worker"], input=json.dumps(request), stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL, text=True, cwd=ROOT, env=environment, timeout=seconds, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return {"error": f"not ready after {seconds:.0f} s"}
        return json.loads(done.stdout) if done.stdout else {"error": f"the process ended with {done.returncode}"}

    def one_time(self, program: Program, reply: dict[str, Any], run: dict[str, Any]) -> str:
        """The time of a run; of one that the limit ended, what it took until then and how far it came."""
        count = program.count * run["steps"] / program.steps if program.count > 1 else 1
        text = number(run[self.clock] / count * SCALE[program.unit])
        return text if run["steps"] == reply["steps"] else f"> {text} ({run['steps']}/{reply['steps']})"

    def times(self, program: Program, reply: dict[str, Any]) -> str:
        if "runs" not in reply:
            return "failed" if "error" in reply else ""
        cells = [self.one_time(program, reply, run) for run in reply["runs"]]
        return " / ".join(cells + ["–"] * (1 + self.processes - len(cells)))

    def ratio(self, ours: dict[str, Any], rival: dict[str, Any]) -> str:
        """How many times longer the rival took; per step, where one of them did not come to the end."""
        pairs = zip(ours.get("runs", []), rival.get("runs", []))
        ratios = [b[self.clock] / b["steps"] / (max(a[self.clock], 1e-9) / a["steps"]) for a, b in pairs]
        return " / ".join(f"{number(r)}×" for r in ratios)

    def times_table(self, chosen: Sequence[Program], results: dict[str, Any], columns: Sequence[str]) -> str:
        kinds = "cold / warm" + " / another process" * (self.processes > 1)
        header = [kinds, "unit", *columns]
        compared = "smelt" in columns and "mlx" in columns
        rows = []
        for program in chosen:
            replies = results[program.name]
            row = [program.title, program.unit, *(self.times(program, replies[name]) for name in columns)]
            rows.append(row + ([self.ratio(replies["smelt"], replies["mlx"])] if compared else []))
        return markdown(header + ["mlx ÷ smelt"] * compared, rows)


def waits_table(chosen: Sequence[Program], results: dict[str, dict[str, Any]], columns: Sequence[str]) -> str:
    """The longest step of each first run, the memory that it took, and smelt's compiles in all runs."""
    header = ["longest step, ms, and memory, MB", *columns]
    if "smelt" in columns:
        header.append("smelt's compiles")
    rows = []
    for program in chosen:
        row = [program.title]
        for name in columns:
            runs = results[program.name][name].get("runs")
            row.append(f"{number(runs[0]['longest'] * 1e3)}, {runs[0]['memory'] / 1e6:.0f}" if runs else "")
        if "smelt" in columns:
            runs = results[program.name]["smelt"].get("runs", [])
            row.append(" / ".join(str(run["compiles"]) for run in runs))
        rows.append(row)
    return markdown(header, rows)


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] + ["---:"] * (len(header) - 1), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def disagreements(program: Program, replies: dict[str, dict[str, Any]]) -> list[str]:
    """Frameworks whose number is not that of the first one."""
    if program.tolerance is None:
        return []
    complete = {k: r for k, r in replies.items() if r.get("runs") and r["runs"][0]["steps"] == r["steps"]}
    if len(complete) < 2:
        return []
    first = next(iter(complete))
    want = complete[first]["value"]
    return [
        f"{program.name}: {name} computes {r['value']:.6g}, {first} {want:.6g}"
        for name, r in complete.items()
        if not abs(r["value"] - want) <= program.tolerance * max(abs(want), 1e-3)
    ]


def imports(python: str, package: str) -> bool:
    """Whether an interpreter is there, and has a package."""
    if shutil.which(python) is None:
        return False
    command = [python, "-c", f"import {package}"]
    return subprocess.run(command, check=False, stderr=subprocess.DEVNULL, cwd=ROOT).returncode == 0


def parse(argv: Sequence[str]) -> argparse.Namespace:
    description = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m benchmarks stalls", description=description)
    parser.add_argument("names", nargs="*", metavar="program", help="all, if none is named")
    parser.add_argument("--list", action="store_true", help="list the programs")
    parser.add_argument("--rivals", default=",".join(NAMES[1:]), help="comma-separated (default: %(default)s)")
    parser.add_argument("--rival-python", default=str(ROOT / ".bench-venv/bin/python"), metavar="PATH",
                        help="the interpreter that has them (default: the one of `make bench-setup`)")  # fmt: skip
    parser.add_argument("--limit", type=float, default=60.0, metavar="SECONDS",
                        help="a run that takes longer ends after its step (default: %(default)s)")  # fmt: skip
    parser.add_argument("--scale", type=float, default=1.0, help="part of the steps that are run (default: all)")
    parser.add_argument("--processes", type=int, choices=(1, 2), default=1, help="2: once more in a second process")
    parser.add_argument("--cores", type=int, metavar="N",
                        help="cores for each framework; with one, --cpu counts no waiting")  # fmt: skip
    parser.add_argument("--cpu", action="store_true", help="time of processors, for a machine that is busy otherwise")
    parser.add_argument("--device", default="cpu",
                        help="smelt's; rivals run on the GPU if it is cuda (default: %(default)s)")  # fmt: skip
    parser.add_argument("--json", metavar="FILE", help="write all that was measured")
    parser.add_argument("--write", type=Path, metavar="FILE",
                        help="put the first table into a document with <!-- stalls DEVICE -->")  # fmt: skip
    options = parser.parse_args(argv)
    for name in options.names:
        if name not in programs:
            parser.error(f"unknown program {name!r}; there are {', '.join(programs)}")
    options.rivals = [name for name in options.rivals.split(",") if name]
    for name in options.rivals:
        if name not in NAMES[1:]:
            parser.error(f"unknown rival {name!r}; there are {', '.join(NAMES[1:])}")
    return options


def main(argv: Sequence[str]) -> None:
    options = parse(argv)
    if options.list:
        for program in programs.values():
            print(f"{program.name:20} {program.title}")
        return
    os.environ["SMELT_DEVICE"] = options.device
    cores = cores_of(options.cores)
    on_cpu = options.device == "cpu"
    names = options.names or [name for name, p in programs.items() if not (p.large and on_cpu)]
    chosen = [programs[name] for name in names]
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    notes = [f"the machine was busy at the start (load {load:.1f})"] if load > 0.5 else []
    pythons = {"smelt": sys.executable} | dict.fromkeys(options.rivals, options.rival_python)
    for name, python in list(pythons.items()):
        package = {"mlx": "mlx.core"}.get(name, name)
        if not imports(python, package):
            notes.append(f"{name} is not installed (`make bench-setup` installs it)")
            del pythons[name]
    columns = [name for name in NAMES if name in pythons]
    machine = Machine(options.limit, options.scale, options.processes, "cpu" if options.cpu else "seconds")
    for name in columns:  # modules are compiled to bytecode once, as an installation does it
        progress(f"{name}: started once")
        Machine(limit=1.0).measure(pythons[name], name, programs["first-call"])
    results: dict[str, dict[str, Any]] = {}
    versions: dict[str, str] = {}
    for program in chosen:
        replies = results[program.name] = {}
        for name in columns:
            progress(f"{program.name}: {name}")
            replies[name] = reply = machine.measure(pythons[name], name, program)
            if "version" in reply:
                versions[name] = reply["version"]
            if "error" in reply:
                notes.append(f"{program.name} in {name}: {reply['error']}")
        notes += disagreements(program, replies)
        if options.json:
            Path(options.json).write_text(json.dumps({"versions": versions, "results": results}, indent=1), "utf-8")
    progress("")
    shown = ", ".join(f"{k} {v}" for k, v in versions.items())
    clock = "; processor time" * options.cpu
    text = f"{cpu_name()}, {cores}{clock}; {shown}.\n\n{machine.times_table(chosen, results, columns)}"
    print(text)
    if options.write:
        write(options.write, f"stalls {options.device}", text)
    print(waits_table(chosen, results, columns))
    for note in notes:
        print(f"note: {note}")

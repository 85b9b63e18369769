"""Random graphs through kernels in processes of their own, so that a crash or a hang is a finding like others.

`python -m tests.long.programs 1000 200` runs the graphs of seeds 1000 to 1199 as the campaign does, in batches that
begin at multiples of BATCH; with one seed it runs that graph alone, in every way.
"""

from __future__ import annotations

import faulthandler
import json
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path

from tests.compose.kernels import WAYS, Way, problems

ROOT = Path(__file__).resolve().parents[2]
#: Graphs in one program.
BATCH = 10
TERMINATED = "terminated by a signal"
#: Seconds without a word from a process after which it hangs.
PATIENCE = 300.0


def way_of(seed: int) -> Way:
    """The way in which the batch of a seed runs."""
    return WAYS[seed // BATCH % len(WAYS)]


def work(first: int, count: int) -> None:
    """Run graphs; a line of JSON for each batch before it runs, and for each problem."""
    faulthandler.enable()
    if count == 1:
        for way in WAYS:
            for problem in problems(way.graphs([first]), way):
                print(json.dumps({"problem": problem}), flush=True)
        return
    for start in range(first, first + count, BATCH):
        seeds = range(start, min(start + BATCH, first + count))
        print(json.dumps({"batch": start}), flush=True)
        for problem in problems(way_of(start).graphs(seeds), way_of(start)):
            print(json.dumps({"problem": problem}), flush=True)


@dataclass
class Findings:
    """How many graphs ran, and what went wrong."""

    ran: int = 0
    texts: list[str] = field(default_factory=list)


def run(first: int, count: int) -> Findings:
    """Run graphs in processes of their own until all have run; crashes are narrowed down to a seed."""
    found = Findings()
    at, terminated = first, 0
    while at < first + count:
        last, ended = _process(at, first + count - at, found)
        if ended == "":
            break
        if ended == TERMINATED and terminated < 20:  # by somebody else
            at, terminated = last, terminated + 1
            continue
        culprits = [seed for seed in range(last, min(last + BATCH, first + count)) if _alone(seed, found)]
        which = f"seeds {culprits}" if culprits else f"seeds {last} to {last + BATCH - 1} together, not one alone"
        again = f"{culprits[0]} 1" if culprits else f"{last} {BATCH}"
        found.texts.append(f"{which}, again by python -m tests.long.programs {again}: {ended}")
        at = last + BATCH
    found.ran = count
    return found


def _alone(seed: int, found: Findings) -> bool:
    """Whether the graph of a seed crashes or hangs by itself."""
    return _process(seed, 1, found)[1] != ""


def _process(first: int, count: int, found: Findings) -> tuple[int, str]:
    """The last batch that began, and how the process ended: "" as it should."""
    command = [sys.executable, "-m", "tests.long.programs", str(first), str(count)]
    last = first
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None and child.stderr is not None
        timer = threading.Timer(PATIENCE, child.kill)
        timer.start()
        for line in child.stdout:
            timer.cancel()
            timer = threading.Timer(PATIENCE, child.kill)
            timer.start()
            told = json.loads(line)
            last = told.get("batch", last)
            if "problem" in told:
                found.texts.append(told["problem"])
        errors = child.stderr.read()
        code = child.wait()
        hung = not timer.is_alive() and code == -9
        timer.cancel()
    if code == 0:
        return last, ""
    if code == -signal.SIGTERM:
        return last, TERMINATED
    kind = f"no word for {PATIENCE:g} s" if hung else f"exit status {code}"
    return last, f"{kind}\n{errors[-2000:]}"


if __name__ == "__main__":
    work(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1)

"""Every family of operations by dtype and kind of shape, beside a copy of as many bytes, the slowest first.

``python -m benchmarks.roofline`` prints the table; ``--only softmax`` takes the rows that hold a text, ``--worst 20``
prints that many, ``--cores 1 --clock cpu`` compares the processor's time where others use the machine, ``--write
docs/performance.md`` puts the worst into the document. `benchmarks.roofline.nvidia` does the same for Metal's kernels
on a GPU.

The bytes of a row are those of its arguments and results, each once; the copy moves as many in the same run. Values are
compared with the NumPy interpreter before anything is timed. A family that has more to do than to move bytes
(`Family.bound`) is listed with its reason, not left out; so is what stays below three quarters of the copy (`REASONS`).
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import smelt
from smelt.ir.settings import override

from .. import worker
from ..machine import cores_of, cpu_name, progress
from .families import Row, drawn, rows
from .report import Result, report, write

#: Row and copy are timed in turns, and the shortest times count: what disturbs the machine for a while does not.
TURNS = 3


@functools.lru_cache(maxsize=16)
def _argument(number: int, shape: tuple[int, ...], dtype: str) -> Any:
    """An argument, the same for all rows: drawing numbers takes longer than most rows."""
    found = drawn(shape, dtype, np.random.default_rng(number))
    smelt.eval(found)
    return found


def measure(row: Row, seconds: float, check: bool) -> Result:
    """Check a row's values if asked to, then time it and a copy of as many bytes."""
    arrays = [_argument(number, *described) for number, described in enumerate(row.arguments())]
    function = smelt.compile(row.function())

    def run() -> Any:
        found = function(*arrays)
        smelt.eval(found)
        return found

    found = run()
    if check:
        _check(row, found, arrays)
    results = found if isinstance(found, tuple) else (found,)
    nbytes = row.nbytes([x.nbytes for x in arrays], [x.nbytes for x in results])
    del found, results
    run()
    times: list[float] = []
    copies: list[float] = []
    for _ in range(TURNS):
        times += worker.samples(run, seconds / TURNS)
        copies += worker.copy_time(nbytes, seconds / TURNS)
    milliseconds, copy = min(times) * 1e3, min(copies) * 1e3
    return Result(row.name, nbytes, milliseconds, copy, row.reason if copy < 0.75 * milliseconds else "")


def _check(row: Row, found: Any, arrays: Sequence[Any]) -> None:
    """Compare with the NumPy interpreter.

    Raises:
        AssertionError: a value differs.
    """
    device = smelt.default_device()
    hosts = [np.asarray(x.astype(smelt.float32) if x.dtype == smelt.bfloat16 else x) for x in arrays]
    smelt.set_default_device("reference")
    try:
        again = [smelt.array(h).astype(x.dtype) for h, x in zip(hosts, arrays)]
        wanted = row.function()(*again)
        smelt.eval(wanted)
        pairs = list(zip(*(x if isinstance(x, tuple) else (x,) for x in (found, wanted))))
        loose = {"float16": 2e-2, "bfloat16": 1e-1, "float32": 1e-3, "float64": 1e-9}.get(row.dtype, 0)
        for f, w in pairs:
            got, want = (np.asarray(x.astype(smelt.float64)) for x in (f, w))
            np.testing.assert_allclose(got, want, rtol=loose, atol=loose * max(1.0, float(np.abs(want).max())))
    finally:
        smelt.set_default_device(device)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.roofline", description=__doc__)
    parser.add_argument("--only", default="", help="rows whose name holds this text")
    parser.add_argument("--worst", type=int, default=1000, help="how many rows to print")
    parser.add_argument("--seconds", type=float, default=0.3, help="for a measurement")
    parser.add_argument("--check", action=argparse.BooleanOptionalAction, default=True, help="compare the values first")
    parser.add_argument("--clock", choices=sorted(worker.clocks), default="wall")
    parser.add_argument("--cores", type=int, help="for rows and copies; with one, --clock cpu counts no waiting")
    parser.add_argument("--write", type=Path, help="a document with <!-- roofline cpu -->: put the table there")
    options = parser.parse_args(arguments)
    worker.clock = worker.clocks[options.clock]
    cores = cores_of(options.cores)
    found = []
    with override(tier="program"):  # what is compiled in the background disturbs what is timed
        for row in rows():
            if options.only not in row.name:
                continue
            progress(row.name)
            try:
                found.append(measure(row, options.seconds, options.check))
            except (AssertionError, smelt.SmeltError) as error:
                found.append(Result(row.name, failure=" ".join(str(error).split())[:100]))
            smelt.clear_cache()
    progress("")
    machine = f"{cpu_name()}, {cores}{'; processor time' * (options.clock == 'cpu')}"
    text = report(machine, found, options.worst)
    print(text, end="")
    if options.write:
        write(options.write, "roofline cpu", text)


if __name__ == "__main__":
    main()

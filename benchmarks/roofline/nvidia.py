"""The same rows on an NVIDIA GPU: Metal's text compiled by NVRTC, beside a copy on the device.

``python -m benchmarks.roofline.nvidia emit DIR`` writes the kernels (any machine with smelt), ``... run DIR`` times
them (a machine with an NVIDIA GPU, NVRTC and NumPy); ``--write docs/performance.md`` puts the slowest into the
document. Arrays are `TIMES` as large as on the CPU, so that a launch does not count. The tests compare values; this
only times.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..nvidia import Loaded, Workload, copy_milliseconds, milliseconds, numpy_dtype
from .report import Result, report, write

TIMES = 4
DTYPES = ("float32", "bfloat16")
#: Elements that arguments repeat.
PATTERN = 2**20


def emit(directory: Path, only: str) -> None:
    """Write the kernels of the rows whose name holds `only`, and a list of them."""
    import smelt

    from .families import rows

    listed: list[dict[str, Any]] = []
    for row in rows(TIMES):
        if only not in row.name or row.dtype not in DTYPES:
            continue
        arguments = [(shape, "int32" if dtype == "index" else dtype) for shape, dtype in row.arguments()]
        avals = [smelt.ShapeDtype(shape, dtype) for shape, dtype in arguments]
        key = f"row{len(listed):03}"
        entry = {"name": row.name, "key": key, "bound": row.gpu_reason, "strided": row.strided}
        try:
            smelt.compile(row.function()).trace(*avals).lower().to_metal("nvidia").save(str(directory), key)
        except smelt.SmeltError as error:
            entry["failure"] = " ".join(str(error).split())[:100]
        listed.append({**entry, "arguments": row.arguments()})
    directory.mkdir(exist_ok=True)
    (directory / "rows.json").write_text(json.dumps(listed, indent=1), encoding="utf-8")


def arrays_of(arguments: Sequence[tuple[Sequence[int], str]]) -> list[np.ndarray]:
    """Values for the arguments: a pattern that repeats, and permutations of rows."""
    rng = np.random.default_rng(0)
    pattern = rng.standard_normal(PATTERN, np.float32)
    return [
        rng.permutation(shape[0]).astype(np.int32) if dtype == "index"
        else np.resize(pattern.astype(numpy_dtype(dtype)), tuple(shape))
        for shape, dtype in arguments
    ]  # fmt: skip


def measure(directory: Path, entry: dict[str, Any], nvrtc: Sequence[str]) -> Result:
    """Time a row's kernels."""
    if "failure" in entry:
        return Result(entry["name"], failure=entry["failure"])
    arrays = arrays_of(entry["arguments"])
    workload = Workload(entry["key"], entry["name"], lambda *_: None, [], lambda *_: np.empty(0))
    loaded = Loaded(directory, workload, nvrtc, arrays)
    try:
        first, *rest = [a.nbytes for a in arrays]
        nbytes = (first // 2 if entry["strided"] else first) + sum(rest) + sum(out.nbytes for out in loaded.outs)
        loaded.run()
        return Result(entry["name"], nbytes, milliseconds(loaded.run), copy_milliseconds(nbytes), entry["bound"])
    finally:
        loaded.free()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.roofline.nvidia", description=__doc__)
    parser.add_argument("command", choices=("emit", "run"))
    parser.add_argument("directory", type=Path)
    parser.add_argument("--only", default="", help="rows whose name holds this text")
    parser.add_argument("--worst", type=int, default=1000, help="how many rows to print")
    parser.add_argument("--nvrtc", nargs="*", default=["--fmad=false"], help="options of NVRTC")
    parser.add_argument("--write", type=Path, help="a document with <!-- roofline gpu -->: put the table there")
    options = parser.parse_args()
    if options.command == "emit":
        emit(options.directory, options.only)
        return
    from smelt.backends.cuda import driver

    listed = json.loads((options.directory / "rows.json").read_text(encoding="utf-8"))
    found = []
    for entry in listed:
        if options.only in entry["name"]:
            try:
                found.append(measure(options.directory, entry, options.nvrtc))
            except Exception as error:  # of the compiler or the driver: the other rows go on
                found.append(Result(entry["name"], failure=f"{type(error).__name__}: {error}"[:100]))
            print(f"{found[-1].fraction:6.2f} {found[-1].name}", flush=True)
    text = report(f"{driver.gpu_name()} ({driver.architecture()})", found, options.worst)
    print(text)
    if options.write:
        write(options.write, "roofline gpu", text)


if __name__ == "__main__":
    main()

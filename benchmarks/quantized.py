"""Products with quantized weights in every mode, beside the bandwidth of a read.

    python -m benchmarks.quantized                      # all: some hundred rows
    python -m benchmarks.quantized mxfp8 --rows 1,32    # a mode, or a mode and bits: affine-4
    python -m benchmarks.quantized --write docs/performance.md

Times are of a processor, the least of some calls, which take turns in several matrices: no cache holds all of them.
Run it with ``SMELT_NUM_THREADS=1``, for processor time counts threads that wait for memory.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import smelt

from .__main__ import replace_between_markers
from .machine import cpu_name, progress

#: Rows and columns of the weights, and bytes of all matrices of a row of the table.
SIZE, BYTES = 4096, 64 << 20
MODES = [("affine", bits, 64) for bits in (2, 3, 4, 5, 6, 8)] + [("mxfp4", 4, 32), ("mxfp8", 8, 32), ("nvfp4", 4, 16)]
DTYPES = ("float32", "float16", "bfloat16")
#: Seconds that calls are repeated.
SECONDS = 0.1


def least_time(f: Callable[[Any], Any], arguments: Sequence[Any]) -> float:
    """Seconds of a call."""
    for x in (arguments[0], arguments[-1]):
        smelt.eval(f(x))
    found, end, turns = [], time.perf_counter() + SECONDS, itertools.cycle(arguments)
    while len(found) < 5 or time.perf_counter() < end:
        x, start = next(turns), time.process_time()
        smelt.eval(f(x))
        found.append(time.process_time() - start)
    return min(found)


def bandwidth() -> float:
    """Bytes a second of a sum over much memory."""
    x = smelt.ones((1 << 25,))
    return x.nbytes / least_time(smelt.compile(lambda x: x.sum()), [x])


def packed(rng: np.random.Generator, mode: str, bits: int, group: int, dtype: Any) -> list[smelt.array]:
    """Any numbers, but none that is NaN."""
    words = rng.integers(0, 2**32, (SIZE, SIZE * bits // 32), np.uint32)
    shape = SIZE, SIZE // group
    if mode != "affine":
        scales = smelt.array(rng.integers(*((20, 60) if mode == "nvfp4" else (110, 120)), shape).astype(np.uint8))
        return [smelt.array(words & np.uint32(0xBFBFBFBF) if bits == 8 else words), scales]
    scales = smelt.array((rng.uniform(0.5, 1, shape) * 2.0**-bits).astype(np.float32)).astype(dtype)
    return [smelt.array(words), scales, -scales * 2 ** (bits - 1)]


def measured(
    form: tuple[str, int, int], name: str, transpose: bool, rows: Sequence[int]
) -> Iterator[tuple[int, float]]:  # fmt: skip
    """Bytes of the weights, and seconds, for each number of rows."""
    mode, bits, group = form
    rng, dtype = np.random.default_rng(0), getattr(smelt, name)
    first = packed(rng, *form, dtype)
    size = sum(x.nbytes for x in first)
    weights = [first, *(packed(rng, *form, dtype) for _ in range(BYTES // size))]
    for count in rows:
        x = smelt.array(rng.standard_normal((count, SIZE)).astype(np.float32)).astype(dtype)

        def product(w: list[smelt.array], x: smelt.array = x) -> smelt.array:
            biases = w[2] if len(w) > 2 else None
            return smelt.quantized_matmul(x, w[0], w[1], biases, transpose, group, bits, mode)

        smelt.eval(x, weights)
        yield size, least_time(smelt.compile(product), weights)


def table(forms: Sequence[tuple[str, int, int]], dtypes: Sequence[str], rows: Sequence[int]) -> str:
    read = bandwidth()
    head = " | ".join(f"{n} row{'s' if n > 1 else ''}" for n in rows)
    lines = [
        f"{cpu_name()}, one thread; milliseconds, and for one row its bandwidth as part of {read / 1e9:.1f} GB/s.",
        "",
        f"| {SIZE}² weights | dtype | {head} | not transposed: {head} |",
        "|---" * (2 + 2 * len(rows)) + "|",
    ]
    for form, dtype in itertools.product(forms, dtypes):
        cells = []
        for transpose in (True, False):
            for count, (size, seconds) in zip(rows, measured(form, dtype, transpose, rows)):
                part = f" ({size / seconds / read:.2f})" if count == 1 else ""
                cells.append(f"{seconds * 1e3:.2f}{part}")
        mode, bits, group = form
        lines.append(f"| {mode}, {bits} bits, groups of {group} | {dtype} | {' | '.join(cells)} |")
        progress(lines[-1])
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("modes", nargs="*", help="a mode, or a mode and bits: affine-4")
    parser.add_argument("--rows", default="1,2,4,8,32,128")
    parser.add_argument("--dtypes", default=",".join(DTYPES))
    parser.add_argument("--write", metavar="FILE", help="replace the table in a Markdown file")
    options = parser.parse_args()
    wanted = set(options.modes)
    forms = [f for f in MODES if not wanted or wanted & {f[0], f"{f[0]}-{f[1]}"}]
    text = table(forms, options.dtypes.split(","), [int(n) for n in options.rows.split(",")])
    if options.write:
        replace_between_markers(Path(options.write), text, "quantized")
    print(text)


if __name__ == "__main__":
    main()

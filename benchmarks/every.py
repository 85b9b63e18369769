"""Every public function that takes arrays alone, in kinds of shapes and dtypes, beside other libraries' of its name.

``python -m benchmarks.every`` prints the rows in which smelt takes longest beside the best of the others; patterns
choose functions, as `fft.*`. Calls are found by signatures, so that a new function has its rows; a library has a cell
where its function of that name takes the same arguments. smelt is timed lazily, as soon as a function runs the way that
it stays with, JAX as it is and compiled. The time is that of the process on one core.
"""

from __future__ import annotations

import argparse
import fnmatch
import importlib
import inspect
import json
import math
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .frameworks import Framework, frameworks

#: Where a library has functions of a namespace of smelt's.
HOMES: dict[str, dict[str, tuple[str, ...]]] = {
    "smelt": {"": ("smelt",), "linalg": ("smelt.linalg",), "fft": ("smelt.fft",)},
    "numpy": {
        "": ("numpy", "scipy.special"),
        "linalg": ("numpy.linalg", "scipy.linalg"),
        "fft": ("scipy.fft",),
    },
    "mlx": {"": ("mlx.core",), "linalg": ("mlx.core.linalg",), "fft": ("mlx.core.fft",)},
    "torch": {
        "": ("torch", "torch.special", "torch.nn.functional"),
        "linalg": ("torch.linalg",),
        "fft": ("torch.fft",),
    },
    "jax": {
        "": ("jax.numpy", "jax.scipy.special", "jax.nn", "jax.lax"),
        "linalg": ("jax.numpy.linalg", "jax.scipy.linalg"),
        "fft": ("jax.numpy.fft",),
    },
}
HOMES["jax_jit"] = HOMES["jax"]
#: What is called otherwise there.
OTHER_NAMES = {
    "torch": {"max": "amax", "min": "amin", "sigmoid": "sigmoid", "concatenate": "cat", "power": "pow"},
    "numpy": {"sigmoid": "expit", "lgamma": "gammaln", "softmax": "softmax"},
    "jax": {"lgamma": "gammaln"},
}
OTHER_NAMES["jax_jit"] = OTHER_NAMES["jax"]
#: Shapes of elementwise functions; of reductions, with their axis; of matrices; of rows that are transformed.
FLAT = ((8,), (10_000,), (1_000_000,))
REDUCED = (
    ((8,), 0), ((64, 64, 16, 16), (1, 3)), ((64, 64, 16, 16), (0, 2)), ((100, 100), 1), ((1000, 1000), 1),
    ((1000, 1000), 0), ((100, 100, 100), 1), ((100_000, 10), 1), ((10, 100_000), 1), ((1_000_000,), 0),
)  # fmt: skip
MATRICES = ((4, 4), (10_000, 4, 4), (1000, 16, 16), (100, 64, 64), (256, 256), (10_000, 3), (3, 2000))
ROWS = ((8,), (5000, 15), (1000, 100), (100, 1024), (1_000_000,))
#: Cases whose times are taken in one library after the other.
AT_ONCE = 50
DTYPES = ("float32", "float64", "complex64", "int32", "bool")


class _NumPy(Framework):
    package = "numpy"

    def array(self, x: np.ndarray) -> np.ndarray:
        return x


class Case:
    """A call: the function's name in smelt, shapes of arguments, keywords, a dtype."""

    def __init__(self, name: str, shapes: tuple[tuple[int, ...], ...], keywords: dict[str, Any], dtype: str):
        self.name, self.shapes, self.dtype = name, shapes, dtype
        self.keywords = {k: tuple(v) if isinstance(v, list) else v for k, v in keywords.items()}

    def __str__(self) -> str:
        shapes = " ".join("×".join(map(str, shape)) for shape in self.shapes)
        return f"{self.name} {shapes} {self.dtype}{''.join(f' {k}={v}' for k, v in self.keywords.items())}"

    @property
    def size(self) -> int:
        return max(map(math.prod, self.shapes))

    def arrays(self) -> list[np.ndarray]:
        """Numbers between 0.1 and 0.9, which most functions take; integers up to 8; square matrices are definite."""
        rng, made = np.random.default_rng(0), []
        for shape in self.shapes:
            x = rng.uniform(0.1, 0.9, shape)
            if self.dtype == "complex64":
                x = x + 1j * rng.uniform(0.1, 0.9, shape)
            if self.name.startswith("linalg.") and len(shape) > 1 and shape[-1] == shape[-2]:
                x = x + x.conj().swapaxes(-1, -2) + 2 * shape[-1] * np.eye(shape[-1])
            made.append((x > 0.5 if self.dtype == "bool" else x * 9 if self.dtype == "int32" else x).astype(self.dtype))
        return made

    def function(self, framework: str) -> Callable[..., Any] | None:
        """The library's function, with the keywords."""
        space, _, name = self.name.rpartition(".")
        name = OTHER_NAMES.get(framework, {}).get(name, name)
        for home in HOMES[framework][space]:
            found = getattr(importlib.import_module(home), name, None)
            if callable(found):
                keywords = self.keywords
                if framework == "torch":
                    keywords = {{"axis": "dim"}.get(k, k): v for k, v in keywords.items()}
                return lambda *arrays: found(*arrays, **keywords)
        return None


def _required(function: Any) -> tuple[int, list[str]] | None:
    """How many positional arguments a function needs, and the names of all."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return None
    needed = [p for p in parameters if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
    return len(needed), [p.name for p in parameters]


def cases(patterns: list[str], dtypes: list[str]) -> Iterator[Case]:
    """All calls, by the signatures of smelt's functions."""
    import smelt

    for space in ("", "linalg", "fft"):
        module: Any = importlib.import_module(f"smelt.{space}") if space else smelt
        for short in sorted(module.__all__):
            function, name = getattr(module, short), f"{space}.{short}" if space else short
            if isinstance(function, type) or not callable(function):
                continue
            if patterns and not any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns):
                continue
            found = _required(function)
            if found is None or found[0] not in (1, 2):
                continue
            needed, names = found
            if names[0] not in ("a", "x", "x1", "arr", "array", "z", "ar1"):
                continue
            if needed == 2 and names[1] not in ("b", "x2", "y", "q", "ar2"):
                continue
            for dtype in dtypes:
                for shapes, keywords in _shapes(space, names, needed):
                    yield Case(name, shapes, keywords, dtype)


def _shapes(space: str, names: list[str], needed: int) -> Iterator[tuple[tuple[tuple[int, ...], ...], dict[str, Any]]]:
    if space == "linalg":
        for shape in MATRICES:
            yield (shape,) * needed, {}
    elif space == "fft":
        for shape in ROWS:
            yield (shape,) * needed, {}
    elif "axis" in names and needed == 1:
        for shape, axis in REDUCED:
            yield (shape,), {"axis": axis}
    else:
        for shape in FLAT:
            yield (shape,) * needed, {}


def timed(run: Callable[[], Any], seconds: float) -> float:
    """The median of times of the process."""
    times: list[float] = []
    stop = time.perf_counter() + seconds
    number = 1
    while len(times) < 3 or time.perf_counter() < stop:
        start = time.process_time()
        for _ in range(number):
            run()
        times.append((time.process_time() - start) / number)
        if len(times) == 1 and times[0] < 1e-4:
            number = max(1, math.ceil(1e-3 / max(times[0], 1e-6)))
    return sorted(times)[len(times) // 2]


def measure(name: str, seconds: float) -> None:
    """Time the cases that are read, one a line, in one library; write a number or null for each."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-1:])
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    if name == "jax_jit":
        framework: Framework = frameworks["jax"]()
    else:
        framework = _NumPy() if name == "numpy" else frameworks[name]()
    if name.startswith("jax"):
        framework.module.config.update("jax_enable_x64", True)
    for line in sys.stdin:
        spent: float | str | None = None
        case = Case(*json.loads(line))
        try:
            function = case.function(name)
            if function is not None:
                arrays = [framework.array(x) for x in case.arrays()]
                if name == "jax_jit":
                    function = framework.module.jit(function)

                def run(function: Any = function, arrays: Any = arrays) -> Any:
                    return framework.wait(function(*arrays))

                run()
                framework.settle(run, 2 * seconds)
                spent = timed(run, seconds)
        except Exception as error:  # what it does not take
            spent = f"{type(error).__name__}: {error}"[:200]
        print(json.dumps(spent), file=replies, flush=True)


def ask(python: str, name: str, all_cases: list[Case], seconds: float) -> list[float | str | None]:
    """The times of all cases in one library; a process that dies is started anew behind the case that it died of."""
    times: list[float | str | None] = []
    environment = {**os.environ, **dict.fromkeys(("OMP_NUM_THREADS", "SMELT_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")}
    while len(times) < len(all_cases):
        command = [python, "-m", "benchmarks.every", "--measure", name, "--seconds", str(seconds)]
        asked = "".join(
            json.dumps([c.name, [list(s) for s in c.shapes], c.keywords, c.dtype]) + "\n"
            for c in all_cases[len(times) :]
        )
        done = subprocess.run(command, input=asked, capture_output=True, text=True, env=environment)
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        times += answers
        if len(times) < len(all_cases):
            if not answers and "ModuleNotFoundError" in done.stderr:
                return [None] * len(all_cases)
            times.append("the process ended")
    return times


def table(all_cases: list[Case], found: dict[str, list[float | str | None]], least: float) -> Iterator[str]:
    """Rows in which smelt takes `least` times as long as the best of the others, the worst first."""
    others = [name for name in found if name != "smelt"]
    rows = []
    for i, case in enumerate(all_cases):
        ours = found["smelt"][i]
        theirs = {name: t for name in others if isinstance(t := found[name][i], float)}
        if isinstance(ours, float) and theirs and ours >= least * min(theirs.values()):
            rows.append((ours / min(theirs.values()), case, ours, theirs))
    yield f"| call, µs | ratio | smelt | {' | '.join(others)} |"
    yield "| --- |" + " ---: |" * (len(others) + 2)
    for ratio, case, ours, theirs in sorted(rows, key=lambda row: -row[0]):
        cells = [f"{theirs[name] * 1e6:.4g}" if name in theirs else "" for name in others]
        yield f"| {case} | {ratio:.2f} | {ours * 1e6:.4g} | {' | '.join(cells)} |"


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("pattern", nargs="*", help="functions, as `linalg.*`; all if left out")
    parser.add_argument("--dtypes", default=",".join(DTYPES), help="default: %(default)s")
    parser.add_argument("--libraries", default="numpy,mlx,torch,jax,jax_jit", help="default: %(default)s")
    parser.add_argument("--rival-python", default=str(Path(".bench-venv/bin/python")), help="default: %(default)s")
    parser.add_argument("--seconds", type=float, default=0.05, help="time for each cell (default: %(default)s)")
    parser.add_argument("--least", type=float, default=1.2, help="rows from this ratio on (default: %(default)s)")
    parser.add_argument("--elements", type=int, default=0, help="of the arguments, at least (default: %(default)s)")
    parser.add_argument("--json", metavar="FILE", help="write all times")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.measure:
        return measure(args.measure, args.seconds)
    all_cases = [c for c in cases(args.pattern, args.dtypes.split(",")) if c.size >= args.elements]
    names = ["smelt", *args.libraries.split(",")]
    found: dict[str, list[float | str | None]] = {name: [] for name in names}
    for start in range(0, len(all_cases), AT_ONCE):  # what was measured by then is written
        part = all_cases[start : start + AT_ONCE]
        for name in names:
            found[name] += ask(sys.executable if name == "smelt" else args.rival_python, name, part, args.seconds)
        if args.json:
            measured = enumerate(all_cases[: start + AT_ONCE])
            times = {str(case): {name: found[name][i] for name in names} for i, case in measured}
            Path(args.json).write_text(json.dumps(times, indent=1))
    print(*table(all_cases, found, args.least), sep="\n")


if __name__ == "__main__":
    main()

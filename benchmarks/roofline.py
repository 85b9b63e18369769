"""Every family of operations by dtype and kind of shape, beside a copy of as many bytes, the slowest first.

``python -m benchmarks.roofline`` prints the table; ``--only softmax`` takes the rows that hold a text, ``--worst 20``
prints that many, ``--device cuda`` runs on another device, ``--clock cpu`` compares the processor's time where others
use the machine, ``--write docs/performance.md`` puts the worst into the document.

The bytes of a row are those of its arguments and results, each once (of a view: of the lines that it touches); the copy
moves as many in the same run. Values are compared with the NumPy interpreter before anything is timed. A family that
has more to do than to move bytes (`Family.bound`) is listed with its reason, not left out.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import smelt

from . import worker
from .machine import cpu_name, number, progress


@dataclass(frozen=True)
class Family:
    """Functions that should take as long as moving their arguments and results.

    Attributes:
        build: ``build(x, ...)`` with smelt's functions.
        operands: shapes of the arguments after the first, from the first one's; ``"index"`` stands for row numbers.
        axes: the axes along which it is timed; None stands for a family without one.
        dtypes: beside float32.
        bound: what it waits for beside memory, as a reason of what stays below the copy.
    """

    name: str
    build: Callable[..., Any]
    operands: Callable[[tuple[int, ...]], Sequence[tuple[int, ...] | str]] = lambda shape: ()
    axes: Sequence[int | None] = (None,)
    dtypes: Sequence[str] = ("float16", "bfloat16", "float64", "int32", "int8")
    bound: str = ""


def _same(shape: tuple[int, ...]) -> Sequence[tuple[int, ...]]:
    return [shape]


def _layer_norm(x: Any, axis: int) -> Any:
    centered = x - x.mean(axis=axis, keepdims=True)
    return centered * smelt.rsqrt((centered * centered).mean(axis=axis, keepdims=True) + 1e-5)


def _rms_norm(x: Any, axis: int) -> Any:
    return x * smelt.rsqrt((x * x).mean(axis=axis, keepdims=True) + 1e-5)


def _backward(f: Callable[..., Any]) -> Callable[..., Any]:
    def backward(x: Any, cotangent: Any, axis: int) -> Any:
        return smelt.vjp(lambda x: f(x, axis), [x], [cotangent])[1][0]

    return backward


def _cross_entropy(x: Any, axis: int) -> Any:
    return (smelt.logsumexp(x, axis=axis) - smelt.take(x, smelt.array(0), axis=axis)).mean()


def _adam(x: Any, m: Any, v: Any, gradient: Any) -> Any:
    m, v = 0.9 * m + 0.1 * gradient, 0.99 * v + 0.01 * gradient * gradient
    return x - 0.1 * m / (smelt.sqrt(smelt.abs(v)) + 1e-8), m, v


REAL = ("float16", "bfloat16", "float64")
ALL = (*REAL, "int32", "int8")
EXACT = ("int32", "int8")
BOTH = (-1, 0)

FAMILIES = (
    Family("negative", lambda x: -x),
    Family("add", lambda x, y: x + y, _same),
    Family("where", lambda x, y: smelt.where(x > 0, x, y), _same),
    Family("to float32", lambda x: x.astype(smelt.float32), dtypes=ALL),
    Family("to float16", lambda x: x.astype(smelt.float16), dtypes=("bfloat16", "int8")),
    Family("exp", smelt.exp, dtypes=REAL),
    Family("tanh", smelt.tanh, dtypes=REAL),
    Family("gelu", lambda x: x * (1 + smelt.erf(x / math.sqrt(2))) / 2, dtypes=REAL),
    Family("add a row", lambda x, y: x + y, lambda s: [s[-1:]]),
    Family("add a column", lambda x, y: x + y, lambda s: [(*s[:-1], 1)]),
    Family("add its transpose", lambda x: x + x.T),
    Family("Adam", _adam, lambda s: [s] * 3, dtypes=("float64",)),
    Family("sum", lambda x, axis: x.sum(axis=axis), axes=(-1, 0, None)),
    Family("mean", lambda x, axis: x.mean(axis=axis), axes=(-1, 0, None), dtypes=REAL),
    Family("max", lambda x, axis: x.max(axis=axis), axes=(-1, 0, None)),
    Family("argmax", lambda x, axis: x.argmax(axis=axis), axes=BOTH),
    Family("any", lambda x, axis: (x > 3).any(axis=axis), axes=(-1, 0, None)),
    Family("variance", lambda x, axis: x.var(axis=axis), axes=(-1, 0, None), dtypes=REAL),
    Family("norm", lambda x, axis: smelt.sqrt((x * x).sum(axis=axis)), axes=(-1, 0, None), dtypes=REAL),
    Family("logsumexp", lambda x, axis: smelt.logsumexp(x, axis=axis), axes=(-1, 0, None), dtypes=REAL),
    Family("softmax", lambda x, axis: smelt.softmax(x, axis=axis), axes=BOTH, dtypes=REAL),
    Family("log-softmax", lambda x, axis: x - smelt.logsumexp(x, axis=axis, keepdims=True), axes=BOTH, dtypes=REAL),
    Family("layer norm", _layer_norm, axes=BOTH, dtypes=REAL),
    Family("RMS norm", _rms_norm, axes=BOTH, dtypes=REAL),
    Family("softmax, backward", _backward(lambda x, a: smelt.softmax(x, axis=a)), _same, BOTH, REAL),
    Family("layer norm, backward", _backward(_layer_norm), _same, BOTH, REAL),
    Family("RMS norm, backward", _backward(_rms_norm), _same, BOTH, REAL),
    Family("cross entropy", _cross_entropy, axes=(-1,), dtypes=REAL),
    Family("cumsum", lambda x, axis: x.cumsum(axis=axis), axes=BOTH),
    Family("cummax", lambda x, axis: smelt.cummax(x, axis=axis), axes=BOTH),
    Family("transpose", lambda x: smelt.contiguous(x.T)),
    Family("concatenate", lambda x, y, axis: smelt.concatenate([x, y], axis=axis), _same, BOTH),
    Family("stack", lambda x, y: smelt.stack([x, y], axis=-1), _same),
    Family("pad", lambda x: smelt.pad(x, 1)),
    Family("flip", lambda x, axis: smelt.flip(x, axis), axes=BOTH),
    Family("roll", lambda x, axis: smelt.roll(x, 7, axis), axes=BOTH),
    Family("repeat", lambda x: smelt.repeat(x, 2, axis=-1)),
    Family("every other", lambda x: smelt.contiguous(x[..., ::2])),
    Family("rows by index", lambda x, at: x[at], lambda s: ["index"]),
    Family("add rows by index", lambda x, at, y: x.at[at].add(y), lambda s: ["index", s]),
    Family("inner product", lambda x, y: (x * y).sum(), _same, dtypes=REAL),
    Family("matrix · vector", lambda x, y: x @ y, lambda s: [s[-1:]], dtypes=REAL),
    Family("vector · matrix", lambda x, y: y @ x, lambda s: [s[:1]], dtypes=REAL),
    Family("sort", lambda x, axis: smelt.sort(x, axis=axis), axes=(-1,), bound="several passes over the keys"),
)

#: Kinds of shapes, of about 2²⁴ elements.
SHAPES = {
    "large": (4096, 4096),
    "tall": (2**20, 16),
    "wide": (16, 2**20),
    "odd": (4099, 4093),
}


@dataclass
class Row:
    """One measurement: `family` along `axis`, of a dtype and a kind of shape."""

    family: Family
    axis: int | None
    dtype: str
    kind: str
    milliseconds: float = math.nan
    copy: float = math.nan
    nbytes: int = 0
    failure: str = ""

    @property
    def name(self) -> str:
        along = {-1: " of rows", 0: " of columns", None: ""}[self.axis] if len(self.family.axes) > 1 else ""
        return f"{self.family.name}{along}, {self.kind} {self.dtype}"

    @property
    def fraction(self) -> float:
        return self.copy / self.milliseconds

    def function(self) -> Callable[..., Any]:
        if self.family.axes == (None,):
            return self.family.build
        return lambda *arrays: self.family.build(*arrays, axis=self.axis)

    def arrays(self, rng: np.random.Generator) -> list[Any]:
        """The arguments, on the device."""
        shape = SHAPES[self.kind.removeprefix("strided ")]
        if self.kind.startswith("strided"):
            whole = _drawn((shape[0], 2 * shape[1]), self.dtype, rng)
            first = whole[:, : shape[1]]
        else:
            first = _drawn(shape, self.dtype, rng)
        rest = [
            smelt.array(rng.permutation(shape[0]).astype(np.int32)) if o == "index" else _drawn(o, self.dtype, rng)
            for o in self.family.operands(shape)
        ]
        return [first, *rest]


def _drawn(shape: Any, dtype: str, rng: np.random.Generator) -> Any:
    if dtype.startswith("int"):
        return smelt.array(rng.integers(-5, 6, shape, np.int8).astype(dtype))
    return smelt.array(rng.standard_normal(shape, np.float32)).astype(getattr(smelt, dtype))


def rows() -> Iterator[Row]:
    """The table's rows: every family and axis, float32 of every kind of shape, other dtypes of the large one."""
    for family in FAMILIES:
        square = family.name == "add its transpose"
        for axis in family.axes:
            for kind in [k for k in SHAPES if not square or len(set(SHAPES[k])) == 1]:
                yield Row(family, axis, "float32", kind)
            if not square:
                yield Row(family, axis, "float32", "strided large")
            for dtype in family.dtypes:
                yield Row(family, axis, dtype, "large")


def measure(row: Row, seconds: float, check: bool) -> None:
    """Fill in a row: check its values if asked to, then time it and a copy of as many bytes."""
    arrays = row.arrays(np.random.default_rng(0))
    smelt.eval(arrays)
    function = smelt.compile(row.function())

    def run() -> Any:
        found = function(*arrays)
        smelt.eval(found)
        return found

    found = run()
    if check:
        _check(row, found, arrays)
    leaves = [*arrays, *(found if isinstance(found, tuple) else [found])]
    row.nbytes = sum(x.nbytes for x in leaves)
    del found, leaves
    run()
    row.milliseconds = statistics.median(worker.samples(run, seconds)) * 1e3
    row.copy = statistics.median(worker.copy_time(row.nbytes, seconds)) * 1e3


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


def table(found: Sequence[Row]) -> str:
    lines = ["| row | MB | ms | copy, ms | of the copy | |", "| --- | ---: | ---: | ---: | ---: | --- |"]
    for row in found:
        cells = [row.name, number(row.nbytes / 1e6), number(row.milliseconds), number(row.copy)]
        lines.append(f"| {' | '.join(cells)} | **{row.fraction:.2f}** | {row.failure or row.family.bound} |")
    return "\n".join(lines) + "\n"


def summary(found: Sequence[Row]) -> str:
    fractions = sorted(row.fraction for row in found)
    low = sum(f < 0.75 for f in fractions)
    return (
        f"{cpu_name()}, {smelt.default_device()}: {len(found)} rows, {low} below 0.75 of the copy; "
        f"median {statistics.median(fractions):.2f}, lowest {fractions[0]:.2f}.\n"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.roofline", description=__doc__)
    parser.add_argument("--only", default="", help="rows whose name holds this text")
    parser.add_argument("--worst", type=int, default=1000, help="how many rows to print")
    parser.add_argument("--seconds", type=float, default=0.3, help="for a measurement")
    parser.add_argument("--check", action=argparse.BooleanOptionalAction, default=True, help="compare the values first")
    parser.add_argument("--clock", choices=sorted(worker.clocks), default="wall")
    parser.add_argument("--device", help="instead of the default one")
    parser.add_argument("--write", type=Path, help="a document with <!-- roofline -->: put the table there")
    options = parser.parse_args(arguments)
    worker.clock = worker.clocks[options.clock]
    if options.device:
        smelt.set_default_device(options.device)
    found = []
    for row in rows():
        if options.only not in row.name:
            continue
        progress(row.name)
        try:
            measure(row, options.seconds, options.check)
        except (AssertionError, smelt.SmeltError) as error:
            row.failure = " ".join(str(error).split())[:100]
        smelt.clear_cache()
        found.append(row)
    progress("")
    found.sort(key=lambda row: row.fraction if row.fraction == row.fraction else -1)
    text = f"{summary([r for r in found if not r.failure])}\n{table(found[: options.worst])}"
    print(text, end="")
    if options.write:
        page = options.write.read_text(encoding="utf-8")
        start, end = page.index("<!-- roofline -->"), page.index("<!-- end of roofline -->")
        options.write.write_text(f"{page[:start]}<!-- roofline -->\n{text}{page[end:]}", encoding="utf-8")


if __name__ == "__main__":
    main()

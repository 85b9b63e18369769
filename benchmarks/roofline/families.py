"""What is timed: families of operations, and the rows that dtypes, axes and kinds of shapes make of them."""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import smelt


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
    return (smelt.logsumexp(x, axis=axis) - x[..., 0]).mean()


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
    Family("to int32 and back", lambda x: x.astype(smelt.int32).astype(smelt.float32), dtypes=ALL),
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

#: Why rows of the CPU stay below three quarters of the copy, by patterns of their names; the first that fits counts.
REASONS = {
    "logsumexp*": "an exponential of each element takes longer than reading it",
    "cross entropy*": "an exponential of each element takes longer than reading it",
    "softmax* of columns*": "two readings of a panel in cache, and an exponential of each element",
    "softmax* of rows*": "an exponential of each element",
    "log-softmax*": "an exponential of each element",
    "layer norm, backward of columns*": "five sums, in two readings of a panel in cache before a third",
    "layer norm* of columns*": "three readings of a panel in cache, each of whose lines lies on another page",
    "RMS norm* of columns*": "two readings of a panel in cache, each of whose lines lies on another page",
    "variance of columns*": "two readings of a chunk in cache: squared distances are from the mean, for accuracy",
    "variance*": "two readings: squared distances are from the mean, for accuracy",
    "argmax*": "a NaN wins, which takes three instructions an element; one block is read once more",
    "max*": "a NaN wins, which takes three instructions an element",
    "add its transpose*": "a line of memory is read of each of many pages, turned in registers, and written to others",
    "transpose*": "a line of memory is read of each of many pages, turned in registers, and written to others",
    "rows by index*": "rows are read where their numbers say",
    "add rows by index*": "rows are read and written where their numbers say, in order",
    "cumsum of rows*": "each element waits for the one before it",
    "cummax of rows*": "each element waits for the one before it",
    "gelu*": "a polynomial of each element",
    "tanh*": "a polynomial of each element",
    "exp*": "a polynomial of each element",
    "*, strided*": "every other 16 kB of memory are read: NumPy's loops take as much longer for it, too",
}

#: The same on a GPU.
GPU_REASONS = {
    "add rows by index*": "row numbers are sorted, and rows read where they say",
    "cross entropy, tall*": "a thread reads a row, and another kernel its first element once more",
    "logsumexp*": "an exponential of each element, in float32",
    "cross entropy*": "an exponential of each element, in float32",
    "layer norm, backward of columns*": "five sums, and two readings",
    "*softmax of columns, odd*": "two readings, and rows that begin anywhere in a sector",
    "*norm of columns, odd*": "two readings, and rows that begin anywhere in a sector",
    "*backward of columns, odd*": "two readings, and rows that begin anywhere in a sector",
    "cum* of columns, odd*": "two readings, and rows that begin anywhere in a sector",
    "*softmax of columns*": "two readings, and an exponential of each element",
    "softmax, backward of columns*": "two readings, and an exponential of each element",
    "*norm* of columns*": "two readings",
}

#: Kinds of shapes, of about 2²⁴ elements.
SHAPES = {
    "large": (4096, 4096),
    "tall": (2**20, 16),
    "wide": (16, 2**20),
    "odd": (4099, 4093),
}


@dataclass
class Row:
    """`family` along `axis`, of a dtype and a kind of shape; arrays `times` as large as those of the CPU."""

    family: Family
    axis: int | None
    dtype: str
    kind: str
    times: int = 1

    @property
    def name(self) -> str:
        along = {-1: " of rows", 0: " of columns", None: ""}[self.axis] if len(self.family.axes) > 1 else ""
        return f"{self.family.name}{along}, {self.kind} {self.dtype}"

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the first argument. Squares stay squares, rows that are few get longer, others more."""
        rows, columns = SHAPES[self.kind.removeprefix("strided ")]
        if rows == columns:
            return rows * math.isqrt(self.times), columns * math.isqrt(self.times)
        return (rows, columns * self.times) if self.kind == "wide" else (rows * self.times, columns)

    @property
    def strided(self) -> bool:
        """Whether the first argument is the left half of an array."""
        return self.kind.startswith("strided")

    @property
    def reason(self) -> str:
        """Why it may stay below the copy; nothing where none is known."""
        return self._reason(REASONS)

    @property
    def gpu_reason(self) -> str:
        """The same on a GPU."""
        return self._reason(GPU_REASONS)

    def _reason(self, reasons: Mapping[str, str]) -> str:
        known = (text for pattern, text in reasons.items() if fnmatch.fnmatchcase(self.name, pattern))
        return self.family.bound or next(known, "")

    def function(self) -> Callable[..., Any]:
        """What is timed, of the arrays of `arguments`."""
        columns, axis = self.shape[1], {} if self.family.axes == (None,) else {"axis": self.axis}

        def run(first: Any, *rest: Any) -> Any:
            return self.family.build(first[:, :columns] if self.strided else first, *rest, **axis)

        return run

    def arguments(self) -> list[tuple[tuple[int, ...], str]]:
        """Shapes and dtypes of the arguments; ``"index"`` stands for a permutation of the rows."""
        rows, columns = self.shape
        first = (rows, 2 * columns) if self.strided else (rows, columns)
        rest = self.family.operands(self.shape)
        return [(first, self.dtype), *(((rows,), "index") if o == "index" else (tuple(o), self.dtype) for o in rest)]

    def nbytes(self, arguments: Sequence[int], results: Sequence[int]) -> int:
        """What has to be moved, from the bytes of all arguments and results."""
        first, *rest = arguments
        return (first // 2 if self.strided else first) + sum(rest) + sum(results)


def drawn(shape: tuple[int, ...], dtype: str, rng: np.random.Generator) -> Any:
    """An argument on the device."""
    if dtype == "index":
        return smelt.array(rng.permutation(shape[0]).astype(np.int32))
    if dtype.startswith("int"):
        return smelt.array(rng.integers(-5, 6, shape, np.int8).astype(dtype))
    return smelt.array(rng.standard_normal(shape, np.float32)).astype(getattr(smelt, dtype))


def rows(times: int = 1) -> Iterator[Row]:
    """The table's rows: every family and axis, float32 of every kind of shape, other dtypes of the large one."""
    for family in FAMILIES:
        square = family.name == "add its transpose"
        for axis in family.axes:
            for kind in [k for k in SHAPES if not square or len(set(SHAPES[k])) == 1]:
                yield Row(family, axis, "float32", kind, times)
            if not square:
                yield Row(family, axis, "float32", "strided large", times)
            for dtype in family.dtypes:
                yield Row(family, axis, dtype, "large", times)

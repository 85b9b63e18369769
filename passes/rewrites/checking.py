"""What a rewrite does to values: its patterns run before and after it by the `reference` rules, on made-up inputs.

A rewrite is *exact* where no bit differs, also for infinities, NaN, signed zeros and subnormal numbers, and integers
that wrap. It is *bounded* where results differ by a few units in the last place, or, as algebra of real numbers does,
by a few units of the largest value on the way, where all values are of moderate size. Else it is *wrong*.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from smelt.ir import dtypes, mlir
from smelt.ir.aval import Aval
from smelt.ir.builder import Function, function_named
from smelt.ir.dtypes import DType
from smelt.ir.errors import IRError, SmeltError
from smelt.ir.interpreter import run_op

from ..inputs import extreme_integers, extremes
from ..simplify.patterns import Pattern
from .apply import apply_table
from .instances import Instance, instances
from .sets import Rewrite, patterns_by_op

#: Units in the last place up to which a rewrite is bounded: of the result, or of the largest value on the way.
MAX_ULPS = 64.0
#: Kinds of inputs. Only those of the last are what algebra of real numbers is about.
KINDS = ("bits", "special", "small", "random", "moderate")


#: Patterns by the ops that they begin with.
Table = dict[Any, tuple[Pattern, ...]]


@dataclass
class Verdict:
    """What became of a rewrite.

    Attributes:
        verdict: "exact", "bounded", "wrong", or "unseen" where no program was found that it matches.
        ulps: by how much results differ at most, of the result's last place; of the largest value's where `relative`.
        relative: results differ by more, but not by more than values on the way were rounded.
        dtypes: those on which it was tried.
        instances, values: how many programs and numbers.
        example: the worst case.
        endless: what is wrong where the rewrite matches what it emits, again and again.
        kept: whether it is what the rewrite claims.
    """

    rewrite: Rewrite
    verdict: str = "unseen"
    ulps: float = 0.0
    relative: bool = False
    dtypes: list[str] = field(default_factory=list)
    instances: int = 0
    values: int = 0
    example: str = ""
    endless: str = ""

    @property
    def kept(self) -> bool:
        if self.endless:
            return False
        if self.verdict == "exact":
            return True
        if self.verdict != "bounded":
            return False
        return self.rewrite.reals or (not self.relative and self.ulps <= self.rewrite.ulps)

    def __str__(self) -> str:
        said = self.verdict
        if self.verdict == "bounded":
            said = f"within {self.ulps:.3g} ulp" + (" of the largest value" if self.relative else "")
            if self.relative and not self.kept:
                said += " where values are of moderate size, another value elsewhere"
        line = f"{self.rewrite.name}: {said}"
        if self.verdict != "exact" and not self.kept:
            line += f", claimed: {self.rewrite.claim}"
        if self.verdict == "unseen":
            return f"{line}; no program was found that it matches"
        line += f" ({self.instances} programs, {self.values} values, {len(self.dtypes)} dtypes)"
        notes = [] if self.kept else [note for note in (self.example, self.endless) if note]
        return "\n    ".join([line, *notes])


def check(rewrite: Rewrite, seed: int = 0, among: Iterable[DType] = dtypes.ALL) -> Verdict:
    """Run a rewrite on programs that it matches, of the dtypes `among` these.

    >>> from smelt.passes.rewrites import RewriteSet, Rule, Term, ops
    >>> trial = RewriteSet("trial")
    >>> @trial.rewrite
    ... def abs_of_neg(x: Term) -> Rule:
    ...     return abs(-x) >> x
    >>> check(abs_of_neg).verdict
    'wrong'
    """
    verdict = Verdict(rewrite)
    strict, loose = _Worst(), _Worst()
    table: Table = {op: (p,) for op, p in patterns_by_op(rewrite)}
    try:
        for dtype in among:
            for rule in rewrite.rules:
                for instance in instances(rule, dtype, seed, examples=rewrite.examples):
                    _try(rewrite, table, instance, verdict, strict, loose, seed)
    except SmeltError as error:  # a function that it asks fails
        verdict.verdict, verdict.example = "wrong", str(error)
        return verdict
    if verdict.instances:
        _judge(verdict, strict, loose)
    return verdict


class _Worst:
    """The largest difference so far, in ulp; infinite where values are simply others."""

    def __init__(self) -> None:
        self.ulps, self.example, self.equal = 0.0, "", True

    def see(self, ulps: float, equal: bool, example: str) -> None:
        self.equal &= equal
        if ulps > self.ulps or (not equal and not self.example):
            self.ulps, self.example = max(ulps, self.ulps), example


def _judge(verdict: Verdict, strict: _Worst, loose: _Worst) -> None:
    if strict.equal:
        verdict.verdict = "exact"
        return
    verdict.example = strict.example
    if strict.ulps <= MAX_ULPS:
        verdict.verdict, verdict.ulps = "bounded", strict.ulps
    elif loose.ulps <= MAX_ULPS:
        verdict.verdict, verdict.ulps, verdict.relative = "bounded", loose.ulps, True
    else:
        verdict.verdict, verdict.example = "wrong", loose.example or strict.example


def _try(
    rewrite: Rewrite, table: Table, instance: Instance, verdict: Verdict, strict: _Worst, loose: _Worst, seed: int
) -> None:
    module = instance.module
    rng = np.random.default_rng([seed, verdict.instances])
    with mlir.lock, np.errstate(all="ignore"):
        inputs = [(kind, [drawn(a, kind, rng) for a in instance.arguments]) for kind in KINDS for _ in range(2)]
        before = function_named(module)
        results = [_run(before, arrays) for _, arrays in inputs]
        counted: Counter = Counter()
        apply_table(module, table, counted, once=True)
        if not counted[rewrite.name]:
            return
        after = function_named(module)
        verdict.instances += 1
        if instance.dtype.name not in verdict.dtypes:
            verdict.dtypes.append(instance.dtype.name)
        for (kind, arrays), (was, largest) in zip(inputs, results):
            now, other = _run(after, arrays)
            verdict.values += was.size
            _compare(kind, instance, arrays, was, now, max(largest, other), strict, loose)
        try:
            if not rewrite.both_ways:
                apply_table(module, table, Counter())
        except IRError as error:
            verdict.endless = str(error)


def _run(function: Function, arrays: list[np.ndarray]) -> tuple[np.ndarray, float]:
    """The result of a function with one result, and the largest finite value that it computed."""
    env: dict[Any, Any] = dict(zip(function.arguments, arrays))
    for op in function.ops:
        env.update(zip(op.results, run_op(op.op, [env[v] for v in op.operands], op.attrs, op, True)))
    (result,) = (np.asarray(env[v]) for v in function.returns)
    return result, max(map(_largest, env.values()), default=0.0)


def _largest(x: Any) -> float:
    x = np.asarray(x)
    if x.dtype.kind == "b" or not x.size:
        return 0.0
    magnitudes = np.abs(x.astype(np.complex128 if x.dtype.kind == "c" else np.float64))
    return float(np.max(magnitudes, where=np.isfinite(magnitudes), initial=0.0))


def _compare(
    kind: str,
    instance: Instance,
    arrays: list[np.ndarray],
    was: np.ndarray,
    now: np.ndarray,
    largest: float,
    strict: _Worst,
    loose: _Worst,
) -> None:
    def example(at: int) -> str:
        given = ", ".join(np.array2string(x.ravel()[:4], precision=9, separator=", ") for x in arrays)
        where = list(map(int, np.unravel_index(at, was.shape)))
        return f"{instance.shown}: {was.flat[at]!s} at {where} became {now.flat[at]!s}; inputs {given}"

    if was.dtype.kind == "c":
        was, now = _classed(was), _classed(now)
    for p, q in zip(_parts(was), _parts(now)):
        ulps, equal = ulps_between(p, q)
        if not equal.all():
            at = int(np.argmax(np.where(equal, -1.0, ulps)))
            strict.see(float(ulps.ravel()[at]), False, example(at))
        # Of integers and truth values there is no rounding: each that is another is wrong.
        if (kind == "moderate" or not instance.dtype.is_inexact) and p.size and not equal.all():
            far = relative_ulps(p, q, largest)
            at = int(np.argmax(far))
            loose.see(float(far[at]), True, example(at))


def _classed(x: np.ndarray) -> np.ndarray:
    """Complex numbers with an infinite part as one infinity, and the others with a NaN as one NaN."""
    x = x.copy()
    infinite = np.isinf(x)
    x[np.isnan(x) & ~infinite], x[infinite] = complex(np.nan, np.nan), complex(np.inf, np.inf)
    return x


def _parts(x: np.ndarray) -> Iterable[np.ndarray]:
    return (x.real, x.imag) if x.dtype.kind == "c" else (x,)


def ulps_between(p: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """By how many representable numbers elements lie apart, and whether they are the same (a NaN is like another).

    >>> ulps_between(np.float32([1, 0.0, np.inf]), np.float32([1.0000001, -0.0, 1]))[0].tolist()
    [1.0, 1.0, inf]
    """
    p, q = p.ravel(), q.ravel()
    if p.dtype.kind in "biu":
        equal = p == q
        return np.where(equal, 0.0, math.inf), equal
    nan = np.isnan(p) & np.isnan(q)
    equal = nan | ((p == q) & (np.signbit(p) == np.signbit(q)))
    signed = np.dtype(f"i{p.dtype.itemsize}")
    places = []
    for x in (p, q):
        bits = np.ascontiguousarray(x).view(signed).astype(object if signed.itemsize == 8 else np.int64)
        places.append(np.where(bits < 0, -(bits & ((1 << (8 * signed.itemsize - 1)) - 1)) - 1, bits))
    apart = np.abs(places[0] - places[1]).astype(np.float64)
    special = ~(np.isfinite(p) & np.isfinite(q))
    return np.where(equal, 0.0, np.where(special, math.inf, np.maximum(apart, 1.0))), equal


def relative_ulps(p: np.ndarray, q: np.ndarray, largest: float) -> np.ndarray:
    """By how many units in the last place of `largest` elements lie apart."""
    p, q = p.ravel(), q.ravel()
    if p.dtype.kind in "biu":
        return np.where(p == q, 0.0, math.inf)
    wide = p.astype(np.float64), q.astype(np.float64)
    same = (wide[0] == wide[1]) | (np.isnan(p) & np.isnan(q))
    epsilon = _epsilon(p.dtype) * max(largest, 1e-30)
    apart = np.abs(wide[0] - wide[1]) / epsilon
    return np.where(same, 0.0, np.where(np.isfinite(apart), apart, math.inf))


def _epsilon(dtype: np.dtype) -> float:
    return 2.0 ** (1 - dtypes.of_numpy(dtype).digits)


def drawn(aval: Aval, kind: str, rng: np.random.Generator) -> np.ndarray:
    """An array of a type: any bits, special numbers (zeros, the ends of the range, those that are no numbers), small
    integers, normal numbers, or numbers from ½ to 2."""
    dtype: DType = aval.dtype
    shape = aval.shape
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.is_integer:
        if kind == "bits":
            info = np.iinfo(dtype.numpy)
            return np.asarray(rng.integers(info.min, info.max, shape, dtype=dtype.numpy, endpoint=True))
        if kind == "special":
            return np.asarray(rng.choice(extreme_integers(dtype), shape))
        return np.asarray(rng.integers(0 if dtype.kind == "u" else -3, 6, shape)).astype(dtype.numpy)
    if dtype.is_complex:
        part = aval.with_dtype(dtypes.float32 if dtype is dtypes.complex64 else dtypes.float64)
        real, imag = drawn(part, kind, rng), drawn(part, kind, rng)
        made = np.empty(shape, dtype.numpy)
        made.real, made.imag = real, imag
        return made
    if kind == "bits":
        return np.frombuffer(rng.bytes(aval.size * dtype.size), dtype.numpy).reshape(shape).copy()
    if kind == "special":
        values = rng.choice(extremes(dtype, rng), shape)
    elif kind == "small":
        values = rng.integers(-3, 4, shape).astype(float)
    elif kind == "random":
        values = rng.standard_normal(shape)
    else:
        values = rng.uniform(0.5, 2.0, shape) * rng.choice([-1.0, 1.0], shape)
    return np.asarray(values).astype(dtype.numpy)

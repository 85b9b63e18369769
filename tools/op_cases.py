"""Cases of ops, made of what they say of themselves: the MLIR example of each, varied in dtype and shape."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import smelt.ir.ops  # noqa: F401
from smelt.ir import dtypes, examples, mlir
from smelt.ir.aval import Aval
from smelt.ir.builder import Builder, Value, new_function
from smelt.ir.dialect import context
from smelt.ir.dtypes import DType
from smelt.ir.errors import SmeltError
from smelt.ir.interpreter import Interpreter, run_op
from smelt.ir.op import Op, registry
from smelt.passes import Pipeline
from smelt.passes.call_graph import EXPAND

#: What a transformed function becomes ops by.
EXPANDED = Pipeline.parse(EXPAND)


@dataclass(frozen=True, eq=False)
class Case:
    """An op with operand types and attributes."""

    op: Op
    avals: tuple[Aval, ...]
    attrs: tuple[tuple[str, Any], ...]

    @property
    def kwargs(self) -> dict[str, Any]:
        return dict(self.attrs)

    @property
    def results(self) -> tuple[Aval, ...]:
        return self.op.infer_checked(self.avals, self.kwargs)

    def __str__(self) -> str:
        own = dict(example(self.op).attrs)
        others = [f"{k}={v}" for k, v in self.attrs if repr(v) != repr(own.get(k))]
        return "-".join([self.op.name, *map(str, self.avals), *others])


def plain_ops() -> list[Op]:
    """Ops of tensors alone, whose own example can be varied; the others have tests of their own."""
    return [op for op in registry.values() if op.kind != "transform" and not op.mixed]


@functools.cache
def example(op: Op) -> Case:
    """The case in the op's docstring."""
    avals, attrs = examples.example(op)
    return Case(op, avals, tuple(attrs.items()))


ELEMENTWISE_SHAPES = ((), (0,), (1,), (5,), (3, 4), (2, 1, 3))


@functools.cache
def cases(op: Op) -> tuple[Case, ...]:
    """The example in every dtype that the op takes; elementwise ops also in several shapes."""
    base = example(op)
    found = [base]
    for dtype in dtypes.ALL:
        found += valid(op, with_dtype(base, dtype), base.attrs)
    if op.kind == "elementwise":
        for shape in ELEMENTWISE_SHAPES:
            found += valid(op, tuple(a.with_shape(shape) for a in base.avals), base.attrs)
    return tuple({c.avals: c for c in found}.values())


def with_dtype(case: Case, dtype: DType) -> tuple[Aval, ...]:
    """The operands with a dtype in place of that of the first that is no condition."""
    main = next((a.dtype for a in case.avals if a.dtype.kind != "b"), dtypes.bool_)
    return tuple(a.with_dtype(dtype) if a.dtype is main else a for a in case.avals)


def valid(op: Op, avals: tuple[Aval, ...], attrs: tuple) -> list[Case]:
    """The case, if the op takes these types."""
    try:
        op.infer(*avals, **dict(attrs))
    except SmeltError:
        return []
    return [Case(op, avals, attrs)]


def all_cases() -> list[Case]:
    return [c for op in plain_ops() for c in cases(op)]


#: The first has both signs, for derivatives that differ between them.
INTERVALS = ((-0.95, 0.95), (0.2, 0.9), (1.2, 2.0), (-0.9, -0.2))


def sample(aval: Aval, rng: np.random.Generator, interval: tuple[float, float] = (-2.0, 2.0)) -> np.ndarray:
    """Random elements: floats from an interval, integers small, bools fair."""
    if aval.dtype.kind == "b":
        return rng.random(aval.shape) < 0.5
    if aval.dtype.is_integer:
        low = 0 if aval.dtype.kind == "u" else -4
        return rng.integers(low, 5, aval.shape).astype(aval.dtype.numpy)
    x = rng.uniform(*interval, aval.shape)
    if aval.dtype.is_complex:
        return (x + 1j * rng.uniform(*interval, aval.shape)).astype(aval.dtype.numpy)
    return np.asarray(x).astype(aval.dtype.numpy)


def random_operands(
    case: Case, rng: np.random.Generator, interval: tuple[float, float] = (-2.0, 2.0)
) -> list[np.ndarray]:
    """Random operands of a case; an op that is not defined everywhere says where it is."""
    own: Callable[..., Sequence[np.ndarray]] | None = getattr(case.op, "sample", None)
    if own is not None:
        return list(own(rng, *case.avals, **case.kwargs))
    return [sample(a, rng, interval) for a in case.avals]


def smooth_operands(case: Case, seed: int = 0) -> list[np.ndarray] | None:
    """Operands at which the op is finite and, generically, smooth."""
    for interval in INTERVALS:
        rng = np.random.default_rng(seed)
        operands = random_operands(case, rng, interval)
        with np.errstate(all="ignore"):
            outs = reference(case, operands)
        if all(np.isfinite(np.asarray(o, dtype=complex)).all() for o in outs):
            return operands
    return None


def reference(case: Case, operands: Sequence[np.ndarray]) -> list[np.ndarray]:
    return list(run_op(case.op, operands, case.kwargs, reference=True))


def wrt_of(case: Case) -> tuple[int, ...]:
    """Operands that may have a tangent."""
    return tuple(i for i, a in enumerate(case.avals) if a.dtype.is_inexact)


def seeds_of(case: Case) -> tuple[int, ...]:
    """Results that may have a cotangent."""
    return tuple(i for i, r in enumerate(case.results) if r.dtype.is_inexact)


def choices(case: Case) -> list[tuple[int, ...]]:
    """Each differentiable operand alone, and all of them together."""
    wrt = wrt_of(case)
    return [*((i,) for i in wrt), wrt] if len(wrt) > 1 else [wrt]


def differentiable(op: Op) -> list[Case]:
    """A case of float64 and one of complex128, as far as an op with a derivative takes them."""
    if op.not_differentiable is not None or not op.operand_names:
        return []
    known = {c.avals: c for c in cases(op)}
    wide = [known.get(with_dtype(example(op), dtype)) for dtype in (dtypes.float64, dtypes.complex128)]
    if not any(wide):
        wide = [next((c for c in cases(op) if wrt_of(c)), None)]
    return [c for c in wide if c is not None and seeds_of(c)]


#: What takes the place of an axis's extent.
EXTENTS = (0, 1, 7)


def resized(case: Case, extents: Sequence[int] = EXTENTS) -> Iterator[Case]:
    """The case with one extent changed: everywhere, or in one operand alone."""
    present = sorted({d for a in case.avals for d in a.shape} | {d for _, v in case.attrs for d in _ints(v)})
    for old in present:
        for new in extents:
            if new == old:
                continue
            avals = tuple(a.with_shape(tuple(new if d == old else d for d in a.shape)) for a in case.avals)
            same = tuple((k, _replaced(v, old, new)) for k, v in case.attrs)
            yield from valid(case.op, avals, case.attrs)
            if same != case.attrs:
                yield from valid(case.op, avals, same)
                yield from valid(case.op, case.avals, same)


def _ints(value: Any) -> tuple[int, ...]:
    if isinstance(value, tuple) and all(isinstance(d, int) for d in value):
        return value
    return ()


def _replaced(value: Any, old: int, new: int) -> Any:
    return tuple(new if d == old else d for d in value) if _ints(value) else value


def module_of(case: Case, wrap: Any = None) -> Any:
    """A module whose @main applies the op; `wrap(b, f, arguments)` may apply a transformation of it."""
    with mlir.lock:
        module = mlir.ir.Module.create(mlir.ir.Location.unknown(context()))
        results = list(case.results)
        _, args, b = new_function(module, "main" if wrap is None else "f", case.avals, results, public=wrap is None)
        b.return_(b.emit_typed(case.op, args, case.kwargs, results))
        if wrap is not None:
            arguments, outs, body = wrap(list(case.avals), results)
            _, args, b = new_function(module, "main", arguments, outs, public=True)
            b.return_(body(b, b.function("f", list(case.avals), results), args))
        return module


def module_of_batch(batch: Sequence[Case]) -> Any:
    """A module whose @main applies each of several cases to operands of its own, so each stays a kernel."""
    with mlir.lock:
        module = mlir.ir.Module.create(mlir.ir.Location.unknown(context()))
        avals = [a for c in batch for a in c.avals]
        results = [r for c in batch for r in c.results]
        _, arguments, b = new_function(module, "main", avals, results, public=True)
        rest = iter(arguments)
        outs: list[Value] = []
        for c in batch:
            operands = list(itertools.islice(rest, len(c.avals)))
            outs += b.emit_typed(c.op, operands, c.kwargs, list(c.results))
        b.return_(outs)
        return module


def run(module: Any, operands: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Expand all transformations and interpret."""
    EXPANDED.run(module)
    return Interpreter(module)("main", operands)


def transformed(
    case: Case, steps: Sequence[tuple[str, dict[str, Any]]], operands: Sequence[np.ndarray]
) -> list[np.ndarray]:
    """Run the op under transformations, innermost first."""

    def wrap(arguments: list[Aval], results: list[Aval]):
        signature = (arguments, results)
        for name, attrs in steps:
            signature = registry[name].signature(*signature, **attrs)  # type: ignore[attr-defined]

        def body(b: Builder, f: Value, args: Sequence[Value]):
            for name, attrs in steps:
                f = b.transform(registry[name], f, attrs)
            return b.apply(f, args)

        return (*signature, body)

    return run(module_of(case, wrap), operands)

"""Test cases made from the registry: each op's own MLIR example, varied in dtype and shape."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import smelt.ir.ops  # noqa: F401
from smelt.ir import dtypes, examples, mlir, plugins
from smelt.ir.aval import Aval
from smelt.ir.builder import Builder, Value, new_function
from smelt.ir.dialect import context
from smelt.ir.errors import SmeltError
from smelt.ir.interpreter import Interpreter, run_op
from smelt.ir.library import Library
from smelt.ir.op import Op, registry
from smelt.passes import Pipeline

#: Ops of installed packages have generated tests too.
assert not (problems := plugins.load_all()), problems

EXPAND = Pipeline.parse("fixpoint(inline,batch,jvp,linearize,transpose)")


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
        return f"{self.op.name}-{'-'.join(map(str, self.avals))}"


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
    main = base.avals[0].dtype if base.avals else None
    if op.name == "select":
        main = base.avals[1].dtype
    for dtype in dtypes.ALL:
        avals = tuple(a.with_dtype(dtype) if a.dtype is main else a for a in base.avals)
        found += _valid(op, avals, base.attrs)
    if op.kind == "elementwise":
        for shape in ELEMENTWISE_SHAPES:
            found += _valid(op, tuple(a.with_shape(shape) for a in base.avals), base.attrs)
    return tuple({c.avals: c for c in found}.values())


def _valid(op: Op, avals: tuple[Aval, ...], attrs: tuple) -> list[Case]:
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
    if isinstance(case.op, Library):
        return list(case.op.sample(rng, *case.avals, **case.kwargs))
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


def module_of(case: Case, wrap=None) -> Any:
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
        outs = []
        for c in batch:
            operands = list(itertools.islice(rest, len(c.avals)))
            outs += b.emit_typed(c.op, operands, c.kwargs, list(c.results))
        b.return_(outs)
        return module


def run(module: Any, operands: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Expand all transformations and interpret."""
    EXPAND.run(module)
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

"""Derivatives of programs with control flow, checked by finite differences of the interpreter in float64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import smelt.ir.ops  # noqa: F401  (fills the registry)
from smelt.ir import dtypes, mlir, text
from smelt.ir.aval import Aval
from smelt.ir.builder import Builder, Value, fresh_name, functions, new_function, read_function
from smelt.ir.control import COND, SCAN, WHILE
from smelt.ir.dialect import context
from smelt.ir.interpreter import Interpreter
from smelt.ir.op import registry
from smelt.passes import Pipeline

EXPAND = "fixpoint(inline,batch,jvp,linearize,transpose)"
CLEAN = f"{EXPAND},canonicalize,cse,dce"

f64, i32, boolean = dtypes.float64, dtypes.int32, dtypes.bool_
SCALAR, VECTOR, INDEX, TRUTH = Aval((), f64), Aval((3,), f64), Aval((), i32), Aval((), boolean)

Emit = Callable[..., Sequence[Value]]


class Program:
    """A module that is being written: functions, and control flow over them.

    A function is written as ``emit(b, *arguments) -> results``.
    """

    def __init__(self) -> None:
        with mlir.lock:
            self.module = mlir.ir.Module.create(mlir.ir.Location.unknown(context()))

    def function(self, name: str, arguments: Sequence[Aval], emit: Emit, public: bool = False) -> str:
        with mlir.lock:
            name = fresh_name(self.module, name)
            operation, values, b = new_function(self.module, name, arguments, [], public=public)
            results = list(emit(b, *values))
            b.return_(results)
            kind = mlir.ir.FunctionType.get([v.mlir.type for v in values], [v.mlir.type for v in results], context())
            operation.attributes["function_type"] = mlir.ir.TypeAttr.get(kind, context())
        return name

    def results(self, name: str) -> list[Aval]:
        return [r.aval for r in read_function(functions(self.module)[name]).returns]

    def scan(
        self, b: Builder, body: Emit, constants: Sequence[Value], carry: Sequence[Value], xs: Sequence[Value],
        length: int | None = None, reverse: bool = False, checkpoint: bool = False,
    ) -> Sequence[Value]:  # fmt: skip
        if length is None:
            length = xs[0].shape[0]
        taken = [v.aval for v in (*constants, *carry)] + [x.aval.with_shape(x.shape[1:]) for x in xs]
        name = self.function("body", taken, body)
        outs = self.results(name)
        m = len(carry)
        avals = [*outs[:m], *(a.with_shape((length, *a.shape)) for a in outs[m:])]
        attrs = {"body": name, "constants": len(constants), "carries": m, "length": length, "reverse": reverse}
        return b.control(SCAN, [*constants, *carry, *xs], {**attrs, "checkpoint": checkpoint}, avals)

    def cond(self, b: Builder, index: Value, branches: Sequence[Emit], operands: Sequence[Value]) -> Sequence[Value]:
        names = tuple(self.function("branch", [v.aval for v in operands], branch) for branch in branches)
        return b.control(COND, [index, *operands], {"branches": names}, self.results(names[0]))

    def loop(
        self, b: Builder, test: Emit, body: Emit, constants: Sequence[Value], carry: Sequence[Value]
    ) -> Sequence[Value]:
        taken = [v.aval for v in (*constants, *carry)]
        attrs = {"cond": self.function("test", taken, test), "body": self.function("step", taken, body)}
        return b.control(WHILE, [*constants, *carry], {**attrs, "constants": len(constants)}, taken[len(constants) :])


def derivative(module: Any, name: str, kind: str) -> str:
    """A new public function: the jvp, or the cotangents, of the function `name` in all that is inexact."""
    with mlir.lock:
        function = read_function(functions(module)[name])
        avals, outs = [a.aval for a in function.arguments], [r.aval for r in function.returns]
        wrt = tuple(i for i, a in enumerate(avals) if a.dtype.is_inexact)
        seeds = tuple(i for i, a in enumerate(outs) if a.dtype.is_inexact)
        extra = [avals[i] for i in wrt] if kind == "jvp" else [outs[i] for i in seeds]
        returned = [outs[i] for i in seeds] if kind == "jvp" else [avals[i] for i in wrt]
        new = fresh_name(module, f"{name}_{kind}_main")
        _, values, b = new_function(module, new, [*avals, *extra], returned, public=True)
        attrs: dict[str, Any] = {"wrt": wrt} if kind == "jvp" else {"wrt": wrt, "seeds": seeds}
        made = b.transform(registry[kind], b.function(name, avals, outs), attrs)
        found = b.apply(made, values)[len(outs) :]
        b.return_([found[i] for i in seeds] if kind == "jvp" else found)
    return new


def transpose_of(module: Any, name: str, wrt: Sequence[int]) -> str:
    """A new public function: the transpose of the function `name`, which is linear in the arguments `wrt`."""
    with mlir.lock:
        function = read_function(functions(module)[name])
        avals, outs = [a.aval for a in function.arguments], [r.aval for r in function.returns]
        given = [a for i, a in enumerate(avals) if i not in wrt]
        new = fresh_name(module, f"{name}_transpose_main")
        _, values, b = new_function(module, new, [*given, *outs], [avals[i] for i in wrt], public=True)
        made = b.transform(registry["linear_transpose"], b.function(name, avals, outs), {"wrt": tuple(wrt)})
        b.return_(b.apply(made, values))
    return new


def batched(module: Any, name: str, size: int) -> str:
    """A new public function: the function `name` over a batch in front of all arguments and results."""
    with mlir.lock:
        function = read_function(functions(module)[name])
        avals, outs = [a.aval for a in function.arguments], [r.aval for r in function.returns]
        attrs = {"size": size, "in_axes": (0,) * len(avals), "out_axes": (0,) * len(outs)}
        wide, results = ([a.with_shape((size, *a.shape)) for a in side] for side in (avals, outs))
        new = fresh_name(module, f"{name}_batch_main")
        _, values, b = new_function(module, new, wide, results, public=True)
        b.return_(b.apply(b.transform(registry["batch"], b.function(name, avals, outs), attrs), values))
    return new


def expanded(module: Any, pipeline: str = EXPAND) -> Any:
    """A copy of a module, its transformations expanded and verified."""
    with mlir.lock:
        copy = text.parse(text.to_text(module))
        Pipeline.parse(pipeline).run(copy)
        text.verify(copy)
        assert text.to_text(text.parse(text.to_text(copy))) == text.to_text(copy)
    return copy


def arrays_like(avals: Sequence[Aval], rng: np.random.Generator) -> list[np.ndarray]:
    return [np.asarray(rng.uniform(0.4, 1.1, a.shape) * rng.choice([-1, 1], a.shape), a.dtype.numpy) for a in avals]


def inexact(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    return [a for a in arrays if a.dtype.kind == "f"]


def inner(xs: Sequence[np.ndarray], ys: Sequence[np.ndarray]) -> float:
    assert len(xs) == len(ys)
    return float(sum(np.sum(x * y) for x, y in zip(xs, ys)))


def check(
    module: Any, name: str, arguments: Sequence[np.ndarray], order: int = 2, modes: str = "fr",
    pipeline: str = EXPAND, step: float = 1e-6,
) -> None:  # fmt: skip
    """Forward mode agrees with finite differences, reverse mode with forward mode; so do their derivatives.

    Args:
        order: how many derivatives.
        modes: "f", or "fr" for reverse mode, too.
    """
    rng = np.random.default_rng(7)
    arguments = [np.asarray(a) for a in arguments]
    kinds = ["jvp", "vjp"][: len(modes)]
    names = {kind: derivative(module, name, kind) for kind in kinds}
    run = Interpreter(expanded(module, pipeline))
    moved = [rng.normal(size=a.shape) for a in inexact(arguments)]

    def shifted(h: float) -> list[np.ndarray]:
        left = iter(moved)
        return inexact(run(name, [a + h * next(left) if a.dtype.kind == "f" else a for a in arguments]))

    tangents = run(names["jvp"], [*arguments, *moved])
    for have, high, low in zip(tangents, shifted(step), shifted(-step)):
        np.testing.assert_allclose(have, (high - low) / (2 * step), rtol=2e-5, atol=2e-6)
    assert all(np.all(np.isfinite(t)) for t in tangents)
    seeds = [rng.normal(size=t.shape) for t in tangents]
    if "r" in modes:
        pulled = run(names["vjp"], [*arguments, *seeds])
        np.testing.assert_allclose(inner(pulled, moved), inner(seeds, tangents), rtol=1e-9, atol=1e-12)
    if order > 1:
        check(module, names["jvp"], [*arguments, *moved], order - 1, modes, pipeline, step)
        if "r" in modes:
            check(module, names["vjp"], [*arguments, *seeds], order - 1, modes, pipeline, step)

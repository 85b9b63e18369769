"""Whether the rules of an op agree with each other: ``smelt-opt --check-ops``, and the tests of smelt's own ops.

What an op means is its `reference`. Its kernels compute that, its derivative is that of finite differences, reverse
mode is the transpose of forward mode, and a batch is what a loop computes. Each check raises `Mismatch` where not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from smelt.backends.device import Device
from smelt.ir import dtypes, text
from smelt.ir.aval import Aval
from smelt.ir.builder import functions, read_function
from smelt.ir.errors import SmeltError
from smelt.ir.interpreter import run_op
from smelt.ir.library import Library
from smelt.ir.op import Op
from smelt.runtime import Buffer, compile_module

from .op_cases import (
    Case,
    cases,
    choices,
    differentiable,
    example,
    module_of,
    module_of_batch,
    random_operands,
    reference,
    resized,
    sample,
    seeds_of,
    smooth_operands,
    transformed,
    wrt_of,
)
from .op_variants import variants, varied

#: Of a central difference in float64; and where an op has operands or results of fewer bits.
STEP, COARSE_STEP = 1e-6, 0.125
#: Relative and absolute error of a result, by bytes of a number's parts.
BOUNDS = {2: 2e-2, 4: 2e-5, 8: 1e-12}
#: How many elements a batch has.
BATCH = 3
#: What takes the place of an axis's extent, beside those of the example: one, and a number of no width of vectors.
EXTENTS = (1, 7)


class Mismatch(SmeltError, AssertionError):
    """Two rules of an op that do not agree; the message says where."""


def tolerance(aval: Aval) -> dict[str, float]:
    """By how much a result may differ from that of `reference`."""
    if aval.dtype is dtypes.complex128:
        return {"rtol": 1e-11, "atol": 1e-11}
    if aval.dtype.is_complex:
        return {"rtol": 2e-4, "atol": 2e-4}
    bound = BOUNDS[aval.dtype.size] if aval.dtype.is_float else 0
    return {"rtol": bound, "atol": bound}


def narrowest(case: Case) -> Aval:
    """The type of a case with the fewest bits for fractions."""
    inexact = (a for a in (*case.avals, *case.results) if a.dtype.is_inexact)
    return min(inexact, key=lambda a: a.dtype.size, default=case.results[0])


def assert_close(found: np.ndarray, want: np.ndarray, aval: Aval, what: str) -> None:
    """Both have the type that `infer` says, and are equal but for rounding."""
    for name, x in (("it", found), ("reference", want)):
        if (x.shape, x.dtype) != (aval.shape, aval.dtype.numpy):
            raise Mismatch(f"{what}: {name} gives {x.dtype}{list(x.shape)}, infer says {aval}")
    _require(found, want, what, **tolerance(aval))


def _require(found: Any, want: Any, what: str, rtol: float, atol: float) -> None:
    found, want = np.asarray(found), np.asarray(want)
    if found.shape != want.shape:
        raise Mismatch(f"{what}: the shape is {list(found.shape)}, must be {list(want.shape)}")
    if found.dtype.kind not in "biu":
        found, want = found.astype(np.complex128), want.astype(np.complex128)
    with np.errstate(all="ignore"):
        wrong = ~np.isclose(found, want, rtol, atol, equal_nan=True)
    if wrong.any():
        at = tuple(int(i) for i in np.argwhere(wrong)[0])
        place = f" at {list(at)}" if at else ""
        few = f"{np.count_nonzero(wrong)} of {wrong.size} elements differ: "
        raise Mismatch(f"{what}: {few}{_number(found[at])} in place of {_number(want[at])}{place}")


def _number(x: Any) -> str:
    return f"{x.real:.7g}" if np.iscomplexobj(x) and not x.imag else f"{x:.7g}" if np.iscomplexobj(x) else str(x)


# What an op computes


def check_library(case: Case, operands: Sequence[np.ndarray], results: Sequence[np.ndarray], what: str) -> None:
    """Results of a library agree with the reference, and have the properties that the op states."""
    assert isinstance(case.op, Library)
    wanted = run_op(case.op, operands, case.kwargs, reference=True)
    if not len(results) == len(wanted) == len(case.results):
        raise Mismatch(f"{case}: {what}: {len(results)} results, infer says {len(case.results)}")
    for found, want, aval in zip(results, wanted, case.results):
        assert_close(np.asarray(found), np.asarray(want), aval, f"{case}: {what}")
    narrow = narrowest(case)
    for name, found, want in case.op.properties(operands, results, **case.kwargs):
        _require(found, want, f"{case}: {what}: {name}", **tolerance(narrow))


def check_kernels(every: Sequence[Case], device: Device) -> None:
    """Each case is a kernel of its own, all of them in one program, and computes what `reference` does."""
    operands = [random_operands(case, np.random.default_rng(1)) for case in every]
    program = compile_module(module_of_batch(every), device)
    flat = [Buffer.of(x, a) for case, xs in zip(every, operands) for x, a in zip(xs, case.avals)]
    outs = iter(program.run(flat))
    for case, xs in zip(every, operands):
        found = [next(outs).array for _ in case.results]
        if isinstance(case.op, Library):
            check_library(case, xs, found, device.name)
            continue
        with np.errstate(all="ignore"):
            wanted = reference(case, xs)
        for x, want, aval in zip(found, wanted, case.results, strict=True):
            assert_close(x, np.asarray(want), aval, str(case))


def check_text(case: Case) -> None:
    """Written and read again, a module with the op is the same."""
    printed = text.to_text(module_of(case))
    again = text.parse(printed)
    (view,) = read_function(functions(again)["main"]).ops
    if text.to_text(again) != printed or view.op is not case.op or repr(view.attrs) != repr(case.kwargs):
        raise Mismatch(f"{case}: read again, {case.kwargs} are {view.attrs}")


# Derivatives


def _smooth(case: Case) -> list[np.ndarray]:
    found = smooth_operands(case)
    if found is None:
        raise Mismatch(f"{case}: not finite on any operands tried: state `sample`, which makes some")
    return found


def _bounds(case: Case) -> tuple[dict[str, float], float]:
    """Tolerance and step of differences."""
    types = [*case.results, *(case.avals[i] for i in wrt_of(case))]
    wide = all(a.dtype.real is dtypes.float64 for a in types if a.dtype.is_inexact)
    return ({"rtol": 1e-5, "atol": 1e-6}, STEP) if wide else ({"rtol": 3e-2, "atol": 3e-2}, COARSE_STEP)


def _difference(
    function: Callable[[list[np.ndarray]], Sequence[np.ndarray]], operands: Sequence[np.ndarray], wrt: Sequence[int],
    tangents: Sequence[np.ndarray], step: float,
) -> list[np.ndarray]:  # fmt: skip
    ends = []
    for sign in (1, -1):
        moved = list(operands)
        for i, t in zip(wrt, tangents):
            moved[i] = (operands[i] + sign * step * t).astype(operands[i].dtype)
        with np.errstate(all="ignore"):
            ends.append([np.asarray(x) for x in function(moved)])
    return [(a - b) / (2 * step) for a, b in zip(*ends)]


def check_derivative(case: Case, wrt: tuple[int, ...] | None = None) -> None:
    """The derivative of forward mode against finite differences of `reference`; with respect to some operands."""
    operands, wrt, rng = _smooth(case), wrt_of(case) if wrt is None else wrt, np.random.default_rng(2)
    tangents = [sample(case.avals[i], rng) for i in wrt]
    found = transformed(case, [("jvp", {"wrt": wrt})], [*operands, *tangents])[len(case.results) :]
    bounds, step = _bounds(case)
    seeds = seeds_of(case)
    wanted = _difference(lambda xs: [reference(case, xs)[i] for i in seeds], operands, wrt, tangents, step)
    for i, want in zip(seeds, wanted):
        _require(found[i], want, f"{case}: the tangent by operands {list(wrt)}", **bounds)


def check_transpose(case: Case) -> None:
    """⟨ȳ, J·ẋ⟩ = ⟨ȳ·J, ẋ⟩ for random directions."""
    operands, wrt, seeds, rng = _smooth(case), wrt_of(case), seeds_of(case), np.random.default_rng(3)
    tangents = [sample(case.avals[i], rng) for i in wrt]
    cotangents = [sample(case.results[i], rng) for i in seeds]
    n = len(case.results)
    pushed = transformed(case, [("jvp", {"wrt": wrt})], [*operands, *tangents])[n:]
    pulled = transformed(case, [("vjp", {"wrt": wrt, "seeds": seeds})], [*operands, *cotangents])[n:]
    # Complex linear maps are transposed without conjugation: the pairing is bilinear. Maps between real and complex
    # arrays, and those that conjugate, are linear over the reals only; there the real part is the pairing.
    left = sum(np.sum(ct * pushed[i]) for ct, i in zip(cotangents, seeds))
    right = sum(np.sum(ct * t) for ct, t in zip(pulled, tangents))
    mixed = len({a.dtype.kind for a in [*case.results, *(case.avals[i] for i in wrt)]}) > 1
    if not mixed and all(case.avals[i].dtype.is_complex for i in wrt):
        turned = transformed(case, [("jvp", {"wrt": wrt})], [*operands, *(1j * t for t in tangents)])[n:]
        mixed = any(not np.allclose(turned[i], 1j * pushed[i], rtol=1e-3) for i in seeds)
    if mixed:
        left, right = np.real(left), np.real(right)
    what = f"{case}: the product of cotangents and a tangent, backward beside forward"
    _require(right, left, what, **_bounds(case)[0])


def check_second_derivative(case: Case) -> None:
    """Forward mode of reverse mode against finite differences of the latter."""
    operands, wrt, seeds, rng = _smooth(case), wrt_of(case), seeds_of(case), np.random.default_rng(4)
    n = len(case.results)
    cotangents = [sample(case.results[i], rng) for i in seeds]
    tangents = [sample(case.avals[i], rng) for i in wrt]
    vjp = ("vjp", {"wrt": wrt, "seeds": seeds})
    outs = n + len(wrt)
    found = transformed(case, [vjp, ("jvp", {"wrt": wrt})], [*operands, *cotangents, *tangents])[outs + n :]
    bounds, step = _bounds(case)
    wanted = _difference(lambda xs: transformed(case, [vjp], [*xs, *cotangents])[n:], operands, wrt, tangents, step)
    rtol, atol = max(bounds["rtol"], 1e-4), max(bounds["atol"], 1e-5)
    for x, want in zip(found, wanted):
        _require(x, want, f"{case}: the tangent of cotangents", rtol, atol)


def check_batch(case: Case) -> None:
    """A batch against a loop: of all operands, of each alone, along the first and the last axis."""
    op, rng = case.op, np.random.default_rng(5)
    n = len(case.avals)
    patterns = {tuple(0 for _ in range(n))} | {tuple(0 if j == i else -1 for j in range(n)) for i in range(n)}
    patterns |= {tuple(a.ndim for a in case.avals)}
    if op.variadic:  # IRDL wants one type for a variadic group
        lead = len(op.operand_names) - 1
        patterns = {p for p in patterns if len(set(p[lead:])) == 1}
    for axes in sorted(patterns):
        elements = [random_operands(case, rng, (0.2, 0.9)) for _ in range(BATCH)]
        slices = [xs[: BATCH if axis >= 0 else 1] for xs, axis in zip(zip(*elements), axes)]
        batched = [np.stack(s, axis) if axis >= 0 else s[0] for s, axis in zip(slices, axes)]
        attrs = {"size": BATCH, "in_axes": axes, "out_axes": (0,) * len(case.results)}
        found = transformed(case, [("batch", attrs)], batched)
        rows = [reference(case, [s[i if axis >= 0 else 0] for s, axis in zip(slices, axes)]) for i in range(BATCH)]
        for out, *want in zip(found, *rows):
            _require(out, np.stack(want), f"{case}: a batch with axes {list(axes)}, beside a loop", 1e-4, 1e-5)


# All of an op


def _kernels(op: Op, device: Device) -> None:
    every = {(c.avals, repr(c.attrs)): c for c in (*cases(op), *resized(example(op), EXTENTS), *varied(op))}
    check_kernels(list(every.values()), device)


def _each(check: Callable[[Case], None], found: Callable[[Op], Sequence[Case]]) -> Callable[[Op, Device], None]:
    def of(op: Op, _: Device) -> None:
        for case in found(op):
            check(case)

    return of


def _derivative(case: Case) -> None:
    for wrt in choices(case):
        check_derivative(case, wrt)


def smooth_cases(op: Op) -> list[Case]:
    """Cases for derivatives, and those with other attributes that are finite somewhere."""
    found = differentiable(op)
    others = (c for case in found[:1] for c in variants(case))
    return [*found, *(c for c in others if seeds_of(c) and smooth_operands(c) is not None)]


#: What is checked of an op, by the rules that it is about.
CHECKS: dict[str, Callable[[Op, Device], None]] = {
    "text": _each(check_text, lambda op: [*cases(op), *varied(op)]),
    "kernels": _kernels,
    "derivative": _each(_derivative, smooth_cases),
    "transpose": _each(check_transpose, smooth_cases),
    "second derivative": _each(check_second_derivative, smooth_cases),
    "batch": _each(check_batch, lambda op: [example(op), *varied(op)]),
}


def checks_of(op: Op) -> list[str]:
    """Those that mean something of an op."""
    without = set() if differentiable(op) else {"derivative", "transpose", "second derivative"}
    without |= set() if op.operand_names else {"batch"}
    return [name for name in CHECKS if name not in without]

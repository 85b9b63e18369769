"""Every op of the registry against oracles that do not share its code."""

from __future__ import annotations

import numpy as np
import pytest

from smelt.ir import dtypes, text
from smelt.ir.builder import functions, read_function
from smelt.ir.interpreter import Interpreter
from smelt.ir.op import registry
from smelt.runtime import Buffer, compile_module

from ..devices import chosen_device
from .cases import (
    Case,
    all_cases,
    cases,
    example,
    module_of,
    module_of_batch,
    plain_ops,
    random_operands,
    reference,
    sample,
    smooth_operands,
    transformed,
)

STEP = 1e-6


def _id(value) -> str:
    return str(value) if isinstance(value, Case) else getattr(value, "name", str(value))


def tolerance(aval) -> dict[str, float]:
    size = {2: 2e-2, 4: 2e-5, 8: 1e-12}
    if aval.dtype is dtypes.complex128:
        return {"rtol": 1e-11, "atol": 1e-11}
    if aval.dtype.is_complex:
        return {"rtol": 2e-4, "atol": 2e-4}
    bound = size[aval.dtype.size] if aval.dtype.is_float else 0
    return {"rtol": bound, "atol": bound}


def assert_close(found, want, aval, what: str) -> None:
    assert found.shape == want.shape == aval.shape, what
    assert found.dtype == aval.dtype.numpy, what
    wide = np.complex128 if aval.dtype.is_complex else np.float64 if aval.dtype.is_float else aval.dtype.numpy
    np.testing.assert_allclose(found.astype(wide), want.astype(wide), equal_nan=True, err_msg=what, **tolerance(aval))


@pytest.mark.parametrize("op", plain_ops(), ids=_id)
def test_backend_agrees_with_reference(op):
    """Each case is a kernel of its own, all of them in one program."""
    every = cases(op)
    operands = [random_operands(case, np.random.default_rng(1)) for case in every]
    program = compile_module(module_of_batch(every), chosen_device())
    outs = iter(program.run([Buffer.of(x, a) for case, xs in zip(every, operands) for x, a in zip(xs, case.avals)]))
    for case, xs in zip(every, operands):
        want = Interpreter(module_of(case))("main", xs)
        for expected, aval in zip(want, case.results, strict=True):
            assert_close(next(outs).array, np.asarray(expected), aval, str(case))


@pytest.mark.parametrize("case", all_cases(), ids=_id)
def test_round_trip(case):
    module = module_of(case)
    printed = text.to_text(module)
    again = text.parse(printed)
    assert text.to_text(again) == printed
    (view,) = read_function(functions(again)["main"]).ops
    assert view.op is case.op
    assert repr(view.attrs) == repr(case.kwargs)


def differentiable() -> list[Case]:
    """A case of float64 and one of complex128 of each op with a derivative."""
    found = []
    for op in plain_ops():
        if op.not_differentiable is None and op.operand_names:
            base = example(op)
            main = base.avals[1 if op.name == "select" else 0].dtype
            known = {c.avals: c for c in cases(op)}
            wide = [
                known.get(tuple(a.with_dtype(dtype) if a.dtype is main else a for a in base.avals))
                for dtype in (dtypes.float64, dtypes.complex128)
            ]
            if not any(wide):
                wide = [next((c for c in cases(op) if any(a.dtype.is_inexact for a in c.avals)), None)]
            found += [c for c in wide if c is not None and any(r.dtype.is_inexact for r in c.results)]
    return found


def _wrt(case: Case) -> tuple[int, ...]:
    return tuple(i for i, a in enumerate(case.avals) if a.dtype.is_inexact)


def _directions(case: Case, rng):
    return [sample(case.avals[i], rng) for i in _wrt(case)]


def _finite_difference(function, operands, wrt, tangents, wide: bool):
    h = STEP if wide else 0.125
    ends = []
    for sign in (1, -1):
        moved = list(operands)
        for i, t in zip(wrt, tangents):
            moved[i] = (operands[i] + sign * h * t).astype(operands[i].dtype)
        ends.append(function(moved))
    return [(np.asarray(a) - np.asarray(b)) / (2 * h) for a, b in zip(*ends)]


def _tolerances(case: Case) -> tuple[dict, bool]:
    types = [*case.results, *(case.avals[i] for i in _wrt(case))]
    wide = all(a.dtype.real is dtypes.float64 for a in types if a.dtype.is_inexact)
    return ({"rtol": 1e-5, "atol": 1e-6} if wide else {"rtol": 3e-2, "atol": 3e-2}), wide


@pytest.mark.parametrize("case", differentiable(), ids=_id)
def test_jvp_agrees_with_finite_differences(case):
    operands = smooth_operands(case)
    assert operands is not None
    wrt = _wrt(case)
    tangents = _directions(case, np.random.default_rng(2))
    found = transformed(case, [("jvp", {"wrt": wrt})], [*operands, *tangents])[len(case.results) :]
    tol, wide = _tolerances(case)
    want = _finite_difference(lambda x: reference(case, x), operands, wrt, tangents, wide)
    for a, b in zip(found, want):
        np.testing.assert_allclose(a, b, **tol)


@pytest.mark.parametrize("case", differentiable(), ids=_id)
def test_vjp_is_the_adjoint_of_jvp(case):
    """⟨ȳ, J·ẋ⟩ = ⟨ȳ·J, ẋ⟩ for random directions."""
    operands = smooth_operands(case)
    assert operands is not None
    rng = np.random.default_rng(3)
    wrt = _wrt(case)
    tangents = _directions(case, rng)
    n = len(case.results)
    seeds = tuple(i for i, r in enumerate(case.results) if r.dtype.is_inexact)
    cotangents = [sample(case.results[i], rng) for i in seeds]
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
    np.testing.assert_allclose(left, right, **_tolerances(case)[0])


@pytest.mark.parametrize("case", differentiable(), ids=_id)
def test_second_derivative(case):
    """jvp of vjp against finite differences of vjp."""
    operands = smooth_operands(case)
    assert operands is not None
    rng = np.random.default_rng(4)
    wrt = _wrt(case)
    n = len(case.results)
    seeds = tuple(i for i, r in enumerate(case.results) if r.dtype.is_inexact)
    cotangents = [sample(case.results[i], rng) for i in seeds]
    tangents = _directions(case, rng)
    vjp = ("vjp", {"wrt": wrt, "seeds": seeds})
    outs = n + len(wrt)
    found = transformed(case, [vjp, ("jvp", {"wrt": wrt})], [*operands, *cotangents, *tangents])[outs + n :]
    tol, wide = _tolerances(case)
    want = _finite_difference(
        lambda x: transformed(case, [vjp], [*x, *cotangents])[n:], operands, wrt, tangents, wide
    )
    for a, b in zip(found, want):
        np.testing.assert_allclose(a, b, rtol=max(tol["rtol"], 1e-4), atol=max(tol["atol"], 1e-5))


@pytest.mark.parametrize("op", [op for op in plain_ops() if op.operand_names], ids=_id)
def test_batch_agrees_with_a_loop(op):
    case = example(op)
    rng = np.random.default_rng(5)
    size = 3
    n = len(case.avals)
    patterns = {tuple(0 for _ in range(n))} | {tuple(0 if j == i else -1 for j in range(n)) for i in range(n)}
    patterns |= {tuple(a.ndim for a in case.avals)}
    if op.variadic:  # IRDL wants one type for a variadic group
        lead = len(op.operand_names) - 1
        patterns = {p for p in patterns if len(set(p[lead:])) == 1}
    for axes in sorted(patterns):
        elements = [random_operands(case, rng, (0.2, 0.9)) for _ in range(size)]
        slices = [xs[: size if axis >= 0 else 1] for xs, axis in zip(zip(*elements), axes)]
        batched = [np.stack(s, axis) if axis >= 0 else s[0] for s, axis in zip(slices, axes)]
        attrs = {"size": size, "in_axes": axes, "out_axes": (0,) * len(case.results)}
        found = transformed(case, [("batch", attrs)], batched)
        rows = [reference(case, [s[i if axis >= 0 else 0] for s, axis in zip(slices, axes)]) for i in range(size)]
        for out, *want in zip(found, *rows):
            np.testing.assert_allclose(
                out.astype(np.complex128), np.stack(want).astype(np.complex128), rtol=1e-4, atol=1e-5, err_msg=str(axes)
            )


def test_every_example_is_one_line_of_mlir():
    families = ("contract", "indexing", "scan_sort", "random")
    names = [n for n, op in registry.items() if type(op).__module__.split(".")[-1] in families]
    assert len(names) == 12
    for name in names:
        example = registry[name].example
        assert example is not None and f'"smelt.{name}"(' in example and " -> tensor<" in example

"""Every op under every transformation, in every class of dtypes, against differences, adjoints and loops.

What is compared with what: tangents with differences of values in float64; cotangents with tangents by the
inner product; second derivatives with differences of first ones; batches with loops over their elements, on
every axis of every operand, alone and in one another and together with derivatives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest

from smelt.ir.op import Op

from .cases import Case, cases, choices, example, plain_ops, reference, seeds_of, wrt_of
from .variants import (
    Function,
    Together,
    assert_derivative,
    axis_patterns,
    derivative_cases,
    differences,
    direction,
    element,
    every_case,
    few_patterns,
    general_operands,
    stacked,
    variants,
    wide,
    widened,
)

SIZE = 2


def _op_id(op: Op) -> str:
    return op.name


with_operands = [op for op in plain_ops() if op.operand_names]
each_op = pytest.mark.parametrize("op", with_operands, ids=_op_id)
each_differentiable = pytest.mark.parametrize("op", [op for op in with_operands if derivative_cases(op)], ids=_op_id)


def _what(case: Case, *more: Any) -> str:
    return " ".join(map(str, (case, case.attrs, *more)))


def _operands(case: Case, seed: int = 0) -> list[np.ndarray]:
    return general_operands(case, np.random.default_rng(seed))


def _vjp(case: Case, wrt: Sequence[int]) -> tuple[str, dict[str, Any]]:
    return ("vjp", {"wrt": tuple(wrt), "seeds": seeds_of(case)})


def _jvp(wrt: Sequence[int]) -> list[tuple[str, dict[str, Any]]]:
    return [("jvp", {"wrt": tuple(wrt)})]


def _batch(size: int, in_axes: Sequence[int], out_axes: Sequence[int]) -> tuple[str, dict[str, Any]]:
    return ("batch", {"size": size, "in_axes": tuple(in_axes), "out_axes": tuple(out_axes)})


def _seeds(case: Case, rng: np.random.Generator) -> list[np.ndarray]:
    return [direction(case.results[i], rng) for i in seeds_of(case)]


@each_differentiable
def test_tangents_are_limits_of_differences(op: Op) -> None:
    together = Together()
    plan = {case: {wrt: together(case, _jvp(wrt)) for wrt in choices(case)} for case in derivative_cases(op)}
    for case, pushes in plan.items():
        operands, rng = _operands(case), np.random.default_rng(1)
        exact = wide(case)
        for wrt, push in pushes.items():
            tangents = {i: direction(case.avals[i], rng) for i in wrt}
            found = push([*operands, *tangents.values()])[len(case.results) :]
            assert [x.dtype for x in found] == [r.dtype.numpy for r in case.results]
            want = differences(partial(reference, exact), exact, widened(exact, operands), tangents)
            assert_derivative(case, found, want, _what(case, wrt))


#: Results that depend on conjugates of complex operands: lengths are absolute values, and adjoints are conjugated.
CONJUGATING = ("cholesky", "eig", "eigh", "least_squares", "pinv", "qr", "svd")


@each_differentiable
def test_cotangents_are_adjoint_to_tangents(op: Op) -> None:
    """⟨ȳ, J·ẋ⟩ = ⟨ȳ·J, ẋ⟩, for each operand alone and for all; complex maps are transposed, not conjugated."""
    together = Together()
    plan = {
        case: {wrt: (together(case, _jvp(wrt)), together(case, [_vjp(case, wrt)])) for wrt in choices(case)}
        for case in derivative_cases(op)
    }
    for case, ways in plan.items():
        operands, rng, n = _operands(case), np.random.default_rng(2), len(case.results)
        for wrt, (push, pull) in ways.items():
            tangents = [direction(case.avals[i], rng) for i in wrt]
            cotangents = _seeds(case, rng)
            pushed, pulled = push([*operands, *tangents])[n:], pull([*operands, *cotangents])[n:]
            assert [x.dtype for x in pulled] == [case.avals[i].dtype.numpy for i in wrt]
            left = sum(np.sum(_wide(c) * _wide(pushed[i])) for c, i in zip(cotangents, seeds_of(case)))
            right = sum(np.sum(_wide(c) * _wide(t)) for c, t in zip(pulled, tangents))
            # Between real and complex arrays a map is linear over the reals only: the real part pairs. So is the
            # derivative of what is made of conjugated numbers.
            kinds = {a.dtype.kind for a in [*case.results, *(case.avals[i] for i in wrt)]}
            if len(kinds) > 1 or op.name in CONJUGATING:
                left, right = np.real(left), np.real(right)
            assert_derivative(case, [left], [right], _what(case, wrt))


def _wide(x: np.ndarray) -> np.ndarray:
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def _pulled(vjp: Function, seeds: list[np.ndarray], skip: int, operands: list[np.ndarray]) -> list[np.ndarray]:
    return vjp([*operands, *seeds])[skip:]


def _some_derivatives(op: Op) -> list[Case]:
    """One shape of each dtype, and each variant of the attributes."""
    shape = example(op).avals[0].shape
    return [c for c in derivative_cases(op) if c in variants(op) or c.avals[0].shape == shape]


@each_differentiable
def test_second_derivatives_are_limits_of_differences_of_first_ones(op: Op) -> None:
    """The derivative along operand j of the cotangent of operand i, for each i and j."""
    together = Together()
    plan = {
        case: {
            i: (
                together(wide(case), [_vjp(case, (i,))]),
                {j: together(case, [_vjp(case, (i,)), *_jvp((j,))]) for j in wrt_of(case)},
            )
            for i in wrt_of(case)
        }
        for case in _some_derivatives(op)
    }
    for case, ways in plan.items():
        operands, rng, n = _operands(case), np.random.default_rng(3), len(case.results)
        cotangents = _seeds(case, rng)
        exact = wide(case)
        for i, (first, pushes) in ways.items():
            seeds = [c.astype(exact.results[s].dtype.numpy) for c, s in zip(cotangents, seeds_of(case))]
            for j, both in pushes.items():
                tangent = direction(case.avals[j], rng)
                found = both([*operands, *cotangents, tangent])[2 * n + 1 :]
                want = differences(partial(_pulled, first, seeds, n), exact, widened(exact, operands), {j: tangent})
                assert_derivative(case, found, want, _what(case, i, j), slack=5)


@each_op
def test_no_derivative_means_a_tangent_of_zero_and_a_reason(op: Op) -> None:
    """Ops without a derivative say why; their results, and those in integers and bools, carry no tangent."""
    if op.not_differentiable is not None:
        assert len(op.not_differentiable.why) > 10
    together = Together()
    plan: dict[Case, tuple[Function, Function | None]] = {}
    for case in cases(op):
        has_ends = bool(wrt_of(case) and seeds_of(case))
        if op.not_differentiable is not None or not has_ends:
            push = together(case, _jvp(range(len(case.avals))))
            plan[case] = (push, together(case, [_vjp(case, wrt_of(case))]) if has_ends else None)
    for case, (push, pull) in plan.items():
        rng = np.random.default_rng(4)
        operands, n = _operands(case), len(case.results)
        pushed = push([*operands, *(direction(a, rng) for a in case.avals)])
        assert all(not np.any(t) for t in pushed[n:]), _what(case)
        if pull is not None:
            pulled = pull([*operands, *_seeds(case, rng)])
            assert all(not np.any(t) for t in pulled[n:]), _what(case)


def _check_batch(case: Case, axes: tuple[int, ...], out_axes: tuple[int, ...], batch: Function) -> None:
    arrays = general_operands(case, np.random.default_rng(5), (axes, SIZE))
    found = batch(arrays)
    rows = [reference(case, element(arrays, axes, i)) for i in range(SIZE)]
    want = [np.stack(parts, axis) for parts, axis in zip(zip(*rows), out_axes)]
    _assert_values(case, found, want, _what(case, axes, out_axes))


def _assert_values(case: Case, found: Sequence[np.ndarray], want: Sequence[np.ndarray], what: str) -> None:
    for a, b in zip(found, want, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype), what
    if any(r.dtype.is_inexact for r in case.results):
        assert_derivative(case, found, want, what, 0.1)
    else:
        for a, b in zip(found, want):
            np.testing.assert_array_equal(a, b, err_msg=what)


@each_op
def test_batches_are_loops_on_every_axis(op: Op) -> None:
    """Every axis of every operand, also none, in all combinations; the results along each axis in turn."""
    together = Together()
    plan = [
        (case, axes, tuple(turn % (r.ndim + 1) for r in case.results))
        for case in (example(op), *variants(op))
        for turn, axes in enumerate(axis_patterns(case))
    ]
    plan += [(case, tuple(a.ndim for a in case.avals), (0,) * len(case.results)) for case in cases(op)]
    made = [together(case, [_batch(SIZE, axes, out_axes)]) for case, axes, out_axes in plan]
    for (case, axes, out_axes), batch in zip(plan, made):
        _check_batch(case, axes, out_axes, batch)


@each_op
def test_batches_of_batches_are_two_loops(op: Op) -> None:
    together = Together()
    plan = [
        (case, inner, outer)
        for case in (example(op), *variants(op)[:4])
        for inner in few_patterns(case.avals, op)
        for outer in few_patterns(stacked(case.avals, inner, SIZE), op)
    ]
    made = []
    for case, inner, outer in plan:
        out_axes = (0,) * len(case.results)
        made.append(together(case, [_batch(SIZE, inner, out_axes), _batch(3, outer, out_axes)]))
    for (case, inner, outer), batch in zip(plan, made):
        arrays = general_operands(case, np.random.default_rng(6), (inner, SIZE), (outer, 3))
        found = batch(arrays)
        rows = [
            [reference(case, element(element(arrays, outer, i), inner, j)) for j in range(SIZE)] for i in range(3)
        ]
        want = [np.stack([np.stack([row[r] for row in block]) for block in rows]) for r in range(len(case.results))]
        _assert_values(case, found, want, _what(case, inner, outer))


def _patterns(op: Op) -> Iterator[tuple[Case, tuple[int, ...]]]:
    """The axes of batches of each case: all of them of the first, and of cases of other dtypes one each in turn."""
    seen: set[tuple[Any, ...]] = set()
    for turn, case in enumerate(_some_derivatives(op)):
        patterns, kinds = few_patterns(case.avals, op), tuple(a.dtype for a in case.avals)
        alike = case.avals[0].shape == example(op).avals[0].shape and kinds not in seen
        for axes in patterns[turn % len(patterns) :][:1] if seen and alike else patterns:
            yield case, axes
        seen.add(kinds)


def _rows(case: Case, axes: Sequence[int], one: Function, arrays: list, cotangents: list) -> list[list]:
    """The cotangents of each element of a batch, by the pullback of one."""
    n = len(case.results)
    return [one([*element(arrays, axes, i), *(c[i] for c in cotangents)])[n:] for i in range(SIZE)]


@each_differentiable
def test_batches_of_cotangents_are_loops(op: Op) -> None:
    """vmap of grad."""
    together, plan = Together(), list(_patterns(op))
    pullbacks = {case: together(case, [_vjp(case, wrt_of(case))]) for case, _ in plan}
    made = []
    for case, axes in plan:
        seeds_axes, outs = [0] * len(seeds_of(case)), [0] * (len(case.results) + len(wrt_of(case)))
        made.append(together(case, [_vjp(case, wrt_of(case)), _batch(SIZE, (*axes, *seeds_axes), outs)]))
    for (case, axes), batch in zip(plan, made):
        n = len(case.results)
        seeds = [case.results[i] for i in seeds_of(case)]
        rng = np.random.default_rng(7)
        arrays = general_operands(case, rng, (axes, SIZE))
        cotangents = [direction(a, rng) for a in stacked(seeds, [0] * len(seeds), SIZE)]
        found = batch([*arrays, *cotangents])[n:]
        want = [np.stack(parts) for parts in zip(*_rows(case, axes, pullbacks[case], arrays, cotangents))]
        assert_derivative(case, found, want, _what(case, axes), 0.1)


@each_differentiable
def test_cotangents_of_batches_are_loops(op: Op) -> None:
    """grad of vmap: an operand that all elements share gets the sum of their cotangents."""
    together, plan = Together(), list(_patterns(op))
    pullbacks = {case: together(case, [_vjp(case, wrt_of(case))]) for case, _ in plan}
    made = []
    for case, axes in plan:
        made.append(together(case, [_batch(SIZE, axes, [0] * len(case.results)), _vjp(case, wrt_of(case))]))
    for (case, axes), pull in zip(plan, made):
        wrt, n = wrt_of(case), len(case.results)
        seeds = [case.results[i] for i in seeds_of(case)]
        rng = np.random.default_rng(8)
        arrays = general_operands(case, rng, (axes, SIZE))
        cotangents = [direction(a, rng) for a in stacked(seeds, [0] * len(seeds), SIZE)]
        found = pull([*arrays, *cotangents])[n:]
        rows = _rows(case, axes, pullbacks[case], arrays, cotangents)
        want = [
            np.stack([_wide(x) for x in parts], axes[i]) if axes[i] >= 0 else sum(map(_wide, parts))
            for i, parts in zip(wrt, zip(*rows))
        ]
        assert_derivative(case, found, want, _what(case, axes))


def test_every_class_of_dtypes_is_differentiated() -> None:
    kinds = {a.dtype.name for op in with_operands for c in derivative_cases(op) for a in c.avals}
    assert {"float64", "float32", "float16", "bfloat16", "complex64"} <= kinds
    assert sum(len(every_case(op)) for op in with_operands) > 1200

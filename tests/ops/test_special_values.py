"""Zeros of both signs, infinities and NaN: kernels give what the `reference` rules give, which are NumPy's.

Every elementwise op at all pairs of such values, and every scan and reduction along axes of one, three and many.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.errors import SmeltError
from smelt.ir.op import Op
from smelt.ir.settings import override
from smelt.runtime import Buffer, compile_module
from smelt.runtime.device import Device

from ..devices import with_kernels
from .cases import Case, example, module_of_batch, plain_ops, reference

PARTS = (0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 3.0, np.inf, -np.inf, np.nan)
SHAPES = ((1, 10), (10, 1), (3, 10), (10, 3), (10, 70))
DTYPES = (dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.complex128)
#: What NumPy leaves open: which of two zeros is the larger; what is a zero by rounding.
ZEROS_OPEN = frozenset({"maximum", "minimum", "reduce_max", "reduce_min", "cummax", "cummin", "logcumsumexp"})
#: Of which the signs of complex zeros are those of a rounding error.
COMPLEX_ZEROS_OPEN = ZEROS_OPEN | {"power"}
#: Of which C leaves signs of complex results open beside NaN and infinities; `test_complex_values` has the others.
SIGNS_OPEN = frozenset({"sin", "cos", "tan", "sinh", "cosh", "tanh"})


def values_of(dtype: dtypes.DType) -> np.ndarray:
    if dtype.is_complex:
        return np.array([complex(x, y) for x, y in itertools.product(PARTS, PARTS)]).astype(dtype.numpy)
    return np.array(PARTS).astype(dtype.numpy)


def special_cases() -> Iterator[tuple[Case, list[np.ndarray]]]:
    for op in plain_ops():
        base = example(op)
        for dtype in (dtypes.float32, dtypes.complex64):
            for avals, operands in operands_of(op, dtype, len(base.avals)):
                case = Case(op, avals, base.attrs)
                try:
                    op.infer(*avals, **case.kwargs)
                except SmeltError:
                    continue
                yield case, operands


def operands_of(op: Op, dtype: dtypes.DType, count: int) -> Iterator[tuple[tuple[Aval, ...], list[np.ndarray]]]:
    values = values_of(dtype)
    if op.kind == "elementwise" and count in (1, 2):
        some = values if count == 1 or not dtype.is_complex else values[::3]
        if op.name == "power" and dtype.is_complex:  # by a logarithm: beside infinities there are other NaN in NumPy
            some = some[np.isfinite(some)]
        operands = [x.ravel() for x in np.meshgrid(*[some] * count, indexing="ij")]
        yield tuple(Aval(x.shape, dtype) for x in operands), operands
    elif op.kind in ("scan", "reduction") and count == 1:
        rng = np.random.default_rng(0)
        for shape in SHAPES:
            x = rng.choice(values, shape)
            yield (Aval(shape, dtype),), [x]


def differing(name: str, found: np.ndarray, want: np.ndarray, operand: np.ndarray | None = None) -> np.ndarray:
    """Where two results differ by more than rounding, or in the sign of a zero that is not open.

    Args:
        operand: of an elementwise op with one. C leaves the signs of what is made of NaN parts of complex numbers open.
    """
    wrong = np.zeros(found.shape, bool)
    is_complex = np.iscomplexobj(want)
    for part in ("real", "imag") if is_complex else ("real",):
        a, b = getattr(found, part), getattr(want, part)
        if name in SIGNS_OPEN and is_complex:
            a, b = np.abs(a), np.abs(b)
        if operand is not None and np.iscomplexobj(operand):
            a, b = (np.where(np.isnan(operand), np.abs(v), v) for v in (a, b))
        rounding = {"rtol": 1e-5, "atol": 1e-6} if a.dtype == np.float32 else {"rtol": 1e-12, "atol": 1e-14}
        wrong |= ~np.isclose(a, b, equal_nan=True, **rounding)
        if a.dtype.kind == "f" and name not in (COMPLEX_ZEROS_OPEN if is_complex else ZEROS_OPEN):
            wrong |= (a == 0) & (b == 0) & (np.signbit(a) != np.signbit(b))
    return wrong


def on_gpu(case: Case) -> bool:
    """Elements of rows are combined in another order there, which changes complex numbers beside NaN."""
    return case.op.kind == "elementwise" or not case.avals[0].dtype.is_complex


@pytest.mark.parametrize("device", with_kernels(), ids=lambda d: d.name)
def test_kernels_give_what_the_reference_gives(device: Device) -> None:
    pairs = [(c, xs) for c, xs in special_cases() if device.name == "cpu" or on_gpu(c)]
    program = compile_module(module_of_batch([c for c, _ in pairs]), device)
    outs = iter(program.run([Buffer.of(x, a) for case, xs in pairs for x, a in zip(xs, case.avals)]))
    problems = []
    for case, xs in pairs:
        for want in reference(case, xs):
            found = next(outs).array
            operand = xs[0] if case.op.kind == "elementwise" and len(xs) == 1 else None
            wrong = differing(case.op.name, found, np.asarray(want), operand)
            if wrong.any():
                at = tuple(np.argwhere(wrong)[0])
                of = [x[at] for x in xs] if xs[0].shape == found.shape else xs
                got, wanted = found[at], np.asarray(want)[at]
                problems.append(f"{case}: {wrong.sum()} of {wrong.size}, of {of} {got}, not {wanted}")
    assert not problems, "\n".join(problems)


SCALARS = (0, 1, -1, 2, 0.5, -0.0, math.inf, math.nan, 0j, 1j, 1 + 0j, -1 + 0j, 2 + 0j)
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
}  # fmt: skip
EXPONENTS = (-2, -1, 0, 1, 2, 3)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.name)
def test_constants_change_nothing(dtype: dtypes.DType) -> None:
    """What a program makes of x + 0, x / 1, 1 / x, x ** 1 and the like is what is computed op by op."""
    calls = {
        **{f"x {name} {s}": functools.partial(lambda f, s, x: f(x, s), f, s)
           for (name, f), s in itertools.product(OPERATORS.items(), SCALARS)},
        **{f"{s} {name} x": functools.partial(f, s) for (name, f), s in itertools.product(OPERATORS.items(), SCALARS)},
        **{f"x ** {n}": functools.partial(lambda n, x: x**n, n) for n in EXPONENTS},
    }  # fmt: skip
    x = smelt.array(values_of(dtype), dtype)
    with override(tier="ops"):
        wanted = [np.asarray(f(x)) for f in calls.values()]
    with override(tier="program"):
        results = [np.asarray(r) for r in smelt.compile(lambda x: [f(x) for f in calls.values()])(x)]
    problems = []
    for name, found, want in zip(calls, results, wanted):
        assert found.dtype == want.dtype
        wrong = differing("", found, want)
        if wrong.any():
            at = np.flatnonzero(wrong)[0]
            problems.append(f"{name}: {wrong.sum()}, of {values_of(dtype)[at]} {found[at]}, not {want[at]}")
    assert not problems, "\n".join(problems)

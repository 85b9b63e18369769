"""Cases of ops at the edges: axes without elements and of one, odd extents; ties, NaN, infinities, signed zeros.

Made from the registry: each case of an op (its example, other attributes) with other extents wherever
the op takes them.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.library import Library
from smelt.ir.op import Op

from .cases import Case, cases, example, random_operands, resized, sample, valid
from .variants import variants

#: Shapes of elementwise ops: flat, empty, one element, an odd number of them.
SHAPES = ((), (0,), (1,), (3, 0, 2), (1, 1), (37,), (2, 1, 5))


#: Shapes and attributes of ops that take few of those made below.
MORE: dict[str, Sequence[tuple[Sequence[tuple[int, ...]], tuple[tuple[str, Any], ...]]]] = {
    "reshape": [
        ([before], (("shape", after),))
        for before, after in (
            ((0, 4), (2, 0, 5)), ((3, 0), (0,)), ((1,), ()), ((), (1, 1)), ((1, 7, 1), (7,)), ((7, 3), (3, 7)),
            ((2, 1, 3), (1, 6, 1)), ((5, 7), (35,)),
        )
    ],
}  # fmt: skip


@functools.cache
def edge_cases(op: Op) -> tuple[Case, ...]:
    """The op with axes of every extent in `EXTENTS`, alone and in pairs, at every place where there is one."""
    if op.kind == "elementwise":
        base = example(op)
        return tuple(c for s in SHAPES for c in valid(op, tuple(a.with_shape(s) for a in base.avals), base.attrs))
    found: dict[Any, Case] = {}
    for case in (example(op), *variants(op)):
        case = _in_float32(case)
        for again in (case, *(c for first in resized(case) for c in (first, *resized(first, (0, 1))))):
            found.setdefault((again.avals, repr(again.attrs)), again)
    for shapes, attrs in MORE.get(op.name, ()):
        again = Case(op, tuple(a.with_shape(s) for a, s in zip(example(op).avals, shapes)), attrs)
        found.setdefault((again.avals, repr(again.attrs)), again)
    return tuple(found.values())


def few(cases: Sequence[Case], most: int) -> list[Case]:
    """At most so many of the cases, from all over; the first is always among them."""
    step = max(1, -(-len(cases) // most))
    return list(cases[::step])


def _in_float32(case: Case) -> Case:
    single = {dtypes.float64: dtypes.float32, dtypes.complex128: dtypes.complex64}
    avals = tuple(a.with_dtype(single.get(a.dtype, a.dtype)) for a in case.avals)
    return next(iter(valid(case.op, avals, case.attrs)), case)


@functools.cache
def dtype_cases(op: Op) -> tuple[Case, ...]:
    """The op in every dtype that it takes, elementwise ops with enough elements for every special value."""
    if op.kind != "elementwise":
        return cases(op)
    found = [c for case in cases(op) for c in valid(op, tuple(a.with_shape((67,)) for a in case.avals), case.attrs)]
    return tuple({c.avals: c for c in found}.values())


#: Special values by what they are called.
VALUES: dict[str, tuple[float, ...]] = {
    "ties": (0.0, -0.0, 1.0, 1.0, -1.0, 2.5, -2.5),
    "nan": (0.0, -0.0, 1.0, 1.0, -1.0, 2.5, np.nan),
    "infinite": (np.inf, -np.inf, 1.0, -0.0, 0.0, -3.0),
    "one infinity": (np.inf, 1.0, 0.5, 2.0),
}


def operands_of(case: Case, values: str, rng: np.random.Generator) -> list[np.ndarray]:
    """Operands made of special values; indices in range, matrices that can be factored."""
    if isinstance(case.op, Library):
        return random_operands(case, rng)
    found = [np.asarray(_special(a, values, rng)) for a in case.avals]
    if "indices" in case.op.operand_names:
        at, axes = case.op.operand_names.index("indices"), case.kwargs["axes"]
        x = case.avals[0].shape
        window = case.kwargs.get("slice_sizes") or case.avals[1].shape[-len(x) :]
        for i, axis in enumerate(axes):
            index = found[at + i]
            found[at + i] = np.asarray(rng.integers(0, x[axis] - window[axis] + 1, index.shape)).astype(index.dtype)
    return found


def _special(aval: Aval, values: str, rng: np.random.Generator) -> np.ndarray:
    dtype = aval.dtype
    if dtype.kind == "f":
        return rng.choice(np.array(VALUES[values]), aval.shape).astype(dtype.numpy)
    if dtype.is_integer and values == "infinite":
        info = np.iinfo(dtype.numpy)
        ends = np.array([info.min, info.max, 0, 1, 2, info.max - 1], dtype.numpy)
        return ends[rng.integers(0, len(ends), aval.shape)]
    return sample(aval, rng)

"""Cases of ops for the tests of transformations: other attributes, points in general position, true derivatives."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from smelt.ir import dtypes, mlir
from smelt.ir.aval import Aval
from smelt.ir.builder import new_function
from smelt.ir.dialect import context
from smelt.ir.interpreter import Interpreter
from smelt.ir.library import Library
from smelt.ir.op import Op, registry
from smelt.ir.ops.indexing import _MODES

from .cases import (
    EXPAND,
    INTERVALS,
    Case,
    cases,
    example,
    random_operands,
    reference,
    sample,
    seeds_of,
    valid,
    wrt_of,
)

Special = tuple[tuple[tuple[int, ...], ...], dict[str, Any]]


def _at(*shapes: tuple[int, ...], **attrs: Any) -> Special:
    return shapes, attrs


def _windows(
    x: tuple[int, ...], w: tuple[int, ...], stride: Any = None, low: Any = None, high: Any = None,
    kernel: Any = None, input: Any = None, groups: int = 1,
) -> Special:  # fmt: skip
    one, zero = (1,) * (len(x) - 2), (0,) * (len(x) - 2)
    return _at(
        x, w, window_strides=stride or one, padding_low=low or zero, padding_high=high or zero,
        kernel_dilation=kernel or one, input_dilation=input or one, feature_groups=groups,
    )  # fmt: skip


#: Shapes of operands and attributes that the rules below do not reach from an op's example.
SPECIAL: dict[str, list[Special]] = {
    "conv_general": [
        _windows((2, 7, 4), (6, 3, 2), stride=(2,), low=(3,), high=(1,), kernel=(2,), groups=2),
        _windows((2, 4, 2), (3, 2, 2), stride=(3,), low=(1,), high=(4,), input=(2,)),
        _windows((1, 6, 3), (3, 2, 1), stride=(1,), low=(-1,), high=(-2,), kernel=(3,), input=(3,), groups=3),
        _windows((2, 5, 3), (4, 1, 3)),
        _windows((2, 5, 3), (4, 5, 3)),
        _windows((3, 4), (2, 4)),
        _windows((1, 4, 5, 2), (2, 2, 3, 2), stride=(1, 2), low=(1, 0), high=(0, 2), kernel=(2, 1), input=(1, 2)),
    ],
    "dot_general": [
        _at((2, 3, 4), (2, 4, 5), lhs_contracting=(2,), rhs_contracting=(1,), lhs_batch=(0,), rhs_batch=(0,)),
        _at((3, 2), (4, 2, 3), lhs_contracting=(0, 1), rhs_contracting=(2, 1), lhs_batch=(), rhs_batch=()),
        _at((3,), (2,), lhs_contracting=(), rhs_contracting=(), lhs_batch=(), rhs_batch=()),
    ],
    "gather": [
        _at((4, 3), (2, 2), (2, 2), axes=(0, 1), slice_sizes=(1, 1)),
        _at((4, 3), (2,), (2,), axes=(1, 0), slice_sizes=(2, 2)),
        _at((4, 3), (), axes=(1,), slice_sizes=(3, 1)),
    ],
    "scatter": [
        *(_at((4, 3), (3, 1, 1), (3,), (3,), axes=(0, 1), mode=mode) for mode in _MODES),
        *(_at((4, 3), (2, 2, 2), (2,), (2,), axes=(1, 0), mode=mode) for mode in ("add", "set")),
    ],
    "pad": [
        _at((3, 2), (), low=(1, 0), high=(0, 2), interior=(1, 0)),
        _at((3,), (), low=(0,), high=(0,), interior=(2,)),
    ],
    "slice": [
        _at((4, 5), start=(1, 0), stop=(4, 5), stride=(1, 3)),
        _at((4,), start=(2,), stop=(2,), stride=(1,)),
    ],
    "reshape": [_at((2, 3), shape=(6,)), _at((1, 1), shape=()), _at((4, 3), shape=(2, 1, 6))],
    "broadcast": [_at((2, 1, 3), shape=(4, 2, 5, 3)), _at((), shape=(2, 2))],
    "transpose": [_at((2, 3, 4), permutation=(2, 0, 1)), _at((2, 3, 4), permutation=(0, 2, 1))],
    "concatenate": [_at((2, 3), (2, 1), axis=1), _at((2, 3), (1, 3), axis=0)],
    "reverse": [_at((2, 3), axes=(0, 1)), _at((2, 3), axes=(1,))],
    "convert": [_at((3,), dtype=d) for d in (dtypes.float32, dtypes.complex64, dtypes.float16)],
    "cholesky": [_at((2, 3, 3)), _at((2, 1, 1))],
    "qr": [_at((3, 3)), _at((2, 4, 2)), _at((2, 4)), _at((1, 3))],
    "solve_triangular": [_at((2, 3, 3), (2, 3, 1)), _at((3, 3), (2, 3, 2)), _at((2, 1, 3, 3), (2, 3, 1), upper=True)],
    "solve": [_at((2, 3, 3), (2, 3, 1)), _at((3, 3), (2, 3, 2)), _at((2, 1, 4, 4), (2, 4, 1)), _at((1, 1), (1, 1))],
    **{name: [_at((2, 3, 3)), _at((1, 1)), _at((4, 4))] for name in ("inv", "det", "adjugate", "slogdet")},
    **{name: [_at((2, 3, 3)), _at((1, 1)), _at((4, 4))] for name in ("eigh", "eigvalsh", "eig", "eigvals", "schur")},
    **{name: [_at((3, 3)), _at((2, 4, 3)), _at((3, 4)), _at((1, 2))] for name in ("svd", "singular_values")},
    "pinv": [_at(s, rtol=1e-6) for s in ((3, 3), (2, 4, 3), (3, 4), (1, 2))],
    "least_squares": [
        _at(*shapes, rtol=1e-6)
        for shapes in (((3, 3), (3, 2)), ((2, 4, 3), (4, 1)), ((3, 4), (2, 3, 2)), ((1, 2), (1, 1)), ((2, 1), (2, 3)))
    ],
    **{name: [_at((2, 3, 3)), _at((1, 1))] for name in ("expm", "sqrtm", "logm")},
    **{name: [_at((2, 3, 3), (3, 3)), _at((3, 3), (2, 3, 3)), _at((1, 1), (1, 1))]
       for name in ("expm_frechet", "logm_frechet")},
    "sylvester": [_at((2, 3, 3), (2, 2), (3, 2)), _at((3, 3), (1, 1), (2, 3, 1)), _at((1, 1), (2, 1, 1), (1, 1))],
    "lu": [_at((3, 4)), _at((2, 4, 2)), _at((2, 3, 3)), _at((1, 3)), _at((2, 1))],
    "permutation_of_pivots": [_at((4,)), _at((2, 2, 5))],
    "fft": [
        *(_at((2, n), inverse=inverse, scale=scale) for n, inverse, scale in ((5, True, "mean"), (4, False, "ortho"))),
        *(_at((n,), inverse=n % 2 == 0, scale="none") for n in (1, 2, 9)),
        _at((2, 3, 12), scale="mean"),
    ],
    "rfft": [
        *(_at((2, n), scale=scale) for n, scale in ((5, "mean"), (4, "ortho"))),
        *(_at((n,), scale="none") for n in (1, 2, 3, 12)),
        _at((2, 2, 7), scale="none"),
    ],
    "irfft": [
        *(_at((2, n // 2 + 1), n=n, scale=scale) for n, scale in ((5, "none"), (4, "ortho"))),
        *(_at((n // 2 + 1,), n=n, scale="mean") for n in (1, 2, 3, 12)),
        _at((2, 2, 4), n=7, scale="none"),
    ],
    "random_bits": [
        *(_at((2,), shape=(2, 3), width=w) for w in (8, 16, 64)),
        *(_at((3, 2), shape=shape) for shape in ((3, 5), (2, 1, 7), (1,))),
    ],
}  # fmt: skip


@functools.cache
def variants(op: Op) -> tuple[Case, ...]:
    """The op with other attributes, in float64 where it takes that."""
    base = _in_float64(example(op))
    found = []
    for name, attr in op.attrs.items():
        for value in _values(name, attr.type, base):
            attrs = tuple((k, value if k == name else v) for k, v in base.attrs)
            found += valid(op, base.avals, attrs)
    for shapes, attrs in SPECIAL.get(op.name, []):
        types = [base.avals[min(i, len(base.avals) - 1)] for i in range(len(shapes))]
        avals = tuple(a.with_shape(s) for a, s in zip(types, shapes))
        case = Case(op, avals, tuple((k, attrs.get(k, v)) for k, v in base.attrs))
        assert case.results
        found.append(case)
    return tuple({(c.avals, repr(c.attrs)): c for c in found}.values())


def _values(name: str, kind: str, base: Case) -> list[Any]:
    """Values for an attribute of a case, by its name and type; those that do not fit are left out later."""
    ndim = base.avals[0].ndim if base.avals else 0
    if kind == "Bool":
        return [False, True]
    if name == "axis":
        return list(range(ndim))
    if name == "axes" and len(base.avals) == 1:
        return [c for n in range(ndim + 1) for c in itertools.combinations(range(ndim), n)]
    return {"mode": list(_MODES), "exponent": [-3, -2, -1, 0, 1, 2, 5]}.get(name, [])


def _in_float64(case: Case) -> Case:
    avals = tuple(a.with_dtype(dtypes.float64) if a.dtype.is_float else a for a in case.avals)
    return next(iter(valid(case.op, avals, case.attrs)), case)


def wide(case: Case) -> Case:
    """The case in float64, also where it converts; the case itself where the op does not take that."""
    attrs = tuple((k, dtypes.float64 if getattr(v, "is_float", False) else v) for k, v in case.attrs)
    avals = tuple(a.with_dtype(dtypes.float64) if a.dtype.is_float else a for a in case.avals)
    return next(iter(valid(case.op, avals, attrs)), case)


def every_case(op: Op) -> list[Case]:
    """Each dtype that the op takes, each shape of an elementwise op, each variant of the attributes."""
    return [*cases(op), *variants(op)]


def derivative_cases(op: Op) -> list[Case]:
    """Cases with an operand and a result that have a derivative."""
    if op.not_differentiable is not None:
        return []
    return [c for c in every_case(op) if wrt_of(c) and seeds_of(c)]


Steps = Sequence[tuple[str, dict[str, Any]]]
Function = Callable[[Sequence[np.ndarray]], list[np.ndarray]]


class Together:
    """Makes functions of arrays: ops under transformations, innermost first. Those that are asked for before one of
    them runs are expanded in the same modules, since a pass takes as long for a module of one as for ten."""

    #: Functions in a module.
    MOST = 32

    def __init__(self) -> None:
        self._wanted: list[tuple[Case, Steps]] = []
        #: Of the first ones of these.
        self._made: list[Function] = []

    def __call__(self, case: Case, steps: Steps) -> Function:
        number = len(self._wanted)
        self._wanted.append((case, steps))

        def function(operands: Sequence[np.ndarray]) -> list[np.ndarray]:
            while number >= len(self._made):
                self._made += _expanded(self._wanted[len(self._made) :][: self.MOST])
            return self._made[number](operands)

        return function


def _expanded(wanted: Sequence[tuple[Case, Steps]]) -> list[Function]:
    with mlir.lock:
        module = mlir.ir.Module.create(mlir.ir.Location.unknown(context()))
        names: dict[Case, str] = {}
        for case in (case for case, _ in wanted):
            if case not in names:
                names[case] = f"op{len(names)}"
                _, args, b = new_function(module, names[case], case.avals, case.results)
                b.return_(b.emit_typed(case.op, args, case.kwargs, list(case.results)))
        for i, (case, steps) in enumerate(wanted):
            signature: Any = (list(case.avals), list(case.results))
            for name, attrs in steps:
                signature = registry[name].signature(*signature, **attrs)  # type: ignore[attr-defined]
            _, args, b = new_function(module, f"main{i}", *signature, public=True)
            f = b.function(names[case], list(case.avals), list(case.results))
            for name, attrs in steps:
                f = b.transform(registry[name], f, attrs)
            b.return_(b.apply(f, args))
        EXPAND.run(module)
        run = Interpreter(module)

    def function(name: str, operands: Sequence[np.ndarray]) -> list[np.ndarray]:
        with np.errstate(all="ignore"):
            return [np.asarray(x) for x in run(name, list(operands))]

    return [functools.partial(function, f"main{i}") for i in range(len(wanted))]


def transformed(case: Case, steps: Steps) -> Function:
    """An op under transformations, innermost first: a function of arrays."""
    return Together()(case, steps)


def distinct(avals: Sequence[Aval], rng: np.random.Generator, interval: tuple[float, float]) -> list[np.ndarray]:
    """Arrays of which no two elements are equal, in one array or in two, even in half precision.

    Nor are the real parts of complex ones, by which these are ordered.
    """
    total = sum(a.size for a in avals if a.dtype.is_inexact)
    ends = np.linspace(*interval, total + 1)
    # Not evenly spaced, so that sums and quotients of elements are in general position too.
    levels = iter(rng.permutation(ends[:-1] + rng.uniform(0.0, 0.5, total) * np.diff(ends)))
    found = []
    for a in avals:
        if a.dtype.is_inexact:
            x = np.array([next(levels) for _ in range(a.size)]).reshape(a.shape)
            x = x + 1j * rng.uniform(*interval, a.shape) if a.dtype.is_complex else x
            found.append(np.asarray(x).astype(a.dtype.numpy))
        else:
            found.append(sample(a, rng, interval))
    return found


def general_operands(
    case: Case, rng: np.random.Generator, *levels: tuple[Sequence[int], int]
) -> list[np.ndarray]:
    """Operands in general position, in batches: axes and size of each, from the innermost to the outermost."""
    if not isinstance(case.op, Library):
        avals: Sequence[Aval] = case.avals
        for axes, size in levels:
            avals = stacked(avals, axes, size)
        return distinct(avals, rng, interval_of(case.op))
    if not levels:
        return random_operands(case, rng)
    *inner, (axes, size) = levels
    elements = [general_operands(case, rng, *inner) for _ in range(size)]
    return [xs[0] if axis < 0 else np.stack(xs, axis) for xs, axis in zip(zip(*elements), axes)]


@functools.cache
def interval_of(op: Op) -> tuple[float, float]:
    """An interval on which the op is finite and smooth: the first of INTERVALS."""
    case = _in_float64(example(op))
    for interval in INTERVALS:
        operands = distinct(case.avals, np.random.default_rng(0), interval)
        with np.errstate(all="ignore"):
            outs = reference(case, operands)
        if all(np.isfinite(np.asarray(o, dtype=complex)).all() for o in outs):
            return interval
    raise AssertionError(f"smelt.{op.name} is finite on none of {INTERVALS}")


def direction(aval: Aval, rng: np.random.Generator) -> np.ndarray:
    return sample(aval, rng, (-1.0, 1.0))


def widened(case: Case, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The arrays in the dtypes of the case."""
    return [np.asarray(x).astype(a.dtype.numpy) for x, a in zip(arrays, case.avals)]


def is_exact(case: Case) -> bool:
    """Whether all that is differentiated is float64 or complex128."""
    types = [*case.results, *(case.avals[i] for i in wrt_of(case))]
    return all(a.dtype.real is dtypes.float64 for a in types if a.dtype.is_inexact)


#: Ops whose results are some of the elements, by their order.
CHOOSING = ("clamp", "cummax", "cummin", "maximum", "minimum", "reduce_max", "reduce_min", "scatter", "sort")


def differences(
    function: Callable[[list[np.ndarray]], list[np.ndarray]],
    case: Case,
    operands: list[np.ndarray],
    tangents: dict[int, np.ndarray],
) -> list[np.ndarray]:
    """The derivative of a function of the case's operands along tangents, by its values alone.

    Central differences in float64. Where there is only complex64 or float32, a stencil of sixth order
    with a step so wide that rounding does not matter:
    f'(0) ≈ (45 (f(h) - f(-h)) - 9 (f(2h) - f(-2h)) + f(3h) - f(-3h)) / 60h.
    """
    h, weights = (1e-6, {1: 0.5}) if is_exact(case) else (0.02, {1: 45 / 60, 2: -9 / 60, 3: 1 / 60})
    if case.op.name in CHOOSING:  # nothing is rounded, and wide steps would change the order
        h = min(h, 1e-3)
    total: list[Any] | None = None
    for k, w in weights.items():
        ends = []
        for s in (k * h, -k * h):
            moved = list(operands)
            for i, t in tangents.items():
                moved[i] = (operands[i] + s * _big(t)).astype(operands[i].dtype)
            with np.errstate(all="ignore"):
                ends.append([_big(x) for x in function(moved)])
        with np.errstate(invalid="ignore"):  # equal infinities do not change
            terms = [np.where(a == b, 0, w / h * (a - b)) for a, b in zip(*ends)]
        total = terms if total is None else [a + b for a, b in zip(total, terms)]
    assert total is not None
    return total


def _big(x: Any) -> np.ndarray:
    x = np.asarray(x)
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


#: What two computations in the narrowest dtype of a case may differ by, relative to the largest element.
PRECISION = {"float64": 2e-6, "float32": 2e-4, "complex64": 2e-3, "complex128": 2e-6, "float16": 3e-2, "bfloat16": 2e-1}


def assert_derivative(case: Case, found: Sequence[Any], want: Sequence[Any], what: str, slack: float = 1.0) -> None:
    """Equal up to the precision of the case's dtypes, relative to the largest element of each array."""
    kinds = [a.dtype for a in [*case.results, *case.avals] if a.dtype.is_inexact]
    kinds += [v for _, v in case.attrs if isinstance(v, dtypes.DType) and v.is_inexact]
    bound = slack * max(PRECISION[d.name] for d in kinds)
    for a, b in zip(map(_big, found), map(_big, want), strict=True):
        if a.dtype.kind != b.dtype.kind:
            a, b = np.asarray(a, complex), np.asarray(b, complex)
        scale = max(1.0, float(np.max(np.abs(b[np.isfinite(b)]), initial=0.0)))
        with np.errstate(invalid="ignore"):
            np.testing.assert_allclose(a, b, rtol=0, atol=bound * scale, err_msg=what)


def axis_patterns(case: Case) -> Iterator[tuple[int, ...]]:
    """Every choice of a batch axis, or none (-1), for each operand, where at least one has one."""
    lead = len(case.op.operand_names) - 1
    for axes in itertools.product(*(range(-1, a.ndim + 1) for a in case.avals)):
        if max(axes, default=-1) < 0:
            continue
        if case.op.variadic and len(set(axes[lead:])) > 1:  # a variadic group has one type
            continue
        yield axes


def few_patterns(avals: Sequence[Aval], op: Op) -> list[tuple[int, ...]]:
    """All operands along their first axes, all along their last, and each alone along its last."""
    n = len(avals)
    last = tuple(a.ndim for a in avals)
    found = {(0,) * n, last} | {tuple(last[j] if j == i else -1 for j in range(n)) for i in range(n)}
    lead = len(op.operand_names) - 1
    return sorted(p for p in found if not op.variadic or len(set(p[lead:])) == 1)


def stacked(avals: Sequence[Aval], axes: Sequence[int], size: int) -> list[Aval]:
    """The types with a batch axis."""
    return [
        a if axis < 0 else a.with_shape((*a.shape[:axis], size, *a.shape[axis:])) for a, axis in zip(avals, axes)
    ]


def element(arrays: Sequence[np.ndarray], axes: Sequence[int], i: int) -> list[np.ndarray]:
    """The arguments of one example of a batch."""
    return [x if axis < 0 else np.take(x, i, axis) for x, axis in zip(arrays, axes)]

"""What libraries compute: factors, solutions, transforms; and the custom calls that have a meaning here."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from smelt.ir import dtypes
from smelt.ir.op import registry as ops

from ...functions.arithmetic import maximum, sqrt
from ...functions.complex_numbers import conj
from ...functions.diagonals import diagonal, tril, triu
from ...functions.joining import concatenate
from ...functions.logic import where
from ...functions.shaping import matrix_transpose
from ...lazy.arrays import array, convert, emit, emit_all
from ...lazy.operands import constant
from ..reading import RULES, Call, elements_of, rule
from ..translating import Refused, SizesError
from . import householder
from .elementwise import apply, full_like
from .shapes import reshaped
from .sorting import top_k

Target = Callable[[Call, dict[str, Any]], "array | Sequence[array]"]
TARGETS: dict[str, Target] = {}


def target(*names: str) -> Callable[[Target], Target]:
    """Enter what a custom call of these targets means. ``lapack_?potrf`` stands for the four dtypes of LAPACK."""

    def enter(function: Target) -> Target:
        TARGETS.update((name, function) for name in names)
        return function

    return enter


_LAPACK = re.compile(r"lapack_([sdcz])(\w+?)(_ffi)?$")
#: LAPACK has other names for complex matrices.
_COMPLEX_NAMES = {"ungqr": "orgqr", "heevd": "syevd", "hetrd": "sytrd", "unmqr": "ormqr"}


@rule("stablehlo.custom_call")
def _custom_call(call: Call) -> Any:
    name = call.text("call_target_name")
    found = TARGETS.get(name)
    match = _LAPACK.match(name)
    if found is None and match is not None:
        found = TARGETS.get("lapack_" + _COMPLEX_NAMES.get(match[2], match[2]))
    if found is None:
        raise Refused(
            f"@{name} has no translation: it is code of the framework that made the program; lower the program "
            "without it, or enter a function for it in smelt.exchange.rules.library.TARGETS"
        )
    return found(call, _parameters(call))


def _parameters(call: Call) -> dict[str, Any]:
    """The typed parameters of a call: numbers, and characters of LAPACK as text."""
    given = call.attribute("mhlo.backend_config")
    if given is None:
        given = call.attribute("backend_config")
    try:
        entries = [(item.name, item.attr) for item in given]
    except (TypeError, AttributeError):
        return {}
    return {key: getattr(attr, "value", None) for key, attr in entries}


def _letter(parameters: dict[str, Any], name: str, default: str) -> str:
    value = parameters.get(name)
    return chr(value) if isinstance(value, int) and 0 < value < 128 else default


def _zeros(call: Call, result: int) -> array:
    """A result that says nothing: LAPACK's `info`, for smelt raises an error where there is none, or vectors that
    nobody asked for."""
    aval = call.avals[result]
    return constant(0, aval.dtype, aval.shape)


@target("Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "annotate_device_placement", "LayoutConstraint",
        "xla.sdy.FuncResultSharding", "AssumeGatherIndicesInBound", "MoveToHost", "MoveToDevice")  # fmt: skip
def _same(call: Call, _: dict[str, Any]) -> list[array]:
    """Notes on where work is done."""
    if [x.aval for x in call.operands] != call.avals:
        raise Refused(f"@{call.text('call_target_name')} divides work among devices; smelt has one")
    return call.operands


@target("shape_assertion")
def _shape_assertion(call: Call, _: dict[str, Any]) -> list[array]:
    """What a program of open sizes demands of them: known once they are bound."""
    made = [getattr(v.owner, "opview", v.owner) for v in call.operation.operands]
    if not all(op.name == "stablehlo.constant" for op in made):
        raise Refused("@shape_assertion asks for more than the sizes of arguments")
    holds, *sizes = [elements_of(op) for op in made]
    if not holds.all():
        raise SizesError(re.sub(r"\{(\d+)\}", lambda i: str(sizes[int(i[1])]), call.text("error_message")))
    return []


@target("mhlo.topk")
def _mhlo_topk(call: Call, _: dict[str, Any]) -> list[array]:
    return top_k(call.x, call.avals[0].shape[-1])


@target("ApproxTopK")
def _approximate_top_k(call: Call, parameters: dict[str, Any]) -> list[array]:
    """The exact answer; of the smallest where the program starts from infinity."""
    axis = int(parameters.get("reduction_dim", call.x.ndim - 1))
    x, k = call.operands[0], call.avals[0].shape[axis]
    if axis % x.ndim != x.ndim - 1:
        return [_swapped(y, axis) for y in _most(call, _swapped(x, axis), k)]
    return _most(call, x, k)


def _swapped(x: array, axis: int) -> array:
    """An axis exchanged with the last one."""
    order = list(range(x.ndim))
    order[axis], order[-1] = order[-1], order[axis]
    return emit(ops["transpose"], (x,), {"permutation": tuple(order)})


def _most(call: Call, x: array, k: int) -> list[array]:
    name = str(call.attribute("called_computations"))
    body = re.search(r"@([\w.$-]+)", name)
    smallest = body is not None and _compares_less(call, body[1])
    if smallest and x.dtype.is_inexact:
        values, places = top_k(apply("neg", x), k)
        return [apply("neg", values), places]
    return top_k(x, k)


def _compares_less(call: Call, name: str) -> bool:
    function = call.reader.functions.get(name)
    return function is not None and " LT" in str(function)


@target("mhlo.erf", "mhlo.asin", "mhlo.acos", "mhlo.atan", "mhlo.sinh", "mhlo.cosh", "mhlo.tan", "mhlo.asinh",
        "mhlo.acosh", "mhlo.atanh", "mhlo.erf_inv", "mhlo.square")  # fmt: skip
def _function(call: Call, _: dict[str, Any]) -> Any:
    return RULES["chlo." + call.text("call_target_name").partition(".")[2]](call)


# StableHLO's own


@rule("stablehlo.cholesky")
def _cholesky(call: Call) -> array:
    return convert(cholesky(_wide(call.x), call.flag("lower")), call.x.dtype)


def _wide(x: array) -> array:
    """Matrices of half precision as float32, which libraries take."""
    return convert(x, dtypes.float32) if x.dtype.is_float and x.dtype.size == 2 else x


def cholesky(x: array, lower: bool) -> array:
    if lower:
        return emit(ops["cholesky"], (x,))
    return matrix_transpose(conj(emit(ops["cholesky"], (conj(matrix_transpose(x)),))))


@rule("stablehlo.triangular_solve")
def _triangular_solve(call: Call) -> array:
    a, b = call.operands
    how = call.word("transpose_a")
    found = triangular_solve(
        _wide(a), _wide(b), call.flag("left_side"), call.flag("lower"), call.flag("unit_diagonal"),
        {"NO_TRANSPOSE": "N", "TRANSPOSE": "T", "ADJOINT": "C"}.get(how, "N"),
    )  # fmt: skip
    return convert(found, b.dtype)


def triangular_solve(a: array, b: array, left: bool, lower: bool, unit: bool, how: str) -> array:
    """op(A)·X = B, or X·op(A) = B, where op is N (nothing), T (the transpose) or C (the adjoint)."""
    if unit:
        rows = emit(ops["iota"], (), {"shape": a.shape, "axis": a.ndim - 2, "dtype": dtypes.int32})
        columns = emit(ops["iota"], (), {"shape": a.shape, "axis": a.ndim - 1, "dtype": dtypes.int32})
        a = where(apply("equal", rows, columns), full_like(a, 1), a)
    a = tril(a) if lower else triu(a)
    if how != "N":
        a, lower = matrix_transpose(a), not lower
        a = conj(a) if how == "C" else a
    if left:
        return emit(ops["solve_triangular"], (a, b), {"upper": not lower})
    found = emit(ops["solve_triangular"], (matrix_transpose(a), matrix_transpose(b)), {"upper": lower})
    return matrix_transpose(found)


@rule("stablehlo.fft")
def _fft(call: Call) -> array:
    kind, lengths, x = call.word("fft_type"), call.ints("fft_length"), call.x
    axes = list(range(x.ndim - len(lengths), x.ndim))
    if kind == "RFFT":
        x, axes = emit(ops["rfft"], (x,), {"scale": "none"}), axes[:-1]
    last: int | None = None
    if kind == "IRFFT":
        last, axes = lengths[-1], axes[:-1]
    inverse = kind in ("IFFT", "IRFFT")
    attrs = {"inverse": inverse, "scale": "mean" if inverse else "none"}
    for axis in axes:
        x = _along_last(x, axis, lambda v: emit(ops["fft"], (v,), attrs))
    return x if last is None else emit(ops["irfft"], (x,), {"n": last, "scale": "mean"})


def _along_last(x: array, axis: int, function: Callable[[array], array]) -> array:
    if axis == x.ndim - 1:
        return function(x)
    return _swapped(function(_swapped(x, axis)), axis)


# LAPACK, as JAX calls it on the CPU


@target("lapack_potrf")
def _potrf(call: Call, parameters: dict[str, Any]) -> list[array]:
    return [cholesky(call.x, _letter(parameters, "uplo", "L") == "L"), _zeros(call, 1)]


@target("lapack_trsm")
def _trsm(call: Call, parameters: dict[str, Any]) -> array:
    a, b = call.operands[:2]
    side, uplo = _letter(parameters, "side", "L"), _letter(parameters, "uplo", "L")
    unit, how = _letter(parameters, "diag", "N") == "U", _letter(parameters, "trans_x", "N")
    return triangular_solve(a, b, side == "L", uplo == "L", unit, how)


@target("lapack_getrf")
def _getrf(call: Call, _: dict[str, Any]) -> list[array]:
    factors, pivots, _permutation = emit_all(ops["lu"], (call.x,))
    pivots = convert(pivots, call.avals[1].dtype)
    return [factors, apply("add", pivots, full_like(pivots, 1)), _zeros(call, 2)]


@target("lapack_geqrf")
def _geqrf(call: Call, _: dict[str, Any]) -> list[array]:
    found = householder.over_batch(householder.factor, 2, call.x)
    return [*found, *(_zeros(call, i) for i in range(2, len(call.avals)))]


@target("lapack_orgqr")
def _orgqr(call: Call, _: dict[str, Any]) -> list[array]:
    a, taus = call.operands[:2]
    found = householder.over_batch(lambda x, t: (householder.product(x, t),), 2, a, taus)
    return [*found, *(_zeros(call, i) for i in range(1, len(call.avals)))]


@target("lapack_ormqr")
def _ormqr(call: Call, parameters: dict[str, Any]) -> list[array]:
    left, adjoint = bool(parameters.get("left", True)), bool(parameters.get("transpose", False))
    return householder.over_batch(lambda a, t, c: (householder.multiply(a, t, c, left, adjoint),), 2,
                                  *call.operands[:3])  # fmt: skip


@target("lapack_geqp3")
def _geqp3(call: Call, _: dict[str, Any]) -> list[array]:
    """All columns are free to move, as JAX has it."""
    return householder.over_batch(householder.factor_pivoted, 2, call.operands[0])


@target("lapack_gehrd")
def _gehrd(call: Call, parameters: dict[str, Any]) -> list[array]:
    n = call.x.shape[-1]
    if (parameters.get("low", 1), parameters.get("high", n)) != (1, n):
        raise Refused("of a part of the matrix alone has no translation: balance it not")
    return [*householder.over_batch(householder.hessenberg, 2, call.x), _zeros(call, 2)]


@target("lapack_sytrd")
def _sytrd(call: Call, parameters: dict[str, Any]) -> list[array]:
    """The Hessenberg form of a Hermitian matrix has three diagonals. What lies above them is left as it was."""
    if _letter(parameters, "uplo", "L") != "L":
        raise Refused("of the upper triangle has no translation; ask for the lower one")
    x = call.x
    below, middle = tril(x, -1), triu(tril(x))
    if x.dtype.is_complex:
        middle = convert(emit(ops["real"], (middle,)), x.dtype)
    whole = apply("add", apply("add", below, conj(matrix_transpose(below))), middle)
    found, taus = householder.over_batch(householder.hessenberg, 2, whole)
    values, beside = diagonal(found, 0, -2, -1), diagonal(found, -1, -2, -1)
    if x.dtype.is_complex:
        values, beside = emit(ops["real"], (values,)), emit(ops["real"], (beside,))
    return [apply("add", tril(found), triu(x, 1)), values, beside, taus, _zeros(call, 4)]


@target("ProductOfElementaryHouseholderReflectors")
def _product(call: Call, _: dict[str, Any]) -> list[array]:
    return householder.over_batch(lambda x, t: (householder.product(x, t),), 2, *call.operands[:2])


@target("Qr")
def _qr(call: Call, _: dict[str, Any]) -> list[array]:
    return householder.over_batch(householder.factor, 2, call.x)


@target("lapack_syevd")
def _syevd(call: Call, parameters: dict[str, Any]) -> list[array]:
    x = call.x
    if _letter(parameters, "uplo", "L") == "U":
        x = conj(matrix_transpose(x))
    values, vectors = emit_all(ops["eigh"], (x,))
    return [vectors, values, _zeros(call, 2)]


@target("lapack_gesdd", "lapack_gesvd")
def _gesdd(call: Call, parameters: dict[str, Any]) -> list[array]:
    avals = call.avals
    mode = _letter(parameters, "mode", "A")
    if mode == "N":
        values = emit(ops["singular_values"], (call.x,))
        return [call.x, values, _zeros(call, 2), _zeros(call, 3), _zeros(call, 4)]
    m, n = call.x.shape[-2:]
    full = mode == "A" and m != n
    u, values, vt = emit_all(ops["svd"], (call.x,), {"full": full})
    if u.aval != avals[2] or vt.aval != avals[3]:
        raise Refused(f"computes {u.aval} and {vt.aval}, the program says {avals[2]} and {avals[3]}")
    return [call.x, values, u, vt, _zeros(call, 4)]


@target("lapack_geev")
def _geev(call: Call, parameters: dict[str, Any]) -> list[array]:
    """Eigenvectors of the left are those of the adjoint matrix, scaled to length 1."""
    x, avals = call.x, call.avals
    is_real = not x.dtype.is_complex
    at = 2 if is_real else 1
    left = _letter(parameters, "compute_left", "N") == "V"
    right = _letter(parameters, "compute_right", "N") == "V"
    if right or left:
        values, vectors = emit_all(ops["eig"], (x,))
    else:
        values, vectors = emit(ops["eigvals"], (x,)), None
    found = [emit(ops["real"], (values,)), emit(ops["imag"], (values,))] if is_real else [values]
    if left:
        assert vectors is not None
        inverse = emit(ops["inv"], (vectors,))
        adjoint = conj(matrix_transpose(inverse))
        size = emit(ops["abs"], (adjoint,))
        length = emit(ops["sqrt"], (emit(ops["reduce_sum"], (apply("mul", size, size),), {"axes": (x.ndim - 2,)}),))
        length = reshaped(length, (*x.shape[:-2], 1, x.shape[-1]))
        found.append(apply("div", adjoint, convert(length, adjoint.dtype)))
    else:
        found.append(_zeros(call, at))
    found.append(vectors if right and vectors is not None else _zeros(call, at + 1))
    return [*found, *(_zeros(call, i) for i in range(len(found), len(avals)))]


@target("lapack_gees")
def _gees(call: Call, parameters: dict[str, Any]) -> list[array]:
    if _letter(parameters, "sort", "N") != "N":
        raise Refused("of sorted eigenvalues has no translation: their order is code of the framework")
    form, vectors = emit_all(ops["schur"], (call.x,))
    values = [diagonal(form, 0, -2, -1)] if form.dtype.is_complex else _values_of_blocks(form)
    return [form, vectors, *values, *(_zeros(call, i) for i in range(2 + len(values), len(call.avals)))]


def _values_of_blocks(form: array) -> list[array]:
    """Real and imaginary parts of the eigenvalues of a real Schur form, those of a block of two rows together."""
    n = form.shape[-1]
    middle = diagonal(form, 0, -2, -1)
    if n < 2:
        return [middle, full_like(middle, 0)]
    low, high = diagonal(form, -1, -2, -1), diagonal(form, 1, -2, -1)
    first, second = middle[..., :-1], middle[..., 1:]
    mean, half = (first + second) / 2, (first - second) / 2
    imaginary = sqrt(maximum(-(half * half + low * high), 0))
    nothing, none = full_like(middle[..., :1], 0), low != 0
    begins = concatenate([none, nothing != 0], -1)
    ends = concatenate([nothing != 0, none], -1)
    real = where(begins, concatenate([mean, nothing], -1), where(ends, concatenate([nothing, mean], -1), middle))
    above = where(begins, concatenate([imaginary, nothing], -1), full_like(middle, 0))
    return [real, where(ends, concatenate([nothing, -imaginary], -1), above)]


@target("lapack_gtsv", "lapack_gtsv2")
def _gtsv(call: Call, _: dict[str, Any]) -> list[array]:
    """A tridiagonal system, as a matrix."""
    low, middle, high, b = call.operands[:4]
    n = middle.shape[-1]
    rows = emit(ops["iota"], (), {"shape": (n, n), "axis": 0, "dtype": dtypes.int32})
    columns = emit(ops["iota"], (), {"shape": (n, n), "axis": 1, "dtype": dtypes.int32})
    offset = apply("sub", columns, rows)
    wide = (*middle.shape[:-1], n, n)

    def band(values: array, k: int, at_row: bool) -> array:
        shape = (*values.shape, 1) if at_row else (*values.shape[:-1], 1, values.shape[-1])
        spread = emit(ops["broadcast"], (reshaped(values, shape),), {"shape": wide})
        mask = emit(ops["broadcast"], (apply("equal", offset, full_like(offset, k)),), {"shape": wide})
        return where(mask, spread, full_like(spread, 0))

    matrix = apply("add", apply("add", band(middle, 0, True), band(low, -1, True)), band(high, 1, True))
    found = emit(ops["solve"], (matrix, b))
    return [low, middle, high, found, _zeros(call, 4)]

"""What LAPACK computes, as the typed calls by which JAX has it computed on the CPU.

Where an op raises an error of a matrix here, its program has NaN or infinities there, as JAX's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.ops.matrices import adjoint, columns, rows, upper_part

from ..writer import Tensor, Writer
from .table import Call, composed, rule

if TYPE_CHECKING:
    from smelt.ir.builder import Builder, Value

_LETTERS = {dtypes.float32: "s", dtypes.float64: "d", dtypes.complex64: "c", dtypes.complex128: "z"}
#: What LAPACK calls the functions for complex numbers that have other names.
_OF_COMPLEX = {"orgqr": "ungqr", "syevd": "heevd"}
#: Characters, which the calls hand on as bytes: compute none, all, what is needed, vectors; lower.
_NONE, _ALL, _SOME, _VECTORS, _LOWER = (f"{ord(c)} : ui8" for c in "NASVL")


def call_lapack(
    w: Writer, name: str, operands: Sequence[Tensor], results: Sequence[Aval], lead: int, parameters: str = ""
) -> list[Tensor]:
    """A function of LAPACK on column-major matrices, after `lead` axes of a batch."""
    kind = operands[0].dtype
    name = _OF_COMPLEX.get(name, name) if kind.is_complex else name
    attrs = (
        f'call_target_name = "lapack_{_LETTERS[kind]}{name}_ffi", api_version = 4 : i32, '
        f"backend_config = {{{parameters}}}, operand_layouts = {_layouts([x.aval for x in operands], lead)}, "
        f"result_layouts = {_layouts(results, lead)}"
    )
    return w.op_all("stablehlo.custom_call", operands, results, attrs)


def _layouts(avals: Sequence[Aval], lead: int) -> str:
    """From the axis whose elements stand next to each other to the one whose stand farthest apart."""
    found = []
    for aval in avals:
        axes = list(range(aval.ndim - 1, -1, -1))
        if aval.ndim - lead == 2:
            axes[:2] = axes[1::-1]
        found.append(f"dense<{axes}> : tensor<{len(axes)}xindex>" if axes else "dense<> : tensor<0xindex>")
    return "[" + ", ".join(found) + "]"


def _where_done(w: Writer, info: Tensor, x: Tensor) -> Tensor:
    """NaN in place of what LAPACK did not find."""
    done = w.reshape(w.compare("EQ", info, 0), (*info.shape, *[1] * (x.aval.ndim - info.aval.ndim)))
    nan = w.full(x, complex(np.nan, np.nan) if x.dtype.is_complex else np.nan)
    return w.select(w.broadcast(done, x.shape), x, nan)


def _infos(x: Tensor) -> Aval:
    return Aval(x.shape[:-2], dtypes.int32)


@rule("lu")
def _lu(call: Call) -> Sequence[Tensor]:
    w, x, (_, pivots, order) = call.writer, call.x, call.avals
    if not x.aval.size:
        rows = w.iota(order.shape, order.ndim - 1, dtypes.uint32)
        return [x, w.broadcast(w.scalar(0, pivots.dtype), pivots.shape), rows]
    results = [x.aval, pivots.with_dtype(dtypes.int32), _infos(x)]
    factors, found, _ = call_lapack(w, "getrf", [x], results, x.aval.ndim - 2)
    found = w.convert(found - 1, dtypes.uint32)
    return [factors, found, _permutation(w, found, order.shape[-1])]


@rule("permutation_of_pivots")
def _permutation_of_pivots(call: Call) -> Tensor:
    return _permutation(call.writer, call.x, call.x.shape[-1])


def _permutation(w: Writer, pivots: Tensor, rows: int) -> Tensor:
    """One exchange after the other, in all matrices at once."""
    *lead, count = pivots.shape
    last, kind = len(lead), dtypes.int32
    pivots = w.convert(pivots, kind)
    order = w.iota((*lead, rows), last, kind)

    def at(x: Tensor, i: Tensor) -> Tensor:
        return w.dynamic_slice(x, [*[w.scalar(0, kind)] * last, i], (*lead, 1))

    def step(i: Tensor, order: Tensor) -> Sequence[Tensor]:
        place, pivot, here = w.iota(order.shape, last, kind), at(pivots, i), at(order, i)
        chosen = w.compare("EQ", place, pivot)
        there = w.reshape(w.reduce(w.select(chosen, order, 0), 0, "stablehlo.add", (last,)), (*lead, 1))
        moved = w.select(chosen, w.broadcast(here, order.shape), order)
        return [w.select(w.compare("EQ", place, i), w.broadcast(there, order.shape), moved)]

    (order,) = w.loop(count, step, [order])
    return w.convert(order, dtypes.uint32)


@rule("qr")
def _qr(call: Call) -> Sequence[Tensor]:
    """LAPACK leaves the vectors of reflectors below R."""
    w, x, (q, r) = call.writer, call.x, call.avals
    if not x.aval.size:
        return [w.broadcast(w.scalar(0, a.dtype), a.shape) for a in (q, r)]
    lead, k = x.aval.ndim - 2, q.shape[-1]
    packed, factors = call_lapack(w, "geqrf", [x], [x.aval, Aval((*x.shape[:-2], k), x.dtype)], lead)
    (first,) = composed(w, lambda b, p: columns(b, p, 0, k), [packed])
    (found,) = call_lapack(w, "orgqr", [first, factors], [q], lead)
    (upper,) = composed(w, lambda b, p: upper_part(b, rows(b, p, 0, k)), [packed])
    return [found, upper]


@rule("eigh")
def _eigh(call: Call) -> Sequence[Tensor]:
    w, (values, vectors) = call.writer, _eigenvalues_and_vectors(call)
    if not call.x.dtype.is_complex or not call.x.aval.size:
        return [values, vectors]
    return [values, *composed(w, lambda b, v: turned(b, v, phases(b, v)), [vectors])]


@rule("eigvalsh")
def _eigvalsh(call: Call) -> Tensor:
    return _eigenvalues_and_vectors(call)[0]


def _eigenvalues_and_vectors(call: Call) -> tuple[Tensor, Tensor]:
    w, x = call.writer, call.x
    of_values = call.avals[0]
    if not x.aval.size:
        return w.broadcast(w.scalar(0, of_values.dtype), of_values.shape), x
    mode = _VECTORS if call.name == "eigh" else _NONE
    results = [x.aval, of_values, _infos(x)]
    parameters = f"mode = {mode}, uplo = {_LOWER}"
    vectors, values, info = call_lapack(w, "syevd", [x], results, x.aval.ndim - 2, parameters)
    return _where_done(w, info, values), _where_done(w, info, vectors)


@rule("singular_values")
def _singular_values(call: Call) -> Tensor:
    w, x = call.writer, call.x
    if not x.aval.size:
        return w.broadcast(w.scalar(0, call.aval.dtype), call.aval.shape)
    return _singular(call, _NONE)[1]


@rule("svd")
def _svd(call: Call) -> Sequence[Tensor]:
    w, x, full = call.writer, call.x, call.attrs["full"]
    if not x.aval.size:
        def identity(aval: Aval) -> Tensor:
            rows, across = (w.iota(aval.shape, aval.ndim - i, dtypes.int32) for i in (2, 1))
            return w.convert(w.compare("EQ", rows, across), aval.dtype)

        of_u, of_s, of_v = call.avals
        return [identity(of_u), w.broadcast(w.scalar(0, of_s.dtype), of_s.shape), identity(of_v)]
    u, values, v = _singular(call, _ALL if full else _SOME)
    if x.dtype.is_complex:
        u, v = composed(w, without_phases, [u, v])
    return [u, values, v]


def without_phases(b: Builder, u: Value, vh: Value) -> tuple[Value, Value]:
    """The columns of U with real largest elements, those of V that belong to them turned as far, others alone."""
    v, k = adjoint(b, vh), min(u.shape[-1], vh.shape[-2])
    of_u = phases(b, u)
    of_v = columns(b, of_u, 0, k)
    if v.shape[-1] > k:
        of_v = b.concatenate(of_v, columns(b, phases(b, v), k, v.shape[-1]), axis=v.ndim - 1)
    return turned(b, u, of_u), adjoint(b, turned(b, v, of_v))


def phases(b: Builder, v: Value) -> Value:
    """By what complex columns are divided so that the largest element of each is real."""
    down = v.ndim - 2
    real, imag = b.real(v), b.imag(v)
    at = b.reshape_to(b.argmax(real * real + imag * imag, axis=down), (*v.shape[:-2], 1, v.shape[-1]))
    place = b.iota(shape=v.shape, axis=down, dtype=at.dtype)
    chosen = b.select(b.equal(place, b.broadcast_to(at, v.shape)), v, b.zeros_like(v))
    largest = b.reshape_to(b.reduce_sum(chosen, axes=(down,)), (*v.shape[:-2], 1, v.shape[-1]))
    size = b.abs(largest)
    one = b.full(size.shape, 1, size.dtype)
    some = b.greater(size, b.zeros_like(size))
    whole = b.div(largest, b.convert_to(b.select(some, size, one), v.dtype))
    return b.select(some, whole, b.convert_to(one, v.dtype))


def turned(b: Builder, v: Value, by: Value) -> Value:
    return b.div(v, b.broadcast_to(by, v.shape))


def _singular(call: Call, mode: str) -> tuple[Tensor, Tensor, Tensor]:
    w, x = call.writer, call.x
    *lead, m, n = x.shape
    k = min(m, n) if mode == _SOME else max(m, n)
    kind = x.dtype
    results = [
        x.aval, Aval((*lead, min(m, n)), kind.real), Aval((*lead, m, min(m, k)), kind),
        Aval((*lead, min(n, k), n), kind), _infos(x),
    ]  # fmt: skip
    _, values, u, v, info = call_lapack(w, "gesdd", [x], results, len(lead), f"mode = {mode}")
    u, values, v = (_where_done(w, info, y) for y in (u, values, v))
    return u, values, v


@rule("eig", "eigvals")
def _eig(call: Call) -> Sequence[Tensor]:
    """Of real matrices LAPACK has real and imaginary parts of eigenvalues apart."""
    w, x, values = call.writer, call.x, call.avals[0]
    if not x.aval.size:
        return [w.broadcast(w.scalar(0, a.dtype), a.shape) for a in call.avals]
    vectors, parts = Aval(x.shape, values.dtype), values.with_dtype(x.dtype)
    results = [*[parts] * (1 if x.dtype.is_complex else 2), vectors, vectors, _infos(x)]
    right = _VECTORS if call.name == "eig" else _NONE
    parameters = f"compute_left = {_NONE}, compute_right = {right}"
    *found, _, of_right, info = call_lapack(w, "geev", [x], results, x.aval.ndim - 2, parameters)
    eigenvalues = found[0] if len(found) == 1 else w.op("stablehlo.complex", found, values)
    return [_where_done(w, info, y) for y in (eigenvalues, of_right)][: len(call.avals)]


@rule("schur")
def _schur(call: Call) -> Sequence[Tensor]:
    w, x = call.writer, call.x
    if not x.aval.size:
        return [x, x]
    values = [Aval(x.shape[:-1], x.dtype)] * (1 if x.dtype.is_complex else 2)
    results = [x.aval, x.aval, *values, _infos(x), _infos(x)]
    parameters = f"mode = {_VECTORS}, sort = {_NONE}"
    form, vectors, *_, info = call_lapack(w, "gees", [x], results, x.aval.ndim - 2, parameters)
    return [_where_done(w, info, y) for y in (form, vectors)]

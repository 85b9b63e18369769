"""Ops that a library computes on whole arrays: what it reads is laid out for it before, and what it wrote after.

A library's Fourier transforms are not scaled, and the inverse of real numbers spoils its operand and reads imaginary
parts that stand for nothing. Its matrices lie by columns: what lies by rows is the transposed matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.builder import Builder, OpView, Value
from smelt.ir.ops.fft import inside, scale_factor
from smelt.ir.ops.matrices import lower, rows, transposed, upper_part
from smelt.ir.scopes import place

from ..kernel import GpuModule
from ..library import Array, LibraryCall
from .schedule import ScheduledKernel, Scratch, ScratchPlan, declare_step
from .written import build_written

#: What elements are put into another place, of the builder, the op and the array.
Lay = Callable[[Builder, OpView, Value], Value]


@dataclass(frozen=True)
class Form:
    """How a library computes an op.

    Attributes:
        laid: by number of an operand, what is written for the library beside it.
        columns: by number of a result that the library writes column by column, how many, and of how many elements, and
            what is made of these.
    """

    laid: Mapping[int, Lay] = field(default_factory=dict)
    columns: Mapping[int, tuple[tuple[int, int], Lay]] = field(default_factory=dict)


def _form(op: OpView) -> Form | None:
    found = _FORMS.get(op.name)
    return None if found is None else found(op)


def call_of(op: OpView) -> LibraryCall | None:
    """What a library is asked for in an op's place; None for an op that none is known for, or that computes nothing."""
    form = _form(op)
    if form is None or not all(v.aval.size for v in (*op.operands, *op.results)):
        return None
    operands, results = (tuple(Array.of(v.aval) for v in values) for values in (op.operands, op.results))
    return LibraryCall(op.name, tuple(op.attrs.items()), operands, results, tuple(form.columns), place(op.location))


def build_call(module: GpuModule, op: OpView, scratch: ScratchPlan) -> list[ScheduledKernel]:
    """The steps that run an op that the device's library takes."""
    form, work = _form(op), call_of(op)
    assert form is not None and work is not None and module.library is not None

    def moved(name: str, lay: Lay, source: Value | Scratch, target: Value | Scratch) -> list[ScheduledKernel]:
        around = op.mlir.parent
        return build_written(module, around, f"{op.name}_{name}", [source], [target], lambda b, x: [lay(b, op, x[0])])

    before: list[ScheduledKernel] = []
    after: list[ScheduledKernel] = []
    results: list[Value | Scratch] = [*op.results]
    for i, (extents, lay) in form.columns.items():
        result = op.results[i]
        results[i] = raw = scratch.take(Aval((*result.shape[:-2], *extents), result.dtype))
        after += moved("result", lay, raw, result)
    laid = []
    for i, lay in form.laid.items():
        x = op.operands[i]
        shape = (*x.shape[:-2], *x.shape[:-3:-1]) if lay is _turned else x.shape
        laid.append(scratch.take(Aval(shape, x.dtype)))
        before += moved("operand", lay, x, laid[-1])
    buffers = [*op.operands, *results, *laid]
    avals: list[Aval] = [x.aval for x in buffers]
    names = [*op.op.operand_names, *(f"out{i or ''}" for i in range(len(results))), *(f"laid{i}" for i in form.laid)]
    workspace = module.library.workspace(work)
    flops = int(op.op.flops * max(aval.size for aval in avals))
    kernel = declare_step(module, op.name, work, avals, names, workspace, flops, op)
    if workspace:
        buffers.append(scratch.take(Aval((workspace,), dtypes.uint8)))
    return [*before, ScheduledKernel(kernel, buffers), *after]


# Fourier transforms


def _factor(op: OpView) -> float:
    """What a transform's sums are multiplied by."""
    n = max(op.operands[0].shape[-1], op.results[0].shape[-1])
    return scale_factor(op.attrs["scale"], n)


def _scaled(b: Builder, op: OpView, x: Value) -> Value:
    """Elements times the factor of their transform."""
    factor = _factor(op)
    return b.complex(b.real(x) * factor, b.imag(x) * factor) if x.dtype.is_complex else x * factor


def _symmetric(b: Builder, op: OpView, x: Value) -> Value:
    """Scaled, without the imaginary parts of coefficients that are their own partners."""
    x = _scaled(b, op, x)
    imag = b.imag(x)
    return b.complex(b.real(x), b.select(inside(b, imag, op.attrs["n"]), imag, b.zeros_like(imag)))


def _transform(op: OpView) -> Form:
    return Form() if _factor(op) == 1 else Form({0: _scaled})


# Factorizations


def _turned(b: Builder, op: OpView, x: Value) -> Value:
    """Matrices by columns, or of columns."""
    return transposed(b, x)


def _below(b: Builder, op: OpView, x: Value) -> Value:
    """The lower triangle, with zeros above."""
    return lower(b, x)


def _factor_above(b: Builder, op: OpView, x: Value) -> Value:
    """The first rows of what a factorization leaves of a matrix, without what lies below their diagonal."""
    found = transposed(b, x)
    return upper_part(b, rows(b, found, 0, op.results[1].shape[-2]))


def _qr(op: OpView) -> Form:
    m, n = op.operands[0].shape[-2:]
    return Form({0: _turned}, {0: ((min(m, n), m), _turned), 1: ((n, m), _factor_above)})


def _solve(op: OpView) -> Form:
    n, k = op.operands[1].shape[-2:]
    return Form() if k == 1 else Form({1: _turned}, {0: ((k, n), _turned)})


def _svd(op: OpView) -> Form:
    """Of a wide matrix the rows are columns of its transposed one, whose factors change places."""
    m, n = op.operands[0].shape[-2:]
    if m <= n:
        return Form()
    found = Form({0: _turned})
    if op.name == "singular_values":
        return found
    p, q = op.results[0].shape[-1], op.results[2].shape[-2]
    return Form({0: _turned}, {0: ((p, m), _turned), 2: ((n, q), _turned)})


def _eigh(op: OpView) -> Form:
    n = op.operands[0].shape[-1]
    return Form(columns={1: ((n, n), _turned)})


_FORMS: dict[str, Callable[[OpView], Form]] = {
    "fft": _transform,
    "rfft": _transform,
    "irfft": lambda op: Form({0: _symmetric}),
    "cholesky": lambda op: Form({0: _below}),
    "solve": _solve,
    "qr": _qr,
    "eigh": _eigh,
    "eigvalsh": lambda op: Form(),
    "svd": _svd,
    "singular_values": _svd,
}

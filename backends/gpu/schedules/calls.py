"""Ops that a library computes on whole arrays: what it reads is laid out for it before, and what it wrote after.

A library's Fourier transforms are not scaled, and the inverse of real numbers spoils its operand and reads imaginary
parts that stand for nothing. For its matrices see `factorizations`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.builder import Builder, OpView, Value
from smelt.ir.ops.fft import inside, scale_factor
from smelt.ir.scopes import place

from ..kernel import GpuModule
from ..library import Array, LibraryCall
from . import factorizations
from .forms import Form, Laid
from .schedule import ScheduledKernel, Scratch, ScratchPlan, declare_step
from .written import build_written


def _form(op: OpView) -> Form | None:
    found = _FORMS.get(op.name)
    return None if found is None else found(op)


def call_of(op: OpView) -> LibraryCall | None:
    """What a library is asked for in an op's place; None for an op that none is known for, or that computes nothing."""
    if not all(v.aval.size for v in (*op.operands, *op.results)):
        return None
    form = _form(op)
    if form is None:
        return None
    outputs = [v.aval for v in op.results] if form.outputs is None else form.outputs
    operands, results = (tuple(Array.of(x) for x in avals) for avals in ([v.aval for v in op.operands], outputs))
    return LibraryCall(
        op.name, tuple(op.attrs.items()), operands, results, tuple(Array.of(x.aval) for x in form.laid),
        tuple(None if x.in_rows else x.operand for x in form.laid), form.columns, place(op.location),
    )  # fmt: skip


def build_call(module: GpuModule, op: OpView, scratch: ScratchPlan) -> list[ScheduledKernel]:
    """The steps that run an op that the device's library takes."""
    form, work = _form(op), call_of(op)
    assert form is not None and work is not None and module.library is not None

    def written(
        name: str, read: Sequence[Value | Scratch], write: Sequence[Value | Scratch],
        compute: Callable[[Builder, list[Value]], Sequence[Value]], in_rows: bool,
    ) -> list[ScheduledKernel]:  # fmt: skip
        rows_in = scratch if in_rows else None
        return build_written(module, op.mlir.parent, f"{op.name}_{name}", read, write, compute, scratch=rows_in)

    outputs: list[Value | Scratch] = (
        [*op.results] if form.outputs is None
        else [op.results[form.kept[i]] if i in form.kept else scratch.take(x) for i, x in enumerate(form.outputs)]
    )  # fmt: skip
    laid = [scratch.take(x.aval) for x in form.laid]
    before: list[ScheduledKernel] = []
    for target, x in zip(laid, form.laid):
        read = [] if x.operand is None else [op.operands[x.operand]]
        before += written("operand", read, [target], lambda b, given, x=x: [x.compute(b, *given)], x.in_rows)  # type: ignore[misc]
    after: list[ScheduledKernel] = []
    for made in form.made:
        after += written(
            "result", [outputs[i] for i in made.read], [op.results[i] for i in made.results],
            lambda b, given, made=made: made.compute(b, *given), made.in_rows,  # type: ignore[misc]
        )  # fmt: skip
    buffers = [*op.operands, *outputs, *laid]
    avals: list[Aval] = [x.aval for x in buffers]
    names = [*op.op.operand_names, *(f"out{i or ''}" for i in range(len(outputs)))]
    names += [f"laid{i}" for i in range(len(laid))]
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
    return Form() if _factor(op) == 1 else Form(laid=(Laid(op.operands[0].aval, lambda b, x: _scaled(b, op, x), 0),))


def _irfft(op: OpView) -> Form:
    return Form(laid=(Laid(op.operands[0].aval, lambda b, x: _symmetric(b, op, x), 0),))


_FORMS: dict[str, Callable[[OpView], Form]] = {
    "fft": _transform, "rfft": _transform, "irfft": _irfft, **factorizations.FORMS,
}  # fmt: skip

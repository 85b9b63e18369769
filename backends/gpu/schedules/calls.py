"""Ops that a library computes on whole arrays: what it reads is laid out for it before, and what it wrote after.

A library's Fourier transforms are not scaled, and the inverse of real numbers spoils its operand and reads imaginary
parts that stand for nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.builder import Builder, OpView, Value
from smelt.ir.ops.fft import inside, scale_factor
from smelt.ir.scopes import place

from ..kernel import GpuModule
from ..library import Array, LibraryCall
from .schedule import ScheduledKernel, Scratch, ScratchPlan, declare_step
from .written import build_written

#: What is read in an operand's place, of the builder, the op and the operand.
Lay = Callable[[Builder, OpView, Value], Value]


@dataclass(frozen=True)
class Form:
    """How a library computes an op.

    Attributes:
        before: by number of an operand, what is written for the library in its place.
        overwritten: whether the library uses the memory of these for something else.
    """

    before: Mapping[int, Lay] = field(default_factory=dict)
    overwritten: bool = False


def _form(op: OpView) -> Form | None:
    found = _FORMS.get(op.name)
    return None if found is None else found(op)


def call_of(op: OpView) -> LibraryCall | None:
    """What a library is asked for in an op's place; None for an op that none is known for, or that computes nothing."""
    form = _form(op)
    if form is None or not all(v.aval.size for v in (*op.operands, *op.results)):
        return None
    operands, results = (tuple(Array.of(v.aval) for v in values) for values in (op.operands, op.results))
    overwritten = tuple(form.before) if form.overwritten else ()
    return LibraryCall(op.name, tuple(op.attrs.items()), operands, results, overwritten, place(op.location))


def build_call(module: GpuModule, op: OpView, scratch: ScratchPlan) -> list[ScheduledKernel]:
    """The steps that run an op that the device's library takes."""
    form, work = _form(op), call_of(op)
    assert form is not None and work is not None and module.library is not None
    found: list[ScheduledKernel] = []
    buffers: list[Value | Scratch] = [*op.operands, *op.results]
    for i, lay in form.before.items():
        x = op.operands[i]
        buffers[i] = laid = scratch.take(x.aval)
        found += build_written(
            module, op.mlir.parent, f"{op.name}_operand", [x], [laid],
            lambda b, read, lay=lay: [lay(b, op, read[0])],  # type: ignore[misc]
        )  # fmt: skip
    avals: list[Aval] = [x.aval for x in buffers]
    names = [*op.op.operand_names, *("out" if i == 0 else f"out{i}" for i in range(len(op.results)))]
    workspace = module.library.workspace(work)
    flops = int(op.op.flops * max(aval.size for aval in avals))
    kernel = declare_step(module, op.name, work, avals, names, workspace, flops, op)
    if workspace:
        buffers.append(scratch.take(Aval((workspace,), dtypes.uint8)))
    return [*found, ScheduledKernel(kernel, buffers)]


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


_FORMS: dict[str, Callable[[OpView], Form]] = {
    "fft": _transform,
    "rfft": _transform,
    "irfft": lambda op: Form({0: _symmetric}, overwritten=True),
}

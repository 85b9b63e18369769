"""Calls of a package's own kernels (`smelt.ir.custom_call`), as launches of a program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from smelt.ir import mlir
from smelt.ir.aval import Aval
from smelt.ir.builder import OpView
from smelt.ir.custom_call import Call, target_called
from smelt.ir.dialect import context
from smelt.ir.ops.constants import constant_array
from smelt.ir.scalar import Scalar, compute_dtype

from .kernel import GpuModule
from .library import LibraryStep
from .manifest import Constant, KernelBuffer, OwnText, Size
from .schedules.schedule import ScheduledKernel, declare_step, source_lines, threads_for

#: That of the texts of programs, and so of kernels that become launches of them.
LANGUAGE = "msl"
#: That of steps which a library of the device does; what stands for a kernel is a `LibraryStep`.
LIBRARY_LANGUAGE = "nccl"


@dataclass(frozen=True)
class CustomKernel:
    """The kernel that a call launches.

    Attributes:
        name: what it is called where kernels are listed.
        own: its text, with the grid and the constants.
        threads: in a threadgroup, along x, y, z.
        buffers: the parameters of the kernel that the call's operands and results are bound to, in this order; those
            of results may be read, too.
        initial: what the results hold before; None: anything.
    """

    name: str
    own: OwnText
    threads: Size
    buffers: tuple[KernelBuffer, ...]
    initial: bool | int | float | complex | None = None


def build_custom(module: GpuModule, op: OpView) -> list[ScheduledKernel]:
    """The steps that run a call: its kernel, and what fills the results before it."""
    avals = [v.aval for v in (*op.operands, *op.results)]
    call = _call(op)
    kernel: CustomKernel = target_called(call.target).kernels[LANGUAGE](call)
    steps = []
    if kernel.initial is not None:
        steps += [ScheduledKernel(_fill_kernel(module, v.aval, kernel.initial), [v]) for v in op.results if v.aval.size]
    if 0 in kernel.own.grid:
        return steps
    key = "custom", call
    if key not in module.functions:
        module.functions[key] = _declare(module, kernel, avals, op)
    return [*steps, ScheduledKernel(module.functions[key], [*op.operands, *op.results])]


def _call(op: OpView) -> Call:
    attrs = op.attrs
    operands, results = (tuple([v.aval for v in values]) for values in (op.operands, op.results))
    return Call(attrs["target"], operands, results, attrs["parameters"])


def build_library_call(module: GpuModule, op: OpView) -> list[ScheduledKernel]:
    """The step of a library that a call is: on its operands and results, in this order."""
    values, call = [*op.operands, *op.results], _call(op)
    step: LibraryStep = target_called(call.target).kernels[LIBRARY_LANGUAGE](call)
    names = [f"buffer_{i}" for i in range(len(values))]
    name = declare_step(module, step.kind, step, [v.aval for v in values], names, 0, 0, op)
    return [ScheduledKernel(name, values)]


def _declare(module: GpuModule, kernel: CustomKernel, avals: Sequence[Aval], op: OpView) -> str:
    """A ``gpu.func`` without a body that stands for the kernel, and says all that a manifest says of it."""
    k, _ = module.start(kernel.name, avals, [b.name for b in kernel.buffers], op.location)
    own, read = kernel.own, len(op.operands)
    x, y, z = (-(-n // t) for n, t in zip(own.grid, kernel.threads))
    nbytes = [a.nbytes for a in avals]
    k.finish("custom", (x, y, z), kernel.threads, sum(nbytes[:read]), sum(nbytes[read:]), 0, source_lines([op]))
    ir, ctx = mlir.ir, context()
    attributes = k.function.attributes
    attributes["smelt.text"] = ir.StringAttr.get(own.text, ctx)
    attributes["smelt.function"] = ir.StringAttr.get(own.function, ctx)
    attributes["smelt.grid"] = ir.DenseI64ArrayAttr.get(list(own.grid), ctx)
    attributes["smelt.buffers"] = _rows([[b.name, b.type, b.elements, b.access, b.index] for b in kernel.buffers])
    attributes["smelt.constants"] = _rows([[c.index, c.type, *c.values] for c in own.constants])
    return k.name


def read_custom(function: Any) -> tuple[tuple[KernelBuffer, ...], OwnText] | None:
    """What a ``gpu.func`` says of a kernel with a text of its own; None for one that has a body."""
    attributes = function.attributes
    if "smelt.text" not in attributes:
        return None
    ir = mlir.ir
    buffers = tuple([KernelBuffer(*row) for row in _values(attributes["smelt.buffers"])])
    constants = tuple(
        [Constant(index, kind, tuple(values)) for index, kind, *values in _values(attributes["smelt.constants"])]
    )
    x, y, z = ir.DenseI64ArrayAttr(attributes["smelt.grid"])
    text, name = (ir.StringAttr(attributes[f"smelt.{key}"]).value for key in ("text", "function"))
    return buffers, OwnText(text, name, (x, y, z), constants)


def _rows(rows: Sequence[Sequence[int | str]]) -> Any:
    ir, ctx = mlir.ir, context()
    i64 = ir.IntegerType.get_signless(64, ctx)

    def attribute(x: int | str) -> Any:
        return ir.StringAttr.get(x, ctx) if isinstance(x, str) else ir.IntegerAttr.get(i64, x)

    return ir.ArrayAttr.get([ir.ArrayAttr.get([attribute(x) for x in row], ctx) for row in rows], ctx)


def _values(rows: Any) -> list[list[Any]]:
    return [[item.value for item in row] for row in rows]


def _fill_kernel(module: GpuModule, aval: Aval, value: bool | int | float | complex) -> str:
    """A kernel that writes a number into all elements; its name."""
    key = "fill", aval, repr(value)
    if key not in module.functions:
        unknown = mlir.ir.Location.unknown(context())
        k, (target,) = module.start("fill", [aval], ["target"], unknown)
        threads, groups = threads_for(k, aval.size)
        k.reach(aval.size)
        number = constant_array(value, aval.dtype).item()

        def element(i: Scalar) -> None:
            k.write(k.const(number, compute_dtype(aval.dtype)), target, i)

        k.grid_stride(None, aval.size, threads, groups, element)
        k.finish("fill", (groups, 1, 1), (threads, 1, 1), 0, aval.nbytes, 0, [])
        module.functions[key] = k.name
    return module.functions[key]

"""Kernels of the cpu backend: functions on memrefs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from smelt.backends.memory import Memory, MemoryKernel
from smelt.ir import dtypes, mlir
from smelt.ir.aval import Aval
from smelt.ir.dialect import context
from smelt.ir.dtypes import DType


class CpuKernel(MemoryKernel):
    """One ``func.func`` on memrefs under construction.

    bfloat16 is stored as its bits and converted by integer arithmetic: LLVM's own bfloat16 needs
    instructions or libraries that a CPU may lack.
    """

    stored_as = {dtypes.bool_: dtypes.uint8, dtypes.bfloat16: dtypes.uint16}

    def scratch(self, size: int, dtype: DType) -> Memory:
        """Thread-local memory of `size` elements, on the stack."""
        aval = Aval((size,), dtype)
        ir = mlir.ir
        saved, self.ip = self.ip, ir.InsertionPoint.at_block_begin(self.entry)
        sizes = ir.DenseI32ArrayAttr.get([0, 0], self.context)
        i64 = ir.IntegerType.get_signless(64, self.context)
        memref = self.emit(
            "memref.alloca", [], [self.buffer_type(aval)],
            operandSegmentSizes=sizes, alignment=ir.IntegerAttr.get(i64, 64),
        ).result  # fmt: skip
        self.ip = saved
        return Memory(memref, aval)


buffer_type = CpuKernel.buffer_type


class KernelModule:
    """The module of kernels under construction."""

    def __init__(self) -> None:
        with mlir.ir.Location.unknown(context()):
            self.mlir = mlir.ir.Module.create()
        self.body = self.mlir.body
        self.globals: dict[Any, str] = {}
        self.declared: set[str] = set()

    def function(
        self, name: str, types: Sequence[Any], location: Any, internal: bool = True, noalias: Sequence[int] = (),
        results: Sequence[Any] = (),
    ) -> Any:  # fmt: skip
        """An empty ``func.func``; its entry block."""
        ir, ctx = mlir.ir, context()
        attrs: dict[str, Any] = {
            "sym_name": ir.StringAttr.get(name, ctx),
            "function_type": ir.TypeAttr.get(ir.FunctionType.get(list(types), list(results), ctx), ctx),
        }
        if internal:
            attrs["sym_visibility"] = ir.StringAttr.get("private", ctx)
            attrs["llvm.linkage"] = ir.Attribute.parse("#llvm.linkage<internal>", ctx)
        if noalias:
            unit = ir.DictAttr.get({"llvm.noalias": ir.UnitAttr.get(ctx)}, ctx)
            none = ir.DictAttr.get({}, ctx)
            attrs["arg_attrs"] = ir.ArrayAttr.get([unit if i in noalias else none for i in range(len(types))], ctx)
        operation = ir.Operation.create(
            "func.func", attributes=attrs, regions=1, loc=location, ip=ir.InsertionPoint(self.body)
        )
        return ir.Block.create_at_start(operation.regions[0], list(types), [location] * len(types))

    def declare(self, name: str, types: Sequence[Any], results: Sequence[Any] = ()) -> None:
        """An external function."""
        ir, ctx = mlir.ir, context()
        ir.Operation.create(
            "func.func",
            attributes={
                "sym_name": ir.StringAttr.get(name, ctx),
                "function_type": ir.TypeAttr.get(ir.FunctionType.get(list(types), list(results), ctx), ctx),
                "sym_visibility": ir.StringAttr.get("private", ctx),
            },
            regions=1,
            loc=ir.Location.unknown(ctx),
            ip=ir.InsertionPoint.at_block_begin(self.body),
        )

"""Matrices of simdgroups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from smelt.ir import dtypes, mlir
from smelt.ir.dtypes import DType
from smelt.ir.scalar import INDEX, Scalar

from ...kernel import GpuKernel

#: Rows and columns of a simdgroup matrix, and its elements that a lane has.
MATRIX, OWN = 8, 2
#: Matrices of rows that a simdgroup has, or a multiple: tensor cores take two at once.
STRIPS = 2


class Matrices:
    """Emits what is done with matrices of a simdgroup."""

    def __init__(self, k: GpuKernel):
        self.k = k

    def kind(self, element: Any, use: str) -> Any:
        return mlir.ir.Type.parse(f'!gpu.mma_matrix<{MATRIX}x{MATRIX}x{element}, "{use}">', self.k.context)

    def load(self, memref: Any, at: Scalar, use: str, pitch: int, transposed: bool) -> Any:
        k = self.k
        attrs = {"leadDimension": mlir.ir.IntegerAttr.get(mlir.ir.IndexType.get(k.context), pitch)}
        if transposed:
            attrs["transpose"] = mlir.ir.UnitAttr.get(k.context)
        kind = self.kind(mlir.ir.MemRefType(memref.type).element_type, use)
        return k.emit("gpu.subgroup_mma_load_matrix", [memref, at], [kind], **attrs).result

    def keep(self, matrix: Any, memref: Any, at: Scalar, pitch: int) -> None:
        lead = mlir.ir.IntegerAttr.get(mlir.ir.IndexType.get(self.k.context), pitch)
        self.k.emit("gpu.subgroup_mma_store_matrix", [matrix, memref, at], [], leadDimension=lead)

    def filled(self, x: Scalar, use: str, dtype: DType) -> Any:
        kind = self.kind("f32" if dtype.size == 4 else "f16", use)
        return self.k.emit("gpu.subgroup_mma_constant_matrix", [x], [kind]).result

    def element(self, matrix: Any, i: int) -> Scalar:
        k = self.k
        found = k.emit("gpu.subgroup_mma_extract_thread_local", [matrix, k.const(i, INDEX)], [k.type(dtypes.float32)])
        return Scalar(k, found.result, dtypes.float32)

    def made(self, elements: Sequence[Scalar], use: str, dtype: DType) -> Any:
        """A matrix of `dtype` of which each lane has these elements."""
        k = self.k
        if dtype.size == 4:
            matrix = self.filled(k.const(0.0, dtypes.float32), use, dtype)
        else:
            matrix = self.filled(k.emit(
                "arith.constant", [], [mlir.ir.F16Type.get(k.context)],
                value=mlir.ir.FloatAttr.get(mlir.ir.F16Type.get(k.context), 0.0, loc=k.location),
            ).result, use, dtype)  # fmt: skip
        for i, x in enumerate(elements):
            own = x if dtype.size == 4 else k.to_storage(x, dtype)
            if dtype is dtypes.bfloat16:
                own = k.emit("builtin.unrealized_conversion_cast", [own], [mlir.ir.F16Type.get(k.context)]).result
            operands = [own, matrix, k.const(i, INDEX)]
            matrix = k.emit("gpu.subgroup_mma_insert_thread_local", operands, [matrix.type]).result
        return matrix

    def both(self, how: str, x: Any, y: Any) -> Any:
        kind = self.k.attr(f"#gpu<mma_element_wise {how}>")
        return self.k.emit("gpu.subgroup_mma_elementwise", [x, y], [x.type], opType=kind).result

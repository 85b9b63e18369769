"""Matrices of simdgroups, and how lanes tell each other what they know of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from smelt.backends.memory import Memory
from smelt.ir import dtypes, mlir
from smelt.ir.dtypes import DType
from smelt.ir.scalar import INDEX, Scalar

from ...kernel import GpuKernel
from ..parts import times
from .positions import summed

#: Rows and columns of a simdgroup matrix, and its elements that a lane has.
MATRIX, OWN = 8, 2
#: Matrices of rows that a simdgroup has: tensor cores take two at once.
STRIPS = 2
#: Elements of three matrices for each of the strips: what lanes of a simdgroup tell each other.
EXCHANGED = 3 * STRIPS * MATRIX * MATRIX


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


class Exchange:
    """What lanes of a simdgroup tell each other, as matrices whose rows have equal elements.

    Args:
        memory: of the threadgroup. first: where the simdgroup's own part of it begins, `EXCHANGED` elements or more.
    """

    def __init__(self, matrices: Matrices, memory: Memory, first: Scalar):
        self.k, self.matrices, self.memory, self.first = matrices.k, matrices, memory, first
        with self.k.named("own_place"):  # each lane writes half a row of a matrix
            self.place = summed(self.k, first, times(self.k.lane(), MATRIX // 2))

    def tell(self, which: int, four: Sequence[Scalar]) -> None:
        """Half a row of each lane into a pair of matrices in the simdgroup's own memory."""
        k = self.k
        vector = k.empty_vector(dtypes.float32, len(four))
        for i, x in enumerate(four):
            vector = k.insert(x, vector, k.const(i, INDEX), dtypes.float32)
        k.store_vector(vector, self.memory, summed(k, self.place, which * STRIPS * MATRIX * MATRIX))

    def told(self, which: int) -> list[Any]:
        """A pair of matrices from there."""
        first = which * STRIPS * MATRIX * MATRIX
        places = [summed(self.k, self.first, first + i * MATRIX * MATRIX) for i in range(STRIPS)]
        return [self.matrices.load(self.memory.memref, at, "COp", MATRIX, False) for at in places]

    def of_rows(self, matrices: Sequence[Any], combine: Callable[[Scalar, Scalar], Scalar]) -> Scalar:
        """What `combine` makes of the row that a lane has half of, of a pair of matrices."""
        k = self.k
        for i, matrix in enumerate(matrices):
            self.matrices.keep(matrix, self.memory.memref, summed(k, self.first, i * MATRIX * MATRIX), MATRIX)
        k.simdgroup_barrier()
        with k.named("row_values"):
            vector = k.load_vector(self.memory, self.place, MATRIX // 2)
        found = [k.extract(vector, k.const(i, INDEX), dtypes.float32) for i in range(MATRIX // 2)]
        while len(found) > 1:
            found = [combine(x, y) for x, y in zip(found[::2], found[1::2])]
        return combine(found[0], k.shuffle(found[0], 1))

"""Kernels whose scalars may stand for vectors: the same rules of ops then compute all lanes at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from smelt.backends.memory import Memory, MemoryKernel
from smelt.ir import mlir
from smelt.ir.builder import Function
from smelt.ir.dtypes import DType
from smelt.ir.scalar import INDEX, Scalar


class VectorKernel(MemoryKernel):
    """A kernel in parts of which scalars are vectors. Complex numbers have none."""

    def __init__(self, module: Any, entry: Any, location: Any, body: Function | None):
        super().__init__(module, entry, location, body)
        self._lanes = 0
        self._by_lanes: dict[int, tuple[dict[DType, Any], dict[Any, Scalar]]] = {
            0: (self._types, self._constant_cache)
        }

    @contextmanager
    def vectors(self, lanes: int) -> Iterator[None]:
        """Let scalars stand for vectors of so many `lanes` for a while, all but indices; 0: for numbers."""
        saved = self._lanes, self._types, self._constant_cache
        self._lanes = lanes
        self._types, self._constant_cache = self._by_lanes.setdefault(lanes, ({}, {}))
        try:
            yield
        finally:
            self._lanes, self._types, self._constant_cache = saved

    def type(self, dtype: DType) -> Any:
        found = self._types.get(dtype)
        if found is None and self._lanes and dtype is not INDEX:
            with self.vectors(0):
                element = super().type(dtype)
            found = self._types[dtype] = mlir.ir.VectorType.get([self._lanes], element, loc=self.location)
        return found or super().type(dtype)

    def const(self, value: Any, dtype: DType) -> Scalar:
        if not self._lanes or dtype is INDEX:
            return super().const(value, dtype)
        key = (dtype, type(value), repr(value))
        found = self._constant_cache.get(key)
        if found is None:
            with self.vectors(0):
                element = super().const(value, dtype)
            splat = mlir.ir.DenseElementsAttr.get_splat(self.type(dtype), element.mlir.owner.attributes["value"])
            saved, self.ip = self.ip, mlir.ir.InsertionPoint.at_block_begin(self.entry)
            found = self._constant_cache[key] = self.op("arith.constant", (), dtype, value=splat)
            self.ip = saved
        return found

    def spread(self, x: Scalar) -> Scalar:
        """A scalar in all lanes."""
        return Scalar(self, self.emit("vector.broadcast", [x], [self.type(x.dtype)]).result, x.dtype)

    def load_vector(self, memory: Memory, offset: Scalar) -> Scalar:
        """As many neighbours from `offset` on as there are lanes. They are stored as they are held."""
        dtype = memory.aval.dtype
        return Scalar(self, self.emit("vector.load", [memory.memref, offset], [self.type(dtype)]).result, dtype)

    def store_vector(self, x: Scalar, memory: Memory, offset: Scalar) -> None:
        """Neighbours from `offset` on."""
        self.emit("vector.store", [x, memory.memref, offset], [])

    def add_lanes(self, x: Scalar) -> Scalar:
        """The sum of a vector's elements: of halves, of their halves, and so on."""
        lanes = x.mlir.type.shape[0]
        while lanes > 1:
            lanes //= 2
            with self.vectors(lanes):
                x = self.add(*(self._shuffle(x, x, range(first, first + lanes)) for first in (0, lanes)))
        only = self.emit("vector.extract", [x], [self.type(x.dtype)], static_position=self._i64s([0]))
        return Scalar(self, only.result, x.dtype)

    def transposed(self, lines: Sequence[Scalar]) -> list[Scalar]:
        """The columns of a square whose lines are vectors. Squares in it change places, then squares in those."""
        found, side = list(lines), len(lines) // 2
        while side:
            one = [p if not p & side else len(found) + p - side for p in range(len(found))]
            other = [p + side if not p & side else len(found) + p for p in range(len(found))]
            for i in range(len(found)):
                if not i & side:
                    x, y = found[i], found[i + side]
                    found[i], found[i + side] = self._shuffle(x, y, one), self._shuffle(x, y, other)
            side //= 2
        return found

    def shifted(self, x: Scalar, before: Scalar, lanes: int) -> Scalar:
        """The elements of `x` so many lanes later; the first are the last ones of `before`."""
        count = x.mlir.type.shape[0]
        return self._shuffle(before, x, range(count - lanes, 2 * count - lanes))

    def last_lane(self, x: Scalar) -> Scalar:
        """A vector's last element in all lanes."""
        count = x.mlir.type.shape[0]
        return self._shuffle(x, x, [count - 1] * count)

    def _shuffle(self, x: Scalar, y: Scalar, lanes: Iterable[int]) -> Scalar:
        """Some elements of two vectors, numbered through."""
        mask = self._i64s(lanes)
        return Scalar(self, self.emit("vector.shuffle", [x, y], [self.type(x.dtype)], mask=mask).result, x.dtype)

    def _i64s(self, numbers: Iterable[int]) -> Any:
        return mlir.ir.DenseI64ArrayAttr.get(list(numbers), self.context)

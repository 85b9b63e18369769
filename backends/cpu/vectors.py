"""Kernels whose scalars may stand for vectors: the same rules of ops then compute all lanes at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from smelt.backends.memory import Memory, MemoryKernel
from smelt.ir import dtypes, mlir
from smelt.ir.builder import Function, Value
from smelt.ir.dtypes import DType
from smelt.ir.errors import KernelError
from smelt.ir.index import Atom, Coordinates, Index, linearize, names_of
from smelt.ir.scalar import INDEX, Scalar
from smelt.ir.scalar_emitter import made_from

#: Neighbours that lanes are chosen from, at most.
WIDEST_LOAD = 64
#: Elements of the vectors in which they are loaded.
LOADED = 16
#: Bytes of vectors that every processor interleaves by one instruction.
INTERLEAVED_BYTES = 16
#: As what elements are moved, by their bytes.
_BITS = {1: dtypes.uint8, 2: dtypes.uint16, 4: dtypes.uint32, 8: dtypes.uint64}


class Lane(NamedTuple):
    """Positions of a loop variable: how far each lane is from where its loop stands, at multiples of a number."""

    steps: np.ndarray
    multiple: int


class VectorKernel(MemoryKernel):
    """A kernel in which scalars may stand for vectors for a while. There are no vectors of complex numbers."""

    def __init__(self, module: Any, entry: Any, location: Any, body: Function | None):
        super().__init__(module, entry, location, body)
        self._lanes = 0
        self._along: Mapping[str, Lane] | None = None
        self._by_lanes: dict[int, tuple[dict[DType, Any], dict[Any, Scalar]]] = {
            0: (self._types, self._constant_cache)
        }

    @contextmanager
    def vectors(self, lanes: int) -> Iterator[None]:
        """Let scalars, except indices, stand for vectors of `lanes` lanes for a while; 0: for single numbers."""
        saved = self._lanes, self._types, self._constant_cache, self._along
        self._lanes, self._along = lanes, None
        self._types, self._constant_cache = self._by_lanes.setdefault(lanes, ({}, {}))
        try:
            yield
        finally:
            self._lanes, self._types, self._constant_cache, self._along = saved

    @contextmanager
    def along(self, lanes: Mapping[str, Lane]) -> Iterator[None]:
        """Vectors of what arrays hold at several positions of loop variables.

        Raises:
            KernelError: while something is read whose address does not tell how far apart the lanes are.
        """
        with self.vectors(len(next(iter(lanes.values())).steps)):
            self._along = lanes
            yield

    @property
    def reads_lanes(self) -> bool:
        """Whether what is read is a vector, of several positions."""
        return self._along is not None

    def type(self, dtype: DType) -> Any:
        found = self._types.get(dtype)
        if found is None and self._lanes and dtype is not INDEX:
            with self.vectors(0):
                element = super().type(dtype)
            found = self._types[dtype] = self.shaped(element)
        return found or super().type(dtype)

    def shaped(self, element: Any) -> Any:
        if not self._lanes or isinstance(element, mlir.ir.VectorType):
            return element
        return mlir.ir.VectorType.get([self._lanes], element, loc=self.location)

    def value(self, v: Value, index: Coordinates) -> Scalar:
        if self._along is None or not names_of(index).isdisjoint(self._along):
            return super().value(v, index)
        found = self.lookup(("in all lanes", v, index))  # the same element
        if found is None:
            with self.vectors(0):
                x = super().value(v, index)
            found = self.scopes[-1]["in all lanes", v, index] = self.spread(x)
        return found

    def load(self, v: Value, index: Coordinates) -> Scalar:
        if self._along is None:
            return super().load(v, index)
        offset, memory = linearize(index, v.shape), self.memory[v]
        steps = self.steps_of(offset)
        if not steps.any():
            with self.vectors(0):
                x = super().load(v, index)
            return self.spread(x)
        first, count = int(steps.min()), int(np.ptp(steps)) + 1
        if count > WIDEST_LOAD:
            raise KernelError(f"lanes {count} elements apart")
        if count == self._lanes and (np.diff(steps) == 1).all():
            kind = self.shaped(self.storage(v.dtype))
            return self.from_storage(self.load_stored(memory, self.index(offset + first), kind), v.dtype)
        return self.from_storage(self._chosen(memory, self.index(offset + first), steps - first, count), v.dtype)

    def _chosen(self, memory: Memory, offset: Scalar, steps: np.ndarray, count: int) -> Any:
        """Some of `count` neighbours, a lane each: whole vectors of these, the last of which ends where they do."""
        size = min(LOADED, 1 << (count.bit_length() - 1))
        kind = mlir.ir.VectorType.get([size], self.storage(memory.aval.dtype), loc=self.location)
        starts = sorted({min(at, count - size) for at in range(0, count, size)})
        parts = [self.load_stored(memory, offset + at, kind) for at in starts]
        where = np.searchsorted(starts, steps, side="right") - 1
        places, found = steps - np.array(starts)[where], None
        for i in range(0, len(parts), 2):
            pair = parts[i], parts[min(i + 1, len(parts) - 1)]
            both = self.shuffled(*pair, np.where(where == i + 1, size + places, places).tolist())
            mine = np.where(where >= i, self._lanes, 0) + np.arange(self._lanes)
            found = both if found is None else self.shuffled(found, both, mine.tolist())
        return found

    def chosen(self, memory: Memory, offset: Scalar, steps: np.ndarray) -> Scalar:
        """A vector of the elements `steps` after an offset, from memory in which they are stored as they are held."""
        dtype, count = memory.aval.dtype, int(steps.max()) + 1
        if count == 1:
            with self.vectors(0):
                x = self.read(memory, offset)
            return self.spread(x)
        return Scalar(self, self._chosen(memory, offset, steps, count), dtype)

    def shuffled(self, x: Any, y: Any, lanes: Sequence[int]) -> Any:
        """Some elements of two vectors as they are stored, numbered consecutively."""
        kind = mlir.ir.VectorType.get([len(lanes)], x.type.element_type, loc=self.location)
        return self.emit("vector.shuffle", [x, y], [kind], mask=self._i64s(lanes)).result

    def store_stored(self, raw: Any, memory: Memory, offset: Scalar, past: bool = False) -> None:
        """A vector as it is stored, from `offset` on; `past` the caches, where a line of memory begins."""
        attrs = {}
        if past:
            i64 = mlir.ir.IntegerType.get_signless(64, self.context)
            size = memory.aval.dtype.size * raw.type.shape[0]
            attrs = {
                "nontemporal": mlir.ir.BoolAttr.get(True, self.context),
                "alignment": mlir.ir.IntegerAttr.get(i64, size),
            }
        self.emit("vector.store", [raw, memory.memref, offset], [], **attrs)

    def load_stored(self, memory: Memory, offset: Scalar, kind: Any) -> Any:
        """Neighbours as they are stored, a vector of some type."""
        return self.emit("vector.load", [memory.memref, offset], [kind]).result

    def steps_of(self, index: Index) -> np.ndarray:
        """How far each lane's index is from the first lane's."""
        total = np.zeros(self._lanes, np.int64)
        for atom, coefficient in index.terms:
            if atom.kind == "var":
                lane = self._lane(atom)
                total += 0 if lane is None else coefficient * lane.steps
            elif atom.kind in ("div", "mod") and not names_of([atom.args[0]]).isdisjoint(self._along or ()):
                inner, n = atom.args
                total += coefficient * self._parts(inner, n, np.floor_divide if atom.kind == "div" else np.mod)
        return total

    def _parts(self, inner: Index, n: int, divide: Callable[[Any, int], Any]) -> np.ndarray:
        """The same of a quotient or a remainder: known where the loops stand at multiples of `n`."""
        total = np.full(self._lanes, inner.const, np.int64)
        for atom, coefficient in inner.terms:
            lane = self._lane(atom) if atom.kind == "var" else None
            if lane is None or coefficient * lane.multiple % n:
                raise KernelError(f"lanes of {inner} are divided by {n}")
            total += coefficient * lane.steps
        return divide(total, n) - divide(inner.const, n)

    def _lane(self, atom: Atom) -> Lane | None:
        return (self._along or {}).get(atom.args[0])

    def index(self, index: Index, dtype: DType = INDEX) -> Scalar:
        if dtype is INDEX or self._along is None:
            return super().index(index, dtype)
        steps = self.steps_of(index)
        if not dtype.is_integer and steps.any():
            raise KernelError(f"{index} is no integer")
        with self.vectors(0):
            first = super().index(index, dtype)
        return self.spread(first) + self._numbers(steps, first.dtype) if steps.any() else self.spread(first)

    def _numbers(self, values: np.ndarray, dtype: DType) -> Scalar:
        """A constant of integers, one a lane."""
        held = values.astype(dtype.numpy)
        dense = mlir.ir.DenseElementsAttr.get(held, type=self.type(dtype), context=self.context)
        return self.op("arith.constant", (), dtype, value=dense)

    def each_lane(self, x: Scalar) -> list[Scalar]:
        """The elements of a vector; the only one of a vector of equal ones."""
        with self.vectors(0):
            same = made_from(x.mlir, "vector.broadcast", self.type(x.dtype))
            if same is not None:
                return [Scalar(self, same, x.dtype)]
            return [self._extracted(x, lane) for lane in range(x.mlir.type.shape[0])]

    def _extracted(self, x: Scalar, lane: int) -> Scalar:
        found = self.emit("vector.extract", [x], [self.type(x.dtype)], static_position=self._i64s([lane]))
        return Scalar(self, found.result, x.dtype)

    def the_same(self, x: Scalar) -> Scalar:
        """The number that is in all lanes."""
        with self.vectors(0):
            if x.known is not None:
                return self.const(x.known, x.dtype)
            same = made_from(x.mlir, "vector.broadcast", self.type(x.dtype))
        if same is None:
            raise KernelError("an index for each lane")
        return Scalar(self, same, x.dtype)

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
            found.known = found.most = element.known
            self.ip = saved
        return found

    def spread(self, x: Scalar) -> Scalar:
        """A scalar in all lanes."""
        if x.known is not None:
            return self.const(x.known, x.dtype)
        found = Scalar(self, self.emit("vector.broadcast", [x], [self.type(x.dtype)]).result, x.dtype)
        found.most = x.most
        return found

    def load_vector(self, memory: Memory, offset: Scalar) -> Scalar:
        """As many neighbours from `offset` on as there are lanes. They are stored as they are held."""
        dtype = memory.aval.dtype
        return Scalar(self, self.emit("vector.load", [memory.memref, offset], [self.type(dtype)]).result, dtype)

    def load_some(self, memory: Memory, offset: Scalar, count: Scalar) -> Scalar:
        """The same of the first `count` lanes; the others read nothing, and are 0."""
        dtype = memory.aval.dtype
        mask = self.emit("vector.create_mask", [count], [self.type(dtypes.bool_)]).result
        nothing = self.const(0, dtype)
        found = self.emit("vector.maskedload", [memory.memref, offset, mask, nothing], [self.type(dtype)])
        return Scalar(self, found.result, dtype)

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
        return self._extracted(x, 0)

    def load_bits(self, memory: Memory, offset: Scalar) -> Scalar:
        """As many neighbours from `offset` on as there are lanes, to be moved: the bits that are stored."""
        raw = self.load_stored(memory, offset, self.shaped(self.storage(memory.aval.dtype)))
        return self._same_bits(raw, self.type(_BITS[memory.aval.dtype.size]), _BITS[memory.aval.dtype.size])

    def bits(self, raw: Any, dtype: DType) -> Scalar:
        """The bits of some vector as one of another dtype, and of as many lanes as there are."""
        return Scalar(self, self.emit("vector.bitcast", [raw], [self.type(dtype)]).result, dtype)

    def store_bits(self, x: Scalar, memory: Memory, offset: Scalar) -> None:
        """Neighbours from `offset` on, from `load_bits`."""
        self.store_vector(self._same_bits(x, self.shaped(self.storage(memory.aval.dtype)), x.dtype), memory, offset)

    def _same_bits(self, raw: Any, kind: Any, dtype: DType) -> Scalar:
        value = raw.mlir if isinstance(raw, Scalar) else raw
        return Scalar(self, value if value.type == kind else self.emit("arith.bitcast", [raw], [kind]).result, dtype)

    def transposed(self, lines: Sequence[Scalar]) -> list[Scalar]:
        """The columns of a square whose lines are vectors; of several squares side by side, each by itself."""
        if len(lines) * lines[0].dtype.size == INTERLEAVED_BYTES:
            return self._interleaved(lines)
        return self._swapped(lines)

    def divided(self, x: Scalar, lanes: int) -> list[Scalar]:
        """Vectors of so many neighbours in a vector each."""
        count = x.mlir.type.shape[0]
        if count == lanes:
            return [x]
        with self.vectors(lanes):
            return [self._shuffle(x, x, range(first, first + lanes)) for first in range(0, count, lanes)]

    def _swapped(self, lines: Sequence[Scalar]) -> list[Scalar]:
        """Squares in a square change places, then squares in those."""
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

    def _interleaved(self, lines: Sequence[Scalar]) -> list[Scalar]:
        """Elements of two lines in turn: a line of the first half and one of the second, as often as it takes."""
        found, side, count = list(lines), len(lines), lines[0].mlir.type.shape[0]
        half, places = side // 2, range(count)
        parts = [[p - p % side + first + p % side // 2 + p % 2 * count for p in places] for first in (0, half)]
        for _ in range(half.bit_length()):
            found = [self._shuffle(x, y, part) for x, y in zip(found[:half], found[half:]) for part in parts]
        return found

    def dealt(self, vectors: Sequence[Scalar]) -> list[Scalar]:
        """The elements of vectors that follow each other, one to each vector in turn; there are a power of two."""
        if len(vectors) == 1:
            return list(vectors)
        count = vectors[0].mlir.type.shape[0]
        pairs = list(zip(vectors[::2], vectors[1::2]))
        halves = [self.dealt([self._shuffle(x, y, range(i, 2 * count, 2)) for x, y in pairs]) for i in (0, 1)]
        return [x for both in zip(*halves) for x in both]

    def shifted(self, x: Scalar, before: Scalar, lanes: int) -> Scalar:
        """The elements of `x` shifted by `lanes` lanes; the first lanes are the last ones of `before`."""
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

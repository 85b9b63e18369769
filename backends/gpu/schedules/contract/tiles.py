"""Tiles of a contraction's operands in threadgroup memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

from smelt.backends.contraction import VECTOR, VECTOR_BYTES, Operand, is_vector
from smelt.backends.lowering import Fused
from smelt.backends.memory import Memory
from smelt.backends.plan import always_inside
from smelt.ir import mlir
from smelt.ir.builder import Value
from smelt.ir.dtypes import DType
from smelt.ir.index import Coordinates, linearize
from smelt.ir.kinds import holds
from smelt.ir.scalar import INDEX, Scalar

from ...kernel import GpuKernel, depends_on
from ..parts import split, times
from .positions import summed, within


class Tile:
    """Part of one operand: so many positions of its free loop by so many of `depth`, zeros outside.

    A tile lies in lines along the loop in which the operand is contiguous. Threads read vectors where
    these are aligned, else single elements at any index; either way neighbours read neighbours.

    Attributes:
        vectors: how many vectors each thread brings; 0 if it brings single elements.
        width: elements of a vector.
        elements: how many elements of threadgroup memory the tile takes.
    """

    def __init__(
        self, k: GpuKernel, name: str, operand: Operand, free: tuple[Fused, int], depth: tuple[Fused, int],
        threads: int, lines: str, padding: int, held: DType,
    ):  # fmt: skip
        self.k, self.name, self.operand, self.threads = k, name, operand, threads
        self.free, self.size = free
        self.depth, self.depth_size = depth
        closer = operand.lies_along(self.depth, self.free)
        self.along_depth = lines == "depth" if closer is None else closer
        sizes = self.size, self.depth_size
        self.lines, self.length = sizes if self.along_depth else reversed(sizes)
        self.pitch = self.length + padding
        self.elements = self.pitch * self.lines
        self.width = self._width(held, padding)
        self.held = held
        self.vectors = self.size * self.depth_size // (threads * self.width) if self.width > 1 else 0
        width = self.width
        place = f"{name}_place" if width == 1 else ""
        self.line, self.position = split(k, k.thread(), self.length // width, f"{name}_line", place)
        if width > 1:
            with k.named(f"{name}_place"):
                self.position = self.position * width
        self.step = threads * width // self.length
        self.pieces = max(1, self.length // (threads * width))  #: so often all threads go along a line

    def _width(self, held: DType, padding: int) -> int:
        """How many neighbours threads read at once: 16 bytes, if nothing is to be converted."""
        if self.operand.dtype.kind != "f":
            return 1
        source = self.operand.source
        widest = VECTOR_BYTES // held.size if source is None or held is source[0].dtype else VECTOR
        for width in dict.fromkeys((widest, VECTOR)):
            whole = self.size * self.depth_size % (self.threads * width) == 0 and padding % width == 0
            if whole and self.length % width == 0 and self._are_vectors(width):
                return width
        return 1

    def _are_vectors(self, width: int) -> bool:
        """Whether so many neighbours are read together, or what they are made of."""
        if self.operand.source is not None:
            return self.operand.along(self.along, width)
        return bool(self.operand.loads) and is_vector_load(*self.operand.largest, self.along, width)

    @property
    def along(self) -> Fused:
        """The loop along which lines lie."""
        return self.depth if self.along_depth else self.free

    def place(self, memory: Memory, base: int = 0) -> None:
        """Where in threadgroup memory the tile lies."""
        self.memory, self.base = memory, base

    def at(self, offset: Scalar, half: Scalar | None) -> Scalar:
        """An offset in the tile as one in memory."""
        return summed(self.k, offset, self.base, half)

    def offset(self, free: Scalar, depth: Scalar, beyond: tuple[int, int] = (0, 0)) -> Scalar:
        """The offset in the tile of one element: so far `beyond` two positions, along both loops."""
        line, position = (free, depth) if self.along_depth else (depth, free)
        lines, positions = beyond if self.along_depth else reversed(beyond)
        return summed(self.k, times(line, self.pitch), position, lines * self.pitch + positions)

    # From device memory

    def fetch(self, first: Scalar, depth_first: Scalar) -> list[Any]:
        """The thread's vectors of the tile that begins there, in registers."""
        return [self._vector(i, first, depth_first) for i in range(self.vectors)]

    def zeros(self) -> Any:
        """A vector of what lies outside."""
        return self.k.empty_vector(self.memory.aval.dtype, self.width)

    def put(self, vectors: Sequence[Any], half: Scalar | None) -> None:
        """Fetched vectors to threadgroup memory."""
        for i, vector in enumerate(vectors):
            line, position = self._piece(i)
            offset = summed(self.k, times(line, self.pitch), position)
            self.k.store_vector(vector, self.memory, self.at(offset, half))

    @property
    def is_plain(self) -> bool:
        """Whether threadgroup memory gets whole vectors as they are, wherever the tile begins."""
        operand = self.operand
        return (
            self.vectors > 0
            and operand.source is not None
            and operand.source[0].dtype is self.held
            and not operand.access.guards
            and self.free.extent % self.size == 0
            and self.depth.extent % self.depth_size == 0
        )

    def bring(self, first: Scalar, depth_first: Scalar, half: Scalar | None) -> None:
        """Each vector to threadgroup memory as soon as it is there."""
        for i in range(self.vectors):
            line, position = self._piece(i)
            offset = self.at(summed(self.k, times(line, self.pitch), position), half)
            self.k.store_vector(self._vector(i, first, depth_first), self.memory, offset)

    def copy(self, first: Scalar, depth_first: Scalar, half: Scalar | None) -> None:
        """Single elements to threadgroup memory."""
        k, operand = self.k, self.operand

        def element(n: Scalar | None) -> None:
            with k.named(f"{self.name}_line"):
                line, position = (self.line, self.position) if n is None else self._piece(n)
            free, depth, inside = self._position(line, position, first, depth_first)

            def read() -> Scalar:
                with k.at_position(self.free, free), k.at_position(self.depth, depth):
                    return operand.read(k)

            with k.named(f"{self.name}_value"):
                x = read() if inside is None else k.if_(
                    inside, read, lambda: k.const(0, operand.dtype), operand.dtype
                )  # fmt: skip
            k.write(x, self.memory, self.at(summed(k, times(line, self.pitch), position), half))

        count = self.size * self.depth_size // self.threads
        if count > 1:
            k.unrolled(count, element)
        else:
            element(None)

    def _piece(self, i: int | Scalar) -> tuple[Scalar, Scalar]:
        """The line and the position of the thread's i-th vector or element."""
        k = self.k
        if self.pieces == 1:
            return summed(k, self.line, i * self.step if isinstance(i, int) else times(i, self.step)), self.position
        at = k.const(i, INDEX) if isinstance(i, int) else i
        line, piece = split(k, at, self.pieces, "", "")
        return line, summed(k, self.position, times(piece, self.threads * self.width))

    def _position(
        self, line: Scalar, position: Scalar, first: Scalar, depth_first: Scalar
    ) -> tuple[Scalar, Scalar, Scalar | None]:
        """A position in the loops for one in the tile, and whether it is inside of them."""
        free, depth = (line, position) if self.along_depth else (position, line)
        with self.k.named(f"{self.name}_at"):
            free = summed(self.k, first, free)
        with self.k.named(f"{self.name}_depth"):
            depth = summed(self.k, depth_first, depth)
        inside = within(self.k, [
            (free, self.free.extent, self.free.extent % self.size != 0),
            (depth, self.depth.extent, self.depth.extent % self.depth_size != 0),
        ])  # fmt: skip
        return free, depth, inside

    def _vector(self, i: int, first: Scalar, depth_first: Scalar) -> Any:
        k, held, operand = self.k, self.memory.aval.dtype, self.operand
        values = f"{self.name}_values"
        free, depth, inside = self._position(*self._piece(i), first, depth_first)

        def read() -> list[Any]:
            if operand.source is None:
                return self._made(free, depth, held)
            with k.at_position(self.free, free), k.at_position(self.depth, depth):
                return [neighbours(k, operand, self.width, held, values)]

        if inside is None:
            return read()[0]
        with k.named(values):
            return either(k, inside, read, [self.zeros()])[0]

    def _made(self, free: Scalar, depth: Scalar, held: DType) -> list[Any]:
        """A vector of an operand that is computed, from such positions on."""
        k, operand = self.k, self.operand
        (other, at), first = ((self.free, free), depth) if self.along_depth else ((self.depth, depth), free)
        with k.at_position(other, at):
            return neighbours_made(k, operand.loads, self.along, first, self.width, lambda _: [operand.read(k)], [held])


def is_vector_load(value: Value, place: Coordinates, loop: Fused, width: int) -> bool:
    """Whether an argument's elements at `width` neighbours along a loop are one access, which may always be made."""
    return always_inside(value, place) and is_vector(value, linearize(place, value.shape), loop, width)


def neighbours_made(
    k: GpuKernel, loads: Sequence[tuple[Value, Coordinates]], loop: Fused, first: Scalar, width: int,
    made: Callable[[Scalar], Sequence[Scalar]], dtypes: Sequence[DType],
) -> list[Any]:
    """Vectors of what ``made(j)`` computes at each of first … first + width - 1 of a loop.

    Args:
        loads: what it reads of arguments, which are read as vectors where they lie so.
        dtypes: of the vectors.
    """  # fmt: skip
    for v, at in loads:
        if always_inside(v, at) and not depends_on(at, loop):
            k.value(v, at)
    with k.at_position(loop, first):
        loaded = [
            (v, at, k.load_vector(k.memory[v], k.index(linearize(at, v.shape)), width))
            for v, at in loads
            if is_vector_load(v, at, loop, width)
        ]

    def element(j: Scalar, *vectors: Any) -> list[Any]:
        with k.at_position(loop, first + j):
            for v, at, vector in loaded:
                k.scopes[-1][v, at] = k.extract(vector, j, v.dtype)
            return [k.insert(x, y, j, dtype) for x, y, dtype in zip(made(j), vectors, dtypes)]

    empty = [k.empty_vector(dtype, width) for dtype in dtypes]
    return k.counted(width, element, empty, unroll=True, carried="result")


def neighbours(k: GpuKernel, operand: Operand, width: int, held: DType, name: str = "") -> Any:
    """Neighbours of an operand, as a vector of `held`, from the loops' position on; zeros where they are not read.

    Args:
        name: of the vector in the text; by default it is called after the array.
    """
    assert operand.source is not None
    value, address = operand.source

    def read() -> list[Any]:
        offset = k.index(address)
        with k.named(name) if name else nullcontext():
            vector = k.load_vector(k.memory[value], offset, width)
        if held is not value.dtype:
            with k.named(name or "values"):
                vector = k.emit("arith.extf", [vector], [k.vector_type(held, width)]).result
        return [vector]

    condition = holds(k, operand.access.guards)
    return read()[0] if condition is None else either(k, condition, read, [k.empty_vector(held, width)])[0]


def either(k: GpuKernel, condition: Scalar, then: Callable[[], list[Any]], otherwise: Sequence[Any]) -> list[Any]:
    """The MLIR values of `then` where a condition holds, else those of `otherwise`."""
    operation = k.emit("scf.if", [condition], [x.type for x in otherwise], regions=2)
    for region, body in zip(operation.regions, (then, lambda: otherwise)):
        with k.inside(mlir.ir.Block.create_at_start(region, [])):
            k.emit("scf.yield", list(body()), [])
    return list(operation.results)

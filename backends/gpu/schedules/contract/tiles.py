"""Tiles of a contraction's operands in threadgroup memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

from smelt.backends.contraction import VECTOR, VECTOR_BYTES, Operand
from smelt.backends.lowering import Fused
from smelt.backends.memory import Memory
from smelt.ir import mlir
from smelt.ir.dtypes import DType
from smelt.ir.kinds import holds
from smelt.ir.scalar import INDEX, Scalar

from ...kernel import GpuKernel
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
        source = self.operand.source
        if self.operand.dtype.kind != "f" or source is None:
            return 1
        along = self.depth if self.along_depth else self.free
        widest = VECTOR_BYTES // held.size if held is source[0].dtype else VECTOR
        for width in dict.fromkeys((widest, VECTOR)):
            whole = self.size * self.depth_size % (self.threads * width) == 0 and padding % width == 0
            if whole and self.length % width == 0 and self.operand.along(along, width):
                return width
        return 1

    def place(self, memory: Memory, base: int = 0) -> None:
        """Where in threadgroup memory the tile lies."""
        self.memory, self.base = memory, base

    def at(self, offset: Scalar, half: Scalar | None) -> Scalar:
        """An offset in the tile as one in memory."""
        return summed(self.k, offset, self.base, half)

    def offset(self, free: Scalar, depth: Scalar) -> Scalar:
        """The offset in the tile of one element."""
        line, position = (free, depth) if self.along_depth else (depth, free)
        return summed(self.k, times(line, self.pitch), position)

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
        k, held = self.k, self.memory.aval.dtype
        values = f"{self.name}_values"
        free, depth, inside = self._position(*self._piece(i), first, depth_first)

        def read() -> list[Any]:
            with k.at_position(self.free, free), k.at_position(self.depth, depth):
                return [neighbours(k, self.operand, self.width, held, values)]

        if inside is None:
            return read()[0]
        with k.named(values):
            return either(k, inside, read, [self.zeros()])[0]


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

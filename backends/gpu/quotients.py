"""Quotients of half precision: where loops do not change a divisor, products with its reciprocal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from smelt.backends.memory import Memory
from smelt.ir import mlir
from smelt.ir.scalar import INDEX, Scalar

if TYPE_CHECKING:
    from .kernel import GpuKernel


class Quotients:
    """The divisors of a kernel under construction.

    Attributes:
        arrays: by their memrefs, the thread's arrays that no loop changes, and the blocks in which they were written.
    """

    def __init__(self, k: GpuKernel) -> None:
        self.k = k
        self.arrays: dict[Any, tuple[Memory, Any]] = {}
        self._of_scalars: dict[Any, tuple[Scalar, Scalar]] = {}
        self._of_arrays: dict[Any, tuple[Memory, Memory]] = {}

    def of(self, x: Scalar, y: Scalar) -> Scalar:
        """x / y, whose last bits of float32 do not count."""
        known = self._known(y)
        if known is None:
            return x / y
        scale, reciprocal = known
        return (x * scale) * reciprocal

    def _known(self, y: Scalar) -> tuple[Scalar, Scalar] | None:
        """See `_reciprocal`; None where `y` is computed where it is used."""
        loop, load = self._loop_after(y), y.mlir.owner
        if loop is not None:
            if y.mlir not in self._of_scalars:
                with self._before(loop):
                    self._of_scalars[y.mlir] = self._reciprocal(y)
            return self._of_scalars[y.mlir]
        array = load.operands[0] if getattr(load, "name", "") == "memref.load" else None
        if array not in self.arrays:
            return None
        if array not in self._of_arrays:
            self._of_arrays[array] = self._reciprocals(*self.arrays[array])
        scales, reciprocals = self._of_arrays[array]
        at = Scalar(self.k, load.operands[1], INDEX)
        return self.k.read(scales, at), self.k.read(reciprocals, at)

    def _reciprocal(self, y: Scalar) -> tuple[Scalar, Scalar]:
        """A power of two that keeps the reciprocal a normal number, and the reciprocal of y times that."""
        k, size = self.k, self.k.math("absf", y)
        with k.named("scale"):
            scale = k.select(size < 2.0**-100, 2.0**64, k.const(1.0, y.dtype))
            scale = k.select(size > 2.0**100, 2.0**-64, scale)
        with k.named("reciprocal"):
            return scale, 1.0 / (y * scale)

    def _reciprocals(self, array: Memory, block: Any) -> tuple[Memory, Memory]:
        """Those of the elements of an array, in front of what `block` is being filled with."""
        k, size, dtype = self.k, array.aval.size, array.aval.dtype
        with k.named("scales"):
            scales = k.thread_array(size, dtype)
        with k.named("reciprocals"):
            reciprocals = k.thread_array(size, dtype)

        def write(j: Scalar) -> None:
            scale, reciprocal = self._reciprocal(k.read(array, j))
            k.write(scale, scales, j)
            k.write(reciprocal, reciprocals, j)

        around = k.ip.block.owner.operation
        while around.block != block:
            around = around.parent.operation
        with self._before(around):
            k.unrolled(size, write)
        return scales, reciprocals

    @contextmanager
    def _before(self, operation: Any) -> Iterator[None]:
        """Emit in front of an operation."""
        saved, self.k.ip = self.k.ip, mlir.ir.InsertionPoint(operation)
        yield
        self.k.ip = saved

    def _loop_after(self, x: Scalar) -> Any:
        """The op of the block of `x` that the kernel is inside, if it is in another block; None for a constant."""
        owner = x.mlir.owner
        if isinstance(owner, mlir.ir.Block):
            home = owner
        elif owner.operation.name == "arith.constant":
            return None
        else:
            home = owner.operation.block
        block, around = self.k.ip.block, None
        while block != home:
            around = block.owner.operation
            if around.name in ("gpu.func", "func.func"):
                return None
            block = around.block
        return around

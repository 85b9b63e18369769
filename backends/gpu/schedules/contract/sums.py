"""Sums of one thread, of elements or of several neighbours at once."""

from __future__ import annotations

from typing import Any

from smelt.backends.contraction import Operand, Product
from smelt.backends.lowering import Fused
from smelt.ir.scalar import INDEX, Scalar, compute_dtype

from ...kernel import GpuKernel
from .positions import summed
from .tiles import neighbours


class Sums:
    """Sums of one thread along the contracted axes, in elements or in vectors of floats."""

    def __init__(self, k: GpuKernel, product: Product, width: int):
        self.k, self.product, self.width = k, product, width
        self.held = compute_dtype(product.dtype)

    def zero(self) -> Any:
        if self.width > 1:
            return self.k.empty_vector(self.held, self.width)
        return self.k.const(0, self.held).mlir

    def load(self, operand: Operand) -> Any:
        """What stands at the position of the loops."""
        k = self.k
        if self.width == 1:
            return operand.read(k).mlir
        return neighbours(k, operand, self.width, self.held)

    def gather(self, operand: Operand, loop: Fused, first: Scalar) -> Any:
        """Neighbours along a loop, as `load` has them, of an operand that need not be contiguous."""
        k = self.k
        if self.width == 1 or operand.along(loop, self.width):
            with k.at_position(loop, first):
                return self.load(operand)
        elements = []
        for j in range(self.width):
            with k.at_position(loop, summed(k, first, j)):
                elements.append(operand.read(k))
        return k.emit("vector.from_elements", elements, [k.vector_type(self.held, self.width)]).result

    def spread(self, operand: Operand) -> Any:
        """One element, to be multiplied with all of a vector."""
        k = self.k
        x = operand.read(k)
        if self.width == 1:
            return x.mlir
        return k.emit("vector.broadcast", [x], [k.vector_type(self.held, self.width)]).result

    def add(self, total: Any, x: Any, y: Any) -> Any:
        k = self.k
        if self.width > 1:
            return k.emit("math.fma", [x, y, total], [total.type]).result
        total, x, y = (Scalar(k, v, self.held) for v in (total, x, y))
        return self.product.rules.accumulate(k, total, x, y).mlir

    def element(self, total: Any, j: int) -> Scalar:
        k = self.k
        if self.width == 1:
            return Scalar(k, total, self.held)
        return k.extract(total, k.const(j, INDEX), self.held)

    def whole(self, total: Any) -> Scalar:
        """The sum of the elements of a sum."""
        found = self.element(total, 0)
        for j in range(1, self.width):
            found = found + self.element(total, j)
        return found

"""What follows a contraction in its kernel: the body's outputs from sums that a thread has, and their stores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from smelt.backends.contraction import Product
from smelt.backends.lowering import Fused, always
from smelt.backends.memory import Memory
from smelt.backends.plan import Plan
from smelt.ir import dtypes
from smelt.ir.index import linearize
from smelt.ir.scalar import INDEX, Scalar

from ...kernel import GpuModule
from ..schedule import ScheduledKernel, body_flops, bytes_read, bytes_written, source_lines, start_kernel
from .tiles import neighbours_made


class Epilogue:
    """Computes and stores outputs at the position of the kernel's loops, one or several neighbours at once.

    Attributes:
        k: the kernel, which is started here. products: all that it makes.
        shares: how many threadgroups share the contracted positions; positions: of a share.
    """

    shares = 1

    def __init__(self, module: GpuModule, product: Product, beside: Epilogue | None = None):
        """`beside`: of another product in the same kernel."""
        self.product, self.positions = product, product.depth.extent
        if beside is None:
            self.k, _, self.memories = start_kernel(module, product.body)
            self.products = [product]
        else:
            self.k, self.memories, self.products = beside.k, beside.memories, beside.products
            self.products.append(product)
        own = {v for v, _ in product.outputs}
        self.outputs = [memory for v, memory in zip(product.body.returns, self.memories) if v in own]

    def share(self, group: Scalar, groups: int) -> tuple[Scalar, Scalar, Scalar | int]:
        """Of a threadgroup: which of `groups` it is; and the contracted positions that it sees to, first and end."""
        return group, self.k.const(0, INDEX), self.product.depth.extent

    def width(self, loop: Fused) -> int:
        """How many neighbours along a loop can be stored as one vector."""
        return self.product.width(loop)

    def finish(self, schedule: str, groups: int, threads: int) -> list[ScheduledKernel]:
        """Close the kernel; the steps that run the products."""
        k, body, products = self.k, self.product.body, self.products
        loads = [x for p in products if p.result.aval.size for x in (*p.lhs.loads, *p.rhs.loads, *p.loads)]
        plan = Plan(body, [], [], {}, {}, {}, {}, loads=loads)
        flops = body_flops(body) + 2 * sum(p.size - p.result.aval.size for p in products)
        k.finish(
            schedule, (groups, 1, 1), (threads, 1, 1),
            bytes_read(plan), bytes_written(body), max(flops, 0), source_lines(body.ops),
        )  # fmt: skip
        return [ScheduledKernel(k.name, [*body.arguments, *body.returns])]

    def _values(self, total: Scalar) -> list[Scalar]:
        self.k.provided[self.product.result] = always(total)
        return [self.k.value(v, at) for v, at in self.product.outputs]

    def element(self, total: Scalar) -> None:
        """Store the outputs at the current position, where the contraction's sum is `total`."""
        for x, memory, (_, at) in zip(self._values(total), self.outputs, self.product.outputs):
            self.k.store(x, memory, at)

    def neighbours(self, loop: Fused, first: Scalar, width: int, totals: Callable[[Scalar], Scalar]) -> None:
        """Store the outputs at first … first + width - 1 of a loop; ``totals(j)`` gives each one's sum."""
        k, product = self.k, self.product
        if width == 1:
            with k.at_position(loop, first):
                self.element(totals(k.const(0, INDEX)))
            return
        with k.at_position(loop, first):
            offsets = [k.index(linearize(at, v.shape)) for v, at in product.outputs]
        dtypes = [m.aval.dtype for m in self.outputs]
        found = neighbours_made(k, product.loads, loop, first, width, lambda j: self._values(totals(j)), dtypes)
        for vector, memory, offset in zip(found, self.outputs, offsets):
            k.store_vector(vector, memory, offset)

    def held(self, memory: Memory, at: Scalar, row: Scalar, column: Scalar, width: int) -> None:
        """Store the outputs of `width` columns of a row, whose sums are in threadgroup memory from `at` on."""
        k, product = self.k, self.product
        with k.at_position(product.rows, row):
            if width > 1:
                with k.named("sums"):
                    totals = k.load_vector(memory, at, width)
                self.vector(product.columns, column, totals)
            else:
                with k.named("sum"):
                    total = k.read(memory, at)
                with k.at_position(product.columns, column):
                    self.element(total)

    def vector(self, loop: Fused, first: Scalar, totals: Any) -> None:
        """The same where the sums are a vector of floats."""
        k, product = self.k, self.product
        width = totals.type.shape[0]
        if not product.is_alone:
            self.neighbours(loop, first, width, lambda j: k.extract(totals, j, dtypes.float32))
            return
        if product.dtype is not dtypes.float32:
            totals = k.emit("arith.truncf", [totals], [k.vector_type(product.dtype, width)]).result
        with k.at_position(loop, first):
            for memory, (v, at) in zip(self.outputs, product.outputs):
                k.store_vector(totals, memory, k.index(linearize(at, v.shape)))

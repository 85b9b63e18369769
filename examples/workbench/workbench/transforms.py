"""The op ``smelt.workbench_iterate``, which is of a function: a transformation, as gradients and batches are."""

from __future__ import annotations

from collections.abc import Sequence

from smelt.ir.builder import Builder, Value
from smelt.ir.control import SCAN
from smelt.ir.op import Avals, Int, require
from smelt.ir.ops.call import Callee, Signature, Transform


class Iterate(Transform, name="workbench_iterate"):
    """A function applied again and again: f(f(…f(x))). What it takes behind x stays the same.

    ``%g = "smelt.workbench_iterate"(%f) {times = 3 : i64} : ((tensor<f32>) -> tensor<f32>) -> …``
    """

    times: Int

    def signature(self, arguments: Avals, results: Avals, *, times: Int) -> Signature:
        same = list(arguments[: len(results)]) == list(results)
        require(same, "f must return arrays of the types that it takes first")
        return list(arguments), list(results)

    def expand(self, b: Builder, f: Callee, operands: Sequence[Value], *, times: Int) -> Sequence[Value]:
        carries, constants = len(f.results), len(operands) - len(f.results)
        # A loop gives its function what stays the same first.
        body = f.reordered([*range(constants, constants + carries), *range(constants)])
        attrs = {"body": body.name, "constants": constants, "carries": carries, "length": times, "reverse": False}
        return b.control(SCAN, [*operands[carries:], *operands[:carries]], attrs, f.results)

"""The op that keeps a recomputation apart from the work that it repeats."""

from __future__ import annotations

from ..kinds import Movement
from ..op import Operand


class Barrier(Movement, name="barrier"):
    """The identity: the same memory under another name, so that equal work on it counts as other work.

    Rematerialization puts it in front of what is computed again. CSE finds no equal op there, no
    pattern looks through it, and it costs nothing in a kernel.

    ``%0 = "smelt.barrier"(%x) : (tensor<4xf32>) -> tensor<4xf32>``
    """

    x: Operand
    linearity = "jointly"
    is_view = True

    def infer(self, x):
        return x

    def reference(self, x):
        return x

    def transpose(self, b, cotangents, operands, linear):
        return list(cotangents)

    def batch(self, b, operands, dims):
        return b.emit(self, operands, {}), list(dims)

    def map_index(self, index, operand, result):
        return index

"""The op that keeps a recomputation apart from the work that it repeats."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..aval import Aval
from ..index import Coordinates
from ..kinds import Movement
from ..op import Avals, Batched, Cotangents, Dims, Flags, HostCall, Operand, Values

if TYPE_CHECKING:
    from ..builder import Builder


class Barrier(Movement, name="barrier"):
    """The identity: the same memory under another name, so that equal work on it counts as other work.

    Rematerialization puts it in front of what is computed again. CSE finds no equal op there, no
    pattern looks through it, and it costs nothing in a kernel.

    ``%0 = "smelt.barrier"(%x) : (tensor<4xf32>) -> tensor<4xf32>``
    """

    x: Operand
    linearity = "jointly"
    is_view = True

    def infer(self, x: Aval) -> Aval:
        return x

    def reference(self, x: np.ndarray) -> np.ndarray:
        return x

    def host_call(self, operands: Avals, result: Aval) -> HostCall | None:
        return HostCall(None)

    def transpose(self, b: Builder, cotangents: Cotangents, operands: Values, linear: Flags) -> Cotangents:
        return list(cotangents)

    def batch(self, b: Builder, operands: Values, dims: Dims) -> Batched:
        return b.emit(self, operands, {}), list(dims)

    def map_index(self, index: Coordinates, operand: Aval, result: Aval) -> Coordinates:
        return index

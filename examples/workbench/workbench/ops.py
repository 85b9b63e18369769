"""The op ``smelt.workbench_softsign``. Names of ops of other packages begin with that of the package."""

from __future__ import annotations

import numpy as np

from smelt.ir import dtypes
from smelt.ir.builder import Builder
from smelt.ir.kinds import Elementwise, silent
from smelt.ir.op import Operand, Tangents, Values, only
from smelt.ir.scalar import Scalar, ScalarBuilder


class Softsign(Elementwise, name="workbench_softsign"):
    """Softsign: x / (1 + |x|).

    ``%0 = "smelt.workbench_softsign"(%x) : (tensor<4xf32>) -> tensor<4xf32>``
    """

    x: Operand
    accepts = dtypes.FLOATS
    flops = 3.0

    @silent
    def reference(self, x: np.ndarray) -> np.ndarray:
        return x / (np.abs(x) + np.ones_like(x))

    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values) -> Tangents:
        scale = b.abs(primals[0]) + 1
        return [only(tangents) / (scale * scale)]

    def lower(self, k: ScalarBuilder, x: Scalar) -> Scalar:
        return x / (k.math("absf", x) + 1)

"""The device ``workbench``: the interpreter, with a count of what it computes. A backend in one file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from smelt.backends.buffer import Buffer, HostMemory
from smelt.backends.device import Device, Target, register
from smelt.backends.executable import Executable
from smelt.ir.builder import function_named
from smelt.ir.interpreter import Interpreter


class Counting(Executable):
    """Runs a program op by op, and counts the operations of its ``@main``."""

    operations = 0.0  #: of all programs

    def __init__(self, module: Any, device: Device):
        main = function_named(module)
        super().__init__([x.aval for x in main.arguments], [x.aval for x in main.returns])
        self.cost = sum(op.op.flops * op.results[0].aval.size for op in main.ops)
        self.interpreter = Interpreter(module)

    def run(self, inputs: Sequence[Buffer]) -> list[Buffer]:
        Counting.operations += self.cost
        found = self.interpreter("main", [buffer.array for buffer in inputs])
        return [Buffer.of(np.asarray(x), aval) for x, aval in zip(found, self.results)]


register(
    Device(
        "workbench",
        pipeline="fixpoint(inline,batch,jvp,linearize,transpose),canonicalize,cse,dce",
        executable=Counting,
        memory=HostMemory(),
        target=Target("workbench", measured_bytes=0),
        details=lambda: {"operations": Counting.operations},
    )
)

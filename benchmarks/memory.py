"""Memory of a train step of each example's model: ``python -m benchmarks memory``.

A step has to hold its arguments (parameters, the optimizer's state, the batch), whose places the new ones take, and
those temporaries that are alive at the same time: no order of the same kernels needs less. Beside that stands what
the plan takes, and what was in use at most while a step ran.
"""

from __future__ import annotations

import argparse
import gc
from typing import Any, NamedTuple

import numpy as np

from .machine import number
from .training_steps import TASKS

MIB = 2**20


class Measured(NamedTuple):
    """Of one step, in bytes.

    Attributes:
        arguments: parameters, state and batch. alive: temporaries at the same time, at most.
        arena: memory for temporaries, as planned. peak: in use while a step runs, at most; temporaries included.
    """

    name: str
    arguments: int
    alive: int
    arena: int
    peak: int

    @property
    def least(self) -> int:
        return self.arguments + self.alive


def measured(name: str) -> Measured:
    import smelt
    from smelt import nn, optimizers
    from smelt.ir.settings import settings

    settings.tier = "program"  # at once, not when it has paid
    gc.collect()
    before = smelt.get_active_memory()
    smelt.random.seed(0)
    model, loss, arrays = TASKS[name](nn, np.random.default_rng(0))
    optimizer = optimizers.Adam(1e-3)
    optimizer.init(model.trainable_parameters())
    run = nn.value_and_grad(model, loss)
    state = [model.state, optimizer.state, smelt.random.state]

    def step(*batch: Any) -> Any:
        value, gradients = run(*batch)
        optimizer.update(model, gradients)
        return value

    compiled = smelt.compile(step, inputs=state, outputs=state)
    batch = [smelt.array(x) for x in arrays]
    smelt.eval(state, batch)
    cost = compiled.trace(*batch).lower().compile().cost()
    alive = sum(x.nbytes for x in cost.peak_holders)
    for _ in range(2):
        smelt.eval(compiled(*batch), state)
    gc.collect()
    smelt.reset_peak_memory()
    smelt.eval(compiled(*batch), state)
    return Measured(name, cost.argument_bytes, alive, cost.arena_bytes, smelt.get_peak_memory() - before)


HEAD = """\
| train step | arguments | temporaries at once | least | arena | peak | peak ÷ least |
| --- | ---: | ---: | ---: | ---: | ---: | ---: |"""


def line(row: Measured) -> str:
    """A line of the table."""
    cells = [number(x / MIB) for x in (row.arguments, row.alive, row.least, row.arena, row.peak)]
    return f"| {row.name} | {' | '.join(cells)} | {row.peak / row.least:.2f} |"


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks memory", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="example", help=f"{', '.join(TASKS)}; all by default")
    options = parser.parse_args(argv)
    if unknown := [name for name in options.names if name not in TASKS]:
        parser.error(f"no train step of {unknown[0]!r}; there are {', '.join(TASKS)}")
    print(f"MiB\n\n{HEAD}", flush=True)
    for name in options.names or TASKS:
        print(line(measured(name)), flush=True)  # as it comes: a step takes its time where others use the machine

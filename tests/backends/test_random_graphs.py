"""Random graphs through kernels against the interpreter: on the CPU with checked accesses, and as Metal's kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from smelt.backends.gpu.devices import GPUS
from smelt.backends.metal.simulator import Options
from smelt.ir import text
from smelt.ir.interpreter import Interpreter
from smelt.ir.settings import override

from .metal import harness
from .modules import compile_, module_of, run
from .random_graphs import made

PASSES = "canonicalize,cse,dce,fuse,plan-buffers"
#: How many graphs, and how many of them are one program.
CPU, METAL = (240, 4), (96, 8)


def check_cpu(seeds: Sequence[int], most: int) -> None:
    """Raises AssertionError, or KernelError where an access leaves its array."""
    graph, arrays = made(seeds, most)
    module = module_of(graph.avals, graph)
    with np.errstate(all="ignore"), override(check=True):
        want = Interpreter(module)("main", arrays)
        found = run(compile_(module, PASSES), arrays)
    agree(seeds, graph, found, want)


def check_metal(seeds: Sequence[int], most: int) -> None:
    """Raises AssertionError, or SimulatorError where a thread leaves its array or races with another."""
    graph, arrays = made(seeds, most)
    module = module_of(graph.avals, graph)
    with np.errstate(all="ignore"):
        want = Interpreter(module)("main", arrays)
    program = harness.program_of(str(text.to_text(module)))
    agree(seeds, graph, harness.run(program, arrays, Options(order="shuffled", poison=True, guard=True)), want)


def agree(seeds: Sequence[int], graph: object, found: Sequence[np.ndarray], want: Sequence[np.ndarray]) -> None:
    for i, (have, expected) in enumerate(zip(found, want, strict=True)):
        np.testing.assert_array_equal(have, expected, err_msg=f"seeds {list(seeds)}, result {i} of\n{graph}")


@pytest.mark.parametrize("first", range(0, CPU[0], 40))
def test_random_graphs_on_the_cpu(first: int) -> None:
    for seed in range(first, first + 40, CPU[1]):
        check_cpu(range(seed, seed + CPU[1]), 4000)


@pytest.mark.parametrize("first", range(0, METAL[0], METAL[1]))
def test_random_graphs_on_metal(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With few threadgroups, so that each sees to several rows one after the other."""
    monkeypatch.setitem(GPUS, "simulator", replace(GPUS["simulator"], groups=3))
    check_metal(range(first, first + METAL[1]), 1000)

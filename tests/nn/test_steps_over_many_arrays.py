"""The step of an optimizer over hundreds of arrays is one loop over a table, with code for each kind of array only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import smelt
from smelt import optimizers
from smelt.utils import tree_map

COUNT = 102
#: Vectors and matrices of many sizes.
MANY = [(3 + i % 37,) if i % 2 else (3 + i % 37, 2 + i % 3) for i in range(COUNT)]
FEW = [(8,) if i % 2 else (8, 6) for i in range(COUNT)]

ELEMENTWISE: dict[str, Callable[[], Any]] = {
    "SGD": lambda: optimizers.SGD(0.1, momentum=0.9, nesterov=True, weight_decay=1e-2),
    "RMSprop": lambda: optimizers.RMSprop(0.1), "Adagrad": lambda: optimizers.Adagrad(0.1),
    "AdaDelta": lambda: optimizers.AdaDelta(0.1), "Adamax": lambda: optimizers.Adamax(0.1),
    "Adam": lambda: optimizers.Adam(optimizers.cosine_decay(1e-3, 100), bias_correction=True),
    "AdamW": lambda: optimizers.AdamW(0.1), "NAdam": lambda: optimizers.NAdam(0.1),
    "Lion": lambda: optimizers.Lion(0.1),
}  # fmt: skip
OTHERS: dict[str, Callable[[], Any]] = {
    "LAMB": lambda: optimizers.LAMB(0.1), "Adafactor": lambda: optimizers.Adafactor(0.1),
    "Muon": lambda: optimizers.Muon(0.1),
}  # fmt: skip


def code_of_step(optimizer: Any, shapes: list[tuple[int, ...]]) -> tuple[int, int]:
    """Loops over tables and kernels in the code of a compiled step."""
    rng = np.random.default_rng(0)
    parameters = {f"w{i}": smelt.array(rng.standard_normal(s).astype(np.float32)) for i, s in enumerate(shapes)}
    gradients = tree_map(lambda x: x * 0.1, parameters)
    optimizer.init(parameters)
    state = optimizer.state
    step = smelt.compile(lambda p, g: optimizer.apply_gradients(g, p), inputs=state, outputs=state)
    text = step.trace(parameters, gradients).lower().compile().as_text("kernel")
    return text.count("scf.index_switch"), text.count("func.func private")


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_steps_of_elements(name: str) -> None:
    tables, kernels = code_of_step(ELEMENTWISE[name](), MANY)
    assert tables == 1 and kernels <= 8


@pytest.mark.parametrize("name", OTHERS)
def test_steps_with_sums_and_products(name: str) -> None:
    """As much code for each shape of array, however many arrays there are."""
    tables, kernels = code_of_step(OTHERS[name](), FEW)
    assert tables <= 1 and kernels <= 12


@pytest.mark.parametrize("name, most", [("LAMB", 6), ("Adafactor", 32), ("Muon", 36)])
def test_sums_and_products_of_many_sizes(name: str, most: int) -> None:
    """Sizes are numbers that the code is told, where the code is the same else."""
    tables, kernels = code_of_step(OTHERS[name](), MANY)
    assert tables == 1 and kernels <= most

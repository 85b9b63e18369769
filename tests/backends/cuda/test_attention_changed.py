"""Chains that are nearly the gradient of attention are left to kernels: a library would compute something else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.backends.gpu.pipeline import gpu_pipeline
from smelt.ir.builder import Builder, OpView, Value, read_function
from smelt.ir.ops.arithmetic import Mul
from smelt.ir.ops.conversion import Convert
from smelt.ir.ops.exponential import Exp
from smelt.passes import Pipeline
from smelt.passes.extract import reassemble
from smelt.passes.registry import Pass, _passes, register_pass
from smelt.passes.rewrite import unplaced_functions

from .fake_dnn import FakeDnn
from .test_attention import half, numbers
from .test_attention_gradient import PLAIN, Q, plain
from .test_convolutions import dnn
from .test_device import fake, gpu

pytestmark = pytest.mark.usefixtures("small_heap")
assert dnn and fake and gpu  # fixtures


@pytest.fixture(autouse=True)
def change() -> Iterator[None]:
    """A pass that changes the weights that `recompute-attention` lets a gradient compute."""
    known = dict(_passes)

    @register_pass("change-weights")
    @dataclass(frozen=True)
    class ChangeWeightsPass(Pass):
        """Change weights.

        Attributes:
            how: a name of `CHANGES`.
        """

        how: str = "nothing"

        def run(self, module: Any, statistics: Counter) -> None:
            for operation in unplaced_functions(module):
                function = read_function(operation)
                exponential = [op for op in function.ops if isinstance(op.op, Exp)][-1]
                weights = next(op for op in function.ops if isinstance(op.op, Mul)
                               and exponential.results[0] in op.operands)  # fmt: skip
                rounded = next(op for op in function.ops if isinstance(op.op, Convert)
                               and weights.results[0] in op.operands)  # fmt: skip
                marks = {exponential.operands[0].owner: "shifted", weights: "weights", rounded: "rounded"}
                items = [(marks[op], op) if op in marks else op for op in function.ops]
                reassemble(module, function, items, partial(changed, self.how))

    yield
    _passes.clear()
    _passes.update(known)


def changed(how: str, b: Builder, item: tuple[str, OpView], env: dict[Value, Value]) -> None:
    what, op = item
    env[op.results[0]] = CHANGES[how](b, what, [env[v] for v in op.operands], op.results[0])


def computed(b: Builder, what: str, given: list[Value], result: Value) -> Value:
    if what == "rounded":
        return b.convert_to(given[0], result.dtype)
    return given[0] - given[1] if what == "shifted" else given[0] * given[1]


def hidden(b: Builder, what: str, given: list[Value], result: Value) -> Value:
    """Small weights are none for the values."""
    if what == "rounded":
        x = given[0]
        given = [b.select(b.greater(x, b.full(x.shape, 0.02, x.dtype)), x, b.full(x.shape, 0.0, x.dtype))]
    return computed(b, what, given, result)


def of_keys(b: Builder, what: str, given: list[Value], result: Value) -> Value:
    """Numbers of queries, taken as those of keys."""
    if what != "rounded":
        *others, rows, columns = range(given[1].aval.ndim)
        given = [given[0], b.transpose(given[1], permutation=(*others, columns, rows))]
    return computed(b, what, given, result)


def squared(b: Builder, what: str, given: list[Value], result: Value) -> Value:
    return computed(b, what, [given[0], given[1] * given[1]] if what == "weights" else given, result)


def negative(b: Builder, what: str, given: list[Value], result: Value) -> Value:
    """These have no logarithms."""
    return computed(b, what, [given[0], -given[1]] if what == "weights" else given, result)


CHANGES: dict[str, Any] = {
    "nothing": computed, "hidden": hidden, "of keys": of_keys, "squared": squared, "negative": negative,
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_other_weights(name: str, dnn: FakeDnn) -> None:
    arrays = [half(numbers(*Q, seed=i)) for i in range(4)]
    found = []
    for joins in (False, True):
        text = gpu_pipeline(("complex128",), half_gradients=True, joins_chains=joins)
        text = text.replace("split-sums", f"change-weights{{how='{name}'}},split-sums")
        step = smelt.compile(lambda *x: smelt.vjp(plain, list(x[:3]), [x[3]])[1], pipeline=Pipeline.parse(text))
        dnn.done.clear()
        found.append([np.array(x.astype(smelt.float32)) for x in step(*arrays)])
    assert sorted(len(made["modes"]) for made in dnn.done) == (PLAIN if name == "nothing" else PLAIN[:1])
    for x, y in zip(*found, strict=True):
        np.testing.assert_allclose(x, y, rtol=0.03, atol=0.02 * float(np.abs(x).max()))

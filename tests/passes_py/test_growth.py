"""What passes look through is bounded: values that many ways lead to take no time that grows with these ways.

Forty steps of ``a, b = b, f(a, b)`` have a hundred million ways from the last value to the first, and a power by
repeated squaring as many factors.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import smelt
from smelt.backends.device import registered
from smelt.ir import text
from smelt.ir.builder import functions, read_function
from smelt.ir.index import variables
from smelt.passes import Pipeline
from smelt.passes.kernels.attention_masks import position, seen_where

STEPS = 40
#: Calls and returns of functions that a pipeline may make for one of these programs.
CALLS = 3_000_000

OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "max": smelt.maximum,
    "select": lambda a, b: smelt.where(a > b, a, b),
}  # fmt: skip


class TooMany(Exception):
    """More calls than a pass that looks at each op a few times makes."""


@contextmanager
def few_calls(most: int = CALLS) -> Iterator[None]:
    left = most

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            sys.setprofile(None)
            raise TooMany

    sys.setprofile(count)
    try:
        yield
    finally:
        sys.setprofile(None)


def squared(op: Callable[[Any, Any], Any], x: Any) -> Any:
    for _ in range(STEPS):
        x = op(x, x)
    return x


def entangled(op: Callable[[Any, Any], Any], x: Any) -> Any:
    a, b = x, x + 1
    for _ in range(STEPS):
        a, b = b, op(a, b)
    return b


def masked(scores: Any, mask: Any) -> Any:
    return smelt.softmax(smelt.where(mask, scores, -smelt.inf), axis=-1)


def positions(of: Callable[[Any], Any]) -> Any:
    return smelt.expand_dims(of(smelt.arange(64, dtype=smelt.int32)), 1) >= smelt.arange(64, dtype=smelt.int32)


#: What is made of a value that many ways lead to, by what reads it.
READERS: dict[str, Callable[[Any, Callable[[Any], Any]], Any]] = {
    "two sums": lambda x, of: of(x).sum(axis=1) + x.sum(axis=1),
    "numbers of rows": lambda x, of: (of(x.mean(axis=1, keepdims=True)) * x).sum(axis=1),
    "a contraction": lambda x, of: of(x.astype(smelt.float16).astype(smelt.float32)) @ x,
    "a softmax": lambda x, of: smelt.softmax(of(x), axis=-1),
    "attention": lambda x, of: smelt.softmax(of(x @ x.T), axis=-1) @ x,
    "a mask": lambda x, of: masked(x @ x.T, positions(of)) @ x,
    "indices": lambda x, of: x[of(smelt.arange(64, dtype=smelt.int32)) % 64],
    "a gradient": lambda x, of: smelt.grad(lambda x: (of(x).sum(axis=1) * x.mean(axis=1)).sum())(x),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_pipelines_look_at_each_op_a_few_times(operation: str, reader: str) -> None:
    x = smelt.ones((64, 64))
    for grown in (squared, entangled):
        traced = smelt.compile(lambda x, g=grown: READERS[reader](x, lambda v: g(OPERATIONS[operation], v))).trace(x)
        source = text.to_text(traced.lower().module)
        for pipeline in dict.fromkeys(device.pipeline for device in registered.values()):
            module = text.parse(source)
            with few_calls():
                Pipeline.parse(pipeline).run(module)


@pytest.mark.parametrize("looks", [position, seen_where])
def test_positions_and_conditions_are_looked_through_so_far(looks: Callable[..., Any]) -> None:
    """The two that kernels of attention ask about masks, of values that many ways, or a long one, lead to."""

    def chain(x: Any) -> Any:
        for i in range(1000):
            x = x + i % 2 - 1
        return x

    def conditions(c: Any) -> Any:
        a, b = c, positions(lambda i: i + 1)
        for _ in range(STEPS):
            a, b = b, smelt.logical_and(a, b)
        return b

    def program(x: Any) -> tuple[Any, Any, Any]:
        at = smelt.arange(64, dtype=smelt.int32) + x
        return entangled(OPERATIONS["sub"], at), conditions(positions(lambda i: i + x)), chain(at)

    module = smelt.compile(program).trace(smelt.array(0)).lower().module
    for value in read_function(functions(module)["main"]).returns:
        with few_calls(200_000):
            looks(value, variables(value.shape))

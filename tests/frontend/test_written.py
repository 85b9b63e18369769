"""Recorded graphs as text: the module made of the text is the module made of the graph, lines included."""

from __future__ import annotations

import gc
import json
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir.plain import PlainError
from smelt.lazy.build import build_module
from smelt.lazy.written import module_of, read_graph, write_graph

from ..compose.drawing import graph
from ..compose.kernels import _function_of


def texts_of(function: Callable[..., Any], *arguments: Any) -> tuple[str, str]:
    """The text of a graph without lines, and with them, after it was compared with the graph."""
    trace = smelt.compile(function).trace(*arguments)
    f = trace.function
    written = write_graph(f.parameters, f.body, f.outputs, trace.names)
    assert written is not None and "\n" not in written.text
    want = build_module(f.parameters, f.body, f.outputs, trace.names)
    for text, debug in ((written.text, False), (written.located(), True)):
        have = module_of(text).operation.get_asm(enable_debug_info=debug)
        assert have == want.operation.get_asm(enable_debug_info=debug)
        read, names = read_graph(text)
        again = write_graph(read.parameters, read.body, read.outputs, names)
        assert again is not None and again.text == written.text
        assert not debug or again.located() == text
    return written.text, written.located()


def x_of(*shape: int) -> Any:
    return smelt.array(np.random.default_rng(0).random(shape, np.float32))


@smelt.custom_function
def doubled(x: Any) -> Any:
    return x * 2


@doubled.vjp
def doubled_vjp(primals: Any, cotangent: Any, output: Any) -> Any:
    return cotangent * 2


def applied(x: Any) -> Any:
    return smelt.checkpoint(lambda x: smelt.sin(x) * doubled(x))(x).sum()


FUNCTIONS: dict[str, Any] = {
    "nothing": lambda x: x,
    "twice": lambda x: (x, x + 1, x + 1),
    "numbers": lambda x: x * float("nan") + -0.0 - float("inf") + 2**40,
    "complex": lambda x: x.astype(smelt.complex64) * 1.5j,
    "literal": lambda x: x + smelt.array(np.arange(3, dtype=np.float32)),
    "several results": lambda x: smelt.linalg.qr(x.reshape(3, 1)),
    "gradient": smelt.grad(lambda x: (smelt.sin(x) * x).sum()),
    "gradient of a gradient": smelt.grad(lambda x: smelt.grad(lambda x: (x * x * x).sum())(x).sum()),
    "vmap": smelt.vmap(lambda x: smelt.cumsum(smelt.stack([x, x]))),
    "jvp": lambda x: smelt.jvp(smelt.exp, (x,), (x,)),
    "rules": smelt.grad(applied),
    "two functions of a name": lambda x: smelt.grad(lambda y: (y * y).sum())(x) + smelt.grad(lambda y: y.sum())(x),
    "equal functions": lambda x: smelt.grad(applied)(x) + smelt.grad(applied)(x * 2),
    "cond": lambda x: smelt.cond(x.sum() > 0, lambda x: x, lambda x: -x, x),
    "while": lambda x: smelt.while_loop(lambda s: s.sum() < 9, lambda s: s * 2 + 1, x),
    "scan": smelt.grad(lambda x: smelt.scan(lambda c, y: (c * y, c + y), x.sum(), x)[0]),
    "random": lambda x: x + smelt.random.normal(x.shape, key=smelt.random.key(3)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_text_makes_the_same_module(name: str) -> None:
    texts_of(FUNCTIONS[name], x_of(3))


@pytest.mark.parametrize("first", range(0, 200, 20))
def test_random_graphs(first: int) -> None:
    for seed in range(first, first + 20):
        drawn = graph(seed)
        arrays = [smelt.array(x, dtype=a.dtype) for x, a in zip(drawn.inputs, drawn.arguments)]
        if arrays:
            texts_of(_function_of(drawn), *arrays)


def test_lines_are_in_no_text_that_programs_are_found_by() -> None:
    first = lambda x: smelt.exp(x) + 1  # noqa: E731
    other = lambda x: smelt.exp(x) + 1  # noqa: E731
    (one, one_located), (two, two_located) = texts_of(first, x_of(2)), texts_of(other, x_of(2))
    assert one == two and one_located != two_located and __file__ in one_located and __file__ not in one


@pytest.mark.parametrize(
    "one, other",
    [(lambda x: x * 1.0, lambda x: x * 2.0), (lambda x: x + 0.0, lambda x: x + -0.0),
     (lambda x: x.sum(axis=0), lambda x: x.sum(axis=1)), (lambda x: x, lambda x: (x, x)),
     (lambda x: x.astype(smelt.int32), lambda x: x.astype(smelt.uint32))],
)  # fmt: skip
def test_what_differs_has_another_text(one: Any, other: Any) -> None:
    assert texts_of(one, x_of(2, 2))[0] != texts_of(other, x_of(2, 2))[0]


def test_texts_of_another_version() -> None:
    text, _ = texts_of(lambda x: x + 1, x_of(2))
    with pytest.raises(PlainError, match="version 0"):
        read_graph(json.dumps([0, json.loads(text)[1]]))


def test_a_written_graph_keeps_no_array_alive() -> None:
    """A worker may have it until the program runs again: never, say."""
    x = x_of(3)
    f = smelt.compile(smelt.sin).trace(x).function
    kept = weakref.ref(f.body[-1].node)
    written = write_graph(f.parameters, f.body, f.outputs)
    assert written is not None
    del f
    gc.collect()
    assert kept() is None and "sin" in written.located()

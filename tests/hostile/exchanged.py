"""Mutated programs of other frameworks: StableHLO as text and as bytes, and ONNX."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import math
import random
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import smelt
from smelt.ir import stablehlo
from smelt.ir.bytecode import without_attributes
from smelt.ir.errors import SmeltError
from tests.exchange.programs_of_jax import FOLDER, NAMES, program

from .mutate import mutated_bytes, mutated_text

#: Programs whose arguments have more elements are not run.
MOST_ELEMENTS = 100_000
#: Bytes of arrays; mutated extents ask for more.
MEMORY = 1 << 29

STABLEHLO_WORDS = (
    "tensor<4xf32>", "tensor<f32>", "tensor<0x3xf32>", "tensor<?xf32>", "tensor<2x3xi32>", "tensor<i1>",
    "stablehlo.add", "stablehlo.reduce", "stablehlo.while", "stablehlo.sort", "stablehlo.gather", "dense<1>",
    "stablehlo.dot_general", "dims = [0]", "dims = [1, 0]", "across dimensions = [0]", "%0", "%arg0", "dense<-1>",
    "array<i64: 0>", "true", ":", "->", "{", "}", "(", ")", "@main",
)  # fmt: skip
_NUMBER = r"(?<![%\w.#])-?\d+(?![\w.])"
_NUMBERS = ("0", "1", "2", "3", "-1", "5", "7", "100", "9223372036854775807")
_TYPES = ("f32", "i1", "i8", "i32", "ui32", "f16", "bf16", "f64", "i64")


@functools.cache
def _stablehlo_texts() -> tuple[str, ...]:
    return tuple(program(name).text for name in NAMES)


def _gently(source: str, rng: random.Random) -> str:
    """A program with other numbers, ops, types or operands, which is often still one."""
    for _ in range(rng.choice((1, 1, 2))):
        kind = rng.randrange(5)
        numbers, ops = (list(re.finditer(pattern, source)) for pattern in (_NUMBER, r"stablehlo\.\w+"))
        if kind == 0 and numbers:
            at = rng.choice(numbers)
            source = source[: at.start()] + rng.choice(_NUMBERS) + source[at.end() :]
        elif kind == 1 and numbers:
            old = re.escape(rng.choice(numbers).group())
            source = re.sub(rf"(?<![%\w.#]){old}(?=[x>,\s\]])", rng.choice(("0", "1", "2", "3", "5")), source)
        elif kind == 2 and ops:
            at = rng.choice(ops)
            source = source[: at.start()] + rng.choice(ops).group() + source[at.end() :]
        elif kind == 3:
            source = re.sub(rf"\b{rng.choice(_TYPES)}\b", rng.choice(_TYPES), source)
        else:
            at = rng.choice(list(re.finditer(r"%\w+", source)))
            values = sorted(set(re.findall(r"%\w+", source)))
            source = source[: at.start()] + rng.choice(values) + source[at.end() :]
    return source


def _run(function: Any, has_loops: bool) -> None:
    """Call a function that was read on zeros. Mutated loops may have no end."""
    shapes = [getattr(a, "shape", None) for a in function.arguments]
    if not all(isinstance(s, tuple) and all(isinstance(d, int) for d in s) for s in shapes):
        return
    if any(math.prod(s) > MOST_ELEMENTS for s in shapes):
        return
    with _little_memory():
        found = function(*(smelt.zeros(a.shape, a.dtype) for a in function.arguments))
        if not has_loops:
            smelt.eval(found)


@contextlib.contextmanager
def _little_memory() -> Any:
    before = smelt.set_memory_limit(MEMORY)
    try:
        yield
    finally:
        smelt.set_memory_limit(before)


def stablehlo_text(rng: random.Random) -> Callable[[], None]:
    """A mutated program of JAX: read, called, and evaluated."""
    texts = _stablehlo_texts()
    source = rng.choice(texts)
    source = _gently(source, rng) if rng.random() < 0.6 else mutated_text(source, texts, STABLEHLO_WORDS, rng)

    def run() -> None:
        _run(smelt.from_stablehlo(source), "while" in source)

    run.subject = source  # type: ignore[attr-defined]
    return run


@functools.cache
def _artifacts() -> tuple[bytes, ...]:
    stored = [path.read_bytes() for path in sorted(FOLDER.glob("*.bytecode"))]
    plain = [source for source in _stablehlo_texts() if "custom_call" not in source]
    return (*stored, *map(stablehlo.to_bytecode, plain[:6]))


def _huge_fields(data: bytes, rng: random.Random) -> bytes:
    """Numbers of MLIR's encoding in place of others: of one byte up to nine."""
    found = bytearray(data)
    for _ in range(rng.choice((1, 1, 2))):
        width = rng.choice((1, 2, 4, 5, 9))
        value = rng.choice((0, 1, 2**7 * width - 1, 2 ** (7 * min(width, 8)) - 1))
        encoded = b"\0" + value.to_bytes(8, "little") if width == 9 else _prefixed(value, width)
        at = rng.randrange(5, len(found))
        found[at : at + rng.choice((1, width))] = encoded
    return bytes(found)


def _prefixed(value: int, width: int) -> bytes:
    return ((value << width | 1 << (width - 1)) % 2 ** (8 * width)).to_bytes(width, "little")


def artifact(rng: random.Random) -> Callable[[], None]:
    """A mutated portable artifact; most are only searched for attributes here, for another process reads the rest."""
    artifacts = _artifacts()
    data = rng.choice(artifacts)
    data = _huge_fields(data, rng) if rng.random() < 0.5 else mutated_bytes(data, artifacts, rng)
    whole = rng.random() < 0.05

    def run() -> None:
        assert len(without_attributes(data, "sdy")) == len(data)
        if whole and data.startswith(stablehlo.BYTECODE):
            smelt.from_stablehlo(data)

    run.subject = repr(data)  # type: ignore[attr-defined]
    return run


HAS_ONNX = importlib.util.find_spec("onnx") is not None


@functools.cache
def _onnx_cases() -> tuple[Any, ...]:
    from tests.exchange.onnx_nodes import cases

    return tuple(case for case in cases() if case.model.ByteSize() < 4000)


def _changed_model(model: Any, cases: Sequence[Any], rng: random.Random) -> bytes:
    """A model with other attributes, inputs, types or ops, which is often still one."""
    import onnx

    found = onnx.ModelProto()
    found.CopyFrom(model)
    graph = found.graph
    for _ in range(rng.choice((1, 1, 2, 3))):
        node = rng.choice(graph.node) if graph.node else None
        kind = rng.randrange(7)
        if kind == 0 and node is not None and node.attribute:
            _change_attribute(rng.choice(node.attribute), rng)
        elif kind == 1 and node is not None and node.attribute:
            node.attribute.pop()
        elif kind == 2 and node is not None and node.input:
            names = [x.name for x in graph.input] + [""] + [x for other in graph.node for x in other.output]
            node.input[rng.randrange(len(node.input))] = rng.choice(names)
        elif kind == 3 and graph.input:
            dims = rng.choice(graph.input).type.tensor_type.shape.dim
            if dims:
                rng.choice(dims).dim_value = rng.choice((0, 1, 2, 3, 5, -1, 2**40))
        elif kind == 4 and graph.input:
            rng.choice(graph.input).type.tensor_type.elem_type = rng.randrange(24)
        elif kind == 5 and node is not None:
            node.op_type = rng.choice(cases).model.graph.node[0].op_type
        elif node is not None and node.input and rng.random() < 0.5:
            node.input.pop()
        elif node is not None:
            node.input.append(rng.choice([x.name for x in graph.input] or [""]))
    data: bytes = found.SerializeToString()
    return data


def _change_attribute(attribute: Any, rng: random.Random) -> None:
    import onnx

    kinds = onnx.AttributeProto
    number = rng.choice((0, 1, -1, 2, 3, 7, -2, 100, 2**31, 2**62, -(2**63)))
    if attribute.type == kinds.INT:
        attribute.i = number
    elif attribute.type == kinds.INTS and attribute.ints and rng.random() < 0.6:
        attribute.ints[rng.randrange(len(attribute.ints))] = number
    elif attribute.type == kinds.INTS and attribute.ints and rng.random() < 0.5:
        attribute.ints.pop()
    elif attribute.type == kinds.INTS:
        attribute.ints.append(number)
    elif attribute.type == kinds.FLOAT:
        attribute.f = rng.choice((0.0, -1.0, 1e38, math.nan, math.inf))
    elif attribute.type == kinds.STRING:
        attribute.s = rng.choice((b"", b"x", b"\xff", b"SAME_UPPER", b"linear", b"reflect"))


def onnx_model(rng: random.Random) -> Callable[[], None]:
    """A mutated model of one of ONNX's node tests: read, called with what the test has, and evaluated."""
    cases = _onnx_cases()
    case = rng.choice(cases)
    if rng.random() < 0.6:
        data = _changed_model(case.model, cases, rng)
    else:
        data = mutated_bytes(case.model.SerializeToString(), [c.model.SerializeToString() for c in cases[:50]], rng)
    given = case.data_sets[0][0] if case.data_sets else []

    def run() -> None:
        function = smelt.from_onnx(data)
        arguments = [_array(x) for x in given if not (isinstance(x, np.ndarray) and x.dtype.kind in "OSU")]
        with _little_memory():
            found = function(*arguments)
            if "loop" not in case.name.lower():
                smelt.eval(found)

    run.subject = f"{case.name} {data!r}"  # type: ignore[attr-defined]
    return run


def _array(x: Any) -> Any:
    if isinstance(x, list):
        return [_array(y) for y in x]
    if hasattr(x, "SerializeToString"):
        with contextlib.suppress(Exception):
            from onnx import numpy_helper

            x = numpy_helper.to_array(x)
    with contextlib.suppress(SmeltError):
        return smelt.array(x)
    return None


SUBJECTS = {"stablehlo": stablehlo_text, "artifacts": artifact}
if HAS_ONNX:
    SUBJECTS["onnx"] = onnx_model

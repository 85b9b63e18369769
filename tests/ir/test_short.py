"""The short form: it says what the module says. Lines of operators and views are Python, and are run as such."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest

import smelt
from smelt.ir import text
from smelt.ir.errors import IRError
from smelt.ir.op import registry
from smelt.ir.short import HEADER, to_short_text
from smelt.tools.opt import split

from ..litfile import ROOT

ROUNDTRIPS = sorted((ROOT / "ir" / "roundtrip").glob("*.mlir"))


@pytest.mark.parametrize("path", ROUNDTRIPS, ids=lambda p: p.stem)
def test_all_ops_have_it(path):
    """Every op of the lit files is written, by its name, its symbol or in place."""
    for part in split(path.read_text(encoding="utf-8")):
        if not part.strip():
            continue
        module = text.parse(part)
        short = to_short_text(module)
        assert short.startswith(HEADER)
        assert short.count("\n@") == text.to_text(module).count("func.func")
        assert "object at 0x" not in short and "tensor<" not in short


def run(short: str, arguments: list[np.ndarray]) -> list[np.ndarray]:
    """The results of a program of one function in the short form, which is run as Python."""
    lines = short.removeprefix(HEADER).strip().split("\n")
    names = re.findall(r"%(\w+): ", lines[0])
    values: dict[str, object] = {f"v_{n}": a for n, a in zip(names, arguments)}
    functions = {
        "exp": np.exp, "abs": np.abs, "maximum": np.maximum, "np": np, "true": np.True_, "false": np.False_,
        "broadcast": lambda x, shape: np.broadcast_to(x, shape), "reshape": lambda x, shape: np.reshape(x, shape),
        "reduce_sum": lambda x, axes: np.sum(x, axis=tuple(axes), dtype=x.dtype), "einsum": np.einsum,
        "transpose": lambda x, permutation: np.transpose(x, permutation),
    }  # fmt: skip
    result: object = None
    for line in lines[1:]:
        code = re.sub(r"%(\w+)", r"v_\1", re.sub(r" : [\w\[\], ]+$", "", line.strip()))
        code = re.sub(r"v_(\d)", r"v_r\1", code)
        if code.startswith("return "):
            result = eval(code.removeprefix("return "), functions, values)
        else:
            name, _, expression = code.partition(" = ")
            values[name] = eval(expression, functions, values)
    return [np.asarray(r) for r in (result if isinstance(result, tuple) else (result,))]


def drawn(rng: random.Random, x: smelt.array, y: smelt.array, row: smelt.array):
    """A random expression of int64 arrays: exact, so that brackets in a wrong place are seen."""
    found = [x, y]
    for _ in range(rng.randint(3, 14)):
        a, b = rng.choice(found), rng.choice(found)
        b = rng.choice([b, b, b, row, rng.randint(-3, 5)])
        kind = rng.randrange(12)
        if kind < 6:
            made = [a + b, a - b, b - a, a * b, a & b, a | b][kind]
        elif kind == 6:
            made = -a
        elif kind == 7:
            made = ~a
        elif kind == 8:
            made = a - a.sum(axis=1, keepdims=True)
        elif kind == 9:
            made = a.T.T * 2 - b
        elif kind == 10:
            made = a ^ (b + 1)
        else:
            made = (a[::-1] if rng.random() < 0.3 else a[:, None][:, 0]) - b
        found.append(made)
    return found[-1], found[-2]


def reversal(short: str) -> bool:
    return "reverse(" in short


@pytest.mark.parametrize("seed", range(60))
def test_expressions_are_python(seed):
    rng = np.random.default_rng(seed)
    x, y, row = (rng.integers(-9, 9, shape) for shape in ((3, 4), (3, 4), (4,)))

    def program(x, y, row):
        return drawn(random.Random(seed), x, y, row)

    arguments = [smelt.array(a, dtype=smelt.int64) for a in (x, y, row)]
    short = smelt.make_ir(program, short=True)(*arguments)
    if reversal(short):
        short = re.sub(r"reverse\((.*?), axes=\[0\]\)", r"np.flip(\1, 0)", short)
    for got, expected in zip(run(short, [x, y, row]), program(*arguments), strict=True):
        np.testing.assert_array_equal(got, np.array(expected), short)


def test_floats_and_products_are_python():
    def program(x, w, b):
        h = smelt.exp(x @ w + b) / 2
        return h, (h - h.sum(axis=-1, keepdims=True)) ** h, -(x**2), (2 - x) - 1, 2 - (x - 1), x / (x * 3)

    rng = np.random.default_rng(0)
    x, w, b = (rng.standard_normal(s).astype(np.float32) for s in ((2, 3), (3, 4), (4,)))
    short = smelt.make_ir(program, short=True)(*map(smelt.array, (x, w, b)))
    short = re.sub(r"integer_power\((%\w+), exponent=(\d)\)", r"np.power(\1, \2)", short)
    with np.errstate(all="ignore"):
        found = run(short, [x, w, b])
    for got, expected in zip(found, program(*map(smelt.array, (x, w, b))), strict=True):
        np.testing.assert_allclose(got, np.array(expected), 1e-5)


def test_contractions_are_einsums():
    def program(x, y):
        return smelt.einsum("bij,bkj->bik", x, y), smelt.tensordot(x, y, ((0, 2), (0, 2)))

    rng = np.random.default_rng(0)
    x, y = rng.integers(-9, 9, (2, 3, 4)), rng.integers(-9, 9, (2, 5, 4))
    arguments = [smelt.array(a, dtype=smelt.int64) for a in (x, y)]
    short = smelt.make_ir(program, short=True)(*arguments)
    assert "einsum(" in short or "@" in short
    for got, expected in zip(run(short, [x, y]), program(*arguments), strict=True):
        np.testing.assert_array_equal(got, np.array(expected), short)


def test_stages_and_lines():
    compiled = smelt.compile(lambda x: x * (1 + smelt.erf(x / 2**0.5)) / 2)
    program = compiled.trace(smelt.ones((8,))).lower().compile()
    fused = program.as_text("fuse", short=True, lines=True)
    assert "[fusion=map]" in fused and "erf(%x / 1.41421)" in fused and "test_short.py:" in fused
    assert len(program.as_text("graph", short=True).splitlines()) == 4
    with pytest.raises(IRError, match="no short form"):
        program.as_text("kernel", short=True)
    with pytest.raises(smelt.SmeltError, match="there is no stage"):
        program.as_text("nosuch", short=True)


def test_symbols_stand_between_two_operands_or_before_one():
    for op in registry.values():
        if op.symbol:
            assert len(op.operand_names) in (1, 2) and not op.variadic and op.num_results == 1

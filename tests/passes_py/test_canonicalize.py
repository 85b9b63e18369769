"""canonicalize keeps every bit of random programs, also for NaN, infinities and signed zeros."""

from __future__ import annotations

import random
import warnings

import numpy as np
import pytest

from smelt.ir import dtypes, mlir, text
from smelt.ir.attributes import LITERAL_DTYPES
from smelt.ir.aval import Aval
from smelt.ir.builder import Value, function_type, new_function
from smelt.ir.dialect import context
from smelt.ir.errors import SmeltError
from smelt.ir.interpreter import Interpreter
from smelt.ir.op import registry
from smelt.passes import Pipeline

DTYPES = (dtypes.float32, dtypes.int32, dtypes.bool_, dtypes.float16, dtypes.uint8, dtypes.bfloat16)
SHAPES = ((), (3,), (1,), (2, 3), (1, 3), (2, 1), (3, 2), (2, 1, 3), (0, 3), (4, 2))
NUMBERS = (0, 1, -1, 2, 0.5, -0.0, 4.0, float("nan"), float("inf"), float("-inf"))
SPECIAL = (0.0, -0.0, 1.0, -1.5, 2.0, 3.25, np.inf, -np.inf, np.nan, 1e-3)

ELEMENTWISE = [op for op in registry.values() if op.kind == "elementwise"]
REDUCTIONS = [op for op in registry.values() if op.kind == "reduction"]


class Program:
    """A random function of a few ops, many of which a pattern matches."""

    def __init__(self, seed: int):
        self.r = random.Random(seed)
        self.module = text.parse("module {}")
        self.avals = [Aval(self.r.choice(SHAPES), self.r.choice(DTYPES)) for _ in range(3)]
        function, arguments, self.b = new_function(self.module, "main", self.avals, [], public=True)
        values = list(arguments)
        for _ in range(self.r.randint(3, 14)):
            try:
                value = self.r.choice((self.fill, self.elementwise, self.elementwise, self.reduce, self.move))(values)
            except SmeltError:
                continue  # the draw did not fit
            if value.aval.size < 500:
                values.append(value)
        outs = values[-3:]
        self.b.return_(outs)
        kind = function_type(self.avals, [o.aval for o in outs])
        function.attributes["function_type"] = mlir.ir.TypeAttr.get(kind, context())

    def number(self, dtype) -> float | int:
        return self.r.choice(NUMBERS if dtype.is_float else (0, 1, 2, 5))

    def fit(self, x: Value, aval: Aval) -> Value:
        x = self.b.convert_to(x, aval.dtype)
        if x.shape != aval.shape and x.aval.size == aval.size:
            return self.b.reshape(x, shape=aval.shape)
        try:
            return self.b.broadcast_to(x, aval.shape)
        except SmeltError:
            return self.b.full(aval.shape, self.number(aval.dtype), aval.dtype)

    def fill(self, values: list[Value]) -> Value:
        x = self.r.choice(values)
        if x.dtype in LITERAL_DTYPES and self.r.random() < 0.4:
            elements = [self.r.randint(0, 2) for _ in range(x.aval.size)]
            return self.b.literal(np.array(elements).reshape(x.shape).astype(x.dtype.numpy))
        return self.b.full(self.r.choice(SHAPES), self.number(x.dtype), x.dtype)

    def elementwise(self, values: list[Value]) -> Value:
        op, x = self.r.choice(ELEMENTWISE), self.r.choice(values)
        if op.name == "bitcast" and x.dtype.is_float:  # the sign of a NaN is free
            return x
        operands = [self.fit(self.r.choice(values), x.aval) for _ in op.operand_names]
        operands[self.r.randrange(len(operands))] = x
        if self.r.random() < 0.4:
            operands[-1] = self.b.full(x.shape, self.number(x.dtype), x.dtype)
        if op.name == "select":
            operands[0] = self.fit(operands[0], x.aval.with_dtype(dtypes.bool_))
        attrs = {"dtype": self.r.choice(DTYPES), "exponent": self.r.randint(-1, 3)}
        return self.b.emit(op, operands, {k: attrs[k] for k in op.attrs})[0]

    def axes(self, x: Value) -> tuple[int, ...]:
        return tuple(sorted(self.r.sample(range(x.ndim), self.r.randint(0, x.ndim))))

    def reduce(self, values: list[Value]) -> Value:
        op, x = self.r.choice(REDUCTIONS), self.r.choice(values)
        if x.dtype.is_float:  # NumPy starts a sum from 0, which turns -0 into 0
            x = self.b.abs(x)
        return self.b.emit(op, [x], {"axes": self.axes(x)})[0]

    def move(self, values: list[Value]) -> Value:
        b, r, x = self.b, self.r, self.r.choice(values)
        kind = r.randrange(7)
        if kind == 0:
            same = [s for s in SHAPES if Aval(s, x.dtype).size == x.aval.size]
            return b.reshape(x, shape=r.choice([*same, tuple(d for d in x.shape if d != 1), (1, *x.shape)]))
        if kind == 1:
            return b.transpose(x, permutation=tuple(r.sample(range(x.ndim), x.ndim)))
        if kind == 2:
            return b.broadcast(x, shape=r.choice([(2, 3), (2, 2, 3), (2, 2, 1), (3,), (5, *x.shape), x.shape]))
        if kind == 3:
            start = tuple(r.randint(0, d) for d in x.shape)
            stop = tuple(r.randint(a, d) for a, d in zip(start, x.shape))
            return b.slice(x, start=start, stop=stop, stride=tuple(r.choice((1, 1, 2)) for _ in x.shape))
        if kind == 4:
            return b.reverse(x, axes=self.axes(x))
        if kind == 5:
            low, high, mid = (tuple(r.choice((0, 0, n)) for _ in x.shape) for n in (1, 2, 1))
            value = b.full((), r.choice((0, 1)), x.dtype)
            return b.pad(x, value, low=low, high=high, interior=mid if r.random() < 0.3 else (0,) * x.ndim)
        other = self.fit(r.choice(values), x.aval)
        return b.concatenate(x, other, axis=r.randrange(max(1, x.ndim)))


def inputs(avals: list[Aval], seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    draw = {"b": lambda s: rng.random(s) < 0.5, "f": lambda s: rng.choice(SPECIAL, s)}
    return [
        np.asarray(draw.get(a.dtype.kind, lambda s: rng.integers(0, 7, s))(a.shape)).astype(a.dtype.numpy)
        for a in avals
    ]


def assert_same_bits(want: np.ndarray, have: np.ndarray, signs: bool) -> None:
    want, have = (x.astype(np.float64) if x.dtype.kind in "fV" else x for x in map(np.asarray, (want, have)))
    np.testing.assert_array_equal(have, want)
    if signs and want.dtype.kind == "f":
        real = ~np.isnan(want)
        np.testing.assert_array_equal(np.signbit(have[real]), np.signbit(want[real]))


#: Where the order of operands may show: NumPy takes either of max(0, -0).
SIGN_IS_FREE = ("constant-on-the-right", "same-operands")


@pytest.mark.parametrize("block", range(8))
def test_random_programs_keep_their_values(block):
    pipeline = Pipeline.parse("canonicalize")
    for seed in range(block * 50, block * 50 + 50):
        program = Program(seed)
        arrays = inputs(program.avals, seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            want = Interpreter(program.module)("main", arrays)
            (record,) = pipeline.run(program.module)
            text.verify(program.module)
            have = Interpreter(program.module)("main", arrays)
            (again,) = pipeline.run(program.module)
        signs = not any(name.startswith(SIGN_IS_FREE) for name in record.statistics)
        for w, h in zip(want, have):
            assert_same_bits(w, h, signs)
        assert not +again.statistics, f"seed {seed}: a second run found {dict(again.statistics)}"

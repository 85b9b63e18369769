"""Every elementwise op that `emit` translates, on edge values, against NumPy: the text is checked and run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from smelt.backends.metal.simulator import Library

from .emit_kernels import STORED, Elementwise, emitted, module

SIGNED = {8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}
Oracle = Callable[..., np.ndarray]


def signed(x: np.ndarray) -> np.ndarray:
    return x.view(SIGNED[8 * x.dtype.itemsize])


def edges(element: str) -> np.ndarray:
    """Values at which rules go wrong; 16 of them."""
    if element in ("f32", "f16"):
        tiny, huge = (1e-45, 3.4e38) if element == "f32" else (6e-8, 65504)
        values = [0, -0.0, 1, -1, 0.5, -2.5, 3.5, np.inf, -np.inf, np.nan, tiny, huge, 2.5, 100.25, -7.25, -huge]
        return np.array(values, STORED[element])
    if element == "bf16":
        return (edges("f32").view(np.uint32) >> 16).astype(np.uint16)
    if element == "i1":
        return np.arange(16).astype(np.uint8) % 2
    bits = int(element[1:])
    top = 1 << (bits - 1)
    values = [0, 1, 2, 3, 5, 7, 10, 100, top - 1, top, top + 1, 2 * top - 1, 2 * top - 2, 2 * top - 10, top // 2, 77]
    return np.array(values, STORED[element])


@dataclass(frozen=True)
class Case:
    """An op: MLIR with <f32> for a type, input and result types, and NumPy's answer.

    `close`: to some last bits; `zeros`: signs of zeros count.
    """

    op: str
    inputs: tuple[str, ...]
    result: str
    oracle: Oracle
    lanes: tuple[int, ...] = (1, 4)
    close: bool = False
    zeros: bool = True

    def operands(self) -> list[np.ndarray]:
        values = [edges(t) for t in self.inputs]
        if len(values) == 1:
            return values
        if len(values) == 2:
            found = [np.repeat(values[0], 16), np.tile(values[1], 16)]
        else:
            found = [np.repeat(values[0], 16), np.tile(values[1], 16), np.tile(np.roll(values[2], 3), 16)]
        bits = 8 * found[0].dtype.itemsize
        name = self.op.split(" ")[0].removeprefix("arith.")
        if name.startswith(("div", "rem", "floordiv", "ceildiv")) and self.inputs[0][0] == "i":
            overflow = signed(found[1]) == -1
            found[1] = np.where((found[1] == 0) | overflow, 3, found[1]).astype(found[1].dtype)
        if name.startswith("sh"):
            found[1] = found[1] % bits
        return found


def _binary(name: str, t: str, oracle: Oracle, result: str | None = None, **kw) -> Case:
    suffix = f" : <{t}>"
    return Case(f"{name} %a, %b{suffix}", (t, t), result or t, oracle, **kw)


def _unary(name: str, t: str, oracle: Oracle, **kw) -> Case:
    return Case(f"{name} %a : <{t}>", (t,), t, oracle, **kw)


def _cast(name: str, source: str, target: str, oracle: Oracle, **kw) -> Case:
    return Case(f"{name} %a : <{source}> to <{target}>", (source,), target, oracle, **kw)


def _truncated(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Integer division that rounds to zero; Python's numbers do not overflow."""
    quotients = [int(x) // int(y) for x, y in zip(np.abs(a.astype(object)), np.abs(b.astype(object)))]
    signs = [-1 if (x < 0) != (y < 0) else 1 for x, y in zip(a, b)]
    return np.array([q * s for q, s in zip(quotients, signs)], object)


def _high(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    bits = 8 * a.dtype.itemsize
    return np.array([(int(x) * int(y) >> bits) & ((1 << bits) - 1) for x, y in zip(a, b)], f"u{a.dtype.itemsize}")


def _object(f: Callable) -> Oracle:
    """An oracle in Python's integers, wrapped to the width."""
    def oracle(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        mask = (1 << 8 * a.dtype.itemsize) - 1
        return np.array([int(f(int(x), int(y))) & mask for x, y in zip(signed(a), signed(b))], a.dtype)
    return oracle


def _count(f: Callable[[str], int]) -> Oracle:
    return lambda a: np.array([f(f"{int(x):0{8 * a.dtype.itemsize}b}") for x in a], a.dtype)


def _leading(word: str) -> int:
    return len(word) - len(word.lstrip("0"))


def _to_bf16(x: np.ndarray) -> np.ndarray:
    import ml_dtypes

    return x.astype(ml_dtypes.bfloat16).view(np.uint16)


def _from_bf16(x: np.ndarray) -> np.ndarray:
    return (x.astype(np.uint32) << 16).view(np.float32)


def float_cases(t: str) -> list[Case]:
    compare = {
        "oeq": np.equal, "ogt": np.greater, "oge": np.greater_equal, "olt": np.less, "ole": np.less_equal,
        "one": lambda a, b: (a < b) | (a > b), "ord": lambda a, b: ~(np.isnan(a) | np.isnan(b)),
        "ueq": lambda a, b: ~((a < b) | (a > b)), "ugt": lambda a, b: ~(a <= b), "uge": lambda a, b: ~(a < b),
        "ult": lambda a, b: ~(a >= b), "ule": lambda a, b: ~(a > b), "une": np.not_equal,
        "uno": lambda a, b: np.isnan(a) | np.isnan(b),
    }  # fmt: skip
    found = [
        _binary("arith.addf", t, np.add), _binary("arith.subf", t, np.subtract), _binary("arith.mulf", t, np.multiply),
        _binary("arith.divf", t, np.divide), _binary("arith.remf", t, np.fmod),
        _binary("arith.maximumf", t, np.maximum, zeros=False),
        _binary("arith.minimumf", t, np.minimum, zeros=False),
        _binary("math.copysign", t, np.copysign),
        _unary("arith.negf", t, np.negative), _unary("math.absf", t, np.abs), _unary("math.floor", t, np.floor),
        _unary("math.ceil", t, np.ceil), _unary("math.trunc", t, np.trunc), _unary("math.roundeven", t, np.rint),
        _unary("math.sqrt", t, np.sqrt),
    ]  # fmt: skip
    found += [_binary(f"arith.cmpf {p},", t, f, "i1") for p, f in compare.items()]
    return found


def int_cases(bits: int) -> list[Case]:
    t = f"i{bits}"
    u = STORED[t]
    compare = {
        "eq": np.equal, "ne": np.not_equal, "ult": np.less, "ule": np.less_equal, "ugt": np.greater,
        "uge": np.greater_equal,
    }  # fmt: skip
    signed_compare = {"slt": np.less, "sle": np.less_equal, "sgt": np.greater, "sge": np.greater_equal}
    found = [
        _binary("arith.addi", t, np.add), _binary("arith.subi", t, np.subtract), _binary("arith.muli", t, np.multiply),
        _binary("arith.andi", t, np.bitwise_and), _binary("arith.ori", t, np.bitwise_or),
        _binary("arith.xori", t, np.bitwise_xor), _binary("arith.divui", t, np.floor_divide),
        _binary("arith.remui", t, np.remainder), _binary("arith.maxui", t, np.maximum),
        _binary("arith.minui", t, np.minimum), _binary("arith.shli", t, np.left_shift),
        _binary("arith.shrui", t, np.right_shift),
        _binary("arith.shrsi", t, lambda a, b: (signed(a) >> signed(b)).view(a.dtype)),
        _binary("arith.maxsi", t, lambda a, b: np.maximum(signed(a), signed(b)).view(a.dtype)),
        _binary("arith.minsi", t, lambda a, b: np.minimum(signed(a), signed(b)).view(a.dtype)),
        _binary("arith.divsi", t, _object(lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1))),
        _binary("arith.remsi", t, _object(lambda a, b: abs(a) % abs(b) * (-1 if a < 0 else 1))),
        _binary("arith.floordivsi", t, _object(lambda a, b: a // b), lanes=(1,)),
        _binary("arith.ceildivsi", t, _object(lambda a, b: -(-a // b)), lanes=(1,)),
        _unary("math.absi", t, lambda a: np.abs(signed(a)).view(a.dtype)),
        _unary("math.ctlz", t, _count(_leading)), _unary("math.cttz", t, _count(lambda w: _leading(w[::-1]))),
        _unary("math.ctpop", t, _count(lambda w: w.count("1"))),
        Case(f"%s, %r = arith.addui_extended %a, %b : <{t}>, <i1>", (t, t), "i1",
             lambda a, b: (a + b < a), lanes=(1,)),
        Case(f"%s, %r = arith.mului_extended %a, %b : <{t}>", (t, t), t, _high, lanes=(1,)),
        Case(f"%s, %r = arith.mulsi_extended %a, %b : <{t}>", (t, t), t,
             lambda a, b: _high(signed(a), signed(b)), lanes=(1,)),
        Case(f"%r, %s = arith.mului_extended %a, %b : <{t}>", (t, t), t, np.multiply, lanes=(1,)),
        Case(f"arith.extui %a : <i1> to <{t}>", ("i1",), t, lambda a: a.astype(u)),
        Case(f"arith.extsi %a : <i1> to <{t}>", ("i1",), t, lambda a: (-a.astype(SIGNED[bits])).view(u)),
        Case(f"arith.trunci %a : <{t}> to <i1>", (t,), "i1", lambda a: (a & 1).astype(np.uint8)),
    ]  # fmt: skip
    found += [_binary(f"arith.cmpi {p},", t, f, "i1") for p, f in compare.items()]
    found += [
        _binary(f"arith.cmpi {p},", t, lambda a, b, f=f: f(signed(a), signed(b)), "i1")
        for p, f in signed_compare.items()
    ]
    return found


def conversion_cases() -> list[Case]:
    found = [
        _cast("arith.truncf", "f32", "f16", lambda a: a.astype(np.float16)),
        _cast("arith.extf", "f16", "f32", lambda a: a.astype(np.float32)),
        _cast("arith.truncf", "f32", "bf16", _to_bf16),
        _cast("arith.extf", "bf16", "f32", _from_bf16),
        _cast("arith.bitcast", "f32", "i32", lambda a: a.view(np.uint32)),
        _cast("arith.bitcast", "i32", "f32", lambda a: a.view(np.float32)),
        _cast("arith.bitcast", "f16", "i16", lambda a: a.view(np.uint16)),
        _cast("arith.bitcast", "bf16", "i16", lambda a: a),
        _cast("arith.uitofp", "i1", "f32", lambda a: a.astype(np.float32)),
        _cast("arith.sitofp", "i1", "f32", lambda a: 0 - a.astype(np.float32)),
        Case("arith.select %c, %a, %b : <i1>, <f32>", ("f32", "f32", "i1"), "f32", lambda a, b, c: np.where(c, a, b)),
        Case("arith.select %c, %a, %b : <i1>, <i8>", ("i8", "i8", "i1"), "i8", lambda a, b, c: np.where(c, a, b)),
        Case("math.fma %a, %b, %c : <f32>", ("f32", "f32", "f32"), "f32",
             lambda a, b, c: (a.astype(np.float64) * b + c).astype(np.float32)),
        _binary("arith.maxnumf", "f32", np.fmax, zeros=False), _binary("arith.minnumf", "f32", np.fmin, zeros=False),
        *[_binary(f"arith.{name}", "i1", f) for name, f in (
            ("andi", np.bitwise_and), ("ori", np.bitwise_or), ("xori", np.bitwise_xor), ("addi", np.bitwise_xor),
            ("muli", np.bitwise_and), ("cmpi eq,", np.equal), ("cmpi ult,", np.less), ("cmpi slt,", np.greater),
            ("maxsi", np.bitwise_and), ("minsi", np.bitwise_or),
        )],
        *[Case(f"math.{name} %a : <f32>", ("f32",), "f32", f, close=True) for name, f in (
            ("exp", np.exp), ("log", np.log), ("exp2", np.exp2), ("log2", np.log2), ("tanh", np.tanh),
            ("sin", np.sin), ("cos", np.cos), ("atan", np.arctan), ("rsqrt", lambda a: 1 / np.sqrt(a)),
        )],
    ]  # fmt: skip
    for bits in (8, 16, 32, 64):
        t, s = f"i{bits}", SIGNED[bits]
        found.append(_cast("arith.uitofp", t, "f32", lambda a: a.astype(np.float32)))
        found.append(_cast("arith.sitofp", t, "f32", lambda a, s=s: a.view(s).astype(np.float32)))
        found.append(
            Case(f"%m = arith.constant 90.75 : f32\n%n = arith.minimumf %a, %m : f32\n"
                 f"%z = arith.constant -90.75 : f32\n%p = arith.maximumf %n, %z : f32\n"
                 f"%q = arith.cmpf ord, %p, %p : f32\n"
                 f"%v = arith.select %q, %p, %z : f32\n%r = arith.fptosi %v : f32 to {t}", ("f32",), t,
                 lambda a, s=s: np.where(np.isnan(a), -90, np.clip(a, -90.75, 90.75)).astype(s), lanes=(1,))
        )  # fmt: skip
        found.append(
            Case(f"%v = math.absf %a : f32\n%m = arith.constant 90.75 : f32\n%w = arith.minnumf %v, %m : f32\n"
                 f"%r = arith.fptoui %w : f32 to {t}", ("f32",), t,
                 lambda a, t=t: np.fmin(np.abs(a), np.float32(90.75)).astype(STORED[t]), lanes=(1,))
        )  # fmt: skip
        for wide in (8, 16, 32, 64):
            w, sw = f"i{wide}", SIGNED[wide]
            if wide > bits:
                found.append(_cast("arith.extui", t, w, lambda a, w=w: a.astype(STORED[w])))
                found.append(_cast("arith.extsi", t, w, lambda a, s=s, sw=sw: a.view(s).astype(sw)))
                found.append(_cast("arith.trunci", w, t, lambda a, t=t: a.astype(STORED[t])))
    for t in ("i32", "i64"):
        for name in ("index_cast", "index_castui"):
            op = f"%n = arith.{name} %a : {t} to index\n%r = arith.{name} %n : index to i32"
            found.append(Case(op, (t,), "i32", lambda a: a.astype(np.uint32), lanes=(1,)))
    found.append(
        Case("%n = arith.index_cast %a : i32 to index\n%r = arith.index_cast %n : index to i64", ("i32",), "i64",
             lambda a: a.view(np.int32).astype(np.int64), lanes=(1,))
    )  # fmt: skip
    return found


GROUPS: dict[str, list[Case]] = {
    "f32": float_cases("f32"), "f16": float_cases("f16"), "i8": int_cases(8), "i16": int_cases(16),
    "i32": int_cases(32), "i64": int_cases(64), "conversions": conversion_cases(),
}  # fmt: skip


def _compare(found: np.ndarray, want: np.ndarray, close: bool, what: str) -> None:
    want = np.asarray(want)
    if want.dtype.kind == "b":
        want = want.astype(np.uint8)
    if want.dtype != found.dtype:
        want = want.view(found.dtype)
    if close:
        np.testing.assert_allclose(found, want, rtol=2e-6, err_msg=what)
        return
    if found.dtype.kind == "f":
        bits = f"u{found.dtype.itemsize}"
        nan = np.isnan(want)
        np.testing.assert_array_equal(np.isnan(found), nan, what)
        found, want = (np.where(nan, 0, x).astype(found.dtype).view(bits) for x in (found, want))
    np.testing.assert_array_equal(found, want, what)


@pytest.mark.parametrize("group", GROUPS)
def test_values(group: str) -> None:
    kernels = []
    for i, case in enumerate(GROUPS[group]):
        for lanes in case.lanes:
            name = f"k{i}_{lanes}"
            count = len(case.operands()[0])
            kernels.append((case, Elementwise(name, case.op, case.inputs, case.result, count, lanes)))
    metal, manifest = emitted(module("\n".join(k.text for _, k in kernels)))
    library = Library(metal)
    failures = []
    for case, k in kernels:
        operands = case.operands()
        with np.errstate(all="ignore"):
            want = case.oracle(*operands)
        found = k.run(library, manifest, operands)
        if not case.zeros:
            found, want = found + 0, want + 0
        if case.op.startswith("arith.truncf") and case.result == "bf16":
            nan = np.isnan(operands[0])
            found, want = found[~nan], want[~nan]
        try:
            _compare(found, want, case.close, f"{case.op} on {k.lanes} lanes")
        except AssertionError as error:
            start = metal.index(f"// {k.name}:")
            failures.append(f"{error}\n{metal[start : metal.index('}', start)]}")
    assert not failures, f"{len(failures)} failures\n" + "\n".join(failures[:6])

"""Random bits of StableHLO programs are XLA's, bit by bit."""

from __future__ import annotations

import numpy as np
import pytest

import smelt
from smelt.ir.errors import IRError

#: Algorithm, dtype, shape; how far the counter went; the first two and last two numbers, and all by exclusive or, as
#: XLA makes them on a CPU from this state.
STATE = np.array([1 | 2 << 32, 3 | 4 << 32], np.uint64)
CASES = [
    ("THREE_FRY", "uint32", (5,), 3, [1576285164, 2249660814, 2425682526, 2436392515], 4134215383),
    ("THREE_FRY", "uint32", (4, 3), 6, [1576285164, 740599976, 3953550934, 2023144656], 4216363403),
    ("THREE_FRY", "uint32", (3, 3), 6, [1576285164, 740599976, 3981753173, 3812192618], 4007147178),
    (
        "THREE_FRY",
        "uint64",
        (3, 4),
        12,
        [9662219624799024108, 10418227120389269672, 75563057951747533, 14398413899885339514],
        3055198643009811858,
    ),
    ("PHILOX", "uint32", (3, 5), 4, [512747620, 1298009047, 3179752574, 3495892623], 1084650782),
    (
        "PHILOX",
        "uint64",
        (5,),
        3,
        [5574906407289874532, 3272025663544478142, 9254853183523022196, 14929923424383677111],
        5667963677431512674,
    ),
    ("PHILOX", "uint8", (8,), 2, [100, 215, 116, 239], 122),
    ("DEFAULT", "uint16", (5,), 2, [59492, 3031, 37377, 18555], 61559),
]


def program(algorithm: str, dtype: str, shape: tuple[int, ...], state: str = "2xui64") -> str:
    kind = (
        "tensor<" + "x".join(map(str, shape)) + "x" + {"f": "f", "u": "ui"}[dtype[0]] + dtype.lstrip("uintfloa") + ">"
    )
    state = f"tensor<{state}>"
    return f"""func.func @main(%s: {state}) -> ({state}, {kind}) {{
      %a, %b = stablehlo.rng_bit_generator %s, algorithm = {algorithm} : ({state}) -> ({state}, {kind})
      return %a, %b : {state}, {kind}
    }}"""


@pytest.mark.parametrize("algorithm, dtype, shape, steps, ends, together", CASES)
def test_bits(algorithm, dtype, shape, steps, ends, together) -> None:
    f = smelt.from_stablehlo(program(algorithm, dtype, shape))
    for g in (f, smelt.compile(f)):
        state, found = (np.array(x) for x in g(smelt.array(STATE, smelt.uint64)))
        assert found.shape == shape and found.dtype == dtype
        assert state.tolist() == [STATE[0], STATE[1] + steps]
        flat = found.reshape(-1)
        assert flat[[0, 1, -2, -1]].tolist() == ends
        assert np.bitwise_xor.reduce(flat) == together


def test_the_counter_of_three_words_carries() -> None:
    """What follows the last counter of one half is the first of the next."""
    f = smelt.from_stablehlo(program("PHILOX", "uint32", (8,), "3xui64"))
    state, found = f(smelt.array(np.array([7, 2**64 - 1, 5], np.uint64), smelt.uint64))
    assert state.tolist() == [7, 1, 6]
    again = f(smelt.array(np.array([7, 0, 6], np.uint64), smelt.uint64))[1]
    assert found.tolist()[4:] == again.tolist()[:4]


def test_other_states_are_refused() -> None:
    with pytest.raises(IRError, match=r"rng_bit_generator starts from ui64\[4\]; from ui64\[2\]"):
        smelt.from_stablehlo(program("PHILOX", "uint32", (8,), "4xui64"))


def drawn(distribution: str, kind: str, shape: tuple[int, ...] = (1000,)) -> str:
    """A program that draws numbers by the state that nobody names."""
    sizes = ", ".join(map(str, shape))
    one, many = f"tensor<{kind}>", f"tensor<{'x'.join(map(str, shape))}x{kind}>"
    return f"""func.func @main(%a: {one}, %b: {one}) -> {many} {{
      %s = stablehlo.constant dense<[{sizes}]> : tensor<{len(shape)}xi64>
      %0 = stablehlo.rng %a, %b, %s, distribution = {distribution} : ({one}, {one}, tensor<{len(shape)}xi64>) -> {many}
      return %0 : {many}
    }}"""


@pytest.mark.parametrize("kind", ["f16", "bf16", "f32", "f64", "i8", "i32", "ui32", "i64"])
def test_uniform_numbers(kind) -> None:
    f = smelt.from_stablehlo(drawn("UNIFORM", kind, (20, 50)))
    dtype = {"f": "float", "bf": "bfloat", "i": "int", "ui": "uint"}[kind.rstrip("0123456789")] + kind.lstrip("bfui")
    ends = smelt.array(2, getattr(smelt, dtype)), smelt.array(7, getattr(smelt, dtype))
    smelt.random.seed(3)
    first, second = f(*ends), f(*ends)
    assert first.shape == (20, 50) and str(first.dtype).endswith(dtype)
    x = np.array(first.astype(smelt.float64))
    assert x.min() >= 2 and (x.max() <= 7 if "f" in kind else x.max() == 6) and abs(x.mean() - x.min() - 2) < 0.8
    assert not bool(smelt.array_equal(first, second))
    smelt.random.seed(3)
    assert bool(smelt.array_equal(f(*ends), first))


def test_normal_numbers() -> None:
    f = smelt.from_stablehlo(drawn("NORMAL", "f32"))
    x = np.array(f(smelt.array(5.0), smelt.array(2.0)))
    assert abs(x.mean() - 5) < 0.4 and abs(x.std() - 2) < 0.4


def test_compiled_functions_draw_from_the_state_that_they_take() -> None:
    f = smelt.from_stablehlo(drawn("UNIFORM", "f32", (8,)))
    g = smelt.compile(lambda: f(smelt.array(0.0), smelt.array(1.0)), inputs=smelt.random.state,
                      outputs=smelt.random.state)  # fmt: skip
    assert not bool(smelt.array_equal(g(), g()))


def test_numbers_of_loops_are_refused() -> None:
    program = """func.func @main(%a: tensor<f32>) -> tensor<f32> {
      %s = stablehlo.constant dense<> : tensor<0xi64>
      %0 = stablehlo.while(%x = %a) : tensor<f32>
        cond { %c = stablehlo.compare LT, %x, %a : (tensor<f32>, tensor<f32>) -> tensor<i1>
               stablehlo.return %c : tensor<i1> }
        do { %y = stablehlo.rng %x, %a, %s, distribution = UNIFORM
                      : (tensor<f32>, tensor<f32>, tensor<0xi64>) -> tensor<f32>
             stablehlo.return %y : tensor<f32> }
      return %0 : tensor<f32>
    }"""
    with pytest.raises(IRError, match="draws within a loop"):
        smelt.from_stablehlo(program)(smelt.array(1.0))


def test_other_numbers_are_refused() -> None:
    with pytest.raises(IRError, match="floating-point numbers are translated"):
        smelt.from_stablehlo(drawn("UNIFORM", "i1"))(smelt.array(False), smelt.array(True))

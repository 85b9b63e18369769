"""Functions of Metal's library by type in the simulator, against NumPy in float64 and Python's integers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from smelt.backends.metal.simulator import Library, Options
from smelt.ir.errors import AttributeValueError

from .builtins import FLOAT_FUNCTIONS, FLOATS, INTEGERS, Function, Whole, arity, ulps

HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"
SIZE = 240
ORDERS = [Options(), Options("reverse"), Options("shuffled", 7), Options("shuffled", 8, poison=True, guard=True)]


def run(text: str, entry: str, arrays: Sequence[np.ndarray], threads: int, options: Options | None = None) -> None:
    buffers = {i: (x.ctypes.data, x.nbytes) for i, x in enumerate(arrays)}
    Library(HEAD + text, options).launch(entry, buffers, (1, 1, 1), (threads, 1, 1))


def kernels(functions: Sequence[Function], kind: str) -> str:
    """A kernel that applies every function to scalars, and one that does to vectors of two, three and four."""
    scalars, vectors = [], []
    for n, function in enumerate(functions):
        scalars.append(f"  out[{n} * {SIZE} + i] = T({function.call});")
        if function.vectors:
            vectors.append(
                f"  {{ V r = V({function.call}); for (int k = 0; k < N; k++) out[{n} * {SIZE} + at + k] = r[k]; }}"
            )
    body = "\n".join(vectors)
    return f"""
typedef {kind} T;
kernel void scalars(device const T* a [[buffer(0)]], device const T* b [[buffer(1)]], device const T* c [[buffer(2)]],
                    device T* out [[buffer(3)]], uint i [[thread_position_in_grid]]) {{
  T x = a[i], y = b[i], z = c[i];
{chr(10).join(scalars)}
}}
template <int N> [[kernel]] void vectors(device const T* a [[buffer(0)]], device const T* b [[buffer(1)]],
    device const T* c [[buffer(2)]], device T* out [[buffer(3)]], uint i [[thread_position_in_grid]]) {{
  typedef vec<T, N> V;
  V x, y, z;
  uint at = i * N;
  for (int k = 0; k < N; k++) {{ x[k] = a[at + k]; y[k] = b[at + k]; z[k] = c[at + k]; }}
{body}
}}
template [[host_name("vectors2")]] [[kernel]] decltype(vectors<2>) vectors<2>;
template [[host_name("vectors3")]] [[kernel]] decltype(vectors<3>) vectors<3>;
template [[host_name("vectors4")]] [[kernel]] decltype(vectors<4>) vectors<4>;
"""


def results(functions: Sequence[Function], kind: str, operands: Sequence[np.ndarray]) -> np.ndarray:
    """What the functions give for scalars, after vectors have given the same."""
    text, dtype = kernels(functions, kind), operands[0].dtype
    out = np.zeros((len(functions), SIZE), dtype)
    run(text, "scalars", [*operands, out], SIZE)
    for width in (2, 3, 4):
        again = np.zeros_like(out)
        run(text, f"vectors{width}", [*operands, again], SIZE // width)
        for n, function in enumerate(functions):
            if function.vectors:
                assert again[n].tobytes() == out[n].tobytes(), f"{function.call} of {kind}{width}"
    return out


@pytest.mark.parametrize("kind", FLOATS)
def test_functions_of_floats(kind: str) -> None:
    dtype = FLOATS[kind]
    domains = sorted({(f.low, f.high) for f in FLOAT_FUNCTIONS})
    wrong = []
    for seed, (low, high) in enumerate(domains):
        functions = [f for f in FLOAT_FUNCTIONS if (f.low, f.high) == (low, high)]
        rng = np.random.default_rng(seed)
        operands = [rng.uniform(low, high, SIZE).astype(dtype) for _ in range(3)]
        for x in operands:  # a number that rounding took out of the domain
            x[(x.astype(np.float64) < low) | (x.astype(np.float64) > high)] = dtype.type((low + high) / 2)
        out = results(functions, kind, operands)
        for n, function in enumerate(functions):
            wide = [x.astype(np.float64) for x in operands[: arity(function.call)]]
            wanted = function.meaning(*wide)
            # Half types go through float, and are rounded once more.
            allowed = function.ulp if kind == "float" else min(function.ulp, 1) * (8 if "mix" in function.call else 1)
            found = ulps(out[n], wanted.astype(dtype).astype(np.float64) if not allowed else wanted, dtype)
            if found > allowed:
                wrong.append(f"{function.call} of {kind}: {found:.2f} ulp")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("kind", INTEGERS)
def test_functions_of_integers(kind: str) -> None:
    dtype, whole = INTEGERS[kind], Whole(INTEGERS[kind])
    rng = np.random.default_rng(1)
    edges = [whole.low, whole.low + 1, 0, 1, 2, 3, whole.high - 1, whole.high, whole.high // 2]
    edges += [-1, -2] if whole.signed else []

    def draw() -> np.ndarray:
        x = rng.integers(whole.low, whole.high, SIZE, dtype, endpoint=True)
        x[: SIZE // 2] = rng.choice(np.array(edges, dtype), SIZE // 2)
        return x

    operands = [draw(), draw(), draw()]
    functions = whole.functions()
    out = results(functions, kind, operands)
    wrong = []
    for n, function in enumerate(functions):
        for i in range(SIZE):
            values = [int(x[i]) for x in operands[: arity(function.call)]]
            wanted = function.meaning(*values)
            if int(out[n, i]) != wanted:
                wrong.append(f"{function.call} of {kind} at {values}: {int(out[n, i])}, not {wanted}")
                break
    assert not wrong, "\n".join(wrong)


#: Functions of lanes, and of the values and number of each lane of a group; for integers alone where it says so.
LANES: dict[str, tuple[Any, bool]] = {
    "sum(x)": (lambda x, i: x.sum(), False), "product(x)": (lambda x, i: x.prod(), False),
    "min(x)": (lambda x, i: x.min(), False), "max(x)": (lambda x, i: x.max(), False),
    "and(x)": (lambda x, i: np.bitwise_and.reduce(x), True), "or(x)": (lambda x, i: np.bitwise_or.reduce(x), True),
    "xor(x)": (lambda x, i: np.bitwise_xor.reduce(x), True),
    "prefix_inclusive_sum(x)": (lambda x, i: x[: i + 1].sum(), False),
    "prefix_exclusive_sum(x)": (lambda x, i: x[:i].sum(), False),
    "prefix_inclusive_product(x)": (lambda x, i: x[: i + 1].prod(), False),
    "prefix_exclusive_product(x)": (lambda x, i: x[:i].prod(), False),
    "broadcast(x, 2)": (lambda x, i: x[2], False), "broadcast_first(x)": (lambda x, i: x[0], False),
    "shuffle(x, 3)": (lambda x, i: x[3], False), "shuffle_xor(x, 1)": (lambda x, i: x[i ^ 1], False),
    "shuffle_down(x, 1)": (lambda x, i: x[min(i + 1, len(x) - 1)], False),
    "shuffle_up(x, 1)": (lambda x, i: x[max(i - 1, 0)], False),
    "shuffle_rotate_down(x, 1)": (lambda x, i: x[(i + 1) % len(x)], False),
    "shuffle_rotate_up(x, 1)": (lambda x, i: x[(i - 1) % len(x)], False),
    "shuffle_and_fill_down(x, y, 1)": (lambda x, i: x[i + 1] if i + 1 < len(x) else x.dtype.type(7), False),
    "shuffle_and_fill_up(x, y, 1)": (lambda x, i: x[i - 1] if i else x.dtype.type(7), False),
}  # fmt: skip


@pytest.mark.parametrize("kind", ["float", "half", "char", "uchar", "short", "ushort", "int", "uint"])
def test_functions_of_lanes(kind: str) -> None:
    dtype = (FLOATS | INTEGERS)[kind]
    names = [name for name, (_, whole) in LANES.items() if kind in INTEGERS or not whole]
    calls = [f"{group}_{name}" for group in ("simd", "quad") for name in names]
    lines = "\n".join(f"  out[{n} * 64 + i] = {call};" for n, call in enumerate(calls))
    # A fill at the edge of shuffle_down and shuffle_up is undefined: those lanes keep their own value here.
    text = f"""
kernel void k(device const {kind}* in [[buffer(0)]], device {kind}* out [[buffer(1)]],
              uint i [[thread_position_in_grid]]) {{
  {kind} x = in[i], y = {kind}(7);
{lines}
}}
"""
    x = np.random.default_rng(3).integers(1, 3, 64).astype(dtype)
    x[::5] = 1
    outs = []
    for options in ORDERS:
        outs.append(np.zeros((len(calls), 64), dtype))
        run(text, "k", [x, outs[-1]], 64, options)
        assert outs[-1].tobytes() == outs[0].tobytes()
    with np.errstate(all="ignore"):
        for n, call in enumerate(calls):
            group, _, name = call.partition("_")
            size, meaning = 32 if group == "simd" else 4, LANES[name][0]
            for i in range(64):
                lanes = x[i // size * size :][:size]
                wide = lanes.astype(np.float64) if dtype.kind == "f" else lanes
                wanted = np.asarray(meaning(wide, i % size)).astype(dtype)
                assert outs[0][n, i] == wanted, f"{call} of {kind}, lane {i}"


def test_packing() -> None:
    text = """
kernel void k(device const float4* a [[buffer(0)]], device uint* packed [[buffer(1)]],
              device float4* back [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  packed[i * 4] = pack_float_to_unorm4x8(a[i]); packed[i * 4 + 1] = pack_float_to_snorm4x8(a[i]);
  packed[i * 4 + 2] = pack_float_to_unorm2x16(a[i].xy); packed[i * 4 + 3] = pack_half_to_snorm2x16(half2(a[i].xy));
  back[i * 2] = unpack_unorm4x8_to_float(packed[i * 4]); back[i * 2 + 1] = unpack_snorm4x8_to_float(packed[i * 4 + 1]);
}
"""
    a = np.random.default_rng(0).uniform(-1.2, 1.2, (64, 4)).astype(np.float32)
    packed, back = np.zeros((64, 4), np.uint32), np.zeros((64, 2, 4), np.float32)
    run(text, "k", [a, packed, back], 64)
    unsigned, signed = np.rint(np.clip(a, 0, 1) * np.float32(255)), np.rint(np.clip(a, -1, 1) * np.float32(127))
    np.testing.assert_array_equal(packed[:, :1].view(np.uint8), unsigned.astype(np.uint8))
    np.testing.assert_array_equal(packed[:, 1:2].copy().view(np.int8), signed.astype(np.int8))
    np.testing.assert_allclose(back[:, 0], unsigned / 255, rtol=1e-6)
    np.testing.assert_allclose(back[:, 1], signed / 127, rtol=1e-6)
    wide = np.rint(np.clip(a[:, :2], 0, 1) * np.float32(65535)).astype(np.uint16)
    np.testing.assert_array_equal(packed[:, 2:3].copy().view(np.uint16), wide)
    halves = a[:, :2].astype(np.float16).astype(np.float32)
    signed = np.rint(np.clip(halves, -1, 1) * np.float32(32767)).astype(np.int16)
    np.testing.assert_array_equal(packed[:, 3:].copy().view(np.int16), signed)


def test_function_constants() -> None:
    text = """
constant bool wide [[function_constant(0)]];
constant float scale [[function_constant(1)]];
constant float used = is_function_constant_defined(scale) ? scale : 2.0f;
kernel void k(device float* x [[buffer(0)]], device const float* more [[buffer(1), function_constant(wide)]],
              uint i [[thread_position_in_grid]]) {
  x[i] = x[i] * used + (wide ? more[i] : 0.0f);
}
"""
    x, more = np.arange(4, dtype=np.float32), np.full(4, 10, np.float32)
    Library(HEAD + text).launch("k", {0: (x.ctypes.data, x.nbytes)}, (1, 1, 1), (4, 1, 1))
    np.testing.assert_array_equal(x, [0, 2, 4, 6])
    buffers = {0: (x.ctypes.data, x.nbytes), 1: (more.ctypes.data, more.nbytes)}
    Library(HEAD + text, constants={0: True, "scale": 0.5}).launch("k", buffers, (1, 1, 1), (4, 1, 1))
    np.testing.assert_array_equal(x, [10, 11, 12, 13])
    with pytest.raises(AttributeValueError, match="no function constant 7"):
        Library(HEAD + text, constants={7: 1})


def test_literals_have_single_precision() -> None:
    text = """
kernel void k(device float* x [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  float big = 16777216.0 + 1.0;
  x[i] = big - 16777216.0 + 0x1p-1 + 1e0 + sizeof(1.5);
}
"""
    x = np.zeros(1, np.float32)
    run(text, "k", [x], 1)
    assert x[0] == 5.5

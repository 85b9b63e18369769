"""Programs with floats of 8 bits and integers of 4 and 2, of which smelt has no arrays."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import smelt
from smelt.exchange.narrow import TYPES, NarrowFloat
from smelt.ir.errors import IRError

FLOATS = [kind for kind in TYPES.values() if isinstance(kind, NarrowFloat)]


def program(body: str, result: str, argument: str) -> smelt.exchange.StablehloFunction:
    return smelt.from_stablehlo(
        f"func.func @main(%x: tensor<256x{argument}>) -> tensor<256x{result}> {{\n{body}\n}}"
    )


def converted(argument: str, result: str) -> smelt.exchange.StablehloFunction:
    types = f"(tensor<256x{argument}>) -> tensor<256x{result}>"
    return program(f"%0 = stablehlo.convert %x : {types}\nreturn %0 : tensor<256x{result}>", result, argument)


def numpy_of(kind: NarrowFloat) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, kind.numpy))


@pytest.mark.parametrize("kind", FLOATS, ids=lambda kind: kind.name)
def test_floats(kind: NarrowFloat) -> None:
    """All codes as arguments and results; float32 of all sizes, ties, what is too large: rounded as NumPy's type."""
    own = numpy_of(kind)
    codes = np.arange(256, dtype=np.uint8)
    numbers = codes.view(own).astype(np.float32)
    np.testing.assert_array_equal(np.array(converted(kind.name, "f32")(codes)), numbers)
    g = smelt.compile(converted("f32", kind.name))
    middle = np.sort(np.unique(numbers[np.isfinite(numbers)]))
    ties = (middle[1:] + middle[:-1]) / 2
    rng = np.random.default_rng(2)
    sizes = np.exp2(rng.uniform(-24, 18, 4 * 256)).astype(np.float32) * rng.choice([-1, 1], 4 * 256)
    special = np.float32([np.inf, -np.inf, np.nan, 0.0, -0.0, 1e-40, 3e38, -3e38])
    given = np.concatenate([numbers, ties, np.nextafter(ties, 9e9), np.nextafter(ties, -9e9), sizes, special])
    given = np.resize(given.astype(np.float32), (-(-len(given) // 256), 256))
    with np.errstate(all="ignore"):
        for x in given:
            want = x.astype(own)
            found = np.array(g(smelt.array(x))).view(own)
            np.testing.assert_array_equal(found.astype(np.float32), want.astype(np.float32))
            same = ~np.isnan(want.astype(np.float32))
            np.testing.assert_array_equal(found.view(np.uint8)[same], want.view(np.uint8)[same])


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide"])
def test_arithmetic_rounds(name: str) -> None:
    own = np.dtype(ml_dtypes.float8_e4m3fn)
    body = f"%0 = stablehlo.{name} %x, %x : tensor<256xf8E4M3FN>\nreturn %0 : tensor<256xf8E4M3FN>"
    codes = np.arange(256, dtype=np.uint8)
    x = codes.view(own)
    with np.errstate(all="ignore"):
        want = getattr(np, name)(x, x).astype(np.float32)
    found = np.array(program(body, "f8E4M3FN", "f8E4M3FN")(codes)).view(own).astype(np.float32)
    np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize("kind, given", [("i4", np.int8), ("ui4", np.uint8), ("i2", np.int8), ("ui2", np.uint8)])
def test_integers_wrap(kind: str, given: type) -> None:
    body = f"%0 = stablehlo.add %x, %x : tensor<256x{kind}>\nreturn %0 : tensor<256x{kind}>"
    own = np.dtype(getattr(ml_dtypes, f"{'u' if 'u' in kind else ''}int{kind[-1]}"))
    x = np.resize(np.arange(-8, 8), 256).astype(own)
    found = np.array(program(body, kind, kind)(x.astype(given)))
    assert found.dtype == given
    np.testing.assert_array_equal(found, (x + x).astype(given))


SHIFTS = {
    "shift_left": lambda x, n, bits: x << n if n < bits else 0,
    "shift_right_logical": lambda x, n, bits: (x & ((1 << bits) - 1)) >> n,
    "shift_right_arithmetic": lambda x, n, bits: (x - ((x << 1) & (1 << bits))) >> n,
    "popcnt": lambda x, n, bits: (x & ((1 << bits) - 1)).bit_count(),
    "count_leading_zeros": lambda x, n, bits: bits - (x & ((1 << bits) - 1)).bit_length(),
}


@pytest.mark.parametrize("name", SHIFTS)
@pytest.mark.parametrize("kind, given", [("i4", np.int8), ("ui4", np.uint8), ("i2", np.int8), ("ui2", np.uint8)])
def test_bits_of_integers(name: str, kind: str, given: type) -> None:
    """All numbers, shifted by all numbers, which are unsigned."""
    bits, signed = int(kind[-1]), kind[0] == "i"
    numbers = np.arange(-(1 << bits - 1), 1 << bits - 1) if signed else np.arange(1 << bits)
    x, n = (np.resize(v, 256).astype(given) for v in (np.repeat(numbers, len(numbers)), np.tile(numbers, len(numbers))))
    arguments = "%x" if name in ("popcnt", "count_leading_zeros") else "%x, %n"
    f = smelt.from_stablehlo(f"""
    func.func @main(%x: tensor<256x{kind}>, %n: tensor<256x{kind}>) -> tensor<256x{kind}> {{
      %0 = stablehlo.{name} {arguments} : tensor<256x{kind}>
      return %0 : tensor<256x{kind}>
    }}""")
    wide = [SHIFTS[name](int(a) & ((1 << bits) - 1), int(b) & ((1 << bits) - 1), bits) for a, b in zip(x, n)]
    low = [v & ((1 << bits) - 1) for v in wide]
    want = [v - ((v << 1) & (1 << bits)) if signed else v for v in low]
    np.testing.assert_array_equal(np.array(f(x, n)), np.array(want).astype(given))


def test_the_sign_of_an_arithmetic_shift_is_the_first_bit() -> None:
    """Of unsigned integers, too, as XLA shifts them."""
    f = smelt.from_stablehlo("""func.func @main(%x: tensor<4xui8>, %n: tensor<4xui8>) -> tensor<4xui8> {
      %0 = stablehlo.shift_right_arithmetic %x, %n : tensor<4xui8>
      return %0 : tensor<4xui8>
    }""")
    assert np.array(f(np.uint8([200, 255, 3, 128]), np.uint8([1, 1, 1, 9]))).tolist() == [228, 255, 1, 255]


@pytest.mark.parametrize("name", ["exponential", "tanh", "sqrt", "floor", "sign", "abs"])
def test_functions_round(name: str) -> None:
    own = np.dtype(ml_dtypes.float8_e5m2)
    codes = np.arange(256, dtype=np.uint8)
    wide = codes.view(own).astype(np.float64)
    with np.errstate(all="ignore"):
        want = {"exponential": np.exp}.get(name, getattr(np, name, None))(wide).astype(own).astype(np.float32)
    body = f"%0 = stablehlo.{name} %x : tensor<256xf8E5M2>\nreturn %0 : tensor<256xf8E5M2>"
    found = np.array(program(body, "f8E5M2", "f8E5M2")(codes)).view(own).astype(np.float32)
    np.testing.assert_array_equal(found, want)


def test_reductions_and_sorts() -> None:
    f = smelt.from_stablehlo("""func.func @main(%x: tensor<8xf8E5M2>, %y: tensor<8xui4>)
    -> (tensor<f8E5M2>, tensor<ui4>, tensor<8xf8E5M2>, tensor<8xui4>) {
  %c = stablehlo.constant dense<0xFC> : tensor<f8E5M2>
  %z = stablehlo.constant dense<0> : tensor<ui4>
  %0 = stablehlo.reduce(%x init: %c) applies stablehlo.maximum across dimensions = [0]
    : (tensor<8xf8E5M2>, tensor<f8E5M2>) -> tensor<f8E5M2>
  %1 = stablehlo.reduce(%y init: %z) applies stablehlo.add across dimensions = [0]
    : (tensor<8xui4>, tensor<ui4>) -> tensor<ui4>
  %2 = "stablehlo.sort"(%x) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f8E5M2>, %b: tensor<f8E5M2>):
    %l = stablehlo.compare LT, %a, %b : (tensor<f8E5M2>, tensor<f8E5M2>) -> tensor<i1>
    stablehlo.return %l : tensor<i1>
  }) : (tensor<8xf8E5M2>) -> tensor<8xf8E5M2>
  %3 = stablehlo.not %y : tensor<8xui4>
  return %0, %1, %2, %3 : tensor<f8E5M2>, tensor<ui4>, tensor<8xf8E5M2>, tensor<8xui4>
}""")
    x = np.float32([1, -2, 7, 0.5, -14, 3, 2, 6]).astype(ml_dtypes.float8_e5m2)
    y = np.uint8([1, 2, 15, 9, 8, 7, 0, 3])
    top, total, ordered, inverted = (np.array(v) for v in f(x.view(np.uint8), y))
    assert top.view(x.dtype) == np.float32(7).astype(x.dtype) and total == y.sum() % 16
    np.testing.assert_array_equal(ordered.view(x.dtype).astype(np.float32), np.sort(x.astype(np.float32)))
    np.testing.assert_array_equal(inverted, 15 - y)


def test_weights_in_place_and_derivatives() -> None:
    """A product with weights of 4 bits, of a float of 8: its derivative is that of the numbers that were rounded."""
    f = smelt.from_stablehlo("""func.func @main(%x: tensor<2x3xf32>, %s: tensor<2xf32>) -> tensor<2x2xf32> {
  %w = stablehlo.constant dense<[[1, -2], [3, -8], [7, 0]]> : tensor<3x2xi4>
  %0 = stablehlo.convert %x : (tensor<2x3xf32>) -> tensor<2x3xf8E4M3FN>
  %1 = stablehlo.convert %0 : (tensor<2x3xf8E4M3FN>) -> tensor<2x3xf32>
  %2 = stablehlo.convert %w : (tensor<3x2xi4>) -> tensor<3x2xf32>
  %3 = stablehlo.dot_general %1, %2, contracting_dims = [1] x [0]
    : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
  %4 = stablehlo.broadcast_in_dim %s, dims = [1] : (tensor<2xf32>) -> tensor<2x2xf32>
  %5 = stablehlo.multiply %3, %4 : tensor<2x2xf32>
  return %5 : tensor<2x2xf32>
}""")
    w = np.float32([[1, -2], [3, -8], [7, 0]])
    x, s = np.float32([[0.33, -1.7, 100], [1, 2, 3]]), np.float32([0.5, 2])
    rounded = x.astype(ml_dtypes.float8_e4m3fn).astype(np.float32)
    np.testing.assert_array_equal(np.array(f(x, s)), rounded @ w * s)
    slope = smelt.grad(lambda x: f(x, s).sum())(smelt.array(x))
    np.testing.assert_allclose(np.array(slope), np.tile((w * s).sum(1), (2, 1)), rtol=1e-6)


def test_products_of_narrow_numbers() -> None:
    f = smelt.from_stablehlo("""func.func @main(%x: tensor<2x2xf8E5M2>, %y: tensor<2x2xf8E5M2>) -> tensor<2x2xf32> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
    : (tensor<2x2xf8E5M2>, tensor<2x2xf8E5M2>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}""")
    x = np.float32([[1, 0.5], [3, -2]]).astype(ml_dtypes.float8_e5m2)
    found = np.array(f(x.view(np.uint8), x.view(np.uint8)))
    np.testing.assert_array_equal(found, x.astype(np.float32) @ x.astype(np.float32))
    assert str(f) == "<smelt.from_stablehlo main(ui8[2,2], ui8[2,2]) -> (f32[2,2])>"


def test_others_are_refused() -> None:
    body = "%0 = chlo.lgamma %x : tensor<256xf8E4M3FN> -> tensor<256xf8E4M3FN>\nreturn %0 : tensor<256xf8E4M3FN>"
    with pytest.raises(IRError, match=r"2:\d+: chlo.lgamma of f8E4M3FN has no translation; convert it"):
        program(body, "f8E4M3FN", "f8E4M3FN")
    with pytest.raises(IRError, match="f4E2M1FN is not one of smelt's"):
        program("return %x : tensor<256xf4E2M1FN>", "f4E2M1FN", "f4E2M1FN")


def test_reduced_precision_has_the_derivative_of_the_identity() -> None:
    """As in JAX."""
    f = smelt.from_stablehlo("""func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %0 = stablehlo.reduce_precision %x, format = e5m2 : tensor<3xf32>
  %1 = stablehlo.multiply %0, %0 : tensor<3xf32>
  return %1 : tensor<3xf32>
}""")
    slope = smelt.grad(lambda x: f(x).sum())(smelt.array([1.1, -0.0, 3.4]))
    assert slope.tolist() == [2.0, 0.0, 7.0]


def _array(name: str, size: int) -> np.ndarray:
    """All codes of a type, as the program takes or makes them; without NaN, of which there are many."""
    rng = np.random.default_rng(0)
    if name in TYPES:
        bits = TYPES[name].bits
        x = np.resize(np.arange(1 << bits), size)
        if name.startswith("f8"):
            own = np.dtype(getattr(ml_dtypes, TYPES[name].numpy))
            plain = ~np.isnan(np.arange(256, dtype=np.uint8).view(own).astype(np.float32))
            x = np.resize(np.flatnonzero(plain), size)
        elif not name.startswith("u"):
            x = np.where(x >= 1 << (bits - 1), x - (1 << bits), x)
        return x.astype(TYPES[name].given.numpy)
    width = int(name.lstrip("ui")) // 8
    return rng.integers(0, 256, size * width).astype(np.uint8).view(f"u{width}" if "u" in name else f"i{width}")


def _bits(x: np.ndarray, width: int) -> np.ndarray:
    """The lowest bits of codes, the first number's and of it the lowest first."""
    return np.unpackbits(x.view(np.uint8).reshape(-1, x.itemsize), axis=1, bitorder="little")[:, :width].ravel()


@pytest.mark.parametrize(
    "source, target",
    [("i8", "i4"), ("i4", "i8"), ("ui8", "ui4"), ("i32", "i4"), ("ui4", "i32"), ("i4", "ui4"), ("i4", "i2"),
     ("ui2", "i4"), ("i2", "i16"), ("f8E4M3FN", "i8"), ("f8E5M2", "i4"), ("i4", "f8E4M3FN"), ("f8E4M3FN", "f8E5M2"),
     ("f8E5M2", "i32")],
)  # fmt: skip
def test_bits_as_another_type(source: str, target: str) -> None:
    widths = [8 if kind.startswith("f8") else int(kind.lstrip("ui")) for kind in (source, target)]
    per = max(widths) // min(widths)
    shapes = ["6x8", f"6x8x{per}"] if widths[0] > widths[1] else [f"6x8x{per}", "6x8"]
    shapes = ["6x8", "6x8"] if per == 1 else shapes
    types = [f"tensor<{shape}x{kind}>" for shape, kind in zip(shapes, (source, target))]
    f = smelt.from_stablehlo(f"""func.func @main(%x: {types[0]}) -> {types[1]} {{
  %0 = stablehlo.bitcast_convert %x : ({types[0]}) -> {types[1]}
  return %0 : {types[1]}
}}""")
    dims = [tuple(map(int, shape.split("x"))) for shape in shapes]
    x = _array(source, int(np.prod(dims[0]))).reshape(dims[0])
    found = np.array(f(x))
    assert found.shape == dims[1]
    np.testing.assert_array_equal(_bits(found, widths[1]), _bits(x, widths[0]))
    np.testing.assert_array_equal(np.array(smelt.compile(f)(smelt.array(x))), found)

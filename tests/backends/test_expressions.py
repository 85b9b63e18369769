"""Products of few rows with columns that are computed in registers: the values of NumPy, in every format of weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.backends.contraction import Product
from smelt.backends.cpu.contract import build, dots, expressions

from ..spies import calls_of

FORMATS = [("affine", group, bits) for bits in (1, 2, 3, 4, 5, 6, 8) for group in (32, 64, 128)]
FORMATS += [("mxfp4", 32, 4), ("mxfp8", 32, 8), ("nvfp4", 16, 4)]


@pytest.fixture(autouse=True)
def checked() -> Iterator[None]:
    """For places outside of arrays."""
    with smelt.ir.settings.override(check=True):
        yield


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[Product]:
    """Products that took this kernel."""
    return calls_of(monkeypatch, build, "build_expressions", lambda arguments, result: arguments[-1])


def _float64(x: smelt.array) -> np.ndarray:
    return np.asarray(x.astype(smelt.float64))


def _agree(found: smelt.array, x: smelt.array, w: smelt.array) -> None:
    wanted = _float64(x) @ np.swapaxes(_float64(w), -1, -2)
    scale = np.abs(_float64(x)) @ np.abs(np.swapaxes(_float64(w), -1, -2))
    ulp = {4: 1e-6, 2: 8e-3}[found.dtype.size]
    np.testing.assert_array_less(np.abs(_float64(found) - wanted), ulp * scale + 1e-9)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("rows", [1, 3, 8])
@pytest.mark.parametrize(("mode", "group", "bits"), FORMATS)
def test_quantized(mode: str, group: int, bits: int, rows: int, built: list[Product]) -> None:
    random = np.random.default_rng(0)
    depth, columns = {1: 768, 3: 128, 8: 384}[rows], {1: 67, 3: 9, 8: 130}[rows]
    w = smelt.array(random.standard_normal((columns, depth)).astype(np.float32))
    x = smelt.array(random.standard_normal((rows, depth)).astype(np.float32))
    packed = smelt.quantize(w, group, bits, mode)
    plain = smelt.dequantize(*packed, group_size=group, bits=bits, mode=mode, dtype=smelt.float32)

    def product(x: smelt.array, w: smelt.array, scales: smelt.array, *biases: smelt.array) -> smelt.array:
        return smelt.quantized_matmul(x, w, scales, *(biases or [None]), True, group, bits, mode)

    _agree(smelt.compile(product)(x, *packed), x, plain)
    assert built


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("bits", [3, 4, 8])
def test_of_half_precision(bits: int, dtype: str, built: list[Product]) -> None:
    random = np.random.default_rng(1)
    plain = (smelt.array(random.standard_normal((n, 512)).astype(np.float32)) for n in (2, 40))
    x, w = (v.astype(getattr(smelt, dtype)) for v in plain)
    packed = smelt.quantize(w, 64, bits)
    found = smelt.compile(lambda x, *w: smelt.quantized_matmul(x, *w, True, 64, bits))(x, *packed)
    _agree(found, x, smelt.dequantize(*packed, 64, bits))
    assert built


@pytest.mark.parametrize("rows", [1, 5])
@pytest.mark.parametrize("columns", [1, 2, 3, 4, 5, 7, 8, 9, 15, 31, 33, 63, 64, 65, 257])
def test_numbers_of_columns(columns: int, rows: int, built: list[Product]) -> None:
    random = np.random.default_rng(10)
    x, w = (random.integers(-4, 5, (n, 256)).astype(np.float32) for n in (rows, columns))
    found = smelt.compile(lambda x, w: x @ w.astype(smelt.float32).T)(smelt.array(x), smelt.array(w).astype(smelt.int8))
    np.testing.assert_array_equal(np.asarray(found), x @ w.T)
    assert built or columns < 8


#: Columns [columns, depth] of a and a small b [columns, 1], both of numbers that are exact in all dtypes.
COLUMNS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "scaled": lambda a, b, of: a * b,
    "conditional": lambda a, b, of: of.where(a > b, a, 1 - a),
    "compared": lambda a, b, of: (a > b) * a,
    "numbers": lambda a, b, of: a + of.arange(a.shape[1]).astype(a.dtype) % 7,
    "of a row": lambda a, b, of: a * a[:1],
    "backwards": lambda a, b, of: a[:, ::-1] * b,
    "repeated": lambda a, b, of: of.repeat(a[:, : a.shape[1] // 4], 4, axis=1) * b,
    "tiled": lambda a, b, of: of.tile(a[:, : a.shape[1] // 4], (1, 4)) * b,
    "padded": lambda a, b, of: of.pad(a[:, 3:] * b, ((0, 0), (2, 1))),
    "lines padded": lambda a, b, of: of.concatenate([of.pad(a[1:] * b[1:], ((0, 4), (0, 0))), a[:5] * 2]),
    "a window": lambda a, b, of: of.concatenate([(a * b)[:, 5:], (a + b)[:, :5]], axis=1),
    "an exponential": lambda a, b, of: of.exp(a / 8) * b,
    "bounded": lambda a, b, of: of.clip(a * b, -3, 3),
}


@pytest.mark.thinned(2)
@pytest.mark.parametrize("depth", [64, 72, 100, 1028])
@pytest.mark.parametrize("name", COLUMNS)
def test_computed_columns(name: str, depth: int) -> None:
    """Some of these are computed in registers, others are not; the values are right."""
    random = np.random.default_rng(2)
    x, a, b = (random.integers(-4, 5, shape).astype(np.float32) for shape in ((3, depth), (21, depth), (21, 1)))
    f = smelt.compile(lambda x, a, b: x @ COLUMNS[name](a, b, smelt).T)
    wanted = x @ COLUMNS[name](a, b, np).astype(np.float32).T
    np.testing.assert_allclose(np.asarray(f(*map(smelt.array, (x, a, b)))), wanted, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("dtype", [d.name for d in smelt.ir.dtypes.NUMERIC if not d.is_complex] + ["bool"])
def test_dtypes_of_what_is_converted(dtype: str, built: list[Product]) -> None:
    random = np.random.default_rng(3)
    x = random.standard_normal((2, 192)).astype(np.float32)
    w = random.integers(0, 2 if dtype == "bool" else 9, (33, 192)).astype(np.float32)
    converted = smelt.array(w).astype(smelt.ir.dtypes.by_name(dtype))
    found = smelt.compile(lambda x, w: x @ (w.astype(smelt.float32) * 0.5).T)(smelt.array(x), converted)
    np.testing.assert_allclose(np.asarray(found), x @ w.T * 0.5, rtol=1e-5, atol=1e-4)
    assert built or converted.dtype.size >= 4  # elsewhere computed before


@pytest.mark.parametrize("sums", ["float64", "int32", "int8", "complex64"])
def test_dtypes_of_sums(sums: str) -> None:
    random = np.random.default_rng(4)
    x, w = (random.integers(-3, 4, (n, 128)) for n in (3, 20))
    kind = getattr(smelt, sums)
    f = smelt.compile(lambda x, w: x @ (w * 2 + 1).T)
    found = f(smelt.array(x).astype(kind), smelt.array(w).astype(kind))
    wanted = (x @ (w * 2 + 1).T).astype(np.dtype(sums))
    np.testing.assert_array_equal(np.asarray(found), wanted)


def test_batches_and_experts(built: list[Product]) -> None:
    """What an index chooses is the same for all lanes."""
    random = np.random.default_rng(5)
    w = smelt.array(random.standard_normal((5, 48, 128)).astype(np.float32))
    x = smelt.array(random.standard_normal((4, 1, 128)).astype(np.float32))
    packed, chosen = smelt.quantize(w, bits=4), np.array([3, 0, 3, 4])
    plain = smelt.dequantize(*packed, bits=4)
    f = smelt.compile(lambda x, at, *w: smelt.gather_qmm(x, *w, rhs_indices=at, bits=4))
    _agree(f(x, smelt.array(chosen), *packed), x, plain[smelt.array(chosen)])
    g = smelt.compile(lambda x, *w: smelt.quantized_matmul(x, *(v[:4] for v in w), bits=4))
    _agree(g(x, *packed), x, plain[:4])
    assert len(built) == 2


@pytest.mark.parametrize(("mode", "group", "bits"), [("affine", 64, 3), ("affine", 32, 4), ("mxfp8", 32, 8)])
def test_several_experts_of_a_row(mode: str, group: int, bits: int, built: list[Product]) -> None:
    """Columns of several loops: those of each expert are computed in registers."""
    random = np.random.default_rng(11)
    w = smelt.array(random.standard_normal((5, 70, 128)).astype(np.float32))
    x = smelt.array(random.standard_normal((3, 1, 1, 128)).astype(np.float32))
    at = smelt.array([[3, 0], [4, 4], [1, 2]])
    packed = smelt.quantize(w, group, bits, mode)
    plain = smelt.dequantize(*packed, group_size=group, bits=bits, mode=mode, dtype=smelt.float32)

    def product(x: smelt.array, at: smelt.array, w: smelt.array, s: smelt.array, *b: smelt.array) -> smelt.array:
        biases = b[0] if b else None
        return smelt.gather_qmm(x, w, s, biases, rhs_indices=at, group_size=group, bits=bits, mode=mode)

    _agree(smelt.compile(product)(x, at, *packed), x, plain[at])
    assert built


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("bits", [2, 3, 4, 8])
def test_rows_are_kept_for_all_their_columns(bits: int, threads: int, built: list[Product]) -> None:
    """Each member of a batch has rows of its own, and a thread begins anywhere."""
    random = np.random.default_rng(12)
    w = smelt.array(random.standard_normal((3, 300, 512)).astype(np.float32))
    x = smelt.array(random.standard_normal((3, 2, 512)).astype(np.float32))
    packed = smelt.quantize(w, bits=bits)
    with smelt.ir.settings.override(num_threads=threads):
        found = smelt.compile(lambda x, *w: smelt.quantized_matmul(x, *w, bits=bits))(x, *packed)
    _agree(found, x, smelt.dequantize(*packed, bits=bits))
    assert built


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_numbers_of_any_size(bits: int, built: list[Product]) -> None:
    """Codes are larger than they are meant while they are multiplied; nothing is lost by that, nor too large."""
    random = np.random.default_rng(13)
    codes = smelt.quantize(smelt.array(random.standard_normal((40, 256)).astype(np.float32)), bits=bits)
    plain = _float64(smelt.dequantize(*codes, bits=bits))
    f = smelt.compile(lambda x, *w: smelt.quantized_matmul(x, *w, bits=bits))
    x = random.standard_normal((2, 256))
    for size in (1e-36, 1e-30, 1e30, 1e35):
        given = (x * size).astype(np.float32)
        scale = np.abs(given).astype(np.float64) @ np.abs(plain).T
        error = np.abs(_float64(f(smelt.array(given), *codes)) - given.astype(np.float64) @ plain.T)
        np.testing.assert_array_less(error, 1e-6 * scale + 1e-43)
    assert built


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_all_floats_of_eight_bits(dtype: str, built: list[Product]) -> None:
    codes = np.array([c for c in range(256) if c & 0x7F != 0x7F] + [0, 0], np.uint8).reshape(8, 32)
    words, scales = smelt.array(codes.view(np.uint32)), smelt.full((8, 1), 127, dtype=smelt.uint8)
    kind = getattr(smelt, dtype)
    x = np.zeros((8, 32), np.float32)
    x[np.arange(8), np.arange(8) * 4] = 1
    padded = smelt.concatenate([words] * 4, axis=1), smelt.concatenate([scales] * 4, axis=1)
    x = np.concatenate([x, np.zeros((8, 96), np.float32)], axis=1)
    f = smelt.compile(lambda x, w, s: smelt.quantized_matmul(x, w, s, mode="mxfp8"))
    found = np.asarray(f(smelt.array(x).astype(kind), *padded).astype(smelt.float32))
    wanted = np.asarray(smelt.from_fp8(smelt.array(codes), smelt.float32))
    np.testing.assert_array_equal(found, x[:, :32] @ wanted.T)
    assert built


def test_with_what_comes_before_and_behind(built: list[Product]) -> None:
    random = np.random.default_rng(6)
    w = smelt.array(random.standard_normal((96, 256)).astype(np.float32))
    x = smelt.array(random.standard_normal((1, 256)).astype(np.float32))
    packed, bias = smelt.quantize(w, bits=4), smelt.arange(96) / 8

    def layer(x: smelt.array, bias: smelt.array, *w: smelt.array) -> smelt.array:
        return smelt.maximum(smelt.quantized_matmul(smelt.exp(x) * 0.5, *w, bits=4) + bias, 0)

    plain, before = _float64(smelt.dequantize(*packed, bits=4)), np.exp(_float64(x)) * 0.5
    found = smelt.compile(layer)(x, bias, *packed)
    wanted = np.maximum(before @ plain.T + np.arange(96) / 8, 0)
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-4, atol=1e-4)
    assert built


def test_sums_do_not_depend_on_how_many_columns_there_are() -> None:
    random = np.random.default_rng(7)
    w = smelt.array(random.standard_normal((1000, 512)).astype(np.float32))
    x = smelt.array(random.standard_normal((2, 512)).astype(np.float32))
    packed = smelt.quantize(w, bits=4)
    whole = smelt.compile(lambda x, *w: smelt.quantized_matmul(x, *w, bits=4))(x, *packed)
    part = smelt.compile(lambda x, *w: smelt.quantized_matmul(x, *w, bits=4))(x, *(v[:640] for v in packed))
    np.testing.assert_array_equal(np.asarray(whole)[:, :640], np.asarray(part))


@pytest.mark.parametrize("count", [2, 3])
def test_several_products_share_nothing_but_a_kernel(count: int, built: list[Product]) -> None:
    """What unpacking all weights has in common, numbers and positions, is no reason to unpack them into memory."""
    random = np.random.default_rng(8)
    x = smelt.array(random.standard_normal((1, 256)).astype(np.float32))
    plain = [smelt.array(random.standard_normal((96, 256)).astype(np.float32)) for _ in range(count)]
    packed = [v for w in plain for v in smelt.quantize(w, bits=4)]

    def layers(x: smelt.array, *w: smelt.array) -> list[smelt.array]:
        return [smelt.quantized_matmul(x, *w[3 * i : 3 * i + 3], bits=4) for i in range(count)]

    f = smelt.compile(layers)
    for found, i in zip(f(x, *packed), range(count)):
        _agree(found, x, smelt.dequantize(*packed[3 * i : 3 * i + 3], bits=4))
    assert len(built) == 1, "one kernel is called for each"
    text = str(f.trace(x, *packed).lower().compile().as_text("fuse"))
    assert text.count("func.func private") == 1
    assert text.count("call @") == count


@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize("rows", range(1, 9))
def test_rows_that_registers_hold(rows: int, wide: bool, built: list[Product], monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a processor's registers are: where they hold more rows than there are, nobody sees those."""
    for module in (expressions, dots):
        monkeypatch.setattr(module, "has_wide_registers", lambda: wide)
    random = np.random.default_rng(9)
    w = smelt.array(random.standard_normal((37, 256)).astype(np.float32))
    x = smelt.array(random.standard_normal((rows, 256)).astype(np.float32))
    packed = smelt.quantize(w, bits=4)
    _agree(smelt.compile(lambda x, *w: smelt.quantized_matmul(x, *w, bits=4))(x, *packed), x, smelt.dequantize(*packed))
    assert len(built) == 1
    _agree(smelt.compile(lambda x, w: x @ w.T)(x[:, :250], w[:, :250]), x[:, :250], w[:, :250])


@pytest.mark.parametrize("rows", [9, 17, 40])
@pytest.mark.parametrize(("mode", "group", "bits"), [("affine", 32, 3), ("affine", 64, 4), ("mxfp8", 32, 8)])
def test_blocks_of_rows(mode: str, group: int, bits: int, rows: int, built: list[Product]) -> None:
    """Numbers in words are unpacked for some rows at a time, and never into memory; a row need not be finite."""
    random = np.random.default_rng(rows)
    w = smelt.array(random.standard_normal((67, 128)).astype(np.float32))
    x = random.standard_normal((rows, 128)).astype(np.float32)
    x[rows - 1, 5] = np.inf
    packed = smelt.quantize(w, group, bits, mode)
    plain = _float64(smelt.dequantize(*packed, group_size=group, bits=bits, mode=mode, dtype=smelt.float32))

    def product(x: smelt.array, w: smelt.array, scales: smelt.array, *biases: smelt.array) -> smelt.array:
        return smelt.quantized_matmul(x, w, scales, *(biases or [None]), True, group, bits, mode)

    found = np.asarray(smelt.compile(product)(smelt.array(x), *packed))
    np.testing.assert_allclose(found, x.astype(np.float64) @ plain.T, rtol=1e-4, atol=1e-4)
    assert built or rows > expressions.MOST_ROWS_NARROW


def test_columns_that_are_no_words_of_many_rows_are_computed_once(built: list[Product]) -> None:
    random = np.random.default_rng(14)
    x, w = (random.standard_normal((n, 256)).astype(np.float16) for n in (20, 64))
    found = smelt.compile(lambda x, w: x @ w.T)(smelt.array(x), smelt.array(w))
    np.testing.assert_allclose(_float64(found), x.astype(np.float64) @ w.astype(np.float64).T, rtol=1e-2, atol=2e-2)
    assert not built


@pytest.mark.parametrize("depth", [64, 96, 512, 544])
@pytest.mark.parametrize(
    ("mode", "group", "bits", "kind"),
    [("mxfp4", 32, 4, "float32"), ("nvfp4", 16, 4, "float32"), *(("affine", 32, 3, k) for k in ("float16", "float32"))],
)
def test_scales_of_all_groups(
    mode: str, group: int, bits: int, kind: str, depth: int, monkeypatch: pytest.MonkeyPatch, built: list[Product]
) -> None:
    """Those that are computed are computed once each, before words are met; others are read as they are."""
    grouped = calls_of(monkeypatch, expressions.Grouped, "of", lambda arguments, result: result)
    random = np.random.default_rng(depth)
    w, x = (smelt.array(random.standard_normal((n, depth)).astype(np.float32)) for n in (37, 3))
    packed = smelt.quantize(w.astype(getattr(smelt, kind)), group, bits, mode)
    plain = smelt.dequantize(*packed, group_size=group, bits=bits, mode=mode, dtype=smelt.float32)

    def product(x: smelt.array, w: smelt.array, scales: smelt.array, *biases: smelt.array) -> smelt.array:
        return smelt.quantized_matmul(x, w, scales, *(biases or [None]), True, group, bits, mode)

    found = np.asarray(smelt.compile(product)(x, *packed))
    tolerance = 2e-3 if kind == "float16" else 1e-5  # the sum of two halves is one half, where it is dequantized
    np.testing.assert_allclose(found, _float64(x) @ _float64(plain).T, rtol=tolerance, atol=tolerance * depth**0.5)
    assert built and any(grouped) == ((mode != "affine" or kind == "float16") and depth // group % 2 == 0)


@pytest.mark.parametrize(
    ("shape", "grouped"),
    [((8, 1, 1), True), ((7, 1, 1), False), ((1, 8, 1), False), ((8, 8, 1), False), ((1, 1, 1), False)],
)
def test_offsets_of_groups(
    shape: tuple[int, ...], grouped: bool, monkeypatch: pytest.MonkeyPatch, built: list[Product]
) -> None:
    """They meet sums of a row's elements: of a group where words of one follow each other, of each word elsewhere."""
    taken = calls_of(monkeypatch, expressions.GroupedOffsets, "of", lambda arguments, result: result is not None)
    random, groups = np.random.default_rng(15), 7 if shape[0] == 7 else 8
    x = random.standard_normal((3, groups * 128)).astype(np.float32)
    words = random.integers(0, 2**32, (37, groups * 16), np.uint32)
    scale, bias = (random.standard_normal((37, *shape)).astype(np.float32) for _ in range(2))

    def product(x: Any, words: Any, scale: Any, bias: Any, of: Any) -> Any:
        codes = (words[..., None] >> of.arange(8).astype(of.uint32) * 4) & of.array(15, dtype=of.uint32)
        w = codes.astype(of.float32).reshape(37, groups, 8, 16) * scale + bias
        return x @ w.reshape(37, -1).T

    f = smelt.compile(lambda *arrays: product(*arrays, smelt))
    found = np.asarray(f(*map(smelt.array, (x, words, scale, bias))))
    wanted = product(x.astype(np.float64), words, scale.astype(np.float64), bias.astype(np.float64), np)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=2e-3)
    assert built and any(taken) is grouped
    x[1, 5] = np.inf
    found = np.asarray(f(*map(smelt.array, (x, words, scale, bias))))
    assert not np.isfinite(found[1]).any()
    np.testing.assert_allclose(found[::2], wanted[::2], rtol=1e-4, atol=2e-3)

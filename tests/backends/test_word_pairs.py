"""Packed numbers beside bfloat16 in pairs: values beside float64, tiny elements, what is not finite."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.backends.cpu.contract import expressions, word_pairs
from smelt.backends.cpu.contract.pairs import has_bfloat16_pairs
from smelt.backends.cpu.contract.tiles import has_feature
from smelt.functions.quantization import packed as packed_words
from smelt.ir.settings import override

from ..spies import calls_of
from .test_expressions import _agree

FORMATS = [("affine", group, bits) for bits in (1, 2, 4) for group in (32, 64, 128)]
FORMATS += [("mxfp4", 32, 4), ("nvfp4", 16, 4)]
#: Those that take bytes from bits, or look bytes up.
OF_BYTES = [("affine", group, bits) for bits in (3, 5, 6) for group in (32, 64, 128)] + [("mxfp8", 32, 8)]
HAS_BYTES = has_bfloat16_pairs() and has_feature("AVX512VBMI")
INSTRUCTION = "avx512bf16.dpbf16ps"
#: The least absolute value of rows: subnormal, the least that is not, with subnormal products, the bound and above it.
LEAST = [2.0**-133, 2.0**-126, 2.0**-118, word_pairs.LEAST / 2, word_pairs.LEAST, 2.0**-90]


@pytest.fixture(autouse=True)
def checked() -> Iterator[None]:
    """For places outside of arrays."""
    with override(check=True):
        yield


@pytest.fixture
def paired(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether a product was made in pairs, of each that took this kernel."""
    return calls_of(monkeypatch, expressions, "_is_paired", lambda arguments, result: result)


def _product(mode: str, group: int, bits: int) -> Callable[..., smelt.array]:
    """Of float32, of which rows are arrays of bfloat16."""

    def product(x: smelt.array, w: smelt.array, scales: smelt.array, *biases: smelt.array) -> smelt.array:
        x = x.astype(smelt.float32)
        return smelt.quantized_matmul(x, w, scales, *(biases or [None]), True, group, bits, mode)

    return smelt.compile(product)


def _given(seed: int, rows: int, columns: int, depth: int, *form: Any) -> tuple[smelt.array, list[smelt.array]]:
    random, (mode, group, bits) = np.random.default_rng(seed), form
    w = smelt.array(random.standard_normal((columns, depth)).astype(np.float32))
    x = smelt.array(random.standard_normal((rows, depth)).astype(np.float32)).astype(smelt.bfloat16)
    return x, list(smelt.quantize(w, group, bits, mode))


def _plain(packed: list[smelt.array], mode: str, group: int, bits: int) -> smelt.array:
    return smelt.dequantize(*packed, group_size=group, bits=bits, mode=mode, dtype=smelt.float32)


@pytest.mark.thinned(6)
@pytest.mark.parametrize("rows", [1, 2, 3, 5, 8, 9])
@pytest.mark.parametrize(("mode", "group", "bits"), FORMATS)
def test_formats(mode: str, group: int, bits: int, rows: int, paired: list[bool]) -> None:
    columns, depth = (11, 9, 67, 130)[rows % 4], (512, 1536, 2560)[rows % 3]
    x, packed = _given(rows, rows, columns, depth, mode, group, bits)
    _agree(_product(mode, group, bits)(x, *packed), x, _plain(packed, mode, group, bits))
    assert paired == [has_bfloat16_pairs()]


@pytest.mark.thinned(6)
@pytest.mark.parametrize("rows", [1, 2, 3, 5, 8, 9])
@pytest.mark.parametrize(("mode", "group", "bits"), OF_BYTES)
def test_bytes_of_words(mode: str, group: int, bits: int, rows: int, paired: list[bool]) -> None:
    columns, depth = (11, 9, 67, 130)[rows % 4], (512, 1536, 2560)[rows % 3]
    x, packed = _given(rows, rows, columns, depth, mode, group, bits)
    plain = _plain(packed, mode, group, bits)
    for check in (False, True):  # bytes one by one, where each access is compared with its array
        with override(check=check):
            _agree(_product(mode, group, bits)(x, *packed), x, plain)
    assert len(paired) == 2
    assert paired[0] is HAS_BYTES


@pytest.mark.parametrize("bits", [1, 2, 3, 4, 5, 6])
def test_every_number_in_every_place(bits: int, paired: list[bool]) -> None:
    """Exactly, beside any others."""
    random, depth, group = np.random.default_rng(bits), 512, 32
    codes = random.permuted(np.resize(np.arange(2**bits), (64, depth)), axis=0).astype(np.uint32)
    one = smelt.ones((64, depth // group), smelt.float32)
    x = smelt.eye(depth, dtype=smelt.bfloat16)[:64]
    with override(check=False):
        found = _product("affine", group, bits)(x, packed_words(smelt.array(codes), bits), one, 0 * one)
    np.testing.assert_array_equal(np.asarray(found), codes.T[:64])
    assert paired == [HAS_BYTES if bits in (3, 5, 6) else has_bfloat16_pairs()]


@pytest.mark.parametrize("rows", [1, 5])
def test_every_float_of_8_bits(rows: int) -> None:
    """Zeros with a sign, the least, and what is not a number."""
    words = np.random.default_rng(rows).permuted(np.resize(np.arange(256, dtype=np.uint8), (9, 512)), axis=1)
    x, scales = smelt.ones((rows, 512), smelt.bfloat16), smelt.full((9, 16), 127, smelt.uint8)
    for numbers in (words, np.where(words & 0x7F == 0x7F, np.uint8(3), words)):
        packed = [smelt.array(numbers.view(np.uint32)), scales]
        found, w = _product("mxfp8", 32, 8)(x, *packed), np.asarray(_plain(packed, "mxfp8", 32, 8), np.float64)
        np.testing.assert_allclose(np.asarray(found), np.broadcast_to(w.sum(1), (rows, 9)), 0, 1e-6 * 448 * 512)


def _of_two_words(w: Any, at: slice, other: slice, of: Any) -> Any:
    """Numbers of four bits: half of them of one word, the others of another."""
    places = of.arange(8)
    first, second = ((part[:, :, None] >> (4 * places).astype(w.dtype)) & 15 for part in (w[at], w[other]))
    return of.where(places < 4, first, second).reshape(first.shape[0], -1)


@pytest.mark.parametrize("rows", [1, 3])
def test_numbers_of_several_words(rows: int) -> None:
    """Which word a number comes from counts, not the array alone."""
    random = np.random.default_rng(6)
    w, scale = random.integers(0, 2**32, (10, 64), np.uint32), random.integers(1, 9, (9, 1)).astype(np.float32)
    x = random.integers(-8, 9, (rows, 512)).astype(np.float32)

    def product(x: smelt.array, w: smelt.array, scale: smelt.array) -> smelt.array:
        codes = _of_two_words(w, slice(0, 9), slice(1, 10), smelt)
        return x.astype(smelt.float32) @ (codes.astype(smelt.float32) * scale).T

    wanted = x @ (_of_two_words(w, slice(0, 9), slice(1, 10), np) * scale).T
    found = smelt.compile(product)(smelt.array(x).astype(smelt.bfloat16), smelt.array(w), smelt.array(scale))
    np.testing.assert_array_equal(np.asarray(found), wanted)


@pytest.mark.parametrize("bits", [3, 4])
def test_numbers_that_end_behind_a_word(bits: int) -> None:
    """What is shifted in there is zero, not the next word."""
    random = np.random.default_rng(7)
    w, scale = random.integers(0, 2**32, (9, 64), np.uint32), random.integers(1, 9, (9, 1)).astype(np.float32)
    x = random.integers(-8, 9, (3, 256)).astype(np.float32)

    def unpacked(w: Any, of: Any) -> Any:
        shifted = w[:, :, None] >> (of.arange(4) * 9 + 3).astype(w.dtype)
        return (shifted & (2**bits - 1)).reshape(9, -1).astype(of.float32) * scale

    found = smelt.compile(lambda x, w: x.astype(smelt.float32) @ unpacked(w, smelt).T)(
        smelt.array(x).astype(smelt.bfloat16), smelt.array(w)
    )
    np.testing.assert_array_equal(np.asarray(found), x @ unpacked(w, np).T)


def test_the_instruction() -> None:
    x, packed = _given(0, 2, 9, 512, "affine", 64, 4)
    text = _product("affine", 64, 4).trace(x, *packed).lower().compile().as_text("kernel")
    assert (INSTRUCTION in text) is has_bfloat16_pairs()


@pytest.mark.parametrize("rows", [17, 33, 64])
@pytest.mark.parametrize("form", [("affine", 64, 4), ("affine", 64, 5), ("mxfp4", 32, 4), ("mxfp8", 32, 8)])
def test_many_rows(form: tuple[str, int, int], rows: int) -> None:
    x, packed = _given(rows, rows, 67, 1024, *form)
    _agree(_product(*form)(x, *packed), x, _plain(packed, *form))


def test_numbers_that_lie_otherwise(paired: list[bool]) -> None:
    x, packed = _given(8, 3, 67, 512, "affine", 64, 8)
    _agree(_product("affine", 64, 8)(x, *packed), x, _plain(packed, "affine", 64, 8))
    assert paired == [False]


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_elements_that_are_no_bfloat16(dtype: str, paired: list[bool]) -> None:
    x, packed = _given(1, 3, 67, 512, "affine", 64, 4)
    x = x.astype(getattr(smelt, dtype))
    _agree(_product("affine", 64, 4)(x, *packed), x, _plain(packed, "affine", 64, 4))
    assert paired == [False]


def test_without_the_instruction(monkeypatch: pytest.MonkeyPatch, paired: list[bool]) -> None:
    monkeypatch.setattr(word_pairs, "has_bfloat16_pairs", lambda: False)
    x, packed = _given(2, 5, 67, 512, "affine", 64, 4)
    _agree(_product("affine", 64, 4)(x, *packed), x, _plain(packed, "affine", 64, 4))
    assert paired == [False]


@pytest.mark.parametrize(("rows", "depth"), [(1, 512), (3, 512), (8, 32768)])
@pytest.mark.parametrize("form", [("affine", 64, 4), ("mxfp4", 32, 4), ("affine", 64, 6), ("mxfp8", 32, 8)])
def test_tiny_elements_count(form: tuple[str, int, int], rows: int, depth: int) -> None:
    """Subnormal ones, and those whose products would be; in the first of several blocks of the depth, too."""
    x, packed = _given(3, rows, 9, depth, *form)
    large = packed[1] * 2.0**60 if form[0] == "affine" else packed[1] + 60  # the sums are no smaller than can be told
    packed = [packed[0], large, *(b * 2.0**60 for b in packed[2:])]
    f, w = _product(*form), np.asarray(_plain(packed, *form), np.float64)
    signs, largest = np.sign(np.asarray(x.astype(smelt.float32)))[:, 1:64], np.abs(w[:, :64]).sum(1).max()
    for least in LEAST:
        tiny = np.zeros((rows, depth), np.float32)
        tiny[:, 1:64] = signs * np.float32(least)
        found = np.asarray(f(smelt.array(tiny).astype(smelt.bfloat16), *packed), np.float64)
        wanted = tiny.astype(np.float64) @ w.T
        np.testing.assert_allclose(found, wanted, 0, 1e-6 * least * largest, err_msg=str(least))


@pytest.mark.parametrize("rows", [1, 6])
def test_what_is_not_finite(rows: int) -> None:
    form = "affine", 64, 4
    f = _product(*form)
    for where, what in itertools.product(["x", "scales", "biases"], [np.inf, -np.inf, np.nan]):
        x, packed = _given(4, rows, 9, 512, *form)
        if where == "x":
            x[rows - 1, 70] = what
        else:
            packed[1 if where == "scales" else 2][3, 2] = what
        with np.errstate(invalid="ignore"):
            wanted = np.asarray(x.astype(smelt.float32)) @ np.asarray(_plain(packed, *form)).T
        np.testing.assert_allclose(np.asarray(f(x, *packed)), wanted, 1e-4, 1e-3, err_msg=f"{where} {what}")


@pytest.mark.parametrize("form", [("affine", 64, 4), ("nvfp4", 16, 4)])
def test_chosen_matrices(form: tuple[str, int, int]) -> None:
    """Of a mixture of experts, on several threads."""
    mode, group, bits = form
    random, at = np.random.default_rng(5), smelt.array([2, 0, 2, 1, 1])
    w = smelt.array(random.standard_normal((3, 67, 512)).astype(np.float32))
    x = smelt.array(random.standard_normal((5, 2, 512)).astype(np.float32)).astype(smelt.bfloat16)
    packed = list(smelt.quantize(w, group, bits, mode))

    def product(x: smelt.array, at: smelt.array, w: smelt.array, s: smelt.array, *b: smelt.array) -> smelt.array:
        left, b = x.astype(smelt.float32), b or (None,)
        return smelt.gather_qmm(left, w, s, *b, rhs_indices=at, group_size=group, bits=bits, mode=mode)

    with override(num_threads=2):
        _agree(smelt.compile(product)(x, at, *packed), x, _plain(packed, *form)[at])

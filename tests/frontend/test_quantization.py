"""Quantized matrices: packed numbers by big integers, small floats by their definitions, products by NumPy."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import smelt
from smelt.ir import text
from smelt.ir.errors import AttributeValueError, DTypeError, ShapeError
from smelt.ir.settings import override
from smelt.runtime import compile_module

BITS = [1, 2, 3, 4, 5, 6, 8]
MODES = {"mxfp4": 32, "mxfp8": 32, "nvfp4": 16}
E4M3 = np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e4m3fn).astype(np.float32)
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)
RNG = np.random.default_rng(0)


def matrix(rows: int = 5, columns: int = 256, scale: float = 1.0) -> np.ndarray:
    x = (RNG.standard_normal((rows, columns)) * scale).astype(np.float32)
    x[0], x[1], x[2], x[3] = 0, 0.7, np.abs(x[2]), np.arange(columns) / 8
    return x


def words_of(codes: np.ndarray, bits: int) -> np.ndarray:
    """Numbers in a row of bits, the first in the lowest."""
    rows = [sum(int(q) << (i * bits) for i, q in enumerate(row)) for row in codes]
    return np.array([list(r.to_bytes(codes.shape[1] * bits // 8, "little")) for r in rows], np.uint8).view(np.uint32)


def codes_of(words: np.ndarray, bits: int, n: int) -> np.ndarray:
    rows = [int.from_bytes(row.tobytes(), "little") for row in words]
    return np.array([[(r >> (i * bits)) & ((1 << bits) - 1) for i in range(n)] for r in rows])


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("group", [32, 64, 128])
def test_numbers_and_scales_give_the_matrix(bits: int, group: int) -> None:
    x = matrix()
    q, scales, biases = smelt.quantize(smelt.array(x), group, bits)
    assert q.shape == (5, 256 * bits // 32) and scales.shape == biases.shape == (5, 256 // group)
    s, b = (np.repeat(np.array(a), group, 1) for a in (scales, biases))
    codes = codes_of(np.array(q), bits, 256)
    np.testing.assert_array_equal(words_of(codes, bits), np.array(q))
    found = np.array(smelt.dequantize(q, scales, biases, group, bits))
    np.testing.assert_allclose(found, codes * s + b, rtol=1e-6, atol=1e-6)
    # The end of the range on the other side of the bias may be up to a step away.
    assert (np.abs(found - x) <= np.abs(s) * (0.5 if bits == 1 else 1.0) + 1e-6).all()
    assert np.array_equal(found[0], x[0]) and np.allclose(found[1], x[1], rtol=1e-6)


def test_words_are_those_of_the_format() -> None:
    """So a change of the format shows: checkpoints depend on it."""
    q, scales, biases = smelt.quantize(smelt.arange(32).astype(smelt.float32)[None], 32, 4)
    assert [hex(w) for w in q[0].tolist()] == ["0xccddeeff", "0x8899aabb", "0x44556677", "0x112233"]
    assert scales.item() == pytest.approx(-31 / 15) and biases.item() == 31


@pytest.mark.parametrize("dtype", [smelt.float16, smelt.bfloat16])
def test_scales_have_the_dtype_of_the_matrix(dtype: smelt.Dtype) -> None:
    x = smelt.array(matrix()).astype(dtype)
    q, scales, biases = smelt.quantize(x)
    assert scales.dtype is biases.dtype is dtype is smelt.dequantize(q, scales, biases).dtype
    assert smelt.dequantize(q, scales, biases, dtype=smelt.float32).dtype is smelt.float32


def test_floats_of_eight_bits() -> None:
    codes = np.arange(256, dtype=np.uint8)
    np.testing.assert_array_equal(np.array(smelt.from_fp8(smelt.array(codes), smelt.float32)), E4M3)
    assert smelt.from_fp8(smelt.array(codes)).dtype is smelt.bfloat16
    finite = codes[np.isfinite(E4M3)]
    np.testing.assert_array_equal(np.array(smelt.to_fp8(smelt.array(E4M3[finite]))), finite)
    x = np.concatenate([RNG.standard_normal(5_000) * s for s in (1e-3, 0.1, 10, 150)]).astype(np.float32)
    x = np.concatenate([x, np.arange(-448, 448, 0.25), np.arange(-64, 64) / 8192]).astype(np.float32)
    want = x.clip(-448, 448).astype(ml_dtypes.float8_e4m3fn).view(np.uint8)
    np.testing.assert_array_equal(np.array(smelt.to_fp8(smelt.array(x))), want)
    special = smelt.to_fp8(smelt.array([np.nan, np.inf, -np.inf, 1e9, -0.0]))
    assert special.tolist() == [0x7F, 0x7E, 0xFE, 0x7E, 0x80]
    for dtype in (smelt.float16, smelt.bfloat16):
        assert smelt.to_fp8(smelt.array([0.3]).astype(dtype)).item() == 0x2A


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("scale", [1e-3, 1.0, 300.0])
def test_modes_of_floats(mode: str, scale: float) -> None:
    x, group = matrix(scale=scale), MODES[mode]
    q, scales = smelt.quantize(smelt.array(x), mode=mode)
    assert q.dtype is smelt.uint32 and scales.dtype is smelt.uint8 and scales.shape == (5, 256 // group)
    s = np.array(scales)
    factors = E4M3[s] if mode == "nvfp4" else np.exp2(s.astype(np.float64) - 127)
    bits = 8 if mode == "mxfp8" else 4
    elements = (E4M3 if bits == 8 else E2M1)[codes_of(np.array(q), bits, 256)]
    want = elements * np.repeat(factors, group, 1)
    found = np.array(smelt.dequantize(q, scales, mode=mode, dtype=smelt.float32))
    np.testing.assert_allclose(found, want, rtol=1e-6)
    assert smelt.dequantize(q, scales, mode=mode).dtype is smelt.bfloat16
    # The nearest of all multiples of the group's scale.
    known = np.sort(np.unique((E4M3 if bits == 8 else E2M1)[np.isfinite(E4M3 if bits == 8 else E2M1)]))
    grid = known * np.repeat(factors, group, 1)[..., None]
    best = np.abs(x[..., None] - grid).min(-1)
    np.testing.assert_allclose(np.abs(found - x), best, rtol=1e-3, atol=1e-6 * scale)


def test_scales_of_microscaling_are_the_least_powers_of_two() -> None:
    x = np.zeros((1, 128), np.float32)
    x[0, [0, 32, 64]] = 6.0, 6.0001, 3.0
    assert smelt.quantize(smelt.array(x), mode="mxfp4")[1].tolist() == [[127, 128, 126, 127]]


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("mode", ["mxfp4", "nvfp4"])
def test_halves_of_a_step_round_to_even(mode: str, dtype: str) -> None:
    """As OCP's specification and MLX's kernels for GPUs have it; on its CPU they become the lower neighbour. Only in
    these do the packed words of the two differ."""
    halves = np.array([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0, 6.0])
    x = smelt.array(np.concatenate([halves, -halves])[None].repeat(2, 0).reshape(1, 32).astype(np.float32))
    q, _ = smelt.quantize(x.astype(getattr(smelt, dtype)), mode=mode)
    assert codes_of(np.array(q), 4, 32)[0, :16].tolist() == [0, 2, 2, 4, 4, 6, 6, 7, 0, 10, 10, 12, 12, 14, 14, 15]


def test_a_global_scale_uses_the_range_of_the_scales() -> None:
    x = matrix(scale=1e-4)
    x[1], x[3] = 1e-4, x[2]
    top = np.abs(x).max()
    q, scales = smelt.quantize(smelt.array(x), mode="nvfp4", global_scale=smelt.array(top))
    assert np.array(scales).max() == 126  # 448
    found = np.array(smelt.dequantize(q, scales, mode="nvfp4", global_scale=smelt.array(top)))
    assert found.dtype == np.float32
    assert np.abs(found - x).max() <= top / 6 * (1 + 1 / 16)  # half a step of 2 between 4 and 6, and that of the scale


@pytest.mark.thinned(3)
@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("transpose", [True, False])
@pytest.mark.parametrize("shape", [(256,), (3, 256), (2, 1, 256)])
def test_products(bits: int, transpose: bool, shape: tuple[int, ...]) -> None:
    w = smelt.array(matrix(256 if not transpose else 7))
    x = RNG.standard_normal(shape).astype(np.float32)
    packed = smelt.quantize(w, 64, bits)
    full = np.array(smelt.dequantize(*packed, 64, bits)).astype(np.float64)
    for function in (smelt.quantized_matmul, smelt.compile(smelt.quantized_matmul)):
        found = function(smelt.array(x), *packed, transpose=transpose, group_size=64, bits=bits)
        want = x @ (full.T if transpose else full)
        np.testing.assert_allclose(np.array(found), want, rtol=1e-4, atol=1e-4 * np.abs(want).max())


@pytest.mark.parametrize("mode", MODES)
def test_products_of_floats(mode: str) -> None:
    packed = smelt.quantize(smelt.array(matrix()), mode=mode)
    x = RNG.standard_normal((3, 256)).astype(np.float32)
    want = x @ np.array(smelt.dequantize(*packed, mode=mode, dtype=smelt.float32)).T
    np.testing.assert_allclose(np.array(smelt.quantized_matmul(smelt.array(x), *packed, mode=mode)), want, atol=1e-3)
    half = smelt.quantized_matmul(smelt.array(x).astype(smelt.float16), *packed, mode=mode)
    assert half.dtype is smelt.float16


@pytest.mark.parametrize("way", ["ops", "program"])
def test_float16_beside_powers_of_two_that_are_too_large_for_it(way: str) -> None:
    """What weights are is no float16, but what comes out is."""
    words, x = smelt.quantize(smelt.ones((4, 32)), mode="mxfp8")[0], smelt.full((2, 32), 2.0**-14, smelt.float16)
    for exponent in (127 - 24, 127 + 12):
        scales = smelt.full((4, 1), exponent, smelt.uint8)
        with override(tier=way):
            found = smelt.quantized_matmul(x * 2.0**9 if exponent < 127 else x, words, scales, mode="mxfp8")
            wide = smelt.dequantize(words, scales, mode="mxfp8", dtype=smelt.float32)
            wanted = np.array(x.astype(smelt.float32) * (2.0**9 if exponent < 127 else 1) @ wide.T)
        assert found.dtype is smelt.float16
        np.testing.assert_array_equal(np.array(found), wanted.astype(np.float16))


@pytest.mark.parametrize(("mode", "bits"), [*(("affine", bits) for bits in BITS), *((mode, None) for mode in MODES)])
def test_a_product_is_one_kernel_that_unpacks_as_it_reads(mode: str, bits: int | None) -> None:
    packed = smelt.quantize(smelt.array(matrix(64)), None, bits, mode)
    x = smelt.ones((2, 256))
    module = smelt.make_ir(lambda x, *w: smelt.quantized_matmul(x, *w, bits=bits, mode=mode))(x, *packed)
    assert len(compile_module(text.parse(module), smelt.cpu).kernels) == 1


def test_derivatives_of_a_product() -> None:
    q, scales, biases = smelt.quantize(smelt.array(matrix()), 64, 4)
    x, t = (smelt.array(RNG.standard_normal(s).astype(np.float32)) for s in ((3, 256), (3, 5)))
    codes = codes_of(np.array(q), 4, 256).reshape(5, 4, 64)

    def loss(x: smelt.array, s: smelt.array, b: smelt.array) -> smelt.array:
        return (smelt.quantized_matmul(x, q, s, b, bits=4) * t).sum()

    dx, ds, db = smelt.grad(loss, argnums=(0, 1, 2))(x, scales, biases)
    products = np.einsum("tr,tgi->rgi", np.array(t), np.array(x).reshape(3, 4, 64))
    np.testing.assert_allclose(np.array(dx), np.array(t) @ np.array(smelt.dequantize(q, scales, biases)), rtol=1e-4)
    np.testing.assert_allclose(np.array(ds), (products * codes).sum(-1), rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(np.array(db), products.sum(-1), rtol=1e-3, atol=1e-3)


def test_stacks_and_vmap() -> None:
    w = smelt.array(RNG.standard_normal((3, 4, 64)).astype(np.float32))
    x = smelt.array(RNG.standard_normal((3, 2, 64)).astype(np.float32))
    packed = smelt.quantize(w)
    found = smelt.quantized_matmul(x, *packed)
    want = np.array(x) @ np.array(smelt.dequantize(*packed)).swapaxes(1, 2)
    np.testing.assert_allclose(np.array(found), want, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(np.array(smelt.vmap(smelt.quantized_matmul)(x, *packed)), want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("transpose", [True, False])
def test_products_of_chosen_matrices(transpose: bool) -> None:
    w = smelt.array(RNG.standard_normal((4, 64, 64)).astype(np.float32))
    x = smelt.array(RNG.standard_normal((3, 2, 64)).astype(np.float32))
    packed = smelt.quantize(w)
    left, right = np.array([2, 0]), np.array([[3], [1]])
    found = smelt.gather_qmm(x, *packed, smelt.array(left), smelt.array(right), transpose)
    full = np.array(smelt.dequantize(*packed))[right]
    want = np.array(x)[left] @ (full.swapaxes(-1, -2) if transpose else full)
    np.testing.assert_allclose(np.array(found), want, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("mode", ["nvfp4", "mxfp8"])
def test_products_of_two_quantized_sides(mode: str) -> None:
    x, w = (RNG.standard_normal(s).astype(np.float32) for s in ((3, 64), (5, 64)))
    sides = [smelt.quantize(smelt.array(a), mode=mode) for a in (x, w)]
    full = [np.array(smelt.dequantize(*s, mode=mode, dtype=smelt.float32)) for s in sides]
    want = full[0] @ full[1].T
    np.testing.assert_allclose(np.array(smelt.qqmm(smelt.array(x), smelt.array(w), mode=mode)), want, atol=1e-4)
    np.testing.assert_allclose(np.array(smelt.qqmm(smelt.array(x), *sides[1], mode=mode)), want, atol=1e-4)
    many = smelt.gather_qqmm(smelt.array(x)[None], smelt.array(w)[None], rhs_indices=smelt.array([0, 0]), mode=mode)
    np.testing.assert_allclose(np.array(many), [want, want], atol=1e-4)


W = smelt.ones((4, 64))
PACKED = smelt.quantize(W)


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: smelt.quantize(W, 48), AttributeValueError, "group_size of mode 'affine' is 32, 64, 128, not 48"),
        (lambda: smelt.quantize(W, bits=7), AttributeValueError, "bits of mode 'affine' is 1, 2, 3, 4, 5, 6, 8, not 7"),
        (lambda: smelt.quantize(W, 64, mode="mxfp4"), AttributeValueError, "group_size of mode 'mxfp4' is 32, not 64"),
        (lambda: smelt.quantize(W, mode="int4"), AttributeValueError, 'mode must be "affine", "mxfp4"'),
        (lambda: smelt.quantize(W, global_scale=smelt.array(1.0)), AttributeValueError, "is for mode 'nvfp4'"),
        (lambda: smelt.quantize(smelt.ones((4, 100))), ShapeError, r"groups of 64; w f32\[4,100\]"),
        (lambda: smelt.quantize(smelt.ones(64)), ShapeError, "needs a matrix"),
        (lambda: smelt.quantize(smelt.ones((4, 64), smelt.int32)), DTypeError, "needs float32, float16 or bfloat16"),
        (lambda: smelt.dequantize(*PACKED[:2]), AttributeValueError, "mode 'affine' needs biases"),
        (lambda: smelt.dequantize(*PACKED, mode="mxfp4"), AttributeValueError, "mode 'mxfp4' has no biases"),
        (lambda: smelt.dequantize(*PACKED, bits=8), ShapeError, "do not belong together with 8 bits an element"),
        (lambda: smelt.dequantize(*PACKED, 32), ShapeError, "a scale for 32 of them"),
        (lambda: smelt.dequantize(PACKED[0].astype(smelt.int32), *PACKED[1:]), DTypeError, "packed numbers are uint32"),
        (lambda: smelt.dequantize(PACKED[0], PACKED[1], PACKED[2][:2]), ShapeError, "biases must be like the scales"),
        (lambda: smelt.quantized_matmul(smelt.ones((2, 32)), *PACKED), ShapeError, "matmul"),
        (lambda: smelt.quantized_matmul(smelt.ones((2, 64), smelt.int32), *PACKED), DTypeError, "x must be floating"),
        (lambda: smelt.qqmm(W, W, mode="mxfp4"), AttributeValueError, '"nvfp4" or "mxfp8"'),
        (lambda: smelt.qqmm(W, smelt.ones((4, 32))), ShapeError, "rows of 64 and 32 elements"),
        (lambda: smelt.to_fp8(smelt.ones(3, smelt.int32)), DTypeError, "to_fp8"),
        (lambda: smelt.from_fp8(smelt.ones(3)), DTypeError, "x must be uint8"),
        (lambda: smelt.from_fp8(smelt.ones(3, smelt.uint8), smelt.int8), DTypeError, "dtype must be floating point"),
    ],
)  # fmt: skip
def test_errors_name_the_users_line(call, error, message) -> None:
    with pytest.raises(error, match=message) as info:
        call()
    assert "test_quantization.py" in str(info.value)


@pytest.mark.parametrize("rows", [0, 1])
def test_few_rows(rows: int) -> None:
    q, scales, biases = smelt.quantize(smelt.ones((rows, 64)), bits=3)
    assert q.shape == (rows, 6) and scales.shape == (rows, 1)
    assert smelt.quantized_matmul(smelt.ones((2, 64)), q, scales, biases, bits=3).shape == (2, rows)
    np.testing.assert_array_equal(np.array(smelt.dequantize(q, scales, biases, bits=3)), np.ones((rows, 64)))


@pytest.mark.parametrize("kind", [smelt.float16, smelt.bfloat16])
def test_products_beside_wider_numbers_round_nothing_to_the_dtype_of_the_scales(kind: smelt.Dtype) -> None:
    rng = np.random.default_rng(5)
    x, w = smelt.array(rng.normal(size=(2, 1, 128)), smelt.float32), smelt.array(rng.normal(size=(2, 8, 128)), kind)
    words, *factors = smelt.quantize(w)
    wide = smelt.dequantize(words, *(a.astype(smelt.float64) for a in factors))
    exact = np.array(x).astype(np.float64) @ np.array(wide).swapaxes(-1, -2)
    chosen = smelt.gather_qmm(x, words, *factors, rhs_indices=smelt.array([1, 0]))
    np.testing.assert_allclose(np.array(smelt.quantized_matmul(x, words, *factors)), exact, 1e-5, 1e-5)
    np.testing.assert_allclose(
        np.array(chosen), np.array(x) @ np.array(wide)[[1, 0]].swapaxes(-1, -2), rtol=1e-5, atol=1e-5
    )
    assert smelt.quantized_matmul(x.astype(kind), words, *factors).dtype is kind


def test_errors_of_chosen_products_name_the_function() -> None:
    packed = smelt.quantize(smelt.ones((3, 32, 64)))
    x, at = smelt.ones((2, 1, 64)), smelt.array([0, 2])
    nothing = [part[:0] for part in packed]
    for call, error, words in (
        (lambda: smelt.gather_qmm(x[0, 0], *packed, rhs_indices=at), smelt.errors.ShapeError, "needs matrices"),
        (lambda: smelt.gather_qmm(x[..., :9], *packed, rhs_indices=at), smelt.errors.ShapeError, "as many columns"),
        (lambda: smelt.gather_qmm(x, *packed, lhs_indices=at / 2), smelt.errors.DTypeError, "lhs_indices must be"),
        (lambda: smelt.gather_qmm(x, *packed, rhs_indices=at / 2), smelt.errors.DTypeError, "rhs_indices must be"),
        (lambda: smelt.gather_qmm(x, *nothing, rhs_indices=at), smelt.errors.IndexOutOfRangeError, "no matrices"),
    ):
        with pytest.raises(error, match=rf"smelt\.gather_qmm: .*{words}"):
            call()

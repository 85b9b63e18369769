"""Contractions on the simulator against the reference interpreter, in every race mode."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import smelt
from smelt.backends.gpu.devices import GPUS
from smelt.backends.gpu.manifest import KernelInfo
from smelt.backends.gpu.program import DeviceSegment, Program
from smelt.backends.metal.check import check as strict
from smelt.backends.metal.simulator import Options

from . import harness

FLOATS = ("float32", "float16", "bfloat16")
ORDERS = ("forward", "reverse", "shuffled")


def of(*shape: int, dtype: str = "float32") -> smelt.ShapeDtype:
    return smelt.ShapeDtype(shape, dtype)


def matmul(a: Any, b: Any) -> Any:
    return a @ b


def gelu(x: Any) -> Any:
    return 0.5 * x * (1 + smelt.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


def linear(x: Any, w: Any, b: Any) -> Any:
    return gelu(x @ w + b)


def right(function: Callable, *arguments: Any) -> KernelInfo:
    """Check values in plain and in race mode, and the text; the one kernel."""
    program: Program | None = None
    for options in (None, *(Options(order=order, poison=True, guard=True) for order in ORDERS)):
        program = harness.check(function, *arguments, tolerance=1e-4, options=options)
    assert program is not None
    (segment,) = program.segments
    assert isinstance(segment, DeviceSegment)
    assert not strict(segment.text)
    (kernel,) = segment.manifest.kernels
    assert kernel.threadgroup_bytes <= 32768
    return kernel


MATRICES = {
    "square": (matmul, (64, 64), (64, 64)),
    "ragged": (matmul, (33, 17), (17, 65)),
    "ragged rows": (matmul, (129, 100), (100, 64)),
    "one step": (matmul, (40, 12), (12, 36)),
    "lhs transposed": (lambda a, b: a.T @ b, (48, 64), (48, 40)),
    "rhs transposed": (lambda a, b: a @ b.T, (64, 48), (40, 48)),
    "both transposed": (lambda a, b: a.T @ b.T, (48, 64), (40, 48)),
    "batched": (matmul, (3, 20, 24), (3, 24, 36)),
    "few rows": (matmul, (9, 200), (200, 64)),
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", MATRICES)
def test_matrices(name: str, dtype: str) -> None:
    function, left, other = MATRICES[name]
    assert right(function, of(*left, dtype=dtype), of(*other, dtype=dtype)).schedule == "contract"


OPERANDS = {
    "lhs broadcast": (matmul, (24, 24), (3, 24, 36)),
    "rhs broadcast": (matmul, (3, 20, 24), (24, 36)),
    "batches broadcast": (matmul, (5, 1, 20, 24), (3, 24, 36)),
    "two contracted axes": (lambda a, b: smelt.einsum("abk,kbc->ac", a, b), (20, 6, 8), (8, 6, 24)),
    "heads": (lambda q, k: smelt.einsum("bqhd,bkhd->bhqk", q, k), (2, 20, 4, 16), (2, 24, 4, 16)),
    "values of heads": (lambda p, v: smelt.einsum("bhqk,bkhd->bqhd", p, v), (2, 4, 20, 24), (2, 24, 4, 16)),
    "flipped": (lambda a, b: a[::-1] @ b[:, ::-1], (40, 64), (64, 48)),
    "sliced": (lambda a, b: a[1:33, 4:36] @ b, (40, 64), (32, 48)),
    "reshaped": (lambda a, b: a.reshape(40, 32) @ b, (5, 8, 4, 8), (32, 48)),
    "concatenated": (lambda a, b: a @ smelt.concatenate([b, b], 0), (40, 40), (20, 36)),
    "padded": (lambda a, b: smelt.pad(a, ((0, 0), (2, 2))) @ b, (40, 40), (44, 36)),
}


@pytest.mark.parametrize("name", OPERANDS)
def test_operands_at_any_index(name: str) -> None:
    function, left, other = OPERANDS[name]
    assert right(function, of(*left), of(*other)).schedule == "contract"


WIDENED = {
    "both": (lambda a, b: a.astype("float32") @ b.astype("float32"), (40, 64), (64, 48)),
    "transposed": (lambda a, b: a.astype("float32").T @ b.T.astype("float32"), (64, 40), (48, 64)),
    "row": (lambda a, b: a.astype("float32") @ b.astype("float32"), (1, 256), (256, 64)),
    "lines": (lambda a, b: a.astype("float32") @ b.astype("float32").T, (1, 256), (64, 256)),
}


@pytest.mark.parametrize("dtype", ("float16", "bfloat16"))
@pytest.mark.parametrize("name", WIDENED)
def test_half_precision_is_widened_as_it_is_read(name: str, dtype: str) -> None:
    function, left, other = WIDENED[name]
    arguments = of(*left, dtype=dtype), of(*other, dtype=dtype)
    kernel = right(function, *arguments)
    assert kernel.bytes_read == 2 * (math.prod(left) + math.prod(other))
    assert ("half4*" if dtype == "float16" else "bfloat4*") in harness.metal_text(function, *arguments)


WINDOWS: dict[str, tuple[dict[str, Any], tuple[int, ...], tuple[int, ...]]] = {
    "padded": ({"padding": 1}, (2, 40, 16), (36, 3, 16)),
    "wide": ({"padding": 3, "dilation": 3, "stride": 2}, (2, 40, 16), (36, 3, 16)),
    "groups": ({"padding": 2, "groups": 2}, (2, 30, 32), (64, 3, 16)),
    "channels apart": ({"padding": 1, "groups": 32}, (2, 30, 32), (32, 3, 1)),
    "few channels": ({"padding": 1}, (1, 90, 3), (20, 5, 3)),
    "one output": ({"padding": 1}, (1, 90, 16), (1, 3, 16)),
}


@pytest.mark.parametrize("dtype", ("float32", "float16"))
@pytest.mark.parametrize("name", WINDOWS)
def test_convolutions(name: str, dtype: str) -> None:
    options, left, other = WINDOWS[name]

    def function(x: Any, w: Any) -> Any:
        return smelt.maximum(smelt.conv1d(x, w, **options), 0)

    kernel = right(function, of(*left, dtype=dtype), of(*other, dtype=dtype))
    assert (kernel.schedule == "contract") == (name in ("padded", "wide", "groups", "few channels"))


def test_full_tiles() -> None:
    """Enough threadgroups for tiles of 64 by 64, and for blocks of tiles in order."""
    assert right(matmul, of(16, 128, 24), of(16, 24, 128)).threadgroups == (64, 1, 1)
    assert right(matmul, of(64, 60, 40, dtype="float16"), of(64, 40, 64, dtype="float16")).threads == (128, 1, 1)
    assert right(matmul, of(512, 24), of(24, 40)).schedule == "contract"


EPILOGUES = {
    "bias and gelu": (linear, (2, 40, 48), (48, 36), (36,)),
    "odd columns": (linear, (40, 33), (33, 35), (35,)),
    "residual": (lambda a, b, r: a @ b + r, (40, 64), (64, 48), (40, 48)),
    "two outputs": (lambda a, b, r: (a @ b + r, (a @ b + r) * 2), (40, 64), (64, 48), (40, 48)),
    "sliced residual": (lambda a, b, r: a @ b + r[1:41, 2:50], (40, 64), (64, 48), (44, 52)),
    "padded residual": (lambda a, b, r: a @ b + smelt.pad(r, ((4, 4), (8, 8))), (40, 64), (64, 48), (32, 32)),
    "transposed": (lambda a, b, r: smelt.exp((a @ b).T * 0.01 + r), (33, 40), (40, 64), (64, 33)),
    "split into heads": (
        lambda a, b, r: (a @ b + r).reshape(2, 10, 4, 16).transpose(0, 2, 1, 3), (2, 10, 64), (64, 64), (64,)
    ),
    "of a vector": (lambda a, b, r: smelt.tanh(a @ b + r), (70, 64), (64,), (70,)),
    "of a shallow product": (lambda a, b, r: a @ b + r, (33, 2), (2, 64), (33, 64)),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ("float32", "bfloat16"))
@pytest.mark.parametrize("name", EPILOGUES)
def test_epilogues_are_in_the_same_kernel(name: str, dtype: str) -> None:
    function, *shapes = EPILOGUES[name]
    assert right(function, *(of(*shape, dtype=dtype) for shape in shapes)).schedule.startswith("contract")


def test_outputs_of_another_dtype() -> None:
    assert right(lambda a, b: (a @ b).astype("float16"), of(40, 40), of(40, 36)).bytes_written == 40 * 36 * 2
    assert right(lambda a, b: a @ b > 0, of(33, 40), of(40, 64)).bytes_written == 33 * 64


VECTORS = {
    "rows": (matmul, (70, 256), (256,)),
    "odd rows": (matmul, (71, 131), (131,)),
    "columns": (matmul, (256,), (256, 72)),
    "odd columns": (matmul, (131,), (131, 71)),
    "batched rows": (lambda a, b: smelt.einsum("bmk,bk->bm", a, b), (3, 20, 64), (3, 64)),
    "batched columns": (lambda a, b: smelt.einsum("bkm,bk->bm", a, b), (3, 64, 40), (3, 64)),
    "dot": (matmul, (5000,), (5000,)),
    "few deep rows": (matmul, (7, 5000), (5000,)),
    "few deep columns": (matmul, (5000,), (5000, 40)),
    "strided vector": (lambda a, b: a @ b[:, 3], (70, 256), (256, 8)),
}


@pytest.mark.thinned(3)
@pytest.mark.parametrize("dtype", (*FLOATS, "int32", "int8", "int64", "complex64"))
@pytest.mark.parametrize("name", VECTORS)
def test_vectors(name: str, dtype: str) -> None:
    function, left, other = VECTORS[name]
    assert right(function, of(*left, dtype=dtype), of(*other, dtype=dtype)).schedule == "contract-vector"


def quantized(mode: str, group: int, bits: int) -> Callable:
    def product(x: Any, *weights: Any) -> Any:
        packed = (*weights, None)[:3]
        return smelt.quantized_matmul(x, *packed, transpose=True, group_size=group, bits=bits, mode=mode)

    return product


FORMATS = [("affine", 64, bits) for bits in (1, 2, 3, 4, 5, 6, 8)] + [("affine", 32, 4), ("affine", 128, 4)]


@pytest.mark.parametrize("rows", (1, 3, 8))
@pytest.mark.parametrize(("mode", "group", "bits"), FORMATS)
def test_few_rows_by_packed_weights(mode: str, group: int, bits: int, rows: int) -> None:
    columns, depth, dtype = {1: (37, 512, "float32"), 3: (9, 640, "bfloat16"), 8: (130, 256, "float16")}[rows]
    words = of(columns, depth * bits // 32, dtype="uint32")
    scales = of(columns, depth // group, dtype=dtype)
    x = of(rows, depth, dtype=dtype)
    assert right(quantized(mode, group, bits), x, words, scales, scales).schedule == "contract-words"


def test_packed_weights_of_few_lines_and_great_depth() -> None:
    """Threadgroups share the depth."""
    program = harness.check(
        quantized("affine", 64, 4), of(2, 65536), of(5, 8192, dtype="uint32"), *[of(5, 1024)] * 2, tolerance=1e-4
    )
    (segment,) = program.segments
    assert [kernel.schedule for kernel in segment.manifest.kernels] == ["contract-words shares", "combine"]


def test_packed_weights_on_the_left_chosen_by_indices_and_followed_by_more() -> None:
    def left(w: Any, s: Any, b: Any, x: Any) -> Any:
        return smelt.maximum(smelt.dequantize(w, s, b) @ x, 0) + 1

    weights = of(40, 64, dtype="uint32"), of(40, 8), of(40, 8)
    assert right(left, *weights, of(512)).schedule == "contract-words"
    assert right(left, *weights, of(512, 2)).schedule in ("contract-words", "contract-matrices")

    def padded(x: Any, *w: Any) -> Any:  # places of scales and words are outside of them where there is padding
        lines = smelt.pad(smelt.dequantize(*w), ((2, 3), (0, 0)))
        return x @ smelt.concatenate([lines, smelt.dequantize(*w)[::-1]]).T

    right(padded, of(2, 512), *weights)

    def experts(x: Any, at: Any, *w: Any) -> Any:
        return smelt.gather_qmm(x, *w, rhs_indices=at % 3)

    stacks = of(3, 40, 64, dtype="uint32"), of(3, 40, 8), of(3, 40, 8)
    program = harness.check(experts, of(4, 1, 512), of(4, dtype="int32"), *stacks, tolerance=1e-4)
    (segment,) = program.segments
    assert "contract-words" in [kernel.schedule for kernel in segment.manifest.kernels]


@pytest.mark.parametrize("dtype", ("int32", "int64", "uint8", "int16", "complex64"))
def test_other_dtypes(dtype: str) -> None:
    assert right(matmul, of(33, 17, dtype=dtype), of(17, 65, dtype=dtype)).schedule == "contract-blocks"
    assert right(matmul, of(3, 5, dtype=dtype), of(5, 4, dtype=dtype)).schedule == "contract-elements"
    assert right(matmul, of(2, 33, 17, dtype=dtype), of(2, 17, 65, dtype=dtype)).schedule == "contract-blocks"


@pytest.mark.parametrize("dtype", FLOATS)
def test_shallow(dtype: str) -> None:
    assert right(matmul, of(33, 3, dtype=dtype), of(3, 64, dtype=dtype)).schedule == "contract-elements"
    assert right(matmul, of(33, 2, dtype=dtype), of(2, 65, dtype=dtype)).schedule == "contract-elements"


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_product_of_one_place_is_one_of_elements(dtype: str) -> None:
    assert right(matmul, of(33, 1, dtype=dtype), of(1, 65, dtype=dtype)).schedule == "map"
    operands = [of(*shape, dtype=dtype) for shape in ((33, 1), (1, 64), (33, 64))]
    assert right(lambda a, b, r: a @ b + r, *operands).schedule == "map"


@pytest.mark.parametrize("left, other", [((4, 0), (0, 8)), ((0, 4), (4, 8)), ((4, 8), (8, 0)), ((1,), (1,))])
def test_empty_and_scalar(left: tuple[int, ...], other: tuple[int, ...]) -> None:
    right(matmul, of(*left), of(*other))


def test_nothing_contracted_with_an_epilogue() -> None:
    right(linear, of(4, 0), of(0, 8), of(8))


def test_costs_count_every_byte_once() -> None:
    kernel = right(linear, of(64, 48), of(48, 36), of(36))
    assert kernel.bytes_read == 4 * (64 * 48 + 48 * 36 + 36)
    assert kernel.bytes_written == 4 * 64 * 36
    assert kernel.flops >= 2 * 64 * 48 * 36


def test_operands_are_read_as_vectors() -> None:
    text = harness.metal_text(linear, of(64, 48), of(48, 36), of(36))
    assert text.count("*(device const float4*)") == 5  # lhs and rhs before and in the loop, and the bias
    assert text.count("*(device float4*)") == 1
    assert "thread_elements" not in text


def test_half_precision_stays_narrow_in_threadgroup_memory() -> None:
    narrow = harness.metal_text(matmul, of(64, 64, dtype="float16"), of(64, 64, dtype="float16"))
    assert "simdgroup_half8x8" in narrow and "simdgroup_float8x8 sum" in narrow
    wide = harness.metal_text(matmul, of(64, 64, dtype="bfloat16"), of(64, 64, dtype="bfloat16"))
    assert "simdgroup_bfloat8x8" in wide and "threadgroup bfloat tiles" in wide


#: Products of which threadgroups share the contracted axes, and by which schedule.
SHARED = {
    "dot": ("contract-vector", matmul, (400_000,), (400_000,)),
    "odd dot": ("contract-vector", matmul, (400_003,), (400_003,)),
    "few rows": ("contract-vector", matmul, (7, 70_001), (70_001,)),
    "columns": ("contract-vector", matmul, (9000,), (9000, 72)),
    "odd columns": ("contract-vector", matmul, (9001,), (9001, 71)),
    "batched columns": ("contract-vector", lambda a, b: smelt.einsum("bkm,bk->bm", a, b), (3, 8200, 40), (3, 8200)),
    "small": ("contract", matmul, (16, 5000), (5000, 16)),
    "odd small": ("contract", matmul, (17, 5003), (5003, 5)),
    "batched small": ("contract", matmul, (3, 20, 6001), (3, 6001, 12)),
    "transposed": ("contract", lambda a, b: a.T @ b.T, (5000, 16), (12, 5000)),
    "two axes": ("contract", lambda a, b: smelt.einsum("abk,kbc->ac", a, b), (20, 6, 600), (600, 6, 24)),
    "with more behind it": ("contract", lambda a, b: smelt.tanh(a @ b * 0.01) + 1, (16, 5000), (5000, 16)),
}


def right_in_two_kernels(schedule: str, function: Callable, *arguments: Any) -> None:
    """Check values in every order of threads, the same bits in each; and the texts."""
    for options in (Options(order=order, poison=True, guard=True) for order in ORDERS):
        program = harness.check(function, *arguments, tolerance=2e-4, options=options)
    (segment,) = program.segments
    assert isinstance(segment, DeviceSegment)
    assert not strict(segment.text)
    shares, combine = segment.manifest.kernels
    assert (shares.schedule, combine.schedule) == (f"{schedule} shares", "combine")
    assert shares.threadgroups[0] >= 7 and combine.bytes_read == shares.bytes_written < 0.3 * shares.bytes_read


@pytest.mark.parametrize("dtype", ("float32", "bfloat16"))
@pytest.mark.parametrize("name", SHARED)
def test_deep_products_are_shared(name: str, dtype: str) -> None:
    schedule, function, left, other = SHARED[name]
    right_in_two_kernels(schedule, function, of(*left, dtype=dtype), of(*other, dtype=dtype))


@pytest.mark.parametrize("dtype", ("int64", "uint8", "complex64"))
def test_deep_products_of_other_dtypes_are_shared(dtype: str) -> None:
    for schedule, left, other in (
        ("contract-vector", (300_000,), (300_000,)),
        ("contract-blocks", (16, 5000), (5000, 16)),
        ("contract-elements", (17, 5003), (5003, 5)),
    ):
        right_in_two_kernels(schedule, matmul, of(*left, dtype=dtype), of(*other, dtype=dtype))


def test_several_results_of_a_simdgroup() -> None:
    """Many rows: what is read of the vector serves several."""
    assert right(matmul, of(2100, 64), of(64)).threadgroups == (66, 1, 1)


@pytest.mark.parametrize(
    "left, other", [((1 << 26,), (1 << 26,)), ((8192,), (8192, 8192)), ((16, 1 << 20), (1 << 20, 16))], ids=str
)
def test_deep_products_have_work_for_all_of_the_gpu(left: tuple[int, ...], other: tuple[int, ...]) -> None:
    graph = harness.graph_of(matmul, of(*left), of(*other))
    shares, combine = harness.program_of(graph, "apple8").kernels
    assert shares.threadgroups[0] >= 1024 and combine.bytes_read < 0.05 * shares.bytes_read


#: Tiles of 16-bit operands: with room for two in threadgroup memory and without, and more simdgroups than two by two.
HALF_TILES = [((128, 128, 32), (2, 2)), ((128, 128, 16), (2, 2)), ((128, 64, 32), (2, 4)), ((64, 128, 64), (4, 2))]
HALF_PRODUCTS = {
    "whole": (matmul, (128, 64), (64, 128)),
    "ragged": (matmul, (130, 70), (70, 200)),
    "of vectors": (matmul, (72, 96), (96, 136)),
    "transposed": (lambda a, b: a.T @ b.T, (96, 100), (120, 96)),
    "batched": (matmul, (2, 66, 40), (2, 40, 72)),
    "one step": (lambda a, b: smelt.tanh(a @ b) + 1, (100, 16), (16, 90)),
}


@pytest.mark.thinned(3)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize(("tile", "simdgroups"), HALF_TILES, ids=str)
@pytest.mark.parametrize("name", HALF_PRODUCTS)
def test_tiles_of_half_precision(
    name: str, tile: tuple[int, int, int], simdgroups: tuple[int, int], dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu = replace(GPUS["simulator"], half_tile=tile, half_simdgroups=simdgroups, tiles=1)
    monkeypatch.setitem(GPUS, "simulator", gpu)
    function, left, right = HALF_PRODUCTS[name]
    races = [Options(order=order, poison=True, guard=True) for order in ("reverse", "shuffled")]
    arguments = of(*left, dtype=dtype), of(*right, dtype=dtype)
    program = harness.check_all(function, *arguments, tolerance=2e-2, options=races)
    (segment,) = program.segments
    assert isinstance(segment, DeviceSegment)
    assert [k.schedule for k in program.kernels] == ["contract"] and not strict(segment.text)
    assert all(k.threadgroup_bytes <= gpu.threadgroup_bytes for k in program.kernels)

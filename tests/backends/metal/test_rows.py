"""Reductions on the GPU: rows, columns, chunks; values in every order of threads, and what they move."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.backends.gpu.devices import GPUS
from smelt.backends.metal.check import check as strict
from smelt.backends.metal.simulator import Options

from .harness import check, check_all, expected, graph_of, metal_text, program_of, run, sample
from .programs import cross_entropy, layer_norm, rms_norm, softmax

f32, f16, bf16 = smelt.float32, smelt.float16, smelt.bfloat16
S = smelt.ShapeDtype
RACES = [Options(order=order, poison=True, guard=True) for order in ("forward", "reverse", "shuffled")]


def races(function: Callable, *arguments: Any, tolerance: float = 2e-5) -> Any:
    """Right values, whatever the order in which threads run; the program."""
    return check_all(function, *arguments, tolerance=tolerance, options=RACES)


def only(program: Any) -> Any:
    (kernel,) = program.kernels
    return kernel


def run_on(function: Callable, *arrays: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """What the simulator and the reference make of given operands."""
    graph = graph_of(function, *(smelt.array(x) for x in arrays))
    return run(program_of(graph), arrays), expected(graph, arrays)


# Shapes

ROW_SHAPES = [(1, 1), (3, 1), (5, 3), (70, 5), (9, 33), (7, 64), (2, 100), (3, 1000), (2, 1024), (2, 4099), (1, 20000)]


@pytest.mark.parametrize("shape", ROW_SHAPES, ids=str)
def test_rows(shape: tuple[int, int]) -> None:
    races(lambda x: smelt.sum(x, axis=1), S(shape, f32))


@pytest.mark.parametrize("shape", ROW_SHAPES, ids=str)
def test_columns(shape: tuple[int, int]) -> None:
    races(lambda x: smelt.sum(x, axis=0), S(shape[::-1], f32))


SOME_AXES = [axes for n in (1, 2, 3) for axes in itertools.combinations(range(3), n)]


@pytest.mark.parametrize("axes", SOME_AXES, ids=str)
@pytest.mark.parametrize("shape", [(5, 6, 8), (3, 1, 7), (1, 9, 4), (4, 33, 3)], ids=str)
def test_axes(shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    check(lambda x: (smelt.sum(x * 2, axis=axes), smelt.max(x, axis=axes)), S(shape, f32), options=RACES[2])


CHUNKED = [(40000,), (100003,), (3, 50001), (2, 40000), (70000, 2), (9000, 12), (40, 2000)]


@pytest.mark.parametrize("shape", CHUNKED, ids=str)
def test_chunks(shape: tuple[int, ...]) -> None:
    axis = int(len(shape) == 2 and shape[1] > shape[0])
    program = races(lambda x: smelt.sqrt(smelt.sum(x * x, axis=axis)), S(shape, f32), tolerance=1e-4)
    sizes = [k.threadgroups[0] for k in program.kernels]
    assert len(sizes) == (1 if shape == (40, 2000) else 2), sizes


def test_many_results_of_chunks() -> None:
    def moments(x: Any) -> Any:
        return smelt.mean(x), smelt.max(x), smelt.argmax(x), smelt.sum(x * x) * 2, smelt.min(x) + 1

    program = races(moments, S((60000,), f32), tolerance=1e-4)
    assert len(program.kernels) == 2


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (0, 0), (2, 0, 3)], ids=str)
def test_nothing_to_reduce(shape: tuple[int, ...]) -> None:
    for axis in range(len(shape)):
        check(lambda x, axis=axis: (smelt.sum(x, axis=axis), smelt.prod(x + 1, axis=axis)), S(shape, f32))
    check(lambda x: smelt.sum(x), S(shape, f32))


def test_scalar() -> None:
    check(lambda x: smelt.sum(x) + x, S((), f32))
    check(lambda x: smelt.sum(smelt.exp(x)), S((1, 1), f32))


# Dtypes

DTYPES = [
    f16, bf16, smelt.int8, smelt.int16, smelt.int32, smelt.int64, smelt.uint8, smelt.uint32, smelt.uint64,
    smelt.complex64,
]  # fmt: skip


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_dtypes(dtype: Any, axis: int) -> None:
    def function(x: Any) -> Any:
        extremes = () if dtype is smelt.complex64 else (smelt.max(x, axis=axis), smelt.argmin(x, axis=axis))
        return smelt.sum(x, axis=axis), *extremes

    for shape in ((40, 64), (300, 7)):
        check(function, S(shape, dtype), tolerance=1e-4, options=RACES[2])


@pytest.mark.parametrize("axis", [0, 1])
def test_truth_values(axis: int) -> None:
    def function(x: Any) -> Any:
        return smelt.all(x, axis=axis), smelt.any(x, axis=axis), smelt.argmax(x, axis=axis), smelt.max(x, axis=axis)

    races(function, S((37, 52), smelt.bool_))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_first_of_several_extrema(name: str, axis: int) -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 4, (65, 300)).astype(np.float32)
    for array in (x, x.astype(np.int32), np.full_like(x, -np.inf), np.full_like(x, np.inf)):
        found, want = run_on(lambda x: getattr(smelt, name)(x, axis=axis), array)
        np.testing.assert_array_equal(found[0], want[0])


@pytest.mark.parametrize("axis", [0, 1])
def test_nan_wins(axis: int) -> None:
    x = np.random.default_rng(0).standard_normal((65, 300)).astype(np.float32)
    x[3, 7] = x[40, 7] = x[40, 200] = np.nan
    x[5] = -np.inf

    def function(x: Any) -> Any:
        axes = {"axis": axis}
        return smelt.argmax(x, **axes), smelt.argmin(x, **axes), smelt.max(x, **axes), smelt.min(x, **axes)

    for f, w in zip(*run_on(function, x)):
        np.testing.assert_array_equal(f, w)


# Several stages


def batch_norm(x: Any, weight: Any) -> Any:
    mean = smelt.mean(x, axis=0)
    variance = smelt.mean((x - mean) ** 2, axis=0)
    return (x - mean) * smelt.rsqrt(variance + 1e-5) * weight, mean, variance


def softmax_down(x: Any) -> Any:
    e = smelt.exp(x - smelt.max(x, axis=0, keepdims=True))
    return e / smelt.sum(e, axis=0, keepdims=True)


@pytest.mark.parametrize("shape", [(3, 5), (4, 64), (5, 1000), (2, 8192), (200, 12)], ids=str)
def test_norms_of_rows(shape: tuple[int, int]) -> None:
    row = S(shape[1:], f32)
    races(softmax, S(shape, f32))
    races(layer_norm, S(shape, f32), row, row)
    check(rms_norm, S(shape, f32), row)


@pytest.mark.parametrize("shape", [(5, 3), (64, 4), (300, 20), (1000, 6), (33, 130), (3000, 8)], ids=str)
def test_norms_of_columns(shape: tuple[int, int]) -> None:
    races(softmax_down, S(shape, f32))
    races(batch_norm, S(shape, f32), S(shape[1:], f32), tolerance=1e-4)


@pytest.mark.parametrize("dtype", [f16, bf16], ids=str)
def test_half_precision(dtype: Any) -> None:
    check(softmax, S((3, 1024), dtype))
    check(softmax_down, S((200, 16), dtype))
    check(layer_norm, S((4, 384), dtype), S((384,), dtype), S((384,), dtype), tolerance=4e-2)


@pytest.mark.parametrize("dtype", [f16, bf16], ids=str)
def test_quotients_by_one_number_of_a_row(dtype: Any) -> None:
    """By its reciprocal, computed once; huge, tiny, infinite and missing divisors all the same."""
    rng = np.random.default_rng(0)
    divisors = [1, -3, 0, -0.0, np.inf, -np.inf, np.nan, 6e4, 6e-8, 1e-5]
    if dtype is bf16:
        divisors += [3e38, -2e38, 1e-38, -1e-40, 2e31, 1e-31]
    numbers = rng.standard_normal((len(divisors), 260)).astype(dtype.numpy)
    numbers[:, 1:7] = np.array([0, -0.0, np.inf, -np.inf, np.nan, 1e-6], dtype.numpy)
    numbers[:, 7:40] *= np.array(6e3 if dtype is f16 else 1e37, dtype.numpy)
    numbers[:, 40:80] *= np.array(1e-5 if dtype is f16 else 1e-36, dtype.numpy)
    numbers[:, 0] = np.array(divisors, dtype.numpy)
    (found,), _ = run_on(lambda x: x / smelt.sum(x[:, :1], axis=1, keepdims=True), numbers)
    with np.errstate(all="ignore"):
        wide = numbers.astype(np.float32)
        want = (wide / (wide[:, :1] + 0)).astype(dtype.numpy)  # the sum of one -0 is 0
    np.testing.assert_array_equal(np.signbit(found), np.signbit(want))
    same = (found == want) | (np.isnan(found) & np.isnan(want))
    near = np.nextafter(want, found) == found  # half precision of subnormal quotients is rounded twice
    assert (same | near).all() and same.mean() > 0.999


@pytest.mark.parametrize("dtype", [f32, f16, bf16], ids=str)
def test_softmax_of_infinities_and_nan(dtype: Any) -> None:
    x = np.random.default_rng(0).standard_normal((7, 1000)).astype(dtype.numpy)
    x[1, 3], x[2, :500], x[3, 7], x[4], x[5] = np.nan, -np.inf, np.inf, -np.inf, np.float32(-6e4).astype(dtype.numpy)
    x[6, 500:] = np.array(-1e4, dtype.numpy)
    program = program_of(graph_of(softmax, smelt.array(x)))
    for options in RACES:
        (found,) = run(program, [x], options)
        with np.errstate(all="ignore"):
            wide = x.astype(np.float64)
            e = np.exp(wide - wide.max(-1, keepdims=True))
            want = e / e.sum(-1, keepdims=True)
        bound = 1e-6 if dtype is f32 else 1e-3 if dtype is f16 else 8e-3
        np.testing.assert_allclose(found.astype(np.float64), want, rtol=bound, atol=1e-7)


def test_row_longer_than_registers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(GPUS, "simulator", replace(GPUS["simulator"], own_tiles=32))
    program = check(softmax, S((16, 40000), f32), options=RACES[2])
    assert only(program).bytes_read == 2 * 16 * 40000 * 4


def test_cross_entropy() -> None:
    scores, labels = sample(program_arguments(S((24, 100), f32))[0]), np.arange(24, dtype=np.int32) * 4
    found, want = run_on(cross_entropy, scores, labels)
    np.testing.assert_allclose(found[0], want[0], rtol=1e-5)
    found, want = run_on(smelt.grad(cross_entropy), scores, labels)
    np.testing.assert_allclose(found[0], want[0], rtol=1e-4, atol=1e-6)


def program_arguments(*specs: Any) -> Sequence[Any]:
    return program_of(graph_of(lambda *xs: xs, *specs)).arguments


@pytest.mark.parametrize("shape", [(6, 40), (40, 6), (3, 1024)], ids=str)
def test_gradients(shape: tuple[int, int]) -> None:
    x, row = S(shape, f32), S(shape[1:], f32)
    check(smelt.grad(lambda x, t: smelt.sum(softmax(x) * t)), x, x, tolerance=1e-4)
    check(smelt.grad(lambda x, w, b, t: smelt.sum(layer_norm(x, w, b) * t), argnums=(0, 1, 2)), x, row, row, x,
          tolerance=2e-4)  # fmt: skip
    check(smelt.grad(lambda x, w, t: smelt.sum(rms_norm(x, w) * t), argnums=(0, 1)), x, row, x, tolerance=2e-4)
    check(smelt.grad(lambda x, w, t: smelt.sum(batch_norm(x, w)[0] * t), argnums=(0, 1)), x, row, x, tolerance=2e-4)


def test_rows_with_reads_out_of_range() -> None:
    check(lambda x: smelt.sum(smelt.pad(x, ((0, 0), (4, 4))) * 2, axis=1), S((5, 64), f32), options=RACES[0])
    check(lambda x, y: smelt.softmax(smelt.concatenate((x, y), axis=1), axis=1), S((5, 64), f32), S((5, 32), f32),
          options=RACES[0])  # fmt: skip


def test_transposed() -> None:
    races(lambda x: smelt.softmax(smelt.transpose(x), axis=0), S((6, 300), f32))
    races(lambda x: smelt.sum(smelt.transpose(x) * 2, axis=1), S((300, 12), f32))


# What is moved


@pytest.mark.parametrize("dtype", [f32, bf16], ids=str)
@pytest.mark.parametrize("gpu", ["apple8", "nvidia"])
@pytest.mark.parametrize("n", [768, 1000, 4096, 8192])
def test_norms_are_one_kernel_that_moves_each_byte_once(gpu: str, dtype: Any, n: int) -> None:
    x, row = S((8192, n), dtype), S((n,), dtype)
    size = 2 if dtype is bf16 else 4
    for function, arguments, vectors in ((softmax, [x], 0), (layer_norm, [x, row, row], 2), (rms_norm, [x, row], 1)):
        kernel = only(program_of(graph_of(function, *arguments), gpu))
        assert kernel.bytes_read == (8192 * n + vectors * n) * size
        assert kernel.bytes_written == 8192 * n * size


def test_sum_of_many_elements_is_two_kernels() -> None:
    chunks, combine = program_of(graph_of(lambda x: smelt.sum(x), S((100_000_000,), f32)), "nvidia").kernels
    assert chunks.bytes_read == 400_000_000
    assert combine.bytes_read == chunks.bytes_written <= 4096
    assert chunks.threadgroups[0] >= 256 and combine.threadgroups[0] == 1


def test_column_sum_has_work_for_all_of_the_gpu() -> None:
    chunks, combine = program_of(graph_of(lambda x: smelt.sum(x, axis=0), S((8192, 8192), f32)), "nvidia").kernels
    assert chunks.bytes_read == 8192 * 8192 * 4
    assert chunks.threadgroups[0] >= 512
    assert combine.bytes_read < 0.01 * chunks.bytes_read


@pytest.mark.parametrize("gpu", ["apple8", "nvidia"])
def test_texts_are_valid(gpu: str) -> None:
    x, row = S((8192, 8192), f32), S((8192,), f32)
    programs: list[tuple[Callable, list[Any]]] = [
        (softmax, [x]),
        (softmax_down, [S((512, 8192), f32)]),
        (batch_norm, [x, row]),
        (layer_norm, [S((100, 768), bf16), S((768,), bf16), S((768,), bf16)]),
        (lambda x: (smelt.argmax(x), smelt.sum(x)), [x]),
        (lambda x: smelt.sum(x, axis=0), [S((100_000, 12), smelt.complex64)]),
    ]
    for function, arguments in programs:
        assert not strict(metal_text(function, *arguments, gpu=gpu))


def test_a_row_in_registers_is_loaded_once() -> None:
    assert metal_text(softmax, S((64, 8192), f32)).count("(device const float4*)(x +") == 1


def test_text_is_repeatable() -> None:
    graph = graph_of(layer_norm, S((16, 768), f32), S((768,), f32), S((768,), f32))
    assert program_of(graph).as_text("msl") == program_of(graph).as_text("msl")


# More rows than threadgroups: each sees to several, one after the other, with the same threadgroup memory

MOMENTS = {
    "one round": lambda x, axis: smelt.sum(x, axis=axis),
    "two rounds": lambda x, axis: smelt.softmax(x, axis=axis),
    "three rounds": lambda x, axis: smelt.sum(smelt.softmax(x, axis=axis) * x, axis=axis),
    "several at once": lambda x, axis: (smelt.sum(x, axis=axis), smelt.prod(x, axis=axis), smelt.argmax(x, axis=axis)),
    "many at once": lambda x, axis: [smelt.sum(x * i, axis=axis) for i in range(1, 18)],
}


@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("name", MOMENTS)
def test_more_rows_than_threadgroups(name: str, axis: int, groups: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(GPUS, "simulator", replace(GPUS["simulator"], groups=groups))
    shape = (7, 300) if axis else (300, 7 * 128)
    x = np.random.default_rng(0).uniform(0.97, 1.03, shape).astype(np.float32)
    graph = graph_of(lambda x: MOMENTS[name](x, axis), smelt.array(x))
    program = program_of(graph)
    looped = [k for k in program.kernels if k.threadgroups[0] == groups]
    assert looped, [k.threadgroups for k in program.kernels]
    wanted = expected(graph, [x])
    for options in RACES:
        for found, want in zip(run(program, [x], options), wanted, strict=True):
            np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-4)


def test_all_lanes_take_part_in_a_reduction_that_only_some_need() -> None:
    def chosen(m: Any, x: Any) -> Any:
        v = x[1:] * 2
        return smelt.where(smelt.arange(10, dtype=smelt.int32) < m.astype(smelt.int32).sum(), v, smelt.max(v))

    mask, x = S((10,), smelt.bool_), S((11,), smelt.int32)
    text = metal_text(chosen, mask, x)
    assert "simd_reduce_max" in text and not re.search(r"[?:&|] *\w*\(?simd_", text), text
    races(chosen, mask, x)


def test_vectors_have_16_bytes_at_most() -> None:
    """Results may be wider than what they are made of, and memory need not be aligned to more."""
    x = S((64, 96), smelt.uint32)
    text = metal_text(lambda x: smelt.sum(x.astype(smelt.uint64), axis=0), x)
    assert "ulong2" in text and "ulong4" not in text
    races(lambda x: smelt.sum(x.astype(smelt.uint64), axis=0), x)

"""The same bytes as other dtypes: every pair, every bit pattern, op by op and through the compilers."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir import dtypes
from smelt.ir.errors import DTypeError, ShapeError
from smelt.ir.settings import settings
from tests.devices import is_chosen
from tests.frontend.checks import exact, same

#: Signalling and quiet NaNs with payload, zeros with sign, subnormal numbers, infinities; NumPy keeps them.
PATTERNS = {
    2: [0x7C01, 0x7DFF, 0xFC01, 0x7E12, 0x8000, 0x0001, 0x7F81, 0xFF81, 0x7FA0, 0x0040, 0xFC00, 0xFF80],
    4: [0x7F800001, 0xFFBFFFFF, 0x7FC12345, 0x80000000, 0x00000001, 0xFF800000],
    8: [0x7FF0000000000001, 0xFFF7FFFFFFFFFFFF, 1 << 63, 1, 0x8000000080000000, 0x7F80000100000000],
}


def bit_patterns(dtype: smelt.Dtype) -> np.ndarray:
    """Three rows of 64 bytes as elements of a dtype."""
    host = np.random.default_rng(3).integers(0, 256, (3, 64), np.uint8)
    host[1] = np.arange(64)
    for size, patterns in PATTERNS.items():
        if size == dtype.size:
            host.view(f"u{size}")[0, : len(patterns)] = patterns[: 64 // size]
            if size == 8:
                host.view("u4")[2, :6] = PATTERNS[4]  # the parts of complex numbers
    return host.view(dtype.numpy)


def all_views(x: smelt.array) -> list[smelt.array]:
    return [smelt.view(x, dtype) for dtype in dtypes.ALL]


WAYS: dict[str, tuple[Callable[[smelt.array], Any], Callable[[np.ndarray], np.ndarray]]] = {
    "as it is": (all_views, lambda x: x),
    "there and back": (lambda x: [y.view(x.dtype) for y in all_views(x)], lambda x: x),
    "of moved elements": (lambda x: all_views(x[::-1, ::-1]), lambda x: x[::-1, ::-1].copy()),
    "moved": (lambda x: [y[::-1] for y in all_views(x)], lambda x: x[::-1]),
    "per row": (smelt.vmap(all_views), lambda x: x),
}


@pytest.mark.parametrize("of", dtypes.ALL, ids=lambda d: d.name)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("compiled", [False, True])
def test_view(of: smelt.Dtype, way: str, compiled: bool) -> None:
    function, moved = WAYS[way]
    source = bit_patterns(of)
    if way == "there and back" and of.size == 2 and of.is_float and is_chosen():
        source = quiet(source, of)  # a GPU may make signalling NaNs that it computes with quiet ones
    x = exact(source)
    # A kernel that moves bools writes 0 and 1.
    whole = (not compiled and settings.small_work > 0) or way in ("as it is", "there and back", "per row")
    if of is smelt.bool_ and compiled and way == "of moved elements":
        source = source.astype(np.uint8).view(bool)
    found = (smelt.compile(function) if compiled else function)(x)
    for to, y in zip(dtypes.ALL, found):
        wanted = moved(source) if way == "there and back" else moved(source).view(to.numpy)
        if way == "moved":
            wanted = moved(source.view(to.numpy))
        check(y, wanted, whole, f"{of.name} as {to.name}")


def quiet(source: np.ndarray, dtype: smelt.Dtype) -> np.ndarray:
    """The same elements of a 16-bit floating-point dtype, without signalling NaNs."""
    bits = source.copy().view(np.uint16)
    with np.errstate(invalid="ignore"):
        bits[np.isnan(source)] |= 0x200 if dtype is smelt.float16 else 0x40
    return bits.view(dtype.numpy)


def check(found: smelt.array, wanted: np.ndarray, whole: bool, what: str) -> None:
    host = np.array(found)
    assert (host.shape, host.dtype) == (wanted.shape, wanted.dtype), what
    if whole or wanted.dtype != bool:
        assert host.tobytes() == np.ascontiguousarray(wanted).tobytes(), what
    else:
        np.testing.assert_array_equal(host, wanted, what)


@pytest.mark.parametrize("of", [smelt.uint8, smelt.bool_, smelt.float16, smelt.float32], ids=lambda d: d.name)
def test_view_by_metal_kernels(of: smelt.Dtype) -> None:
    source = bit_patterns(of)
    if of is smelt.float16:  # of signalling NaNs a GPU may make quiet ones
        source = quiet(source, of)
    targets = (smelt.bool_, smelt.int8, smelt.uint16, smelt.bfloat16, smelt.float32, smelt.complex64)
    with smelt.stream("metal:sim"):
        found = smelt.compile(lambda x: [x.view(dtype) for dtype in targets])(exact(source))
        for to, y in zip(targets, found):
            wanted = source.view(to.numpy)
            if to is smelt.bfloat16:
                with np.errstate(invalid="ignore"):
                    nan = np.isnan(wanted)
                    np.testing.assert_array_equal(np.isnan(np.array(y)), nan)
                y, wanted = smelt.where(smelt.array(nan), 0, y).astype(to), np.where(nan, np.zeros_like(wanted), wanted)
            check(y, wanted, True, f"{of.name} as {to.name}")


RAW = np.array([0, 1, 2, 255, 128, 0, 7, 1], np.uint8)

#: What reads bools: op by op, and in kernels.
READERS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "where": (lambda b: smelt.where(b, 3.0, 4.0), lambda b: np.where(b, 3.0, 4.0)),
    "astype": (lambda b: b.astype(smelt.int32), lambda b: b.astype(np.int32)),
    "to float": (lambda b: b * 2.5, lambda b: b * 2.5),
    "not": (lambda b: ~b, np.logical_not),
    "and": (lambda b: b & True, lambda b: b),
    "xor": (lambda b: b ^ b[::-1], lambda b: np.logical_xor(b, b[::-1])),
    "equal": (lambda b: b == smelt.ones(8, smelt.bool_), lambda b: b),
    "less": (lambda b: b < b[::-1], lambda b: np.less(b, b[::-1])),
    "sum": (lambda b: b.sum(), lambda b: b.sum()),
    "mean": (lambda b: b.mean(), lambda b: b.mean()),
    "cumsum": (lambda b: b.astype(smelt.int32).cumsum(), lambda b: b.cumsum()),
    "any, all": (lambda b: smelt.stack([b.any(), b.all()]), lambda b: np.array([b.any(), b.all()])),
    "max, min": (lambda b: smelt.stack([b.max(), b.min()]), lambda b: np.array([b.max(), b.min()])),
    "argmax": (lambda b: b.argmax(), np.argmax),
    "argmin": (lambda b: b.argmin(), np.argmin),
    "sort": (smelt.sort, np.sort),
    "transpose": (lambda b: b.reshape(2, 4).T, lambda b: b.reshape(2, 4).T),
    "concatenate": (lambda b: smelt.concatenate([b, b]), lambda b: np.concatenate([b, b])),
    "gather": (lambda b: b[smelt.array([2, 2, 5])], lambda b: b[[2, 2, 5]]),
    "take along": (lambda b: smelt.take_along_axis(b, smelt.argsort(~b), 0), lambda b: np.sort(b)[::-1]),
}


@functools.cache
def compiled_readers() -> list[np.ndarray]:
    return [np.array(y) for y in smelt.compile(lambda x: [f(x.view(smelt.bool_)) for f, _ in READERS.values()])(RAW_X)]


RAW_X = smelt.array(RAW)


@pytest.mark.parametrize("name", READERS)
def test_bools_are_true_where_their_byte_is_not_0(name: str) -> None:
    function, oracle = READERS[name]
    wanted = np.asarray(oracle(RAW != 0))
    for found in (np.array(function(RAW_X.view(smelt.bool_))), compiled_readers()[list(READERS).index(name)]):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("small_work", [0, 10**9])
def test_bools_keep_their_bytes(small_work: int) -> None:
    settings.small_work = small_work
    b = RAW_X.view(smelt.bool_)
    assert b.tolist() == (RAW != 0).tolist() and np.array(b).view(np.uint8).tolist() == RAW.tolist()
    assert b.view(smelt.uint8).tolist() == b.view(smelt.int8).astype(smelt.uint8).tolist() == RAW.tolist()
    assert b.reshape(2, 4).view(smelt.uint32).tolist() == RAW.reshape(2, 4).view(np.uint32).tolist()
    assert (RAW_X + 1).view(smelt.bool_).view(smelt.uint8).tolist() == (RAW + 1).tolist()
    same(smelt.full((3,), 7, smelt.uint8).view(smelt.bool_).view(smelt.uint8), np.full(3, 7, np.uint8))

    @smelt.compile
    def f(x: smelt.array) -> tuple[smelt.array, ...]:
        b = (x + 1).view(smelt.bool_)
        return b, b.view(smelt.uint8), b.sum(), smelt.full((3,), 7, smelt.uint8).view(smelt.bool_)

    b, back, count, constant = f(RAW_X)
    assert np.array(b).view(np.uint8).tolist() == back.tolist() == (RAW + 1).tolist()
    assert count.item() == np.count_nonzero(RAW + 1)
    assert np.array(constant).view(np.uint8).tolist() == [7, 7, 7]


def test_view_in_loops_and_branches() -> None:
    @smelt.compile
    def f(x: smelt.array) -> Any:
        def step(carry: smelt.array, row: smelt.array) -> tuple[smelt.array, smelt.array]:
            b = row.view(smelt.bool_)
            return carry + b.sum(), b

        count, rows = smelt.scan(step, smelt.array(0), x)
        return count, rows, smelt.cond(count > 3, lambda x: x.view(smelt.bool_), lambda x: x == 0, x)

    x = RAW_X.reshape(2, 4)
    count, rows, chosen = f(x)
    assert count.item() == np.count_nonzero(RAW)
    np.testing.assert_array_equal(np.array(rows), (RAW != 0).reshape(2, 4))
    np.testing.assert_array_equal(np.array(chosen), (RAW != 0).reshape(2, 4))


def test_view_of_scalars_and_errors() -> None:
    same(smelt.view(exact(1.0), smelt.int32), np.array(0x3F800000, np.int32))
    same(smelt.view(exact([True, False]), smelt.uint8), np.array([1, 0], np.uint8))
    same(smelt.view(exact(np.uint8(4)), smelt.bool_).view(smelt.int8), np.array(4, np.int8))
    assert smelt.view(smelt.zeros((2, 0)), smelt.bool_).shape == (2, 0)
    with pytest.raises(ShapeError, match=r"view: the last axis.*test_views\.py"):
        smelt.view(exact([1.0]), smelt.float64)
    with pytest.raises(ShapeError, match="scalar"):
        smelt.view(exact(1.0), smelt.int8)
    with pytest.raises(DTypeError, match=r"smelt\.view.*test_views\.py"):
        smelt.view(exact(1.0), "int7")


@pytest.mark.parametrize("to", dtypes.ALL, ids=lambda d: d.name)
@pytest.mark.parametrize("compiled", [False, True])
def test_bools_are_0_and_1_in_every_dtype(to: smelt.Dtype, compiled: bool) -> None:
    def function(x: smelt.array) -> smelt.array:
        return x.view(smelt.bool_).astype(to)

    found = (smelt.compile(function) if compiled else function)(RAW_X)
    wanted = (RAW != 0).astype(to.numpy)
    if to is smelt.bool_:  # which keeps its bytes
        np.testing.assert_array_equal(np.array(found), wanted)
    else:
        assert np.array(found).tobytes() == wanted.tobytes()


@pytest.mark.parametrize("copied", [smelt.contiguous, smelt.array])
@pytest.mark.parametrize("make", [lambda: smelt.random.normal((64, 4096)), lambda: smelt.array(np.ones((64, 4096)))])
def test_a_copy_of_a_slice_does_not_keep_the_whole(copied, make) -> None:
    """Caches of programs for MLX let the large array go so."""
    x = make()
    smelt.eval(x)
    last = x[-2:]  # shares the memory
    kept = copied(last)
    expected = np.array(x)[-2:]
    smelt.eval(kept)
    before = smelt.get_active_memory()
    del x, last
    assert before - smelt.get_active_memory() >= 64 * 4096 * 4
    np.testing.assert_array_equal(np.array(kept), expected)
    assert copied(kept)._buffer is kept._buffer  # it keeps no more than itself
    gradient = smelt.grad(lambda y: (copied(y[-2:]) * kept).sum())(smelt.ones((64, 4096)))
    np.testing.assert_array_equal(np.array(gradient)[-2:], expected)

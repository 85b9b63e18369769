"""Rare elements take a longer way, and the others have the same bits on either."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.backends import buffer
from smelt.backends.cpu import hasty, streaming, usual
from smelt.ir import dtypes
from smelt.ir.dtypes import DType
from smelt.ir.kinds import Elementwise
from smelt.ir.op import registry
from smelt.ir.scalar import Scalar, compute_dtype
from smelt.ir.settings import override

from ..ops.rules import Number, ScalarMachine

pytestmark = pytest.mark.host("kernels of the CPU")
OPS = [(name, dtype) for name, op in sorted(registry.items()) if isinstance(op, Elementwise) for dtype in op.usual]
IDS = [f"{name}-{dtype.name}" for name, dtype in OPS]


def numbers(dtype: DType, seed: int) -> np.ndarray:
    """Some pieces of usual numbers, then any bits at all, then usual ones with a few others among them."""
    rng, count = np.random.default_rng(seed), 12 * streaming.USUAL_BYTES // dtype.size
    bits = {2: np.uint16, 4: np.uint32, 8: np.uint64}[dtype.size]
    ordinary = rng.uniform(0.1, 0.9, (3, count)).astype(dtype.numpy)
    special = np.array([0, -0.0, np.inf, -np.inf, np.nan, -1, 1e4, 1e-7], dtype.numpy)
    ordinary[1] = rng.integers(0, np.iinfo(bits).max, count, bits, endpoint=True).view(dtype.numpy)
    ordinary[2, rng.integers(0, count, 20)] = rng.choice(special, 20)
    return ordinary.reshape(-1)[:-5]  # the last piece is not a whole one


def computed(name: str, dtype: DType) -> np.ndarray:
    op: Any = registry[name]
    return of_arrays(name, dtype, [numbers(dtype, i) for i in range(len(op.operand_names))])


def of_arrays(name: str, dtype: DType, arrays: list[np.ndarray]) -> np.ndarray:
    """The bits of an op's results."""
    with override(tier="program", cache=False):
        found = smelt.compile(getattr(smelt, name))(*(smelt.array(x, dtype=getattr(smelt, dtype.name)) for x in arrays))
    bits = {2: np.uint16, 4: np.uint32, 8: np.uint64}[dtype.size]
    held = np.asarray(found.view(getattr(smelt, np.dtype(bits).name)))
    return np.where(np.asarray(smelt.isnan(found)), bits(0), held)


@pytest.mark.parametrize(("name", "dtype"), OPS, ids=IDS)
def test_both_ways_have_the_same_bits(name: str, dtype: DType, monkeypatch: pytest.MonkeyPatch) -> None:
    quick = computed(name, dtype)
    smelt.clear_cache()
    monkeypatch.setattr(usual, "is_tried", lambda k: False)
    np.testing.assert_array_equal(quick, computed(name, dtype))
    smelt.clear_cache()


@pytest.mark.parametrize(("name", "dtype"), OPS, ids=IDS)
def test_arrays_of_a_few_elements_have_the_bits_of_larger_ones(name: str, dtype: DType) -> None:
    op: Any = registry[name]
    count = 12 * streaming.USUAL_BYTES // dtype.size  # from where on there are any bits at all
    arrays = [numbers(dtype, i) for i in range(len(op.operand_names))]
    tiny = [x[count - hasty.TINY // 2 :][: hasty.TINY] for x in arrays]
    large = [np.concatenate([x, *[few] * 5]) for x, few in zip(arrays, tiny)]
    np.testing.assert_array_equal(of_arrays(name, dtype, tiny), of_arrays(name, dtype, large)[-hasty.TINY :])
    smelt.clear_cache()


@pytest.mark.parametrize(("size", "ways"), [(hasty.TINY, 1), (hasty.TINY + 1, 2)])
def test_arrays_of_a_few_elements_have_one_way(size: int, ways: int) -> None:
    x = smelt.array(np.full(size, 0.5, np.float32))
    with override(tier="program", cache=False):
        kernel = smelt.compile(smelt.exp).trace(x).lower().compile().as_text("kernel")
    assert kernel.count("arith.shrsi") == 1  # the general way scales twice, so that it halves an exponent
    assert kernel.count("math.absf") == ways - 1
    smelt.clear_cache()


class Asked(ScalarMachine):
    """Notes whether a rule has a quicker way."""

    def __init__(self, dtype: DType):
        self.asked, self.source_dtype, self.is_half = False, dtype, dtype.size == 2

    def usually(self, quick: Callable[[], tuple[Scalar, Scalar]], general: Callable[[], Scalar]) -> Scalar:
        self.asked = True
        found, is_right = quick()
        if is_right.mlir:
            np.testing.assert_allclose(found.mlir, general().mlir, rtol=1e-6)
        return general()


@pytest.mark.parametrize("dtype", dtypes.FLOATS, ids=lambda dtype: dtype.name)
def test_classes_say_where_there_is_a_quicker_way(dtype: DType) -> None:
    for name, op in sorted(registry.items()):
        if not isinstance(op, Elementwise) or op.attrs or dtype not in op.accepts:
            continue
        k = Asked(dtype)
        held = compute_dtype(dtype)
        operands = [Number(0.5, held) for _ in op.operand_names]
        for x in operands:
            x.k = k
        op.lower(k, *operands)
        assert k.asked == (dtype in op.usual), f"{name} of {dtype.name}"


CONSUMERS: dict[str, Callable[[Any], Any]] = {
    "sums along lines": lambda y: smelt.cumsum(y, axis=0),
    "sums before each": lambda y: smelt.cumsum(y, axis=0, reverse=True, inclusive=False),
    "maxima along lines": lambda y: smelt.cummax(y, axis=0),
    "sums along rows": lambda y: smelt.cumsum(y, axis=1),
    "sums of columns": lambda y: (smelt.sum(y, axis=0), y),
    "rows and their sums": lambda y: y - smelt.max(y, axis=1, keepdims=True),
    "columns and their sums": lambda y: y - smelt.max(y, axis=0, keepdims=True),
    "updates": lambda y: smelt.zeros(y.size).at[smelt.arange(y.size) // 2].add(y.reshape(-1)),
}


@pytest.mark.parametrize("streamed", [False, True], ids=["kept", "streamed"])
@pytest.mark.parametrize("consumer", CONSUMERS)
def test_what_is_computed_again_is_used_once(consumer: str, streamed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels that do more with an element than to compute it."""
    x = np.random.default_rng(0).uniform(0.5, 2, (5, 1030)).astype(np.float32)
    x[1:4, ::100] = 0
    if streamed:  # streamed buffers come from the pool, which aligns them
        monkeypatch.setattr(streaming, "STREAM_BYTES", 1)
        monkeypatch.setattr(buffer, "SMALL", 0)
    with np.errstate(divide="ignore"):
        logarithms = np.log(x)
    with override(tier="program", small_work=0, cache=False):
        found = smelt.compile(lambda x: CONSUMERS[consumer](smelt.log(x)))(smelt.array(x))
        smelt.eval(found)
    with override(device="reference"):
        wanted = CONSUMERS[consumer](smelt.array(logarithms))
    for f, w in zip(found, wanted) if isinstance(found, tuple) else [(found, wanted)]:
        np.testing.assert_allclose(np.array(f), np.array(w), 1e-5, 1e-4)
    smelt.clear_cache()

"""Where views lie, against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.op import get
from smelt.ir.strided_layout import StridedLayout, viewed


def place_of(x: np.ndarray, memory: np.ndarray) -> StridedLayout:
    begin = x.__array_interface__["data"][0] - memory.__array_interface__["data"][0]
    return StridedLayout(begin // x.itemsize, tuple([s // x.itemsize for s in x.strides]))


def same(a: StridedLayout, b: StridedLayout, shape: tuple[int, ...]) -> bool:
    """Whether the elements are the same ones: strides along axes of one element mean nothing."""
    pairs = zip(a.strides, b.strides, shape, strict=True)
    return a.offset == b.offset and all(d == 1 or p == q for p, q, d in pairs)


def random_view(rng: np.random.Generator, x: np.ndarray) -> tuple[str, dict]:
    n = x.ndim
    name = ["transpose", "broadcast", "slice", "reverse", "reshape", "barrier"][rng.integers(6)]
    if name == "transpose":
        return name, {"permutation": tuple(map(int, rng.permutation(n)))}
    if name == "broadcast":
        shape = tuple([int(rng.integers(1, 4)) if d == 1 else d for d in x.shape])
        return name, {"shape": (*map(int, rng.integers(1, 3, rng.integers(2))), *shape)}
    if name == "slice":
        start = [int(rng.integers(d)) for d in x.shape]
        stop = [int(rng.integers(a + 1, d + 1)) for a, d in zip(start, x.shape)]
        return name, {"start": tuple(start), "stop": tuple(stop), "stride": tuple(map(int, rng.integers(1, 4, n)))}
    if name == "reverse":
        return name, {"axes": tuple([a for a in range(n) if rng.integers(2)])}
    if name == "reshape":
        parts = [p for d in x.shape for p in ((2, d // 2) if d % 2 == 0 and rng.integers(2) else (d,))]
        at = int(rng.integers(len(parts))) if parts else 0
        merged = [*parts[:at], int(np.prod(parts[at : at + 2], dtype=int)), *parts[at + 2 :]]
        return name, {"shape": tuple(merged if parts and rng.integers(2) else [1, *parts])}
    return name, {}


@pytest.mark.parametrize("seed", range(8))
def test_chains_of_views(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(60):
        memory = np.arange(int(np.prod(shape := rng.integers(1, 6, rng.integers(0, 4)))), dtype=np.float32)
        x = memory.reshape(tuple(shape))
        place = place_of(x, memory)
        assert place.is_whole(x.shape) and same(place, StridedLayout.contiguous(x.shape), x.shape)
        for _ in range(6):
            if x.size > 5000 or x.ndim > 6 or not x.ndim:  # of no axes NumPy gives numbers, in no memory
                break
            name, attrs = random_view(rng, x)
            op, operand = get(name), Aval(x.shape, dtypes.float32)
            (result,) = op.infer_checked([operand], attrs)
            wanted = op.reference(x, **attrs)
            found = viewed(op, attrs, place, operand, result)
            if np.ndim(wanted) and not np.shares_memory(wanted, memory):
                assert found is None, (name, attrs, x.shape, x.strides)
                break
            assert found is not None, (name, attrs, x.shape, x.strides)
            if not np.ndim(wanted):
                break
            assert same(found, place_of(wanted, memory), wanted.shape), (name, attrs, x.shape, x.strides)
            x, place = wanted, found


def test_what_is_no_view() -> None:
    x = Aval((4, 4), dtypes.float32)
    at = StridedLayout.contiguous(x.shape)
    assert viewed(get("exp"), {}, at, x, x) is None
    nothing = {"start": (0, 0), "stop": (0, 4), "stride": (1, 1)}
    assert viewed(get("slice"), nothing, at, x, x.with_shape((0, 4))) is None

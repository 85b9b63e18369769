"""Rules on NumPy arrays keep their operands, and find the same, in whatever order the memory of these is."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from smelt.ir.interpreter import run_op
from smelt.ir.op import Op
from smelt.ir.settings import override

from .cases import Case, cases, plain_ops, random_operands, resized

#: Enough rows for what is done to many at once, and how many elements a case has at most.
MANY, MOST = 1100, 60_000
DTYPES = {"bool", "int32", "int64", "uint32", "float16", "float32", "float64", "complex64"}


def _moved(x: np.ndarray) -> np.ndarray:
    return np.moveaxis(np.array(np.moveaxis(x, 0, -1), order="C"), -1, 0)


#: The same elements as views of memory in another order; scalars have but one.
LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "as they lie": lambda x: np.array(x, order="C"),
    "transposed": lambda x: np.array(x.T, order="C").T,
    "first axis last": _moved,
    "every other": lambda x: np.repeat(x, 2, axis=-1)[..., ::2],
    "backwards": lambda x: x[::-1].copy()[::-1],
    "rows backwards": lambda x: x[..., ::-1].copy()[..., ::-1],
}


def _memory(x: np.ndarray) -> np.ndarray:
    """The array of which one is a view."""
    while isinstance(x.base, np.ndarray):
        x = x.base
    return x


def _chosen(op: Op) -> Iterator[Case]:
    """Cases of an op, as they are and with one extent large."""
    found = [c for c in cases(op) if {a.dtype.name for a in c.avals} <= DTYPES]
    for case in found:
        yield case
        large = (c for c in resized(case, (MANY,)) if sum(np.prod(a.shape) for a in (*c.avals, *c.results)) < MOST)
        yield from large


def _same(found: np.ndarray, wanted: np.ndarray) -> bool:
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return False
    if wanted.dtype.kind not in "fc":
        return np.array_equal(found, wanted)
    bound = 2e-2 if wanted.dtype.itemsize == 2 else 1e-3  # sums in another order
    return np.allclose(found, wanted, rtol=bound, atol=1e-3, equal_nan=True)


@pytest.mark.parametrize("op", [op for op in plain_ops() if cases(op)[0].avals], ids=lambda op: op.name)
def test_operands_keep_their_values(op: Op, rng: np.random.Generator) -> None:
    for case in _chosen(op):
        operands = [np.asarray(x) for x in random_operands(case, rng)]
        with override(check=False), np.errstate(all="ignore"):  # places are drawn, some out of range
            wanted = [np.array(x) for x in run_op(op, [x.copy() for x in operands], case.kwargs)]
            for name, view in LAYOUTS.items():
                views = [view(x) if x.ndim else x.copy() for x in operands]
                before = [_memory(v).copy() for v in views]
                found = run_op(op, views, case.kwargs)
                for v, b in zip(views, before):
                    assert _memory(v).tobytes() == b.tobytes(), f"{case} wrote into an operand: {name}"
                for f, w in zip(found, wanted):
                    assert _same(np.asarray(f), w), f"{case} found something else: {name}"

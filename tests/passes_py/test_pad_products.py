"""What products with wider rows give: the same as with those that they had."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.backends.cpu.program import PIPELINE
from smelt.passes import Pipeline

WIDE = Pipeline.parse(PIPELINE).before("fuse", "pad-products{work=0 reuse=16}")
ROWS, DEPTH, COLUMNS = 40, 24, 61
INF = float("inf")


def _cross_entropy(x: Any, w: Any, v: Any) -> Any:
    labels = smelt.arange(ROWS, dtype=smelt.int32) % COLUMNS
    return smelt.grad(lambda x, w: smelt.fast.cross_entropy(x @ w, labels).mean(), argnums=(0, 1))(x, w)


#: Functions of x [ROWS, DEPTH], w [DEPTH, COLUMNS] and v [COLUMNS, DEPTH].
CASES: dict[str, Callable[..., Any]] = {
    "alone": lambda x, w, v: x @ w,
    "softmax": lambda x, w, v: smelt.softmax(x @ w, axis=-1) @ v,
    "softmax, precise": lambda x, w, v: smelt.softmax(x @ w, axis=-1, precise=True) @ v,
    "cross entropy": _cross_entropy,
    "smallest": lambda x, w, v: (x @ w).min(-1),
    "minus twice the largest": lambda x, w, v: smelt.exp((y := x @ w) - 2 * y.max(-1, keepdims=True)).sum(-1),
    "minus minus the largest": lambda x, w, v: smelt.exp((y := x @ w) + y.max(-1, keepdims=True)).sum(-1),
    "sums of both axes": lambda x, w, v: ((y := smelt.cos(x @ w)).sum(0), y.sum(1), y.sum()),
    "another array": lambda x, w, v: (x @ w + v.sum(1)) @ v,
    "an array of that size": lambda x, w, v: (x @ w + smelt.reshape(smelt.tile(v[0], (ROWS * COLUMNS // DEPTH + 1,))[
        : ROWS * COLUMNS], (ROWS, COLUMNS))) @ v,
    "columns by number": lambda x, w, v: smelt.where(smelt.arange(COLUMNS) % 2 == 0, x @ w, 1) @ v,
    "reciprocals": lambda x, w, v: (1 / (x @ w)) @ v,
    "products in a row": lambda x, w, v: (x @ w) @ v @ w @ v,
    "with itself": lambda x, w, v: (y := x @ w) @ y.T,
    "turned": lambda x, w, v: smelt.tanh((x @ w).T) @ x,
    "positions": lambda x, w, v: ((y := x @ w).argmax(-1), smelt.sort(y, axis=-1), y[:, -1], y[::-1]),
    "logits of a mask": lambda x, w, v: smelt.softmax(smelt.where(smelt.arange(COLUMNS) < 7, x @ w, -INF), axis=-1) @ v,
}  # fmt: skip
#: What one row of x, and one column of w, is.
VALUES = {"numbers": (1.0, 1.0), "infinite rows": (INF, 1.0), "-inf columns": (1.0, -INF), "NaN": (float("nan"), 1.0),
          "zeros": (0.0, 0.0)}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_values(name: str) -> None:
    rng = np.random.default_rng(1)
    f = CASES[name]
    plain, wide = smelt.compile(f), smelt.compile(f, pipeline=WIDE)
    for of_row, of_column in VALUES.values():
        x, w, v = (rng.standard_normal(s, np.float32) for s in ((ROWS, DEPTH), (DEPTH, COLUMNS), (COLUMNS, DEPTH)))
        x[3], w[:, 5] = x[3] * of_row, w[:, 5] * of_column
        given = [smelt.array(a).astype(smelt.float16) for a in (x, w, v)]
        wants, founds = plain(*given), wide(*given)
        wants, founds = (a if isinstance(a, tuple) else (a,) for a in (wants, founds))
        for want, found in zip(wants, founds):
            want, found = (np.array(a.astype(smelt.float32)) for a in (want, found))
            assert want.shape == found.shape
            largest = np.abs(want[np.isfinite(want)]).max(initial=0)
            np.testing.assert_allclose(found, want, rtol=4e-3, atol=4e-3 * largest)

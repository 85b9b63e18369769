"""Functions that run another one at several places are transformed once, however deep they lie in each other."""

from __future__ import annotations

import math

import numpy as np
import pytest

import smelt


def _scan(body):
    return lambda x: smelt.scan(lambda c, _: (body(c), None), x, None, length=1)[0]


def _cond(body):
    return lambda x: smelt.cond(smelt.sum(x) > -100, body, lambda y: y * 2.0, x)


def _nested(apply, depth):
    run = smelt.sin
    for i in range(depth):
        run = apply(lambda y, inner=run, number=0.5 + i / 8: inner(inner(y) * number))
    return run


def _plain(depth, x, t):
    """The value and the derivative by numbers."""
    if depth == 0:
        return math.sin(x), math.cos(x) * t
    number = 0.5 + (depth - 1) / 8
    y, dy = _plain(depth - 1, x, t)
    return _plain(depth - 1, y * number, dy * number)


@pytest.mark.parametrize("apply", [_scan, _cond])
def test_functions_do_not_double_with_the_depth(apply):
    counts = []
    for depth in (3, 4, 5):
        run = _nested(apply, depth)
        module = smelt.compile(smelt.grad(lambda x, run=run: smelt.sum(run(x)))).trace(smelt.ones((2,))).lower().module
        smelt.default_pipeline("cpu").run(module)
        counts.append(len(list(module.body.operations)))
    assert counts[2] - counts[1] <= counts[1] - counts[0] + 4


@pytest.mark.parametrize("apply", [_scan, _cond, smelt.checkpoint])
@pytest.mark.parametrize("compiled", [False, True])
def test_values(apply, compiled):
    run = _nested(apply, 3)
    f = smelt.grad(lambda x: smelt.sum(run(x)))
    x = np.array([0.3, -0.7], np.float32)
    expected = [_plain(3, float(v), 1.0)[1] for v in x]
    found = (smelt.compile(f) if compiled else f)(smelt.array(x))
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-5)
    (pushed,) = smelt.jvp(lambda x: [run(x)], (smelt.array(x),), (smelt.ones(2),))[1]
    np.testing.assert_allclose(np.asarray(pushed), expected, rtol=1e-5)


WAYS = {
    "grad": lambda run: smelt.grad(lambda x: smelt.sum(run(x))),
    "jvp": lambda run: lambda x: smelt.jvp(lambda y: [run(y)], (x,), (x,))[1],
    "vmap": smelt.vmap,
    "vmap-grad": lambda run: smelt.vmap(smelt.grad(lambda x: smelt.sum(run(x)))),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("apply", [_scan, _cond, smelt.checkpoint, smelt.compile])
def test_thirty_deep(apply, way):
    """Ops grow with the depth, not with its power of two."""
    counts = []
    for depth in (10, 30):
        run = smelt.sin
        for i in range(depth):
            run = apply(lambda y, inner=run, number=0.5 + i / 8: inner(y * number))
        module = smelt.compile(WAYS[way](run)).trace(smelt.ones((2, 2))).lower().module
        smelt.default_pipeline("cpu").run(module)
        counts.append(sum(len(b.operations) for f in module.body.operations for r in f.regions for b in r.blocks))
    assert counts[1] <= 9 * counts[0]


@pytest.mark.parametrize("apply", [_scan, _cond, smelt.checkpoint, smelt.compile])
def test_batched(apply):
    run = _nested(apply, 3)
    x = np.array([[0.3, -0.7], [1.1, 0.2]], np.float32)
    expected = [[_plain(3, float(v), 1.0)[1] for v in row] for row in x]
    found = smelt.vmap(smelt.grad(lambda row: smelt.sum(run(row))))(smelt.array(x))
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-5)

"""Functions of half precision are computed in float32 and rounded once, whatever they consist of."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import smelt
from smelt.ir import dtypes
from smelt.ir.op import registry
from smelt.lazy.arrays import emit_elementwise
from smelt.nn import losses
from smelt.nn.layers import activation_functions

HALVES = [smelt.float16, smelt.bfloat16]
#: Beside those of `smelt.nn`: what is made of several ops. Each sums or divides what rounding would spoil.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "softmax": lambda x: smelt.softmax(x, axis=-1),
    "logsumexp": lambda x: smelt.logsumexp(x, axis=-1),
    "mean": lambda x: smelt.mean(x, axis=-1),
    "var": lambda x: smelt.var(x, axis=-1),
    "std": lambda x: smelt.std(x, axis=0),
    "norm": lambda x: smelt.linalg.norm(x, axis=-1),
    "cumsum": lambda x: smelt.cumsum(x, axis=-1),
    "trapezoid": smelt.trapezoid,
    "cumulative_trapezoid": lambda x: smelt.cumulative_trapezoid(smelt.abs(x)),
    "vecdot": lambda x, y: smelt.vecdot(x, y),
    "polyval": lambda x: smelt.polyval(smelt.array([0.5, 0.25, 2.0]).astype(x.dtype), smelt.abs(x)),
    "rms_norm": lambda x: smelt.fast.rms_norm(x, None, 1e-5),
    "layer_norm": lambda x: smelt.fast.layer_norm(x, None, None, 1e-5),
}


def _of_one(module: Any) -> Iterator[str]:
    """The functions of arrays alone, as far as they need none of integers."""
    for name in module.__all__:
        needed = [p.name for p in inspect.signature(getattr(module, name)).parameters.values() if p.default is p.empty]
        if name not in ("cross_entropy", "ctc_loss", "nll_loss", "step") and len(needed) <= 3:
            yield name


def _cases() -> Iterator[tuple[str, Callable[..., Any], int]]:
    for module in (activation_functions, losses):
        for name in _of_one(module):
            function = getattr(module, name)
            count = sum(p.default is p.empty for p in inspect.signature(function).parameters.values())
            yield name, function, count
    for name, function in FUNCTIONS.items():
        yield name, function, len(inspect.signature(function).parameters) if name == "vecdot" else 1


CASES = list(_cases())


def _operands(name: str, count: int, scale: float, dtype: Any) -> list[smelt.array]:
    rng = np.random.default_rng(len(name))
    found = [rng.standard_normal((6, 48)) * scale for _ in range(count)]
    if name in ("binary_cross_entropy", "margin_ranking_loss", "hinge_loss"):
        found[-1] = np.abs(found[-1]) > scale / 2
    if name == "gaussian_nll_loss":
        found[-1] = np.abs(found[-1]) + 0.1
    return [smelt.array(x.astype(np.float32)).astype(dtype) for x in found]


def _agrees(found: smelt.array, wanted: smelt.array, given: smelt.array, dtype: Any) -> None:
    """Within one unit in the last place; where the sum of large terms is small, of what float32 is exact to."""
    assert found.dtype == dtype
    x, y = np.array(found.astype(smelt.float64)), np.array(wanted)
    info, size = ml_dtypes.finfo(dtype.name), float(np.abs(np.array(given)).max())
    y = np.where(np.abs(y) > float(info.max), np.copysign(np.inf, y), y)
    unit = np.maximum(np.exp2(np.floor(np.log2(np.maximum(np.abs(y), 1e-30)))), float(info.tiny)) * float(info.eps)
    with np.errstate(invalid="ignore"):
        is_close = (x == y) | (np.abs(x - y) <= unit + 3e-6 * max(size, 1.0))
    assert is_close.all(), float((np.abs(x - y) / unit)[~is_close].max())


@pytest.mark.parametrize("compiled", [False, True], ids=["lazily", "compiled"])
@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize(("name", "function", "count"), CASES, ids=[c[0] for c in CASES])
def test_of_half_precision(name: str, function: Callable[..., Any], count: int, dtype: Any, compiled: bool) -> None:
    for scale in (1.0, 8.0) if not compiled else (1.0,):
        xs = _operands(name, count, scale, dtype)
        wanted = function(*(x.astype(smelt.float64) for x in xs))
        found = (smelt.compile(function) if compiled else function)(*xs)
        _agrees(found, wanted, smelt.stack([x.astype(smelt.float64) for x in xs]), dtype)


def _attention(q: Any, k: Any, v: Any, scale: float) -> Any:
    return smelt.fast.scaled_dot_product_attention(q, k, v, scale=scale)


@pytest.mark.parametrize("scale", [0.125, 0.11], ids=["of a power of two", "of any other number"])
@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_scores_of_attention(dtype: Any, scale: float) -> None:
    """Scores of hundreds: rounded to 8 bits they would be off by 1, and their weights by a factor of e."""
    rng = np.random.default_rng(0)
    q, k, v = (smelt.array(rng.uniform(-9, 9, (1, 2, 48, 64)).astype(np.float32)).astype(dtype) for _ in range(3))
    wide = [x.astype(smelt.float64) for x in (q, k, v)]
    wanted = np.array(_attention(*wide, scale))
    bound = 10 * float(smelt.finfo(dtype).eps)  # of values up to 9, and weights that are rounded
    for function in (_attention, smelt.compile(_attention)):
        found = np.array(function(q, k, v, scale).astype(smelt.float64))
        assert np.abs(found - wanted).max() < bound

    def summed(q: Any, k: Any, v: Any) -> Any:
        return (_attention(q, k, v, scale).astype(smelt.float64 if q.dtype is smelt.float64 else smelt.float32)).sum()

    exact = smelt.grad(summed, argnums=(0, 1, 2))(*wide)
    for gradient in (smelt.grad(summed, argnums=(0, 1, 2)), smelt.compile(smelt.grad(summed, argnums=(0, 1, 2)))):
        for x, y in zip(gradient(q, k, v), exact):
            want = np.array(y)
            error = np.abs(np.array(x.astype(smelt.float64)) - want).max()
            assert error < 4 * bound * max(1.0, np.abs(want).max())


def test_a_product_in_float32_of_half_precision() -> None:
    """The contraction of which scores are made gives what products in float64 are, rounded to float32."""
    from smelt.ir.op import registry

    rng = np.random.default_rng(1)
    op = registry["wide_dot_general"]
    x, y = (rng.standard_normal(s).astype(np.float16) for s in ((5, 300), (300, 7)))
    found = op.reference(x, y, lhs_contracting=(1,), rhs_contracting=(0,), lhs_batch=(), rhs_batch=())
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, x.astype(np.float64) @ y.astype(np.float64), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [smelt.float32, smelt.float64, *HALVES], ids=str)
def test_a_product_has_one_name(dtype: Any) -> None:
    """Where sums are not rounded anyway, scores are the product that everybody else writes, too: `cse` finds both."""
    x = smelt.zeros((1, 2, 8, 4)).astype(dtype)
    text = smelt.make_ir(lambda x: _attention(x, x, x, 0.5))(x)
    assert ("wide_dot_general" in text) == (dtype in HALVES)


#: Every seventh bit pattern, so that all binades are there.
PATTERNS = np.arange(0, 1 << 16, 7, dtype=np.uint16)
SLOPES = [
    name
    for name, op in registry.items()
    if op.kind == "elementwise" and op.operand_names == ("x",) and not op.attrs and dtypes.float16 in op.accepts
]


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("name", SLOPES)
def test_slopes_of_ops(name: str, dtype: Any) -> None:
    """Of every op of one operand at all numbers: a slope is no function of a result that has been rounded."""
    op = registry[name]

    def total(x: smelt.array) -> smelt.array:
        return emit_elementwise(op, x).astype(smelt.float64 if x.dtype is smelt.float64 else smelt.float32).sum()

    if not op.result_dtype(dtype).is_inexact:
        return
    x = smelt.array(PATTERNS.view(dtype.numpy))
    found = np.array(smelt.grad(total)(x).astype(smelt.float64))
    wanted = np.array(smelt.grad(total)(x.astype(smelt.float64)))
    info, size = ml_dtypes.finfo(dtype.name), np.abs(wanted)
    unit = np.maximum(np.exp2(np.floor(np.log2(np.clip(size, 1e-300, 1e300)))), float(info.tiny)) * float(info.eps)
    with np.errstate(invalid="ignore"):
        # what float32 knows of the slope, and what its own range holds
        is_close = (np.abs(found - wanted) <= unit + 1e-6) | ~(size < float(info.max) / 2)
        tiny = np.abs(np.array(x.astype(smelt.float64))) < 1.2e-38
    bad = ~(is_close | tiny)
    assert not bad.any(), (np.array(x)[bad][:4], found[bad][:4], wanted[bad][:4])

"""`smelt.compile(shapeless=True)` called with changing shapes: right at each of them, or an error that helps."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir.settings import override
from smelt.lazy.tree import flatten
from smelt.transforms import shapeless

from ..compose.compositions import AXIS_LEAVES, LEAVES, operands

Shapes = tuple[tuple[int, ...], ...]

#: Programs in which a shape could be baked in: smelt, NumPy, shapes to call them with one after another.
PROGRAMS: dict[str, tuple[Callable[[Any], Any], Callable[[np.ndarray], Any], Shapes]] = {
    "sum": (lambda x: x.sum(), lambda x: x.sum(), ((3,), (7,), (2, 3), ())),
    "mean of an axis": (lambda x: x.mean(axis=-1), lambda x: x.mean(axis=-1), ((2, 3), (5, 4), (4,), (2, 3))),
    "var": (lambda x: smelt.var(x, axis=0), lambda x: x.var(axis=0), ((2, 3), (5, 3), (4, 2))),
    "mean by size": (lambda x: x.sum() / x.size, lambda x: x.mean(), ((3,), (4, 5), (1,))),
    "max and argmax": (lambda x: smelt.max(x) + smelt.argmax(x), lambda x: x.max() + x.argmax(), ((3,), (9,), (2, 2))),
    "reshape -1": (lambda x: x.reshape(-1), lambda x: x.reshape(-1), ((2, 3), (4, 5), (2, 2, 2), ())),
    "reshape of shape": (
        lambda x: x.reshape(x.shape[0], -1, 1), lambda x: x.reshape(x.shape[0], -1, 1), ((2, 3), (4, 5), (3, 2, 2)),
    ),
    "flatten": (lambda x: smelt.flatten(x, 1), lambda x: x.reshape(x.shape[0], -1), ((2, 3, 4), (1, 2, 2), (3, 5))),
    "transpose": (lambda x: x.T, lambda x: x.T, ((2, 3), (3, 2), (4,), (2, 3, 4))),
    "swap axes": (lambda x: smelt.swapaxes(x, 0, -1), lambda x: x.swapaxes(0, -1), ((2, 3), (4, 1, 5))),
    "broadcast a row": (lambda x: x - x[0], lambda x: x - x[0], ((2, 3), (5, 4), (6,))),
    "broadcast to itself": (lambda x: smelt.broadcast_to(x[:1], x.shape), lambda x: np.broadcast_to(x[:1], x.shape),
                            ((2, 3), (4, 3), (5,))),
    "outer product": (lambda x: x[:, None] * x[None], lambda x: x[:, None] * x[None], ((3,), (5,), (1,), (2, 3))),
    "ones like": (lambda x: smelt.ones_like(x) + x, lambda x: 1 + x, ((3,), (2, 2), ())),
    "arange": (lambda x: smelt.arange(x.shape[0]) * x, lambda x: np.arange(x.shape[0]) * x, ((3,), (8,), (1,))),
    "gram matrix": (lambda x: x @ x.T, lambda x: x @ x.T, ((2, 3), (4, 1), (3, 3), (1, 5))),
    "batched matmul": (lambda x: x @ x.swapaxes(-1, -2), lambda x: x @ x.swapaxes(-1, -2), ((2, 2, 3), (3, 4, 2))),
    "einsum": (lambda x: smelt.einsum("ij,kj->ik", x, x), lambda x: x @ x.T, ((2, 3), (5, 4))),
    "slice": (lambda x: x[1:-1:2], lambda x: x[1:-1:2], ((5,), (8,), (2,), (9, 2))),
    "last": (lambda x: x[-1], lambda x: x[-1], ((5,), (8,), (1,), (3, 2))),
    "first half": (lambda x: x[: x.shape[0] // 2], lambda x: x[: x.shape[0] // 2], ((4,), (7,), (1,))),
    "reverse": (lambda x: x[::-1], lambda x: x[::-1], ((4,), (7,), (3, 2))),
    "concatenate": (lambda x: smelt.concatenate([x, 2 * x], axis=0), lambda x: np.concatenate([x, 2 * x]),
                    ((3,), (5,), (2, 3))),
    "stack": (lambda x: smelt.stack([x, -x], axis=1), lambda x: np.stack([x, -x], axis=1), ((3,), (5,), (2, 3))),
    "split": (lambda x: smelt.split(x, 2)[1], lambda x: np.split(x, 2)[1], ((4,), (8,), (2, 3))),
    "pad": (lambda x: smelt.pad(x, 1), lambda x: np.pad(x, 1), ((3,), (5,), (2, 3), (0,))),
    "repeat and tile": (lambda x: smelt.tile(smelt.repeat(x, 2, axis=0), 2), lambda x: np.tile(np.repeat(x, 2, 0), 2),
                        ((3,), (1,), (2, 3))),
    "softmax": (
        lambda x: smelt.softmax(x, axis=-1), lambda x: np.exp(x) / np.exp(x).sum(-1, keepdims=True),
        ((3,), (5,), (2, 3), (4, 1)),
    ),
    "logsumexp": (lambda x: smelt.logsumexp(x, axis=0), lambda x: np.log(np.exp(x).sum(0)), ((3,), (5, 2), (1,))),
    "sort": (lambda x: smelt.sort(x, axis=-1), lambda x: np.sort(x, -1), ((3,), (6,), (2, 5), (1,))),
    "argsort": (lambda x: smelt.argsort(x, axis=0), lambda x: np.argsort(x, 0), ((3,), (6,), (5, 2))),
    "top k": (lambda x: smelt.topk(x, 2).sum(), lambda x: np.sort(x)[-2:].sum(), ((3,), (6,), (2,))),
    "cumsum": (lambda x: smelt.cumsum(x, axis=0), lambda x: np.cumsum(x, 0), ((3,), (6,), (2, 5))),
    "take": (lambda x: smelt.take(x, smelt.array([0, -1]), axis=0), lambda x: x[[0, -1]], ((3,), (6,), (2, 5))),
    "gather by its order": (lambda x: x[smelt.argsort(x)], lambda x: np.sort(x), ((3,), (6,), (1,))),
    "update": (lambda x: x.at[smelt.array([0, -1])].add(1.0), lambda x: _plus(x, [0, -1]), ((3,), (6,), (2, 2))),
    "where": (lambda x: smelt.where(x > x.mean(), x, 0.0), lambda x: np.where(x > x.mean(), x, 0), ((3,), (2, 5))),
    "triangle": (lambda x: smelt.tril(x), lambda x: np.tril(x), ((3, 3), (2, 4), (5, 1))),
    "diagonal": (lambda x: smelt.diag(x), lambda x: np.diag(x), ((3,), (4, 4), (2,), (2, 3))),
    "gradient": (lambda x: smelt.grad(lambda x: (x**2).mean())(x), lambda x: 2 * x / x.size, ((3,), (6,), (2, 2))),
    "batch": (lambda x: smelt.vmap(lambda r: r / r.sum())(x), lambda x: x / x.sum(1, keepdims=True), ((2, 3), (4, 2))),
    "scan": (lambda x: smelt.scan(lambda c, y: (c + y, c), 0.0 * x[0], x)[0], lambda x: x.sum(0), ((3,), (6,), (2, 2))),
    "loop over the shape": (lambda x: sum(x[i] * i for i in range(x.shape[0])),
                            lambda x: sum(x[i] * i for i in range(x.shape[0])), ((3,), (6,), (2, 2))),
    "branch on the rank": (lambda x: x * 2 if x.ndim == 1 else x.sum(), lambda x: x * 2 if x.ndim == 1 else x.sum(),
                           ((3,), (2, 2), (4,))),
}  # fmt: skip


def _plus(x: np.ndarray, at: list[int]) -> np.ndarray:
    x = x.copy()
    np.add.at(x, at, 1.0)
    return x


def _sample(shape: tuple[int, ...], seed: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0.2, 2.0, shape)


@pytest.mark.parametrize("name", PROGRAMS)
def test_right_at_every_shape(name: str) -> None:
    program, truth, shapes = PROGRAMS[name]
    f = smelt.compile(program, shapeless=True)
    for seed, shape in enumerate((*shapes, *shapes)):
        x = _sample(shape, seed)
        found = np.array(f(smelt.array(x, smelt.float64)))
        want = np.asarray(truth(x))
        assert found.shape == want.shape, f"{name} at {shape}"
        np.testing.assert_allclose(found, want, rtol=1e-10, atol=1e-10, err_msg=f"{name} at {shape}")


@pytest.mark.parametrize("shapeless", [False, True])
def test_arguments_that_others_may_write_to(shapeless: bool) -> None:
    """They are traced for all sizes, as those are of which there is no view."""
    f = smelt.compile(lambda x: smelt.sum(x * x) / x.shape[0] + x, shapeless=shapeless)
    for n in (*range(3, 12), 3, 20):
        x = smelt.array(_sample((n,), n), smelt.float64)
        view = np.asarray(x)
        np.testing.assert_allclose(np.array(f(x)), (view * view).sum() / n + view, rtol=1e-10)


#: Programs that do something else for other sizes, or what symbols cannot do: they are traced for each.
TRACED = {"loop over the shape"}


@pytest.mark.parametrize("name", PROGRAMS)
def test_one_trace_for_all_sizes(name: str) -> None:
    """For the first sizes, for the second, and on symbols; once more where two sizes are equal."""
    program, truth, shapes = PROGRAMS[name]
    traces = 0

    def counted(x: Any) -> Any:
        nonlocal traces
        traces += 1
        return program(x)

    f = smelt.compile(counted, shapeless=True)
    ndim = len(next(s for s in shapes if s))
    with override(tier="ops"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for k in range(14):
            x = _sample(tuple([4 + 2 * k + 3 * i * (k % 3) for i in range(ndim)]), k)
            np.testing.assert_allclose(f(smelt.array(x, smelt.float64)), truth(x), rtol=1e-10, atol=1e-10)
    assert traces <= 3 * ndim or name in TRACED, traces


#: Functions of others.
WAYS: dict[str, Callable[..., Any]] = {
    "itself": lambda f: f,
    "gradient": lambda f: smelt.value_and_grad(lambda v, w: smelt.mean(smelt.sin(f(v, w)) ** 2), argnums=(0, 1)),
    "batch of tangents": lambda f: smelt.vmap(lambda v, w: smelt.jvp(f, [v, w], [w, v])[1][0]),
}


@pytest.mark.thinned(3)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("leaf", [*LEAVES, *AXIS_LEAVES])
def test_the_same_as_with_a_trace_for_each_shape(leaf: str, way: str) -> None:
    f = WAYS[way]({**LEAVES, **AXIS_LEAVES}[leaf])
    shapes = ((3, 4, 2), (5, 4, 2), (6, 7, 2), (9, 5, 3), (4, 4, 2), (7, 7, 2), (1, 5, 2), (1, 8, 3), (12, 11, 5))
    with override(tier="ops"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        once, each = smelt.compile(f, shapeless=True), smelt.compile(lambda v, w: f(v, w))
        for shape in shapes:
            given = operands(shape, 0)
            for found, want in zip(flatten(once(*given))[0], flatten(each(*given))[0], strict=True):
                assert np.array(found).tobytes() == np.array(want).tobytes(), shape


def test_sizes_among_results_and_settings() -> None:
    weight = smelt.array(np.arange(12.0).reshape(3, 4))

    def f(batch: dict[str, Any], scale: float, *, axis: int = 0) -> Any:
        x = batch["x"]
        return (x @ weight).sum(axis=axis) * scale / x.shape[0], x.shape, {"rows": x.shape[0], "what": "sum"}

    compiled = smelt.compile(f, shapeless=True)
    for n in (5, 8, 3, 11, 4, 20):
        for scale in (1.0, 2.0):
            batch = {"x": smelt.ones((n, 3))}
            found, shape, info = compiled(batch, scale, axis=0)
            np.testing.assert_allclose(found, np.asarray(weight).sum(0) * scale)
            assert shape == (n, 3)
            assert info == {"rows": n, "what": "sum"}
            assert all(type(d) is int for d in (*shape, info["rows"]))


def test_a_function_that_looks_at_types_of_sizes() -> None:
    def f(x: Any) -> Any:
        n = x.shape[0]
        return x * (2 if type(n) is int else 3)

    compiled = smelt.compile(f, shapeless=True)
    for n in (4, 5, 6, 7):
        assert compiled(smelt.ones(n)).sum().item() == 2 * n


ERRORS = {
    "fixed reshape": (lambda x: x.reshape(2, 3), (6,), (7,), r"reshape"),
    "fixed matmul": (lambda x: x @ smelt.ones((3, 2), smelt.float64), (2, 3), (2, 4), r"3.*4|4.*3"),
    "fixed broadcast": (lambda x: x + smelt.ones(3, smelt.float64), (3,), (4,), r"broadcast|shape"),
    "fixed index": (lambda x: x[4], (5,), (3,), r"out of|range"),
    "fixed split": (lambda x: smelt.split(x, 2)[0], (4,), (5,), r"split|equal"),
    "fixed axis": (lambda x: x.sum(axis=1), (2, 3), (3,), r"axis"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_a_shape_that_does_not_fit_is_an_error_of_the_caller(name: str) -> None:
    program, good, bad, message = ERRORS[name]
    f = smelt.compile(program, shapeless=True)
    f(smelt.array(_sample(good, 0), smelt.float64))
    for _ in range(2):
        with pytest.raises((ValueError, IndexError), match=message) as caught:
            f(smelt.array(_sample(bad, 1), smelt.float64))
        assert "test_compile_shapeless.py" in str(caught.value)
    f(smelt.array(_sample(good, 2), smelt.float64))


def test_state_of_changing_shape() -> None:
    state = {"seen": smelt.zeros((0,))}

    def step(x):
        state["seen"] = smelt.concatenate([state["seen"], x])
        return state["seen"].sum()

    f = smelt.compile(step, inputs=state, outputs=state, shapeless=True)
    assert [f(smelt.ones(n)).item() for n in (1, 2, 3)] == [1.0, 3.0, 6.0]
    assert state["seen"].shape == (6,)


@pytest.mark.parametrize("dtype", [smelt.float32, smelt.float16, smelt.int32, smelt.bool_])
def test_changing_dtypes(dtype) -> None:
    f = smelt.compile(lambda x: (x + x, x.sum()), shapeless=True)
    for shape in ((2,), (3, 2)):
        x = smelt.ones(shape, dtype)
        doubled, total = f(x)
        assert (doubled.dtype, doubled.shape) == ((x + x).dtype, shape)
        assert total.item() == x.sum().item()


@pytest.mark.parametrize("tier", ["auto", "strided"])
def test_further_sizes_run_without_a_graph_of_their_own(tier: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def function(x: smelt.array, scale: smelt.array) -> smelt.array:
        calls.append(x.shape)
        y = smelt.softmax(x * scale, axis=-1)
        return smelt.sum(y * smelt.arange(x.shape[0])[:, None], axis=0) / x.shape[1]

    def want(x: np.ndarray) -> np.ndarray:
        e = np.exp(2.0 * x - (2.0 * x).max(-1, keepdims=True))
        return (e / e.sum(-1, keepdims=True) * np.arange(len(x))[:, None]).sum(0) / x.shape[1]

    def refuse(*_: Any) -> Any:
        raise AssertionError("a graph was made")

    f = smelt.compile(function, shapeless=True)
    scale = smelt.array(2.0, smelt.float32)
    rng = np.random.default_rng(0)
    with override(tier=tier), smelt.explain() as explained:
        for shape in [(3, 5), (4, 6), (7, 5), (5, 7), (6, 6), (1, 4), (1, 9), (1, 8), (30, 40), (8, 2)]:
            x = rng.standard_normal(shape).astype(np.float32)
            np.testing.assert_allclose(f(smelt.array(x), scale), want(x), 1e-5, 1e-6)
        made, traced = explained.count, len(calls)
        monkeypatch.setattr(shapeless, "bound", refuse)
        for shape in [(9, 11), (11, 9), (1, 13), (200, 300), (13, 2)]:
            x = rng.standard_normal(shape).astype(np.float32)
            np.testing.assert_allclose(f(smelt.array(x), scale), want(x), 1e-5, 1e-6)
        assert (explained.count, len(calls)) == (made, traced)

"""Arrays that are given up: less memory, the same values, and nothing that somebody else sees changes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir.errors import ArgumentTypeError, AttributeValueError, DonatedError
from smelt.ir.settings import override
from smelt.runtime import pool

N = 256  # arrays of 256 KiB, which come from the pool


def x_of(seed: int, *shape: int) -> smelt.array:
    found = smelt.array(np.random.default_rng(seed).random(shape or (N, N), np.float32) + 0.5)
    smelt.eval(found)
    return found


def adam(state: dict[str, Any], batch: smelt.array) -> tuple[dict[str, Any], smelt.array]:
    loss, slope = smelt.value_and_grad(lambda p: (smelt.tanh(batch @ p * 0.1) ** 2).sum())(state["p"])
    m, v = state["m"] * 0.9 + slope * 0.1, state["v"] * 0.99 + slope * slope * 0.01
    return {"p": state["p"] - 0.01 * m / (smelt.sqrt(v) + 1e-8), "m": m, "v": v}, loss


def train(donate: Any, tier: str) -> tuple[dict[str, np.ndarray], int]:
    """The state after some steps, and by how many bytes memory in use grew at most."""
    step, batch = smelt.compile(adam, donate=donate), x_of(9, 64, N)
    with override(tier=tier):
        step({k: x_of(i) for i, k in enumerate("pmv")}, batch)
        state = {k: x_of(i) for i, k in enumerate("pmv")}
        pool.peak_bytes = before = pool.active_bytes
        for _ in range(4):
            state, _ = step(state, batch)
        return {k: np.array(x) for k, x in state.items()}, pool.peak_bytes - before


def test_a_training_step_needs_no_second_copy_of_its_state() -> None:
    (plain, most), (donated, least) = train(None, "program"), train("state", "program")
    for k, x in plain.items():
        np.testing.assert_array_equal(donated[k], x)
    assert most - least >= 3 * N * N * 4


@pytest.mark.parametrize("tier", ["ops", "auto"])
def test_the_values_are_the_same_in_every_tier(tier: str) -> None:
    (wanted, _), (found, _) = train(None, "program"), train(0, tier)
    for k, x in wanted.items():
        np.testing.assert_allclose(found[k], x, 1e-4, 1e-5)


@pytest.mark.parametrize("tier", ["program", "ops", "auto"])
@pytest.mark.parametrize("use", [
    lambda x: x[0, 0].item(), lambda x: np.asarray(x), repr, lambda x: smelt.eval(x + 1),
    lambda x: smelt.compile(lambda y: y * 2)(x), lambda x: smelt.eval(smelt.compile(lambda y: y + x)(smelt.ones(N))),
    lambda x: smelt.eval(smelt.grad(lambda y: (y * x).sum())(smelt.ones((N, N)))), lambda x: smelt.async_eval(x * 2),
])  # fmt: skip
def test_what_was_donated_cannot_be_used(use: Callable[[smelt.array], Any], tier: str) -> None:
    f, x = smelt.compile(lambda y: smelt.exp(y), donate=0), x_of(0)
    with override(tier=tier):
        f(x)
        with pytest.raises(DonatedError, match=r"f32\[256,256\] was used after .*test_donation\.py:\d+"):
            use(x)
            smelt.synchronize()
    assert x.shape == (N, N) and x.dtype == smelt.float32


def test_the_message_names_who_uses_it() -> None:
    f, x = smelt.compile(lambda y: smelt.exp(y), donate=0), x_of(0)
    f(x)
    lazy = smelt.sin(x)
    with pytest.raises(DonatedError, match=rf"test_donation\.py:{_line() - 1}") as caught:
        smelt.eval(lazy)
    assert "copy it before the call" in str(caught.value)


def _line() -> int:
    import inspect

    frame = inspect.currentframe()
    assert frame is not None and frame.f_back is not None
    return frame.f_back.f_lineno


def exp_of(*, donate: Any = 0) -> Callable[..., smelt.array]:
    """A compiled function whose result lies in its donated argument, where nobody else has that."""
    return smelt.compile(lambda y: smelt.exp(y), donate=donate)


def address(x: smelt.array) -> int:
    return np.asarray(x).ctypes.data


def test_memory_of_an_array_that_nobody_else_has_is_used() -> None:
    with override(tier="program"):
        f, x = exp_of(), x_of(0)
        before = address(x)
        assert address(f(x)) == before


HOLDERS: dict[str, Callable[[smelt.array], Any]] = {
    "NumPy": np.asarray,
    "a part by NumPy": lambda x: np.asarray(x)[1:5],
    "memoryview": memoryview,
    "DLPack": lambda x: np.from_dlpack(x),
    "a copy": lambda x: smelt.array(x),
    "a view": lambda x: _evaluated(x.reshape(-1)),
    "a lazy graph": lambda x: x * 2,
    "a lazy view": lambda x: x.T,
    "a compiled function": lambda x: _called(smelt.compile(lambda y: y + x)),
    "a result that is the argument": lambda x: smelt.compile(lambda y: (y, y + 1))(x)[0],
    "a gradient's residual": lambda x: smelt.vjp(lambda y: y * y * y, [x])[1],
}


def _evaluated(x: smelt.array) -> smelt.array:
    smelt.eval(x)
    return x


def _called(f: Callable[[smelt.array], smelt.array]) -> Callable[[smelt.array], smelt.array]:
    smelt.eval(f(smelt.ones((N, N))))
    return f


def _read(held: Any) -> np.ndarray:
    if callable(held):
        held = held([smelt.ones((N, N))])[0] if isinstance(held, functools.partial) else _of_function(held)
    return np.array(held)


def _of_function(held: Callable[..., Any]) -> Any:
    try:
        return held([smelt.ones((N, N))])[0]
    except (TypeError, smelt.ir.errors.SmeltError):
        return held(smelt.ones((N, N)))


@pytest.mark.parametrize("tier", ["program", "ops", "auto"])
@pytest.mark.parametrize("name", HOLDERS)
def test_memory_that_somebody_else_sees_stays(name: str, tier: str) -> None:
    with override(tier=tier):
        wanted = _read(HOLDERS[name](x_of(0)))
        f, x = exp_of(), x_of(0)
        held = HOLDERS[name](x)
        found = f(x)
        np.testing.assert_allclose(found, np.exp(x_of(0)), 1e-5)
        np.testing.assert_array_equal(_read(held), wanted)


def test_an_array_given_twice() -> None:
    f = smelt.compile(lambda x, y: (smelt.exp(x), y + 1), donate=0)
    with override(tier="program"):
        for both in (x_of(0), smelt.exp(x_of(0))):
            wanted = np.array(both)
            found = f(both, both)
            np.testing.assert_allclose(found[0], np.exp(wanted), 1e-5)
            np.testing.assert_array_equal(found[1], wanted + 1)
            with pytest.raises(DonatedError):
                smelt.eval(both)


@pytest.mark.parametrize("donate, given", [
    (1, {1}), ("b", {1}), (("a", 1), {0, 1}), ([0, "c"], {0, 2}), ((), set()), (None, set()),
])  # fmt: skip
def test_which_arguments(donate: Any, given: set[int]) -> None:
    f = smelt.compile(lambda a, b, *, c: a + b[0] + b[1] + c, donate=donate)
    a, b, c = x_of(0), [x_of(1), x_of(2)], x_of(3)
    f(a, b, c=c)
    for i, x in ((0, a), (1, b[0]), (1, b[1]), (2, c)):
        if i in given:
            with pytest.raises(DonatedError):
                smelt.eval(x)
        else:
            assert x[0, 0].item() > 0


def test_a_name_that_is_given_by_position_and_a_number_that_is_given_by_name() -> None:
    for donate in (0, "x"):
        for call in (lambda f, x: f(x), lambda f, x: f(x=x)):
            f, x = smelt.compile(lambda x, scale=2: x * scale, donate=donate), x_of(0)
            call(f, x)
            with pytest.raises(DonatedError):
                smelt.eval(x)


@pytest.mark.parametrize("donate, error", [
    (2, AttributeValueError), (-1, AttributeValueError), ("z", AttributeValueError), (True, AttributeValueError),
    (1.5, ArgumentTypeError), ([None], ArgumentTypeError),
])  # fmt: skip
def test_arguments_that_are_not_there(donate: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"donate .*test_donation\.py:"):
        smelt.compile(lambda x, y: x + y, donate=donate)


def test_state_and_donated_arguments() -> None:
    held = {"count": smelt.array(0)}

    def step(x: smelt.array) -> smelt.array:
        held["count"] = held["count"] + 1
        return x + held["count"]

    f, x = smelt.compile(step, inputs=held, outputs=held, donate="x"), smelt.zeros((N, N))
    for _ in range(3):
        x = f(x)
    assert x[0, 0].item() == 6 and held["count"].item() == 3


def test_inside_of_a_trace_nothing_is_given_up() -> None:
    f, x = smelt.compile(lambda y: smelt.exp(y).sum(), donate=0), x_of(0)
    smelt.eval(smelt.grad(lambda y: f(y))(x), smelt.compile(lambda y: f(y) + y.sum())(x))
    assert x[0, 0].item() > 0


def test_threads_give_up_what_is_theirs() -> None:
    f = smelt.compile(lambda x, y: smelt.sin(x) + y, donate=0)
    shared = x_of(1)

    def run(seed: int) -> float:
        x = x_of(seed)
        for _ in range(5):
            x = f(x, shared)
        return float(np.asarray(x).sum())

    with override(tier="program"):
        wanted = [run(seed) for seed in range(6)]
        with ThreadPoolExecutor(3) as threads:
            assert list(threads.map(run, range(6))) == wanted


def test_one_array_given_up_by_many_threads() -> None:
    f, want = exp_of(), np.exp(np.asarray(x_of(0)))
    with override(tier="program"):
        for _ in range(20):
            x = x_of(0)

            def run(_: int, x: smelt.array = x) -> Any:
                try:
                    return np.array(f(x))
                except DonatedError:
                    return None

            with ThreadPoolExecutor(4) as threads:
                for found in threads.map(run, range(4)):
                    assert found is None or np.allclose(found, want, 1e-5)


SPLICES: dict[str, Callable[[smelt.array, smelt.array, smelt.array], smelt.array]] = {
    "slice_update": lambda x, v, i: smelt.slice_update(x, v, i[:1], (0,)),
    "rows that are added": lambda x, v, i: x.at[i].add(v),
    "rows that are set": lambda x, v, i: _set(x, i, v),
    "a slice": lambda x, v, i: _set(x, slice(3, 6), v),
    "a slice backwards": lambda x, v, i: _set(x, slice(6, 3, -1), v),
    "a slice that is added": lambda x, v, i: x.at[4:7].add(v * 2),
    "a window": lambda x, v, i: _set(x, (slice(3, 6), slice(5, 9)), v[:, 5:9]),
    "an element": lambda x, v, i: _set(x, (2, -1), v[0, 0]),
    "values of what was read before": lambda x, v, i: x.at[i].set(v + x.sum()),
}
#: Those that may not be written where they lie: what is read is written over.
ELSEWHERE: dict[str, Callable[[smelt.array, smelt.array, smelt.array], Any]] = {
    "values of itself": lambda x, v, i: x.at[i].set(x[i[::-1]] * 2),
    "every other row": lambda x, v, i: _set(x, slice(0, 6, 2), v),
    "two updates": lambda x, v, i: _set(x.at[i].add(v), slice(1, 4), v),
    "kept besides": lambda x, v, i: (x, _set(smelt.array(x), slice(1, 4), v)),
    "read afterwards": lambda x, v, i: (_set(smelt.array(x), slice(1, 4), v), x.sum(axis=0)),
}


def _set(x: smelt.array, index: Any, value: Any) -> smelt.array:
    x[index] = value
    return x


@pytest.mark.parametrize("tier", ["program", "auto", "ops"])
@pytest.mark.parametrize("name", [*SPLICES, *ELSEWHERE])
def test_only_the_splice_is_written(name: str, tier: str) -> None:
    f = SPLICES.get(name) or ELSEWHERE[name]
    v, i = x_of(1, 3, N), smelt.array([7, 2, 250])
    smelt.eval(v, i)
    with override(tier=tier):
        plain, donated = smelt.compile(f), smelt.compile(f, donate=0)
        for seed in range(3):
            wanted = smelt.utils.tree_map(np.array, plain(x_of(seed), v, i))
            x = x_of(seed)
            before = address(x) if tier == "program" else 0
            held = smelt.array(x) if seed == 1 else None  # somebody else has it
            found = donated(x, v, i)
            smelt.utils.tree_map(lambda a, b: np.testing.assert_array_equal(np.array(a), b), found, wanted)
            if held is not None:
                np.testing.assert_array_equal(np.array(held), np.array(x_of(seed)))
            elif tier == "program" and name in SPLICES:
                assert address(found) == before


@pytest.mark.parametrize("dtype", ["float16", "int8", "bool_", "complex64", "float64"])
def test_splices_of_every_kind(dtype: str) -> None:
    kind = getattr(smelt, dtype)
    f = smelt.compile(lambda x, v: smelt.slice_update(x, v, smelt.array([5]), (0,)), donate="x")
    for donated in (True, False):
        x, v = (x_of(0, 8 * N, N) * 3).astype(kind), (x_of(1, 2, N) * 3).astype(kind)
        smelt.eval(x, v)
        want = np.array(x)
        want[5:7] = np.array(v)
        held = None if donated else smelt.array(x)
        with override(tier="program"):
            np.testing.assert_array_equal(np.array(f(x, v)), want)
        del held


def test_a_gradient_of_a_splice_of_what_is_given() -> None:
    f = smelt.compile(smelt.grad(lambda x, v: (_set(x, slice(2, 5), v) ** 2).sum(), argnums=(0, 1)), donate=0)
    x, v = x_of(0), x_of(1, 3, N)
    want = 2 * np.array(x)
    want[2:5] = 0
    dx, dv = f(x, v)
    np.testing.assert_allclose(np.array(dx), want, rtol=1e-6)
    np.testing.assert_allclose(np.array(dv), 2 * np.array(v), rtol=1e-6)

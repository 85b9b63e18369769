"""What users of transformations and control flow once ran into: aliases, updates in place, errors."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir.errors import AttributeValueError, ShapeError, TraceError, TreeError

from .checks import same

F32 = smelt.float32

#: Every way to hand a function on; each returns what the function returns.
WAYS: dict[str, Callable[[Callable], Callable]] = {
    "itself": lambda f: f,
    "compile": smelt.compile,
    "checkpoint": smelt.checkpoint,
    "custom_function": smelt.custom_function,
    "custom_vjp": smelt.custom_vjp,
    "vmap": lambda f: lambda x: smelt.vmap(f)(x[None])[0],
    "value_and_grad": lambda f: lambda x: smelt.value_and_grad(lambda x: (smelt.array(0.0) * x.sum(), f(x)))(x)[0][1],
    "vjp": lambda f: lambda x: smelt.vjp(f, [x], [smelt.ones(x.shape)])[0][0],
    "jvp": lambda f: lambda x: smelt.jvp(f, [x], [x])[0][0],
    "linearize": lambda f: lambda x: smelt.linearize(f, x)[0],
    "cond": lambda f: lambda x: smelt.cond(smelt.array(True), f, f, x),
    "switch": lambda f: lambda x: smelt.switch(0, [f], x),
    "scan": lambda f: lambda x: smelt.scan(lambda _, x: (None, f(x)), None, x[None])[1][0],
    "map": lambda f: lambda x: smelt.map(f, x[None])[0],
    "map in batches": lambda f: lambda x: smelt.map(f, x[None], batch_size=1)[0],
    "fori_loop": lambda f: lambda x: smelt.fori_loop(0, 1, lambda _, x: f(x), x),
    "while_loop": lambda f: lambda x: smelt.while_loop(
        lambda s: s[0] < 1, lambda s: (s[0] + 1, f(s[1])), (smelt.array(0), x)
    )[1],
}
AROUND = ("itself", "compile", "checkpoint", "vmap", "value_and_grad", "jvp", "cond", "scan", "while_loop")


def _update(x: smelt.array) -> smelt.array:
    x[0] = 7.0
    x += 1.0
    return x


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("way", [w for w in WAYS if w != "itself"])
def test_a_function_updates_arguments_of_its_own_and_returns_them(way: str, around: str) -> None:
    inner = WAYS[way](_update)

    def both(x: smelt.array) -> smelt.array:
        y = inner(x)
        return 10 * x + y  # x as before, y updated

    x = smelt.array([2.0, 3.0])
    same(WAYS[around](both)(x), np.array([28, 34], np.float32))
    same(x, np.array([2, 3], np.float32))


@pytest.mark.parametrize("way", ["itself", "compile", "checkpoint", "value_and_grad", "vjp", "vmap"])
def test_closures_are_updated_where_the_function_runs_once(way: str) -> None:
    total = smelt.zeros(2)

    def f(x: smelt.array) -> smelt.array:
        own = smelt.array(total)
        own += x
        own[0] = 5.0
        return own

    same(WAYS[way](f)(smelt.array([1.0, 2.0])), np.array([5, 2], np.float32))
    same(total, np.zeros(2, np.float32))


def _adds(total: smelt.array) -> Callable[[Any], Any]:
    def f(x: smelt.array) -> smelt.array:
        nonlocal total
        total += 1.0
        return x

    return f


def _sets(total: smelt.array) -> Callable[[Any], Any]:
    def f(x: smelt.array) -> smelt.array:
        total[0] = 1.0
        return x

    return f


@pytest.mark.parametrize("updating", [_adds, _sets])
@pytest.mark.parametrize("way", ["cond", "scan", "map", "fori_loop", "while_loop"])
@pytest.mark.parametrize("around", ["itself", "compile", "vmap", "value_and_grad", "jvp"])
def test_branches_and_loops_update_nothing_from_outside(around: str, way: str, updating: Callable) -> None:
    total = smelt.zeros(2)
    with pytest.raises(TraceError, match=r"from outside \(f32\[2\]\) in place.*test_transform_regressions.py:\d"):
        WAYS[around](WAYS[way](updating(total)))(smelt.ones(2))
    same(total, np.zeros(2, np.float32))
    same(smelt.scan(lambda c, x: (c + x, None), 0.0, smelt.ones(3))[0], np.float32(3))  # nothing is left behind


@pytest.mark.parametrize(
    "own",
    [
        lambda total: smelt.array(total),
        lambda total: total + 0,
        lambda total: total.reshape(2),
        lambda total: total.astype(F32),
        lambda total: smelt.zeros(2),
        lambda total: smelt.array([0.0, 0.0]),
    ],
)
def test_branches_and_loops_update_what_is_their_own(own: Callable) -> None:
    total = smelt.zeros(2)

    def f(x: smelt.array) -> smelt.array:
        y = own(total)
        y[0] = x[1]
        y *= 2.0

        def into(x: smelt.array, y: smelt.array) -> smelt.array:
            y += x  # not differentiated, so it is the caller's array; as it was afterwards
            return (x * y).sum()

        return y + smelt.grad(into)(x, y)

    for way in ("cond", "scan", "map", "fori_loop", "while_loop"):
        same(WAYS[way](f)(smelt.array([1.0, 2.0])), np.array([4 + 6, 4], np.float32))  # y + (y + 2 x)
    same(total, np.zeros(2, np.float32))


def _arguments(x: smelt.array, flat: smelt.array) -> list[tuple]:
    return [(x,), (flat,), (x, x.shape), (flat, flat.shape), (x, x.dtype), (x, 0), (x, -1), (x, 1), (x, 1, 1), (x, []),
            ([x],), (x, flat), (flat, flat), (flat, None, None), (flat, ())]  # fmt: skip


def _calls() -> list[str]:
    without = {"asarray", "eval", "async_eval", "set_memory_limit", "set_cache_limit"}
    public = {n: getattr(smelt, n) for n in smelt.__all__}
    return [n for n, f in public.items() if callable(f) and not isinstance(f, type) and n not in without]


@pytest.mark.parametrize("dtype", ["float32", "int32", "bool_", "complex64"])
def test_no_function_gives_back_the_handle_that_it_got(dtype: str) -> None:
    """`y = f(x)` and an update of y in place leave x as it is, also where f has nothing to do."""
    for shape in ((2, 2), (0, 2)):
        x = smelt.ones(shape, dtype=getattr(smelt, dtype))
        flat = smelt.ones(shape[:1], dtype=getattr(smelt, dtype))
        found = []
        for name in _calls():
            for arguments in _arguments(x, flat):
                try:
                    result = getattr(smelt, name)(*arguments)
                except Exception:
                    continue
                every = result if isinstance(result, (list, tuple)) else [result]
                if any(y is given for y in every for given in (x, flat)):
                    found.append(name)
        for name in ("astype", "conj", "flatten", "max", "real", "reshape", "squeeze", "sum", "view", "__pos__"):
            method = getattr(x, name)
            tried = [method] if not callable(method) else []
            for arguments in ((), (x.shape,), (x.dtype,), (0,), ([],), (-1,)):
                try:
                    tried += [method(*arguments)]
                except Exception:
                    continue
            found += [name for y in tried if y is x]
        assert not found


def test_an_update_of_a_converted_array_does_not_depend_on_its_dtype() -> None:
    def residual(x: smelt.array) -> smelt.array:
        h = x.astype(F32)
        h += 1.0
        return h * x

    for dtype in (smelt.float16, F32):
        same(smelt.grad(lambda x: residual(x).sum())(smelt.array([2.0], dtype=dtype)).astype(F32), np.float32([5]))


def test_associative_scan_with_updates_in_place() -> None:
    def add(a: smelt.array, b: smelt.array) -> smelt.array:
        a += b
        return a

    x = smelt.arange(1.0, 9.0)
    same(smelt.associative_scan(add, x), np.cumsum(np.arange(1, 9, dtype=np.float32)))
    same(x, np.arange(1, 9, dtype=np.float32))


def test_one_branch_is_a_branch() -> None:
    found = smelt.switch(smelt.array(3), [lambda x: {"one": 1.0, "x": x}], smelt.array(2.0))
    assert type(found["one"]) is smelt.array and found["x"].item() == 2.0


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda x: smelt.associative_scan(lambda a, b: a.sum(), x), ShapeError, r"takes elems as f32\[1\] and returns"),
        (lambda x: smelt.while_loop(lambda c: (c < 1,), lambda c: c, x[0]), TreeError, "scalar bool, returned a tuple"),
        (lambda x: smelt.grad(lambda *, x: x.sum())(x=x), AttributeValueError, "got 0 positional arguments"),
        (lambda x: smelt.grad(lambda x: x.sum(), argnums=-1)(x), AttributeValueError, "must not be negative"),
        (lambda x: smelt.grad(lambda x: x.sum(), argnums=(0, 0))(x), AttributeValueError, "must not repeat"),
        (lambda x: smelt.grad(lambda x: x.sum(), argnames="y")(x), AttributeValueError, "without the keyword 'y'"),
        (lambda x: smelt.grad(lambda x: x.sum(), argnums=())(x), AttributeValueError, "nothing to differentiate"),
        (lambda x: smelt.jacrev(lambda x: x, argnums=4)(x), AttributeValueError, "got 1 positional arguments"),
    ],
)
def test_errors_are_of_smelt_and_name_the_line(call: Callable, kind: type, message: str) -> None:
    with pytest.raises(kind, match=f"{message}.*test_transform_regressions.py"):
        call(smelt.ones(2))


def twice(x: smelt.array) -> smelt.array:
    s = smelt.checkpoint(lambda x: smelt.sin(x) * x)
    return s(s(x))


@pytest.mark.parametrize(
    "function",
    [
        twice,
        lambda x: smelt.scan(lambda c, e: (twice(c) * e + c, None), x, smelt.stack([x, x * 2]))[0],
        lambda x: smelt.scan(smelt.checkpoint(lambda c, e: (twice(c) * e + c, c)), x, smelt.stack([x, x * 2]))[0],
        lambda x: smelt.cond(x[0] > 0, twice, smelt.sin, x),
    ],
    ids=["calls", "scan of calls", "checkpointed steps", "branch"],
)
def test_tangents_of_checkpointed_functions_are_transposed(function: Callable) -> None:
    """A call with a checkpoint that returns values and tangents is linear in the tangents alone."""
    x, ct = smelt.array([0.3, -0.4, 1.2]), smelt.array([1.0, 2.0, -0.5])
    want = smelt.vjp(function, [x], [ct])[1][0]
    push = smelt.linearize(function, x)[1]
    for linear in (push, lambda t: smelt.jvp(function, [x], [t])[1][0]):
        transposed = smelt.linear_transpose(linear, x)
        same(transposed(ct)[0], np.asarray(want), rtol=1e-5)
        same(smelt.vmap(transposed)(ct[None])[0][0], np.asarray(want), rtol=1e-5)
        same(transposed(ct)[0], np.asarray(smelt.jacfwd(function)(x).T @ ct), rtol=1e-5)


def test_an_exception_in_a_traced_function_leaves_no_trace() -> None:
    def fails(*_: Any) -> Any:
        raise KeyError("mine")

    x = smelt.ones(2)
    for way in WAYS.values():
        with pytest.raises(KeyError, match="mine"):
            way(fails)(x)
        with pytest.raises(KeyError, match="mine"):
            smelt.compile(functools.partial(way(fails)))(x)
    assert (x + 1).tolist() == [2, 2]  # values are there
    x += 1.0
    same(smelt.grad(lambda x: (x**2).sum())(x), np.array([4, 4], np.float32))

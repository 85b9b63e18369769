"""Recipes for all sizes: what they make for some is what a call with these makes for itself."""

from __future__ import annotations

import functools
import gc
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.functions import indexing, joining, updating
from smelt.ir import short_axes
from smelt.ir.ops import reduce
from smelt.lazy import core, recipes
from smelt.lazy.core import memory_of, remembered
from smelt.lazy.execution import steps
from smelt.lazy.graph import GraphOp

Make = Callable[..., Any]


@functools.lru_cache(maxsize=1)
def memories(modules: int) -> list[Any]:
    """Of all functions. Looking for them takes long; modules that load, of which there are so many, bring new ones."""
    gc.unfreeze()  # what `small_heap` has frozen
    return [x for x in gc.get_objects() if type(x) is core.Memory]


def forget() -> None:
    """Forget all recipes."""
    for memory in memories(len(sys.modules)):
        for kept in (memory.outside, memory.inside, memory.families):
            kept.clear()


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    forget()
    yield
    forget()


def array(*shape: int, dtype: Any = np.float32) -> smelt.array:
    count = int(np.prod(shape))
    return smelt.array((np.arange(count) * 37 % 101 - 50).reshape(shape).astype(dtype) / np.float32(16).astype(dtype))


def integers(limit: int, *shape: int) -> smelt.array:
    return smelt.array((np.arange(int(np.prod(shape))) * 7 % max(limit, 1)).reshape(shape).astype(np.int32))


def listed(found: Any) -> list[smelt.array]:
    return list(found) if isinstance(found, (list, tuple)) else [found]


def nodes(found: Any) -> list[Any]:
    """Nodes below arrays: types, attributes and what is prepared. A constant and its value are the same."""
    order = core.topological([x._ref for x in listed(found)])
    shown = []
    for node in order:
        if node.op.kind == "constant":
            continue
        known = node.prepared
        if known is None or isinstance(known, list):
            steps.prepare(node)
            known = node.prepared
        assert not isinstance(known, list)
        # Which of the two it is may be known with the size alone; of few elements they are the same.
        function = known and (np.add.reduce if known.function is reduce._added else known.function)
        if isinstance(function, functools.partial) and function.func is short_axes._by_rows:
            function = function.args[0]
        call = known and [str(x) for x in (function, known.first, known.extra, known.names, known.manner)]
        cost = known and (round(known.work, 6), round(known.seconds * 1e9, 3), known.ops)
        attrs = {} if isinstance(node.op, GraphOp) else node.attrs
        shown.append((node.op.name, repr(attrs), str(node.avals), call, cost))
    return shown


def outcome(make: Make, sizes: tuple[int, ...]) -> Any:
    """The nodes and values that a call makes, or its error."""
    try:
        found = make(*sizes)
    except smelt.SmeltError as error:
        return type(error), str(error)
    return nodes(found), [(str(x.aval), np.array(x).tobytes()) for x in listed(found)]


def assigned(x: smelt.array, index: Any, value: Any) -> smelt.array:
    x[index] = value
    return x


#: Calls with arrays that have no values yet: a, b and c are sizes.
CALLS: dict[str, Make] = {
    "add": lambda a, b, c: array(a, b) + array(a, b),
    "a row": lambda a, b, c: array(a, b) * array(b),
    "a column": lambda a, b, c: array(a, b) - array(a, 1),
    "parted": lambda a, b, c: array(a, b) + array(a, c),
    "a number": lambda a, b, c: array(a, b) * 2.5,
    "an integer that may not fit": lambda a, b, c: array(a, b, dtype=np.int8) + 100 * c,
    "sum": lambda a, b, c: array(a, b, c).sum(axis=1),
    "mean": lambda a, b, c: array(a, b).mean(axis=-1, keepdims=True),
    "var": lambda a, b, c: smelt.var(array(a, b), axis=0),
    "max": lambda a, b, c: array(a, b).max(axis=1),
    "argmax": lambda a, b, c: smelt.argmax(array(a, b), axis=0),
    "all axes": lambda a, b, c: array(a, b).sum(),
    "logsumexp": lambda a, b, c: smelt.logsumexp(array(a, b), axis=-1),
    "softmax": lambda a, b, c: smelt.softmax(array(a, b, 3), axis=1),
    "product": lambda a, b, c: array(a, b) @ array(b, c),
    "product of many": lambda a, b, c: array(2, a, b) @ array(2, b, c),
    "product with a vector": lambda a, b, c: array(c, a, b) @ array(b),
    "product with what does not fit": lambda a, b, c: array(a, b) @ array(c, a),
    "transposed product": lambda a, b, c: array(b, a).T @ array(b, c),
    "einsum": lambda a, b, c: smelt.einsum("ij,kj->ki", array(a, b), array(c, b)),
    "tensordot": lambda a, b, c: smelt.tensordot(array(a, b, c), array(b, c, 2), 2),
    "flat": lambda a, b, c: array(a, b).reshape(-1),
    "split": lambda a, b, c: array(a * b, c).reshape(a, b, c),
    "split by what may not fit": lambda a, b, c: array(a * b).reshape(c, -1),
    "flatten": lambda a, b, c: smelt.flatten(array(a, b, c), 1, 2),
    "transpose": lambda a, b, c: array(a, b, c).transpose(2, 0, 1),
    "swapped": lambda a, b, c: array(a, b).swapaxes(0, 1),
    "broadcast": lambda a, b, c: smelt.broadcast_to(array(b), (a, b)),
    "new axes": lambda a, b, c: smelt.expand_dims(array(a, b), (0, 2)),
    "squeeze": lambda a, b, c: smelt.squeeze(array(a, 1, b), 1),
    "concatenate": lambda a, b, c: smelt.concatenate([array(a, b), array(c, b), array(a, b)], axis=0),
    "stack": lambda a, b, c: smelt.stack([array(a, b), array(a, b)], axis=1),
    "a slice": lambda a, b, c: (array(a, b) * 1.0)[: a - 1, 1:],
    "a slice up to": lambda a, b, c: (array(a, b) * 1.0)[:c],
    "a token": lambda a, b, c: (array(3, 40) * 1.0)[:, a : a + 1],
    "a window": lambda a, b, c: (array(3, 60) * 1.0)[:, a : a + b],
    "steps": lambda a, b, c: (array(a, b) * 1.0)[::2, ::-1],
    "from the end": lambda a, b, c: (array(a, b) * 1.0)[-12:, -3:],
    "an index": lambda a, b, c: (array(a, b) * 1.0)[c],
    "an assigned index": lambda a, b, c: assigned(array(a, b) * 1.0, c, 2.0),
    "added to an index": lambda a, b, c: (array(40, b) * 1.0).at[a].add(array(b)),
    "a far index": lambda a, b, c: (array(40, 2) * 1.0)[a],
    "the last": lambda a, b, c: (array(a, b) * 1.0)[..., -1],
    "an index array": lambda a, b, c: (array(a, b) * 1.0)[integers(a, c)],
    "take": lambda a, b, c: smelt.take(array(a, b), integers(b, c), axis=1),
    "take along": lambda a, b, c: smelt.take_along_axis(array(a, b), integers(b, a, 2), axis=1),
    "pad": lambda a, b, c: smelt.pad(array(a, b), ((0, c), (1, 0))),
    "where": lambda a, b, c: smelt.where(array(a, b) > 0, array(a, 1), 0.0),
    "arange": lambda a, b, c: smelt.arange(a, 3 * b) + array(1),
    "zeros": lambda a, b, c: smelt.zeros((a, b)) + array(b),
    "full": lambda a, b, c: smelt.full((a, b), 7 * c, dtype=smelt.uint8) + array(1, dtype=np.uint8),
    "repeat": lambda a, b, c: smelt.repeat(array(a, b), 3, axis=0),
    "tile": lambda a, b, c: smelt.tile(array(a, b), (2, 1)),
    "pieces": lambda a, b, c: smelt.split(array(2 * a, b), 2, axis=0),
    "outer": lambda a, b, c: smelt.outer(array(a), array(b)),
    "cumsum": lambda a, b, c: smelt.cumsum(array(a, b), axis=0),
    "sort": lambda a, b, c: smelt.sort(array(a, b), axis=0),
    "diagonal": lambda a, b, c: smelt.diagonal(array(a, b)),
    "triangle": lambda a, b, c: smelt.tril(array(a, b), 1),
    "eye": lambda a, b, c: smelt.eye(a) + array(a),
    "roll": lambda a, b, c: smelt.roll(array(a, b), c, axis=0),
    "layer_norm": lambda a, b, c: smelt.fast.layer_norm(array(a, b), array(b), array(b), 1e-5),
    "attention": lambda a, b, c: smelt.fast.scaled_dot_product_attention(
        array(1, 2, a, 8), array(1, 2, b, 8), array(1, 2, b, 8), scale=0.3
    ),
    "astype": lambda a, b, c: array(a, b).astype(smelt.float16),
    "norm": lambda a, b, c: smelt.linalg.norm(array(a, b)),
}  # fmt: skip
#: Equal sizes that part, extents of 0 and 1, and many more.
SIZES = [
    (12, 20, 31), (13, 21, 32), (14, 22, 33), (15, 23, 34), (2, 3, 4), (3, 2, 5), (16, 16, 30), (17, 17, 29),
    (18, 18, 28), (19, 19, 27), (9, 9, 9), (10, 10, 10), (11, 11, 11), (12, 12, 12), (1, 12, 3), (1, 13, 4),
    (1, 14, 5), (1, 15, 6), (12, 1, 9), (13, 1, 10), (14, 1, 11), (15, 1, 12), (0, 12, 2), (0, 13, 3), (0, 14, 4),
    (7, 0, 2), (8, 0, 3), (9, 0, 4), (1, 1, 1), (20, 10, 2), (22, 11, 3), (24, 12, 4), (26, 13, 5), (35, 36, 37),
    (37, 36, 35), (30, 9, 40), (31, 9, 41), (32, 9, 42), (33, 9, 8), (34, 9, 43),
]  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_what_is_bound_to_sizes_is_what_is_made_for_them(name: str) -> None:
    found = [outcome(CALLS[name], sizes) for sizes in SIZES]
    again = [outcome(CALLS[name], sizes) for sizes in reversed(SIZES)][::-1]
    for i, sizes in enumerate(SIZES):
        forget()
        want = outcome(CALLS[name], sizes)
        assert found[i] == want, sizes
        assert again[i] == want, sizes


def sized(function: Any) -> list[Any]:
    """The recipes for all sizes that a function has."""
    memory = memory_of(function)
    assert memory is not None
    return [made for family in memory.families.values() for made in family.recipes or ()]


@pytest.mark.parametrize(
    "function, call",
    [
        (smelt.softmax, lambda n: smelt.softmax(array(n, 5), axis=-1)),
        (smelt.matmul, lambda n: smelt.matmul(array(n, 5), array(5, 7))),
        (smelt.mean, lambda n: smelt.mean(array(n, 5), axis=0)),
        (joining._concatenated, lambda n: smelt.concatenate([array(n, 5), array(1, 5)], axis=0)),
        (indexing._lazy_getitem, lambda n: (array(100, 2) * 1.0)[n]),
        (indexing._lazy_getitem, lambda n: (array(100, 2) * 1.0)[n, 1]),
        (updating._updated, lambda n: assigned(array(100, 2) * 1.0, n, 3.0)),
        (smelt.logsumexp, lambda n: smelt.logsumexp(array(4, n), axis=1)),
        (smelt.reshape, lambda n: smelt.reshape(array(n, 6), (n, 2, 3))),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_one_recipe_is_for_all_sizes(function: Any, call: Callable[[int], smelt.array], monkeypatch: Any) -> None:
    count = []
    plain = recipes._recorded
    monkeypatch.setattr(recipes, "_recorded", lambda *args: count.append(1) or plain(*args))
    for n in range(10, 60):
        call(n).tolist()
    assert len(sized(function)) == 1
    assert len(count) <= recipes.FIRST + 3  # with what else is called


def test_what_a_function_finds_out_about_sizes_is_a_guard() -> None:
    @remembered
    def f(x: smelt.array) -> smelt.array:
        n = x.shape[0]
        if n > 30:
            return x * 2.0
        return x + 1.0 if n % 2 else -x

    for n in [*range(10, 50), *range(60, 10, -1)]:
        x = array(n)
        want = x * 2.0 if n > 30 else (x + 1.0 if n % 2 else -x)
        assert f(x).tolist() == want.tolist(), n
    assert 2 <= len(sized(f)) <= recipes.MOST_SIZED


def test_what_depends_on_a_size_as_a_number_is_right() -> None:
    @remembered
    def f(x: smelt.array) -> smelt.array:
        return x * (1.0 / x.shape[0]) + sum(range(x.shape[0]))

    @remembered
    def g(x: smelt.array) -> smelt.array:
        return x + smelt.array(np.full(3, x.shape[0], np.float32))

    for n in range(10, 30):
        x = np.ones(n, np.float32)
        assert f(smelt.array(x)).tolist() == (x * np.float32(1 / n) + np.float32(sum(range(n)))).tolist()
        assert g(smelt.array(np.ones((n, 3), np.float32))).tolist() == np.full((n, 3), 1 + n).tolist()


def test_caches_are_bounded() -> None:
    @remembered
    def f(x: smelt.array, name: str) -> smelt.array:
        return x + float(len(name))

    memory: Any = memory_of(f)
    for i in range(3 * recipes.MOST_FAMILIES):
        f(array(10 + i % 5), "." * i)
    assert len(memory.families) <= recipes.MOST_FAMILIES
    for n in range(2 * recipes.MOST_RECIPES):
        f(smelt.zeros(n), "")
    assert 0 < len(memory.outside) <= recipes.MOST_RECIPES

    @remembered
    def pinned(x: smelt.array) -> smelt.array:
        return x + float(range(x.shape[0])[-1])

    for n in range(2, 100):
        assert pinned(smelt.zeros(n))[0].item() == n - 1
    assert len(sized(pinned)) <= recipes.MOST_SIZED


def test_sizes_beyond_64_bits_and_others_of_no_array_are_errors() -> None:
    for n in (10, 11, 12, 13, 2**40):
        x = smelt.broadcast_to(smelt.array(1.0), (n, 9))
        if n < 2**40:
            assert smelt.flatten(x).shape == (9 * n,)
        else:
            with pytest.raises(smelt.SmeltError):
                smelt.broadcast_to(x[None], (2**40, n, 9))


def test_threads_bind_recipes_at_once() -> None:
    found: dict[tuple[int, int], Any] = {}

    def work(k: int) -> None:
        for n in range(9 + k, 60, 3):
            x = smelt.array(np.arange(n * 5, dtype=np.float32).reshape(n, 5))
            y = smelt.softmax((x - x.mean(axis=0)) @ smelt.ones((5, 4)), axis=-1)
            found[k, n] = np.array(smelt.concatenate([y, y[:1]], axis=0))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    forget()
    several = found.copy()
    for k in range(6):
        work(k)
    assert all(np.array_equal(several[key], found[key]) for key in found) and len(several) == len(found)


#: Functions of a matrix and its extents.
CHANGES: list[Callable[[smelt.array, int, int], smelt.array]] = [
    lambda x, n, m: x + 1.5,
    lambda x, n, m: x * array(m),
    lambda x, n, m: x - x.mean(axis=0),
    lambda x, n, m: x.T,
    lambda x, n, m: smelt.softmax(x, axis=-1) if m else x,
    lambda x, n, m: x[: max(n - 1, 1)],
    lambda x, n, m: x[:, ::2],
    lambda x, n, m: smelt.concatenate([x, x * 0.5], axis=1)[:, :50],
    lambda x, n, m: x.reshape(m, n),
    lambda x, n, m: x @ array(m, 12),
    lambda x, n, m: smelt.where(x > 0, x, 0.25 * x),
    lambda x, n, m: x.reshape(-1)[: n * m].reshape(n, -1),
    lambda x, n, m: smelt.pad(x, ((0, 1), (0, 0))),
    lambda x, n, m: x / (1 + smelt.abs(x)).sum(axis=1, keepdims=True),
]


def random_program(rng: np.random.Generator) -> Callable[[int, int], smelt.array]:
    """A function of two sizes: ten changes, chosen once."""
    choices = rng.integers(0, len(CHANGES), 10)

    def run(n: int, m: int) -> smelt.array:
        x = array(n, m)
        for c in choices:
            x = CHANGES[c](x, *x.shape)
        return x

    return run


@pytest.mark.thinned(2)
@pytest.mark.parametrize("seed", range(40))
def test_random_programs_with_changing_sizes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    program = random_program(rng)
    sizes = [tuple(rng.choice([1, 2, 3, 9, 9, *range(10, 30)], 2)) for _ in range(12)]
    sizes += [(12, 12), (13, 13), (14, 14), (15, 16), (17, 18), (9, 30), (1, 20), (1, 21), (1, 22), (1, 23)]
    found = [outcome(program, tuple(map(int, s))) for s in sizes]
    for i, s in enumerate(sizes):
        forget()
        assert found[i] == outcome(program, tuple(map(int, s))), s


def test_loops_are_parts_of_recipes() -> None:
    """A function with a loop is traced once for its types, whatever is made of it: sizes, transformations, traces."""
    traced = []

    @remembered
    def powers(x: smelt.array, y: smelt.array) -> smelt.array:
        traced.append(x.shape)
        step = lambda pair: (pair[0] * y, pair[1] + 1)  # noqa: E731
        return smelt.while_loop(lambda pair: pair[1] < 3, step, (x, smelt.array(0)))[0]

    for _ in range(3):
        for n in (2, 3, 5, 7, 11, 13, 17):
            x, y = smelt.arange(n, dtype=smelt.float32), smelt.full((n,), 2.0)
            np.testing.assert_array_equal(np.asarray(powers(x, y)), np.arange(n) * 8)
            np.testing.assert_array_equal(np.asarray(smelt.compile(powers)(x, y)), np.arange(n) * 8)
    count = len(traced)
    x, y = smelt.array([1.0, 2.0]), smelt.array([3.0, 4.0])
    for _ in range(3):
        np.testing.assert_array_equal(np.asarray(powers(x, y)), [27, 128])
        np.testing.assert_array_equal(np.asarray(powers(powers(y, x), y)), [81, 2048])
        _, slope = smelt.jvp(lambda y: powers(x, y), [y], [smelt.ones_like(y)])
        np.testing.assert_array_equal(np.asarray(slope[0]), [27, 96])
    assert len(traced) <= count + 2  # inside of traces once more
    both = smelt.vmap(powers)(smelt.stack([x, y]), smelt.stack([y, x]))
    np.testing.assert_array_equal(np.asarray(both), [[27, 128], [3, 32]])

"""The buffer pool, the executable cache, threads."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest

import smelt
from smelt.backends import counting
from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.settings import override
from smelt.runtime import Buffer, LruCache, pool

pytestmark = pytest.mark.usefixtures("small_heap")

LARGE = Aval((1 << 18,), dtypes.float32)


def test_blocks_are_reused():
    pool.clear()
    first = Buffer.empty(LARGE)
    address = first.address
    assert address % 64 == 0
    del first
    assert Buffer.empty(LARGE).address == address


def test_blocks_that_are_still_viewed_are_not_reused():
    pool.clear()
    first = Buffer.empty(LARGE)
    first.array[:] = 7
    view, address = first.array, first.address
    del first
    second = Buffer.empty(LARGE)
    assert second.address != address
    second.array[:] = 0
    assert (view == 7).all()


def test_numpy_views_keep_their_values():
    x = smelt.array(np.arange(1 << 18, dtype=np.float32)) * 2
    host = np.asarray(x)
    del x
    other = smelt.array(np.zeros(1 << 18, np.float32)) + 1
    smelt.eval(other)
    assert host[12345] == 2 * 12345


def test_views_of_its_own_are_read_only():
    x = smelt.array([1.0, 2.0])
    with pytest.raises(ValueError):
        x._host()[0] = 5
    assert memoryview(x).tolist() == [1.0, 2.0]


def test_pool_off():
    with override(pool_bytes=0):
        pool.clear()
        Buffer.empty(LARGE)
        assert pool.cached_bytes == 0


def test_out_of_memory_is_an_error_and_leaves_everything_usable():
    huge = smelt.zeros((1 << 40,), dtype=smelt.float32)
    with pytest.raises(MemoryError):
        smelt.eval(huge + 1)
    assert (smelt.array([1.0]) + 1).item() == 2.0


def test_cache_is_bounded():
    cache = LruCache(weigh=lambda value: 1)
    with override(cache_size=3):
        for i in range(10):
            cache.get_or_make(i, lambda i=i: i + 1)
        assert len(cache) == 3
        assert cache.get(9) == 10
        assert cache.get(0) is None


def test_threads_evaluate_independently():
    errors = []

    def work(seed):
        try:
            rng = np.random.default_rng(seed)
            for _ in range(20):
                a = rng.standard_normal((17, 33)).astype(np.float32)
                x = smelt.array(a)
                y = smelt.compile(lambda v: smelt.sum(v * 2 + 1, axis=0))(x)
                np.testing.assert_allclose(np.array(y), (a * 2 + 1).sum(0), rtol=1e-4, atol=1e-4)
                g = smelt.grad(lambda v: (v * v).sum())(x)
                np.testing.assert_allclose(np.array(g), 2 * a, rtol=1e-5)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors


def test_one_compiled_function_from_many_threads():
    f = smelt.compile(lambda x, y: smelt.exp(x) @ y)
    a = smelt.array(np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32))
    failures = []

    def work():
        for _ in range(50):
            if not np.array_equal(np.array(f(a, a)), want):
                failures.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    with override(tier="program"):  # else the first calls may run op by op, with other bits
        want = np.array(f(a, a))
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert not failures


def test_memory_limit():
    before = smelt.get_active_memory()
    previous = smelt.set_memory_limit(before + (4 << 20))
    try:
        kept = smelt.zeros((1 << 18,)) + 1
        smelt.eval(kept)
        with pytest.raises(MemoryError, match="set_memory_limit"):
            smelt.eval(smelt.zeros((1 << 24,)) + 1)
        assert kept[5].item() == 1.0
    finally:
        smelt.set_memory_limit(previous)


_ROWS = np.random.default_rng(0).random((1 << 9, 1 << 10), np.float32)
_BEYOND = {
    "map": lambda x: smelt.exp(x * 2) + 1,
    "constant": lambda x: smelt.ones(x.shape),
    "rows": lambda x: smelt.softmax(x + 1),
    "scan": lambda x: smelt.cumsum(x, axis=0),
    "concatenate": lambda x: smelt.concatenate([x, x]),
    "tile": lambda x: smelt.tile(x, 3),
    "convert": lambda x: x.astype(smelt.int32),
    "transpose": lambda x: smelt.contiguous(x.T),
    "broadcast": lambda x: smelt.broadcast_to(x[0], x.shape),
    "sort": lambda x: smelt.sort(x, axis=0),
    "gradient": smelt.grad(lambda x: (x * x).sum()),
    "compiled": smelt.compile(lambda x: x - 1),
    "random": lambda x: smelt.random.normal(x.shape),
}


@pytest.mark.parametrize("name", _BEYOND)
@pytest.mark.parametrize("tier", ["auto", "strided", "program"])
def test_the_limit_holds_however_a_result_is_computed(name, tier):
    x = smelt.array(_ROWS)
    gc.collect()  # what the tracebacks of other tests hold
    with override(tier=tier):
        previous = smelt.set_memory_limit(smelt.get_active_memory() + (1 << 20))
        try:
            for _ in range(2):
                with pytest.raises(MemoryError, match="set_memory_limit"):
                    smelt.eval(_BEYOND[name](x))
            smelt.set_memory_limit(smelt.get_active_memory() + (9 << 20))
            smelt.eval(_BEYOND[name](x))
            smelt.set_memory_limit(smelt.get_active_memory() + (1 << 20))
            views = [x.reshape(-1), x[:100], x]
            smelt.eval(views, (x * 2).sum())  # no memory of their own, or little
            assert views[0][5].item() == _ROWS[0, 5]
        finally:
            smelt.set_memory_limit(previous)


def test_the_limit_holds_for_other_sizes_of_a_compiled_function():
    f = smelt.compile(lambda x: smelt.sin(x) * 2 + 1)
    with override(tier="auto"):
        f(smelt.ones(10))
        gc.collect()
        previous = smelt.set_memory_limit(smelt.get_active_memory() + (1 << 20))
        try:
            for n in range(4):
                assert f(smelt.ones(1000 + n)).size == 1000 + n
                with pytest.raises(MemoryError, match="set_memory_limit"):
                    f(smelt.array(_ROWS[:300]).reshape(-1)[: 250_000 + n])
        finally:
            smelt.set_memory_limit(previous)


_two = smelt.compile(lambda x: (x + 1, x * 2))


@pytest.mark.parametrize(
    "make",
    [
        lambda i: smelt.array([float(i)] * 256),
        lambda i: smelt.arange(256) + i,
        lambda i: _two(smelt.arange(128) + i),
    ],
    ids=["host", "op", "program"],
)
def test_small_arrays_count_towards_the_limit(make):
    kept = []
    previous = smelt.set_memory_limit(smelt.get_active_memory() + (1 << 20))
    try:
        for i in range(200):  # those that die make room
            smelt.eval(x := make(i))
        with pytest.raises(MemoryError, match="set_memory_limit"):
            for i in range(10_000):
                smelt.eval(x := make(i))
                kept.append(x)
        assert 500 < len(kept) <= 1100
        with pytest.raises(MemoryError, match="set_memory_limit"):
            smelt.array(np.zeros(1 << 17, np.float32))
        kept.clear()
        del x
        smelt.array(np.zeros(1 << 17, np.float32))
    finally:
        smelt.set_memory_limit(previous)


def test_a_limit_counts_what_is_alive():
    previous = smelt.set_memory_limit(smelt.get_active_memory() + (1 << 20))
    try:
        x = smelt.zeros(1000)
        for _ in range(1000):
            x = x + 1
            smelt.eval(x)
        assert x[0].item() == 1000
    finally:
        smelt.set_memory_limit(previous)


def test_what_counts_is_found_in_every_way_that_makes_buffers():
    before = smelt.get_active_memory()
    made = [Buffer.empty(Aval((10,), dtypes.float32)), Buffer.of(np.zeros(10, "f"), Aval((10,), dtypes.float32))]
    made += Buffer.empties(Buffer.blanks([Aval((10,), dtypes.float32)]))
    x = smelt.zeros(10) + 1
    smelt.eval(x)
    assert smelt.get_active_memory() - before >= 160
    assert all(any(buffer is y for y in counting.instances()) for buffer in made)
    shared = smelt.get_active_memory()
    y = x.reshape(2, 5)
    smelt.eval(y)
    assert smelt.get_active_memory() == shared
    del made, x, y
    assert smelt.get_active_memory() <= before
    unfinished = Buffer.__new__(Buffer)  # as another thread may leave it for a moment
    assert smelt.get_active_memory() <= before
    del unfinished


def test_instances_that_die_while_they_are_looked_for_are_passed_over():
    class Kept(counting.Counted):
        __slots__ = ("__weakref__", "held")

    class Asks:
        def __del__(self):
            found.append([x for x in counting.instances() if isinstance(x, Kept)])

    found: list[list[Kept]] = []
    a, b = Kept(), Kept()
    a.held = Asks()
    del a
    assert found == [[b]]
    counting.forget(b)
    counting.forget(b)
    if counting.Counted is not counting._Counted:
        assert not any(isinstance(x, Kept) for x in counting.instances())
        with pytest.raises(TypeError, match="needs a Counted"):
            counting.forget(1)


def test_counting_does_not_go_through_all_objects(monkeypatch):
    if counting.Counted is counting._Counted:
        pytest.skip("without the core in C there is no other way")
    monkeypatch.setattr("gc.get_objects", None)
    assert smelt.get_peak_memory() >= smelt.get_active_memory()
    smelt.set_memory_limit(smelt.set_memory_limit(1 << 40))


def test_streams_choose_the_device():
    with smelt.stream(smelt.new_stream("reference")):
        assert smelt.default_device() == smelt.reference
    assert smelt.default_device() == smelt.cpu
    with pytest.raises(RuntimeError, match="cpux"):
        smelt.stream("cpux")

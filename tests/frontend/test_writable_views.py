"""``np.asarray(x)``, ``memoryview(x)`` and DLPack are views that x sees the writes of: the life of such a handle."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.backends import buffer
from smelt.ir.errors import DonatedError

pytestmark = pytest.mark.usefixtures("small_heap")

SIZES = [3, buffer.SMALL // 4 + 3]  # memory of its own, a block of the pool


def numbers(size: int) -> smelt.array:
    return smelt.array(np.arange(size, dtype=np.float32) + 1)


def address(view: np.ndarray) -> int:
    return view.__array_interface__["data"][0]


@pytest.mark.parametrize("size", SIZES)
def test_memory_that_nothing_else_has_is_not_copied(size: int) -> None:
    x = numbers(size)
    where = x._buffer.address
    view = np.asarray(x)
    if size > 3:  # copies of small arrays cost less than to find out
        assert address(view) == where
    where = address(view)
    assert address(np.asarray(x)) == where == address(np.array(x, copy=False))
    view[0] = 9
    del view
    assert x[0].item() == 9
    assert x._buffer.address == where, "the memory is the array's again"


@pytest.mark.parametrize("share", [smelt.array, lambda x: x.reshape(-1, 1), lambda x: x + 1, lambda x: x._host()])
@pytest.mark.parametrize("size", SIZES)
def test_memory_that_others_have_is_copied(size: int, share: Callable[[Any], Any]) -> None:
    x = numbers(size)
    other = share(x)
    expected = np.array(share(numbers(size)))
    np.asarray(x)[...] = 0
    assert not np.any(np.array(x))
    np.testing.assert_array_equal(np.array(other), expected)


@pytest.mark.parametrize("size", SIZES)
def test_each_use_sees_what_was_written_before_it(size: int) -> None:
    x = numbers(size)
    view = np.asarray(x)
    seen = []
    for value in range(5):
        view[1] = value
        seen.append(x * 2)  # what is recorded keeps the values of that moment, whenever it is evaluated
        assert type(x) is not smelt.array and isinstance(x, smelt.array)
    assert [y[1].item() for y in seen] == [0, 2, 4, 6, 8]
    again = np.asarray(x)
    again[1] = 7
    assert view[1] == 7 and x[1].item() == 7


def test_views_of_views_count() -> None:
    x = numbers(4)
    view: Any = memoryview(np.asarray(x)[1:].reshape(3, 1)[::2])
    gc.collect()
    view[0, 0] = 9.0
    assert x.tolist() == [1, 9, 3, 4]
    assert type(x) is not smelt.array
    view.release()
    del view
    gc.collect()
    assert x.tolist() == [1, 9, 3, 4]
    assert type(x) is smelt.array


def test_unchanged_arrays_keep_their_node() -> None:
    x = numbers(3)
    same = smelt.array(x)
    view = np.asarray(x)
    assert x._ref[0] is same._ref[0] is x._ref[0]
    view[0] = 1  # what it was
    assert x._ref[0] is same._ref[0]
    view[0] = 2
    changed = x._ref[0]
    assert changed is not same._ref[0] and x._ref[0] is changed
    del view
    assert x._ref[0] is changed


def test_updates_in_place_part_from_the_views() -> None:
    for update in (lambda x: x.__setitem__(0, 5), lambda x: x.__iadd__(4)):
        x = numbers(2)
        view = np.asarray(x)
        update(x)
        view[1] = 77
        assert x[0].item() == 5 and x[1].item() != 77 and type(x) is smelt.array
        assert view.tolist() == [1, 77]


def test_the_memory_outlives_the_array() -> None:
    for size in SIZES:
        x = numbers(size)
        view = np.asarray(x)
        del x
        gc.collect()
        others = [smelt.zeros(size) + 0 for _ in range(4)]
        smelt.eval(others)
        assert view[1] == 2 and view[-1] == size


def test_handles_that_are_viewed_work_everywhere() -> None:
    x = numbers(3)
    view = np.asarray(x)
    view[0] = 5
    wanted = [5, 2, 3]
    compiled = smelt.compile(lambda x, y: (x + y, x))
    for _ in range(2):
        y, z = compiled(x, x)
        assert y.tolist() == [10, 4, 6] and z.tolist() == wanted
    assert compiled(x, numbers(3))[0].tolist() == [6, 4, 6]
    assert smelt.vmap(lambda v: v * 2)(x).tolist() == [10, 4, 6]
    assert smelt.grad(lambda v: (v * v).sum())(x).tolist() == [10, 4, 6]
    assert smelt.scan(lambda c, v: (c + v, c), smelt.array(0.0), x)[0].item() == 10
    assert smelt.cond(True, lambda v: v, lambda v: -v, x).tolist() == wanted
    assert smelt.utils.tree_map(lambda v: v + 1, {"x": [x]})["x"][0].tolist() == [6, 3, 4]
    assert pickle.loads(pickle.dumps(x)).tolist() == wanted == copy.deepcopy(x).tolist()
    assert (1 - x).tolist() == [-4, -1, -2] and (x @ x).item() == 38 and [v.item() for v in x] == wanted
    assert {x: 1}[x] == 1 and repr(x) == repr(smelt.array([5.0, 2.0, 3.0])) and x.shape == (3,)
    taken = smelt.compile(lambda v: v + 1, donate=0)
    assert taken(x).tolist() == [6, 3, 4]
    with pytest.raises(DonatedError):
        smelt.eval(x + 1)
    view[0] = 8
    assert view.tolist() == [8, 2, 3]


def test_compiled_functions_with_state_see_writes() -> None:
    held = {"x": numbers(3)}
    f = smelt.compile(lambda: held["x"].sum(), inputs=held)
    view = np.asarray(held["x"])
    assert f().item() == 6
    view[0] = 11
    assert f().item() == 16 and np.shares_memory(np.asarray(held["x"]), view)


def test_derivatives_do_not_see_writes() -> None:
    def f(x: smelt.array) -> smelt.array:
        view = np.array(x, copy=False)
        view[...] *= view
        return x.sum()

    x = smelt.array([3.0])
    value, slope = smelt.value_and_grad(f)(x)
    assert (value.item(), slope.item(), x.item()) == (9, 1, 3)
    values, tangents = smelt.jvp(f, [x], [smelt.array([2.0])])
    assert (values[0].item(), tangents[0].item()) == (9, 2)

    def g(x: smelt.array) -> smelt.array:
        y = x * 2  # of what x was
        np.asarray(x)[:3] = [np.inf, -0.0, 7]
        return (y * x).sum()

    def h(x: smelt.array) -> smelt.array:
        np.asarray(x)[...] = -0.0
        return smelt.divide(1, x)

    x = smelt.array([1.0, 4.0, 5.0, 6.0])
    assert smelt.grad(g)(x).tolist() == [np.inf, 2 * -0.0 + 8, 2 * 7 + 10, 2 * 6 + 12]
    assert smelt.vjp(h, [x], [x])[0][0].tolist() == [-np.inf] * 4

    def outside(x: smelt.array) -> smelt.array:
        np.asarray(held)[0] = 10
        return (held * x).sum()

    held = smelt.array([1.0, 2.0])
    assert smelt.grad(outside)(smelt.array([3.0, 4.0])).tolist() == [10, 2]


def test_integers_have_no_derivative() -> None:
    def f(x: smelt.array) -> smelt.array:
        n = (x > 1).astype(smelt.int32)
        np.asarray(n)[0] = 5
        return (n * x).sum()

    assert smelt.grad(f)(smelt.array([1.0, 2.0])).tolist() == [5, 1]


def test_infinite_and_undefined_elements_are_replaced() -> None:
    def f(x: smelt.array) -> smelt.array:
        y = smelt.log(x)
        np.asarray(y)[...] = 1
        return y.sum()

    value, _ = smelt.value_and_grad(f)(smelt.array([0.0, -1.0, 1.0]))
    assert value.item() == 3


def test_threads() -> None:
    x = numbers(1000)
    failures: list[Any] = []

    def work() -> None:
        for _ in range(200):
            view = np.asarray(x)
            if view[5] != 6 or (x + 1)[5].item() != 7:
                failures.append(view[5])
            del view

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_arrays_without_elements() -> None:
    for shape in ((0,), (2, 0)):
        view = np.asarray(smelt.zeros(shape))
        assert view.shape == shape and view.flags.writeable

"""``x[...] = v`` of large arrays: written where they lie if nobody else can see that, and else in a copy."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.functions import updating
from smelt.ir.errors import ShapeError
from smelt.ir.settings import override
from smelt.lazy import exports

SHAPE = (64, 48, 40)
DTYPES = ("float32", "bfloat16", "float64", "int8", "bool_", "complex64")
INDICES: dict[str, Any] = {
    "row": 5,
    "last": np.int64(-1),
    "rows": slice(3, 9),
    "every third": slice(1, None, 3),
    "backwards": slice(20, 4, -2),
    "columns": (slice(None), slice(7, 8)),
    "inner": (Ellipsis, slice(3, 30)),
    "window": (slice(2, 5), slice(6, 40, 4), slice(None, None, -3)),
    "new axis": (3, None, slice(2, 4)),
    "element": (1, 2, 3),
    "places": ([5, 9, 5],),
    "places by NumPy": np.array([[3, -1], [0, 3]]),
    "places of an array": lambda: smelt.array([7, 2, 60]),
    "places and a slice": lambda: (smelt.array([1, 2]), slice(3, 9, 2), smelt.array([[0], [39]])),
    "places of the last axis": lambda: (slice(4, 6), Ellipsis, smelt.array([1, 8], smelt.uint8)),
}
VALUES: dict[str, Callable[[Any, Any], Any]] = {
    "number": lambda x, part: 1,
    "NumPy": lambda x, part: np.ones(part.shape, np.int8),
    "evaluated": lambda x, part: _evaluated(smelt.ones(part.shape)),
    "broadcast": lambda x, part: _evaluated(smelt.ones((1,) * (part.ndim + 1))),
    "lazy": lambda x, part: smelt.ones(part.shape) * 1,
    "of itself": lambda x, part: x[5, 1, 0] * 0 + 1,
}


def _evaluated(x: Any) -> Any:
    smelt.eval(x)
    return x


def large(dtype: str = "float32", shape: tuple[int, ...] = SHAPE) -> Any:
    """An array in the pool's memory."""
    found = smelt.array(np.random.default_rng(0).integers(0, 5, shape)).astype(getattr(smelt, dtype))
    smelt.eval(found)
    found[0, 0, 0] = found[0, 0, 0].item()
    return found


def both_indices(name: str) -> tuple[Any, Any]:
    """An index with arrays of smelt, which have values, and one with NumPy's."""
    made = INDICES[name]() if callable(INDICES[name]) else INDICES[name]
    entries = made if type(made) is tuple else (made,)
    smelt.eval(entries)
    return made, tuple([np.array(e) if isinstance(e, smelt.array) else e for e in entries])


def place(x: Any) -> int:
    node, i = x._ref
    return int(node.values[i].address) if node.values is not None else 0


@pytest.fixture(autouse=True)
def large_arrays_are_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(updating, "WORTH", 1)


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("index", INDICES)
def test_values(index: str, value: str) -> None:
    for dtype in DTYPES:
        x = large(dtype)
        want = np.array(x)
        before = place(x)
        entries, plain = both_indices(index)
        x[entries] = VALUES[value](x, want[plain])
        want[plain] = 1
        if value not in ("lazy", "of itself") and smelt.default_device() == smelt.cpu:
            assert place(x) == before
        np.testing.assert_array_equal(np.array(x), want)


@pytest.mark.parametrize("value", ["lazy", "of itself"])
def test_a_large_array_has_its_value_at_once(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(updating, "LARGE", 1)
    x = large()
    want, before = np.array(x), place(x)
    x[5:9] = VALUES[value](x, want[5:9])
    want[5:9] = 1
    if smelt.default_device() == smelt.cpu:
        assert place(x) == before
    np.testing.assert_array_equal(np.array(x), want)


def _compiled(x: Any) -> Callable[[], Any]:
    captured = smelt.compile(lambda y: y + x)
    captured(smelt.zeros(SHAPE))
    return lambda: captured(smelt.zeros(SHAPE))


#: What else sees an array: a function of it gives a function that shows what is seen.
OTHERS: dict[str, Callable[[Any], Callable[[], Any]]] = {
    "a copy": lambda x: _shows(smelt.array(x)),
    "copy.copy": lambda x: _shows(copy.copy(x)),
    "a view": lambda x: _shows(_evaluated(x.reshape(-1))),
    "a part": lambda x: _shows(_evaluated(x[3:60])),
    "an array of it": lambda x: _shows(x.flatten()),
    "what is yet to run": lambda x: _shows(x * 2),
    "a transpose": lambda x: _shows(_evaluated(x.T)),
    "a compiled function": _compiled,
    "a transformed function": lambda x: _shows(smelt.grad(lambda y: (y * x).sum())(smelt.ones(SHAPE))),
    "stop_gradient": lambda x: _shows(_evaluated(smelt.stop_gradient(x))),
}


def _shows(x: Any) -> Callable[[], Any]:
    return lambda: x


@pytest.mark.parametrize("other", OTHERS)
def test_nothing_else_sees_it(other: str) -> None:
    x = large()
    want = np.array(x)
    show = OTHERS[other](x)
    expected = np.array(OTHERS[other](smelt.array(want.copy()))())
    x[7] = 9
    np.testing.assert_array_equal(np.array(show()), expected)
    want[7] = 9
    np.testing.assert_array_equal(np.array(x), want)


def test_views_of_others_see_it() -> None:
    """As in MLX: NumPy's view is of the memory that the array had; an update makes another one of the handle."""
    x = large()
    view = np.asarray(x)
    before = view.copy()
    x[3] = 77
    np.testing.assert_array_equal(view, before)
    assert (np.array(x)[3] == 77).all()


def test_memory_of_others_is_not_written() -> None:
    given = np.zeros(SHAPE, np.float32)
    x = smelt.array(given)
    smelt.eval(x)
    x[3] = 1
    assert not given.any()
    constant = np.ones(SHAPE, np.float32)
    constant.flags.writeable = False
    x = smelt.asarray(constant)
    smelt.eval(x)
    x[3] = 5
    assert (constant == 1).all() and (np.array(x)[3] == 5).all()


@pytest.mark.parametrize("places", [3, np.array([3])])
def test_traces_do_not_write(places: Any) -> None:
    x = large()
    want = np.array(x)

    def written(y: Any) -> Any:
        y = smelt.array(y)
        y[places] = 5
        return y.sum()

    for run in (smelt.compile(written), smelt.grad(written), smelt.vmap(written), smelt.checkpoint(written)):
        smelt.eval(run(x))
        np.testing.assert_array_equal(np.array(x), want)
    gradient = np.array(smelt.grad(written)(x))
    assert (gradient[3] == 0).all() and (gradient[4] == 1).all()


def test_a_value_that_does_not_fit_writes_nothing() -> None:
    x = large()
    want = np.array(x)
    with pytest.raises(ShapeError, match="does not fit"):
        x[3:5] = smelt.ones((3, 3))
    np.testing.assert_array_equal(np.array(x), want)


def test_a_loop_of_writes_copies_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    if smelt.default_device() != smelt.cpu:
        pytest.skip("arrays of other devices are copied")
    alone: list[bool] = []
    write = exports.write_in_place
    monkeypatch.setattr(updating, "write_in_place", lambda *args: alone.append(write(*args)) or alone[-1])
    x = smelt.zeros(SHAPE)
    smelt.eval(x)
    for i in range(SHAPE[0]):
        x[i] = i
        x[i, 0] = np.full(SHAPE[2], -i, np.float32)
    assert alone == [True] * (2 * SHAPE[0])
    want = np.broadcast_to(np.arange(SHAPE[0], dtype=np.float32)[:, None, None], SHAPE).copy()
    want[:, 0] *= -1
    np.testing.assert_array_equal(np.array(x), want)


def test_threads_that_read_meanwhile() -> None:
    """A reader sees the array before or after a write, and never nothing."""
    x = smelt.zeros((8, 4096))
    smelt.eval(x)
    failures: list[BaseException] = []
    stop = threading.Event()

    def read() -> None:
        try:
            while not stop.is_set():
                assert smelt.max(x).item() >= 0
        except BaseException as error:
            failures.append(error)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for i in range(200):
        x[i % 8] = float(i)
    stop.set()
    for reader in readers:
        reader.join()
    assert not failures


MODES: dict[str, Callable[[Any, Any], None]] = {"add": np.add.at, "multiply": np.multiply.at, "maximum": np.maximum.at}


def _random_index(rng: np.random.Generator) -> Any:
    start = int(rng.integers(0, SHAPE[0] - 1))
    return [
        start, slice(start, start + int(rng.integers(1, 5))), (slice(None), slice(7, 9)),
        (Ellipsis, slice(None, None, -2)), rng.integers(-SHAPE[0], SHAPE[0], 3),
        (rng.integers(0, 9, (2, 1)), slice(1, 4), rng.integers(0, 9, 2)),
    ][rng.integers(0, 6)]  # fmt: skip


@pytest.mark.parametrize("tier", ["ops", "program", "auto"])
@pytest.mark.parametrize("seed", range(12))
def test_random_updates(seed: int, tier: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chains of updates, now and then evaluated, of arrays that others keep, view, capture or have yet to use."""
    monkeypatch.setattr(updating, "NOTED", 1)
    monkeypatch.setattr(updating, "LARGE", 1 if seed % 2 else 1 << 40)
    rng = np.random.default_rng(seed)
    x = large("float32")
    want = np.array(x)
    seen: list[tuple[Callable[[], Any], np.ndarray]] = []
    with override(tier=tier):
        for _ in range(14):
            index = _random_index(rng)
            what = rng.choice(["set", "lazy", "itself", *MODES])
            shape = want[index].shape
            value: Any = rng.integers(-3, 4, shape).astype(np.float32)
            entries = index if type(index) is tuple else (index,)
            known = tuple([smelt.array(e) if isinstance(e, np.ndarray) else e for e in entries])
            if what in MODES:
                x = getattr(x.at[known], what)(smelt.array(value))
                MODES[what](want, index, value)
            else:
                made = {"lazy": smelt.array(value) * 2, "itself": x[0, 0, 0] + value, "set": value}
                written = {"lazy": value * 2, "itself": want[0, 0, 0] + value, "set": value}
                x[known] = made.pop(what)
                made.clear()
                want[index] = written[what]
            if rng.random() < 0.3:
                name = rng.choice(sorted(set(OTHERS) - {"a compiled function"}))
                seen.append((OTHERS[name](x), np.array(OTHERS[name](smelt.array(want.copy()))())))
            if rng.random() < 0.3:
                smelt.eval(x)
                np.testing.assert_array_equal(np.array(x), want)
                x = smelt.array(x) if rng.random() < 0.3 else x
        np.testing.assert_array_equal(np.array(x), want)
        for show, expected in seen:
            np.testing.assert_array_equal(np.array(show()), expected)


def test_updates_that_run_later_copy_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    if smelt.default_device() != smelt.cpu:
        pytest.skip("arrays of other devices are copied")
    monkeypatch.setattr(updating, "NOTED", 1)
    x = large()
    rows, want, before = smelt.array([3, 5, 3]), np.array(x), place(x)
    smelt.eval(rows)
    for i in range(6):
        x = x.at[rows].add(i)
        np.add.at(want, [3, 5, 3], np.float32(i))
        x[i : i + 1] = smelt.ones(SHAPE[1:]) * i
        want[i] = i
    smelt.eval(x)
    assert place(x) == before
    np.testing.assert_array_equal(np.array(x), want)


def test_transformations_of_what_is_updated_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """A note of an update is a value like any other to what comes after it, and none inside of transformations."""
    monkeypatch.setattr(updating, "NOTED", 1)
    x, rows = large(), smelt.array([1, 4])

    def loss(y: Any) -> Any:
        return (y.at[rows].multiply(3.0) ** 2).sum()

    want = np.array(x)
    want[[1, 4]] *= 2
    noted = x.at[rows].multiply(2.0)
    gradient = np.array(smelt.grad(loss)(noted))
    expected = 2 * want
    expected[[1, 4]] *= 9
    np.testing.assert_allclose(gradient, expected, rtol=1e-6)
    several = smelt.vmap(lambda i: noted.at[i].add(1.0))(smelt.array([0, 1]))
    assert np.array(several)[1, 1, 0, 0] == want[1, 0, 0] + 1
    np.testing.assert_array_equal(np.array(smelt.compile(lambda y: y.at[rows].add(1.0))(noted))[1], want[1] + 1)
    np.testing.assert_array_equal(np.array(noted), want)


def test_checked_updates_name_an_index_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(updating, "NOTED", 1)
    x = large()
    with override(check=True), pytest.raises(IndexError, match="lies outside"):
        x[smelt.array([3, 999]) + 0] = 1
        smelt.eval(x)

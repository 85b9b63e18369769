"""Reading and writing parts of arrays, against NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import smelt
import smelt.functions.methods
from smelt.ir.errors import DTypeError, IndexOutOfRangeError, IndexShapeError, ShapeError, TraceError
from smelt.ir.settings import settings as smelt_settings
from tests.frontend.checks import check_gradient, exact, same

X = np.arange(60, dtype=np.float32).reshape(3, 4, 5)


def _lazy(host):
    """An array that is not evaluated: the same values by an op."""
    return exact(host) + exact(np.zeros((), host.dtype))


BASIC = [
    0, -1, (1, 2, 3), (-1, -2, -3), slice(None), slice(1, None), slice(None, -1), slice(None, None, 2),
    slice(None, None, -1), slice(2, 0, -2), slice(5, 1), slice(0, 0), (slice(None), 1), (slice(None), slice(1, 3)),
    (..., 0), (..., slice(None, None, -2)), (0, ...), (None, 1), (slice(None), None, 2), (..., None),
    (None, ..., None), (1, None, slice(3, 0, -1), None, -1), ..., (), None, (slice(-100, 100), 0),
    (slice(1, 2), slice(0, 4, 3), slice(4, None, -3)), (0, slice(2, 2), 1), (np.int64(1), np.array(2)),
]  # fmt: skip

ADVANCED = [
    [0, 2], [[0, 1], [2, 0]], ([0, 2], [1, 3]), ([0, 2], slice(None), [1, 3]), (slice(None), [0, 3]),
    (slice(None), [0, 3], [1, 2]), (0, [1, 2]), (0, slice(None), [1, 2]), ([1], 0, [2]), (slice(None), 1, [0, 4]),
    ([0, 1], ..., [0, 4]), (..., [0, -1]), (slice(1, None), [[0], [3]], slice(None, None, 2)),
    ([[0], [1]], [[1, 2]]), (None, [0, 1]), ([0, 1], None, [0, 2]), (slice(None), None, [0, 1]),
    (slice(None, None, -1), [1, 0], slice(None, None, -2)), ([-1, -3],), np.array([2, 1], np.uint8),
    ([0, 2], slice(1, 4, 2), slice(None)), (1, [0, 0, 0], slice(4, None, -2)), ([],), (slice(0, 0), [1, 2]),
    (np.array(1), slice(None), [0, 1]), ([[0, 1]], slice(1, 3)), (slice(0, 3, 2), [1], [[2], [0]]),
]  # fmt: skip

rng = np.random.default_rng(0)
MASKS = [
    rng.random((3, 4, 5)) > 0.5, rng.random((3, 4)) > 0.5, np.array([True, False, True]), [True, False, True],
    (slice(None), np.array([True, False, True, True])), (0, rng.random((4, 5)) > 0.5),
    (..., np.array([True, False, False, True, True])), (np.array([True, False, True]), [1, 2]),
    np.zeros((3, 4), bool), True, False, (slice(None), True), (None, np.array([True, True, False])),
]  # fmt: skip


@pytest.mark.parametrize("make", [smelt.array, _lazy], ids=["value", "lazy"])
@pytest.mark.parametrize("index", BASIC + ADVANCED + MASKS, ids=repr)
def test_getitem_agrees_with_numpy(index, make):
    same(make(X)[index], X[index])


def _in_smelt(index):
    """Lists and NumPy arrays in an index as smelt arrays."""
    if isinstance(index, tuple):
        return tuple(_in_smelt(e) for e in index)
    if isinstance(index, (list, np.ndarray)):
        host = np.asarray(index)
        return exact(host.astype(np.int32) if not host.size and host.dtype != bool else host)
    return index


@pytest.mark.parametrize("index", ADVANCED + MASKS, ids=repr)
def test_getitem_with_smelt_arrays(index):
    same(_lazy(X)[_in_smelt(index)], X[index])


@pytest.mark.parametrize("index", BASIC + ADVANCED + MASKS, ids=repr)
@pytest.mark.parametrize("kind", ["scalar", "full", "broadcast"])
def test_setitem_agrees_with_numpy(index, kind):
    expected = X.copy()
    shape = X[index].shape
    value = {
        "scalar": -1.0,
        "full": -np.arange(1, np.prod(shape, dtype=int) + 1, dtype=np.float32).reshape(shape),
        "broadcast": -np.ones((1,) * min(len(shape), 1), np.float32) * 7,
    }[kind]
    expected[index] = value
    for make in (smelt.array, _lazy):
        x = make(X)
        before = exact(X)
        y = x.__copy__()
        x[index] = value if np.ndim(value) == 0 else exact(value)
        same(x, expected)
        same(y, X)
        z = before.__copy__()
        z[_in_smelt(index)] = value
        same(z, expected)
        same(before, X)


UFUNCS = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide,
    "maximum": np.maximum, "minimum": np.minimum,
}  # fmt: skip


@pytest.mark.parametrize("name", UFUNCS)
@pytest.mark.parametrize(
    "index",
    [0, slice(None, None, -2), [0, 0, 2], (slice(None), [1, 1, 3], slice(1, 4, 2)), ([0, 0], [1, 1]), MASKS[0],
     MASKS[1], (slice(None), slice(1, 3), [0, 0, 4]), ..., ([0, 0, 1], slice(None, None, -1), 2)],
    ids=repr,
)  # fmt: skip
def test_at_agrees_with_ufunc_at(name, index):
    expected = X.copy() + 1
    value = (np.arange(np.prod(expected[index].shape)).reshape(expected[index].shape) % 3 + 1).astype(np.float32)
    UFUNCS[name].at(expected, index, value)
    x = _lazy(X + 1)
    found = getattr(x.at[index], name)(exact(value))
    same(found, expected, rtol=1e-6)
    same(getattr(x.at[_in_smelt(index)], name)(value), expected, rtol=1e-6)
    same(x, X + 1)


def test_setitem_casts_the_value_to_the_arrays_dtype():
    x = smelt.array([1, 2, 3])
    x[0] = 2.9
    x[1:] = smelt.array([7.5, -7.5])
    same(x, np.array([2, 7, -7], np.int32))


def test_handles_are_values():
    x = smelt.array([1.0, 2.0])
    y, z = x, x.__copy__()
    x[0] = 5
    same(y, np.array([5, 2], np.float32))
    same(z, np.array([1, 2], np.float32))
    x += 1
    assert x is y
    same(y, np.array([6, 3], np.float32))


def test_a_part_of_an_evaluated_array_shares_its_memory():
    big = exact(np.arange(1 << 16, dtype=np.float32))
    part = big[1000:60000]
    assert np.shares_memory(part._host(), big._host())
    whole = big[0:5]._host()
    assert not np.shares_memory(whole, big._host())
    kept = part._host().copy()
    del big
    same(part, kept)


@pytest.mark.parametrize(
    "index, error, text",
    [
        (3, IndexOutOfRangeError, "index 3 is out of range for axis 0 with 3 elements"),
        ((0, -5), IndexOutOfRangeError, "index -5 is out of range for axis 1 with 4 elements"),
        ([0, 7], IndexOutOfRangeError, "index 7 is out of range for axis 0"),
        ((0, 0, 0, 0), IndexOutOfRangeError, "4 indices for an array of 3 axes"),
        ("a", TypeError, "got str"),
        (1.0, TypeError, "got float"),
        (np.array([1.0]), DTypeError, "integers or bools"),
        (([0, 1], [0, 1, 2]), IndexShapeError, r"\(2,\) and \(3,\)"),
        (np.ones(4, bool), IndexShapeError, "mask"),
        ([True, False], IndexShapeError, "mask"),
        ((slice(None), np.ones(3, bool)), IndexShapeError, "mask"),
        (np.ones((3, 3), bool), IndexShapeError, "mask"),
        (np.ones((3, 4, 5, 1), bool), IndexShapeError, "mask"),
        ((..., ...), IndexError, "one ellipsis"),
        (slice(None, None, 0), ValueError, "zero"),
        (slice(0.5, None), TypeError, "slices consist of ints"),
    ],
)
def test_wrong_indices_name_the_users_line(index, error, text):
    x = exact(X)
    if error in (IndexOutOfRangeError, IndexShapeError, IndexError):
        with pytest.raises(IndexError):  # what a program written for NumPy catches
            X[index]
        assert issubclass(error, IndexError)
    with pytest.raises(error, match=text) as info:
        x[index]
    assert "test_indexing.py" in str(info.value)
    with pytest.raises(error) as info:
        x[index] = 1.0
    assert "test_indexing.py" in str(info.value)


def test_wrong_values_name_the_users_line():
    x = exact(X)
    for index in (0, [0, 1], np.ones((3, 4), bool)):
        with pytest.raises(ShapeError, match=r"does not fit|elements where") as info:
            x[index] = exact(np.ones((7, 7), np.float32))
        assert "test_indexing.py" in str(info.value)
    with pytest.raises(ShapeError, match="12 elements where the mask"):
        x[np.ones((3, 4), bool)] = exact(np.ones((7, 5), np.float32))
    with pytest.raises(DTypeError, match="floating"):
        smelt.array([1]).at[0].divide(2)


def test_array_indices_out_of_range_that_are_computed_later_clamp_or_drop():
    x = _lazy(np.arange(4, dtype=np.float32))
    same(x[smelt.array([-6, -1, 9]) + 0], np.array([0, 3, 3], np.float32))
    x[smelt.array([-6, -1, 9]) + 0] = 7.0
    same(x, np.array([0, 1, 2, 7], np.float32))


def test_masks_inside_a_trace():
    smelt.set_default_device(smelt.reference)
    try:
        x = smelt.array([1.0, -2.0, 3.0])

        def clear(x):
            x[x < 0] = 0.0
            return x

        same(smelt.compile(clear)(x), np.array([1, 0, 3], np.float32))
        same(smelt.vmap(clear)(smelt.array([[1.0, -1.0]])), np.array([[1, 0]], np.float32))
        with pytest.raises(TraceError, match=r"smelt.where.*test_indexing.py"):
            smelt.compile(lambda x: x[x < 0])(x)
        same(smelt.compile(lambda x, i: x[i])(x, smelt.array([2, -1, 0])), np.array([3, 3, 1], np.float32))
    finally:
        smelt.set_default_device(smelt.cpu)


@pytest.mark.parametrize(
    "index",
    [1, slice(None, None, -2), (slice(None), [0, 0, 3]), ([0, 2], slice(1, 4, 2), 1), MASKS[0], ([0, 0], [1, 1])],
    ids=repr,
)
def test_gradients(index):
    x = rng.standard_normal((3, 4, 5))
    check_gradient(lambda x: x[index], x)
    value = rng.standard_normal(x[index].shape)

    def write(x, v):
        x[index] = v
        return x

    check_gradient(write, x, value)
    check_gradient(lambda x, v: x.at[index].add(v), x, value)
    if not isinstance(index, np.ndarray):
        check_gradient(lambda x, v: x.at[index].multiply(v), x, value)
        check_gradient(lambda x, v: x.at[index].maximum(v), x, value)


def test_gradient_of_a_function_that_changes_its_argument():
    def f(x):
        x[0] = x[1] * 3
        x += 1
        return x

    check_gradient(f, np.array([1.0, 2.0, 3.0]))


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("indices", [1, [0, 2], [[0, 1], [1, -1]]], ids=repr)
def test_take(axis, indices):
    same(smelt.take(exact(X), indices, axis), np.take(X, indices, axis))
    if not isinstance(indices, int):
        same(smelt.take(_lazy(X), exact(indices), axis), np.take(X, indices, axis))


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_take_and_put_along_axis(axis):
    order = np.argsort(-X, axis)
    same(smelt.take_along_axis(exact(X), exact(order), axis), np.take_along_axis(X, order, axis))
    expected = X.copy()
    first = np.take(order, [0], axis)
    np.put_along_axis(expected, first, -5.0, axis)
    same(smelt.put_along_axis(exact(X), exact(first), -5.0, axis), expected)
    values = np.random.default_rng(1).random(order.shape).astype(np.float32)
    expected = X.copy()
    np.put_along_axis(expected, order, values, axis)
    same(smelt.put_along_axis(exact(X), order, exact(values), axis), expected)


def test_take_along_axis_broadcasts_and_flattens():
    x = X[0]
    same(
        smelt.take_along_axis(exact(x), smelt.array([[1, 0]]), 1), np.take_along_axis(x, np.array([[1, 0]]), 1)
    )
    same(smelt.take_along_axis(exact(x), smelt.array([3, -1]), None), np.array([3, 19], np.float32))
    expected = x.copy()
    expected.reshape(-1)[[3, 7]] = [10, 20]
    same(smelt.put_along_axis(exact(x), smelt.array([3, 7]), smelt.array([10.0, 20.0])), expected)
    check_gradient(lambda x: smelt.take_along_axis(x, smelt.array([[1, 1, 0]]), 1), x.astype(np.float64))
    check_gradient(
        lambda x, v: smelt.put_along_axis(x, smelt.array([[1, 2]]), v, 1),
        x.astype(np.float64), np.array([[1.0, 2.0]]),
    )  # fmt: skip
    with pytest.raises(ShapeError, match=r"take_along_axis.*test_indexing.py"):
        smelt.take_along_axis(exact(x), smelt.array([1]), 1)


def test_dynamic_slices():
    x = exact(X)
    same(smelt.slice(x, smelt.array([1, -2]), (0, 2), (2, 4, 2)), X[1:3, :, 3:5])
    same(smelt.slice(x, smelt.array([9]), (1,), (3, 2, 5)), X[:, 2:4])
    expected = X.copy()
    expected[1:3, :, 3:5] = 7
    update = exact(np.full((2, 4, 2), 7.0))
    same(smelt.slice_update(x, update, smelt.array([1, 3]), (0, 2)), expected)


def test_iteration():
    rows = list(exact(X))
    assert len(rows) == 3
    same(rows[2], X[2])


@st.composite
def indices(draw):
    """A random index for X."""
    entries, lead = [], draw(st.sampled_from([(), (2,), (3, 1), (1, 2)]))
    for d in X.shape[: draw(st.integers(0, 3))]:
        kind = draw(st.sampled_from("isaan"))
        if kind == "i":
            entries.append(draw(st.integers(-d, d - 1)))
        elif kind == "a":
            size = int(np.prod(lead))
            values = draw(st.lists(st.integers(-d, d - 1), min_size=size, max_size=size))
            entries.append(np.array(values, np.int32).reshape(lead))
        else:
            step = draw(st.sampled_from([None, 1, 2, 3, -1, -2]))
            bounds = st.one_of(st.none(), st.integers(-d - 1, d + 1))
            entries.append(slice(draw(bounds), draw(bounds), step))
        if kind == "n":
            entries.append(None)
    if draw(st.booleans()):
        entries.insert(draw(st.integers(0, len(entries))), ...)
    return tuple(entries)


def _fits(index):
    try:
        return X[index] is not None
    except IndexError:
        return False


@settings(max_examples=300 if smelt_settings.small_work else 60, deadline=None)  # fewer where each is compiled
@given(indices().filter(_fits))
def test_any_index(index):
    same(_lazy(X)[_in_smelt(index)], X[index])
    same(exact(X)[index], X[index])
    expected = X.copy()
    expected[index] = -3
    x = _lazy(X)
    x[_in_smelt(index)] = -3.0
    same(x, expected)
    expected = X.copy()
    np.add.at(expected, index, 2)
    same(_lazy(X).at[index].add(2), expected)

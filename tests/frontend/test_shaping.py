"""Shapes and layouts, against NumPy."""

import numpy as np
import pytest

import smelt
import smelt.functions.methods
from smelt.functions import sorting
from smelt.ir.errors import (
    AttributeValueError,
    DTypeError,
    IndexOutOfRangeError,
    OutOfMemoryError,
    ShapeError,
    TraceError,
)
from tests.frontend.checks import check_gradient, exact, same

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
V = np.array([3.0, 1.0, 2.0], np.float32)

#: name, arguments behind the array, NumPy's function or expression.
CASES = [
    ("reshape", ((4, 6),), np.reshape), ("reshape", ((-1, 2),), np.reshape),
    ("reshape", ((2, 3, 2, -1),), np.reshape),
    ("flatten", (), np.ravel), ("flatten", (1,), lambda x, a: x.reshape(2, 12)),
    ("flatten", (0, 1), lambda x, a, b: x.reshape(6, 4)), ("flatten", (-2, -1), lambda x, a, b: x.reshape(2, 12)),
    ("unflatten", (2, (2, -1)), lambda x, a, s: x.reshape(2, 3, 2, 2)),
    ("expand_dims", (0,), np.expand_dims), ("expand_dims", (-1,), np.expand_dims),
    ("expand_dims", ((0, 2, -1),), np.expand_dims),
    ("swapaxes", (0, 2), np.swapaxes), ("swapaxes", (-1, -1), np.swapaxes),
    ("moveaxis", (0, -1), np.moveaxis), ("moveaxis", (2, 0), np.moveaxis),
    ("moveaxis", ((0, 1), (2, 0)), np.moveaxis),
    ("transpose", (), np.transpose), ("transpose", ((1, -1, 0),), np.transpose),
    ("permute_dims", ((2, 0, 1),), np.transpose),
    ("matrix_transpose", (), lambda x: np.swapaxes(x, -1, -2)),
    ("broadcast_to", ((5, 2, 3, 4),), np.broadcast_to),
    ("tile", (2,), np.tile), ("tile", ((2, 1, 3),), np.tile), ("tile", ((2, 1, 1, 2),), np.tile),
    ("tile", (0,), np.tile),
    ("repeat", (2,), np.repeat), ("repeat", (3, 1), np.repeat), ("repeat", (2, -1), np.repeat),
    ("repeat", (0, 0), np.repeat),
    ("pad", (1,), np.pad), ("pad", ((1, 2),), np.pad), ("pad", ([(0, 1), (2, 0), (0, 0)],), np.pad),
    ("pad", (2, "edge"), np.pad), ("pad", ([(0, 1), (5, 0), (3, 3)], "edge"), np.pad),
    ("pad", (1, "reflect"), np.pad), ("pad", ((5, 9), "reflect"), np.pad), ("pad", ((5, 9), "symmetric"), np.pad),
    ("roll", (1,), np.roll), ("roll", (-2, 1), np.roll), ("roll", ((1, 5), (0, 2)), np.roll),
    ("roll", (2, (0, 1)), np.roll),
    ("roll", ((1, 2), 1), lambda x, s, a: np.roll(x, 3, 1)),
    ("flip", (), np.flip), ("flip", (1,), np.flip), ("flip", ((0, -1),), np.flip),
    ("diagonal", (), np.diagonal), ("diagonal", (1, 1, 2), np.diagonal), ("diagonal", (-1, 2, 1), np.diagonal),
    ("diagonal", (9,), np.diagonal), ("trace", (), np.trace), ("trace", (1, 1, 2), np.trace),
    ("tril", (), np.tril), ("tril", (-1,), np.tril), ("triu", (1,), np.triu), ("triu", (-2,), np.triu),
    ("contiguous", (), lambda x: x), ("squeeze", (), np.squeeze),
    ("sum", (), np.sum),
]  # fmt: skip


@pytest.mark.parametrize("name, arguments, expected", CASES, ids=lambda c: repr(c) if not callable(c) else "")
def test_agrees_with_numpy(name, arguments, expected):
    function = getattr(smelt, name)
    same(function(exact(X), *arguments), expected(X, *arguments))
    check_gradient(lambda x: function(x, *arguments), X + 0.5)


def test_methods_take_several_ints():
    x = exact(X)
    assert x.reshape(4, -1).shape == x.reshape((4, -1)).shape == x.reshape([4, -1]).shape == (4, 6)
    assert x.transpose(2, 0, 1).shape == x.transpose((2, 0, 1)).shape == (4, 2, 3)
    assert x.transpose().shape == x.T.shape == x.transpose(None).shape == (4, 3, 2)
    assert x.mT.shape == (2, 4, 3)
    assert x.flatten().shape == (24,)


def test_squeeze():
    x = exact(np.ones((1, 3, 1, 2), np.float32))
    assert smelt.squeeze(x).shape == (3, 2)
    assert smelt.squeeze(x, 0).shape == (3, 1, 2)
    assert x.squeeze((0, -2)).shape == (3, 2)
    with pytest.raises(ShapeError, match=r"axis 1 has 3 elements.*test_shaping.py"):
        smelt.squeeze(x, 1)


def test_scalars():
    x = exact(2.0)
    assert x.flatten().shape == (1,) and smelt.atleast_3d(x).shape == (1, 1, 1)
    assert x.T.shape == x.squeeze().shape == ()
    assert [a.shape for a in smelt.atleast_2d(x, exact([1.0, 2.0]))] == [(1, 1), (1, 2)]
    assert smelt.atleast_3d(exact(X[0])).shape == np.atleast_3d(X[0]).shape
    assert smelt.atleast_1d(x).shape == (1,)


@pytest.mark.parametrize("axis", [0, 1, -1, None])
@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_concatenate_and_stack(axis, count):
    parts = [X + i for i in range(count)]
    xs = [exact(p) for p in parts]
    same(smelt.concatenate(xs, axis), np.concatenate(parts, axis))
    same(smelt.concat(xs, axis=axis), np.concatenate(parts, axis))
    same(smelt.stack(xs, axis or 0), np.stack(parts, axis or 0))
    check_gradient(lambda *xs: smelt.concatenate(list(xs), axis), *parts)


@pytest.mark.parametrize("count", [16, 17, 40, 300])
def test_long_lists_are_joined_in_parts(count):
    """As short ones: also lists and tuples, of arrays of several extents and dtypes, inside of transformations."""
    parts = [X[: 1 + i % 2] * i for i in range(count)]
    xs = [exact(p) for p in parts]
    for axis in (0, -3, None):
        same(smelt.concatenate(xs, axis), np.concatenate(parts, axis))
    rows = [X * i for i in range(count)]
    for axis in (0, 1, -1, 3):
        same(smelt.stack(tuple(exact(p) for p in rows), axis), np.stack(rows, axis))
    mixed = [smelt.array(X.astype([np.int8, np.float16, np.int32][i % 3])) for i in range(count)]
    same(smelt.concatenate(mixed), np.concatenate([np.array(x).astype(np.float16) for x in mixed]))
    given = exact(np.arange(count, dtype=np.float32))

    def weighed(x):
        return (smelt.stack([x[i] * i for i in range(count)]) * x).sum()

    for function in (smelt.grad(weighed), smelt.compile(smelt.grad(weighed))):
        same(function(given), 2 * np.arange(count, dtype=np.float32) ** 2)


def test_what_a_long_list_may_not_be_is_said_of_all_of_it():
    shapes = r"all axes but 0: \(2, 3, 4\), (\(2, 3, 4\), ){38}\(2, 3\); at .*test_shaping.py"
    with pytest.raises(ShapeError, match=shapes):
        smelt.concatenate([exact(X)] * 39 + [exact(X[:, :, 0])])
    with pytest.raises(ShapeError, match=r"stack: .*same shape: (\(2, 3, 4\), ){32}\(1, 3, 4\); at .*test_shaping.py"):
        smelt.stack([exact(X)] * 32 + [exact(X[:1])])
    with pytest.raises(ShapeError, match="axis 5 out of range"):
        smelt.concatenate([exact(X)] * 40, axis=5)
    with pytest.raises(smelt.SmeltError, match="stream"):
        smelt.concatenate([exact(X)] * 40, stream=3)


def test_concatenate_promotes():
    found = smelt.concatenate([exact([1, 2]), exact([0.5])])
    same(found, np.array([1, 2, 0.5], np.float32))
    with pytest.raises(ShapeError, match=r"all axes but 0: \(2, 3, 4\), \(3,\).*test_shaping.py"):
        smelt.concatenate([exact(X), exact(V)])
    with pytest.raises(ShapeError, match="same shape"):
        smelt.stack([exact(X), exact(V)])
    with pytest.raises(ShapeError, match="at least one"):
        smelt.stack([])


def test_a_list_of_arrays_is_stacked():
    x = exact([exact([1.0, 2.0]), exact([3.0, 4.0])])
    same(x, np.array([[1, 2], [3, 4]], np.float32))


@pytest.mark.parametrize(
    "where, axis", [(2, 0), (3, 1), (2, -1), ([1], 2), ([1, 3], 2), ([2, 1], 2), ([-1], 2), ([0, 9], 1)]
)
def test_split(where, axis):
    found = smelt.split(exact(X), where, axis)
    expected = np.split(X, where, axis)
    assert len(found) == len(expected)
    for f, e in zip(found, expected):
        same(f, e)


def test_split_and_unstack_errors():
    with pytest.raises(ShapeError, match=r"split: 4 elements do not divide into 3.*test_shaping.py"):
        smelt.split(exact(X), 3, 2)
    for f, e in zip(smelt.unstack(exact(X), axis=1), np.unstack(X, axis=1) if hasattr(np, "unstack") else []):
        same(f, e)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("indexing", ["xy", "ij"])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_meshgrid(sparse, indexing, count):
    vectors = [np.arange(n, dtype=np.float32) for n in (2, 3, 4)[:count]]
    found = smelt.meshgrid(*map(exact, vectors), sparse=sparse, indexing=indexing)
    for f, e in zip(found, np.meshgrid(*vectors, sparse=sparse, indexing=indexing), strict=True):
        same(f, e)


def test_a_grid_of_other_arrays_is_that_of_their_elements():
    for f, e in zip(smelt.meshgrid(exact(X), smelt.array(3.0)), np.meshgrid(X, np.float32(3)), strict=True):
        same(f, e)


def test_nothing_to_pad():
    same(smelt.pad(exact(X[0, 0, 0]), []), X[0, 0, 0])


def test_broadcasts():
    a, b = smelt.broadcast_arrays(exact(X[:, :1]), exact(V[:, None]))
    assert a.shape == b.shape == (2, 3, 4)
    assert smelt.broadcast_shapes((3, 1), (1, 4), 4) == (3, 4)
    with pytest.raises(ShapeError, match=r"broadcast_shapes.*test_shaping.py"):
        smelt.broadcast_shapes((3,), (4,))
    with pytest.raises(ShapeError, match=r"broadcast_to: cannot broadcast shape \(3,\) to \(2,\)"):
        smelt.broadcast_to(exact(V), (2,))


@pytest.mark.parametrize("k", [-5, -1, 0, 2])
def test_diag(k):
    same(smelt.diag(exact(V), k), np.diag(V, k))
    same(smelt.diag(exact(X[0]), k), np.diag(X[0], k))
    check_gradient(lambda x: smelt.diag(x, k), V)


def test_trace_dtypes():
    same(smelt.trace(exact(np.eye(3, dtype=bool))), np.array(3, np.int32))
    same(smelt.trace(exact(np.eye(3, dtype=np.int32)), dtype=smelt.float32), np.array(3, np.float32))


@pytest.mark.parametrize(
    "arguments",
    [
        ((3, 2), (1, 1)),
        ((2, 2), (0, 3), 2),
        ((4,), (-1,), 5),
        ((6,),),
        ((2, 3), None, 4),
        ((0, 3), (1, 1)),
        ((2, 2), (0, 0), 23),
    ],
    ids=repr,
)
def test_as_strided(arguments):
    shape, strides, offset = (*arguments, None, None)[:3] if len(arguments) < 3 else arguments
    flat = X.reshape(-1)
    steps = strides or tuple(int(np.prod(shape[i + 1 :])) for i in range(len(shape)))
    expected = np.lib.stride_tricks.as_strided(flat[offset or 0 :], shape, [4 * s for s in steps])
    found = smelt.as_strided(exact(X), shape, strides, offset or 0)
    same(found, expected)
    check_gradient(lambda x: smelt.as_strided(x, shape, strides, offset or 0), X)


def test_as_strided_stays_inside():
    with pytest.raises(IndexOutOfRangeError, match=r"elements 0 to 24 of 24.*test_shaping.py"):
        smelt.as_strided(exact(X), (25,), (1,))


def test_astype():
    same(exact([1.7, -1.7]).astype(smelt.int32), np.array([1, -1], np.int32))
    with pytest.raises(TypeError, match=r"astype.*test_shaping.py"):
        exact([1.0]).astype("float7")


@pytest.mark.parametrize("kind", [int, float, complex])
def test_numbers_are_made_of_one_element(kind):
    assert kind(exact([[3.0]])) == 3
    with pytest.raises(ValueError, match=rf"{kind.__name__}\(\) needs an array of one element, .*test_shaping.py"):
        kind(exact(X))


@pytest.mark.parametrize(
    "call, text",
    [
        (
            lambda x: x.reshape(5, 5),
            r"reshape: cannot fit 24 elements of shape \(2, 3, 4\) into \(5, 5\), which holds 25",
        ),
        (lambda x: x.reshape(-1, -1), "only one extent"),
        (lambda x: x.reshape(-1, 7), "cannot fit 24"),
        (lambda x: x.swapaxes(0, 3), r"swapaxes: axis 3 out of range for shape \(2, 3, 4\)"),
        (lambda x: x.transpose(0, 0, 1), "repeat an axis"),
        (lambda x: x.transpose(0, 1), "must name all 3 axes"),
        (lambda x: smelt.pad(x, [(1, 1)] * 2), "pad_width must be"),
        (lambda x: smelt.pad(x, -1), "must not be negative"),
        (lambda x: smelt.tile(x, (2, -1)), r"tile: reps must not be negative, is \(2, -1\); a f32\[2,3,4\]"),
        (lambda x: smelt.repeat(x, -2), r"repeat: repeats must not be negative, is -2; array f32\[24\]"),
        (lambda x: smelt.expand_dims(x, 7), "expand_dims: axis 7 out of range for 4 dimensions"),
        (lambda x: smelt.concatenate([x, x], 3), r"concatenate: axis 3 out of range for shape \(2, 3, 4\)"),
        (lambda x: smelt.pad(x, 1, "linear"), "mode must be"),
        (lambda x: smelt.diag(x), "needs a vector or a matrix"),
        (lambda x: smelt.tril(x[0, 0]), "at least two axes"),
        (lambda x: smelt.roll(x, (1, 2), (0, 1, 2)), "2 shifts for 3 axes"),
        (lambda x: smelt.moveaxis(x, (0, 1), 0), "2 source axes, 1 destination"),
        (lambda x: smelt.flatten(x, 2, 1), "lies behind"),
        (lambda x: smelt.broadcast_to(x, (-1, 3, 4)), "negative extent"),
    ],
)
def test_errors_name_the_users_line(call, text):
    with pytest.raises(ValueError, match=text) as info:
        call(exact(X))
    assert "test_shaping.py" in str(info.value) and "smelt." in str(info.value)


# Sorting and running sums


@pytest.mark.parametrize("axis", [0, 1, -1, None])
def test_sorting(axis):
    x = np.random.default_rng(5).integers(0, 9, (4, 5)).astype(np.float32)
    same(sorting.sort(exact(x), axis), np.sort(x, axis))
    same(sorting.argsort(exact(x), axis), np.argsort(x, axis, kind="stable"))
    same(sorting.partition(exact(x), 2, axis), np.sort(x, axis))
    same(sorting.argpartition(exact(x), -1, axis), np.argsort(x, axis, kind="stable"))
    expected = np.sort(x, axis)
    expected = np.take(expected, range(expected.shape[axis or 0] - 2, expected.shape[axis or 0]), axis or 0)
    same(sorting.topk(exact(x), 2, axis), expected)
    check_gradient(lambda x: sorting.sort(x, axis), np.random.default_rng(6).random((4, 5)))


def test_topk_errors():
    with pytest.raises(ValueError, match=r"topk: k 4 out of range for 3.*test_shaping.py"):
        sorting.topk(exact(V), 4)
    with pytest.raises(ValueError, match="kth 3 out of range"):
        sorting.partition(exact(V), 3)


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"])
@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("inclusive", [False, True])
def test_running(name, axis, reverse, inclusive):
    x = np.random.default_rng(8).standard_normal((3, 4))
    run = {
        "cumsum": np.cumsum, "cumprod": np.cumprod, "cummax": np.maximum.accumulate, "cummin": np.minimum.accumulate,
        "logcumsumexp": np.logaddexp.accumulate,
    }[name]  # fmt: skip
    flat = x.reshape(-1) if axis is None else x
    along = axis or 0
    line = np.flip(flat, along) if reverse else flat
    expected = run(line, axis=along)
    first = {"cumsum": 0, "cumprod": 1, "cummax": -np.inf, "cummin": np.inf, "logcumsumexp": -np.inf}[name]
    if not inclusive:
        start = np.full_like(np.take(expected, [0], along), first)
        expected = np.concatenate([start, np.delete(expected, -1, along)], along)
    expected = np.flip(expected, along) if reverse else expected
    found = getattr(sorting, name)(exact(x), axis, reverse=reverse, inclusive=inclusive)
    same(found, expected, rtol=1e-12)
    if inclusive:
        check_gradient(lambda x: getattr(sorting, name)(x, axis, reverse=reverse), x)


def test_running_dtypes():
    same(sorting.cumsum(exact([True, True])), np.array([1, 2], np.int32))
    same(sorting.cumsum(exact([1, 2]), dtype=smelt.float32), np.array([1, 3], np.float32))
    same(exact([1, 2]).cumsum(), np.array([1, 3], np.int32))
    same(exact(3.0).cumsum(), np.array([3], np.float32))


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("size", [0, 1, 2, 3, 7, 8, 9, 100])
def test_searchsorted(side, size):
    r = np.random.default_rng(size)
    x = np.sort(r.integers(0, 20, size)).astype(np.float32)
    v = r.integers(-2, 23, (3, 5)).astype(np.float32)
    same(sorting.searchsorted(exact(x), exact(v), side), np.searchsorted(x, v, side).astype(np.uint32))
    same(sorting.searchsorted(exact(x), 3, side=side), np.searchsorted(x, 3, side).astype(np.uint32))


@pytest.mark.parametrize("side", ["left", "right"])
def test_searchsorted_with_nan(side):
    x, v = np.array([1, 2, np.nan, np.nan], np.float32), np.array([np.nan, 2, np.inf], np.float32)
    same(sorting.searchsorted(exact(x), exact(v), side), np.searchsorted(x, v, side).astype(np.uint32))


@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_diff(n):
    same(sorting.diff(exact(X), n), np.diff(X, n))
    same(sorting.diff(exact(X), n, axis=1), np.diff(X, n, axis=1))


@pytest.mark.parametrize(
    "shape, axis", [((5,), None), ((3, 4), 0), ((3, 4), -1), ((3, 4), None), ((0,), 0), ((2, 3, 4), 1)]
)
def test_repeats_of_each_element(shape: tuple[int, ...], axis: int | None) -> None:
    rng = np.random.default_rng(1)
    x = rng.standard_normal(shape).astype(np.float32)
    extent = x.size if axis is None else x.shape[axis]
    for counts in (rng.integers(0, 4, extent), np.array([2]), np.zeros(extent, np.int64)):
        forms = (counts, smelt.array(counts), smelt.array(counts.astype(np.uint8)), counts.tolist())
        for form in forms:
            same(smelt.repeat(smelt.array(x), form, axis), np.repeat(x, counts, axis))
    known = [1] * extent
    if extent:
        same(smelt.compile(lambda v: smelt.repeat(v, known, axis))(smelt.array(x)), np.repeat(x, known, axis))


def test_errors_and_derivatives_of_repeats() -> None:
    x = smelt.array([1.0, 2.0, 3.0])
    same(smelt.grad(lambda v: smelt.repeat(v, smelt.array([0, 2, 3])).sum())(x), np.array([0, 2, 3], np.float32))
    for wrong, error in (
        ([1, 2], ShapeError), ([[1, 2, 3]], ShapeError), ([1.5, 2, 3], DTypeError), ([-1, 1, 1], AttributeValueError),
        ([2**62] * 3, OutOfMemoryError), (smelt.array([True, False, True]), DTypeError),
    ):  # fmt: skip
        with pytest.raises(error, match="repeat"):
            smelt.repeat(x, wrong)
    with pytest.raises(TraceError, match="depends on the elements"):
        smelt.compile(smelt.repeat)(x, smelt.array([1, 2, 3]))

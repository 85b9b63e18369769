"""Where an int is taken, one of NumPy's is taken, too: what `argmax` and the like of NumPy return."""

from __future__ import annotations

import numpy as np
import pytest

import smelt
from smelt import nn

X = smelt.arange(12.0).reshape(3, 4)
KEY = smelt.random.key(3)
POINTS = smelt.array([[0.0, 1.0], [1.0, 0.5], [0.3, 0.2]])


def product(a, b):
    return (a * b).sum(0)


def factors():
    return smelt.linalg.lu_factor(smelt.eye(3) + 0.5), X


#: Functions of the integer 1.
CALLS = {
    "argnums": lambda n: smelt.grad(lambda a, b: product(a, b).sum(), argnums=n)(X, X + 1),
    "argnums in a list": lambda n: smelt.grad(lambda a, b: product(a, b).sum(), argnums=[0, n])(X, X + 1),
    "argnums of value_and_grad": lambda n: smelt.value_and_grad(lambda a, b: product(a, b).sum(), argnums=n)(X, X + 1),
    "argnums of jacrev": lambda n: smelt.jacrev(product, argnums=n)(X, X + 1),
    "argnums of jacfwd": lambda n: smelt.jacfwd(product, argnums=n)(X, X + 1),
    "argnums of hessian": lambda n: smelt.hessian(lambda a, b: (a * b * b).sum(), argnums=n)(X[0], X[1]),
    "batch_size": lambda n: smelt.map(lambda row: row.sum(), X, batch_size=n),
    "bins": lambda n: smelt.histogram(X, n + 1),
    "bins of axes": lambda n: smelt.histogramdd(POINTS, n + 1),
    "bins of two axes": lambda n: smelt.histogram2d(X[0], X[1], n + 1),
    "bytes": lambda n: smelt.random.bits((3,), n, key=KEY),
    "choice": lambda n: smelt.random.choice(n + 5, (4,), key=KEY),
    "diagonal": lambda n: smelt.diagonal(X, n),
    "groups": lambda n: smelt.conv1d(smelt.ones((1, 5, 2)), smelt.ones((2, 3, 1)), groups=n + 1),
    "in_axes": lambda n: smelt.vmap(lambda x: x.sum(), in_axes=n)(X),
    "in_axes in a tuple": lambda n: smelt.vmap(lambda x, y: x.sum() + y, in_axes=(n, None))(X, X),
    "in_axes in a dict": lambda n: smelt.vmap(lambda d: d["x"] + 1, in_axes=({"x": n},))({"x": X}),
    "out_axes": lambda n: smelt.vmap(lambda x: x + 1, out_axes=n)(X),
    "length": lambda n: smelt.scan(lambda c, _: (c + 1, c), smelt.array(0), None, length=n),
    "permutation": lambda n: smelt.random.permutation(n + 6, key=KEY),
    "power": lambda n: smelt.linalg.matrix_power(X[:, :3], n + 1),
    "randint": lambda n: smelt.random.randint(n, n + 9, (5,), key=KEY),
    "samples": lambda n: smelt.random.categorical(X, num_samples=n, key=KEY),
    "shape": lambda n: smelt.random.normal((n, 2), key=KEY),
    "shape of one": lambda n: smelt.random.normal(n, key=KEY),
    "size": lambda n: smelt.unique(X, n),
    "trans": lambda n: smelt.linalg.lu_solve(*factors(), trans=n),
    "window": lambda n: nn.MaxPool1d(n + 1, n)(X[None]),
}


@pytest.mark.parametrize("kind", [np.int64, np.int32, np.uint8], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("name", CALLS)
def test_integers_of_numpy_count_as_ints(name, kind):
    def equal(want, got):
        np.testing.assert_array_equal(np.asarray(got), np.asarray(want), strict=True)

    smelt.utils.tree_map(equal, CALLS[name](1), CALLS[name](kind(1)))


SHAPES = {
    "a vector of NumPy": lambda make: make(np.array([2, 3])),
    "a list of its integers": lambda make: make([np.int64(2), np.uint8(3)]),
    "a generator": lambda make: make(n for n in (2, 3)),
}


@pytest.mark.parametrize("given", SHAPES)
@pytest.mark.parametrize("make", [smelt.zeros, smelt.random.normal, smelt.random.bits, smelt.random.gumbel])
def test_shapes_are_whatever_has_integers(make, given):
    assert SHAPES[given](make).shape == (2, 3)


def test_edges_and_ranges_may_be_arrays_of_numpy():
    x, y = smelt.array([0.0, 1.0, 1.5]), smelt.array([0.0, 2.0, 1.0])
    edges = np.array([0.0, 1.0, 2.0])
    want = np.histogram2d(np.asarray(x), np.asarray(y), edges)[0]
    np.testing.assert_array_equal(np.asarray(smelt.histogram2d(x, y, edges)[0]), want)
    np.testing.assert_array_equal(np.asarray(smelt.histogramdd(smelt.stack([x, y], 1), np.array([2, 2]))[0]), want)
    within = np.array([[0, 1], [0, 2]])
    want = np.histogram2d(np.asarray(x), np.asarray(y), 2, within)[0]
    np.testing.assert_array_equal(np.asarray(smelt.histogram2d(x, y, 2, within)[0]), want)
    want = np.histogram(np.asarray(x), 2, (0, 1))[0]
    np.testing.assert_array_equal(np.asarray(smelt.histogram(x, 2, np.array([0, 1]))[0]), want)


def test_what_is_no_int_stays_an_error():
    for wrong in (np.float64(1), np.bool_(True), "1"):
        with pytest.raises(smelt.SmeltError):
            smelt.vmap(lambda x: x, in_axes=wrong)(X)
        with pytest.raises(smelt.SmeltError):
            smelt.grad(lambda x: x.sum(), argnums=wrong)(X)
    with pytest.raises(smelt.SmeltError, match="batch_size"):
        smelt.map(lambda x: x, X, batch_size=-(10**5000))


@pytest.mark.parametrize("dtype", [smelt.float16, smelt.bfloat16, smelt.float32, smelt.float64, smelt.complex64])
def test_integers_of_any_size_meet_floats(dtype):
    x = smelt.zeros((2,), dtype)
    for number in (2**63, 2**64, -(2**64), 3**50, -(10**30)):
        want = (x + float(number)).tolist()
        assert (x + number).tolist() == smelt.full((2,), number, dtype).tolist() == want
        assert smelt.compile(lambda x, number=number: x + number)(x).tolist() == want

"""NumPy's functions and operators on smelt arrays, and what else Python asks of them."""

import copy
import operator
import pickle
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.functions import ufuncs
from smelt.ir.errors import TraceError
from tests.frontend.checks import same

HOST = np.array([[0.25, 0.5], [0.75, 0.875]], np.float32)
X = smelt.array(HOST)


def inputs(ufunc: np.ufunc) -> tuple[np.ndarray, ...]:
    """What a ufunc takes, in float32 if it takes floats."""
    kinds = ("ff", "f", "??", "ii", "i", "fi")
    kind = next((k for k in kinds if any(t.startswith(k + "->") for t in ufunc.types)), "f")
    made = {"f": HOST + (ufunc is np.arccosh), "?": HOST > 0.5, "i": np.array([[1, 2], [3, 4]], np.int32)}
    return tuple(made[k] for k in kind[: ufunc.nin]) * (ufunc.nin // len(kind[: ufunc.nin]))


@pytest.mark.parametrize("ufunc", ufuncs._FUNCTIONS, ids=lambda u: u.__name__)
def test_a_ufunc_is_the_function_of_smelt(ufunc: np.ufunc) -> None:
    given = inputs(ufunc)
    found = ufunc(*map(smelt.array, given))
    expected = ufunc(*given)
    for one, other in zip(*((v if isinstance(v, (tuple, list)) else (v,)) for v in (found, expected))):
        assert isinstance(one, smelt.array)
        np.testing.assert_allclose(np.asarray(one), other, rtol=2e-6)
    if ufunc.nin == 2:  # also where NumPy's array stands first
        mixed = ufunc(given[0], smelt.array(given[1]))
        assert isinstance(mixed[0] if isinstance(mixed, (tuple, list)) else mixed, smelt.array)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "lt", "eq"])
@pytest.mark.parametrize("left", [HOST, HOST[0, 0], np.float32(2), np.float64(0.5)], ids=["array", "0-d", "f32", "f64"])
def test_operators_with_numpy_on_the_left(name: str, left: Any) -> None:
    if name == "matmul" and not np.ndim(left):
        return
    found = getattr(operator, name)(left, X)
    assert isinstance(found, smelt.array)
    np.testing.assert_allclose(np.asarray(found), getattr(operator, name)(left, HOST), rtol=1e-6)


@pytest.mark.parametrize("kind", [np.float32, np.float16, np.int64, np.uint8, np.bool_, np.complex64])
@pytest.mark.parametrize("dtype", ["bool_", "uint8", "int32", "float16", "bfloat16", "float32", "float64", "complex64"])
def test_scalars_of_numpy_are_weak_as_those_of_python(dtype: str, kind: Any) -> None:
    """As in MLX: a model in half precision stays there. `np.float64` is a `float` anyway."""
    x, number = smelt.ones(3, getattr(smelt, dtype)), kind(2)
    plain = number.item()
    for function in (smelt.add, smelt.multiply, lambda a, b: smelt.where(smelt.array([True, False, True]), a, b)):
        for found, expected in ((function(x, number), function(x, plain)), (function(number, x), function(plain, x))):
            assert found.dtype is expected.dtype and found.tolist() == expected.tolist()
    assert (number * x).dtype is (plain * x).dtype
    if not isinstance(plain, (bool, complex)) and dtype != "complex64":
        assert smelt.clip(x, number, None).dtype is smelt.clip(x, plain, None).dtype


def test_scalars_of_numpy_lose_nothing() -> None:
    found = smelt.array([1], smelt.int32) + np.int64(2**40)
    assert found.dtype is smelt.int64 and found.tolist() == [2**40 + 1]
    assert smelt.add(np.int8(1), np.float32(2)).dtype is smelt.float32  # no array that they meet
    assert (smelt.ones(1, smelt.float16) * np.array(2, np.float32)).dtype is smelt.float32  # arrays keep their dtype


def test_derivatives_and_traces() -> None:
    same(smelt.grad(lambda x: np.sum(np.sin(x) * HOST))(X), np.cos(HOST) * HOST, rtol=1e-6)
    same(smelt.compile(lambda x: HOST @ np.exp(x))(X), HOST @ np.exp(HOST), rtol=1e-6)
    same(smelt.vmap(lambda x: np.maximum(x, HOST[0]))(X), np.maximum(HOST, HOST[0]))
    with pytest.raises(TraceError):
        smelt.compile(np.spacing)(X)


def test_methods_of_ufuncs() -> None:
    for ufunc in (np.add, np.multiply, np.maximum, np.minimum):
        for options in ({}, {"axis": 1}, {"axis": None}, {"axis": -1, "keepdims": True}):
            found = ufunc.reduce(X, **options)
            assert isinstance(found, smelt.array)
            np.testing.assert_allclose(np.asarray(found), ufunc.reduce(HOST, **options), rtol=1e-6)
    assert np.add.reduce(X, dtype=np.float64).dtype is smelt.float64
    same(np.add.accumulate(X), np.add.accumulate(HOST))
    same(np.multiply.outer(X, X[0]), np.multiply.outer(HOST, HOST[0]))
    same(np.subtract.outer(HOST[0], X), np.subtract.outer(HOST[0], HOST))


def test_what_smelt_has_no_function_for_numpy_computes() -> None:
    for found, expected in (
        (np.spacing(X), np.spacing(HOST)), (np.fmax(X, HOST), HOST), (np.subtract.reduce(X), np.subtract.reduce(HOST)),
        (np.add(X, 1, dtype=np.float64), HOST + 1.0), (np.add(X, 1, where=HOST > 9, out=HOST.copy()), HOST),
        (np.maximum.reduce(X, dtype=np.float64), HOST.max(0)),
    ):  # fmt: skip
        assert isinstance(found, np.ndarray)
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_numpys_arrays_stay_numpys_in_place() -> None:
    host = HOST.copy()
    host += X
    assert type(host) is np.ndarray
    np.testing.assert_array_equal(host, HOST * 2)


def test_nothing_is_written_to_copies() -> None:
    for write in (lambda: np.sin(X, out=X), lambda: np.add.at(X, 0, 1), lambda: np.sin(HOST, out=X)):
        with pytest.raises(TypeError):
            write()
    with pytest.raises(TypeError):
        X + object()
    with pytest.raises(TypeError):
        np.add(X, object())


def test_types_with_ufuncs_of_their_own_are_asked() -> None:
    class Unit:
        def __array_ufunc__(self, *given: Any, **options: Any) -> str:
            return "asked"

    assert np.add(X, Unit()) == "asked"
    masked = np.ma.array(HOST, mask=HOST > 0.8)
    np.testing.assert_array_equal(np.add(masked, X).mask, masked.mask)


# What else Python asks


def double(x: smelt.array) -> smelt.array:
    return x + x


compiled = smelt.compile(double)


@smelt.compile
def decorated(x: smelt.array) -> smelt.array:
    return x * x


@pytest.mark.parametrize("dtype", [*smelt.__array_namespace_info__().dtypes(), "bfloat16", "float16"])
def test_pickles(dtype: str) -> None:
    x = smelt.array(HOST * 4).astype(getattr(smelt, dtype))
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        found = pickle.loads(pickle.dumps(x, protocol))
        assert found.dtype is x.dtype and found.tolist() == x.tolist()
    assert copy.deepcopy({"x": x})["x"].tolist() == copy.copy(x).tolist() == x.tolist()
    assert pickle.loads(pickle.dumps(x.dtype)) is x.dtype


def test_importable_functions_pickle() -> None:
    same(pickle.loads(pickle.dumps(compiled))(X), HOST * 2)
    assert pickle.loads(pickle.dumps(decorated)) is decorated
    assert copy.deepcopy(compiled) is copy.copy(compiled) is compiled
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(smelt.compile(lambda x: x))


def test_iteration_and_hashing() -> None:
    rows = list(X)
    assert len(rows) == 2 and all(isinstance(r, smelt.array) for r in rows)
    same(np.stack([np.asarray(r) for r in reversed(X)]), HOST[::-1])
    assert len({X, X, smelt.array(HOST)}) == 2
    first, second = X
    same(first, HOST[0])
    same(second, HOST[1])


@pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.4.0", reason="asks dtypes of others what they are")
def test_dtypes_are_dtypes_to_numpy() -> None:
    for dtype in (smelt.float32, smelt.uint8, smelt.bool_, smelt.bfloat16, smelt.complex64):
        assert np.dtype(dtype) == dtype.numpy  # type: ignore[call-overload]
    assert np.ones(2).astype(smelt.float16).dtype == np.float16  # type: ignore[call-overload]

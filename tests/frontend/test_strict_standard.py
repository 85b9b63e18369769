"""Functions of the array API standard beside array-api-strict: generated calls, a few of each function.

What the strict library refuses is not looked at. Where dtypes differ on purpose, or scalars have no axis, it says so.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir.errors import SmeltError

strict = pytest.importorskip("array_api_strict")
pytestmark = pytest.mark.filterwarnings("ignore")

DTYPES = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64",
          "complex64", "complex128")  # fmt: skip
SHAPES = ((), (0,), (1,), (5,), (3, 4), (2, 0, 3), (2, 3, 4), (4, 4))
#: Functions that count, point or sum integers, in other dtypes than the strict library's int64: as MLX.
OTHER_INTEGERS = {
    "argmax", "argmin", "argsort", "count_nonzero", "cumulative_prod", "cumulative_sum", "linalg.matrix_rank",
    "linalg.trace", "nonzero", "prod", "searchsorted", "sum", "unique_all", "unique_counts", "unique_inverse",
}  # fmt: skip
#: Calls of each function.
CALLS = 8

Call = tuple[list[Any], dict[str, Any]]


def values(pick: random.Random, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    rng = np.random.default_rng(pick.randrange(1 << 30))
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if "int" in dtype:
        return rng.integers(0 if dtype[0] == "u" else -6, 7, shape).astype(dtype)
    x = np.asarray(rng.uniform(-2, 2, shape) + (1j * rng.uniform(-2, 2, shape) if dtype[0] == "c" else 0))
    if shape == (5,) and pick.random() < 0.3:
        x[:4] = [math.nan, math.inf, -math.inf, -0.0]
    return x.astype(dtype)


UNARY = (
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "bitwise_invert", "ceil", "conj", "cos", "cosh",
    "exp", "expm1", "floor", "imag", "isfinite", "isinf", "isnan", "log", "log10", "log1p", "log2", "logical_not",
    "negative", "positive", "real", "reciprocal", "round", "sign", "signbit", "sin", "sinh", "sqrt", "square",
    "tan", "tanh", "trunc", "nonzero", "unique_all", "unique_counts", "unique_inverse", "unique_values",
    "matrix_transpose", "zeros_like", "ones_like", "unstack",
)  # fmt: skip
BINARY = (
    "add", "atan2", "bitwise_and", "bitwise_or", "bitwise_xor", "copysign", "divide", "equal", "floor_divide",
    "greater", "greater_equal", "hypot", "less", "less_equal", "logaddexp", "logical_and", "logical_or",
    "logical_xor", "maximum", "minimum", "multiply", "nextafter", "not_equal", "pow", "remainder", "subtract",
    "isin", "broadcast_arrays", "meshgrid", "bitwise_left_shift", "bitwise_right_shift",
)  # fmt: skip
REDUCTIONS = (
    "all", "any", "argmax", "argmin", "count_nonzero", "max", "mean", "min", "prod", "std", "sum", "var",
)  # fmt: skip
OPTIONS: dict[str, list[dict[str, Any]]] = {
    "cumulative_sum": [{"axis": 0}, {"axis": -1, "include_initial": True}],
    "cumulative_prod": [{"axis": 0}, {"axis": -1, "include_initial": True}],
    "sort": [{}, {"axis": 0}, {"descending": True}], "argsort": [{}, {"axis": 0}, {"descending": True, "stable": True}],
    "flip": [{}, {"axis": 0}, {"axis": (0, -1)}], "diff": [{}, {"axis": 0}, {"n": 2}],
    "tril": [{}, {"k": 1}, {"k": -5}],
    "triu": [{}, {"k": 1}, {"k": 9}], "linalg.svdvals": [{}], "linalg.pinv": [{}], "linalg.matrix_rank": [{}],
    "linalg.trace": [{}, {"offset": 1}], "linalg.diagonal": [{}, {"offset": -1}],
    "linalg.matrix_norm": [{}, {"ord": 1}, {"ord": "nuc"}, {"ord": math.inf, "keepdims": True}],
    "linalg.vector_norm": [{}, {"ord": 0}, {"ord": -math.inf, "axis": -1}, {"axis": 0, "keepdims": True}, {"ord": 3}],
    **{f"fft.{n}": [{}, {"norm": "ortho"}, {"axis": 0, "n": 3}]
       for n in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")},
    **{f"fft.{n}": [{}, {"s": (3,), "axes": (0,)}] for n in ("fftn", "ifftn", "rfftn", "irfftn")},
    **{f"fft.{n}": [{}, {"axes": (0,)}] for n in ("fftshift", "ifftshift")},
}  # fmt: skip
SQUARE = ("linalg.det", "linalg.inv", "linalg.slogdet", "linalg.matrix_power")


def call(name: str, pick: random.Random) -> Call:
    """Arguments of a call."""
    dtype, shape = pick.choice(DTYPES), pick.choice(SHAPES)
    if name.startswith("linalg."):
        dtype = pick.choice(DTYPES[-4:])
    x = values(pick, dtype, shape)
    if name in UNARY:
        return [x], {}
    if name in BINARY:
        other = pick.choice(DTYPES) if pick.random() < 0.3 else dtype
        y = values(pick, other, pick.choice([shape, (), shape[-1:]]))
        if name in ("floor_divide", "remainder"):
            y = np.where(y == 0, 1, y).astype(other)
        if name == "pow" or "shift" in name:
            y = (np.abs(y) % 4).astype(other)
        return [x, y], {}
    if name in REDUCTIONS:
        options: list[dict[str, Any]] = [{}, {"axis": 0}, {"axis": -1, "keepdims": True}, {"keepdims": True}]
        options += [] if "arg" in name else [{"axis": ()}, {"axis": (0, 1)}]
        options += [{"correction": 0.5, "axis": -1}] if name in ("std", "var") else []
        return [x], pick.choice(options)
    if name in OPTIONS:
        return [x], pick.choice(OPTIONS[name])
    if name in SQUARE:
        x = values(pick, pick.choice(DTYPES[-4:]), pick.choice([(4, 4), (2, 3, 3), (0, 0)]))
        return [x, *([pick.choice([0, 2, -1])] if "power" in name else [])], {}
    made: dict[str, Any] = {
        "matmul": lambda: ([x, np.swapaxes(x, -1, -2) if x.ndim > 1 else x], {}),
        "tensordot": lambda: ([x, x], {"axes": pick.choice([0, ((0,), (0,))])}),
        "vecdot": lambda: ([x, x], {}), "linalg.outer": lambda: ([x, x], {}), "where": lambda: ([x == x, x, x], {}),
        "linalg.solve": lambda: ([values(pick, "float64", (2, 3, 3)), values(pick, "float64", (2, 3, 2))], {}),
        "roll": lambda: ([x, 3], pick.choice([{}, {"axis": -1}])), "reshape": lambda: ([x, (-1,)], {}),
        "repeat": lambda: ([x, 2], pick.choice([{}, {"axis": -1}])), "tile": lambda: ([x, (2, 3)], {}),
        "stack": lambda: ([[x, x]], {"axis": -1}), "concat": lambda: ([[x, x]], {"axis": pick.choice([0, None])}),
        "expand_dims": lambda: ([x], {"axis": pick.choice([0, -1, x.ndim])}), "clip": lambda: ([x, 0, 2], {}),
        "permute_dims": lambda: ([x, tuple(range(x.ndim))[::-1]], {}), "moveaxis": lambda: ([x, 0, -1], {}),
        "take": lambda: ([x, np.array([0, -1])], {"axis": -1}), "broadcast_to": lambda: ([x, (2, *shape)], {}),
        "take_along_axis": lambda: ([x, np.zeros((*shape[:-1], 1), np.int64)], {}),
        "astype": lambda: ([x, "@float64"], {}),
        "searchsorted": lambda: ([np.sort(x.ravel()), x], {"side": pick.choice(["left", "right"])}),
        "linspace": lambda: ([pick.choice([0, 1 + 1j]), 3, pick.randrange(6)], {"dtype": "@complex128"}),
        "arange": lambda: ([pick.randrange(-3, 9), 7, pick.choice([1, 2, -1])], {"dtype": "@int16"}),
        "eye": lambda: ([3, 4], {"k": pick.randrange(-3, 4), "dtype": "@float32"}),
    }  # fmt: skip
    args, options_ = made[name]()
    return args, options_


OTHERS = (
    "matmul", "tensordot", "vecdot", "linalg.outer", "where", "linalg.solve", "roll", "reshape", "repeat", "tile",
    "stack", "concat", "expand_dims", "clip", "permute_dims", "moveaxis", "take", "broadcast_to", "take_along_axis",
    "astype", "searchsorted", "linspace", "arange", "eye",
)  # fmt: skip
NAMES = [*UNARY, *BINARY, *REDUCTIONS, *OPTIONS, *SQUARE, *OTHERS]


def given(library: Any, value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return library.asarray(value, dtype=getattr(library, str(value.dtype)))
    if isinstance(value, str) and value[0] == "@":
        return getattr(library, value[1:])
    return [given(library, v) for v in value] if isinstance(value, list) else value


def result(library: Any, name: str, args: list[Any], options: dict[str, Any]) -> Any:
    f = library
    for part in name.split("."):
        f = getattr(f, part)
    return f(*[given(library, a) for a in args], **{k: given(library, v) for k, v in options.items()})


def leaves(x: Any) -> Iterator[Any]:
    if isinstance(x, (list, tuple)):
        for part in x:
            yield from leaves(part)
    else:
        yield x


@pytest.mark.parametrize("name", NAMES)
def test_beside_the_strict_library(name: str) -> None:
    pick = random.Random(name)
    for _ in range(CALLS):
        args, options = call(name, pick)
        try:
            wants = list(leaves(result(strict, name, args, options)))
        except Exception:
            continue  # not defined by the standard
        if isinstance(args[0], np.ndarray) and not args[0].ndim and "axis" in options:
            continue  # NumPy's scalars have an axis 0; the standard's have not
        try:
            found = list(leaves(result(smelt, name, args, options)))
        except SmeltError as error:
            raise AssertionError(f"{name} of {args} {options}") from error
        assert len(found) == len(wants)
        for have, want in zip(found, wants):
            where = f"{name} of {args} {options}"
            truth, mine = np.asarray(want._array), np.asarray(have)
            assert mine.shape == truth.shape, where
            close = {"float32": 2e-5, "complex64": 4e-5}.get(str(mine.dtype), 1e-11)
            np.testing.assert_allclose(mine, truth, rtol=close, atol=close, err_msg=where)
            integers = mine.dtype.kind in "iu" and truth.dtype.kind in "iu"
            assert mine.dtype == truth.dtype or (integers and name in OTHER_INTEGERS), where

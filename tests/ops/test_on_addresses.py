"""Library ops that compute on memory (`Library.on_addresses`): the bits of `compute`, and nothing where that raises."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir import dtypes, numpy_blas
from smelt.ir.aval import Aval
from smelt.ir.errors import LibraryError
from smelt.ir.library import Library
from smelt.ir.op import registry
from smelt.ir.settings import override

pytestmark = pytest.mark.skipif(
    numpy_blas.lapack_function("spotrf") is None, reason="NumPy has another library than OpenBLAS"
)
#: Large enough for LAPACK.
SIZES = {"m": 210, "n": 210, "k": 1}
OPS = [op for op in registry.values() if isinstance(op, Library) and type(op).on_addresses is not Library.on_addresses]


def cases() -> Iterator[Any]:
    for op in OPS:
        flags = [name for name in inspect.signature(op.host).parameters if name == "upper"]
        for dtype in op.accepts:
            for columns in (1, 7) if any("k" in core for core in op.core_operands) else (1,):
                for flag in (False, True) if flags else (False,):
                    attrs = dict.fromkeys(flags, flag)
                    yield pytest.param(op, dtype, columns, attrs, id=f"{op.name}-{dtype.name}-{columns}-{flag}")


CASES = list(cases())


def operands_of(op: Any, dtype: dtypes.DType, columns: int) -> list[np.ndarray]:
    sizes = {**SIZES, "k": columns}
    avals = [Aval(tuple(sizes[axis] for axis in core), dtype) for core in op.core_operands]
    return [np.ascontiguousarray(x) for x in op.sample(np.random.default_rng(0), *avals)]


def run(op: Any, operands: list[np.ndarray], results: list[np.ndarray], attrs: dict[str, Any]) -> bool:
    found = op.on_addresses(*[Aval(x.shape, dtypes.of(x.dtype)) for x in operands], **attrs)
    assert found is not None
    done: bool = found([x.ctypes.data for x in operands], [x.ctypes.data for x in results])
    return done


def test_there_are_some() -> None:
    assert {"cholesky", "solve_triangular"} <= {op.name for op in OPS}


@pytest.mark.parametrize(("op", "dtype", "columns", "attrs"), CASES)
def test_bits_are_those_of_compute(op: Any, dtype: dtypes.DType, columns: int, attrs: dict[str, Any]) -> None:
    operands = operands_of(op, dtype, columns)
    expected = op.compute(operands, attrs)
    before = [x.copy() for x in operands]
    results = [np.full_like(x, np.nan) for x in expected]
    assert run(op, operands, results, attrs)
    for found, wanted in zip(results, expected):
        np.testing.assert_array_equal(found.view(np.uint8), np.ascontiguousarray(wanted).view(np.uint8))
    for x, y in zip(operands, before):
        np.testing.assert_array_equal(x, y)
    # A result may take an operand's place; what cannot be done so is left to `compute`.
    for i, x in enumerate(operands):
        if x.nbytes == expected[0].nbytes:
            given = [y.copy() for y in before]
            if run(op, given, [given[i]], attrs):
                np.testing.assert_array_equal(given[i], results[0])
            else:
                np.testing.assert_array_equal(given[i], before[i])


@pytest.mark.parametrize(("op", "dtype", "columns", "attrs"), CASES)
@pytest.mark.parametrize("place", [0, 100, 209])
def test_what_has_no_result_is_left_to_compute(
    op: Any, dtype: dtypes.DType, columns: int, attrs: dict[str, Any], place: int
) -> None:
    operands = operands_of(op, dtype, columns)
    operands[0][place, place] = 0
    with pytest.raises(LibraryError):
        op.compute(operands, attrs)
    out = np.zeros((SIZES["n"], columns if len(operands) > 1 else SIZES["n"]), dtype.numpy)
    assert not run(op, operands, [out], attrs) and not out.any()


@pytest.mark.parametrize("check", [False, True])
def test_programs_raise_as_before(check: bool) -> None:
    n = SIZES["n"]
    good = np.eye(n, dtype=np.float32) * 2
    bad = good.copy()
    bad[5, 5] = 0

    @smelt.compile
    def solved(a: smelt.array, b: smelt.array) -> smelt.array:
        half = smelt.linalg.solve_triangular(a, b * 2)
        return smelt.linalg.solve_triangular(a.T, half + 1, upper=True)

    b = smelt.ones((n, 1))
    with override(tier="program", check=check):
        np.testing.assert_allclose(solved(smelt.array(good), b), np.ones((n, 1)))
        with pytest.raises(LibraryError, match=r"its diagonal has a zero.*test_on_addresses"):
            smelt.eval(solved(smelt.array(bad), b))
        with pytest.raises(LibraryError, match=r"not positive definite.*test_on_addresses"):
            smelt.eval(smelt.compile(lambda a: smelt.linalg.cholesky(a + 0) + 1)(smelt.array(bad - 1)))

"""Custom calls of LAPACK that leave reflectors: what they stand for is put together again by NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir.errors import IRError

TYPES = {np.dtype(np.float32): "f32", np.dtype(np.complex64): "complex<f32>", np.dtype(np.int32): "i32"}
DTYPES = [np.float32, np.complex64]
LETTER = {np.float32: "s", np.complex64: "c"}


def draw(dtype: Any, *shape: int) -> np.ndarray:
    rng = np.random.default_rng(shape)
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if dtype is np.complex64 else x).astype(dtype)


def call(name: str, results: list[tuple[tuple[int, ...], Any]], *arrays: np.ndarray, config: str = "") -> Any:
    """What a program of one custom call gives."""

    def spelled(shape: tuple[int, ...], dtype: Any) -> str:
        return f"tensor<{''.join(f'{d}x' for d in shape)}{TYPES[np.dtype(dtype)]}>"

    given = [spelled(a.shape, a.dtype) for a in arrays]
    made = [spelled(*r) for r in results]
    names = [f"%a{i}" for i in range(len(arrays))]
    text = f"""func.func @main({", ".join(f"{n}: {t}" for n, t in zip(names, given))}) -> ({", ".join(made)}) {{
  %0:{len(made)} = stablehlo.custom_call @lapack_{name}_ffi({", ".join(names)}) {{mhlo.backend_config = {{{config}}}}}
    : ({", ".join(given)}) -> ({", ".join(made)})
  return {", ".join(f"%0#{i}" for i in range(len(made)))} : {", ".join(made)}
}}"""
    found = smelt.from_stablehlo(text)(*arrays)
    return [np.array(x) for x in (found if isinstance(found, tuple) else (found,))]


def reflectors(a: np.ndarray, taus: np.ndarray, below: int = 0) -> np.ndarray:
    """H₀·H₁·… of the vectors under a diagonal of `a`, in float64."""
    m = a.shape[0]
    q = np.eye(m, dtype=np.complex128)
    for j, tau in enumerate(taus):
        v = np.zeros(m, np.complex128)
        v[j + below] = 1
        v[j + below + 1 :] = a[j + below + 1 :, j]
        q = q @ (np.eye(m) - complex(tau) * np.outer(v, v.conj()))
    return q


def close(found: np.ndarray, wanted: np.ndarray) -> None:
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 5])
def test_hessenberg(dtype: Any, n: int) -> None:
    a = draw(dtype, n, n)
    config = f"low = 1 : i32, high = {n} : i32"
    results = [((n, n), dtype), ((n - 1,), dtype), ((), np.int32)]
    packed, taus, info = call(LETTER[dtype] + "gehrd", results, a, config=config)
    q = reflectors(packed, taus, 1)
    close(q @ q.conj().T, np.eye(n))
    close(q @ np.triu(packed, -1) @ q.conj().T, a)
    assert info == 0


@pytest.mark.parametrize("dtype", DTYPES)
def test_tridiagonal(dtype: Any) -> None:
    n, a = 5, draw(dtype, 5, 5)
    lower = np.tril(a, -1)
    whole = lower + lower.conj().T + np.diag(np.diag(a).real)
    name = "ssytrd" if dtype is np.float32 else "chetrd"
    shapes = [((n, n), dtype), ((n,), np.float32), ((n - 1,), np.float32), ((n - 1,), dtype), ((), np.int32)]
    packed, d, e, taus, _ = call(name, shapes, a, config="uplo = 76 : ui8")
    q = reflectors(packed, taus, 1)
    close(q @ (np.diag(d) + np.diag(e, 1) + np.diag(e, -1)) @ q.conj().T, whole)
    close(np.triu(packed, 1), np.triu(a, 1))
    with pytest.raises(IRError, match="upper triangle has no translation"):
        call(name, shapes, a, config="uplo = 85 : ui8")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5)])
def test_pivoted_factors(dtype: Any, shape: tuple[int, int]) -> None:
    n, k = shape[1], min(shape)
    a = draw(dtype, *shape)
    results = [(shape, dtype), ((n,), np.int32), ((k,), dtype)]
    packed, order, taus = call(LETTER[dtype] + "geqp3", results, a, np.zeros(n, np.int32))
    assert sorted(order) == list(range(1, n + 1))
    r = np.triu(packed)
    close(reflectors(packed, taus) @ r, a[:, order - 1])
    lengths = np.abs(np.diag(r))
    assert np.all(lengths[:-1] >= lengths[1:] - 1e-5)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("adjoint", [False, True])
@pytest.mark.parametrize("left", [False, True])
def test_product_with_factors(dtype: Any, left: bool, adjoint: bool) -> None:
    stack, m, k = 2, 4, 3
    a, taus = draw(dtype, stack, m, k), draw(dtype, stack, k)
    c = draw(dtype, stack, m, 2) if left else draw(dtype, stack, 2, m)
    name = "sormqr" if dtype is np.float32 else "cunmqr"
    config = f"left = {str(left).lower()}, transpose = {str(adjoint).lower()}"
    (found,) = call(name, [(c.shape, dtype)], a, taus, c, config=config)
    for i in range(stack):
        q = reflectors(a[i], taus[i])
        q = q.conj().T if adjoint else q
        close(found[i], q @ c[i] if left else c[i] @ q)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(0, 0), (1, 1), (2, 5, 5), (0, 2, 2)])
def test_schur_form(dtype: Any, shape: tuple[int, ...]) -> None:
    a = draw(dtype, *shape)
    lead = shape[:-1]
    values = [(lead, dtype)] * (1 if dtype is np.complex64 else 2)
    results = [(shape, dtype), (shape, dtype), *values, (shape[:-2], np.int32), (shape[:-2], np.int32)]
    t, u, *found, _, info = call(LETTER[dtype] + "gees", results, a, config="mode = 86 : ui8, sort = 78 : ui8")
    close(u @ t @ np.swapaxes(u.conj(), -1, -2), a)
    close(u @ np.swapaxes(u.conj(), -1, -2), np.broadcast_to(np.eye(shape[-1]), shape))
    close(np.triu(t, 0 if dtype is np.complex64 else -1), t)
    w = found[0] if len(found) == 1 else found[0] + 1j * found[1]
    # Each is an eigenvalue, and they are as many: their products with all others say so.
    for at in np.ndindex(shape[:-2]):
        close(np.poly(w[at]), np.poly(np.linalg.eigvals(a[at])))
    assert not info.any()


def test_sorted_schur_form_is_refused() -> None:
    results = [((2, 2), np.float32)] * 2 + [((2,), np.float32)] * 2 + [((), np.int32)] * 2
    with pytest.raises(IRError, match="sorted eigenvalues has no translation"):
        call("sgees", results, draw(np.float32, 2, 2), config="mode = 86 : ui8, sort = 83 : ui8")


@pytest.mark.parametrize("kind, tolerance", [("f16", 2e-3), ("bf16", 2e-2)])
def test_half_precision(kind: str, tolerance: float) -> None:
    """Libraries take no such matrices; they are solved and factored in float32."""
    square, tall = f"tensor<2x3x3x{kind}>", f"tensor<2x3x2x{kind}>"
    how = "left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>"
    text = f"""func.func @main(%a: {square}, %b: {tall}) -> ({square}, {tall}) {{
  %0 = "stablehlo.cholesky"(%a) {{lower = true}} : ({square}) -> {square}
  %1 = "stablehlo.triangular_solve"(%0, %b) {{{how}}} : ({square}, {tall}) -> {tall}
  return %0, %1 : {square}, {tall}
}}"""
    f = smelt.from_stablehlo(text)
    lower = np.tril(np.arange(18.0).reshape(2, 3, 3) % 4) + 2 * np.eye(3)
    b = np.arange(12.0).reshape(2, 3, 2)
    dtype = f.arguments[0].dtype
    factor, solved = f(smelt.array(lower @ np.swapaxes(lower, 1, 2), dtype), smelt.array(b, dtype))
    assert factor.dtype is dtype and solved.dtype is dtype
    np.testing.assert_allclose(np.array(factor.astype(smelt.float32)), lower, rtol=tolerance, atol=tolerance)
    wanted = np.linalg.solve(lower, b)
    np.testing.assert_allclose(np.array(solved.astype(smelt.float32)), wanted, rtol=tolerance, atol=4 * tolerance)

"""complex128, from arrays to files: as NumPy has it, in its precision."""

from __future__ import annotations

import io
import itertools
import math
import pickle
from collections.abc import Callable
from pathlib import Path

import mpmath as mp
import numpy as np
import pytest

import smelt

RNG = np.random.default_rng(0)
INF = math.inf
Z = RNG.standard_normal((5, 5)) + 1j * RNG.standard_normal((5, 5)) + 4 * np.eye(5)


def wide(x: object = Z) -> smelt.array:
    return smelt.array(x, dtype=smelt.complex128)


def close(found: smelt.array, want: object, rtol: float = 1e-12) -> None:
    """Equal to a few units of the last place of the largest element, and of NumPy's dtype."""
    host, want = np.asarray(found), np.asarray(want)
    assert host.dtype == want.dtype and host.shape == want.shape
    np.testing.assert_allclose(host, want, rtol=rtol, atol=rtol * max(1.0, float(np.max(np.abs(want), initial=0))))


def test_what_numpy_computes_in_is_not_taken_over_unasked() -> None:
    assert smelt.array(Z).dtype is smelt.complex64
    assert wide().dtype is smelt.complex128 and np.array_equal(np.asarray(wide()), Z)
    assert smelt.array(1 / 3 + 1j / 7, smelt.complex128).item() == 1 / 3 + 1j / 7
    assert np.array_equal(np.asarray(smelt.array(Z, smelt.float64)), Z.real)


@pytest.mark.parametrize("a", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("b", ["float32", "float64", "complex64", "complex128"])
def test_promotion(a: str, b: str) -> None:
    want = np.result_type(a, b).name
    x, y = (smelt.ones(2, dtype=getattr(smelt, n)) for n in (a, b))
    assert smelt.result_type(x, y).name == (x + y).dtype.name == want
    assert (x * 1j).dtype.name == ("complex128" if a in ("float64", "complex128") else "complex64")
    assert (x * 2.5).dtype is x.dtype


def test_parts() -> None:
    z = wide()
    for name in ("real", "imag", "abs", "conj", "square", "reciprocal", "negative", "sign", "isnan", "isfinite"):
        close(getattr(smelt, name)(z), getattr(np, name)(Z))
    assert smelt.real(z).dtype is smelt.abs(z).dtype is smelt.float64
    close(z.astype(smelt.complex64), Z.astype(np.complex64))
    close(smelt.array(Z).astype(smelt.complex128), Z.astype(np.complex64).astype(np.complex128))
    close(smelt.view(z, smelt.float64), Z.view(np.float64))
    close(smelt.view(smelt.view(z, smelt.uint32), smelt.complex128), Z)
    assert smelt.finfo(smelt.complex128).dtype is smelt.float64
    assert "complex128" in smelt.__array_namespace_info__().dtypes(kind="complex floating")
    assert repr(wide([1 + 2j])) == "array([1+2j], dtype=complex128)"


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_directions_of_the_largest_and_least_numbers(dtype: str) -> None:
    """Their moduli overflow, or have few digits; one infinite part is all that counts."""
    info, r = np.finfo(dtype), math.sqrt(0.5)
    most, least, tiny = float(info.max), float(info.smallest_subnormal), float(info.tiny)
    directions = {
        complex(most, -most): r - r * 1j, complex(-most, most / 2): (-2 + 1j) / math.sqrt(5), 1j * most: 1j,
        complex(least, least): r + r * 1j, complex(0, -least): -1j, complex(3 * tiny, 4 * tiny): 0.6 + 0.8j,
        0j: 0, 1e3 + 0j: 1, -5 + 12j: (-5 + 12j) / 13, complex(INF, 3): 1, complex(-INF, 0): -1, complex(2, -INF): -1j,
        complex(0, INF): 1j,
    }  # fmt: skip
    z, want = np.array(list(directions), dtype), np.array(list(directions.values()), dtype)
    unknown = np.array([complex(INF, -INF), complex(math.nan, 1), complex(1, math.nan)], dtype)
    for f in (smelt.sign, smelt.compile(smelt.sign)):
        np.testing.assert_allclose(np.asarray(f(smelt.array(z, getattr(smelt, dtype)))), want, rtol=4 * info.eps)
        assert np.isnan(np.asarray(f(smelt.array(unknown, getattr(smelt, dtype))))).all()
    one = smelt.array(1j, getattr(smelt, dtype))
    for at in (0j, 2 - 1j):  # at 0, where there is no derivative, at least no huge number
        (slope,) = smelt.jvp(smelt.sign, [smelt.array(at, one.dtype)], [one])[1]
        assert abs(slope.item()) <= 1


FUNCTIONS: dict[str, tuple[Callable[..., smelt.array], Callable[..., object]]] = {
    "arithmetic": (lambda z: (z * z - 3) / (z + 2j) ** 2, lambda z: (z * z - 3) / (z + 2j) ** 2),
    "elementary": (lambda z: smelt.exp(z) + smelt.log(z) * smelt.sqrt(z), lambda z: np.exp(z) + np.log(z) * np.sqrt(z)),
    "sum": (lambda z: smelt.sum(z, axis=0), lambda z: np.sum(z, axis=0)),
    "mean": (smelt.mean, np.mean),
    "prod": (lambda z: smelt.prod(z, axis=1), lambda z: np.prod(z, axis=1)),
    "max": (lambda z: smelt.max(z, axis=1), lambda z: np.max(z, axis=1)),
    "sort": (lambda z: smelt.sort(z, axis=0), lambda z: np.sort(z, axis=0)),
    "cumsum": (lambda z: smelt.cumsum(z, axis=1), lambda z: np.cumsum(z, axis=1)),
    "cumprod": (lambda z: smelt.cumprod(z, axis=0), lambda z: np.cumprod(z, axis=0)),
    "matmul": (lambda z: z @ z.T, lambda z: z @ z.T),
    "vector": (lambda z: z @ z[0], lambda z: z @ z[0]),
    "einsum": (lambda z: smelt.einsum("ij,kj->ik", z, z), lambda z: np.einsum("ij,kj->ik", z, z)),
    "gather": (lambda z: smelt.take(z, smelt.array([3, 1]), axis=0), lambda z: np.take(z, [3, 1], axis=0)),
    "update": (lambda z: z.at[1, 2:].add(1j), lambda z: z + 1j * np.pad(np.ones((1, 3)), ((1, 3), (2, 0)))),
    "where": (lambda z: smelt.where(smelt.real(z) > 0, z, 1j), lambda z: np.where(z.real > 0, z, 1j)),
    "pad": (lambda z: smelt.pad(z, 1), lambda z: np.pad(z, 1)),
    "std": (lambda z: smelt.std(z, axis=0), lambda z: np.std(z, axis=0)),
    "inv": (smelt.linalg.inv, np.linalg.inv),
    "solve": (lambda z: smelt.linalg.solve(z, z[0]), lambda z: np.linalg.solve(z, z[0])),
    "det": (smelt.linalg.det, np.linalg.det),
    "svdvals": (smelt.linalg.svdvals, lambda z: np.linalg.svd(z, compute_uv=False)),
    "eigvals": (lambda z: smelt.sort(smelt.linalg.eigvals(z)), lambda z: np.sort(np.linalg.eigvals(z))),
    "cholesky": (lambda z: smelt.linalg.cholesky(z @ smelt.conj(z).T), lambda z: np.linalg.cholesky(z @ z.conj().T)),
    "norm": (smelt.linalg.norm, np.linalg.norm),
    "fft": (smelt.fft.fft2, np.fft.fft2),
    "irfft": (smelt.fft.irfft, np.fft.irfft),
    "rfft": (lambda z: smelt.fft.rfft(smelt.real(z)), lambda z: np.fft.rfft(z.real)),
}


@pytest.mark.parametrize("way", ["eager", "compiled"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str, way: str) -> None:
    function, numpy = FUNCTIONS[name]
    found = (function if way == "eager" else smelt.compile(function))(wide())
    close(found, numpy(Z), 1e-11)


@pytest.mark.parametrize("sizes", [(64, 48, 33), (1, 40, 30), (40, 30, 1)])
def test_products_of_the_blas(sizes: tuple[int, int, int]) -> None:
    m, k, n = sizes
    a, b = (RNG.standard_normal(s) + 1j * RNG.standard_normal(s) for s in ((m, k), (k, n)))
    function = smelt.compile(lambda a, b: (a @ b, a @ smelt.contiguous(b.T).T))
    for found in function(wide(a), wide(b)):
        close(found, a @ b)


def test_batches_of_products() -> None:
    a, b = (RNG.standard_normal(s) + 1j * RNG.standard_normal(s) for s in ((9, 20, 30), (9, 30, 25)))
    close(smelt.compile(smelt.matmul)(wide(a), wide(b)), a @ b)


def test_derivatives() -> None:
    def loss(z: smelt.array) -> smelt.array:
        return smelt.sum(smelt.abs(smelt.exp(z * 0.1) @ z) ** 2)

    z, t = wide(), RNG.standard_normal(Z.shape) + 1j * RNG.standard_normal(Z.shape)
    h = 1e-6
    want = (loss(wide(Z + h * t)).item() - loss(wide(Z - h * t)).item()) / (2 * h)
    for way in (lambda f: f, smelt.compile):
        gradient = way(smelt.grad(loss))(z)
        assert gradient.dtype is smelt.complex128
        (_,), (pushed,) = smelt.jvp(lambda z: loss(z), [z], [wide(t)])
        assert pushed.dtype is smelt.float64
        np.testing.assert_allclose(pushed.item(), want, rtol=1e-7)
        np.testing.assert_allclose(np.vdot(np.asarray(gradient), t).real, want, rtol=1e-7)
    second = smelt.grad(lambda z: smelt.real(smelt.sum(smelt.grad(loss)(z) * wide(t))))(z)
    assert second.dtype is smelt.complex128


def test_vmap() -> None:
    close(smelt.vmap(lambda row: smelt.sum(row * row))(wide()), np.sum(Z * Z, axis=1))


@pytest.mark.host("NumPy takes no capsules of a GPU")
def test_exchange(tmp_path: Path) -> None:
    z = wide()
    for found in (
        np.asarray(z), np.array(memoryview(z)), np.from_dlpack(z), pickle.loads(pickle.dumps(z)),
        smelt.from_dlpack(z), smelt.asarray(Z, dtype=smelt.complex128), np.asarray(z.tolist()),
    ):  # fmt: skip
        assert np.array_equal(np.asarray(found), Z) and np.asarray(found).dtype == Z.dtype
    smelt.save(str(tmp_path / "z.npy"), z)
    smelt.savez(str(tmp_path / "z.npz"), z=z)
    assert np.array_equal(np.load(tmp_path / "z.npy"), Z)
    for found in (smelt.load(str(tmp_path / "z.npy")), smelt.load(str(tmp_path / "z.npz"))["z"]):
        assert found.dtype is smelt.complex128 and np.array_equal(np.asarray(found), Z)
    with pytest.raises(smelt.ir.errors.SmeltError, match="complex128"):  # the format has none
        smelt.save_safetensors(io.BytesIO(), {"z": z})
    smelt.export_function(str(tmp_path / "f.smelt"), lambda z: smelt.exp(z) + (1 / 3 + 1j / 7), z)
    (found,) = smelt.import_function(str(tmp_path / "f.smelt"))(z)
    close(found, np.exp(Z) + (1 / 3 + 1j / 7))


def test_a_gpu_without_it_leaves_it_to_the_cpu() -> None:
    with smelt.stream("metal:sim"):
        found = smelt.compile(lambda z: smelt.exp(z @ z * 0.1).astype(smelt.complex64) * 2)(wide())
        assert found.dtype is smelt.complex64
        np.testing.assert_allclose(np.asarray(found), 2 * np.exp(Z @ Z * 0.1), rtol=1e-5)
        close(smelt.compile(lambda z: z)(wide()), Z)
        close(smelt.compile(lambda z: (z.T, smelt.sum(z.astype(smelt.complex64))))(wide())[0], Z.T)


def test_random() -> None:
    z = smelt.random.normal((20_000,), dtype=smelt.complex128, key=smelt.random.key(1))
    host = np.asarray(z)
    assert host.dtype == np.complex128 and len(np.unique(host.real)) == host.size
    for part in (host.real, host.imag):
        assert abs(part.mean()) < 0.02 and abs(part.var() - 0.5) < 0.02


@pytest.mark.parametrize("steps", list(itertools.product((1, -1, 2), repeat=2)))
def test_other_layouts(steps: tuple[int, int]) -> None:
    rows, columns = steps
    close(wide()[::rows, ::columns] * 2, Z[::rows, ::columns] * 2)
    close(wide(Z[::rows, ::columns]), Z[::rows, ::columns])


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (1, 1)])
def test_empty_and_small(shape: tuple[int, ...]) -> None:
    host = np.ones(shape, np.complex128) * (2 + 1j)
    for function in (lambda z: z * z, smelt.sum, lambda z: smelt.exp(z).sum()):
        want = {0: host * host}.get(0) if function.__name__ == "<lambda>" else np.sum(host)
        found = smelt.compile(function)(wide(host))
        assert found.dtype is smelt.complex128
        if function is smelt.sum:
            close(found, want)


@pytest.mark.parametrize("dtype", [smelt.complex64, smelt.complex128], ids=lambda d: d.name)
def test_log1p_of_small_numbers(dtype):
    """NumPy's own loses what is small beside 1: op by op, compiled and by the reference rules."""
    z = np.array([1e-20, 1e-8 + 1e-9j, -1e-12j, 3e-5 - 2e-7j, -0.2 + 0.1j, 0.24 + 0.3j, -1 + 1e-4j, 2 - 3j])
    with mp.workdps(40):
        want = np.array([complex(mp.log(1 + mp.mpc(complex(v)))) for v in z.astype(dtype.numpy)])
    x = smelt.array(z, dtype)
    for found in (smelt.log1p(x), smelt.compile(smelt.log1p)(x), smelt.log1p(smelt.concatenate([x] * 4000))[:8]):
        assert np.abs(np.asarray(found) / want - 1).max() < 4 * np.finfo(dtype.numpy).eps
    with smelt.stream(smelt.reference):
        assert np.abs(np.asarray(smelt.log1p(x)) / want - 1).max() < 4 * np.finfo(dtype.numpy).eps

"""Programs written as linalg run through upstream's passes and LLVM."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import smelt
from smelt.backends.exchange.linalg import to_linalg
from smelt.backends.exchange.rules.table import LOOPS
from smelt.ir import dtypes, mlir, op
from smelt.ir.aval import Aval

from ..ops.cases import Case, cases, module_of, random_operands, reference
from .programs_of_smelt import PROGRAMS, flat

#: From linalg on tensors to LLVM, by upstream's passes alone.
TO_LLVM = ",".join((
    "one-shot-bufferize{bufferize-function-boundaries allow-return-allocs-from-loops"
    " function-boundary-type-conversion=identity-layout-map}",
    "buffer-results-to-out-params{hoist-static-allocs=true modify-public-functions=true}",
    "convert-linalg-to-loops", "convert-complex-to-standard", "convert-scf-to-cf", "expand-strided-metadata",
    "lower-affine", "convert-complex-to-llvm", "convert-math-to-llvm", "convert-math-to-libm",
    "finalize-memref-to-llvm", "convert-func-to-llvm", "convert-arith-to-llvm", "convert-cf-to-llvm",
    "convert-index-to-llvm", "reconcile-unrealized-casts",
))  # fmt: skip


def _elements(memref: int, size: int) -> np.ndarray:
    """The elements of an unranked memref of MLIR's runtime: its rank, and its allocation, start, offset, sizes and
    strides."""
    rank, at = (ctypes.c_int64 * 2).from_address(memref)
    numbers = (ctypes.c_int64 * (3 + 2 * rank)).from_address(at)
    shape, strides = numbers[3 : 3 + rank], [s * size for s in numbers[3 + rank :]]
    if 0 in shape:
        return np.empty(shape, f"V{size}")
    extent = size + sum((n - 1) * s for n, s in zip(shape, strides))
    raw = (ctypes.c_char * extent).from_address(numbers[1] + numbers[2] * size)
    return np.lib.stride_tricks.as_strided(np.frombuffer(raw, f"V{size}", 1), shape, strides)


@ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)
def _copy(size: int, source: int, target: int) -> None:
    """``memrefCopy``, which a library of MLIR has that the bindings lack."""
    _elements(target, size)[...] = _elements(source, size)


def run_all(text: str, arguments: Sequence[np.ndarray], results: Sequence[np.ndarray]) -> list[np.ndarray]:
    """What the program computes. Its function is renamed: a process has a `main` of its own."""
    with mlir.lock:
        ir = mlir.ir
        with ir.Context():
            module = ir.Module.parse(text.replace("@main", "@forward"))
            function: Any = next(x for x in module.body.operations if str(x.name).strip('"') == "forward")
            function.attributes["llvm.emit_c_interface"] = ir.UnitAttr.get()
            mlir.module("passmanager").PassManager.parse(f"builtin.module({TO_LLVM})").run(module.operation)
            engine = mlir.module("execution_engine").ExecutionEngine(module)
            engine.raw_register_runtime("memrefCopy", ctypes.cast(_copy, ctypes.c_void_p))
            descriptor = mlir.module("runtime").get_ranked_memref_descriptor
            outs = [np.zeros(x.shape, x.dtype) for x in results]
            engine.invoke("forward", *[ctypes.pointer(ctypes.pointer(descriptor(x))) for x in (*arguments, *outs)])
    return outs


def run(text: str, arguments: Sequence[np.ndarray], result: np.ndarray) -> np.ndarray:
    return run_all(text, arguments, [result])[0]


UNSIGNED = {
    "quotients": lambda x: x // 3 + 200,
    "the larger": lambda x: smelt.maximum(x, 130),
    "compared": lambda x: smelt.where(x > 250, x, 7).astype(smelt.float32),
    "shifted": lambda x: (x >> 1) ^ 0x55,
    "summed": lambda x: x.astype(smelt.uint32).sum(axis=0),
    "hashed": lambda x: smelt.random.bits((4,), key=x[:2].astype(smelt.uint32)),
}


@pytest.mark.parametrize("dtype", ["uint8", "uint32"])
@pytest.mark.parametrize("name", UNSIGNED)
def test_unsigned_integers(name: str, dtype: str) -> None:
    """Signatures are signless: casts of unsigned ones went through no pass."""
    x = np.array([0, 1, 7, 128, 250, 255], dtype)
    (wanted,) = flat(UNSIGNED[name](smelt.array(x)))
    found = smelt.to_linalg(UNSIGNED[name], smelt.array(x))
    assert "ui8" not in found and "ui32" not in found and "unrealized" not in found
    np.testing.assert_array_equal(run(found, [x], wanted), wanted)


@pytest.mark.parametrize("name", ["mlp", "attention", "layer_norm", "vmap_hessian", "quantized"])
def test_values(name: str) -> None:
    function, arguments = PROGRAMS[name]
    (wanted,) = flat(function(*map(smelt.array, arguments)))
    found = run(smelt.to_linalg(function, *map(smelt.array, arguments)), list(arguments), wanted)
    np.testing.assert_allclose(found, wanted, rtol=2e-4, atol=2e-5 * float(np.abs(wanted).max()))


def _newton(x: smelt.array) -> smelt.array:
    return smelt.while_loop(lambda c: (c[0] * c[0] - x > 1e-5).any(), lambda c: ((c[0] + x / c[0]) / 2,), (x + 1,))[0]


def _of_line(x: smelt.array) -> smelt.array:
    """A scan's derivative, in reverse."""
    return smelt.grad(lambda x: smelt.scan(lambda c, row: (smelt.sin(c * row), c), smelt.ones(4), x)[1].sum())(x)


_SPECIAL = np.array([np.nan, 0.0, -0.0, np.inf, -np.inf, 3.0, np.nan, -2.0, 3.0, 0.5, 7.0], np.float32)
_X = np.random.default_rng(5).uniform(0.5, 2, (3, 4)).astype(np.float32)
_SIGNAL = np.random.default_rng(6).normal(size=(2, 221)).astype(np.float32)
LOOPS_OF_USERS = {
    "while": (_newton, [_X]),
    "scan": (_of_line, [_X]),
    "cond": (lambda x, i: smelt.cond(i.sum() > 2, smelt.sin, smelt.cos, x), [_X, np.array([1, 2], np.int32)]),
    "switch": (
        lambda x, i: smelt.vmap(lambda i: smelt.switch(i, [smelt.sin, smelt.cos, smelt.exp], x[0]))(i) * x.sum(),
        [_X, np.array([0, 1, 2, 7], np.int32)],
    ),
    "choice": (lambda x, i: smelt.switch(i, [smelt.sin, smelt.cos, smelt.exp], x), [_X, np.array(-3, np.int32)]),
    "sort": (lambda x: smelt.sort(x), [_SPECIAL]),
    "argsort": (lambda x: smelt.argsort(x), [_SPECIAL]),
    "columns": (lambda x: smelt.sort(x, axis=0), [_X]),
    "13·17": (lambda x: smelt.fft.irfft(smelt.fft.rfft(x) * 2, n=200), [_SIGNAL]),
    "factors": (lambda x: smelt.linalg.qr(x @ x.swapaxes(-1, -2))[1], [_X.reshape(2, 3, 2)]),
    "added": (lambda x, i: x.at[i].add(2.0), [_X, np.array([2, 0, 2], np.int32)]),
}


@pytest.mark.parametrize("name", LOOPS_OF_USERS)
def test_loops(name: str) -> None:
    function, arguments = LOOPS_OF_USERS[name]
    (wanted,) = flat(function(*map(smelt.array, arguments)))
    found = smelt.to_linalg(function, *map(smelt.array, arguments))
    assert "stablehlo" not in found
    got = run(found, list(map(np.ascontiguousarray, arguments)), wanted)
    np.testing.assert_allclose(got, wanted, rtol=2e-4, atol=1e-4)


EMPTY = {
    "slice": (lambda x: x[4:, 2:], (4, 4)),
    "sum": (lambda x: x[4:].sum(axis=0), (4, 4)),
    "largest of none": (lambda x: smelt.max(x[:, 4:], axis=0), (4, 4)),
    "product": (lambda x: x[:, :0] @ x[:0], (4, 4)),
    "sort": (lambda x: smelt.sort(x[4:], axis=0), (4, 4)),
    "scatter": (lambda x: x.at[4:].add(1.0), (4, 4)),
    "inverse": (lambda x: smelt.linalg.inv(x[:0, :0]), (4, 4)),
    "no matrices": (lambda x: smelt.linalg.cholesky(x), (0, 3, 3)),
    "of no columns": (lambda x: smelt.linalg.eigvalsh(x), (2, 0, 0)),
    "no rows": (lambda x: smelt.linalg.svd(x, full_matrices=True)[2], (0, 3)),
    "no steps": (lambda x: smelt.scan(lambda c, row: (c + row, c), smelt.ones(4), x)[0], (0, 4)),
}


@pytest.mark.parametrize("name", EMPTY)
def test_arrays_without_elements(name: str) -> None:
    function, shape = EMPTY[name]
    x = np.ones(shape, np.float32)
    (wanted,) = flat(function(smelt.array(x)))
    found = smelt.to_linalg(function, smelt.array(x))
    assert "stablehlo" not in found
    np.testing.assert_array_equal(run(found, [x], wanted), wanted)


#: Ops that linalg has nothing for, and those made of them; ordered complex numbers.
LOOPED = [
    *(name for name in LOOPS if name not in {"eigh", "svd", "schur", "eig", "eigvals"}), "solve", "slogdet", "pinv",
    "permutation_of_pivots", "reduce_max", "argmin", "cummax", "logcumsumexp", "sqrtm",
]  # fmt: skip


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.complex64, dtypes.uint8], ids=str)
@pytest.mark.parametrize("name", LOOPED)
def test_values_of_ops(name: str, dtype: dtypes.DType) -> None:
    rng = np.random.default_rng(7)
    found = [case for case in cases(op.get(name)) if case.avals[0].dtype is dtype]
    if not found:
        pytest.skip("not of these")
    operands = random_operands(found[0], rng)
    wanted = [np.asarray(x) for x in reference(found[0], operands)]
    computed = run_all(to_linalg(module_of(found[0])), list(map(np.ascontiguousarray, operands)), wanted)
    for got, want in zip(computed, wanted):
        if dtype is dtypes.uint8:
            np.testing.assert_array_equal(got, want)
        else:
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def _matrices(shape: tuple[int, ...], dtype: type) -> np.ndarray:
    rng = np.random.default_rng(3)
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if dtype is np.complex64 else x).astype(dtype)


def _adjoint(x: np.ndarray) -> np.ndarray:
    return x.swapaxes(-1, -2).conj()


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
@pytest.mark.parametrize("name", ["eigh", "svd", "wide", "eig"])
def test_vectors(name: str, dtype: type) -> None:
    """What is found up to signs and order, seen by what it means."""
    x, linalg = _matrices((2, 3, 5) if name == "wide" else (2, 3, 3), dtype), smelt.linalg
    function: Callable[..., Any]
    if name in ("svd", "wide"):
        x[0, :, 1] = 0
        function = lambda x: linalg.svd(x, full_matrices=True)  # noqa: E731
    else:
        x = x + _adjoint(x) if name == "eigh" else x
        if name == "eig":
            x[0] = np.roll(np.eye(3), 1, 0)  # whose own shifts are zero
        function = getattr(linalg, name)
    if name in ("svd", "wide"):
        shapes = [(2, 3, 3), (2, 3), (2, x.shape[-1], x.shape[-1])]
        kinds = [dtype, np.float32, dtype]
    else:
        shapes, kinds = [(2, 3), (2, 3, 3)], [np.float32, dtype] if name == "eigh" else [np.complex64] * 2
    text = smelt.to_linalg(lambda x: tuple(function(x)), smelt.array(x))
    found = run_all(text, [x], [np.empty(s, k) for s, k in zip(shapes, kinds)])
    close = functools.partial(np.testing.assert_allclose, rtol=1e-5, atol=2e-5)
    if name in ("svd", "wide"):
        u, s, vh = found
        close(s, np.linalg.svd(x)[1])
        close(u * s[:, None] @ vh[:, :3], x)
    else:
        values, u = found
        close(x @ u, u * values[:, None])
        close(np.linalg.norm(u, axis=1), np.ones((2, 3)))
    if name == "eigh":
        close(values, np.linalg.eigvalsh(x))
    for unitary in [] if name == "eig" else [u, vh] if name in ("svd", "wide") else [u]:
        close(unitary @ _adjoint(unitary), np.broadcast_to(np.eye(unitary.shape[-1]), unitary.shape))


#: By size: matrices whose forms are known, which share a program.
FORMS: dict[int, Callable[[np.random.Generator], Sequence[Any]]] = {
    1: lambda rng: [rng.normal(size=(1, 1))],
    2: lambda rng: rng.normal(size=(12, 2, 2)),
    5: lambda rng: [
        *rng.normal(size=(4, 5, 5)), np.roll(np.eye(5), 1, 0), np.eye(5, k=-1), _hermitian(rng.normal(size=(5, 5))),
        np.zeros((5, 5)), rng.normal(size=(5, 5)) * 1e18,
    ],
    6: lambda rng: [np.kron(np.eye(3), [[0, 1], [-1, 0]]), rng.normal(size=(6, 6)) * 10.0 ** np.arange(-6, 6, 2)],
    12: lambda rng: [rng.normal(size=(12, 12))],
}  # fmt: skip


def _hermitian(x: np.ndarray) -> np.ndarray:
    return x + _adjoint(x)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64])
@pytest.mark.parametrize("n", FORMS)
def test_schur_forms(n: int, dtype: type) -> None:
    """Seen by what they mean: real ones have blocks of two rows for pairs of eigenvalues, with an even diagonal."""
    x = np.array(FORMS[n](np.random.default_rng(11))).astype(dtype)
    case = Case(op.get("schur"), (Aval(x.shape, dtypes.of_numpy(x.dtype)),), ())
    t, u = run_all(to_linalg(module_of(case)), [x], [x, x])
    size = np.abs(x).max((1, 2), keepdims=True)
    size[size == 0] = 1
    near = 400 * np.finfo(dtype).eps
    np.testing.assert_allclose(u @ t @ _adjoint(u) / size, x / size, atol=near)
    np.testing.assert_allclose(u @ _adjoint(u), np.broadcast_to(np.eye(n), x.shape), atol=near)
    assert not np.tril(t, -1 if dtype is np.complex64 else -2).any()
    for block, i in ((m, i) for m in t / size for i in np.flatnonzero(np.diagonal(m, -1))):
        (a, b), (c, d) = block[i : i + 2, i : i + 2]
        assert b * c < 0 and abs(a - d) < near
        assert i + 2 >= n or block[i + 2, i + 1] == 0


SIZED: dict[str, Callable[[smelt.array], smelt.array]] = {
    "qr": lambda x: smelt.linalg.qr(x)[1],
    "svdvals": smelt.linalg.svdvals,
    "svd": lambda x: smelt.abs(smelt.linalg.svd(x)[0]),
    "eigvals": lambda x: smelt.sort(smelt.abs(smelt.linalg.eigvals(x))),
    "eig": lambda x: smelt.sort(smelt.abs(smelt.linalg.eig(x)[0])),
    "eigvalsh": smelt.linalg.eigvalsh,
}


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
@pytest.mark.parametrize("name", SIZED)
def test_numbers_of_any_size(name: str, dtype: type) -> None:
    """Sums of squares were zero or infinite."""
    exponents = np.array([0, -100, -66, 66, 110], np.float32)
    scale = np.exp2(exponents)[:, None, None]
    x = _matrices((3, 3), dtype) * scale
    function = SIZED[name]
    (wanted,) = flat(function(smelt.array(x[0])))
    found = run(smelt.to_linalg(function, smelt.array(x)), [x], np.empty((len(x), *wanted.shape), wanted.dtype))
    if name != "svd":
        found = found / scale.reshape(-1, *[1] * wanted.ndim)
    np.testing.assert_allclose(found, np.broadcast_to(wanted, found.shape), rtol=1e-4, atol=2e-5)


def test_exponentials_of_matrices_far_from_normal() -> None:
    """In a batch with others, which need as many squarings as their norms say, none, or have no exponential."""
    logarithm = scipy.linalg.logm(np.diag([0.32, 0.3, 0.32, 0.31]) + np.triu(np.full((4, 4), 3e4), 1))
    dense = np.random.default_rng(7).normal(size=(4, 4))
    x = np.stack([logarithm, dense * 20, dense, np.zeros((4, 4)), np.diag([np.inf, 1, 1, 1]), dense / 1e9])
    wanted = np.asarray(smelt.linalg.expm(smelt.array(x, smelt.float64)))
    found = run(smelt.to_linalg(smelt.linalg.expm, smelt.array(x, smelt.float64)), [x], np.empty_like(x))
    assert np.isnan(found[4]).all() == np.isnan(wanted[4]).all()
    for i, near in ((0, 1e-5), (1, 1e-10), (2, 1e-14), (3, 1e-15), (5, 1e-15)):
        np.testing.assert_allclose(found[i], wanted[i], rtol=0, atol=near * np.abs(wanted[i]).max())

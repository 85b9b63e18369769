"""Linear algebra of the device ``cuda`` by cuSOLVER, over a library and a driver without a GPU."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.backends.cuda import solvers
from smelt.backends.cuda.solvers import eigenvalues, plan, singular_values
from smelt.backends.gpu.schedules import factorizations
from smelt.ir import op as ops
from smelt.ir.aval import Aval
from smelt.ir.dtypes import of
from smelt.ir.errors import DeviceError, LibraryError, OutOfMemoryError
from smelt.ir.library import Library
from smelt.ir.settings import override
from smelt.lazy.arrays import as_array, emit_all

from .fake_driver import FakeDriver
from .fake_library import installed
from .fake_solver import FakeSolver
from .test_device import _forget, fake, gpu

pytestmark = pytest.mark.usefixtures("small_heap")
assert fake and gpu  # fixtures


def ways(patch: pytest.MonkeyPatch, many: bool) -> None:
    """Let all that the library can do be its: by functions for batches, or matrix by matrix."""
    patch.setattr(plan, "LEAST", 1)
    patch.setattr(plan, "LEAST_ELEMENTS", 1 if many else 1 << 60)
    patch.setattr(factorizations, "JACOBI_ROWS", 32 if many else 0)
    patch.setattr(singular_values.Svd, "scale", 1)


@pytest.fixture
def solver(fake: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeSolver]:
    """The device's library, matrix by matrix."""
    found = FakeSolver(fake)
    ways(monkeypatch, many=False)
    with installed(monkeypatch, solvers, {"cusolver": found, "cublas": found.blas}):
        yield found


@pytest.fixture
def batches(solver: FakeSolver, monkeypatch: pytest.MonkeyPatch) -> FakeSolver:
    """The device's library, by functions for batches where it has them."""
    ways(monkeypatch, many=True)
    return solver


#: Matrices and columns: one and many, a batch of either, and both with axes that the other has not.
SYSTEMS = [
    [(5, 5), (5, 1)], [(5, 5), (5, 3)], [(2, 4, 4), (2, 4, 3)], [(3, 4, 4), (3, 4, 1)], [(1, 1), (1, 1)],
    [(4, 4), (3, 4, 2)], [(4, 4), (3, 4, 1)], [(3, 4, 4), (4, 2)], [(3, 1, 4, 4), (2, 4, 3)],
    [(1, 4, 4), (3, 4, 1)], [(3, 4, 4), (1, 4, 1)],
]  # fmt: skip
TRIANGULAR = SYSTEMS


def emitted(name: str, *operands: Any, **attributes: Any) -> Any:
    """An op as it is."""
    found = emit_all(ops.registry[name], tuple(map(as_array, operands)), attributes)
    return found[0] if len(found) == 1 else found


#: Functions of arrays, the op that they are, its attributes, and shapes.
CASES: dict[str, tuple[Any, str, dict[str, Any], list[list[tuple[int, ...]]]]] = {
    "cholesky": (smelt.linalg.cholesky, "cholesky", {}, [[(5, 5)], [(3, 4, 4)], [(1, 1)]]),
    "solve": (
        smelt.linalg.solve, "solve", {}, SYSTEMS,
    ),
    "inv": (smelt.linalg.inv, "inv", {}, [[(5, 5)], [(3, 4, 4)], [(2, 2, 3, 3)], [(1, 1)]]),
    "det": (smelt.linalg.det, "det", {}, [[(5, 5)], [(3, 4, 4)], [(2, 2, 3, 3)], [(1, 1)], [(7, 1, 1)]]),
    "slogdet": (smelt.linalg.slogdet, "slogdet", {}, [[(5, 5)], [(3, 4, 4)], [(2, 2, 3, 3)], [(1, 1)]]),
    "lu": (
        lambda x: emitted("lu", x), "lu", {},
        [[(5, 5)], [(3, 4, 4)], [(5, 3)], [(2, 3, 5)], [(1, 1)], [(2, 2, 3, 3)]],
    ),
    "solve_triangular": (
        lambda a, b: emitted("solve_triangular", a, b, upper=False), "solve_triangular", {"upper": False}, TRIANGULAR,
    ),
    "solve_triangular, upper": (
        lambda a, b: emitted("solve_triangular", a, b, upper=True), "solve_triangular", {"upper": True}, TRIANGULAR,
    ),
    "qr": (smelt.linalg.qr, "qr", {}, [[(5, 5)], [(6, 3)], [(3, 6)], [(2, 5, 4)], [(1, 4)], [(4, 1)]]),
    "eigh": (smelt.linalg.eigh, "eigh", {}, [[(5, 5)], [(2, 4, 4)], [(1, 1)]]),
    "eigvalsh": (smelt.linalg.eigvalsh, "eigvalsh", {}, [[(5, 5)], [(2, 4, 4)]]),
    "svd": (smelt.linalg.svd, "svd", {"full": True}, [[(5, 5)], [(6, 3)], [(3, 6)], [(2, 5, 4)]]),
    "svd, some": (
        lambda x: smelt.linalg.svd(x, full_matrices=False), "svd", {"full": False},
        [[(5, 5)], [(6, 3)], [(3, 6)], [(2, 4, 5)]],
    ),
    "values": (
        lambda x: smelt.linalg.svd(x, compute_uv=False), "singular_values", {}, [[(5, 5)], [(6, 3)], [(2, 3, 6)]],
    ),
}  # fmt: skip


#: How far from what they should be results of float64, and of float32, may be. What is made by orthogonal
#: transformations alone does not depend on how well-conditioned matrices are; Jacobi's method was seen to be 3e-5 off
#: for matrices of 32 rows.
EXACT, EXACT_VALUES = (1e-10, 5e-4), (1e-12, 1e-4)


def ran(name: str, shapes: Sequence[tuple[int, ...]], dtype: Any) -> None:
    """An op on the device: its properties, or what the reference has."""
    f, op_name, attrs, _ = CASES[name]
    op = ops.get(op_name)
    assert isinstance(op, Library)
    given = op.sample(np.random.default_rng(len(shapes[0])), *(Aval(s, of(np.dtype(dtype))) for s in shapes), **attrs)
    found = smelt.compile(lambda *xs: f(*xs))(*(smelt.array(x, dtype=of(x.dtype)) for x in given))
    results = [np.array(x) for x in (found if isinstance(found, (tuple, list)) else (found,))]
    exact = (EXACT_VALUES if op_name in ("svd", "singular_values") else EXACT)[dtype != np.float64]
    checked = list(op.properties(given, results, **attrs))
    if not checked:
        wide = [x.astype(np.complex128 if x.dtype.kind == "c" else np.float64) for x in given]
        want = op.reference(*wide, **attrs)
        checked = [(op_name, *pair) for pair in zip(results, want if isinstance(want, tuple) else (want,))]
    for what, x, want in checked:
        with np.errstate(over="ignore"):
            want = np.asarray(want).astype(x.dtype)  # determinants of large matrices are infinite
        largest = np.abs(want[np.isfinite(want)]).max(initial=1)
        np.testing.assert_allclose(x, want, rtol=exact, atol=exact * largest, err_msg=what)


#: Ops whose complex numbers are the CPU's.
REAL = {"eigh", "eigvalsh", "svd", "singular_values"}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64])
def test_values(solver: FakeSolver, name: str, dtype: Any) -> None:
    for shapes in CASES[name][3]:
        solver.done.clear()
        ran(name, shapes, dtype)
        assert bool(solver.done) == (dtype != np.complex64 or CASES[name][1] not in REAL), shapes
        assert not any("Batched" in x for x in solver.done)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64])
def test_batches(batches: FakeSolver, name: str, dtype: Any) -> None:
    for shapes in CASES[name][3]:
        batches.done.clear()
        ran(name, shapes, dtype)
        assert bool(batches.done) == (dtype != np.complex64 or CASES[name][1] not in REAL), shapes
        alone = np.prod(shapes[0][:-2]) == 1 or name == "qr" or (name == "lu" and shapes[0][-1] != shapes[0][-2])
        assert not batches.done or any("Batched" in x for x in batches.done) == (not alone), shapes


def test_what_surrounds_it_stays_on_the_gpu(solver: FakeSolver, fake: FakeDriver) -> None:
    x = np.random.default_rng(0).standard_normal((4, 4)).astype(np.float32)
    f = smelt.compile(lambda x: smelt.linalg.cholesky(x @ x.T + 4 * smelt.eye(4)) * 2)
    for _ in range(3):
        found = np.array(f(smelt.array(x)))
        np.testing.assert_allclose(found, 2 * np.linalg.cholesky(x @ x.T + 4 * np.eye(4)), rtol=1e-5, atol=1e-6)
    assert len(solver.done) == 3


def test_in_loops(solver: FakeSolver) -> None:
    x = np.random.default_rng(0).standard_normal((3, 5, 5)).astype(np.float32) + 4 * np.eye(5, dtype=np.float32)

    def f(x: Any) -> Any:
        step = lambda c, a: (smelt.linalg.solve(a, c), c)  # noqa: E731
        return smelt.scan(step, smelt.ones((5, 1)), x)[0]

    want = np.ones((5, 1))
    for a in x:
        want = np.linalg.solve(a, want)
    np.testing.assert_allclose(np.array(smelt.compile(f)(smelt.array(x))), want, rtol=1e-4)
    assert solver.done == ["getrf", "getrs"] * 3


def outcome(f: Any, *given: np.ndarray) -> list[np.ndarray]:
    """What a program has for arrays, which is made anew."""
    found = smelt.compile(lambda *xs: f(*xs))(*(smelt.array(x, dtype=of(x.dtype)) for x in given))
    return [np.array(x) for x in (found if isinstance(found, (tuple, list)) else (found,))]


#: What raises an error, of a batch whose second matrix is -1 or 0, and what it says.
REFUSED: dict[str, tuple[Any, float, str]] = {
    "cholesky": (smelt.linalg.cholesky, -1, "not positive definite"),
    "solve": (lambda x: smelt.linalg.solve(x, smelt.ones((2, 3, 2))), 0, "singular"),
    "inv": (smelt.linalg.inv, 0, "singular"),
    "solve_triangular": (
        lambda x: emitted("solve_triangular", x, smelt.ones((2, 3, 2)), upper=False), 0,
        "singular: its diagonal has a zero",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("many", [False, True])
def test_what_has_no_factors_is_an_error_with_op_and_line(
    solver: FakeSolver, monkeypatch: pytest.MonkeyPatch, name: str, many: bool
) -> None:
    ways(monkeypatch, many)
    f, bad, rule = REFUSED[name]
    with pytest.raises(LibraryError, match=rf"smelt.{name}: matrix 1 of the batch is {rule}.*test_solvers.py"):
        outcome(f, np.stack([np.eye(3), bad * np.eye(3)]).astype(np.float32))
    assert any("Batched" in x for x in solver.done) == many
    for x in outcome(f, np.stack([np.eye(3)] * 2).astype(np.float32)):  # and is none any more
        assert np.isfinite(x).all()


@pytest.mark.parametrize("many", [False, True])
def test_singular_matrices_have_determinants_and_lu_factors(
    solver: FakeSolver, monkeypatch: pytest.MonkeyPatch, many: bool
) -> None:
    ways(monkeypatch, many)
    x = np.stack([2 * np.eye(3), np.ones((3, 3)), np.zeros((3, 3))]).astype(np.float32)
    (found,) = outcome(smelt.linalg.det, x)
    assert found.tolist() == [8, 0, 0]
    sign, log = outcome(smelt.linalg.slogdet, x)
    assert sign.tolist() == [1, 0, 0] and log[1:].tolist() == [-np.inf] * 2
    factors, _, _ = outcome(lambda x: emitted("lu", x), x)
    np.testing.assert_array_equal(factors[2], 0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64])
def test_determinants_of_which_parts_are_too_large(batches: FakeSolver, dtype: Any) -> None:
    """By products of some of the numbers alone, that is; and those that are too large or small themselves."""
    tiny, low = (1e-30, 1.7e-22) if dtype != np.float64 else (1e-200, 1.7e-161)
    rows = [
        [1 / tiny, 1 / tiny, tiny, 3 * tiny], [tiny, tiny, 1 / tiny, -2 / tiny], [tiny] * 4, [1 / tiny] * 4,
        [low, low, 1 / low, 5 / low], [low, 1 / low, low, 5 / low],  # products of two are not zero, but lose digits
    ]  # fmt: skip
    (found,) = outcome(smelt.linalg.det, np.stack([np.diag(x) for x in rows]).astype(dtype))
    np.testing.assert_allclose(found[[0, 1, 2, 4, 5]], [3, -2, 0, 5, 5], rtol=1e-4)
    assert np.isinf(found[3])


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_is_what_it_is_on_the_cpu(
    solver: FakeSolver, monkeypatch: pytest.MonkeyPatch, many: bool, value: float
) -> None:
    ways(monkeypatch, many)
    x = np.stack([np.eye(3), np.eye(3)]).astype(np.float32)
    x[1, 2, 0] = value
    for name in ("cholesky", "eigh", "eigvalsh", "svd", "singular_values"):
        f = lambda x, name=name: emitted(name, x, **({"full": False} if name == "svd" else {}))  # noqa: E731
        found = outcome(f, x)
        with smelt.stream("cpu"):
            wants = outcome(f, x)
        for a, want in zip(found, wants):
            np.testing.assert_allclose(a, want, rtol=1e-6)


@pytest.mark.parametrize("many", [False, True])
def test_singular_values_that_do_not_converge_are_the_cpus(
    solver: FakeSolver, monkeypatch: pytest.MonkeyPatch, many: bool
) -> None:
    ways(monkeypatch, many)
    x = np.random.default_rng(0).standard_normal((3, 4, 5)).astype(np.float32)
    solver.diverges = 5
    for name, attributes in (("svd", {"full": True}), ("svd", {"full": False}), ("singular_values", {})):
        solver.done.clear()
        f = lambda x, name=name, attributes=attributes: emitted(name, x, **attributes)  # noqa: E731
        found = outcome(f, x)
        assert solver.done == (["gesvdjBatched"] if many else ["gesvd"] * 3)
        with smelt.stream("cpu"):
            wants = outcome(f, x)
        for a, want in zip(found, wants, strict=True):
            np.testing.assert_array_equal(a, want)


def test_options_of_jacobis_method_end_with_their_plan(batches: FakeSolver) -> None:
    x = np.random.default_rng(0).standard_normal((3, 4, 5)).astype(np.float32)
    outcome(smelt.linalg.svd, x)
    found = solvers.library()
    assert found is not None and len(batches.jacobi) == 1
    found._plans.clear()
    _forget()
    gc.collect()
    assert not batches.jacobi


def test_many_places_of_results(batches: FakeSolver) -> None:
    """Results that are kept lie in new places, whose addresses take those of others' turn."""
    f = smelt.compile(lambda a, b: smelt.linalg.solve(a, b))
    x = np.random.default_rng(0).standard_normal((3, 4, 4)).astype(np.float32) + 4 * np.eye(4, dtype=np.float32)
    kept = []
    for i in range(20):
        kept.append(f(smelt.array(x), smelt.array(np.full((3, 4, 2), i, np.float32))))
    for i, found in enumerate(kept):
        np.testing.assert_allclose(np.array(found), np.linalg.solve(x, np.full((3, 4, 2), i, np.float32)), rtol=1e-4)


def test_inverses_by_factors(batches: FakeSolver) -> None:
    """Of matrices that are too large for the function that inverts at once."""
    ran("inv", [(2, 33, 33)], np.float64)
    assert batches.done == ["getrfBatched", "getriBatched"]


def test_more_matrices_than_are_taken_at_once(batches: FakeSolver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eigenvalues, "_MOST_AT_ONCE", 2)
    batches.most = 2
    for count in (2, 4, 5):
        batches.done.clear()
        ran("eigh", [(count, 3, 3)], np.float32)
        assert batches.done == ["syevBatched"] * -(-count // 2)


def test_older_libraries(batches: FakeSolver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(FakeSolver, "cusolverDnXsyevBatched")
    ran("eigh", [(3, 4, 4)], np.float32)
    assert batches.done == ["syevd"] * 3


def test_without_cublas(solver: FakeSolver, monkeypatch: pytest.MonkeyPatch) -> None:
    ways(monkeypatch, many=True)
    with installed(monkeypatch, solvers, {"cusolver": solver}):
        for name, done in (("inv", ["getrf", "getrs"] * 2), ("solve_triangular", []), ("cholesky", ["potrfBatched"])):
            solver.done.clear()
            ran(name, [(2, 3, 3)] * (2 if name == "solve_triangular" else 1), np.float32)
            assert solver.done == done


def test_what_it_is_asked_for(fake: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few large matrices one by one, many by functions for batches; the CPU has small ones, and nothing."""
    found = FakeSolver(fake)
    for name, value in (("LEAST", 10), ("MOST", 4), ("LEAST_ELEMENTS", 100), ("MOST_ROWS", 20)):
        monkeypatch.setattr(plan, name, value)
    monkeypatch.setattr(plan.PlanOfMany, "rows", 9)
    with installed(monkeypatch, solvers, {"cusolver": found, "cublas": found.blas}):
        for shape, done in (
            ((8, 8), []), ((10, 10), ["getrf", "getrs"]), ((5, 4, 4), []), ((20, 3, 3), ["matinvBatched"]),
            ((2, 8, 8), ["matinvBatched"]), ((4, 12, 12), ["getrf", "getrs"] * 4), ((5, 12, 12), ["matinvBatched"]),
            ((5, 21, 21), []), ((2, 12, 12), ["getrf", "getrs"] * 2),
        ):  # fmt: skip
            found.done.clear()
            ran("inv", [shape], np.float32)
            assert found.done == done, shape
        found.without = 11
        found.done.clear()
        ran("inv", [(12, 12)], np.float32)
        with override(libraries=False):
            ran("inv", [(11, 11)], np.float32)
        assert not found.done
        assert np.array(smelt.linalg.cholesky(smelt.zeros((0, 3, 3)))).shape == (0, 3, 3)
        assert np.array(smelt.linalg.inv(smelt.zeros((200, 0, 0)))).shape == (200, 0, 0)


@pytest.mark.parametrize(("code", "kind"), [(7, DeviceError), (2, OutOfMemoryError)])
def test_errors(solver: FakeSolver, code: int, kind: type[Exception]) -> None:
    solver.fails = code
    with pytest.raises(kind, match="cusolverDnXpotrf"):
        smelt.eval(smelt.linalg.cholesky(smelt.array(np.eye(4, dtype=np.float32) * 2)))
    solver.fails = 0
    ran("cholesky", [(4, 4)], np.float32)

"""`smelt.linalg`: values against NumPy, gradients in closed form, batches, and errors where they are made."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir.errors import LibraryError
from smelt.ir.settings import override
from smelt.runtime.compile import compile_text

DEVICES = ("cpu", "metal:sim", "reference")
each_device = pytest.mark.parametrize("device", DEVICES)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(11)


def positive(rng: np.random.Generator, *shape: int) -> np.ndarray:
    x = rng.standard_normal(shape)
    return x @ np.swapaxes(x, -1, -2) + shape[-1] * np.eye(shape[-1])


def wide(x: np.ndarray) -> smelt.array:
    return smelt.array(x, smelt.float64)


def close(found: Any, want: Any, rtol: float = 1e-10) -> None:
    np.testing.assert_allclose(np.asarray(found), want, rtol=rtol, atol=rtol)


@each_device
def test_cholesky(rng: np.random.Generator, device: str) -> None:
    with smelt.stream(smelt.Device(device)):
        for shape in ((3, 3), (1, 1), (0, 0), (0, 4, 4), (2, 5, 6, 6), (40, 40)):
            a = positive(rng, *shape)
            close(smelt.linalg.cholesky(wide(a)), np.linalg.cholesky(a))
            upper = smelt.linalg.cholesky(wide(a), True)
            close(upper, np.swapaxes(np.linalg.cholesky(a), -1, -2))
            assert smelt.linalg.cholesky(smelt.array(a.astype(np.float32))).dtype == smelt.float32


def test_cholesky_takes_the_symmetric_part(rng: np.random.Generator) -> None:
    a, skew = positive(rng, 4, 4), rng.standard_normal((4, 4))
    close(smelt.linalg.cholesky(wide(a + skew - skew.T)), np.linalg.cholesky(a))


@each_device
def test_qr(rng: np.random.Generator, device: str) -> None:
    with smelt.stream(smelt.Device(device)):
        for shape in ((4, 3), (3, 4), (3, 3), (1, 1), (0, 0), (3, 0), (0, 3), (0, 4, 2), (2, 5, 4, 3), (50, 20)):
            a = rng.standard_normal(shape)
            q, r = smelt.linalg.qr(wide(a))
            close(q @ r, a)
            square = np.asarray(smelt.matrix_transpose(q) @ q)
            close(square, np.broadcast_to(np.eye(q.shape[-1]), square.shape))
            close(smelt.tril(r, -1), np.zeros(r.shape))


@each_device
def test_solve_triangular(rng: np.random.Generator, device: str) -> None:
    with smelt.stream(smelt.Device(device)):
        for upper in (False, True):
            a = rng.uniform(-0.5, 0.5, (2, 1, 4, 4)) + 2 * np.eye(4)
            b = rng.standard_normal((5, 4, 3))
            triangle = np.triu(a) if upper else np.tril(a)
            close(smelt.linalg.solve_triangular(wide(a), wide(b), upper=upper), np.linalg.solve(triangle, b[None]))
            x = smelt.linalg.solve_triangular(wide(a[0, 0]), wide(b[0, :, 0]), upper=upper)
            close(x, np.linalg.solve(triangle[0, 0], b[0, :, 0]))
            one = smelt.linalg.solve_triangular(wide(a), wide(b[0, :, 0]), upper=upper)
            assert one.shape == (2, 1, 4)
            for shape in ((0, 0), (3, 0)):
                n, k = shape
                assert smelt.linalg.solve_triangular(wide(np.eye(n)), wide(np.ones((n, k))), upper=upper).shape == shape


def test_substitution_is_as_exact_as_the_numbers_allow(rng: np.random.Generator) -> None:
    """A graded triangular matrix: elimination with exchanges of rows would lose the small components."""
    n = 12
    a = np.tril(rng.uniform(0.5, 1.0, (n, n))) * 10.0 ** np.arange(n)[:, None]
    x = rng.standard_normal((n, 2))
    for upper, matrix in ((False, a), (True, a[::-1, ::-1])):
        right = x[::-1] if upper else x
        found = np.asarray(smelt.linalg.solve_triangular(wide(matrix), wide(matrix @ right), upper=upper))
        np.testing.assert_allclose(found, right, rtol=1e-9)


@pytest.mark.parametrize("n", [63, 64, 65, 200])
def test_solve_triangular_in_blocks(rng: np.random.Generator, n: int) -> None:
    a, b = rng.uniform(-0.1, 0.1, (2, n, n)) + 2 * np.eye(n), rng.standard_normal((n, 3))
    for upper, triangle in ((False, np.tril(a)), (True, np.triu(a))):
        found = smelt.linalg.solve_triangular(wide(a), wide(b), upper=upper)
        np.testing.assert_allclose(triangle @ np.asarray(found), np.broadcast_to(b, (2, n, 3)), atol=1e-10)


def test_dtypes_meet() -> None:
    x = smelt.linalg.solve_triangular(wide(np.eye(2)), smelt.array([1.0, 2.0]))
    assert x.dtype == smelt.float64


# Gradients


def logdet(a: smelt.array) -> smelt.array:
    return 2 * smelt.log(smelt.diagonal(smelt.linalg.cholesky(a), axis1=-2, axis2=-1)).sum()


@each_device
def test_gradient_of_the_log_determinant_is_the_inverse(rng: np.random.Generator, device: str) -> None:
    a = positive(rng, 5, 5)
    with smelt.stream(smelt.Device(device)):
        close(smelt.grad(logdet)(wide(a)), np.linalg.inv(a))
        close(smelt.compile(smelt.grad(logdet))(wide(a)), np.linalg.inv(a))
        many = positive(rng, 3, 5, 5)
        close(smelt.vmap(smelt.grad(logdet))(wide(many)), np.linalg.inv(many))
        close(smelt.grad(logdet)(wide(many)), np.linalg.inv(many))


def test_second_derivative_of_the_log_determinant(rng: np.random.Generator) -> None:
    """-A⁻¹ T A⁻¹ along T."""
    a, t = positive(rng, 4, 4), rng.standard_normal((4, 4))
    t = t + t.T
    _, (found,) = smelt.jvp(smelt.grad(logdet), [wide(a)], [wide(t)])
    inverse = np.linalg.inv(a)
    close(found, -inverse @ t @ inverse)


def test_gradient_of_upper_is_that_of_lower(rng: np.random.Generator) -> None:
    a, weights = wide(positive(rng, 4, 4)), wide(np.tril(rng.standard_normal((4, 4))))
    lower = smelt.grad(lambda a: (weights * smelt.linalg.cholesky(a)).sum())(a)
    upper = smelt.grad(lambda a: (weights.T * smelt.linalg.cholesky(a, upper=True)).sum())(a)
    close(lower, np.asarray(upper))
    close(lower, np.asarray(lower).T)


def test_least_squares_by_qr_has_the_gradient_of_the_normal_equations(rng: np.random.Generator) -> None:
    a, y = rng.standard_normal((6, 3)), rng.standard_normal(6)

    def residual(a: smelt.array) -> smelt.array:
        q, r = smelt.linalg.qr(a)
        x = smelt.linalg.solve_triangular(r, q.T @ wide(y), upper=True)
        return ((a @ x - wide(y)) ** 2).sum()

    x = np.linalg.lstsq(a, y, rcond=None)[0]
    close(smelt.grad(residual)(wide(a)), 2 * np.outer(a @ x - y, x), 1e-8)


@pytest.mark.parametrize("shape", [(2, 4), (4, 2), (3, 3)])
def test_derivative_of_one_of_the_results_of_qr(rng: np.random.Generator, shape: tuple[int, int]) -> None:
    a, t = rng.standard_normal(shape), rng.standard_normal(shape)
    for which in (0, 1):
        _, (found,) = smelt.jvp(lambda a, which=which: smelt.linalg.qr(a)[which], [wide(a)], [wide(t)])
        h = 1e-6
        want = (np.linalg.qr(a + h * t)[which] - np.linalg.qr(a - h * t)[which]) / (2 * h)
        close(found, want, 1e-6)


def test_results_that_nobody_reads(rng: np.random.Generator) -> None:
    a = rng.standard_normal((4, 3))
    only_r = smelt.compile(lambda a: smelt.linalg.qr(a)[1] * 2)
    close(only_r(wide(a)), 2 * np.linalg.qr(a)[1])
    q, r = smelt.linalg.qr(wide(a))
    del r
    close(q, np.linalg.qr(a)[0])


# Batches


@pytest.mark.host("it counts kernels of the CPU")
def test_vmap_on_any_axis_is_one_call(rng: np.random.Generator) -> None:
    many = positive(rng, 7, 3, 3)
    for axis in range(3):
        x = wide(np.moveaxis(many, 0, axis))
        close(smelt.vmap(smelt.linalg.cholesky, in_axes=axis)(x), np.linalg.cholesky(many))
        traced = smelt.compile(smelt.vmap(smelt.linalg.cholesky, in_axes=axis)).trace(x)
        program = traced.lower().compile()
        assert [k.schedule for k in program.kernels].count("host") == 1


def test_vmap_over_right_hand_sides_leaves_the_matrix_alone(rng: np.random.Generator) -> None:
    a, b = np.tril(positive(rng, 3, 3)), rng.standard_normal((6, 3, 2))
    solve = smelt.vmap(smelt.linalg.solve_triangular, in_axes=(None, 0))
    close(solve(wide(a), wide(b)), np.linalg.solve(a, b))
    close(smelt.grad(lambda a: solve(a, wide(b)).sum())(wide(a)), sum(
        np.asarray(smelt.grad(lambda a, x=x: smelt.linalg.solve_triangular(a, wide(x)).sum())(wide(a))) for x in b
    ))  # fmt: skip


@each_device
def test_in_loops_and_branches(rng: np.random.Generator, device: str) -> None:
    many = positive(rng, 4, 3, 3)
    with smelt.stream(smelt.Device(device)):
        total, factors = smelt.scan(
            lambda c, a: (c + smelt.linalg.cholesky(a), smelt.linalg.cholesky(a)), wide(np.zeros((3, 3))), wide(many)
        )
        close(factors, np.linalg.cholesky(many))
        close(total, np.linalg.cholesky(many).sum(0))
        chosen = smelt.cond(smelt.array(True), lambda a: smelt.linalg.qr(a)[1], smelt.linalg.cholesky, wide(many[0]))
        close(chosen, np.linalg.qr(many[0])[1])


# Errors

BAD = np.stack([np.eye(3), np.eye(3), -np.eye(3)]).astype(np.float32)


def factor(a: smelt.array) -> smelt.array:
    return smelt.linalg.cholesky(a) * 2


LINE = inspect.getsourcelines(factor)[1] + 1
WAYS: dict[str, Callable[[smelt.array], Any]] = {
    "op by op": factor,
    "compiled": smelt.compile(factor),
    "vmap": smelt.vmap(factor),
    "compiled vmap": smelt.compile(smelt.vmap(factor)),
    "grad": smelt.grad(lambda a: factor(a).sum()),
    "compiled vmap of grad": smelt.compile(smelt.vmap(smelt.grad(lambda a: factor(a).sum()))),
    "in a large graph": lambda a: factor(a) + smelt.zeros((300, 300)).sum() + smelt.exp(smelt.ones((200, 200))).sum(),
}


@pytest.mark.parametrize("way", WAYS)
@each_device
def test_a_matrix_that_is_not_positive_definite(way: str, device: str) -> None:
    f = WAYS[way]
    message = r"smelt.cholesky: matrix 2 of the batch is not positive definite; a f32\[3,3,3\]; at "
    with smelt.stream(smelt.Device(device)):
        for _ in range(2):
            with pytest.raises(LibraryError, match=f"^{message}{re.escape(__file__)}:{LINE}$") as caught:
                smelt.eval(f(smelt.array(BAD)))
            assert isinstance(caught.value, np.linalg.LinAlgError) and isinstance(caught.value, smelt.SmeltError)
            good = f(smelt.array(np.abs(BAD)))  # what failed before works
            assert np.isfinite(np.asarray(good)).all()


@each_device
def test_a_text_names_its_own_line(device: str) -> None:
    source = 'func.func @main(%a: tensor<2x2xf32>) -> tensor<2x2xf32> {\n  %0 = "smelt.cholesky"(%a) : '
    source += "(tensor<2x2xf32>) -> tensor<2x2xf32>\n  return %0 : tensor<2x2xf32>\n}\n"
    run = compile_text(source, smelt.Device(device))
    with pytest.raises(LibraryError, match=r"is not positive definite; a f32\[2,2\]; at line 2, column 8 of the text$"):
        run([-np.eye(2, dtype=np.float32)])


def test_an_error_names_a_file_of_any_name(tmp_path: Path) -> None:
    file = str(tmp_path / 'größe "1" \\ 2.py')
    scope: dict[str, Any] = {"smelt": smelt}
    exec(compile("def f(x):\n    return smelt.linalg.cholesky(x)\n", file, "exec"), scope)
    for f in (scope["f"], smelt.compile(scope["f"])):
        with pytest.raises(LibraryError) as caught:
            smelt.eval(f(smelt.array(BAD)))
        assert str(caught.value).endswith(f"; at {file}:2")


def test_an_error_in_a_loop_and_in_a_branch() -> None:
    x = smelt.array(BAD)
    for f in (
        lambda: smelt.scan(lambda c, a: (c, factor(a)), smelt.array(0.0), x)[1],
        lambda: smelt.compile(lambda x: smelt.cond(x[0, 0, 0] > 0, factor, lambda a: a, x[2]))(x),
    ):
        with pytest.raises(LibraryError, match=rf"the matrix is not positive definite; a f32\[3,3\]; at .*:{LINE}$"):
            smelt.eval(f())
    kept = smelt.compile(lambda x: smelt.cond(x[0, 0, 0] < 0, factor, lambda a: a, x[2]))(x)
    assert np.array_equal(kept, BAD[2])  # the branch that is not taken does not run


def test_what_checked_kernels_report_before_an_error_belongs_to_that_run() -> None:
    """An index out of range in a run that also fails in a library; the next run has neither."""

    def f(x: smelt.array, i: smelt.array) -> smelt.array:
        return factor(smelt.exp(x[i]) - 1)

    with override(check=True):
        compiled = smelt.compile(f)
        good, bad = np.log1p(np.eye(3, dtype=np.float32)), np.log1p(-0.5 * np.eye(3, dtype=np.float32))
        x, inside = smelt.array(np.stack([good, bad])), smelt.array([0])
        assert np.array_equal(compiled(x, inside), 2 * np.eye(3)[None])
        with pytest.raises((LibraryError, IndexError)):
            smelt.eval(compiled(x, smelt.array([7])))
        with pytest.raises(LibraryError, match="matrix 0 of the batch"):
            smelt.eval(compiled(x, smelt.array([1])))
        np.testing.assert_allclose(compiled(x, inside), 2 * np.eye(3)[None], rtol=1e-6)


def test_nothing_runs_before_it_is_asked_for_and_nobody_asks_for_what_is_dropped() -> None:
    x = smelt.array(BAD)
    y = smelt.linalg.cholesky(x)
    smelt.eval(x)
    assert np.array_equal(smelt.compile(lambda a: (smelt.linalg.cholesky(a), a + 1)[1])(x), BAD + 1)
    with pytest.raises(LibraryError, match="matrix 2 of the batch"):
        y.tolist()
    with pytest.raises(LibraryError, match="matrix 2 of the batch"):  # and again
        smelt.eval(y)


@each_device
def test_a_zero_on_the_diagonal(device: str) -> None:
    a = smelt.array([[1.0, 0.0], [5.0, 0.0]])
    message = r"smelt.solve_triangular: the matrix is singular: its diagonal has a zero; a f32\[2,2\], b f32\[2,1\], "
    with smelt.stream(smelt.Device(device)), pytest.raises(LibraryError, match=message):
        smelt.eval(smelt.linalg.solve_triangular(a, smelt.ones(2)))


@each_device
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite(device: str, value: float) -> None:
    a = np.stack([np.eye(4), 2 * np.eye(4)]).astype(np.float32)
    a[0, 2, 1] = a[0, 1, 2] = value
    with smelt.stream(smelt.Device(device)):
        for f in (smelt.linalg.cholesky, smelt.compile(smelt.linalg.cholesky)):
            found = np.asarray(f(smelt.array(a)))
            assert not np.isfinite(found[0]).all()
            close(found[1], np.sqrt(2) * np.eye(4), 1e-6)
        q, r = smelt.linalg.qr(smelt.array(a))
        assert not np.isfinite(np.asarray(r)[0]).all()
        close(np.asarray(q @ r)[1], a[1], 1e-6)
        found = np.asarray(smelt.linalg.solve_triangular(smelt.array(a), smelt.ones((4, 1))))
        close(found[1], np.full((4, 1), 0.5), 1e-6)


@pytest.mark.parametrize("dtype", [smelt.float16, smelt.bfloat16, smelt.int32, smelt.bool_])
def test_other_dtypes_say_what_to_do(dtype: smelt.Dtype) -> None:
    x = smelt.eye(2).astype(dtype)
    message = rf"a is {dtype.name}, must be one of float32, float64, complex64, complex128; convert it first, e.g. "
    functions: list[Any] = [smelt.linalg.cholesky, smelt.linalg.qr, lambda a: smelt.linalg.solve_triangular(a, a)]
    for f in functions:
        with pytest.raises(TypeError, match=message):
            f(x)


def test_shapes_that_do_not_fit() -> None:
    ones = smelt.ones
    for f, message in (
        (lambda: smelt.linalg.cholesky(ones((2, 3))), "the last 2 axes of a must be (n, n), here (2, 3), with n = 2"),
        (lambda: smelt.linalg.cholesky(ones(3)), "a has 1 axes, must have at least 2: (n, n)"),
        (lambda: smelt.linalg.qr(ones(())), "smelt.qr: a has 0 axes, must have at least 2: (m, n)"),
        (lambda: smelt.linalg.solve_triangular(ones((2, 2)), ones((3, 1))), "here (3, 1), with n = 2"),
        (lambda: smelt.linalg.solve_triangular(ones((2, 2)), ones(())), "b is a number, must be a vector or matrices"),
        (lambda: smelt.linalg.solve_triangular(ones((4, 2, 2)), ones((3, 2, 1))), "batch axes (4,) and (3,)"),
    ):
        with pytest.raises(ValueError, match=re.escape(message)) as caught:
            f()
        assert re.search(rf"{re.escape(__file__)}:\d+$", str(caught.value))


@pytest.mark.parametrize("axes", [17, 31, 62])
def test_many_batch_axes(axes: int) -> None:
    a = np.array([[4, 2], [2, 3]], np.float32)
    if axes > 30 and np.lib.NumpyVersion(np.__version__) < "2.0.0":
        pytest.skip("arrays of this NumPy have 32 axes")
    many = smelt.reshape(smelt.array(a), (1,) * axes + (2, 2))
    for function in (
        smelt.linalg.cholesky,
        lambda x: smelt.linalg.qr(x)[1],
        lambda x: smelt.linalg.solve_triangular(x, x),
    ):
        wanted = np.asarray(function(smelt.array(a)))
        assert np.allclose(np.asarray(function(many)).reshape(2, 2), wanted)
    with pytest.raises(np.linalg.LinAlgError, match="is not positive definite"):
        smelt.eval(smelt.linalg.cholesky(-many))


@pytest.mark.parametrize("tier", ["ops", "program"])
def test_equal_graphs_of_other_lines_name_their_own(tier: str) -> None:
    bad = -smelt.eye(3)
    with override(tier=tier, small_work=0):
        for first in (True, False):
            with pytest.raises(np.linalg.LinAlgError) as caught:
                if first:
                    smelt.eval(smelt.linalg.cholesky(bad))
                else:
                    smelt.eval(smelt.linalg.cholesky(bad))
            line = caught.traceback[0].lineno + 1
            assert str(caught.value).endswith(f"test_linalg.py:{line}")


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 3), (2, 0, 3), (2, 3, 0)], ids=str)
def test_norms_of_nothing_are_zero(shape: tuple[int, ...]) -> None:
    x = smelt.zeros(shape)
    for order in (1, 2, 3, np.inf):
        found = smelt.linalg.vector_norm(x, axis=-1 if shape[-1] == 0 else shape.index(0), ord=order)
        np.testing.assert_array_equal(np.asarray(found), np.zeros([d for d in shape if d]))
    for order in ("fro", "nuc", 1, 2, np.inf):
        if len(shape) > 1:
            np.testing.assert_array_equal(np.asarray(smelt.linalg.matrix_norm(x, ord=order)), np.zeros(shape[:-2]))

"""What only a GPU shows: none of this module's tests goes to a driver without one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import smelt
from smelt.backends.cuda.dnn import attention_gradient as cudnn_gradient
from smelt.backends.gpu.devices import GPUS
from smelt.ir.errors import LibraryError
from smelt.ir.settings import override

from . import test_attention, test_attention_gradient, test_convolutions, test_solvers, test_transforms
from .needs import needs_cublas, needs_cudnn, needs_cufft, needs_cusolver, needs_gpu
from .test_products import ALL, CASES, numbers, ran

pytestmark = needs_gpu


def test_a_kernel_of_the_user_on_a_grid_that_is_no_multiple() -> None:
    kernel = smelt.fast.metal_kernel(
        "place", ["x"], ["y"], "uint i = thread_position_in_grid.x; y[i] = x[i] + threads_per_threadgroup.x;"
    )
    with smelt.stream("cuda"):
        x = smelt.zeros((10,))
        (y,) = kernel(inputs=[x], output_shapes=[(10,)], output_dtypes=[smelt.float32], grid=(10, 1, 1),
                      threadgroup=(4, 1, 1))  # fmt: skip
        assert np.array(y).tolist() == [4] * 8 + [2] * 2


def test_torch_on_the_same_gpu() -> None:
    torch = pytest.importorskip("torch")
    with smelt.stream("cuda"):
        t = torch.arange(12.0, device="cuda").reshape(3, 4)
        x = smelt.from_dlpack(t)
        assert x._buffer.home.address == t.data_ptr()
        y = x * 2
        assert torch.equal(torch.from_dlpack(y), t * 2) and torch.equal(torch.from_dlpack(smelt.from_dlpack(t.T)), t.T)
        with torch.cuda.stream(torch.cuda.Stream()):
            assert torch.from_dlpack(smelt.ones((4, 4)) @ y.T).sum().item() == 4 * 132


@needs_cublas
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
def test_products_by_the_library(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(GPUS, "nvidia", ALL)
    with smelt.stream("cuda"), override(tier="program", small_work=0):
        for f, shapes, _ in CASES.values():
            for times in (1, 16):
                ran(f, *(numbers(*(times * n for n in shape)) for shape in shapes), dtype=getattr(smelt, dtype))


@needs_cudnn
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
def test_convolutions_by_the_library(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(GPUS, "nvidia", ALL)
    with smelt.stream("cuda"), override(tier="program", small_work=0):
        for shape, filter, options in test_convolutions.CASES.values():
            test_convolutions.ran(shape, filter, getattr(smelt, dtype), **options)


@needs_cudnn
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_attention_by_the_library(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(GPUS, "nvidia", ALL)
    with smelt.stream("cuda"), override(tier="program", small_work=0):
        for name in test_attention.TAKEN:
            test_attention.ran(name, getattr(smelt, dtype))


@needs_cudnn
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_attention_gradients_by_the_library(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All at once and in parts; small sizes, odd lengths, and larger ones of which bits are compared."""
    monkeypatch.setitem(GPUS, "nvidia", ALL)
    with smelt.stream("cuda"), override(tier="program", small_work=0):
        for function, shapes, *_ in (*test_attention_gradient.TAKEN.values(), *test_attention_gradient.LEFT.values()):
            test_attention_gradient.gradients(function, shapes, getattr(smelt, dtype))
        shapes = [(2, 4, 300, 64), (2, 2, 200, 64), (2, 2, 200, 64)]
        test_attention_gradient.gradients(test_attention_gradient.plain, shapes, getattr(smelt, dtype))
        whole = gradient_bits(shapes, getattr(smelt, dtype))
        assert all(gradient_bits(shapes, getattr(smelt, dtype)) == whole for _ in range(4))
        monkeypatch.setattr(cudnn_gradient, "PART_BYTES", 1 << 21)
        test_attention_gradient.gradients(
            test_attention_gradient.plain, [(6, *shape[1:]) for shape in shapes], getattr(smelt, dtype)
        )


def gradient_bits(shapes: list[tuple[int, ...]], dtype: Any) -> list[bytes]:
    """Cotangents, as they lie in memory."""
    arrays = [smelt.array(numbers(*shape)).astype(dtype) for shape in (*shapes, shapes[0])]
    step = smelt.compile(
        lambda *x: smelt.vjp(test_attention_gradient.plain, list(x[:3]), [x[3]])[1],
        pipeline=test_attention_gradient.PIPELINE,
    )
    return [np.array(x.view(smelt.uint16)).tobytes() for x in step(*arrays)]


@needs_cufft
@pytest.mark.parametrize("shape", [(3, 8), (1,), (2,), (7,), (2, 3, 5), (1031,), (4, 97), (4099, 6), (5, 4096)])
def test_transforms_by_the_library(shape: tuple[int, ...]) -> None:
    with smelt.stream("cuda"), override(tier="program", small_work=0):
        for name, (f, real, *_) in test_transforms.CASES.items():
            if len(shape) > (name == "two") and shape[-1] > (name == "irfft"):
                test_transforms.ran(f, test_transforms.numbers(*shape, dtype=np.float32 if real else np.complex64))


@needs_cusolver
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64])
@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("name", test_solvers.CASES)
def test_linear_algebra_by_the_library(name: str, many: bool, dtype: type, monkeypatch: pytest.MonkeyPatch) -> None:
    """Matrix by matrix and by functions for batches, of few rows and of many."""
    test_solvers.ways(monkeypatch, many)
    with smelt.stream("cuda"), override(tier="program", small_work=0):
        for shapes in test_solvers.CASES[name][3]:
            for times in (1, 8 if name == "det" else 30):  # larger ones have no finite determinant
                large = [(*s[:-2], *(n if n == 1 else times * n for n in s[-2:])) for s in shapes]
                test_solvers.ran(name, large, dtype)


@needs_cusolver
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(520, 520), (560, 520), (520, 560), (300, 32, 32), (300, 20, 32), (300, 32, 20)])
def test_singular_values_by_the_library(shape: tuple[int, ...], dtype: type) -> None:
    """Of sizes that are its by themselves: by QR iterations and by Jacobi's method."""
    with smelt.stream("cuda"), override(tier="program", small_work=0):
        for name in ("svd", "svd, some", "values"):
            test_solvers.ran(name, [shape], dtype)


@needs_cusolver
@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("name", test_solvers.REFUSED)
def test_what_is_refused_by_the_library(name: str, many: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    test_solvers.ways(monkeypatch, many)
    f, bad, rule = test_solvers.REFUSED[name]
    given = np.stack([np.eye(3), bad * np.eye(3)]).astype(np.float32)
    refused = pytest.raises(LibraryError, match=f"matrix 1 of the batch is {rule}")
    with smelt.stream("cuda"), override(tier="program", small_work=0), refused:
        test_solvers.outcome(f, given)


@needs_cusolver
def test_what_has_no_factors_by_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    test_solvers.ways(monkeypatch, many=False)
    with smelt.stream("cuda"), override(tier="program", small_work=0):
        for f, rule in (
            (lambda x: smelt.linalg.cholesky(-x), "not positive definite"),
            (lambda x: smelt.linalg.solve(x - x, x), "singular"),
        ):
            with pytest.raises(LibraryError, match=f"{rule}.*test_gpu.py"):
                smelt.eval(smelt.compile(f)(smelt.eye(200)))
        nan = smelt.full((200, 200), float("nan"))
        assert np.isnan(np.array(smelt.linalg.cholesky(nan))).any()

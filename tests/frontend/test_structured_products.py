"""Products with structured matrices, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import hadamard

import smelt
from smelt.ir.errors import AttributeValueError, DTypeError, ShapeError

from .checks import check_gradient

RNG = np.random.default_rng(0)
A, B = RNG.standard_normal((100, 70)).astype(np.float32), RNG.standard_normal((70, 50)).astype(np.float32)


def spread(mask: np.ndarray, size: int, shape: tuple[int, int]) -> np.ndarray:
    return mask.repeat(size, -2).repeat(size, -1)[..., : shape[0], : shape[1]]


@pytest.mark.parametrize("size", [32, 64])
@pytest.mark.parametrize("masks", [(), ("out",), ("lhs",), ("rhs",), ("out", "lhs", "rhs")])
@pytest.mark.parametrize("kind", [bool, np.float32])
def test_blocks(size: int, masks: tuple[str, ...], kind: type) -> None:
    extents = {"out": (100, 50), "lhs": (100, 70), "rhs": (70, 50)}
    given = {m: RNG.integers(0, 3, tuple(-(-d // size) for d in extents[m])).astype(kind) for m in masks}
    full = {m: spread(given[m], size, extents[m]) if m in given else 1 for m in extents}
    arguments = {f"mask_{m}": smelt.array(x) for m, x in given.items()}
    found = smelt.block_masked_mm(smelt.array(A), smelt.array(B), size, **arguments)
    np.testing.assert_allclose(np.array(found), ((A * full["lhs"]) @ (B * full["rhs"])) * full["out"], atol=1e-3)


def test_cleared_blocks_hide_what_is_no_number() -> None:
    a, mask = A.copy(), np.ones((4, 3), bool)
    a[:32], mask[0] = np.nan, False
    found = smelt.block_masked_mm(smelt.array(a), smelt.array(B), 32, mask_lhs=smelt.array(mask))
    assert not np.array(found)[:32].any() and not np.isnan(np.array(found)).any()


SEGMENTS = [[[0, 10], [10, 70], [5, 5], [50, 5]], [0, 70], np.zeros((0, 2), int), [[[3, 60]]]]


@pytest.mark.parametrize("segments", SEGMENTS, ids=repr)
def test_segments(segments) -> None:
    pairs = np.array(segments)
    found = smelt.segmented_mm(smelt.array(A), smelt.array(B), smelt.array(pairs))
    want = np.array([A[:, s:e] @ B[s:e] for s, e in pairs.reshape(-1, 2)]).reshape(*pairs.shape[:-1], 100, 50)
    np.testing.assert_allclose(np.array(found), want, atol=1e-4)


@pytest.mark.parametrize("m", [1, 12, 20, 28])
@pytest.mark.parametrize("k", [0, 1, 3, 7])
def test_hadamard_transforms(m: int, k: int) -> None:
    n = m * 2**k
    small = np.array(smelt.hadamard_transform(smelt.eye(m), scale=1.0)).T
    np.testing.assert_array_equal(small @ small.T, m * np.eye(m))
    h = np.kron(small, hadamard(2**k))
    x = RNG.standard_normal((3, n)).astype(np.float32)
    np.testing.assert_allclose(np.array(smelt.hadamard_transform(smelt.array(x), 1.0)), x @ h.T, atol=1e-3)
    twice = smelt.hadamard_transform(smelt.array(x))
    np.testing.assert_allclose(np.linalg.norm(np.array(twice), axis=1), np.linalg.norm(x, axis=1), rtol=1e-5)


def test_transforms_of_other_dtypes_and_their_derivatives() -> None:
    assert smelt.hadamard_transform(smelt.ones((2, 8), smelt.float16)).dtype is smelt.float16
    assert smelt.hadamard_transform(smelt.ones(8, smelt.int32)).dtype is smelt.float32
    assert [smelt.hadamard_transform(smelt.array(5.0), scale).item() for scale in (None, 2)] == [5, 10]
    check_gradient(lambda x: smelt.hadamard_transform(x), RNG.standard_normal((2, 24)))
    check_gradient(lambda a, b: smelt.segmented_mm(a, b, smelt.array([[0, 3], [3, 7]])), A[:4, :7], B[:7, :3])
    mask = smelt.array([[True, False, True]])
    check_gradient(lambda a, b: smelt.block_masked_mm(a, b, 32, mask_lhs=mask), A[:2], B[:, :3])


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: smelt.hadamard_transform(smelt.ones((2, 0))), ShapeError, "m · 2ᵏ elements"),
        (lambda: smelt.hadamard_transform(smelt.ones((2, 7))), ShapeError, "m · 2ᵏ elements"),
        (lambda: smelt.hadamard_transform(smelt.ones(8, smelt.complex64)), DTypeError, "real numbers"),
        (lambda: smelt.block_masked_mm(A, B, 16), AttributeValueError, "block_size must be 32 or 64, is 16"),
        (lambda: smelt.block_masked_mm(A, B, mask_out=smelt.ones((1, 1))), ShapeError, "mask_out has one entry"),
        (lambda: smelt.block_masked_mm(A.astype(int), B.astype(int)), DTypeError, "floating point"),
        (lambda: smelt.block_masked_mm(A[0], B), ShapeError, "needs matrices"),
        (lambda: smelt.segmented_mm(A, B, smelt.array([1, 2, 3])), ShapeError, "pairs on the last axis"),
        (lambda: smelt.segmented_mm(A, B, smelt.array([0.0, 1.0])), DTypeError, "segments must be integers"),
        (lambda: smelt.segmented_mm(A, A, smelt.array([0, 1])), ShapeError, "two matrices that multiply"),
    ],
)
def test_errors_name_the_users_line(call, error, message) -> None:
    with pytest.raises(error, match=message) as info:
        call()
    assert "test_structured_products.py" in str(info.value)

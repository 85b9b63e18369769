"""The BLAS is asked whether it multiplies right before anything counts on it."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import smelt
from smelt.backends.cpu import blas, blas_check, products
from smelt.ir.settings import override

pytest.importorskip("scipy_openblas64")


def test_this_machines_blas_is_right() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = blas.library.__wrapped__()
    assert found is not None and found.wrong() == [] and found.core()


GEMM = ctypes.CFUNCTYPE(
    None, *[ctypes.c_int] * 3, *[ctypes.c_int64] * 3, ctypes.c_float, ctypes.c_void_p, ctypes.c_int64,
    ctypes.c_void_p, ctypes.c_int64, ctypes.c_float, ctypes.c_void_p, ctypes.c_int64,
)  # fmt: skip


@pytest.mark.parametrize("fault", ["one element off", "not written", "nothing for a transposed operand"])
def test_a_wrong_product_is_seen(fault: str) -> None:
    found = blas.library()
    assert found is not None
    right = GEMM(found.address(found.symbol("sgemm")))

    @GEMM
    def wrong(order, left, right_, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc):  # type: ignore[no-untyped-def]
        if fault == "not written" or (right_ == 112 and fault.startswith("nothing")):
            return
        right(order, left, right_, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
        if fault == "one element off":
            ctypes.c_float.from_address(c + 4 * (m * n - 1)).value += 1

    address = ctypes.cast(wrong, ctypes.c_void_p).value
    assert address is not None
    names = blas_check.wrong_products(lambda n: address if n == "sgemm" else found.address(found.symbol(n)))
    assert names == ["sgemm"]


def stub(monkeypatch: pytest.MonkeyPatch, answers: dict[str, list[str]]) -> None:
    """A library whose wrong functions depend on the kind of processor that it is loaded for."""

    class Stub(blas.Library):
        def core(self) -> str:
            return self.prefix

        def wrong(self) -> list[str]:
            return answers[self.prefix]

    def load(path: Path) -> blas.Library:
        return Stub(None, os.environ.get("OPENBLAS_CORETYPE", "own"), "")

    monkeypatch.setattr(blas, "_load", load)
    monkeypatch.setattr(shutil, "copy", lambda path, folder: path)
    monkeypatch.delenv("OPENBLAS_CORETYPE", raising=False)
    monkeypatch.setattr(blas_check, "PLAIN_CORES", dict.fromkeys(blas_check.PLAIN_CORES, "PLAIN"))


def test_wrong_kernels_give_way_to_plain_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    stub(monkeypatch, {"own": ["sgemm", "dgemm"], "PLAIN": []})
    with pytest.warns(RuntimeWarning, match=r"takes for own \(sgemm, dgemm\); smelt uses its kernels for PLAIN"):
        found = blas.library.__wrapped__()
    assert found.core() == "PLAIN" and "OPENBLAS_CORETYPE" not in os.environ


def test_without_right_kernels_smelt_does_without(monkeypatch: pytest.MonkeyPatch) -> None:
    stub(monkeypatch, {"own": ["sgemm"], "PLAIN": ["cgemv"]})
    with pytest.warns(RuntimeWarning, match="smelt does without"):
        assert blas.library.__wrapped__() is None
    stub(monkeypatch, {"MINE": ["sgemm"]})
    monkeypatch.setenv("OPENBLAS_CORETYPE", "MINE")  # the user's choice stays
    with pytest.warns(RuntimeWarning, match="set OPENBLAS_CORETYPE to a kind"):
        assert blas.library.__wrapped__() is None
    assert os.environ["OPENBLAS_CORETYPE"] == "MINE"


def test_products_without_a_blas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blas, "library", lambda: None)
    a = np.arange(12, dtype=np.float32).reshape(3, 4)
    with override(cache_size=1):
        found = smelt.compile(lambda x, y: smelt.exp(x @ y - x @ y) * (x @ y))(smelt.array(a), smelt.array(a.T.copy()))
    np.testing.assert_array_equal(np.array(found), a @ a.T)


def test_the_library_is_loaded_again() -> None:
    """In a process of its own: for another processor than it would choose."""
    program = """
from pathlib import Path
import scipy_openblas64, smelt
from smelt.backends.cpu import blas, blas_check
blas_check.SHAPES = blas_check.SHAPES[:1]
first = blas.Library.wrong
calls = []
blas.Library.wrong = lambda self: ["sgemm"] if not calls.append(self.core()) and len(calls) == 1 else first(self)
found = blas.library()
assert found is not None and len(calls) == 2, calls
assert found.core() != calls[0] or calls[0].upper() == blas_check.plain_core(), (found.core(), calls)
x = smelt.array([[1.0, 2.0], [3.0, 4.0]])
assert (x @ x).tolist() == [[7.0, 10.0], [15.0, 22.0]]
"""
    answer = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True,
        env={k: v for k, v in os.environ.items() if k != "OPENBLAS_CORETYPE"},
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr


@pytest.mark.parametrize(
    "units, parts, grid",
    [
        ((64, 64), 16, (4, 4)), ((64, 64), 2, (2, 1)), ((96, 8), 16, (16, 1)), ((8, 96), 16, (1, 16)),
        ((64, 64), 12, (4, 3)), ((1, 256), 16, (1, 16)), ((256, 1), 16, (16, 1)), ((2, 3), 16, (2, 3)),
        ((1, 1), 16, (1, 1)),
    ],
)  # fmt: skip
def test_products_are_cut_into_rectangles(units: tuple[int, int], parts: int, grid: tuple[int, int]) -> None:
    assert products._grid(*units, units[0] / units[1], parts) == grid

"""Every op in every dtype: it goes out as StableHLO, comes back with the same values, and has them in JAX; or an error
names it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import smelt
from smelt.backends.exchange.stablehlo import to_stablehlo
from smelt.ir.errors import IRError
from smelt.ir.library import Library
from smelt.ir.op import Op
from smelt.passes.inputs import inputs_of

from ..ops.cases import Case, cases, module_of, plain_ops, random_operands, reference
from ..ops.edges import edge_cases

#: A Python that has JAX; this one, unless the variable names another.
JAX = os.environ.get("SMELT_JAX_PYTHON", sys.executable)
#: Where a complex function jumps, CHLO's expansion has one value for both signs of zero.
JUMPS = {"arcsinh", "arccosh", "arcsin", "arccos", "arctanh", "arctan"}


def written(case: Case) -> str | None:
    """The text of a case; None where an error names the op."""
    try:
        return to_stablehlo(module_of(case))
    except IRError as error:
        assert str(error).startswith(f"smelt.{case.op.name} "), error
        return None


def compare(found: list[np.ndarray], case: Case, operands: list[np.ndarray], factor: float = 1) -> None:
    """What a library finds that is determined up to signs alone has the properties that the op states."""
    for a, aval in zip(found, case.results, strict=True):
        assert (a.shape, a.dtype) == (aval.shape, aval.dtype.numpy), case
    if isinstance(case.op, Library) and type(case.op).reference is Library.reference:
        tolerance = 1e-8 if case.avals[0].dtype.real is smelt.float64 else 2e-4
        for name, a, b in case.op.properties(operands, found, **case.kwargs):
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance, err_msg=f"{case}: {name}")
        return
    with np.errstate(all="ignore"):
        wanted = reference(case, operands)
    for a, b in zip(found, wanted, strict=True):
        kind = smelt.ir.dtypes.of(b.dtype)
        if not kind.is_inexact:
            np.testing.assert_array_equal(a, b, err_msg=str(case))
            continue
        wide, size = (np.complex128, kind.size // 2) if kind.is_complex else (np.float64, kind.size)
        tolerance = factor * {2: 8e-3, 4: 2e-5, 8: 1e-9}[size]
        np.testing.assert_allclose(
            a.astype(wide), b.astype(wide), rtol=tolerance, atol=tolerance, err_msg=f"{case} of {operands}"
        )


def back(text: str, operands: list[np.ndarray]) -> list[np.ndarray]:
    found = smelt.from_stablehlo(text)(*[smelt.array(x, x.dtype) for x in operands])
    return [np.array(x) for x in (found if isinstance(found, tuple) else (found,))]


@pytest.mark.parametrize("op", plain_ops(), ids=lambda op: op.name)
def test_back_again(op: Op) -> None:
    rng = np.random.default_rng(5)
    for case in cases(op):
        if (text := written(case)) is not None:
            operands = random_operands(case, rng)
            compare(back(text, operands), case, operands)


@pytest.mark.parametrize("op", [op for op in plain_ops() if op.kind == "library"], ids=lambda op: op.name)
def test_batches_and_empty_matrices(op: Op) -> None:
    rng = np.random.default_rng(8)
    for case in edge_cases(op)[::9]:
        if (text := written(case)) is not None:
            operands = random_operands(case, rng)
            compare(back(text, operands), case, operands, 8)


@pytest.mark.parametrize("op", [op for op in plain_ops() if op.kind == "elementwise"], ids=lambda op: op.name)
def test_special_values(op: Op) -> None:
    """Infinities, NaN, signed zeros, the largest and the least numbers, the ends of integers."""
    rng = np.random.default_rng(6)
    for case in cases(op):
        jumps = op.name in JUMPS and any(a.dtype.is_complex for a in case.avals)
        if jumps or (text := written(case)) is None:
            continue
        for turn in range(2):
            operands = inputs_of(case.avals, "special", turn, rng)
            compare(back(text, operands), case, operands)


def test_in_jax(tmp_path: Path) -> None:
    if subprocess.run([JAX, "-c", "import jax"], capture_output=True).returncode:
        pytest.skip("JAX is not installed; SMELT_JAX_PYTHON names a Python that has it")
    rng, written_cases = np.random.default_rng(7), {}
    for case in (case for op in plain_ops() for case in cases(op)):
        if (text := written(case)) is None:
            continue
        name, operands = f"{len(written_cases):04}", random_operands(case, rng)
        (tmp_path / f"{name}.mlir").write_text(text, encoding="utf-8")
        np.savez(tmp_path / f"{name}.in.npz", **{f"a{i}": x for i, x in enumerate(operands)})
        written_cases[name] = (case, operands)
    script = Path(__file__).parent / "run_in_jax.py"
    done = subprocess.run([JAX, str(script), str(tmp_path)], capture_output=True, text=True)
    assert not done.returncode, done.stderr[-4000:]
    for name, (case, operands) in written_cases.items():
        with np.load(tmp_path / f"{name}.out.npz") as file:
            found = [file[f"r{i}"] for i in range(len(file.files))]
        compare([x.view(w.dtype) for x, w in zip(found, reference(case, operands))], case, operands, 2)

"""Programs of smelt as StableHLO: in StableHLO's interpreter, in JAX, and back again; as linalg, run by LLVM."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir import stablehlo
from smelt.ir.custom_call import Target, register_target
from smelt.ir.errors import ArgumentTypeError, TreeError

from .programs_of_smelt import PROGRAMS, flat

#: What StableHLO's interpreter does not know, though compilers do.
NOT_INTERPRETED = ("fft", "cholesky", "cholesky_grad", "linear_algebra", "linear_algebra_grad")
#: A Python that has JAX; this one, unless the variable names another.
JAX = os.environ.get("SMELT_JAX_PYTHON", sys.executable)


def compare(found: list[np.ndarray], name: str) -> None:
    function, arguments = PROGRAMS[name]
    wanted = flat(function(*map(smelt.array, arguments)))
    assert len(found) == len(wanted)
    for i, (a, b) in enumerate(zip(found, wanted)):
        assert (a.shape, a.dtype) == (b.shape, b.dtype), f"{name}: result {i}"
        size = float(np.abs(b.astype(float)).max(initial=1e-3))
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=3e-5 * size, err_msg=f"{name}: result {i}")


def written(name: str) -> str:
    function, arguments = PROGRAMS[name]
    return smelt.to_stablehlo(function, *map(smelt.array, arguments))


@pytest.mark.parametrize("name", [n for n in PROGRAMS if n not in NOT_INTERPRETED])
def test_interpreted(name: str) -> None:
    compare(stablehlo.evaluate(written(name), PROGRAMS[name][1]), name)


@pytest.mark.parametrize("name", PROGRAMS)
def test_back_again(name: str) -> None:
    f = smelt.from_stablehlo(written(name))
    found = f(*map(smelt.array, PROGRAMS[name][1]))
    compare([np.array(x) for x in (found if isinstance(found, tuple) else (found,))], name)


def test_in_jax(tmp_path: Path) -> None:
    if subprocess.run([JAX, "-c", "import jax"], capture_output=True).returncode:
        pytest.skip("JAX is not installed; SMELT_JAX_PYTHON names a Python that has it")
    for name in PROGRAMS:
        (tmp_path / f"{name}.mlir").write_text(written(name), encoding="utf-8")
        np.savez(tmp_path / f"{name}.in.npz", **{f"a{i}": x for i, x in enumerate(PROGRAMS[name][1])})
    script = Path(__file__).parent / "run_in_jax.py"
    done = subprocess.run([JAX, str(script), str(tmp_path)], capture_output=True, text=True)
    assert not done.returncode, done.stderr[-4000:]
    for name in PROGRAMS:
        with np.load(tmp_path / f"{name}.out.npz") as file:
            compare([file[f"r{i}"] for i in range(len(file.files))], name)


def test_captured_arrays_are_constants() -> None:
    w = smelt.random.normal((40, 3))
    text = smelt.to_stablehlo(lambda x: x @ w, smelt.zeros((2, 40)))
    x = np.ones((2, 40), np.float32)
    np.testing.assert_allclose(stablehlo.evaluate(text, [x])[0], x @ np.array(w), rtol=1e-5)


def test_bytecode() -> None:
    data = smelt.to_stablehlo(smelt.erf, smelt.zeros(3), bytecode=True)
    x = smelt.array([0.1, 0.5, -2.0])
    np.testing.assert_allclose(np.array(smelt.from_stablehlo(data)(x)), np.array(smelt.erf(x)), rtol=1e-6)


def test_arguments() -> None:
    with pytest.raises(TreeError, match="needs a function"):
        smelt.to_stablehlo(3)
    with pytest.raises(ArgumentTypeError, match="bytecode must be"):
        smelt.to_stablehlo(smelt.exp, smelt.zeros(3), bytecode="yes")
    register_target(Target("test.sines", np.sin))
    message = r"smelt.custom_call @test.sines is code of this program.*; at .*test_out.py:\d+"
    with pytest.raises(smelt.SmeltError, match=message):
        kind = smelt.ShapeDtype((3,), smelt.float32)
        smelt.to_stablehlo(lambda a: smelt.custom_call("test.sines", a, types=kind), smelt.zeros(3))


@pytest.mark.parametrize("write", [smelt.to_stablehlo, smelt.to_linalg])
def test_results_that_are_no_arrays(write: Any) -> None:
    """None is an empty tree, as in JAX; nothing else is left out in silence."""
    assert write(lambda x: {"y": x, "z": (None, x)}, smelt.zeros(3)).count("-> (tensor<3xf32>, tensor<3xf32>)") == 1
    for value in (3.0, True, "text", np.float32(2)):
        with pytest.raises(TreeError, match=r"result 1 of lambda_ is .*return smelt.array of it.*test_out.py"):
            write(lambda x, v=value: (x, v), smelt.zeros(3))

"""Programs written as linalg run through upstream's passes and LLVM."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir import mlir

from .programs_of_smelt import PROGRAMS, flat

#: From linalg on tensors to LLVM, by upstream's passes alone.
TO_LLVM = ",".join((
    "one-shot-bufferize{bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map}",
    "buffer-results-to-out-params{hoist-static-allocs=true modify-public-functions=true}",
    "convert-linalg-to-loops", "convert-scf-to-cf", "expand-strided-metadata", "lower-affine", "convert-math-to-llvm",
    "convert-math-to-libm", "finalize-memref-to-llvm", "convert-func-to-llvm", "convert-arith-to-llvm",
    "convert-cf-to-llvm", "convert-index-to-llvm", "reconcile-unrealized-casts",
))  # fmt: skip


def run(text: str, arguments: list[np.ndarray], result: np.ndarray) -> np.ndarray:
    """What the program computes. Its function is renamed: a process has a `main` of its own."""
    with mlir.lock:
        ir = mlir.ir
        with ir.Context():
            module = ir.Module.parse(text.replace("@main", "@forward"))
            function: Any = next(op for op in module.body.operations if str(op.name).strip('"') == "forward")
            function.attributes["llvm.emit_c_interface"] = ir.UnitAttr.get()
            mlir.module("passmanager").PassManager.parse(f"builtin.module({TO_LLVM})").run(module.operation)
            engine = mlir.module("execution_engine").ExecutionEngine(module)
            descriptor = mlir.module("runtime").get_ranked_memref_descriptor
            out = np.zeros_like(result)
            engine.invoke("forward", *[ctypes.pointer(ctypes.pointer(descriptor(x))) for x in (*arguments, out)])
    return out


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

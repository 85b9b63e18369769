"""What the bindings load, and when."""

from __future__ import annotations

import os
import subprocess
import sys


def test_the_first_compile_imports_no_classes_of_the_llvm_dialect() -> None:
    code = """
import sys, smelt
from smelt.ir import mlir
from smelt.ir.context import context
for shape in ((4,), (300, 300)):
    smelt.eval(smelt.compile(lambda x: smelt.softmax(smelt.exp(x) * 2, axis=-1))(smelt.ones(shape)))
print([name for name in sys.modules if "llvm_ops" in name])
plain = mlir.plain_attribute("#llvm.linkage<internal>", context())
print(plain == mlir.ir.Attribute.parse("#llvm.linkage<internal>", context()), plain)
print([name.rpartition(".")[2] for name in sys.modules if "llvm_ops" in name])  # who asks for them has them
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ, "SMELT_CACHE": "0"}
    )
    assert done.stdout.splitlines() == ["[]", "True #llvm.linkage<internal>", "['_llvm_ops_gen']"]


def test_options_of_llvm_that_nobody_knows_or_that_are_set_twice_do_nothing() -> None:
    code = """
import os, smelt
from unittest import mock
from smelt.ir import mlir
with mock.patch.object(os, "listdir", lambda folder: []):
    print(mlir.set_llvm_options("-disable-lsr"))  # bindings without LLVM's command line
first, second = mlir.set_llvm_options("-no-such-option", "-disable-lsr"), mlir.set_llvm_options("-disable-lsr")
print(first == second)
print(smelt.compile(lambda x: smelt.exp(x).sum())(smelt.zeros((400, 300))).item())
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ, "SMELT_CACHE": "0"}
    )
    assert done.stdout.splitlines() == ["False", "True", "120000.0"]
    assert not done.stderr

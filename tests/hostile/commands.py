"""Words of a command line, right and wrong, in any order: an exit status and a message come back, never a traceback."""

from __future__ import annotations

import contextlib
import io
import os
import random
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import numpy as np

from smelt.ir.settings import override

from .mutate import NUMBERS, ODD, mutated_text
from .sources import PIPELINES, modules

COMMANDS = ("run", "dump", "diff", "reduce", "verify", "view", "cache", "check-metal", "opt", "opt", "opt", "")
WORDS = (
    "a.mlir", "b.mlir", "p.py:f", "p.py:nope", "p.py", "missing.mlir", "garbage", "a.npy", "f32[2,3]", "f32[2,",
    "f32[-1]", "f32[9999999999,99999999]", "i33[2]", "--input", "--stage=fuse", "--stage=all", "--stage=nope",
    "--short", "--emit=msl", "--emit=llvm", "--emit=stablehlo", "--emit=cost", "--emit=dot", "--emit=linalg",
    "--emit=nope", "-o", "out", "--device", "metal:sim", "cpu", "--strict", "--mlir-timing", "--verify-diagnostics",
    "--split-input-file", "--list-passes", "--list-ops", "--values", "--mlir-print-ir-after-all",
    "--mlir-print-ir-after-change", "--run-reproducer", "-", "--help", "--mlir-pass-statistics", "--remarks",
    "--mlir-print-ir-tree-dir=t", "--only", "--set", "a=b", "--color", "--", "", "--gpu=apple9", "--gpu=nvidia",
    "--gpu=nope", "--metal-dir", "--lines", "--message", "--timeout=1", "--timeout=nan", "--function",
    "--custom-calls", "--debug", "clear",
)  # fmt: skip
PROGRAM = "import smelt\ndef f(x): return smelt.softmax(x * 2)\ndef g(x): return x + 1\n"


def _words(rng: random.Random) -> list[str]:
    found = []
    for _ in range(rng.randint(0, 6)):
        kind = rng.randrange(12)
        if kind == 0:
            found.append(f"--pass-pipeline={rng.choice(PIPELINES)}")
        elif kind == 1:
            found.append(f"--pipeline={mutated_text(rng.choice(PIPELINES), PIPELINES, ('fuse', 'dce'), rng)}")
        elif kind == 2:
            found.append(rng.choice((*NUMBERS, *ODD, f"--opt-bisect-limit={rng.choice(NUMBERS)}")))
        else:
            found.append(rng.choice(WORDS))
    return found


def command(rng: random.Random) -> Callable[[], None]:
    """A command line of `smelt` or `smelt-opt`, in a folder with files of each kind."""
    module, other, garbage = rng.choice(modules()), rng.choice(modules()), rng.randbytes(200)
    name, words, apart = rng.choice(COMMANDS), _words(rng), rng.random() < 0.1
    if name not in ("opt", "") and rng.random() < 0.7:
        words = [rng.choice(("p.py:f", "a.mlir")), "f32[2,3]", *words]

    def run() -> None:
        from smelt.tools import cli

        with tempfile.TemporaryDirectory() as folder, override(cache_dir=folder), _inside(folder):
            for file, text in (("a.mlir", module), ("b.mlir", other), ("p.py", PROGRAM)):
                Path(file).write_text(text, encoding="utf-8", errors="replace")
            Path("garbage").write_bytes(garbage)
            np.save("a.npy", np.ones((2, 3), np.float32))
            out = io.StringIO()
            heard = contextlib.redirect_stdout(out), contextlib.redirect_stderr(out)
            with mock.patch.object(sys, "stdin", io.StringIO(module)), heard[0], heard[1]:
                status = cli.main([name, *words] if name else words, isolate=apart)
        said = out.getvalue()
        assert isinstance(status, int), f"the exit status is {status!r}"
        assert "--debug" in words or "Traceback (most recent" not in said, said[-1500:]

    run.subject = f"smelt {name} {words}\n{module}"  # type: ignore[attr-defined]
    return run


@contextlib.contextmanager
def _inside(folder: str) -> object:
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


SUBJECTS = {"commands": command}

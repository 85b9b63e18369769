"""What is mutated: the modules of the tests, and pipelines."""

from __future__ import annotations

import functools
from pathlib import Path

TESTS = Path(__file__).parent.parent

PIPELINES = (
    "fixpoint(inline,batch,jvp,linearize,transpose),canonicalize,cse,dce,fuse,plan-buffers", "canonicalize", "cse,dce",
    "inline", "batch", "jvp", "linearize", "transpose", "remat", "fuse", "fuse{contractions=true},plan-buffers",
    "place{dtypes=f32}", "place{kinds=control}", "dce",
)  # fmt: skip


def texts(*patterns: str) -> tuple[str, ...]:
    """The files of the tests that some patterns name."""
    found = [path for pattern in patterns for path in sorted(TESTS.glob(pattern))]
    return tuple(path.read_text(encoding="utf-8") for path in found)


@functools.cache
def modules() -> tuple[str, ...]:
    """Modules of the tests, one by one."""
    files = texts("passes/**/*.mlir", "diffrules/*.mlir", "ir/roundtrip/*.mlir", "ir/invalid/*.mlir")
    parts = [part for file in files for part in file.split("// -----")]
    code = ["\n".join(line for line in part.split("\n") if not line.startswith("//")) for part in parts]
    return tuple(part for part in code if part.strip())
